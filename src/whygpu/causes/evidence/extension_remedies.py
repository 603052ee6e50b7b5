"""How to get a compiled extension that fits the installed PyTorch, which stays as it is."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.causes.evidence.framework_installs import pytorch_index
from whygpu.causes.evidence.log_extensions import SELECTS_LIBRARY, BrokenExtension
from whygpu.model.finding import Remedy
from whygpu.model.remedy import (
    PYTHON,
    Install,
    Pip,
    SetVariable,
    Steps,
    UnsetVariable,
    shell_script,
)
from whygpu.tables.torch_extensions import TorchExtension, companion_release


class InstalledTorch(NamedTuple):
    """The installed PyTorch; empty texts if it is not known."""

    release: str = ""
    """2.1.0"""
    build: str = ""
    """cu121"""


def without_installing(fault: BrokenExtension) -> tuple[Remedy, ...]:
    """What helps without installing anything."""
    if fault.detail == SELECTS_LIBRARY:
        return (
            Remedy(
                "Let bitsandbytes choose the library for the CUDA of PyTorch.",
                UnsetVariable((SELECTS_LIBRARY,)),
            ),
        )
    if fault.fault == "not-built" and fault.name == "bitsandbytes":
        return (
            Remedy(
                "Start the program in another folder: Python imports the source of bitsandbytes in "
                "this one, in which nothing was compiled, and not the installed package."
            ),
        )
    return ()


def fitting_builds(
    row: TorchExtension | None,
    name: str,
    torch: InstalledTorch,
    *,
    without_cuda: bool,
    cache: str = "",
) -> tuple[Remedy, ...]:
    if cache:
        usual = "/.cache/torch_extensions" in cache
        return (
            Remedy(
                f"Delete {cache}: PyTorch then compiles {name} again at its next use.",
                shell_script("rm -r ~/.cache/torch_extensions") if usual else None,
            ),
        )
    first = _reinstall(row, name, torch, without_cuda=without_cuda)
    if row is not None and row.fitting in ("companion", "pinned") and not torch.release:
        version = shell_script(PYTHON, " -c 'import torch; print(torch.__version__)'")
        return (Remedy("Find out which PyTorch is installed.", version), first)
    return (first,)


def _reinstall(
    row: TorchExtension | None, name: str, torch: InstalledTorch, *, without_cuda: bool
) -> Remedy:
    """Install the extension again. PyTorch itself stays as it is."""
    if row is None or row.fitting == "by-hand":
        where = f", as {row.source} describes" if row else ""
        title = row.distribution if row else name or "the extension"
        return Remedy(
            f"Compile {title} in this environment, for the installed PyTorch{where}. Delete its "
            "folder build first: the old result would be used again."
        )
    index = pytorch_index(torch.build) if torch.build and row.has_cuda_builds else ""
    if row.fitting == "companion":
        release = companion_release(row.distribution, torch.release)
        text = (
            f"Install the release of {row.distribution} that belongs to the installed PyTorch, for "
            f"the same CUDA ({row.source})."
        )
        wanted = (f"{row.distribution}=={release}.*",)
        install = Install(wanted, index, options=("force-reinstall", "no-deps"))
        return Remedy(text, install if release else None)
    if row.fitting == "pinned":
        text = f"Install the release of {row.distribution} that requires the installed PyTorch."
        both = (row.distribution, f"torch=={torch.release}")
        return Remedy(text, Install(both, index, options=("upgrade",)) if torch.release else None)
    if row.fitting == "by-cuda":
        return Remedy(
            f"Install the newest {row.distribution}, which has code for more CUDA releases.",
            Install((row.distribution,), options=("upgrade",)),
        )
    text = (
        f"Compile {row.distribution} for the installed PyTorch. This needs nvcc of the CUDA "
        "release that PyTorch was built for."
    )
    build = _build(row)
    if without_cuda:
        text += " FORCE_CUDA makes it compile GPU code if the build does not see a GPU."
        return Remedy(text, Steps((SetVariable("FORCE_CUDA", "1"), build)))
    return Remedy(text, build)


def _build(row: TorchExtension) -> Install | Pip:
    """Without a cached wheel, which may be the one that does not fit."""
    if row.address:
        options = ("--no-build-isolation", "--force-reinstall", "--no-deps", "--no-cache-dir")
        return Pip(("install", *options, row.address))
    return Install(
        (row.distribution,),
        options=("no-build-isolation", "force-reinstall", "no-deps", "no-cache"),
    )
