"""The machine that wrote a log, as far as it decides what to install on it."""

from __future__ import annotations

from whygpu.causes.evidence.log_gpu_generations import NO_KERNELS_FOR, gpus_of, judged_by_list
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.machine_spec import PlannedGpu
from whygpu.tables.architectures import parse_capability
from whygpu.tables.gpus import find

_JETSON = late(
    r"(?i)\bjetson(?:[ -](?P<model>(?:AGX[ -])?(?:Orin|Xavier|Thor|TX[12]|Nano|T[45]000)"
    r"(?:[ -](?:NX|Nano))?))?\b|\bJetPack[ -]?(?P<jetpack>\d)|nv_tegra_release|\d-tegra\b"
)
_FIRST_JETPACK_LIKE_SERVERS = 7
"""Since this JetPack, the CUDA of a Jetson is that of Arm servers."""
_UNNAMED = PlannedGpu("a Jetson such as Orin", (8, 7), "jetson")


def gpus_in(log: Log) -> tuple[PlannedGpu, ...]:
    """The GPUs of the machine: those that a program lists or judges, else the one that is named."""
    jetson = _jetson(log)
    if jetson is not None:
        return (jetson,)
    listed = judged_by_list(log)
    if listed is not None:
        return (_planned(listed.name or "a GPU", listed.own),)
    stated = log.first(NO_KERNELS_FOR)
    capability = parse_capability(stated.groups["capability"] or "") if stated else None
    named = list(gpus_of(log))
    if capability is not None:
        name = next((gpu.name for gpu in named if gpu.capability == capability), "a GPU")
        return (_planned(name, capability),)
    lines = {device.line for device in log.devices}
    seen = [gpu for gpu in named if gpu.line in lines] or named
    if len({gpu.capability for gpu in seen}) != 1:
        # Which of several GPUs the program used, or which one is only mentioned, is not known.
        return ()
    return (_planned(seen[0].name, seen[0].capability),)


def platform_in(log: Log) -> str:
    """The platform in the planner's words; empty if the log does not show it."""
    if log.platform == "windows":
        return "win_amd64"
    if _jetson(log) is not None:
        return "linux_aarch64"
    return "linux_x86_64" if log.platform == "linux" else ""


def _jetson(log: Log) -> PlannedGpu | None:
    model, mentioned = "", False
    for match in log.find(_JETSON):
        mentioned = True
        model = model or match.groups["model"] or ""
        if int(match.groups["jetpack"] or 0) >= _FIRST_JETPACK_LIKE_SERVERS and not model:
            model = "Thor"
    if not mentioned:
        return None
    found = find(f"Jetson {model}") if model else ()
    if len({row.capability for row in found}) != 1:
        return _UNNAMED
    name = found[0].name if len(found) == 1 else f"Jetson {model}"
    return PlannedGpu(name, found[0].capability, "jetson")


def _planned(name: str, capability: tuple[int, int]) -> PlannedGpu:
    models = find(name)
    return PlannedGpu(name, capability, models[0].kind if models else None)
