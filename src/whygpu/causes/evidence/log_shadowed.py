"""A framework that Python imports from a folder of the user instead of the installed package."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Raised

NAMES = ("torch", "tensorflow", "keras", "jax", "jaxlib", "numpy")


class Shadow(NamedTuple):
    line: int
    name: str
    kind: Literal["file", "folder", "empty-folder", "source"]
    """The user's own file, a folder with Python files, one without, or the source of the package."""
    path: str = ""
    """Empty if the log does not show it."""


_SOURCE = late(
    r"you should not try to import (?P<name>\w{2,20}) from\s{1,12}its source directory"
    r"|PyTorch has loaded the `(?P<torch>torch)/_C` folder"
)
_MISSING = late(
    r"No module named ['\"]?(?P<module>\w{2,20})[.'\"\w]{0,100}"
    r"|cannot import name '?\w{1,60}'?(?: from (?:partially initialized module )?'(?P<package>\w{2,20})"
    r"[\w.]{0,100}')?"
    r"|module '(?P<whole>\w{2,20})' has no attribute"
)
_LOCATION = late(r"\((?P<path>unknown location|(?:/|[A-Za-z]:\\)[^()\n]{1,300})\)\s{0,4}$")
_KINDS = ("ImportError", "ModuleNotFoundError", "AttributeError")
_INSTALLED = late(r"/(?:site|dist)-packages/|/lib/python\d")


def shadow_in(log: Log) -> Shadow | None:
    for match in log.find(_SOURCE):
        name = match.groups["name"] or match.groups["torch"] or ""
        if name in NAMES:
            return Shadow(match.line, name, "source", _copy(name, _raised_at(log, match.line)))
    for exception in log.raised:
        found = None if exception.handled else _shadowed(exception)
        if found is not None:
            return found
    return None


def _shadowed(exception: Raised) -> Shadow | None:
    missing = _MISSING.search(exception.message)
    if exception.type not in _KINDS or missing is None:
        return None
    named = missing["module"] or missing["package"] or missing["whole"]
    for name in (named,) if named else NAMES:
        if name not in NAMES:
            continue
        location = _LOCATION.search(exception.message.partition("\n")[0])
        place = location["path"].replace("\\", "/") if location else ""
        if place == "unknown location":
            # A missing part of a package has no location either.
            exact = f"'{name}'" in exception.message
            return Shadow(exception.line, name, "empty-folder") if exact else None
        path = _root(name, place) or _copy(name, exception)
        if not path and missing["whole"]:
            # The file may be the program itself: whatever it imports then imports it again.
            path = next(filter(None, (_root(name, _slashed(f)) for f in exception.frames)), "")
        if path:
            kind: Literal["file", "folder"] = "file" if path.endswith(".py") else "folder"
            return Shadow(exception.line, name, kind, path)
    return None


def _copy(name: str, exception: Raised | None) -> str:
    """The copy of the package whose code was running; "" if it was the installed one, or none."""
    for frame in reversed(exception.frames if exception else ()):
        path = _slashed(frame)
        if _INSTALLED.search(path):
            return ""
        root = _root(name, path)
        if root:
            return root
    return ""


def _slashed(path: str) -> str:
    return path.replace("\\", "/")


def _root(name: str, path: str) -> str:
    """/home/me/torch.py, or /home/me/pytorch/torch for its __init__.py; "" for other files."""
    if _INSTALLED.search(path):
        return ""
    if path == f"{name}.py" or path.endswith(f"/{name}.py"):
        return path
    return path.removesuffix("/__init__.py") if path.endswith(f"/{name}/__init__.py") else ""


def _raised_at(log: Log, line: int) -> Raised | None:
    return next(
        (e for e in log.raised if e.line <= line <= e.line + e.message.count("\n")),
        None,
    )
