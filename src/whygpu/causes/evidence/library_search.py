"""Text about the loader's search for a library, and the actions that change the search."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from whygpu.causes.evidence.library_faults import Failure
from whygpu.model.derived import and_list
from whygpu.model.figures import first_of
from whygpu.model.finding import Evidence, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.libraries import Resolution, SearchedFolder
from whygpu.model.observed import Known
from whygpu.model.remedy import DropPath, PrependPath
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

_HOW_FOUND = {
    "loaded": "a library loaded before",
    "rpath": "RPATH",
    "ld-library-path": "LD_LIBRARY_PATH",
    "runpath": "RUNPATH",
    "cache": "the loader's cache",
    "default": "a default folder",
    "absolute": "its full path",
}


def listed(failing: Sequence[Failure]) -> str:
    """The libraries that fail, each with the library that needs it, if there is one."""
    texts = []
    for failure in failing:
        needing = dict.fromkeys(
            posixpath.basename(request.chain[-2])
            for request in failure.requests
            if len(request.chain) > 1
        )
        suffix = f" (for {and_list(list(needing))})" if needing else ""
        texts.append(failure.library + suffix)
    return and_list(texts)


def requests_seen(failing: Sequence[Failure]) -> tuple[Evidence, ...]:
    """The file that needs each library, the loader's message and the folders it searched."""
    evidence = []
    for failure in failing:
        for request in failure.requests:
            chain = " -> ".join(posixpath.basename(name) for name in request.chain)
            through = f" (through {chain})" if len(request.chain) > 1 else ""
            error = request.detail.removeprefix(f"{failure.library}: ")
            answer = f"; the loader reports: {error}" if error else ""
            text = f"needs {request.library}{through}{answer}"
            evidence.append(Evidence("machine", request.requester, text))
    searched = search_text(failing[0].first.searched)
    if searched:
        library = failing[0].library
        evidence.append(Evidence("machine", "the loader", f"searched for {library} in {searched}"))
    return tuple(evidence)


_SHOWN_FOLDERS = 8
_WHEEL_FOLDER = late(r"([^\n]{0,400}/nvidia)/([\w.-]{1,60})/lib")


def search_text(folders: Sequence[SearchedFolder]) -> str:
    """The folders of a search in order, with the setting that contains them."""
    groups: dict[str, list[str]] = {}
    for folder in folders:
        title = _HOW_FOUND[folder.kind]
        if folder.owner:
            title = f"{title} of {posixpath.basename(folder.owner)}"
        groups.setdefault(title, []).append(folder.path)
    texts = []
    for title, paths in groups.items():
        texts.append(f"{title}: {first_of(_merged(paths), _SHOWN_FOLDERS)}")
    return "; ".join(texts)


def _merged(paths: Sequence[str]) -> list[str]:
    """Each folder once; many wheel folders of one place as one: nvidia/{nccl,cudnn}/lib."""
    places: dict[str, list[str]] = {}
    for path in paths:
        match = _WHEEL_FOLDER.fullmatch(path)
        wheels = places.setdefault(match[1] if match else path, [])
        if match and match[2] not in wheels:
            wheels.append(match[2])
    return [_place(place, wheels) for place, wheels in places.items()]


def _place(place: str, wheels: Sequence[str]) -> str:
    if not wheels:
        return place
    inside = wheels[0] if len(wheels) == 1 else f"{{{','.join(wheels)}}}"
    return f"{place}/{inside}/lib"


def found_through(resolution: Resolution) -> SearchedFolder | None:
    """The folder where the search for a library, or for the last of its chain, ended."""
    found = [folder for folder in resolution.searched if folder.result == "found"]
    return found[-1] if found else None


def how_found(folder: SearchedFolder) -> str:
    """The part of the search path where a file was found: LD_LIBRARY_PATH (/opt/cuda/lib64)."""
    return f"{_HOW_FOUND[folder.kind]} ({folder.path})"


def search_first(folders: Sequence[str]) -> PrependPath:
    """Put folders first in LD_LIBRARY_PATH."""
    return PrependPath("LD_LIBRARY_PATH", tuple(dict.fromkeys(folders)))


def search_without(machine: Snapshot, folder: str) -> DropPath | None:
    """Remove a folder from LD_LIBRARY_PATH; None if it is not there."""
    value = machine.environment.get("LD_LIBRARY_PATH")
    if not isinstance(value, Known):
        return None
    folders = value.value.split(":")
    rest = tuple(item for item in folders if posixpath.normpath(item or ".") != folder)
    return DropPath("LD_LIBRARY_PATH", folder, rest) if len(rest) < len(folders) else None


def without_library(machine: Snapshot, path: str) -> Remedy | None:
    """Drop the setting that makes the loader take this file; None if no setting names it."""
    folder = posixpath.dirname(path)
    without = search_without(machine, folder)
    if without is not None:
        return Remedy(
            f"Take {folder} out of LD_LIBRARY_PATH: the library there replaces that of the system "
            "or of the environment.",
            without,
        )
    preloaded = machine.environment.get("LD_PRELOAD")
    files = preloaded.value.replace(" ", ":").split(":") if isinstance(preloaded, Known) else []
    if path not in files:
        return None
    return Remedy(
        f"Take {path} out of LD_PRELOAD: it replaces the library of the system or of the "
        "environment.",
        DropPath("LD_PRELOAD", path, tuple(file for file in files if file not in (path, ""))),
    )


def dlopen_warning(machine: Snapshot, framework: Framework) -> tuple[Evidence, ...]:
    """TensorFlow's own warning, which names no library, if its probe recorded it."""
    if framework.name != "tensorflow":
        return ()
    probe = machine.probe("tensorflow")
    if not isinstance(probe, Known):
        return ()
    line = next((text for text in probe.value.log if "Cannot dlopen some GPU" in text), None)
    return (Evidence("probe", "TensorFlow's log", line),) if line else ()
