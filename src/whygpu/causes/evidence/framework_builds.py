"""What several causes ask of framework builds: which use CUDA, and which GPUs their code serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.model.derived import and_list, display_name, nvidia_gpu
from whygpu.model.driver import Gpu
from whygpu.model.finding import Gap
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.architectures import Fit, fit, parse_capability, parse_code

_FOLLOWED = ("tensorflow", "jax", "torch")
"""CuPy, ONNX Runtime and Numba are known by presence and build; what they load is not followed."""


def cuda_builds(machine: Snapshot) -> Iterator[Framework]:
    """Frameworks whose use of CUDA is followed, and that use it, or of which that is not known."""
    for framework in need(machine.target.frameworks):
        if framework.name not in _FOLLOWED:
            continue
        kind = framework.build.kind
        if isinstance(kind, Unknown) or (isinstance(kind, Known) and kind.value == "cuda"):
            yield framework


def titled(framework: Framework) -> str:
    """A framework as sentences name it: TensorFlow 2.21.0."""
    return f"{display_name(framework.name)} {framework.version}"


def visible_gpus(machine: Snapshot) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to programs."""
    gpus = need(machine.driver.gpus)
    selection = machine.environment.visible_gpus
    if isinstance(selection, Absent):
        return gpus
    chosen = need(need(selection).visible)
    return tuple(gpu for gpu in gpus if gpu.number in chosen)


class CodeFit(NamedTuple):
    """How one framework's code serves one GPU."""

    framework: Framework
    gpu: Gpu
    capability: str
    codes: tuple[str, ...]
    fit: Fit


def code_fits(machine: Snapshot) -> Iterator[tuple[Framework, tuple[CodeFit, ...]] | Gap]:
    """For each CUDA build, how it serves each visible GPU; gaps where that is not known."""
    need(nvidia_gpu(machine))
    gpus = visible_gpus(machine)
    for framework in cuda_builds(machine):
        architectures = framework.build.architectures
        if isinstance(architectures, Unknown):
            yield Gap(f"GPU code in the binaries of {titled(framework)}: {architectures.reason}")
        elif isinstance(architectures, Known):
            judged = [_code_fit(framework, gpu, architectures.value) for gpu in gpus]
            yield from (item for item in judged if isinstance(item, Gap))
            yield framework, tuple(item for item in judged if isinstance(item, CodeFit))


def _code_fit(framework: Framework, gpu: Gpu, names: tuple[str, ...]) -> CodeFit | Gap:
    capability = gpu.compute_capability
    if not isinstance(capability, Known):
        reason = capability.reason if isinstance(capability, Unknown) else capability.source
        return Gap(f"compute capability of GPU {gpu.number} ({gpu.name}): {reason}")
    numbers = parse_capability(capability.value)
    codes = [parse_code(name) for name in names]
    if numbers is None or not names or None in codes:
        return Gap(
            f"whether code for {', '.join(names) or 'no GPU'} in {titled(framework)} runs on "
            f"compute capability {capability.value} ({gpu.name}): not on record"
        )
    result = fit([code for code in codes if code is not None], numbers)
    return CodeFit(framework, gpu, capability.value, names, result)


def gpu_names(fits: Sequence[CodeFit]) -> str:
    """The GPUs concerned, alike ones counted: 2 x NVIDIA H200 (compute capability 9.0)."""
    texts = [f"{item.gpu.name} (compute capability {item.capability})" for item in fits]
    counted = {text: texts.count(text) for text in texts}
    return and_list([text if n == 1 else f"{n} x {text}" for text, n in counted.items()])
