"""Why CUDA did not start, judged in one place for all causes whose logs look alike.

No driver, a hidden GPU, a container without a GPU, WSL, a broken kernel module and an outdated
driver share most of their messages. Only other lines distinguish them. Each of these causes asks
this module whether it is a suspect, and how strong, so that they never contradict each other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from whygpu.causes.evidence.log_cpu_builds import NOT_AVAILABLE
from whygpu.causes.evidence.log_cuda_start import (
    DSO_DIFFERS,
    INSUFFICIENT,
    INVALID_DEVICE,
    LIBRARY_MISSING,
    MISMATCHED,
    NO_DEVICE,
    NOT_FOUND,
    NOT_READY,
    NVML_MISMATCH,
    NVML_MISSING,
    STARTING_CALLS,
    STUB,
    SYMBOL_NOT_FOUND,
    SYSTEM_REFUSED,
    UNKNOWN,
    Story,
    compat_of_newer_cuda,
    halves_apart,
    in_order,
    lines_of,
    lines_with,
    named,
    story_of,
    weight,
)
from whygpu.causes.evidence.log_driver_works import driver_works
from whygpu.causes.evidence.log_libraries import NO_CUDART
from whygpu.model.finding import Confidence, Severity
from whygpu.model.lazy_regex import late
from whygpu.model.log import LOGS_OF_TENSORFLOW, Log


class Suspect(NamedTuple):
    """A cause that would explain why CUDA did not start."""

    slug: str
    confidence: Confidence
    lines: tuple[int, ...]
    ask: str | None = None
    severity: Severity = "error"


_ASK_SMI = "Does `nvidia-smi` list the GPU on that machine?"
_ASK_HIDDEN = (
    "What do `nvidia-smi -L` and `echo $CUDA_VISIBLE_DEVICES` print there? If the GPU is listed "
    "but the variable does not name it, it is hidden. If it is not listed, check the driver."
)
_ASK_NUMBER = (
    "Does `nvidia-smi -L` list a GPU with that number? Numbers start at 0: with one GPU, only 0 "
    "exists."
)
_ASK_CONTAINER = (
    "Did it run in a container? If `nvidia-smi` works on the host but not inside, start the "
    "container with GPUs."
)
_ASK_WSL = "Did it run under WSL 2? If not, which driver and which libcuda.so.1 are installed?"
_ASK_DRIVER = (
    "Which driver does `nvidia-smi` show? If it shows one, it is too old. If the command is "
    "missing or fails, there is no driver."
)
_NO_DEVICE_TEXTS = late(
    r"No CUDA GPUs are available|No visible GPU devices|no nvidia devices detected by library"
)
_LISTS_NONE = late(r"no nvidia devices detected by library")
"""Ollama has loaded the driver's library; a module, a device node or a setting is wrong."""
_LOADED_THE_DRIVER = ("tensorflow", "torch", "jax", "cupy")
"""Frameworks that report a missing library differently: NO_DEVICE means that it was found."""
_DRIVER_DLL = ("cuda", "nvcuda")
_JETSON_MEMORY = late(r"NvRmMemInit(?:Nvmap)? failed")
"""The part of a Jetson's driver that manages memory did not start."""


def suspected(log: Log, slug: str) -> Suspect | None:
    """How strongly this cause is suspected of preventing the start of CUDA, if at all."""
    return next((suspect for suspect in suspects(log) if suspect.slug == slug), None)


@lru_cache(maxsize=1)
def suspects(log: Log) -> tuple[Suspect, ...]:
    """The causes that the evidence supports, strongest first."""
    story = story_of(log)
    if mismatch_lines(log) or any(device.event == "ready" for device in log.devices):
        return ()
    if log.reports_gpu() and not log.failures and not log.statuses:
        # A framework that works without the GPU is beside another one that has it.
        return ()
    for judge in (
        _not_ready,
        _stub,
        _library_missing,
        _no_device,
        _unknown,
        _outdated,
        _tools_only,
        _hidden_by_number,
        _unavailable,
        _none_seen,
    ):
        found = judge(log, story)
        if found:
            return _weighed(log, story, found)
    return ()


def mismatch_lines(log: Log) -> tuple[int, ...]:
    """Lines that state or show that the two parts of the driver have different versions."""
    stated = (*lines_of(named(log, MISMATCHED, NVML_MISMATCH)), *lines_with(log, DSO_DIFFERS))
    # A container with libraries of a newer driver has two versions on purpose.
    return in_order(stated or (() if compat_of_newer_cuda(log) else halves_apart(log)))


def _weighed(log: Log, story: Story, found: tuple[Suspect, ...]) -> tuple[Suspect, ...]:
    """Add the failures caused by the missing GPU, and set the severity accordingly.

    A crash counts only if its stack shows it: frameworks continue without a GPU, and a later crash
    can have any reason, such as lack of memory.
    """
    return tuple(
        suspect._replace(
            lines=in_order((*suspect.lines, *story.wanted)),
            severity=weight(log, (*suspect.lines, *story.wanted), suspect.severity),
        )
        for suspect in found
    )


def _not_ready(log: Log, story: Story) -> tuple[Suspect, ...]:
    lines = lines_of(named(log, NOT_READY))
    return (Suspect("nvidia-kernel-module-state", "likely", lines),) if lines else ()


def _stub(log: Log, story: Story) -> tuple[Suspect, ...]:
    """An image built against the toolkit's stub finds the stub if no driver was passed in."""
    lines = lines_of(named(log, STUB))
    evidence = (*lines, *story.no_node, *story.no_kernel, *story.place_lines)
    if not lines or not (story.place == "container" or story.no_node or story.no_kernel):
        return ()
    return (Suspect("docker-no-gpu-runtime", "likely", evidence, _ASK_CONTAINER, "warning"),)


def _library_missing(log: Log, story: Story) -> tuple[Suspect, ...]:
    lines = in_order((*story.no_library, *lines_of(named(log, LIBRARY_MISSING))))
    if not lines:
        return ()
    if story.gpus and not log.library_events("not-found", _DRIVER_DLL) and not story.no_kernel:
        # The driver is installed; this framework lacks the CUDA runtime.
        return ()
    only_cudart = all(NO_CUDART.search(log.line(at).text) for at in lines)
    if only_cudart and (driver_works(log) or log.framework not in (*LOGS_OF_TENSORFLOW, "")):
        # This message of TensorFlow is about libcudart, and says nothing of other frameworks.
        return ()
    evidence = (*lines, *story.no_kernel, *story.no_node)
    driver = Suspect("no-nvidia-driver", "likely", evidence, _ASK_SMI, "info")
    module = [seen.line for seen in log.versions if seen.of == "kernel-module"]
    if story.place == "wsl":
        return (Suspect("wsl-no-gpu", "likely", (*evidence, *story.place_lines), None, "warning"),)
    if story.place == "container":
        lines = (*evidence, *story.place_lines)
        return (Suspect("docker-no-gpu-runtime", "likely", lines, None, "info"),)
    container = Suspect("docker-no-gpu-runtime", "possible", evidence, _ASK_CONTAINER, "info")
    if module or story.gpus:
        # The program sees a part of the driver: the rest was not passed in.
        lines = (*evidence, *module, *story.gpus[:1])
        strong = container._replace(confidence="likely", lines=lines, severity="warning")
        return strong, _weaker(driver)
    return (driver, container) if log.platform != "windows" else (driver,)


def _no_device(log: Log, story: Story) -> tuple[Suspect, ...]:
    # JAX prints this after any failure of cuInit; only alone does it mean that no GPU is visible.
    other = [s for s in log.statuses if s.call == "cuInit" and s.name not in NO_DEVICE]
    stated = () if other else lines_with(log, _NO_DEVICE_TEXTS)
    lines = in_order((*lines_of(named(log, NO_DEVICE)), *stated))
    if not lines:
        return ()
    hidden = Suspect("visible-devices-hides-gpu", "likely", lines, _ASK_HIDDEN, "warning")
    driver = Suspect("no-nvidia-driver", "likely", lines, _ASK_HIDDEN, "info")
    module = Suspect("nvidia-kernel-module-state", "likely", lines, None, "warning")
    if story.no_kernel or story.no_node:
        return _without_kernel(story, lines)
    if story.not_passed_in:
        evidence = (*lines, *story.not_passed_in)
        return (Suspect("docker-no-gpu-runtime", "likely", evidence),)
    of_jetson = lines_with(log, _JETSON_MEMORY)
    if of_jetson:
        return (module._replace(lines=(*lines, *of_jetson)),)
    closed = lines_of(log.status_named("NVML_ERROR_UNKNOWN"))
    if closed and not (story.hiding or story.gpus):
        # The driver's own tool fails as well: the process may not open the device nodes.
        evidence = (*lines, *closed, *story.place_lines)
        return (Suspect("docker-no-gpu-runtime", "likely", evidence, _ASK_CONTAINER),)
    if story.hiding:
        evidence = (*lines, *story.hiding)
        return (Suspect("visible-devices-hides-gpu", "certain", evidence, None, "info"),)
    if story.smi_failed or story.no_card:
        return (module._replace(lines=(*lines, *story.smi_failed, *story.no_card)),)
    if story.matching or story.gpus:
        evidence = (*lines, *story.matching, *story.gpus[:2], *_setting_lines(story))
        return (
            hidden._replace(lines=evidence),
            module._replace(confidence="possible", lines=evidence, ask=_ASK_HIDDEN),
        )
    if story.setting and story.setting[1] not in ("0", ""):
        return (hidden._replace(lines=(*lines, *_setting_lines(story))), _weaker(driver))
    if story.place == "wsl":
        return (Suspect("wsl-no-gpu", "likely", (*lines, *story.place_lines)),)
    if story.place == "container":
        evidence = (*lines, *story.place_lines)
        return (
            Suspect("docker-no-gpu-runtime", "likely", evidence, _ASK_HIDDEN, "warning"),
            _weaker(hidden),
        )
    if log.says(_LISTS_NONE):
        return (_weaker(module)._replace(ask=_ASK_HIDDEN), _weaker(hidden))
    if stated or log.framework in _LOADED_THE_DRIVER:
        return (hidden, _weaker(driver))
    return (driver, _weaker(hidden))


def _weaker(suspect: Suspect) -> Suspect:
    return suspect._replace(confidence="possible")


def _setting_lines(story: Story) -> tuple[int, ...]:
    return (story.setting[0],) if story.setting else ()


def _without_kernel(story: Story, lines: tuple[int, ...]) -> tuple[Suspect, ...]:
    evidence = (*lines, *story.no_kernel, *story.no_node)
    driver = Suspect("no-nvidia-driver", "likely", evidence, _ASK_SMI, "info")
    if story.place == "wsl":
        return (Suspect("wsl-no-gpu", "likely", (*evidence, *story.place_lines)),)
    if story.place == "container":
        lines = (*evidence, *story.place_lines)
        return (
            Suspect("docker-no-gpu-runtime", "likely", lines, None, "info"),
            _weaker(driver),
        )
    if story.smi_failed:
        lines = (*evidence, *story.smi_failed)
        return (Suspect("nvidia-kernel-module-state", "likely", lines), _weaker(driver))
    return (driver,)


_STARTING = (
    "cuInit",
    "cudaGetDeviceCount",
    "cudaGetDevice",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuCtxCreate",
    "cudaSetDevice",
)
_TORCH_GAVE_UP = late(r"CUDA driver initialization failed, you might not have a CUDA gpu")
_TORCH_STARTING = late(
    r"CUDA unknown error - this may be due|CUDA initialization: |_cuda_init\(\)|_lazy_init"
)


def _unknown(log: Log, story: Story) -> tuple[Suspect, ...]:
    """The driver gave no reason. Later in a run the reason would be a failed kernel."""
    # TensorFlow names the call; other frameworks print this error almost only at their start.
    starting = log.says(_TORCH_STARTING) or (log.framework != "tensorflow" and not log.progress)
    lines = lines_of(
        status
        for status in named(log, UNKNOWN, SYSTEM_REFUSED)
        if status.call in _STARTING or starting or (status.api == "runtime" and not log.progress)
    )
    lines += lines_of(s for s in named(log, INVALID_DEVICE) if s.call in STARTING_CALLS)
    lines += lines_with(log, _TORCH_GAVE_UP)
    unnamed = lines_of(s for s in named(log, SYMBOL_NOT_FOUND) if s.call == "cudaGetDeviceCount")
    if unnamed and story.place == "unknown":
        # The driver of Windows and the libraries of Linux do not match.
        return (Suspect("wsl-no-gpu", "likely", unnamed, _ASK_WSL),)
    if story.place == "wsl":
        lines += lines_of(named(log, NOT_FOUND, SYMBOL_NOT_FOUND))
    if not lines:
        return ()
    evidence = (*lines, *story.matching, *story.smi_failed)
    module = Suspect("nvidia-kernel-module-state", "likely", evidence)
    if story.no_kernel and not story.matching:
        return _without_kernel(story, lines)
    if story.place == "wsl":
        return (Suspect("wsl-no-gpu", "likely", (*evidence, *story.place_lines)),)
    return (module,)


def _outdated(log: Log, story: Story) -> tuple[Suspect, ...]:
    lines = lines_of(named(log, INSUFFICIENT))
    if not lines:
        return ()
    old = Suspect("driver-too-old-for-cuda", "likely", lines, _ASK_DRIVER)
    known = log.version_of("driver") or log.version_of("cuda-of-driver") or story.gpus
    if known:
        seen = [item.line for item in log.versions if item.of in ("driver", "cuda-of-driver")]
        return (old._replace(ask=None, lines=(*lines, *seen[:2], *story.gpus[:1])),)
    driver = Suspect("no-nvidia-driver", "possible", lines, _ASK_DRIVER)
    if story.no_kernel or story.no_node or story.smi_failed:
        evidence = (*lines, *story.no_kernel, *story.no_node, *story.smi_failed)
        return (driver._replace(confidence="likely", lines=evidence),)
    if any(status.call == "cudaGetDevice" for status in named(log, INSUFFICIENT)):
        # TensorFlow gets this far only after the driver has listed a GPU.
        return (old._replace(ask=None),)
    return (old, driver)


def _hidden_by_number(log: Log, story: Story) -> tuple[Suspect, ...]:
    """The first GPU of the setting may not exist: then CUDA sees none, and nothing says so."""
    if story.setting is None or log.statuses:
        return ()
    first = story.setting[1].partition(",")[0].strip()
    if not first.isdecimal() or first == "0":
        return ()
    without = (*(report.line for report in log.without_gpu()), *lines_with(log, NOT_AVAILABLE))
    if not without:
        return ()
    lines = in_order((story.setting[0], *without[:2]))
    return (Suspect("visible-devices-hides-gpu", "likely", lines, _ASK_NUMBER, "warning"),)


_UNAVAILABLE = late(r"CUDA device but torch\.cuda\.is_available\(\) is False")


def _unavailable(log: Log, story: Story) -> tuple[Suspect, ...]:
    """PyTorch sees no GPU and gives no reason: a build without CUDA, or no visible GPU."""
    lines = lines_with(log, _UNAVAILABLE)
    ask = (
        "What do `python -c 'import torch; print(torch.version.cuda)'` and `echo "
        "$CUDA_VISIBLE_DEVICES` print? None: a build without CUDA. Otherwise the GPU is hidden."
    )
    if not lines:
        return ()
    return (Suspect("visible-devices-hides-gpu", "possible", lines, ask),)


def _none_seen(log: Log, story: Story) -> tuple[Suspect, ...]:
    """The program ended because it sees no GPU, and nothing says why: the place may."""
    if not story.wanted or log.statuses or log.devices:
        return ()
    lines = (*story.wanted, *story.place_lines)
    if story.place == "wsl":
        return (Suspect("wsl-no-gpu", "possible", lines, _ASK_SMI),)
    if story.place == "container":
        return (Suspect("docker-no-gpu-runtime", "possible", lines, _ASK_CONTAINER),)
    return ()


_NVML_FAILED = late(r"nvml(?: vram)? init failure: 999\b")
"""Ollama found the library of the driver, and the driver did not answer."""


def _tools_only(log: Log, story: Story) -> tuple[Suspect, ...]:
    """The log contains only messages of the driver's tools, or of TensorFlow's system check."""
    loaded = lines_of(log.status_named("NVML_ERROR_DRIVER_NOT_LOADED"))
    failed = in_order((*story.smi_failed, *story.no_card, *loaded, *lines_with(log, _NVML_FAILED)))
    if failed:
        evidence = (*failed, *story.no_kernel)
        module = Suspect("nvidia-kernel-module-state", "likely", evidence, _ASK_SMI)
        if story.place == "wsl":
            return (Suspect("wsl-no-gpu", "likely", (*failed, *story.place_lines)),)
        if story.place == "container" and min(story.place_lines) < max(failed):
            # The same tool may have worked before, on the host.
            lines = (*failed, *story.place_lines)
            ask = "Does `nvidia-smi` list the GPU on the host?"
            return (
                Suspect("docker-no-gpu-runtime", "likely", lines, ask),
                _weaker(module)._replace(ask=ask),
            )
        return (module, Suspect("no-nvidia-driver", "possible", evidence, _ASK_SMI))
    if story.smi_lists_none:
        lines = (*story.smi_lists_none, *story.place_lines)
        container = Suspect("docker-no-gpu-runtime", "possible", lines, _ASK_CONTAINER)
        if story.place == "container":
            return (container._replace(confidence="likely"),)
        return (Suspect("no-nvidia-driver", "likely", lines, _ASK_SMI), container)
    nvml = lines_with(log, NVML_MISSING)
    if nvml or story.no_kernel or story.no_node:
        return _without_kernel(story, nvml)
    return ()
