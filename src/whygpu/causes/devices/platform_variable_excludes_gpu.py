"""An environment variable keeps JAX off the GPU.

## Why it happens

JAX_PLATFORMS lists the platforms that JAX may start, the first one as its default. `cpu` leaves
the GPU out; `cpu,cuda` starts both and computes on the CPU unless told otherwise. The older
JAX_PLATFORM_NAME chooses the default, whatever the other says. Both are often set in a script or
a notebook to silence a warning, and stay.

## What it looks like

`jax.devices()` is `[CpuDevice(id=0)]`, without any message. Keras with the JAX backend runs on the
CPU with it, while other frameworks in the same process have the GPU.

## Fix

Unset the variable, or set JAX_PLATFORMS to `cuda,cpu`, which fails loudly where there is no GPU.

## Fires on (machine)

```toml
[environment.variables.JAX_PLATFORMS]
value = "cpu"
```

```toml
[environment.variables.JAX_PLATFORM_NAME]
value = "CPU"
```

## Quiet on (machine)

```toml
[environment.variables.JAX_PLATFORMS]
value = "cuda,cpu"
```

No JAX, no matter.

```toml
only = ["torch"]
[environment.variables.JAX_PLATFORMS]
value = "cpu"
```

## Cannot tell on (machine)

```toml
[target]
frameworks = {unknown = "site-packages: permission denied"}
[environment.variables.JAX_PLATFORMS]
value = "cpu"
```

## Sources

- <https://docs.jax.dev/en/latest/config_options.html>
- <https://docs.jax.dev/en/latest/faq.html>
- <https://github.com/jax-ml/jax/blob/main/jax/_src/xla_bridge.py>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause(
    "WG403",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "keras-backend-without-gpu"),
)

_GPU_PLATFORMS = ("cuda", "gpu", "rocm")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    jax = need(machine.framework("jax"))
    listed = machine.environment.get("JAX_PLATFORMS")
    if isinstance(listed, Known) and (effect := _effect_of_list(listed.value)):
        yield _finding(jax, "JAX_PLATFORMS", listed, effect)
    named = machine.environment.get("JAX_PLATFORM_NAME")
    if isinstance(named, Known) and named.value and named.value.lower() not in _GPU_PLATFORMS:
        effect = f"makes {named.value.lower()} its default platform, and not the GPU"
        yield _finding(jax, "JAX_PLATFORM_NAME", named, effect)


def _effect_of_list(text: str) -> str | None:
    """What a list of platforms does to the GPU; None when the GPU comes first."""
    platforms = [word.strip() for word in text.split(",") if word.strip()]
    if not platforms or platforms[0] in _GPU_PLATFORMS:
        return None
    if any(platform in _GPU_PLATFORMS for platform in platforms):
        return f"makes {platforms[0]} its default platform, and the GPU only the next one"
    return "leaves the GPU out: it names no platform cuda"


def _finding(jax: Framework, name: str, value: Known[str], effect: str) -> Finding:
    return CAUSE.finding(
        subject="jax",
        message=f"{name}={value.value} tells JAX {jax.version} where to compute: it {effect}",
        evidence=(seen(value),),
        remedies=(
            Remedy("Let JAX choose; it takes the GPU where there is one.", f"unset {name}"),
            Remedy(
                "Or insist on the GPU, so that its absence is an error and not a silent CPU.",
                "export JAX_PLATFORMS=cuda,cpu",
            ),
        ),
    )
