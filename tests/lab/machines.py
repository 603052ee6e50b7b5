"""Hardware that many scenarios share, and the steps that lay their machines out."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.lab.bench import Bench, cache
from tests.lab.driver import NoCompiler
from tests.lab.stage import EVERY_NODE, PciDevice, Stage

Step = Callable[[Bench], None]

MODULE = "580.65.06"
"""The version of the stub driver, and so of the kernel module that goes with it."""

GPU_MACHINE = Stage(pci=(PciDevice(),), module=MODULE, nodes=EVERY_NODE)
"""An NVIDIA GPU with its module and device nodes, as they should be."""


def complete_cuda(bench: Bench) -> None:
    """Every CUDA library that TensorFlow 2.21 wants, where it finds them."""
    cuda_without()(bench)


def cuda_without(*folders: str) -> Step:
    """The same, but for the wheels of these folders."""

    def step(bench: Bench) -> None:
        bench.cuda_wheels(without=folders)
        bench.search_cusolver()

    return step


def official_cuda(bench: Bench) -> None:
    """What `pip install tensorflow[and-cuda]==2.21.0` gives: nothing searches for libcusolver."""
    bench.cuda_wheels()


def install(*names: str) -> Step:
    """Packages of another version, from wheels.PINNED."""

    def step(bench: Bench) -> None:
        for name in names:
            bench.install(name)

    return step


def remove(distribution: str) -> Step:
    return lambda bench: bench.remove(distribution)


def replace(file: str, content: bytes) -> Step:
    """Other content for a file of the target."""

    def step(bench: Bench) -> None:
        bench.replace(file, content)

    return step


def run_first(package: str, code: str) -> Step:
    """Code that runs when a package is imported, before its own."""

    def step(bench: Bench) -> None:
        file = bench.site / package / "__init__.py"
        # After imports from the future, which have to come first.
        lines = file.read_text().splitlines(keepends=True)
        future = [line for line in lines if line.startswith("from __future__")]
        rest = [line for line in lines if line not in future]
        bench.replace(f"{package}/__init__.py", "".join((*future, code, *rest)))

    return step


_UNAME = """
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
int uname(struct utsname *name)
{{
    long result = syscall(SYS_uname, name);
    strcpy(name->release, "{release}");
    return (int)result;
}}
"""


def kernel(release: str) -> Step:
    """Programs are told that the kernel is another one; nothing else about it changes."""

    def step(bench: Bench) -> None:
        gcc = shutil.which("gcc")
        if gcc is None:
            raise NoCompiler("the stand-in for uname() is compiled by gcc, which is not there")
        digest = hashlib.sha256((_UNAME + release).encode()).hexdigest()[:16]
        library = cache() / f"uname-{digest}.so"
        if not library.exists():
            source, built = bench.folder / "uname.c", bench.folder / "uname.so"
            source.write_text(_UNAME.format(release=release))
            command = [gcc, "-shared", "-fPIC", "-O1", "-o", str(built), str(source)]
            subprocess.run(command, check=True)
            # Complete, for tests side by side, and across file systems.
            whole = shutil.copy(built, library.with_name(f"{library.name}.{os.getpid()}"))
            Path(whole).rename(library)
        bench.set(LD_PRELOAD=str(library))

    return step
