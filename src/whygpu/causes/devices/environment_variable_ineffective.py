"""An environment variable has a value that does not have the intended effect.

## Why it happens

Each program reads its variables in its own way, and most ignore values that they do not understand.
TF_FORCE_GPU_ALLOW_GROWTH accepts true and false, and ignores 1. XLA_FLAGS ends the program if it
contains an unknown flag. CUDA_HOME may still name a folder that was removed.

## What it looks like

Usually nothing: the setting has no effect. With XLA_FLAGS and TF_XLA_FLAGS the program aborts at
its first compilation.

## Fix

Correct the value, or unset the variable. `whygpu check -v` shows the effect of every variable.

## Fires on (machine)

```toml
[environment.variables.TF_FORCE_GPU_ALLOW_GROWTH]
value = "1"
meaning = "a word with no meaning here"
problem = "'1': TensorFlow ignores it, because only the words \\"true\\" and \\"false\\" count here"
```

## Quiet on (machine)

```toml
[environment.variables.TF_FORCE_GPU_ALLOW_GROWTH]
value = "true"
meaning = "TensorFlow takes GPU memory as it needs it"
```

A variable of a framework that is not installed.

```toml
only = ["torch"]
[environment.variables.TF_FORCE_GPU_ALLOW_GROWTH]
value = "1"
meaning = "a word with no meaning here"
problem = "'1': TensorFlow ignores it"
```

## Cannot tell on (machine)

```toml
[target]
frameworks = {unknown = "site-packages: permission denied"}
[environment.variables.JAX_ENABLE_X64]
value = "maybe"
meaning = "a word with no meaning here"
problem = "'maybe': JAX refuses it"
```

## Fires on (log)

```
F0312 10:11:12.345678   4711 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_gpu_enable_async_everything=true
```

The variable has no effect, and the program continues.

```
2022-10-17 09:30:15.100200: E tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.cc:43] The TF_FORCE_GPU_ALLOW_GROWTH environment variable is set but could not be parsed: "1". Valid values are "true" or "false". Using original config value of 0.
```

## Quiet on (log)

```
I0312 10:11:12.345678   4711 service.cc:148] XLA service 0x55d1 initialized for platform CUDA (this does not guarantee that XLA will be used). Devices:
```

## Fires on (code)

A name with a space in it, and a name without its last letter.

```python
import os
os.environ["TF_CUDNN DETERMINISTIC"] = "1"
import tensorflow as tf
```

```python
import os
os.environ["CUDA_VISIBLE_DEVICE"] = "0"
import torch
```

Values that their readers do not know.

```python
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "cuda:0"
import torch
```

```python
import os
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "75"
import jax
```

## Quiet on (code)

```python
import os
os.environ["TF_CUDNN_DETERMINISTIC"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = ".75"
import tensorflow as tf
```

The right name is set too, and another program may read this one.

```python
import os
os.environ["CUDA_VISIBLE_DEVICE"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICE"]
import torch
```

## Fires on (setup)

```
==> .env <==
TF_FORCE_GPU_ALLOW_GROWTH=1
```

The container gets no libcuda.so.1.

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
ENV NVIDIA_DRIVER_CAPABILITIES=utility
RUN pip install torch
```

The image has a framework already.

```
==> Dockerfile <==
FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
ENV NVIDIA_DRIVER_CAPABILITIES=utility
```

```
==> compose.yaml <==
services:
  train:
    image: example/train
    environment:
      - CUDA_VISIBLE_DEVICE=0
```

## Quiet on (setup)

```
==> .env <==
TF_FORCE_GPU_ALLOW_GROWTH=true
CUDA_VISIBLE_DEVICES=${GPU}
```

A program for video needs no CUDA.

```
==> Dockerfile <==
FROM ubuntu:22.04
ENV NVIDIA_DRIVER_CAPABILITIES=video,utility
RUN apt-get update && apt-get install -y ffmpeg
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>
- <https://openxla.org/xla/flags_guidance>
- <https://docs.jax.dev/en/latest/gpu_memory_allocation.html>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.device_code import text_of
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.deployment import Setup, SetupFinding, VariableSetting
from whygpu.model.derived import and_list, nvidia_gpu
from whygpu.model.environment import Variable
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Unknown, need
from whygpu.model.program import Program
from whygpu.model.remedy import Script, SetVariable, Steps, UnsetVariable, a_name, shell_script
from whygpu.model.requirement_file import LineEdit
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import FrameworkName
from whygpu.model.text_lines import has_line
from whygpu.tables.variable_values import meant_name, value_problem

CAUSE = cause("WG405", __name__, __doc__, severity="warning", effect="none")

_REPORTED_ELSEWHERE = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "KERAS_BACKEND",
)
"""Variables whose errors have their own causes."""

_OWNERS: tuple[tuple[str, FrameworkName], ...] = (
    ("TF_USE_LEGACY_KERAS", "keras"),
    ("TF_", "tensorflow"),
    ("KERAS_", "keras"),
    ("JAX_", "jax"),
    ("XLA_PYTHON_", "jax"),
    ("XLA_CLIENT_", "jax"),
    ("PYTORCH_", "torch"),
    ("TORCH_", "torch"),
    ("NUMBA_", "numba"),
    ("CUPY_", "cupy"),
)
"""The framework that reads a variable, by its prefix; all others affect every program."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    for variable in machine.environment.variables:
        if not variable.problem or variable.name in _REPORTED_ELSEWHERE:
            continue
        owner = _owner(variable.name)
        framework = None if owner is None else machine.framework(owner)
        if isinstance(framework, Absent):
            continue
        if isinstance(framework, Unknown):
            yield Gap(f"whether {variable.name} matters here: {framework.reason}")
            continue
        yield _finding(variable, owner or MACHINE)


def _finding(variable: Variable, subject: str) -> Finding:
    return CAUSE.finding(
        subject=subject,
        message=f"{variable.name}={variable.value} does not have the intended effect: "
        f"{variable.problem}",
        evidence=(Evidence("machine", f"environment variable {variable.name}", variable.problem),),
        remedies=(_mend(variable),),
    )


_WORDS = ("environ", "putenv")
_MAY_SET = late(
    r"putenv|environ\b(?!\.(?:get|items|copy|keys|values|pop)\b)"
    r"(?!\[[^\]\n]{0,200}\](?!\s{0,9}(?:[|+]?=(?!=)|[,)\]])))"
)
"""Not where a variable is only read."""


@CAUSE.on_code(*_WORDS, possible=has_line(_WORDS, _MAY_SET))
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    set_names = {setting.path for setting in program.settings()}
    for setting in program.settings():
        if setting.unset:
            continue
        meant = meant_name(setting.path)
        value = text_of(setting.value)
        problem = value_problem(setting.path, value, set_names) if value else ""
        if meant and meant not in set_names:
            if _is_read(program, setting.path):
                continue
            yield CAUSE.in_code(
                program,
                setting.node,
                subject=_owner(meant) or MACHINE,
                message=f"nothing reads {setting.path!r}; the variable is called {meant}",
                fix=f"Write {meant}.",
            )
        elif problem:
            yield CAUSE.in_code(
                program,
                setting.node,
                subject=_owner(setting.path) or MACHINE,
                message=f"{setting.path} does not have the intended effect: {problem}",
                fix="Correct the value, or remove the line.",
            )


def _is_read(program: Program, name: str) -> bool:
    """The program itself names it again, other than to set it."""
    written = program.text.count(f'"{name}"') + program.text.count(f"'{name}'")
    return written > sum(setting.path == name for setting in program.settings())


def _owner(variable: str) -> FrameworkName | None:
    return next((name for start, name in _OWNERS if variable.startswith(start)), None)


_FLAG_VARIABLES = ("XLA_FLAGS", "TF_XLA_FLAGS")
_FLAG = late(r"--(?P<name>\w{3,80})")


def _mend(variable: Variable) -> Remedy:
    """Of several flags only those that the problem names are wrong; the others stay."""
    flags = variable.value.split()
    wrong = [flag for flag in flags if flag.partition("=")[0] in variable.problem]
    rest = [flag for flag in flags if flag not in wrong]
    if variable.name in _FLAG_VARIABLES and wrong and rest:
        text = f"Correct or remove {and_list(wrong)}, and keep the other flags."
        return Remedy(text, SetVariable(variable.name, " ".join(rest)))
    return Remedy("Correct the value, or unset it.", UnsetVariable((variable.name,)))


def _without_flags(variable: str, flags: str) -> Remedy:
    """Remove the unknown flags from the variable, whose other flags the log does not show."""
    names = [match["name"] for match in _FLAG.finditer(flags)]
    if not names:
        return Remedy(f"Remove the flag from {variable}.")
    return Remedy(
        f"Remove {and_list([f'--{name}' for name in names])} from {variable}, and keep its other "
        "flags.",
        Steps(tuple(_without_flag(variable, name) for name in names)),
    )


def _without_flag(variable: str, flag: str) -> Script:
    return shell_script(
        "export ",
        a_name(variable),
        '="$(printf %s "$',
        a_name(variable),
        "\" | sed -E 's/--",
        a_name(flag),
        "(=[^ ]*)?( |$)//')\"",
    )


_UNKNOWN_FLAGS = late(
    r"Unknown (?:command line )?flags? in (?P<name>(?:TF_)?XLA_FLAGS): ?(?P<flags>[^\n]{0,200})"
)


_NOT_PARSED = late(
    r"The (?P<name>TF_[A-Z_]{3,60}) environment variable is set but could not be parsed: "
    r"\"(?P<value>[^\"\n]{0,60})\"\. Valid values are (?P<valid>[^.\n]{1,80})"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    ignored = log.first(_NOT_PARSED)
    if ignored is not None:
        variable, value, valid = (ignored.groups[key] or "" for key in ("name", "value", "valid"))
        yield CAUSE.finding(
            subject=subject_of(log),
            message=f"TensorFlow ignores {variable}={value}: valid values are {valid}",
            evidence=log.evidence(ignored.line),
            remedies=(Remedy(f"Set it to {valid}, or unset it.", UnsetVariable((variable,))),),
        )
    match = log.first(_UNKNOWN_FLAGS)
    if match is None:
        return
    name = match.groups["name"]
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{name} contains a flag that this version of XLA does not know, and XLA ends the "
        f"program: {(match.groups['flags'] or '').strip()}",
        evidence=log.evidence(match.line),
        remedies=(_without_flags(name or "", match.groups["flags"] or ""),),
        severity="error",
        effect="broken",
    )


_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    set_names = {setting.name for setting in setup.variables}
    images = [image for image in (setup, setup.image) if image is not None]
    computes = any(image.verdicts or (image.base and image.base.framework) for image in images)
    for setting in setup.variables:
        meant = meant_name(setting.name)
        if meant and meant not in set_names:
            yield CAUSE.in_setup(
                setting.place,
                subject=_owner(meant) or MACHINE,
                message=f"nothing reads {setting.name}; the variable is called {meant}",
                fix=f"Write {meant}.",
                rests_on=("names",),
                edits=_renamed(setting, meant),
            )
        elif setting.known and (setting.name != _CAPABILITIES or computes):
            if _hides_all_gpus(setting) and not setup.given:
                # CUDA ignores the value, and hides all GPUs: nothing here says that it should not.
                continue
            problem = value_problem(setting.name, setting.known, set_names)
            if problem:
                yield CAUSE.in_setup(
                    setting.place,
                    subject=_owner(setting.name) or MACHINE,
                    message=f"{setting.name} does not have the intended effect: {problem}",
                    fix="Write compute,utility."
                    if setting.name == _CAPABILITIES
                    else "Correct the value, or remove the line.",
                    rests_on=(),
                    edits=_with_compute(setting),
                )


def _hides_all_gpus(setting: VariableSetting) -> bool:
    """CUDA_VISIBLE_DEVICES="" in a list of compose, where the quotes belong to the value."""
    value = (setting.known or "").strip().strip("\"'").lower()
    return setting.name == "CUDA_VISIBLE_DEVICES" and value in ("", "none", "cpu", "void")


def _renamed(setting: VariableSetting, name: str) -> tuple[LineEdit, ...]:
    if setting.place.text.count(setting.name) != 1:
        return ()
    return (LineEdit(setting.place, setting.place.text.replace(setting.name, name)),)


def _with_compute(setting: VariableSetting) -> tuple[LineEdit, ...]:
    """NVIDIA_DRIVER_CAPABILITIES=utility -> compute,utility"""
    text, value = setting.place.text, setting.value or ""
    if setting.name != _CAPABILITIES or text.count(value) != 1:
        return ()
    return (LineEdit(setting.place, text.replace(value, f"compute,{value}")),)
