"""CUDA files on this machine: toolkits, and every copy of the libraries that frameworks load."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.collectors.file_owners import Owners
from whygpu.collectors.library_versions import QUESTIONS, ask
from whygpu.collectors.loader_settings import CACHE_FILE
from whygpu.host import loader_cache
from whygpu.host.base import FileFacts, Host
from whygpu.model.libraries import CopyOrigin, CudaFiles, LibraryCopy, Toolkit
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.target import Interpreter

LIBRARIES = (
    *("cudart", "cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse", "cusparseLt"),
    *("cudnn", "nccl", "nvJitLink", "nvrtc", "cupti", "nvinfer", "nvshmem_host", "cufile"),
)
"""As in lib<name>.so."""

_FILE_NAME = re.compile(rf"lib({'|'.join(LIBRARIES)})(?:-[0-9a-f]{{8}})?\.so(\.[\d.]+)?")
"""Old releases of PyTorch shipped their copies with a hash in the name."""
_FULL_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+){2,})$")
"""Two numbers may be only a soname: every CUDA 11 has libcudart.so.11.0."""

_TOOLKIT_FOLDERS = ("lib64", "lib", "extras/CUPTI/lib64")
_WHEEL_FOLDERS = ("torch/lib", "tensorrt_libs", "tensorrt")


class LibraryFolder(NamedTuple):
    """A folder that may contain CUDA libraries."""

    path: str
    origin: CopyOrigin


def library_folders(host: Host, target: Interpreter) -> tuple[LibraryFolder, ...]:
    """The folders that exist, each once. A link to a listed folder is left out."""
    folders: list[LibraryFolder] = []
    seen: set[str] = set()
    for folder in _possible_folders(host, target):
        facts = _folder(host, folder.path)
        if facts is not None and facts.identity not in seen:
            seen.add(facts.identity)
            folders.append(folder)
    return tuple(folders)


def collect(
    host: Host, target: Interpreter, folders: tuple[LibraryFolder, ...]
) -> Observed[CudaFiles]:
    """Toolkits and library copies. A version comes from the file itself, or is Unknown."""
    owners = Owners(host, target)
    copies = [copy for folder in folders for copy in _copies(host, folder, owners)]
    copies = _with_queried_versions(host, copies)
    toolkits = tuple(_toolkits(host, target))
    if not copies and not toolkits:
        places = ", ".join(folder.path for folder in folders)
        return Absent(f"CUDA libraries in {places or 'the usual folders'}, and CUDA toolkits")
    return Known(CudaFiles(toolkits, tuple(copies)), "files of CUDA on this machine")


def _possible_folders(host: Host, target: Interpreter) -> Iterator[LibraryFolder]:
    for site in target.paths:
        wheels = host.list(os.path.join(site, "nvidia"))
        for name in wheels.value if isinstance(wheels, Known) else ():
            yield LibraryFolder(os.path.join(site, "nvidia", name, "lib"), "wheel")
        for name in _WHEEL_FOLDERS:
            yield LibraryFolder(os.path.join(site, name), "wheel")
    if _is_conda(host, target):
        yield LibraryFolder(os.path.join(target.prefix, "lib"), "conda")
    for path in re.split("[:;]", host.environ.get("LD_LIBRARY_PATH", "")):
        if path:
            yield LibraryFolder(os.path.normpath(path), "ld-library-path")
    for root in _toolkit_roots(host):
        for name in (*_TOOLKIT_FOLDERS, f"targets/{host.platform.machine}-linux/lib"):
            yield LibraryFolder(os.path.join(root, name), "toolkit")
    for path in _cached_folders(host):
        yield LibraryFolder(path, "system")


def _is_conda(host: Host, target: Interpreter) -> bool:
    return _folder(host, os.path.join(target.prefix, "conda-meta")) is not None


def _folder(host: Host, path: str) -> FileFacts | None:
    facts = host.stat(path)
    return facts.value if isinstance(facts, Known) and facts.value.kind == "folder" else None


def _toolkit_roots(host: Host) -> Iterator[str]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if host.environ.get(variable):
            yield os.path.normpath(host.environ[variable])
    for parent in ("/usr/local", "/opt"):
        names = host.list(parent)
        for name in names.value if isinstance(names, Known) else ():
            if name == "cuda" or name.startswith("cuda-"):
                yield os.path.join(parent, name)


def _cached_folders(host: Host) -> tuple[str, ...]:
    content = host.read_bytes(CACHE_FILE)
    if not isinstance(content, Known):
        return ()
    try:
        entries = loader_cache.parse(content.value)
    except loader_cache.BadCache:
        return ()
    paths = (entry.path for entry in entries if _FILE_NAME.fullmatch(entry.name))
    return tuple(dict.fromkeys(os.path.dirname(path) for path in paths))


def _copies(host: Host, folder: LibraryFolder, owners: Owners) -> Iterator[LibraryCopy]:
    """One per file: libcudart.so, libcudart.so.12 and libcudart.so.12.4.127 are often the same."""
    names = host.list(folder.path)
    by_file: dict[str, list[str]] = {}
    facts: dict[str, FileFacts] = {}
    for name in names.value if isinstance(names, Known) else ():
        if _FILE_NAME.fullmatch(name):
            answer = host.stat(os.path.join(folder.path, name))
            if isinstance(answer, Known) and answer.value.kind == "file":
                by_file.setdefault(answer.value.identity, []).append(name)
                facts[answer.value.identity] = answer.value
    for identity, aliases in by_file.items():
        yield _copy(host, folder, aliases, facts[identity], owners)


def _copy(
    host: Host, folder: LibraryFolder, aliases: list[str], facts: FileFacts, owners: Owners
) -> LibraryCopy:
    elf = host.elf(os.path.join(folder.path, aliases[0]))
    soname = elf.value.soname if isinstance(elf, Known) else None
    chosen = soname if soname in aliases else aliases[-1]
    path = os.path.join(folder.path, chosen)
    match = _FILE_NAME.fullmatch(chosen)
    assert match is not None, "only such names come here"
    owner = owners.of(path)
    version: Observed[str]
    full = _FULL_VERSION.search(facts.real_path)
    if isinstance(elf, Unknown):
        version = elf
    elif full is not None:
        version = Known(full[1], facts.real_path)
    elif owner is not None and owner.size == facts.size:
        # A wheel's RECORD has the sizes of its files, so that a replaced file is detected.
        version = Known(owner.version, owner.record)
    else:
        version = Absent(f"the name of {facts.real_path}")
    words = f"{owner.distribution} {owner.version}" if owner is not None else ""
    return LibraryCopy(match[1], soname or chosen, path, version, folder.origin, words)


def _with_queried_versions(host: Host, copies: list[LibraryCopy]) -> list[LibraryCopy]:
    """Query the libraries whose files do not show a version."""
    silent = {
        copy.path: copy.name
        for copy in copies
        if isinstance(copy.version, Absent) and copy.name in QUESTIONS
    }
    queried = ask(host, silent) if silent else {}
    return [
        copy._replace(version=queried.get(copy.path, Unknown(f"{copy.path} does not contain it")))
        if isinstance(copy.version, Absent)
        else copy
        for copy in copies
    ]


def _toolkits(host: Host, target: Interpreter) -> Iterator[Toolkit]:
    seen: set[str] = set()
    roots = list(_toolkit_roots(host))
    if _is_conda(host, target) and isinstance(
        host.stat(os.path.join(target.prefix, "bin", "nvcc")), Known
    ):
        roots.append(target.prefix)
    for root in roots:
        facts = _folder(host, root)
        if facts is not None and facts.identity not in seen:
            seen.add(facts.identity)
            yield Toolkit(root, _toolkit_version(host, root))


def _toolkit_version(host: Host, root: str) -> Observed[str]:
    described = host.read(os.path.join(root, "version.json"))
    if isinstance(described, Known):
        try:
            return Known(str(json.loads(described.value)["cuda"]["version"]), described.source)
        except (ValueError, KeyError, TypeError, RecursionError):
            return Unknown(f"{described.source} does not name a CUDA version")
    noted = host.read(os.path.join(root, "version.txt"))
    match = re.search(r"CUDA Version (\d[\d.]*)", noted.value) if isinstance(noted, Known) else None
    if match is not None:
        return Known(match[1], noted.source if isinstance(noted, Known) else root)
    for name in _TOOLKIT_FOLDERS:
        facts = host.stat(os.path.join(root, name, "libcudart.so"))
        full = _FULL_VERSION.search(facts.value.real_path) if isinstance(facts, Known) else None
        if full is not None and isinstance(facts, Known):
            return Known(full[1], facts.value.real_path)
    return Unknown(f"{root} has no version.json, no version.txt and no libcudart.so")
