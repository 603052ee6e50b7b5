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

_STARTS = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|srun)")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_PROCESSES = re.compile(r"--(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus)=?")
_PARALLEL = re.compile(r"--tensor[-_]parallel[-_]size=?|-tp=?|--tp=?")


def program_of(
    words: Sequence[str], folders: Sequence[str], files: ProjectFiles
) -> StartedProgram | None:
    """What the script of a command needs; None if it is not found in these folders."""
    script = _script(words)
    if script is None:
        return None
    for folder in folders:
        for path in _candidates(script, folder):
            text = files.read(path)
            if text is not None:
                return started_program(path, text)
    return None


def _script(words: Sequence[str]) -> str | None:
    flat = [part for word in words for part in word.split()]
    if not any(map(_STARTS.fullmatch, flat)):
        return None
    scripts = [word for word in flat if word.endswith(".py") and "$" not in word]
    if scripts:
        return scripts[0]
    # python -m package.train
    modules = (b for a, b in itertools.pairwise(flat) if a == "-m")
    module = next((each for each in modules if _MODULE.fullmatch(each)), None)
    return f"{module.replace('.', '/')}.py" if module is not None else None


def _candidates(script: str, folder: str) -> Iterator[str]:
    """train.py in the folder; for /app/src/train.py also src/train.py."""
    parts = [part for part in script.split("/") if part not in ("", ".")]
    if os.pardir in parts:
        return
    starts = range(len(parts)) if script.startswith("/") else range(1)
    for start in starts:
        yield os.path.normpath(os.path.join(folder, *parts[start:]))


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
