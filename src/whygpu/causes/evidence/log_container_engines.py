"""What container engines say in a log when a container gets no GPU, and the advice for it."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.container_advice import (
    BY_CDI,
    INSTALL_TOOLKIT,
    NEWER_TOOLKIT,
    ON_A_MAC,
    START_UNDER_WSL,
    TOOLKIT_IF_THAT_WORKS,
    WINDOWS_DRIVER,
    runtime_in_log,
    ways_to_pass_in,
)
from whygpu.causes.evidence.log_cuda_start import story_of
from whygpu.causes.evidence.log_subjects import excerpt
from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import command_line

_ENGINE_SAYS = late(
    r"nvidia-(?:docker|container-cli): (?:command )?not found|volume plugin \"?nvidia-docker"
    r"|Unsupported config option for services[^\n]{0,60}'runtime'|'devices' was unexpected"
    r"|stat nvidia\.com/gpu=\w{1,8}: no such file|failed to stat CDI host device"
    r"|could not select device driver \"?\w{0,20}\"? ?with capabilities: \[\[[^\]\n]{0,80}(?:gpu"
    r"|nvidia)"
    r"|[Uu]nknown (?:or invalid )?runtime (?:name|specified):? \"?nvidia|unknown flag: --gpus"
    r"|unresolvable CDI devices[^\n]{0,40}nvidia"
    r"|nvidia-container-runtime(?:-hook)?\\?\"?: (?:executable|no such)"
    r"|fork/exec /usr/bin/nvidia-container|exec: \\?\"nvidia-(?:container|smi)"
    r"|runtime \"?nvidia\"? (?:is )?not (?:found|installed)"
    r"|nvidia-container-cli: (?:initialization|detection|mount|ldcache|device|container"
    r"|permission) error"
    r"|The NVIDIA Driver was not detected\.\s{1,3}GPU functionality will not be available"
    r"|Use (?:the NVIDIA Container Toolkit|'?nvidia-docker"
    r"|Docker with NVIDIA Container)[^\n]{0,40} (?:to start|run|')"
    r"|[Cc]ould not find any nv (?:files|libraries|binaries) on this host"
    r"|(?i:initialize NVML:? (?:Unknown Error|ERROR_UNKNOWN))"
    r"|nvml error: unknown error|NVMLError_Unknown: Unknown Error"
)
_NOT_ABOUT_CONTAINERS = late(
    r"version mismatch|requirement error|unsatisfied condition|rpc error: timed out"
    r"|forward compatibility was attempted"
)
_NO_ADAPTER = late(r"WSL environment detected but no adapters were found")
_TOOLKIT_RUNS = late(r"nvidia-container-cli: [a-z]{3,20} error|Auto-detected mode as")
"""Messages of the container toolkit itself: it is installed and registered."""
_OF_CDI = late(r"\bCDI (?:host )?devices?\b|stat nvidia\.com/gpu=")
"""Podman, and Docker with CDI, read a description of the devices that a file on the host has."""
_LOST_ACCESS = late(
    r"(?i:NVML:? (?:Unknown Error|ERROR_UNKNOWN)|nvml error: unknown error)|NVMLError_Unknown"
)
_HOST_DRIVER = late(r"driver not loaded|load library failed: libnvidia-ml|no nv (?:files|lib)")
_ENGINE = late(
    r"\bOCI\b|\brunc\b|\bcrun\b|containerd|[Ee]rror response from daemon|\bCDI\b|\bpodman\b|\bkubelet\b"
)
_PART_OF_NVIDIA = late(
    r"nvidia-(?:container|ctk|smi|docker|cuda-mps|persistenced)|nvidia\.com/gpu|--gpus\b|\[gpu\]"
    r"|libnvidia-|/dev/nvidia|nvidia runtime|runtime\W{1,3}nvidia|GPU vendor"
)


def engine_statements(log: Log) -> list[Match]:
    """Messages of a container engine which say that it passed in no GPU."""
    found = list(log.find(_ENGINE_SAYS)) or list(_of_engines(log))
    return [match for match in found if not _NOT_ABOUT_CONTAINERS.search(match.text)]


def access_was_lost(text: str) -> bool:
    return bool(_LOST_ACCESS.search(text))


def host_has_no_driver(text: str) -> bool:
    return bool(_HOST_DRIVER.search(text))


def _of_engines(log: Log) -> Iterator[Match]:
    """Failures of a container engine that name NVIDIA's part of it, in any words."""
    for failure in log.failures:
        if _ENGINE.search(failure.text) and _PART_OF_NVIDIA.search(failure.text):
            yield Match(failure.line, failure.text, {})


def failed_on_the_host(log: Log) -> bool:
    """Whether nvidia-smi failed before the container was started: then the driver is the cause."""
    story = story_of(log)
    return any(line < min(story.place_lines, default=0) for line in story.smi_failed)


def message_about(log: Log, text: str) -> str:
    if not text:
        return (
            "the container of this log did not get the GPU, or not the driver's libraries: the "
            "host passes in libcuda.so.1 and the device nodes when the container starts"
        )
    if access_was_lost(text):
        return (
            "the container may no longer open the GPU's device nodes, as after a reload of "
            "systemd on the host (NVML: Unknown Error)"
        )
    if _NO_ADAPTER.search(text):
        return (
            "WSL offers no GPU to containers: the driver of Windows does not support WSL, or WSL "
            "has to be restarted"
        )
    if host_has_no_driver(text):
        error = text[text.rfind("nvidia-container-cli:") :] if "container-cli:" in text else text
        return (
            "the container engine finds no working driver of the host to pass in "
            f"({excerpt(error)})"
        )
    return f"the container cannot be started with a GPU: {text.strip()[:140]}"


_REPAIR_DRIVER = Remedy(
    "If that fails, install or repair the driver on the host; the container uses that driver."
)
_OTHER_DAEMON = Remedy(
    "If that works, check which Docker runs the container: Docker Desktop for Linux and the Docker "
    "of a snap do not see the host's driver; the Docker Engine of the distribution does.",
    command_line("docker context ls"),
)
_RENEW_ACCESS = Remedy(
    "Start the container again. To prevent this, make Docker use cgroupfs "
    '("exec-opts": ["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json), or name the '
    "device nodes at the start with --device /dev/nvidia0 and so on."
)


_ON_A_MAC = Remedy(
    "A Mac has no NVIDIA GPU, and its containers get no GPU at all. Remove the request for one "
    "(--gpus, or deploy.resources.reservations.devices in the compose file), so that the program "
    "works on the CPU; outside of a container it can use the GPU with Metal."
)


def remedies_for(log: Log, text: str) -> tuple[Remedy, ...]:
    if access_was_lost(text):
        if runtime_in_log(log) == "kubernetes":
            return (
                Remedy(
                    "Delete the pod, so that it is created again. To prevent this, let NVIDIA's "
                    "device plugin pass device specifications (PASS_DEVICE_SPECS=true)."
                ),
            )
        return (_RENEW_ACCESS,)
    if runtime_in_log(log) == "kubernetes":
        return ways_to_pass_in("kubernetes")
    if log.platform == "macos" or log.says(ON_A_MAC):
        return (_ON_A_MAC,)
    if _NO_ADAPTER.search(text):
        return (
            Remedy("Check that the driver works in Windows.", command_line("nvidia-smi")),
            WINDOWS_DRIVER,
        )
    if log.platform == "windows" or story_of(log).place == "wsl":
        return (START_UNDER_WSL, WINDOWS_DRIVER, NEWER_TOOLKIT)
    host = Remedy("First check that the driver works on the host.", command_line("nvidia-smi"))
    if _TOOLKIT_RUNS.search(text):
        return (host, _REPAIR_DRIVER, _OTHER_DAEMON)
    if host_has_no_driver(text):
        return (
            host,
            _REPAIR_DRIVER,
            Remedy(f"If that works, {INSTALL_TOOLKIT}"),
        )
    if _OF_CDI.search(text) or (text and runtime_in_log(log) == "podman"):
        return (host, *BY_CDI)
    if text:
        return (
            host,
            *TOOLKIT_IF_THAT_WORKS,
            Remedy("Then start the container.", command_line("docker run --gpus all ...")),
        )
    return (host, *ways_to_pass_in(runtime_in_log(log)))
