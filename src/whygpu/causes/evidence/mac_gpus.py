"""How a framework, installed or of a log, uses the GPU of a Mac, which has no CUDA."""

from __future__ import annotations

from whygpu.causes.evidence.framework_installs import gpu_build_of
from whygpu.model.derived import display_name
from whygpu.model.finding import Remedy
from whygpu.model.log import Log
from whygpu.model.remedy import command_line
from whygpu.model.target import Framework
from whygpu.tables.metal_builds import has_metal_build

_ADVICE = {
    "tensorflow": Remedy(
        "On a Mac, TensorFlow uses the GPU with tensorflow-metal, Apple's plug-in, which only some "
        "releases can load: list them on that Mac.",
        command_line("whygpu plan tensorflow"),
    ),
    "jax": Remedy(
        "On a Mac, JAX works on the CPU: jax-metal, Apple's plug-in, is no longer developed, and "
        "current releases of JAX do not work with it."
    ),
    "torch": Remedy("On a Mac, select its own GPU (device='mps'): CUDA needs NVIDIA's."),
}
_ASK = {
    "tensorflow": "Does `pip list` show tensorflow-metal?",
    "torch": "Does `python -c 'import torch; print(torch.backends.mps.is_available())'` print True?",
}
_ELSEWHERE = Remedy("CUDA needs an NVIDIA GPU, which a Mac does not have: select the CPU.")


def remedy_on_a_mac(framework: Framework) -> Remedy:
    """For an installed framework. The planner picks the release, and that of the plug-in."""
    if not has_metal_build(framework.name):
        return _ADVICE.get(framework.name, _ELSEWHERE)
    text = f"Install a release of {display_name(framework.name)} that can use the GPU of a Mac"
    plugin = ", and tensorflow-metal, Apple's plug-in" if framework.name == "tensorflow" else ""
    return Remedy(f"{text}{plugin}.", gpu_build_of(framework))


def _name(log: Log) -> str:
    return {"keras": "tensorflow", "": "torch"}.get(log.framework, log.framework)


def advice_for_a_mac(log: Log) -> Remedy:
    return _ADVICE.get(_name(log), _ELSEWHERE)


def question_for_a_mac(log: Log) -> str | None:
    return _ASK.get(_name(log))
