"""The ROCm build of a framework has no code for this machine's AMD GPU.

## Why it happens

A ROCm build has machine code for a list of GPUs, by names such as `gfx1030`, and no intermediate
code from which the driver could make more. The list has AMD's accelerators and a few cards. Other
cards of the same generation have names of their own (`gfx1032`), and old and very new ones are not
in it. `rocminfo` prints the name of the GPU, and `torch.cuda.get_arch_list()` the list.

## What it looks like

The framework lists the GPU. The first operation on it fails: `HIP error: invalid device function`,
or rocBLAS ends the process because it `Cannot read ... TensileLibrary.dat ... for GPU arch`. If the
variable `HSA_OVERRIDE_GFX_VERSION` names a GPU of another generation, the process crashes or hangs.

## Fix

Install a release that has code for the GPU. For the cards of two generations (RDNA 2: `gfx1031`
to `gfx1036`; RDNA 3: `gfx1101` to `gfx1103`) many users set `HSA_OVERRIDE_GFX_VERSION`, so that
the runtime treats the card as the first of its generation. AMD does not support that: it may
compute wrongly or hang.

This follows AMD's and LLVM's documentation. It was not measured.

## Fires on (machine)

```toml
start = "amd"
[graphics."0000:03:00.0"]
device_id = "73ff"
[amd]
gpus = [{node = 1, target = "gfx1032"}]
```

The variable names a GPU that the build has no code for either.

```toml
start = "amd"
[graphics."0000:03:00.0"]
device_id = "73ff"
[amd]
gpus = [{node = 1, target = "gfx1032"}]
[environment.variables.HSA_OVERRIDE_GFX_VERSION]
value = "9.0.0"
```

The variable names a GPU of another generation.

```toml
start = "amd"
[graphics."0000:03:00.0"]
device_id = "73ff"
[amd]
gpus = [{node = 1, target = "gfx1032"}]
[environment.variables.HSA_OVERRIDE_GFX_VERSION]
value = "11.0.0"
```

## Quiet on (machine)

```toml
start = "amd"
```

The runtime takes the card for one that the build has code for.

```toml
start = "amd"
[graphics."0000:03:00.0"]
device_id = "73ff"
[amd]
gpus = [{node = 1, target = "gfx1032"}]
[environment.variables.HSA_OVERRIDE_GFX_VERSION]
value = "10.3.0"
```

## Cannot tell on (machine)

```toml
start = "amd"
[target.frameworks.torch.build]
amd_targets = {unknown = "libtorch_hip.so: its HIP code is compressed"}
```

Code for a whole family may be for this GPU as well.

```toml
start = "amd"
[graphics."0000:03:00.0"]
device_id = "73ff"
[amd]
gpus = [{node = 1, target = "gfx1032"}]
[target.frameworks.torch.build]
amd_targets = ["gfx10-3-generic"]
```

## Sources

- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html>
- <https://llvm.org/docs/AMDGPUUsage.html#processors>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.amd_gpus import amd_driver, rocm_frameworks
from whygpu.model.amd_driver import AmdGpu
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, Unknown
from whygpu.model.remedy import SetVariable, UnsetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.amd_targets import (
    generation,
    is_generic,
    override_for,
    relative_of,
    target_of_override,
)

CAUSE = cause(
    "WG324", __name__, __doc__, severity="error", effect="broken", explains=("gpu-unused",)
)

_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_UNSET = UnsetVariable((_OVERRIDE,))
_JUDGED = ("torch", "tensorflow")
"""JAX compiles most of its code for the GPU that it finds."""
_OTHER_BUILD = Remedy(
    "Install a release of the framework that has code for this GPU; AMD's list of supported GPUs "
    "names the releases of ROCm."
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    frameworks = rocm_frameworks(machine)
    gpus = amd_driver(machine).gpus
    if isinstance(gpus, Unknown):
        yield Gap(f"which AMD GPU this is: {gpus.reason}")
    if not isinstance(gpus, Known):
        return
    for framework in frameworks:
        if framework.name in _JUDGED:
            yield from _judged(machine, framework, gpus)


def _judged(
    machine: Snapshot, framework: Framework, gpus: Known[tuple[AmdGpu, ...]]
) -> Iterator[Finding | Gap]:
    name = f"{display_name(framework.name)} {framework.version}"
    built = framework.build.amd_targets
    if not isinstance(built, Known):
        reason = built.reason if isinstance(built, Unknown) else built.source
        yield Gap(f"for which AMD GPUs {name} has code: {reason}")
        return
    override = machine.environment.get(_OVERRIDE)
    taken_for = target_of_override(override.value) if isinstance(override, Known) else None
    if taken_for is not None and all(_is_foreign(gpu.target, taken_for) for gpu in gpus.value):
        yield _wrong_override(framework, taken_for, gpus, built.value)
        return
    wanted = {taken_for or gpu.target for gpu in gpus.value}
    if wanted & set(built.value):
        # A GPU without code beside one that has it, such as that of the processor, is not used.
        return
    if any(map(is_generic, built.value)):
        yield Gap(f"{name} has code for whole families of AMD GPUs: {', '.join(built.value)}")
        return
    listed = ", ".join(sorted(wanted))
    because = f" ({_OVERRIDE}={override.value})" if isinstance(override, Known) else ""
    yield CAUSE.finding(
        subject=framework.name,
        message=f"{name} has no code for the AMD GPU {listed}{because}, only for "
        f"{', '.join(built.value)}",
        evidence=(seen(gpus, listed), seen(built, ", ".join(built.value))),
        remedies=(*_overrides(gpus.value, built.value), _OTHER_BUILD),
        confidence="likely",
    )


def _is_foreign(target: str, taken_for: str) -> bool:
    """Whether a GPU cannot execute the code of the one that it is taken for."""
    return generation(target) != generation(taken_for)


def _wrong_override(
    framework: Framework,
    taken_for: str,
    gpus: Known[tuple[AmdGpu, ...]],
    built: tuple[str, ...],
) -> Finding:
    listed = ", ".join(sorted({gpu.target for gpu in gpus.value}))
    name = f"{display_name(framework.name)} {framework.version}"
    return CAUSE.finding(
        subject=framework.name,
        message=f"{_OVERRIDE}={override_for(taken_for)} makes {name} take the AMD GPU {listed} for "
        f"{taken_for}, a GPU of another generation, whose code it cannot execute",
        evidence=(seen(gpus, listed),),
        remedies=(
            *_overrides(gpus.value, built),
            Remedy("Remove the variable, or set it for a GPU of the same generation.", _UNSET),
        ),
        confidence="likely",
    )


def _overrides(gpus: tuple[AmdGpu, ...], built: tuple[str, ...]) -> Iterator[Remedy]:
    """What many users do, if the build has code for the close relative of every GPU."""
    relatives = {row.runs if (row := relative_of(gpu.target)) else None for gpu in gpus}
    runs = relatives.pop() if len(relatives) == 1 else None
    value = override_for(runs) if runs in built and runs is not None else None
    if value is not None:
        yield Remedy(
            f"Make the runtime take the GPU for {runs}. AMD does not support this; compare some "
            "results with the CPU.",
            SetVariable(_OVERRIDE, value),
        )
