"""Facts about framework builds: which use CUDA, and which GPUs their code supports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.causes.evidence.probe_ends import framework_probes
from whygpu.model.derived import and_list, display_name, nvidia_gpu
from whygpu.model.driver import Gpu
from whygpu.model.finding import Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Absent, Known, NotApplicable, Unknown, need
from whygpu.model.remedy import set_variables
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import BuildKind, Framework
from whygpu.tables.architectures import Fit, fit, parse_capability, parse_code

_FOLLOWED = ("tensorflow", "jax", "torch")
"""For CuPy, ONNX Runtime and Numba, presence and build are known, but not the loaded libraries."""


def cuda_builds(machine: Snapshot) -> Iterator[Framework]:
    """Frameworks with followed libraries that use CUDA, or for which this is unknown."""
    for framework in need(machine.target.frameworks):
        if framework.name not in _FOLLOWED:
            continue
        kind = framework.build.kind
        if isinstance(kind, Unknown) or (isinstance(kind, Known) and kind.value == "cuda"):
            yield framework


def builds_for(machine: Snapshot, kind: BuildKind, absent: str) -> tuple[Framework, ...]:
    """The frameworks of this kind of build; without one, the cause that asks does not apply."""
    found = tuple(
        framework
        for framework in need(machine.target.frameworks)
        if isinstance(framework.build.kind, Known) and framework.build.kind.value == kind
    )
    if not found:
        raise NotApplicable(absent)
    return found


def titled(framework: Framework) -> str:
    """The name of a framework in messages: TensorFlow 2.21.0."""
    return f"{display_name(framework.name)} {framework.version}"


def visible_gpus(machine: Snapshot) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible to programs."""
    gpus = need(machine.driver.gpus)
    selection = machine.environment.visible_gpus
    if isinstance(selection, Absent):
        return gpus
    chosen = need(need(selection).visible)
    return tuple(gpu for gpu in gpus if gpu.number in chosen)


class CodeFit(NamedTuple):
    """How well the code of one framework supports one GPU."""

    framework: Framework
    gpu: Gpu
    capability: str
    codes: tuple[str, ...]
    fit: Fit


def code_fits(machine: Snapshot) -> Iterator[tuple[Framework, tuple[CodeFit, ...]] | Gap]:
    """For each CUDA build, how well it supports each visible GPU; gaps if that is unknown."""
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


_NO_CODE_FOR_IT = late(
    r"no kernel image is available|CUDA_ERROR_NO_BINARY_FOR_GPU|invalid device function"
    r"|device kernel image is invalid|CUDA_ERROR_INVALID_PTX"
)


def fails_without_code(machine: Snapshot, framework: Framework) -> bool:
    """Whether the framework was run and found no code for the GPU that it chose: it takes the first
    one, or the one with the most memory, even if it has code for another."""
    probe = next((seen for item, seen in framework_probes(machine) if item is framework), None)
    return isinstance(probe, Known) and any(
        _NO_CODE_FOR_IT.search(text)
        for text in (
            probe.value.how,
            *(
                operation.ran_on.reason
                for operation in probe.value.operations
                if isinstance(operation.ran_on, Unknown)
            ),
        )
    )


def choose_gpus(fits: Sequence[CodeFit], unfit: Sequence[CodeFit]) -> Remedy:
    """Leave visible only the GPUs that there is code for."""
    numbers = ",".join(str(fit.gpu.number) for fit in fits if fit not in unfit)
    return Remedy(
        "Let programs use only the GPUs that it has code for, by their numbers in bus order.",
        set_variables(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=numbers),
    )


def gpu_names(fits: Sequence[CodeFit]) -> str:
    """The affected GPUs, with equal ones counted: 2 x NVIDIA H200 (compute capability 9.0)."""
    texts = [f"{item.gpu.name} (compute capability {item.capability})" for item in fits]
    counted = {text: texts.count(text) for text in texts}
    return and_list([text if n == 1 else f"{n} x {text}" for text, n in counted.items()])
