"""What the version of a compiled extension says that it was built for, and whether that fits."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.causes.evidence.framework_builds import titled
from whygpu.model.finding import Gap
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known, Unknown
from whygpu.model.target import Framework, Package
from whygpu.tables.torch_extensions import extension_named
from whygpu.tables.versions import release_numbers

_MINORS_FIT = 11
"""From this CUDA release on, code works with every release of its major version."""

_LABEL = late(
    r"(?:(?P<cuda>cu\d{2,3})|(?P<cpu>cpu)|(?:pt|torch)(?P<torch>\d(?:\.?\d{1,2}){1,2}))",
    re.IGNORECASE,
)


class BuiltFor(NamedTuple):
    """What the label of a version says: 0.16.0+cu118, 2.1.2+pt21cu121, 2.6.3+cu12torch2.3."""

    cuda: tuple[int, ...] = ()
    cpu: bool = False
    torch: tuple[int, ...] = ()


def label_of(package: Package) -> BuiltFor | None:
    label = package.version.partition("+")[2]
    if not label or extension_named(package.name) is None:
        return None
    cuda: tuple[int, ...] = ()
    torch: tuple[int, ...] = ()
    cpu = False
    for part in _LABEL.finditer(label):
        if part["cuda"]:
            cuda = _cuda_of(part["cuda"])
        elif part["torch"]:
            torch = _torch_of(part["torch"])
        else:
            cpu = True
    return BuiltFor(cuda, cpu, torch)


def _cuda_of(label: str) -> tuple[int, ...]:
    """cu118 is 11.8, cu92 is 9.2, and cu12 is any release of CUDA 12."""
    digits = label[2:]
    if len(digits) == 2 and int(digits) >= _MINORS_FIT and int(digits) < 20:
        return (int(digits),)
    return (int(digits[:-1]), int(digits[-1]))


def _torch_of(digits: str) -> tuple[int, ...]:
    """2.3 and 2.3.0 are 2.3; pt21 is 2.1, pt113 is 1.13, torch240 is 2.4."""
    if "." in digits:
        return release_numbers(digits)[:2]
    if digits[0] == "1":
        return (1, int(digits[1:3]))
    return (
        int(digits[0]),
        int(digits[1]) if len(digits) == 3 and digits[2] == "0" else int(digits[1:]),
    )


def difference_of(torch: Framework, built: BuiltFor) -> str | Gap:
    """How the build differs from the installed PyTorch; "" if it does not."""
    release = release_numbers(torch.version)[:2]
    if built.torch and built.torch != release:
        return f"was built for PyTorch {_dotted(built.torch)}"
    kind, cuda = torch.build.kind, torch.build.cuda
    if isinstance(kind, Unknown):
        return Gap(f"whether {titled(torch)} uses CUDA: {kind.reason}")
    if not isinstance(kind, Known) or kind.value != "cuda":
        return ""
    if built.cpu:
        return "was built without GPU code"
    if isinstance(cuda, Unknown):
        return Gap(f"the CUDA release of {titled(torch)}: {cuda.reason}")
    if not built.cuda or not isinstance(cuda, Known):
        return ""
    there = release_numbers(cuda.value)[:2]
    fits = built.cuda[0] == there[0] and (built.cuda[0] >= _MINORS_FIT or built.cuda == there)
    return "" if fits else f"was built for CUDA {_dotted(built.cuda)}"


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
