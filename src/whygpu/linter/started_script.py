"""Finds the Python file that a command starts, among the files of the project."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence

from whygpu.linter.project_files import ProjectFiles
from whygpu.model.deployment import Reason, StartedProgram
from whygpu.model.requirement_file import FileLine
from whygpu.model.whole_numbers import whole_number
from whygpu.readers.code.started_program import started_program

_STARTS = re.compile(r"\A(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|srun)")
_IN_A_FOLDER = re.compile(r"^.{0,200}\$[^/]{1,60}/")
"""$PROJECT/src/train.py, /home/${USER}/project/train.py"""
_USES = re.compile(
    r"cuda\.is_available\(\)|['\"]cuda(?::\d)?['\"]|\.cuda\(|accelerator=['\"](?:gpu|cuda|auto)"
    r"|list_physical_devices\(['\"]GPU|\b(?:pl|L|lightning)\.Trainer\(|\bAccelerator\("
    r"|deepspeed\.initialize"
)
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_PROCESSES = re.compile(r"--(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus)=?")
_PARALLEL = re.compile(r"--tensor[-_]parallel[-_]size=?|-tp=?|--tp=?")


def program_of(
    words: Sequence[str], folders: Sequence[str], files: ProjectFiles
) -> StartedProgram | None:
    """What the script of a command needs; None if it is not found in these folders."""
    found = _found_script(words, folders, files)
    return started_program(*found) if found is not None else None


def use_of_gpu(
    words: Sequence[str], folders: Sequence[str], files: ProjectFiles
) -> FileLine | None:
    """A line of the script by which it computes on a GPU, if there is one; None if unknown."""
    found = _found_script(words, folders, files)
    for number, line in enumerate(found[1].split("\n") if found is not None else (), 1):
        if found is not None and _USES.search(line) and not line.lstrip().startswith("#"):
            return FileLine(found[0], number, line.strip())
    return None


def script_name(words: Sequence[str]) -> str:
    """The name of the Python file or module that a command starts; empty if there is none."""
    script = _script(words)
    return os.path.basename(script) if script is not None else ""


def _found_script(
    words: Sequence[str], folders: Sequence[str], files: ProjectFiles
) -> tuple[str, str] | None:
    """The path and the text of the script that a command starts."""
    script = _script(words)
    for folder in folders if script is not None else ():
        for path in _candidates(str(script), folder):
            text = files.read(path)
            if text is not None:
                return path, text
    return None


def _script(words: Sequence[str]) -> str | None:
    flat = [part for word in words for part in word.split()]
    if not any(map(_STARTS.fullmatch, flat)):
        return None
    scripts = (_IN_A_FOLDER.sub("/", word) for word in flat if word.endswith(".py"))
    script = next((each for each in scripts if "$" not in each), None)
    if script is not None:
        return script
    # python -m package.train
    modules = (b for a, b in itertools.pairwise(flat) if a == "-m")
    module = next((each for each in modules if _MODULE.fullmatch(each)), None)
    return f"{module.replace('.', '/')}.py" if module is not None else None


def _candidates(script: str, folder: str) -> Iterator[str]:
    """train.py in the folder; for /app/src/train.py also src/train.py."""
    parts = [part for part in script.split("/") if part not in ("", ".")]
    if os.pardir in parts:
        beside = os.path.normpath(os.path.join(folder, script))
        if not script.startswith("/") and not beside.startswith(os.pardir):
            yield beside
        return
    starts = range(len(parts)) if script.startswith("/") else range(1)
    for start in starts:
        yield os.path.normpath(os.path.join(folder, *parts[start:]))
    yield os.path.normpath(os.path.join(folder, "src", *parts))


def several_processes(words: Sequence[str], place: FileLine) -> Reason | None:
    """Whether a command starts a process for each of several GPUs of a machine."""
    flat = [part for word in words for part in word.split()]
    for number, word in enumerate(flat):
        option = _PROCESSES.match(word) or _PARALLEL.match(word)
        if option is None:
            continue
        value = word[option.end() :] or (flat[number + 1] if number + 1 < len(flat) else "")
        if (whole_number(value) or 0) > 1:
            return Reason(f"{word[: option.end()].rstrip('=')} is {value}", place)
    return None


def needs_gpu(statement: FileLine) -> Reason:
    return Reason(f"{statement.file}:{statement.line} needs one", statement)
