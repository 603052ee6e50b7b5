"""What a log shows about the start of CUDA: the parts of the driver, the place, the settings.

This module only collects the facts; cuda_start_suspects judges them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from whygpu.causes.evidence.missing_gpu_statements import (
    NVIDIA_SMI,
    lines_lacking_a_gpu,
    missing_gpus,
)
from whygpu.model.finding import Severity
from whygpu.model.lazy_regex import late
from whygpu.model.log import Failure, Log, Status

_NO_KERNEL = late(
    r"kernel driver does not appear to be (?:running|installed)"
    r"|/proc/driver/nvidia/version (?:does not exist|not found)|[Dd]river [Nn]ot [Ll]oaded"
)
_NO_NODE = late(r"no NVIDIA GPU device is present: \S{1,40} does not exist")
_NO_LIBRARY = late(
    r"CUDA driver library cannot be found|Could not find cuda drivers on your machine"
    r"|Failed to dlopen libcuda|unable to find libcuda"
    r"|libcuda reported version is: (?:Not found|NOT_FOUND)"
    r"|Found no NVIDIA driver on your system|no NVIDIA driver was (?:found|detected)"
    r"|nvidia-smi ?: (?:command )?not found"
    r"|'nvidia-smi' is not recognized"
    r"|[Cc]ommand 'nvidia-smi' not found|No such file or directory:? '?nvidia-smi'?"
    # Not one of the possible reasons that bitsandbytes numbers.
    r"|(?<!\d\. )(?:CUDA|NVIDIA|Nvidia|nvidia) driver (?:is |was |could )?(?:not (?:be )?(?:found|installed|detected)"
    r"|missing)|dynamically load the \"cuda\" shared library"
    r"|[Nn]o NVIDIA (?:driver|GPU)s? (?:was |were |is )?(?:found|detected)"
    r"|[Uu]nable to load the \"?nvcuda\.dll|Failed to (?:load|find) (?:the )?nvcuda\.dll"
    r"|cuInit failed: The CUDA driver library"
)
NVML_MISSING = late(
    r"NVIDIA-SMI couldn't find libnvidia-ml|NVML Shared Library Not Found|NVMLError_LibraryNotFound"
    r"|could not load NVML library|ERROR_LIBRARY_NOT_FOUND"
    # Ollama, which looks for the driver's library itself
    r"|[Ss]earching for GPU (?:management )?library\W{1,4}(?:name=)?\S{0,4}"
    r"(?:libnvidia-ml|libcuda\.so|nvml\.dll|nvcuda\.dll)[^\n]{0,200}(?:\n[^\n]{0,400}?){0,2}?"
    r"[Dd]iscovered GPU libraries\W{1,4}(?:paths=)?\[\]"
)
_SMI_FAILED = late(r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA")
_NO_CARD = late(r"^\W{0,3}No devices were found", re.MULTILINE)
DSO_DIFFERS = late(r"kernel version [\d.]{3,20} does not match DSO version")
_MATCHING = late(r"kernel version seems to match DSO: (?P<version>[\d.]{3,20})")
_SET_HIDING = late(
    r"CUDA_VISIBLE_DEVICES is set to (?:-1|an empty string)|this hides all GPUs"
    r"|CUDA_VISIBLE_DEVICES\W{1,8}NoDevFiles"
)
_SETTING = late(
    r"(?:CUDA|HIP|NVIDIA)_VISIBLE_DEVICES(?:['\"]?\]?\)? ?[=:,] ?"
    # Not the name of the next variable, in a list of name:value.
    r"(?P<value>\"[^\"\n]{0,60}\"|'[^'\n]{0,60}'|[\w,-]{1,60}(?![\w:-]))|=(?P<empty>)(?=\s|$))",
    re.MULTILINE,
)
_GPU_WANTED = late(
    r"[Nn]o (?:CUDA |Nvidia |NVIDIA )?GPUs? (?:devices? )?(?:(?:is|are|was|were) )?(?:found|available|detected)"
    r"|visible device count is (?:-1|0)\b|CUDA (?:is|was) not available|CUDA unavailable"
    r"|[Nn]ot enough GPUs?\b|GPU (?:device )?(?:is |was )?(?:required|not (?:found|available|detected))"
    r"|no CUDA devices (?:are |were )?(?:found|available|detected)|Failed to infer device type"
    r"|No supported gpu backend found|(?:GPU|CUDA)Accelerator`? can ?not run on your system"
    r"|requires? (?:a |an )?(?:CUDA|NVIDIA|GPU)|without (?:a )?(?:GPU|CUDA)"
    r"|only be used (?:on|with) (?:a )?(?:CUDA|GPU)"
    r"|[Cc]an(?:not|'t) (?:find|access|use) (?:a |any |the )?(?:CUDA|GPU)"
    r"|torch\.cuda\.is_available\(\) is False|no CUDA-capable device|Found no NVIDIA driver"
    r"|Unable to initialize backend '(?:cuda|gpu)'|Unknown backend:? '?(?:gpu|cuda)"
    r"|CUDA driver (?:library cannot|version is insufficient)|CudaSupportError|NVML(?!_SUCCESS)"
    r"|[Dd]evices? (?:GPU|cuda)\S{0,12} (?:is |are )?not (?:found|available)|machine only has: \[\]"
)
_CRASH_AT_START = late(r"(?:CUDA|Gpu)Driver::Init\(|cuda::Diagnostician::|in cuInit\b")
_CONTAINER = late(
    r"\bdocker\b|nvidia-docker|nvidia-container|\bpodman\b|[Kk]ubernetes|\bkubectl\b|\bk8s\b|\.dockerenv"
    r"|\bapptainer\b|\bsingularity\b|docker-compose|/var/lib/docker|\bnerdctl\b|/usr/local/nvidia/lib"
    r"|root@[0-9a-f]{12}:|hostname: [0-9a-f]{12}\b|on this host \([0-9a-f]{12}\)"
    r"|(?:in|inside|into|within|of) (?:the|a|my|this|our) container|---> Running in [0-9a-f]{12}\b"
    r"|^#\d{1,3} \[[^\]\n]{1,40}\d{1,3}/\d{1,3}\] RUN \b"
    # NVIDIA's images name themselves at their start, and are built in this folder.
    r"|\bnvcr\.io/|^== [A-Z][\w -]{2,40} ==$|^NVIDIA Release \d\d\.\d\d|/opt/pytorch/pytorch/",
    re.MULTILINE,
)
_NOT_ITS_PLACE = late(
    r"\b(?:both|either|without|outside(?: of)?|instead of|not (?:use|using|in|inside|with|a)|no)"
    r"(?: \w{1,10}){0,2} (?:docker|containers?|podman|singularity|apptainer)\b"
    r"|\b(?:docker|podman|container) (?:and|or|as well as) (?:\w{1,10} )?(?:conda|local\w{0,2}|host|pip"
    r"|venv|native\w{0,2}|bare|outside|without)\b",
    re.IGNORECASE,
)
"""A sentence that says that the program also runs elsewhere, or does not run in a container."""
_NOT_PASSED_IN = late(
    r"[Cc]ould not find any nv (?:files|libraries|binaries) on this host"
    r"|The NVIDIA Driver was not detected\.\s{1,3}GPU functionality will not be available"
)
"""A container engine, or the image itself, says that no GPU came in."""
_WSL = late(
    # Not a list of the folders where a program searches.
    r"/usr/lib/wsl\b(?!\S{0,40}\*)|(?<!non-)(?<!\()\bWSL ?[12]?\b|microsoft-standard|\d-Microsoft\b|[ :'\"(]/mnt/[cd]/"
    r"|libdxcore|/dev/dxg|\bdxgk|(?<!running under )Windows Subsystem for Linux"
)

NO_DEVICE = ("CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice")
UNKNOWN = ("CUDA_ERROR_UNKNOWN", "cudaErrorUnknown")
INSUFFICIENT = ("CUDA_ERROR_INSUFFICIENT_DRIVER", "cudaErrorInsufficientDriver")
LIBRARY_MISSING = ("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",)
STUB = ("CUDA_ERROR_STUB_LIBRARY", "cudaErrorStubLibrary")
MISMATCHED = ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "cudaErrorSystemDriverMismatch")
COMPAT = ("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "cudaErrorCompatNotSupportedOnDevice")
NOT_READY = ("CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady")
NVML_MISMATCH = ("NVML_ERROR_LIB_RM_VERSION_MISMATCH",)
INVALID_DEVICE = ("CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice")
NOT_FOUND = ("CUDA_ERROR_NOT_FOUND",)
SYMBOL_NOT_FOUND = ("cudaErrorSymbolNotFound",)
MAKES_CONTEXT = ("cuDevicePrimaryCtxRetain", "cuCtxCreate")
"""Calls that open a GPU that the driver has listed before."""
STARTING_CALLS = ("cuInit", "cudaGetDeviceCount")
"""The first calls of every program that uses CUDA."""
SYSTEM_REFUSED = ("CUDA_ERROR_OPERATING_SYSTEM", "cudaErrorOperatingSystem")

Place = Literal["wsl", "container", "unknown"]


class Story(NamedTuple):
    """What a log shows about the start of CUDA. Numbers are lines."""

    no_library: tuple[int, ...]
    """libcuda is missing."""
    no_kernel: tuple[int, ...]
    """The kernel module of the driver is missing."""
    no_node: tuple[int, ...]
    smi_failed: tuple[int, ...]
    smi_lists_none: tuple[int, ...]
    """A program that runs nvidia-smi got no GPU from it."""
    no_card: tuple[int, ...]
    """The driver runs but has no GPU."""
    matching: tuple[int, ...]
    """Both parts of the driver are there, in the same version."""
    hiding: tuple[int, ...]
    """A setting that hides all GPUs."""
    setting: tuple[int, str] | None
    """CUDA_VISIBLE_DEVICES as the log shows it, whatever its effect."""
    gpus: tuple[int, ...]
    """There is a GPU: the driver's tools or a program listed it."""
    wanted: tuple[int, ...]
    """Failures because no GPU is available."""
    unrelated: tuple[int, ...]
    """Failures that are unrelated to the GPU."""
    place: Place
    place_lines: tuple[int, ...]
    not_passed_in: tuple[int, ...] = ()
    """A container says that it got no GPU."""
    in_container: bool = False
    """Also if the container runs under WSL."""


@lru_cache(maxsize=1)
def story_of(log: Log) -> Story:
    container = in_order(
        match.line for match in log.find(_CONTAINER) if not _NOT_ITS_PLACE.search(match.text)
    )
    wsl = lines_with(log, _WSL)
    settings = [(match.line, _value(match.groups["value"])) for match in log.find(_SETTING)]
    hiding = {*lines_with(log, _SET_HIDING), *(line for line, value in settings if _hides(value))}
    of_library = (event.line for event in log.library_events("not-found", ("cuda", "nvcuda")))
    crashed = log.says(_CRASH_AT_START)
    taken = lines_lacking_a_gpu(log)
    return Story(
        no_library=in_order((*of_library, *lines_with(log, _NO_LIBRARY))),
        no_kernel=lines_with(log, _NO_KERNEL),
        no_node=lines_with(log, _NO_NODE),
        smi_failed=lines_with(log, _SMI_FAILED),
        smi_lists_none=tuple(m.line for m in missing_gpus(log) if m.framework == NVIDIA_SMI),
        no_card=lines_with(log, _NO_CARD),
        matching=lines_with(log, _MATCHING),
        hiding=in_order(hiding),
        setting=next(iter(settings), None),
        gpus=tuple(device.line for device in log.devices if device.event != "ignored"),
        wanted=in_order(
            failure.line
            for failure in log.failures
            if failure.line in taken or _lacks_gpu(failure, crashed)
        ),
        unrelated=tuple(
            failure.line
            for failure in log.failures
            if failure.kind in ("exception", "fatal")
            and not failure.about_gpu
            and failure.line not in taken
        ),
        place="wsl" if wsl else "container" if container else "unknown",
        place_lines=(wsl or container)[:2],
        not_passed_in=lines_with(log, _NOT_PASSED_IN),
        in_container=bool(container),
    )


def _lacks_gpu(failure: Failure, crashed: bool) -> bool:
    return bool(_GPU_WANTED.search(failure.text)) or (crashed and failure.kind == "signal")


def lines_with(log: Log, pattern: re.Pattern[str]) -> tuple[int, ...]:
    return in_order(match.line for match in log.find(pattern))


def in_order(lines: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(lines)))


def _value(text: str | None) -> str:
    return (text or "").strip("'\" ")


def _hides(value: str) -> bool:
    return value in ("", "-1", "NoDevFiles", "none", "void")


def named(log: Log, *groups: tuple[str, ...]) -> tuple[Status, ...]:
    """The statuses with one of these names."""
    return log.status_named(*(name for group in groups for name in group))


_LIBRARY_SAYS = late(r"libcuda reported version is: (?P<version>[\d.]{2,19}\d)")
_KERNEL_SAYS = late(r"kernel reported version is: (?P<version>[\d.]{2,19}\d)")


def halves_apart(log: Log) -> tuple[int, ...]:
    """Where TensorFlow's system check shows two versions of one driver.

    Under WSL, libcuda has a number of its own, and the kernel part is the driver of Windows.
    """
    library, kernel = log.first(_LIBRARY_SAYS), log.first(_KERNEL_SAYS)
    if library is None or kernel is None or story_of(log).place == "wsl":
        return ()
    # Some write a missing third number as zero.
    same = {(match.groups["version"] or "").removesuffix(".0") for match in (library, kernel)}
    return () if len(same) == 1 else (library.line, kernel.line)


def lines_of(statuses: Iterable[Status]) -> tuple[int, ...]:
    return tuple(status.line for status in statuses)


def weight(log: Log, lines: Iterable[int], otherwise: Severity) -> Severity:
    """How serious it is that the GPU is not used.

    It is an error if the program ended because of it. If the program continued and failed for
    another reason, the GPU is not important.
    """
    numbers = tuple(lines)
    if failed_at(log, numbers):
        return "error"
    went_on = any(line > min(numbers, default=0) for line in story_of(log).unrelated)
    return "info" if went_on else otherwise


_AT_ONCE = 3


def ends_after(log: Log, lines: Iterable[int]) -> tuple[int, ...]:
    """The abort or crash that directly follows one of these lines."""
    starts = tuple(lines)
    return tuple(
        failure.line
        for failure in log.failures
        if failure.kind == "signal" and any(0 < failure.line - line <= _AT_ONCE for line in starts)
    )


def failed_at(log: Log, lines: Iterable[int]) -> bool:
    """Whether the program ended at one of these lines."""
    ends = log.failed_lines()
    return bool(ends.intersection(lines))


_LOST = late(
    r"fallen off the bus|GPU is lost|GPU_IS_LOST|Unable to determine the device handle"
    r"|NVRM: Xid|ECC_?[Uu]ncorrectable|uncorrectable ECC"
)


def lost_gpu_lines(log: Log) -> tuple[int, ...]:
    """Lines in which the driver reports a hardware fault."""
    return lines_with(log, _LOST)


def compat_of_newer_cuda(log: Log) -> bool:
    """Whether CUDA's forward compatibility was refused because of an older driver.

    A container brings the libraries for it. If nvidia-smi works, the two parts of the driver match,
    so that an update without a restart is not the reason. The tool that prepares a container
    reports about the host itself, before the image is used.
    """
    lines = lines_of(named(log, COMPAT))
    on_the_host = any("nvidia-container-cli" in log.line(line).text for line in lines)
    works = log.version_of("cuda-of-driver") is not None
    return bool(lines) and not on_the_host and (works or story_of(log).in_container)
