"""Which program file and which Python interpreter a command will start, as far as it shows."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise

from whygpu.host.files import read_start

_PYTHON = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)*)?[td]?")
_LONGEST_SHEBANG = 512
_LONGEST_SCRIPT = 1 << 20
_VALUED = ("-W", "-X", "-Q", "--check-hash-based-pycs")
"""Options of Python whose value is the next word."""
_IMPORT = re.compile(
    r"(?:^|;)[ \t]*(?:import[ \t]+([^#;\n]+)|from[ \t]+([\w.]+)[ \t])", re.MULTILINE
)
_FRAMEWORKS = {
    "tensorflow": "tensorflow",
    "keras": "keras",
    "tf_keras": "keras",
    "jax": "jax",
    "flax": "jax",
    "torch": "torch",
    "torchvision": "torch",
    "lightning": "torch",
    "pytorch_lightning": "torch",
}


_CHOOSERS = frozenset(
    (
        *("uv", "uvx", "poetry", "pdm", "pipenv", "hatch", "rye", "pixi", "tox", "nox"),
        *("conda", "mamba", "micromamba", "docker", "podman", "apptainer", "singularity", "ssh"),
    )
)
"""Commands that choose the environment or the machine themselves."""


def chooses_environment(argv: Sequence[str]) -> bool:
    """Whether the command chooses the Python environment itself, so that we cannot know it."""
    return os.path.basename(argv[0]) in _CHOOSERS


def program_of(command: str, environ: Mapping[str, str]) -> str | None:
    """The file that the first word of the command starts; None if there is none."""
    return shutil.which(command, path=environ.get("PATH", os.defpath))


def interpreter_of(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The Python that the command runs: itself, that of its #! line, or one among its words.

    None if none of these shows it: a shell script, or a command that chooses for itself.
    """
    if chooses_environment(argv):
        return None
    return _own_interpreter(argv, environ) or _wrapped(argv, environ)


def _wrapped(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """env NAME=value python ..., timeout 60 python ..., numactl --cpubind 0 python ..."""
    for word in argv[1:]:
        if _is_python(word):
            return program_of(word, environ)
    return None


def _own_interpreter(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    program = program_of(argv[0], environ)
    if program is None:
        return None
    if _is_python(program):
        return program
    words = _shebang(program)
    if not words:
        return None
    if os.path.basename(words[0]) == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if not names or not _is_python(names[0]):
            return None
        return program_of(names[0], environ)
    return words[0] if _is_python(words[0]) else None


def _is_python(path: str) -> bool:
    return _PYTHON.fullmatch(os.path.basename(path)) is not None


def _shebang(program: str) -> list[str]:
    head = _head(program, _LONGEST_SHEBANG)
    if head.startswith("#!/bin/sh\n'''exec' "):
        # pip writes such a first line if the path of the interpreter is long or has spaces.
        quoted = re.match(r"#!/bin/sh\n'''exec' \"?([^\"\n]+?)\"? \"\$0\"", head)
        return [quoted[1]] if quoted else []
    if not head.startswith("#!"):
        return []
    return head[2:].partition("\n")[0].split()


def _head(path: str, size: int) -> str:
    try:
        # Not from a pipe: the program would miss what is read here.
        return read_start(path, size).decode("utf-8", "replace")
    except OSError:
        return ""


def ignores_python_variables(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The option that keeps PYTHONPATH or sitecustomize out of a Python command; None if none."""
    program = program_of(argv[0], environ)
    if program is None or not _is_python(program):
        return None
    for word in _options(argv):
        for letter in "EIS":
            if not word.startswith("--") and letter in word[1:]:
                return f"-{letter}"
    return None


def _options(argv: Sequence[str]) -> list[str]:
    """The interpreter's own options, up to the program's name."""
    options = []
    skip = False
    for word in argv[1:]:
        if skip:
            skip = False
        elif word in _VALUED:
            skip = True
        elif word.startswith(("-W", "-X")):
            continue
        elif word.startswith("-") and word not in ("-", "--"):
            program = re.match(r"(-[a-zA-Z]*?)[cm]", word)
            if program is not None:
                options.append(program[1])
                break
            options.append(word)
        else:
            break
    return options


def script_of(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The Python file that a command runs, if it names one: the first word that looks like it."""
    program = program_of(argv[0], environ)
    if program is None:
        return None
    if not _is_python(program):
        return program if _shebang(program) and interpreter_of(argv, environ) else None
    names = [word for word in argv[1:] if word.endswith((".py", ".pyw"))]
    given = any(re.match(r"-[a-zA-Z]*[cm]", word) for word in argv[1:2])
    return names[0] if names and not given else None


def _code_given(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The program of `python -c`, which ends Python's own options; None if there is none."""
    program = program_of(argv[0], environ)
    if program is None or not _is_python(program):
        return None
    for word, following in pairwise(argv[1:]):
        if not word.startswith("-") or "m" in word:
            return None
        if re.fullmatch(r"-[a-zA-Z]*c", word):
            return following
    return None


def frameworks_named(argv: Sequence[str], environ: Mapping[str, str]) -> frozenset[str]:
    """The frameworks that the command's own Python code imports by name; empty if unknown."""
    text = _code_given(argv, environ)
    if text is None:
        script = script_of(argv, environ)
        text = _head(script, _LONGEST_SCRIPT) if script is not None else ""
    modules = [
        words.split()[0].split(".")[0]
        for several, single in _IMPORT.findall(text)
        for words in (several or single).split(",")
        if words.strip()
    ]
    return frozenset(_FRAMEWORKS[name] for name in modules if name in _FRAMEWORKS)
