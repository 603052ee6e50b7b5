"""A stub NVIDIA driver for tests: a machine with the GPUs and the faults of one's choice.

``StubDriver(...).install(folder, cache=...)`` puts a libcuda and a libnvidia-ml into a folder, and
returns the environment in which a program takes them for the machine's own. ``config.h`` says what
they can be made to do; real programs can list GPUs on them, and compute nothing.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

__all__ = ["NoCompiler", "StubDriver", "StubGpu", "StubProcess", "build"]

Library = Literal["cuda", "nvidia-ml"]
Feature = Literal["on", "off", "unsupported"]
ComputeMode = Literal["default", "exclusive_process", "prohibited"]

_HERE = Path(__file__).parent
_SOURCES: Mapping[Library, str] = {"cuda": "cuda.c", "nvidia-ml": "nvml.c"}
# Hidden symbols: see EXPORT in config.h.
_FLAGS = ("-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread")


class NoCompiler(Exception):
    """This machine has no gcc, so there is no stub driver."""


@dataclass(frozen=True)
class StubProcess:
    """A program that holds memory of a GPU; ``None``: NVML cannot say how much."""

    pid: int
    name: str
    memory_mib: int | None
    graphics: bool = False


@dataclass(frozen=True)
class StubGpu:
    """One GPU. An empty ``uuid`` or ``pci_bus_id`` is filled in by the driver it is given to."""

    name: str = "NVIDIA A100-SXM4-40GB"
    uuid: str = ""
    pci_bus_id: str = ""
    compute_capability: str = "8.0"
    memory_total_mib: int = 40960
    memory_used_mib: int = 4
    compute_mode: ComputeMode = "default"
    mig: Feature = "off"
    ecc: Feature = "on"
    ecc_corrected: int = 0
    ecc_uncorrected: int = 0
    lost: bool = False
    processes: tuple[StubProcess, ...] = ()
    returns: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Return codes of calls about this GPU, by the call's name without ``_v2`` and the like."""

    def _lines(self) -> Iterator[str]:
        yield f"name = {self.name}"
        yield f"uuid = {self.uuid}"
        yield f"pci_bus_id = {self.pci_bus_id}"
        yield f"compute_capability = {self.compute_capability}"
        yield f"memory_total_mib = {self.memory_total_mib}"
        yield f"memory_used_mib = {self.memory_used_mib}"
        yield f"compute_mode = {self.compute_mode}"
        yield f"mig = {self.mig}"
        yield f"ecc = {self.ecc}"
        yield f"ecc_corrected = {self.ecc_corrected}"
        yield f"ecc_uncorrected = {self.ecc_uncorrected}"
        yield f"lost = {'yes' if self.lost else 'no'}"
        for process in self.processes:
            key = "graphics_process" if process.graphics else "process"
            memory = "-" if process.memory_mib is None else process.memory_mib
            yield f"{key} = {process.pid}:{process.name}:{memory}"
        yield from _answers(self.returns)


@dataclass(frozen=True)
class StubDriver:
    """A driver and its GPUs; the default is a healthy one with one GPU."""

    version: str = "580.65.06"
    cuda: str = "13.0"
    gpus: tuple[StubGpu, ...] = (StubGpu(),)
    cu_init: int = 0
    nvml_init: int = 0
    hang: str | None = None
    """The call that never returns."""
    returns: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Return codes of further calls, by the call's name without ``_v2`` and the like."""
    libraries: tuple[Library, ...] = ("cuda", "nvidia-ml")

    def __post_init__(self) -> None:
        # Two GPUs never share these, and a test may want to know them.
        placed = tuple(
            replace(
                gpu,
                uuid=gpu.uuid or f"GPU-5747{index:04x}-7768-4179-8067-707500000000",
                pci_bus_id=gpu.pci_bus_id or f"0000:{index + 1:02X}:00.0",
            )
            for index, gpu in enumerate(self.gpus)
        )
        object.__setattr__(self, "gpus", placed)

    def configuration(self) -> str:
        """The text of the file that the libraries read."""
        lines = [f"version = {self.version}", f"cuda = {self.cuda}"]
        if self.hang is not None:
            lines.append(f"hang = {_known(self.hang)}")
        lines += _answers({"cuInit": self.cu_init, "nvmlInit": self.nvml_init, **self.returns})
        for gpu in self.gpus:
            lines += ["", "[gpu]", *gpu._lines()]
        return "\n".join(lines) + "\n"

    def install(self, folder: Path, *, cache: Path) -> dict[str, str]:
        """Put the driver into a folder of its own; return the environment that makes it found.

        The libraries are compiled into ``cache`` when it does not have them yet.
        """
        built = build(cache)
        folder.mkdir(parents=True, exist_ok=True)
        for library in self.libraries:
            # As a real driver does: the file's name says the version, the link is what is loaded.
            file = folder / f"lib{library}.so.{self.version}"
            (folder / f"lib{library}.so.1").symlink_to(file.name)
            shutil.copy(built[library], file)
        configuration = folder / "stub-driver.conf"
        configuration.write_text(self.configuration())
        # An empty part of LD_LIBRARY_PATH would mean the working directory.
        inherited = os.environ.get("LD_LIBRARY_PATH")
        return {
            "LD_LIBRARY_PATH": f"{folder}:{inherited}" if inherited else str(folder),
            "WHYGPU_STUB_DRIVER": str(configuration),
        }


def build(cache: Path) -> dict[Library, Path]:
    """The two compiled libraries, from the cache if these sources have been compiled before."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise NoCompiler("the stub driver is compiled by gcc, which is not on the PATH")
    folder = cache / f"stub-driver-{_fingerprint()}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that test runs side by side never see half of it.
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            unfinished = Path(scratch) / "built"
            unfinished.mkdir()
            for library in _SOURCES:
                _compile(gcc, library, unfinished / f"lib{library}.so")
            try:
                unfinished.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return {library: folder / f"lib{library}.so" for library in _SOURCES}


def _compile(gcc: str, library: Library, output: Path) -> None:
    soname = f"-Wl,-soname,lib{library}.so.1"
    sources = [str(_HERE / _SOURCES[library]), str(_HERE / "config.c")]
    command = [gcc, *_FLAGS, soname, "-o", str(output), *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the stub driver does not compile:\n{done.stderr}")


def _fingerprint() -> str:
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for source in sorted(_HERE.glob("*.[ch]")) + sorted(_HERE.glob("*.inc")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _served() -> frozenset[str]:
    text = "".join((_HERE / source).read_text() for source in _SOURCES.values())
    return frozenset(re.findall(r'"((?:cu|nvml)[A-Z]\w*)"', text))


def _known(call: str) -> str:
    # Misspelt, it would leave the driver healthy and the test without its subject.
    if call not in _served():
        raise ValueError(f"the stub driver cannot steer {call!r}: it serves no such call")
    return call


def _answers(returns: Mapping[str, int]) -> Iterator[str]:
    return (f"{_known(call)} = {code}" for call, code in returns.items())
