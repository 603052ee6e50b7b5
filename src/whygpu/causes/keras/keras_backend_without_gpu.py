"""Keras runs on a backend that does not use the GPU, although another framework does.

## Why it happens

Keras 3 computes with TensorFlow, JAX or PyTorch. `KERAS_BACKEND` or `~/.keras/keras.json` selects
one. If TensorFlow lists a GPU, this does not help a Keras that runs on JAX without its CUDA plugin,
or on a JAX that `JAX_PLATFORMS=cpu` restricts to the CPU. The same is true for `tf.keras`: since
TensorFlow 2.16 it is Keras 3, with the same choice of backend.

## What it looks like

`tf.config.list_physical_devices('GPU')` contains a GPU, but training is as slow as on the CPU.
Nothing is printed.

## Fix

Select the backend that uses the GPU, or install GPU support for the selected one.

## Fires on (machine)

```toml
[environment.variables.KERAS_BACKEND]
value = "jax"
[target.frameworks.keras.keras]
backend = "jax"
[target.frameworks.jax.build]
kind = "cpu"
[probes.keras]
facts = [["backend", "jax"]]
operations = []
[probes.jax]
operations = []
```

```toml
[environment.variables.JAX_PLATFORMS]
value = "cpu"
[target.frameworks.keras.keras]
backend = "jax"
[probes.keras]
facts = [["backend", "jax"]]
operations = []
[probes.jax]
operations = []
```

## Quiet on (machine)

No framework uses the GPU, so another backend would not help: the backend's own fault is the cause.

```toml
only = ["keras", "tensorflow"]
[probes.keras]
operations = []
[probes.tensorflow]
operations = []
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[target.frameworks.keras.keras]
backend = {unknown = "~/.keras/keras.json: permission denied"}
```

## Sources

- <https://keras.io/getting_started/#configuring-your-backend>
- <https://docs.jax.dev/en/latest/config_options.html>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import gpu_build_of
from whygpu.causes.evidence.keras_backend import BACKENDS, Choice, choice_of
from whygpu.model.cause import cause
from whygpu.model.derived import and_list, display_name, gpu_proven_by, keras_backend, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.probe import ProbeName
from whygpu.model.remedy import PYTHON, UnsetVariable, a_name, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, FrameworkName

CAUSE = cause(
    "WG601",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("keras-generations-mixed",),
)

_CPU_BACKENDS = ("numpy", "openvino")
"""Backends of Keras that never compute on an NVIDIA GPU."""

_GPU_PLATFORMS = ("cuda", "gpu", "rocm")
_NAMES: dict[str, FrameworkName] = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}
_PROBES: dict[str, ProbeName] = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    keras = need(machine.framework("keras"))
    probe = machine.probe("keras")
    if isinstance(probe, Known) and (probe.value.ended != "finished" or gpu_proven_by(probe.value)):
        return
    backend = need(keras_backend(machine, keras))
    reason = _reason(machine, backend, probed=isinstance(probe, Known))
    if isinstance(reason, Gap):
        yield reason
    elif reason is not None:
        owners = _gpu_owners(machine, backend)
        if owners or reason.stands_alone:
            yield _finding(machine, keras, choice_of(machine, keras, backend), reason, owners)


class _Reason(NamedTuple):
    """Why Keras does not use the GPU with this backend."""

    text: str
    evidence: Evidence
    remedy: Remedy | None
    stands_alone: bool = False
    """Keras is the reason even if no other framework uses the GPU."""


def _reason(machine: Snapshot, backend: str, *, probed: bool) -> _Reason | Gap | None:
    """None if the backend may have its own faults, which other causes report."""
    if backend in _CPU_BACKENDS:
        text = f"the backend {backend} has no GPU support"
        return _Reason(text, Evidence("machine", "Keras", text), None, stands_alone=True)
    name = _NAMES.get(backend)
    framework = machine.framework(name) if name else None
    if not isinstance(framework, Known):
        return None
    kind = framework.value.build.kind
    if isinstance(kind, Known) and kind.value == "cpu":
        return _Reason(
            f"{titled(framework.value)} is a build without GPU support",
            seen(kind, f"{backend} is built for cpu"),
            _gpu_build(framework.value),
        )
    excluded = _excluded_by(machine) if backend == "jax" else None
    if excluded is not None:
        return excluded
    below = machine.probe(_PROBES[backend])
    if probed and isinstance(below, Known) and gpu_proven_by(below.value):
        return _Reason(
            f"{display_name(backend)} alone computes on the GPU, but Keras on top of it does not",
            Evidence("probe", f"{backend} probe", "computed on the GPU"),
            None,
            stands_alone=True,
        )
    if isinstance(kind, Unknown) and not probed:
        return Gap(f"whether Keras's backend {titled(framework.value)} has a GPU: {kind.reason}")
    return None


def _excluded_by(machine: Snapshot) -> _Reason | None:
    """The variable that restricts JAX to the CPU."""
    for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"):
        value = machine.environment.get(name)
        if not isinstance(value, Known):
            continue
        first = value.value.split(",")[0].strip().lower()
        if first and first not in _GPU_PLATFORMS:
            remedy = Remedy(
                "Let JAX choose its platform; it prefers the GPU.", UnsetVariable((name,))
            )
            text = f"{name}={value.value} prevents JAX from using the GPU"
            return _Reason(text, seen(value), remedy)
    return None


def _gpu_owners(machine: Snapshot, backend: str) -> list[str]:
    """Other backends that use the GPU, or that are built for it if they were not run."""
    owners = []
    for name in BACKENDS:
        framework, probe = machine.framework(_NAMES[name]), machine.probe(_PROBES[name])
        if name == backend or not isinstance(framework, Known):
            continue
        kind = framework.value.build.kind
        if isinstance(probe, Known):
            if gpu_proven_by(probe.value):
                owners.append(name)
        elif isinstance(kind, Known) and kind.value == "cuda":
            owners.append(name)
    return owners


def _finding(
    machine: Snapshot, keras: Framework, choice: Choice, reason: _Reason, owners: list[str]
) -> Finding:
    probe = machine.probe("keras")
    ran = isinstance(probe, Known)
    verb = "runs on the CPU" if ran else "will run on the CPU"
    others = f"; {and_list([display_name(o) for o in owners])} can use the GPU" if owners else ""
    evidence = [choice.evidence, reason.evidence]
    if ran:
        evidence.append(Evidence("probe", "keras probe", "its training step ran on the CPU"))
    remedies = [remedy for owner in owners for remedy in choice.switch_to(owner)]
    if reason.remedy is not None:
        remedies.append(reason.remedy)
    return CAUSE.finding(
        subject="keras",
        message=(
            f"{titled(keras)} {verb}: its backend is {display_name(choice.backend)}, "
            f"{choice.sentence}, and {reason.text}{others}"
        ),
        evidence=tuple(evidence),
        remedies=tuple(remedies) or _compare(choice.backend),
        confidence="certain" if ran else "likely",
    )


def _compare(backend: str) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Check which devices Keras has; a program can hide them before Keras starts.",
            shell_script(
                "KERAS_BACKEND=",
                a_name(backend),
                " ",
                PYTHON,
                " -c 'import keras; print(keras.distribution.list_devices())'",
            ),
        ),
    )


def _gpu_build(framework: Framework) -> Remedy:
    removes = () if framework.name == "jax" else (framework.distribution,)
    return Remedy(
        f"Or install GPU support for {display_name(framework.name)}.",
        gpu_build_of(framework, removes=removes),
    )
