"""Shared by setup detectors: CPU builds that an image installs although it is for a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.agreeing_tensorflow import advice, agrees, around, pinned
from whygpu.causes.evidence.setup_requirements import already_in_base, wanted_instead
from whygpu.model.deployment import Setup
from whygpu.model.lazy_regex import late
from whygpu.model.requirement_file import PinnedRequirement, RequirementVerdict

_JUDGED_IN_IMAGES = (
    *("torch", "pytorch", "pytorch-cpu", "cpuonly"),
    *("tensorflow", "tensorflow-cpu", "intel-tensorflow"),
)
"""CPU builds of other frameworks are often installed next to one that uses the GPU."""


_USE_THE_GPU = late(
    r"onnxruntime-gpu|ctranslate2|faster-whisper|whisperx|paddlepaddle-gpu|cupy|jax$|jax-cuda|jaxlib"
    r"|llama-cpp-python|tensorrt|nvidia-dali|cu(?:df|ml|graph)(?:-|$)|mxnet|vllm|warp-lang"
)
"""Packages that use a GPU without PyTorch or TensorFlow."""
_COMPILERS = (("make",), ("cmake",), ("ninja",), ("nvcc",), ("bazel",))


class CpuBuild(NamedTuple):
    """A requirement for a CPU build, in an image for a GPU."""

    verdict: RequirementVerdict
    framework: str
    fix: str
    gpu_is_for: str
    """What else the GPU may be for; empty if nothing shows another use."""


def cpu_builds_in(image: Setup) -> Iterator[CpuBuild]:
    others = {v.requirement.name for v in image.verdicts if v.kind != "cpu-build"}
    if others & set(_JUDGED_IN_IMAGES):
        return
    for verdict in image.verdicts:
        name = verdict.requirement.name
        if verdict.kind != "cpu-build" or name not in _JUDGED_IN_IMAGES:
            continue
        if already_in_base(verdict, image.base):
            continue
        framework = "tensorflow" if "tensorflow" in name else "torch"
        if image.base is not None and image.base.framework not in ("", framework):
            # The image is for the GPU because of the framework that it contains.
            continue
        wanted = wanted_instead(verdict)
        yield CpuBuild(
            verdict,
            framework,
            _gpu_build_for(image, wanted)
            if wanted
            else verdict.advice or _ask_for_cuda(verdict.requirement),
            _other_user(image) or ("what the image compiles" if _compiles(image) else ""),
        )


def _ask_for_cuda(requirement: PinnedRequirement) -> str:
    if requirement.name == "cpuonly":
        return "Remove it, and ask for pytorch-cuda."
    return "Take it from the default index, or from one with CUDA builds."


def _gpu_build_for(image: Setup, wanted: str) -> str:
    """The planner does not know the CUDA of the image, which TensorFlow uses."""
    version, given = pinned(wanted) if "tensorflow" in wanted else "", around(image)
    if agrees(version, given):
        return f"Write {wanted}."
    return f"{advice(version, given)} The GPU build of {version} is {wanted}."


def _other_user(image: Setup) -> str:
    names = (requirement.name for requirement in image.requirements)
    return next(filter(_USE_THE_GPU.match, names), "")


def _compiles(image: Setup) -> bool:
    """Whether an image with the compilers of CUDA compiles something of its own."""
    if image.base is None or image.base.flavour != "devel":
        return False
    return any(command.plain_words[:1] in _COMPILERS for command in image.commands)
