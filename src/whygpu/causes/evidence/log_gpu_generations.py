"""The GPU of a log and the CUDA of its framework: is the GPU too new or too old for it?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from whygpu.causes.evidence.log_torch_builds import cuda_of_torch
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.tables.architectures import parse_capability, parse_code
from whygpu.tables.cuda_architectures import built_for
from whygpu.tables.gpus import find
from whygpu.tables.tensorflow_builds import build_of
from whygpu.tables.versions import release_numbers

Age = Literal["too-new", "too-old", "fits", "unknown"]

_NAMED = late(
    # Not \b: in Chinese and Japanese, no blank stands between a word and a name.
    r"(?<![A-Za-z0-9_])(?:GeForce |NVIDIA |Tesla |Quadro ){0,2}(?P<name>"
    r"(?:RTX|GTX|rtx|gtx|GT|[Gg]e[Ff]orce|GEFORCE)[ -]?(?P<series>\d{1,2})\d\d[MmDd]?(?: ?Ti)?"
    r"(?![A-Za-z0-9_])"
    r"|RTX A\d{4}"
    r"|TITAN (?:RTX|V|Xp)|(?:[Tt]esla )?[KMPVAH]\d{2,3}(?=[cmst]?(?![A-Za-z0-9_]))"
    r"|Quadro [A-Z]{0,3} ?\d{3,4})"
)
_SMALL_LETTERS = re.compile(r"[rg]tx")
_SERIES = dict(
    [
        *(("4", (2, 0)), ("5", (2, 1)), ("6", (3, 0)), ("7", (3, 5)), ("8", (5, 0))),
        *(("9", (5, 2)), ("10", (6, 1)), ("16", (7, 5)), ("20", (7, 5)), ("30", (8, 6))),
        *(("40", (8, 9)), ("50", (12, 0))),
    ]
)
"""GeForce numbers without their last two digits, for models that are in no table."""
_TOOLKIT = late(
    r"\bcudatoolkit[ =]{1,4}v?(?P<conda>\d{1,2}\.\d)|\bcuda[ :-]?v?(?P<named>\d{1,2}\.\d)\b", re.I
)


NO_KERNELS_FOR = late(
    r"not built with CUDA kernel binaries compatible with compute capability (?P<capability>[\d.]*\d)"
)
"""TensorFlow's words for the GPU that it uses."""
REFUSED_AND_OLD = late(
    r"invalid value for --gpu-architecture[^\n]{0,40}(?:\n[^\n]{0,400}){1,6}?"
    r"-arch[= ](?:compute|sm)_[1-4]\d\b"
)
"""The compiler refuses an architecture that it no longer supports; otherwise not yet."""

INVALID_IMAGE = "cudaErrorInvalidKernelImage"
"""A framework's file has no code for the GPU, which may be too new or too old for it."""


class LogGpu(NamedTuple):
    line: int
    name: str
    capability: tuple[int, int]

    def __str__(self) -> str:
        major, minor = self.capability
        return f"{self.name} (compute capability {major}.{minor})"


def gpus_of(log: Log) -> Iterator[LogGpu]:
    """The GPUs that the log lists with their capability, then those it only names."""
    for device in log.devices:
        numbers = parse_capability(device.capability)
        if numbers is not None:
            yield LogGpu(device.line, device.name, numbers)
    for match in log.find(_NAMED):
        name = _SMALL_LETTERS.sub(lambda word: word[0].upper(), match.groups["name"] or "")
        models = find(name)
        capabilities = {model.capability for model in models}
        if len(capabilities) == 1:
            yield LogGpu(match.line, name, capabilities.pop())
        elif (series := _SERIES.get(match.groups["series"] or "")) is not None:
            yield LogGpu(match.line, name, series)


def cuda_of(log: Log) -> str | None:
    """The CUDA release that the framework of the log uses, if the log shows it."""
    for event in log.library_events("opened", ("cudart",)):
        if event.version:
            return event.version
    version = log.version_of("tensorflow")
    row = build_of(version) if version and log.framework in ("tensorflow", "keras") else None
    if row is not None:
        return row.cuda
    built = cuda_of_torch(log)
    if built:
        return built
    match = log.first(_TOOLKIT)
    return next((value for value in match.groups.values() if value), None) if match else None


_FIRST_FOR_BLACKWELL = (12, 8)
"""Builds for this CUDA and later have code for the newest GPUs, and none for those before 7.5."""
_PYTHON_OF_OLD_BUILDS = (3, 8)
"""No build for CUDA 12.8 exists for this Python."""
_FIRST_BUILDS = late(r"cuda runtime error \(8\)|THCudaCheck FAIL")
"""Releases before 2019. They dropped old GPUs one by one, and there were few new ones."""


def age_of_unnamed(log: Log) -> Age:
    """Whether a GPU that the build has no code for is newer or older, by the build alone."""
    if log.says(_FIRST_BUILDS):
        return "too-old"
    cuda = release_numbers(cuda_of(log) or "")
    if len(cuda) > 1:
        return "too-old" if cuda[:2] >= _FIRST_FOR_BLACKWELL else "too-new"
    python = release_numbers(log.version_of("python") or "")
    if python[:1] == (3,) and len(python) > 1 and python[:2] <= _PYTHON_OF_OLD_BUILDS:
        return "too-new"
    return "unknown"


def age_for(capability: tuple[int, int], cuda: str | None) -> Age:
    """Whether builds for this CUDA release support such a GPU.

    Code for 8.0 runs on every 8.x. The libraries of CUDA 9 were seen to fail on 7.5, although
    the numbers match.
    """
    row = built_for(cuda) if cuda else None
    if row is None:
        return "unknown"
    if capability < row.oldest:
        return "too-old"
    if capability[0] > row.newest[0] or (capability[0] == 7 and capability > row.newest):
        return "too-new"
    return "fits"


def age_of(log: Log) -> tuple[Age, LogGpu | None]:
    """The first GPU of the log and its age; by its generation if the CUDA release is unknown."""
    cuda = cuda_of(log)
    first: LogGpu | None = None
    for gpu in gpus_of(log):
        first = first or gpu
        age = age_for(gpu.capability, cuda)
        if age != "fits":
            return age, gpu
    return ("fits" if first is not None else "unknown"), first


_LIST = late(
    r"with CUDA capability sm_(?P<own>\d{2,3})\w? is not compatible with the current PyTorch"
    r"[^\n]{0,80}(?:\n[^\n]{0,100}){0,2}?supports CUDA capabilities (?P<codes>[^\n]{1,200})"
    r"|with CUDA capability sm_(?P<alone>\d{2,3})\w? is not compatible with the current PyTorch"
)


class Listed(NamedTuple):
    """PyTorch's own comparison of a GPU with its code."""

    line: int
    name: str
    own: tuple[int, int]
    codes: tuple[str, ...]

    @property
    def age(self) -> Age:
        known = [parse_code(code) for code in self.codes]
        capabilities = [code.capability for code in known if code is not None]
        if not capabilities:
            return "too-new" if self.own >= (7, 5) else "too-old"
        return "too-old" if self.own < min(capabilities) else "too-new"

    def __str__(self) -> str:
        major, minor = self.own
        codes = f"; it has {' '.join(self.codes)}" if self.codes else ""
        return f"PyTorch has no code for {self.name} (compute capability {major}.{minor}){codes}"


def judged_by_list(log: Log) -> Listed | None:
    match = log.first(_LIST)
    if match is None:
        return None
    own = match.groups["own"] or match.groups["alone"] or ""
    before = match.text.partition(" with CUDA")[0]
    name = re.split(r"UserWarning:|[.:!?,] ", before)[-1].strip(" :")
    codes = tuple((match.groups["codes"] or "").strip(" .").split())
    return Listed(match.line, name, (int(own[:-1]), int(own[-1])), codes)


_NOT_DEFINED = late(r"Value '(?:sm|compute)_(?P<number>\d{2,3})\w?' is not defined for option '")
_DROPPED = (13, 75)
"""From this CUDA release on, the compiler knows no GPU before this architecture."""


def dropped_by_compiler(log: Log) -> Match | None:
    """Where ptxas says that it does not know a GPU which its release no longer supports."""
    match = log.first(_NOT_DEFINED)
    number = int(match.groups["number"] or 0) if match else 0
    cuda = release_numbers(cuda_of(log) or "")
    new_enough = not cuda or cuda[:1] >= _DROPPED[:1]
    return match if new_enough and 0 < number < _DROPPED[1] else None
