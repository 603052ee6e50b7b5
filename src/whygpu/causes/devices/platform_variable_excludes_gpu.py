"""An environment variable prevents JAX from using the GPU.

## Why it happens

JAX_PLATFORMS lists the platforms that JAX may start; the first one is the default. `cpu` excludes
the GPU. `cpu,cuda` starts both, but computes on the CPU unless the program chooses the GPU. The
older JAX_PLATFORM_NAME sets the default, whatever the other variable says. Both are often set in a
script or a notebook to hide a warning, and then forgotten.

## What it looks like

`jax.devices()` is `[CpuDevice(id=0)]`, without any message. Keras with the JAX backend also runs on
the CPU, while other frameworks in the same process use the GPU.

## Fix

Unset the variable, or set JAX_PLATFORMS to `cuda,cpu`, which raises an error if there is no GPU.

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

JAX is not installed.

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

## Fires on (log)

```
$ JAX_PLATFORMS=cpu python train.py
RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: cpu
```

```
$ export JAX_PLATFORMS=rocm
RuntimeError: Unable to initialize backend 'rocm': Backend 'rocm' is not in the list of known backends: dict_keys(['cpu', 'cuda', 'tpu']). (set JAX_PLATFORMS='' to automatically choose an available backend)
```

The platform that is set does not start, and newer releases give no reason.

```
  File "/opt/venv/lib/python3.12/site-packages/jax/_src/xla_bridge.py", line 869, in backends
    assert _default_backend is not None
AssertionError
```

## Quiet on (log)

The message suggests the variable, but it is not set.

```
RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices. (set JAX_PLATFORMS='' to automatically choose an available backend)
```

## Sources

- <https://docs.jax.dev/en/latest/config_options.html>
- <https://docs.jax.dev/en/latest/faq.html>
- <https://github.com/jax-ml/jax/blob/main/jax/_src/xla_bridge.py>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.framework_installs import gpu_build_in_log
from whygpu.causes.evidence.log_subjects import ended_after
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known, need
from whygpu.model.remedy import SetVariable, UnsetVariable
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
    """The effect of a list of platforms on the GPU; None if the GPU comes first."""
    platforms = [word.strip() for word in text.split(",") if word.strip()]
    if not platforms or platforms[0] in _GPU_PLATFORMS:
        return None
    if any(platform in _GPU_PLATFORMS for platform in platforms):
        return f"makes {platforms[0]} the default platform, before the GPU"
    return "excludes the GPU: it does not contain cuda"


def _finding(jax: Framework, name: str, value: Known[str], effect: str) -> Finding:
    return CAUSE.finding(
        subject="jax",
        message=f"{name}={value.value}, which JAX {jax.version} reads, {effect}",
        evidence=(seen(value),),
        remedies=(
            Remedy("Let JAX choose; it uses the GPU if there is one.", UnsetVariable((name,))),
            Remedy(
                "Or require the GPU, so that a missing GPU is an error.",
                SetVariable("JAX_PLATFORMS", "cuda,cpu"),
            ),
        ),
    )


_SET = late(
    r"(?<!set )JAX_PLATFORM(?:S"
    r"|_NAME)['\"]?\]?\)? ?[=:,] ?['\"]?(?P<value>[a-zA-Z_]{2,12}(?:,[a-zA-Z_]{2,12}){0,4})"
)
_CONFIGURED = late(
    r"jax_platforms?(?:_name)?['\"] ?, ?['\"](?P<value>[a-zA-Z_]{2,12}(?:,[a-zA-Z_]{2,12}){0,4})"
)
_REFUSED = late(
    r"Unknown backend:? '?(?P<backend>\w{2,12})'?"
    r"|Unable to initialize backend '(?P<asked>\w{2,12})': [^\n]{0,200}set JAX_PLATFORMS"
)
_ONLY_CPU = late(r"\[Cpu?Device\(id=0\)|TFRT_CPU_0|falling back to CPU", re.IGNORECASE)


_ONLY_CPU_STARTED = late(
    r"Unknown backend:? '?(?:gpu|cuda)'? requested, but no platforms [^\n]{0,60}are present\."
    r" Platforms present are: cpu\s{0,2}$",
    re.MULTILINE,
)
_OTHER_REASON = late(r"jaxlib is not installed|cuInit|CUDA_ERROR|plugin configuration error")
"""JAX gives the reason why a platform did not start, unless a setting excludes the platform."""


def _left_out(log: Log, silent: Match) -> Finding:
    return CAUSE.finding(
        subject="jax",
        message="JAX started only the CPU and gives no reason: JAX_PLATFORMS, or the setting of "
        "the same name, excludes the GPU, or this JAX has no CUDA plugin",
        evidence=log.evidence(silent.line),
        remedies=(
            Remedy("Let JAX choose.", UnsetVariable(("JAX_PLATFORMS", "JAX_PLATFORM_NAME"))),
            Remedy("If that changes nothing, install JAX with CUDA.", gpu_build_in_log(log)),
        ),
        confidence="possible",
        effect="broken",
        ask="What does `echo $JAX_PLATFORMS` print, and does `pip list` show a jax-cuda plugin?",
    )


_NAMED_BACKEND = late(
    r"Unable to initialize backend '(?P<backend>(?!cuda'|gpu')\w{2,20})'[^\n]{0,600}"
    r"\(set JAX_PLATFORMS=''"
)
"""JAX suggests an automatic choice only if a platform was set."""


def _named_backend(log: Log, named: Match) -> Finding:
    backend = named.groups["backend"]
    gpu = "; older releases also try it for JAX_PLATFORMS=gpu" if backend == "rocm" else ""
    return CAUSE.finding(
        subject="jax",
        message=f"JAX is set to use the platform {backend!r}, which it does not have{gpu}",
        evidence=log.evidence(named.line, *ended_after(log, named.line)),
        remedies=(
            Remedy(
                "Let JAX choose; it uses the GPU if there is one.",
                UnsetVariable(("JAX_PLATFORMS",)),
            ),
            Remedy(
                "Or set CUDA, on a machine with an NVIDIA GPU.",
                SetVariable("JAX_PLATFORMS", "cuda"),
            ),
        ),
    )


_NONE_STARTED = late(r"assert _default_backend is not None")


def _none_started(log: Log, silent: Match) -> Finding:
    return CAUSE.finding(
        subject="jax",
        message="JAX may only use the platforms that JAX_PLATFORMS, or the setting of the same "
        "name, lists, and none of them started: for cuda, its plugin is not installed or found "
        "no GPU",
        evidence=log.evidence(silent.line, *ended_after(log, silent.line)),
        remedies=(
            Remedy(
                "Let JAX choose, and use the CPU if nothing else starts.",
                UnsetVariable(("JAX_PLATFORMS",)),
            ),
            Remedy("For an NVIDIA GPU, install JAX with CUDA.", gpu_build_in_log(log)),
        ),
        confidence="likely",
        effect="broken",
        ask="What does `echo $JAX_PLATFORMS` print, and does `pip list` show a jax-cuda plugin?",
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    chosen = log.first(_SET) or log.first(_CONFIGURED)
    stopped = log.first(_NONE_STARTED)
    if stopped is not None and not log.says(_OTHER_REASON):
        yield _none_started(log, stopped)
        return
    named = log.first(_NAMED_BACKEND)
    if named is not None:
        yield _named_backend(log, named)
        return
    silent = log.first(_ONLY_CPU_STARTED)
    if chosen is None and silent is not None and not log.says(_OTHER_REASON):
        yield _left_out(log, silent)
    if chosen is None:
        return
    value = (chosen.groups["value"] or "").lower()
    refused = log.first(_REFUSED)
    cpu = log.first(_ONLY_CPU)
    asked = (refused.groups["backend"] or refused.groups["asked"]) if refused else None
    leaves_out = _effect_of_list(value) is not None
    absent = (
        asked is not None and asked == value.partition(",")[0] and asked not in _GPU_PLATFORMS[:2]
    )
    if not absent and not (leaves_out and (cpu or asked in _GPU_PLATFORMS)):
        return
    lines = [chosen.line, *(match.line for match in (refused, cpu) if match)]
    effect = _effect_of_list(value) or "names a platform that is not installed"
    yield CAUSE.finding(
        subject="jax",
        message=f"the platforms of JAX are set to {value!r}; that {effect}",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy(
                "Let JAX choose; it uses the GPU if there is one.",
                UnsetVariable(("JAX_PLATFORMS",)),
            ),
            Remedy(
                "Or require the GPU, so that a missing GPU is an error.",
                SetVariable("JAX_PLATFORMS", "cuda,cpu"),
            ),
        ),
        severity=None if refused else "info",
        effect="broken" if refused else "cpu",
    )
