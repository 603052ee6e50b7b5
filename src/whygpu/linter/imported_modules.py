"""Other files of the project that a program imports, if their functions set up devices.

`from utils import set_gpu` is followed where `set_gpu()` is called, because it may set a variable
too late for the program. Only functions with one of the words below are read: all others cannot
change which devices a program uses.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from whygpu.host.files import read_start
from whygpu.linter.project_files import DiskFiles
from whygpu.model.text_lines import lines_with
from whygpu.readers.code.source import SourceProblem, load, parse
from whygpu.readers.code.walk import ImportedModule

_LARGEST = 1 << 18
_SETS_UP = (
    *("environ", "putenv", "set_memory_growth", "set_visible_devices", "ConfigProto"),
    *("set_logical_device_configuration", "list_physical_devices", "list_logical_devices"),
    *("set_device", "set_session", "is_gpu_available", "device_count"),
)
_IMPORT = re.compile(
    r"[ \t]{0,40}(?:from[ \t]{1,9}(\.{0,9})([\w.]{0,200})[ \t]{1,9}import\b"
    r"|import[ \t]{1,9}([\w., \t]{1,400}))"
)
_FUNCTION = re.compile(r"^def[ \t]{1,9}(\w{1,200})", re.MULTILINE)
_HIGHEST = 3
"""How many folders above a file a project may begin, from which it imports."""


class Wrappers(NamedTuple):
    """The functions of other files that a program calls, as far as they set up devices."""

    names: tuple[str, ...]
    text: str
    """Their source, all together."""


NO_WRAPPERS = Wrappers((), "")


class ImportedModules:
    """Finds what one file imports."""

    def __init__(self, path: str) -> None:
        self._folder = os.path.dirname(path)

    def find(self, module: str, level: int) -> ImportedModule | None:
        path = _path_of(self._folder, module, level)
        found = _module(path) if path is not None else None
        return found.module if found is not None else None

    def called_in(self, text: str) -> Wrappers:
        names, texts = list[str](), list[str]()
        for module, level in _imports_in(text):
            path = _path_of(self._folder, module, level)
            if path is None or not any(_is_called(name, text) for name in _functions_in(path)):
                continue
            found = _module(path)
            for name, source in found.sources.items() if found is not None else ():
                if name in text:
                    other = rf"\b{name}\s+as\s+(\w+)"
                    renamed = re.search(other, text) if f"{name} as" in text else None
                    names.append(f"{renamed[1] if renamed else name}(")
                    texts.append(source)
        return Wrappers(tuple(names), "\n".join(texts))


def _is_called(name: str, text: str) -> bool:
    """Perhaps under another name. Only a call is followed."""
    return f"{name}(" in text or f"{name} as" in text


def _imports_in(text: str) -> Iterator[tuple[str, int]]:
    """The modules that a text imports, each with the number of dots before its name."""
    for line in lines_with(text, ("import",)):
        found = _IMPORT.match(line)
        if found is not None:
            dots, origin, listed = found.groups("")
            for module in [each.split()[0] for each in _parts(listed)] or [origin]:
                yield module, len(dots)


@lru_cache(maxsize=16384)
def _path_of(folder: str, module: str, level: int) -> str | None:
    """The file of a module, searched from the folder of the program and those above it."""
    parts = module.split(".") if module else []
    if not parts or not all(parts) or (not level and parts[0] in sys.stdlib_module_names):
        return None
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    for _ in range(1 if level else _HIGHEST + 1):
        here = _names_in(folder)
        if parts[0] in here or f"{parts[0]}.py" in here:
            path = os.path.join(folder, *parts)
            for file in (f"{path}.py", os.path.join(path, "__init__.py")):
                if os.path.isfile(file):
                    return os.path.normpath(file)
        if not folder or ".git" in here:
            return None
        folder = os.path.dirname(folder)
    return None


@lru_cache(maxsize=4096)
def _names_in(folder: str) -> frozenset[str]:
    return frozenset(DiskFiles().names(folder or os.curdir))


def _parts(listed: str) -> list[str]:
    return [part for part in listed.split(",") if part.strip()]


class _Module(NamedTuple):
    module: ImportedModule
    sources: dict[str, str]
    """The source of each function that is followed."""


@lru_cache(maxsize=4096)
def _functions_in(path: str) -> frozenset[str]:
    """Functions that may set up devices, and perhaps others: the file is not parsed for this."""
    try:
        content = read_start(path, _LARGEST + 1)
    except OSError:
        return frozenset()
    text = content.decode("utf-8", "replace")
    if len(content) > _LARGEST or not any(word in text for word in _SETS_UP):
        return frozenset()
    # The text from one `def` to the next one contains the function.
    _, *parts = _FUNCTION.split(text)
    functions = dict(zip(parts[::2], parts[1::2], strict=True))
    setting_up = {
        name for name, body in functions.items() if any(word in body for word in _SETS_UP)
    }
    callers = {
        name for name, body in functions.items() if any(f"{inner}(" in body for inner in setting_up)
    }
    return frozenset(setting_up | callers)


@lru_cache(maxsize=256)
def _module(path: str) -> _Module | None:
    """Only for a file that has functions: most are imported for other things."""
    if not _functions_in(path):
        return None
    try:
        source = load(path, read_start(path, _LARGEST + 1))
        tree = parse(source)
    except (OSError, SourceProblem):
        return None
    lines = source.text.split("\n")
    functions = {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    followed = {
        name: text for name, text in functions.items() if any(word in text for word in _SETS_UP)
    }
    # Functions that call them, too.
    followed |= {
        name: f"{text}\n{followed[inner]}"
        for name, text in functions.items()
        for inner in followed
        if name not in followed and f"{inner}(" in text
    }
    if not followed:
        return None
    return _Module(ImportedModule(path, tree, frozenset(followed)), followed)


def forget() -> None:
    """Read the files again that were read before: they may have changed since."""
    for cached in (_module, _functions_in, _path_of, _names_in):
        cached.cache_clear()
