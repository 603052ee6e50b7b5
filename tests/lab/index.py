"""A package index of the lab: small real wheels, and stubs of NVIDIA's large ones.

pip gets it through its own variables, so that a remedy's command is carried out as it is printed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.lab.bench import cache
from tests.lab.cuda import CUDA_12, Wheel
from tests.lab.wheels import REMEDIES, NotFetched, wheel

PLATFORM = "py3-none-manylinux2014_x86_64"


LARGE = "WHYGPU_LAB_LARGE"
"""A variable that names a folder with large wheels, such as those of other TensorFlow releases."""


def has_package(requirement: str) -> bool:
    """Whether the lab has a package, with its extra for CUDA if that is wanted."""
    wanted = Requirement(requirement)
    name = canonicalize_name(wanted.name)
    large = [parse_wheel_filename(file.name) for file in _large_wheels()]
    if any(name == found and wanted.specifier.contains(version) for found, version, *_ in large):
        return True
    small = (Requirement(text).name for text in REMEDIES.values())
    return not wanted.extras and (is_stub(requirement) or name in map(canonicalize_name, small))


def is_stub(requirement: str) -> bool:
    return Requirement(requirement).name in {stub.distribution for stub in _stubs()}


def is_complete(python: str) -> bool:
    """Whether every small wheel could be fetched for this Python."""
    return len(_real_wheels(python)) == len(REMEDIES)


def pip_variables(python: str) -> dict[str, str]:
    """Variables with which pip knows the packages of the lab, and no others."""
    files = (*_real_wheels(python), *_large_wheels())
    places = dict.fromkeys(str(file.parent) for file in files)
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": " ".join((*places, str(_stub_wheels()))),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_NO_CACHE_DIR": "1",
    }


@functools.cache
def _real_wheels(python: str) -> tuple[Path, ...]:
    found = []
    for name in REMEDIES:
        # There may be none for this Python, or no index: pip then says that it is missing.
        with contextlib.suppress(NotFetched):
            found.append(wheel(name, python))
    return tuple(found)


def _large_wheels() -> list[Path]:
    folder = os.environ.get(LARGE)
    return sorted(Path(folder).glob("*.whl")) if folder else []


def _stubs() -> Iterator[Wheel]:
    """Those that frameworks load, and empty ones that `tensorflow[and-cuda]` requires as well."""
    yield from CUDA_12.values()
    for name, version in (
        ("cuda-cupti", "12.9.79"),
        ("cuda-nvrtc", "12.9.86"),
        ("curand", "10.3.10.19"),
        ("nccl", "2.28.7"),
    ):
        yield Wheel(f"nvidia-{name}-cu12", version, name.replace("-", "_"), ())


def _stub_wheels() -> Path:
    folder = cache() / "wheels"
    folder.mkdir(exist_ok=True)
    for stub in _stubs():
        name = stub.distribution.replace("-", "_")
        file = folder / f"{name}-{stub.version}-{PLATFORM}.whl"
        if not file.exists():
            unfinished = file.with_suffix(f".{os.getpid()}")
            _write(stub, unfinished)
            unfinished.rename(file)
    return folder


def _write(stub: Wheel, file: Path) -> None:
    info = f"{stub.distribution.replace('-', '_')}-{stub.version}.dist-info"
    base = f"nvidia/{stub.folder}"
    content: dict[str, bytes] = {
        f"{base}/lib/{library.soname}": library.build(cache()).read_bytes()
        for library in stub.libraries
    }
    content |= {f"{base}/{path}": data for path, data in stub.other_files.items()}
    metadata = f"Metadata-Version: 2.1\nName: {stub.distribution}\nVersion: {stub.version}\n"
    content[f"{info}/METADATA"] = metadata.encode()
    tag = f"Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: false\nTag: {PLATFORM}\n"
    content[f"{info}/WHEEL"] = tag.encode()
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    content[f"{info}/RECORD"] = record.encode()
    with zipfile.ZipFile(file, "w") as archive:
        for path, data in content.items():
            archive.writestr(path, data)
