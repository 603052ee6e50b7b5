"""An environment variable hides every GPU from programs.

## Why it happens

CUDA_VISIBLE_DEVICES lists the GPUs that a program may see. An empty value, -1 or a number that does
not exist hides all of them. If a GPU is listed twice, CUDA does not start. The variable is often
left over: exported in a shell profile, set by a launcher for a machine with more GPUs, or set by a
scheduler for a job that requested none. ROCm builds read HIP_VISIBLE_DEVICES and
ROCR_VISIBLE_DEVICES in the same way.

NVIDIA_VISIBLE_DEVICES is read once, when a container starts: `none` and `void` pass in no GPU.
Setting it inside the container has no effect.

## What it looks like

Nothing fails: the list of GPUs is empty and everything runs on the CPU. TensorFlow and JAX print
`CUDA_ERROR_NO_DEVICE`; PyTorch prints "No CUDA GPUs are available".

## Fix

Unset the variable, or set it to GPUs that exist. If you hid the GPU on purpose, nothing is wrong.

## Fires on (machine)

```toml
[environment.visible_gpus]
text = ""
visible = []
ignored = []
```

A number that does not exist on this machine.

```toml
[environment.visible_gpus]
text = "3"
visible = []
ignored = [{text = "3", reason = "there is no GPU 3: this machine has one GPU, number 0"}]
```

A container that was started with NVIDIA_VISIBLE_DEVICES=none.

```toml
[driver]
gpus = []
device_nodes = [{path = "/dev/nvidiactl", mode = "crw-rw-rw-", group = "root", usable = true}]
[system.container]
runtime = "docker"
driver_mounts = ["/dev/nvidiactl"]
[environment.variables.NVIDIA_VISIBLE_DEVICES]
value = "none"
```

An unknown value in CUDA_DEVICE_ORDER hides all GPUs as well.

```toml
[environment.variables.CUDA_DEVICE_ORDER]
value = "pci_bus_id"
```

## Quiet on (machine)

```toml
[environment.variables.CUDA_DEVICE_ORDER]
value = "PCI_BUS_ID"
```

```toml
[environment.visible_gpus]
text = "0"
visible = [0]
ignored = []
```

Hiding GPUs that do not exist does no harm.

```toml
start = "no-gpu"
[environment.visible_gpus]
text = "-1"
visible = []
ignored = []
```

## Cannot tell on (machine)

```toml
[environment.visible_gpus]
text = "1"
visible = {unknown = "the GPUs are unlike, and CUDA numbers them by speed"}
ignored = []
```

## Fires on (log)

TensorFlow reports it directly.

```
E0000 00:00:1741000000.123456   77 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
I0000 00:00:1741000000.123460   77 cuda_diagnostics.cc:158] env: CUDA_VISIBLE_DEVICES="9"
I0000 00:00:1741000000.123470   77 cuda_diagnostics.cc:190] libcuda reported version is: 560.35.3
I0000 00:00:1741000000.123480   77 cuda_diagnostics.cc:194] kernel reported version is: 560.35.3
I0000 00:00:1741000000.123490   77 cuda_diagnostics.cc:284] kernel version seems to match DSO: 560.35.3
```

JAX has the plugin and the driver, but may see no GPU; its last sentence misleads.

```
RuntimeError: jaxlib/cuda/versions_helpers.cc:135: operation cuInit(0) failed: CUDA_ERROR_NO_DEVICE
WARNING:jax._src.xla_bridge:An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.
```

```
$ CUDA_VISIBLE_DEVICES=3 python train.py
  File "/opt/conda/lib/python3.10/site-packages/torch/cuda/__init__.py", line 247, in _lazy_init
    torch._C._cuda_init()
RuntimeError: No CUDA GPUs are available
```

## Quiet on (log)

There is no driver, so there is nothing to hide.

```
E tensorflow/stream_executor/cuda/cuda_driver.cc:318] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:156] kernel driver does not appear to be running on this host (box): /proc/driver/nvidia/version does not exist
```

The GPU is hidden on purpose, and the program works.

```
>>> os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
2021-01-01 10:00:00.000001: E tensorflow/stream_executor/cuda/cuda_driver.cc:328] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
Epoch 1/5 loss: 0.3211
```

## Fires on (code)

```python
import os
import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
```

A machine with three or fewer GPUs has no GPU of this number, and then the program has none.

```python
import os
import tensorflow as tf

def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = "3"
    train()
```

## Quiet on (code)

CUDA stops at the first number that does not exist.

```python
import os
import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
```

```python
import os
import torch

if options.cpu:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
```

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
ENV CUDA_VISIBLE_DEVICES=-1
```

The container has one GPU, and that is number 0.

```
==> pod.yaml <==
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - name: main
      image: example/train:1
      env:
        - name: CUDA_VISIBLE_DEVICES
          value: "2"
      resources:
        limits:
          nvidia.com/gpu: 1
```

```
==> pod.yaml <==
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - name: main
      image: example/train:1
      env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}]
      resources:
        limits:
          nvidia.com/gpu: 1
```

```
==> train.sh <==
#!/bin/bash
#SBATCH --gres=gpu:2
export CUDA_VISIBLE_DEVICES=2,3
python train.py
```

## Quiet on (setup)

```
==> train.sh <==
#!/bin/bash
#SBATCH --gres=gpu:2
export CUDA_VISIBLE_DEVICES=0,1
python train.py
```

```
==> compose.yaml <==
services:
  web:
    image: example/web
    environment:
      CUDA_VISIBLE_DEVICES: ""
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>
- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html>
- <https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.container_advice import runtime_of
from whygpu.causes.evidence.cuda_start_suspects import suspected
from whygpu.causes.evidence.device_code import text_of
from whygpu.causes.evidence.driver_state import CONSEQUENCES, withheld_at_start
from whygpu.causes.evidence.log_cuda_start import story_of
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.runtime_starts import MOMENTS
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.deployment import Question, Setup, SetupFinding, VariableSetting
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.environment import GpuSelection
from whygpu.model.events import Setting
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, Observed, Unknown, need
from whygpu.model.program import Program, asks_for_main
from whygpu.model.remedy import (
    SetVariable,
    UnsetVariable,
    command_line,
    set_variables,
    shell_script,
)
from whygpu.model.snapshot import Snapshot
from whygpu.tables.variable_moments import ROWS

CAUSE = cause("WG401", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)

_ROCM_VARIABLES = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_HIDES_ALL = ("", "-1")
_DEVICE_ORDERS = ("FASTEST_FIRST", "PCI_BUS_ID")
"""The driver accepts exactly these two values. Any other makes cuInit fail with code 101
(measured on an NVIDIA H200, driver 580.159.04)."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    yield from _rocm(machine)
    gpu = nvidia_gpu(machine)
    need(gpu)
    withheld = withheld_at_start(machine)
    if withheld is not None:
        yield _withheld(machine, withheld, gpu)
    order = machine.environment.get("CUDA_DEVICE_ORDER")
    if isinstance(order, Known) and order.value not in _DEVICE_ORDERS:
        yield _no_order(order, gpu)
    selection = machine.environment.visible_gpus
    if isinstance(selection, Unknown):
        yield Gap(f"which GPUs CUDA_VISIBLE_DEVICES leaves visible: {selection.reason}")
    elif isinstance(selection, Known):
        visible = selection.value.visible
        if isinstance(visible, Unknown):
            shown = f"CUDA_VISIBLE_DEVICES={selection.value.text}"
            yield Gap(f"which GPUs {shown} leaves visible: {visible.reason}")
        elif isinstance(visible, Known) and not visible.value and not _nothing_to_hide(machine):
            yield _hidden(selection, gpu)


def _nothing_to_hide(machine: Snapshot) -> bool:
    """The driver itself has no GPU: then every entry is wrong, but not the reason."""
    gpus = machine.driver.gpus
    return isinstance(gpus, Known) and not gpus.value


def _hidden(selection: Known[GpuSelection], gpu: Observed[str]) -> Finding:
    chosen = selection.value
    why = _why(chosen)
    return CAUSE.finding(
        subject=MACHINE,
        message=f'CUDA_VISIBLE_DEVICES="{chosen.text}" hides every GPU from CUDA programs{why}',
        evidence=(
            seen(selection, f'"{chosen.text}"'),
            *(
                Evidence("machine", selection.source, f"{entry.text!r}: {entry.reason}")
                for entry in chosen.ignored
            ),
            seen(gpu),
        ),
        remedies=(
            Remedy("Show every GPU.", UnsetVariable(("CUDA_VISIBLE_DEVICES",))),
            Remedy(
                "Or list GPUs that exist; in bus order they have the numbers of nvidia-smi.",
                set_variables(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES="0"),
            ),
            Remedy(
                "If every new shell sets it again, find the place. In a job of a scheduler, "
                "request a GPU instead.",
                shell_script(
                    "grep -n CUDA_VISIBLE_DEVICES ~/.bashrc ~/.profile /etc/environment "
                    "/etc/profile.d/* 2>/dev/null"
                ),
            ),
        ),
    )


def _why(selection: GpuSelection) -> str:
    if not selection.ignored:
        return ""
    first = selection.ignored[0]
    return f": the entry {first.text!r} cannot be used ({first.reason})"


def _no_order(order: Known[str], gpu: Observed[str]) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message=f'CUDA_DEVICE_ORDER="{order.value}" is not an order that CUDA knows '
        f"({' and '.join(_DEVICE_ORDERS)}, in capitals): the driver then refuses to start, and "
        "programs see no GPU",
        evidence=(seen(order, f'"{order.value}"'), seen(gpu)),
        remedies=(
            Remedy(
                "Number the GPUs as nvidia-smi does.",
                SetVariable("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
            ),
            Remedy("Or use CUDA's default order.", UnsetVariable(("CUDA_DEVICE_ORDER",))),
        ),
    )


_WITH_GPUS = {
    "docker": command_line("docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all ..."),
    "podman": command_line("podman run --device nvidia.com/gpu=all ..."),
    "containerd": command_line("nerdctl run --gpus all ..."),
}


def _withheld(machine: Snapshot, value: Known[str], gpu: Observed[str]) -> Finding:
    runtime = runtime_of(machine)
    return CAUSE.finding(
        subject=MACHINE,
        message=f'this container was started with NVIDIA_VISIBLE_DEVICES="{value.value}", which '
        "passes in no GPU, although the host has one",
        evidence=(seen(value, f'"{value.value}"'), seen(gpu)),
        remedies=(
            Remedy(
                "Request a GPU in the pod: resources: {limits: {nvidia.com/gpu: 1}}. The variable "
                "has no effect later."
                if runtime == "kubernetes"
                else "Start the container with GPUs; the variable has no effect later.",
                _WITH_GPUS.get(runtime or ""),
            ),
        ),
        confidence="likely",
    )


def _rocm(machine: Snapshot) -> Iterator[Finding | Gap]:
    """The same for AMD GPUs, for frameworks that were built for them."""
    graphics = machine.graphics
    if not isinstance(graphics, Known) or all(item.vendor != "amd" for item in graphics.value):
        return
    for framework in need(machine.target.frameworks):
        if not isinstance(framework.build.kind, Known) or framework.build.kind.value != "rocm":
            continue
        for name in _ROCM_VARIABLES:
            value = machine.environment.get(name)
            if isinstance(value, Known) and value.value.strip() in _HIDES_ALL:
                yield CAUSE.finding(
                    subject=framework.name,
                    message=f'{name}="{value.value}" hides every AMD GPU from '
                    f"{display_name(framework.name)} {framework.version}",
                    evidence=(seen(value, f'"{value.value}"'), seen(framework.build.kind)),
                    remedies=(Remedy("Show every GPU.", UnsetVariable((name,))),),
                )


_SWITCHED_OFF = late(r"CUDA disabled by user|due to setting NUMBA_DISABLE_CUDA=1")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    switched_off = log.first(_SWITCHED_OFF)
    if switched_off is not None:
        yield CAUSE.finding(
            subject=subject_of(log),
            message="NUMBA_DISABLE_CUDA is set, so Numba does not use the GPU",
            evidence=log.evidence(switched_off.line),
            remedies=(Remedy("Unset it.", UnsetVariable(("NUMBA_DISABLE_CUDA",))),),
            effect="broken",
        )
        return
    suspect = suspected(log, CAUSE.slug)
    if suspect is None:
        return
    setting = story_of(log).setting
    shown = f"CUDA_VISIBLE_DEVICES is {setting[1]!r} there, and " if setting else ""
    driver = log.version_of("kernel-module") or log.version_of("driver")
    works = f"the NVIDIA driver {driver} runs, but it" if driver else "the driver"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{shown}{works} shows this process no GPU: CUDA_VISIBLE_DEVICES, or an option "
        "that sets it, hides all GPUs or names one that does not exist",
        evidence=log.evidence(*suspect.lines),
        remedies=(
            Remedy(
                "Check its value and which GPUs there are; they are numbered from 0.",
                shell_script('echo "$CUDA_VISIBLE_DEVICES"; nvidia-smi -L'),
            ),
            Remedy(
                "Unset it, or name a GPU that exists. Look for it in the program and its options "
                "as well (os.environ, --gpu, gputouse, the launcher, the scheduler).",
                UnsetVariable(("CUDA_VISIBLE_DEVICES",)),
            ),
            Remedy(
                "Under Ray, give the task or actor a GPU: num_gpus=1. Under Slurm, --gres=gpu:1."
            ),
        ),
        confidence=suspect.confidence,
        severity=suspect.severity,
        effect="broken" if suspect.severity == "error" else "cpu",
        ask=suspect.ask,
    )


_SETS = "CUDA_VISIBLE_DEVICES"
_NUMBER = late(r"[1-9][0-9]{0,8}")
"""The number of a GPU that a machine with GPUs may not have: not 0."""
_FRAMEWORKS = frozenset({"torch", "tensorflow", "keras", "jax"})


@CAUSE.on_code(_SETS, needs=("environ", "putenv"))
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    """A note: whether the author means it is not in the program, but it decides for everybody."""
    settings = [each for each in program.settings() if each.path == _SETS]
    if program.imports.isdisjoint(_FRAMEWORKS):
        return
    if len({program.place(each.node) for each in settings}) != 1:
        return
    for setting in settings:
        value = text_of(setting.value)
        if value is None or setting.default or setting.unset or _is_chosen(setting):
            continue
        if _is_too_late(program, setting):
            continue
        first = value.split(",")[0].strip()
        if first in _HIDES_ALL:
            effect = "hides every GPU from this program: it computes on the CPU"
        elif _NUMBER.fullmatch(first):
            effect = (
                f"hides every GPU on a machine with {'one' if first == '1' else f'{first} or fewer'}"
                ", where the program then computes on the CPU"
            )
        else:
            continue
        yield CAUSE.in_code(
            program,
            setting.node,
            subject=MACHINE,
            message=f'CUDA_VISIBLE_DEVICES="{value}" {effect}',
            fix="Remove the line, and set the variable in the shell that starts the program.",
            severity="info",
        )
        return


def _is_chosen(setting: Setting) -> bool:
    """An option or a condition decides."""
    return any(
        frame.kind in ("if", "case", "handler") and not asks_for_main(frame)
        for frame in setting.context
    )


def _is_too_late(program: Program, setting: Setting) -> bool:
    """variable-set-too-late reports it, and nothing is hidden."""
    return any(
        program.surely_before(start, setting)
        for row in ROWS
        if row.variable == _SETS
        for start in MOMENTS[row.moment](program)
    )


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    yield from _withheld_from_pod(setup)
    for_gpu = (setup.for_gpu or setup.given) and not setup.for_cpu
    settings = _settings(setup.variables)
    if not settings and setup.image is not None and setup.given:
        settings = _settings(setup.image.variables)
    values = {each.known for each in settings}
    if not for_gpu or len(values) != 1 or None in values:
        # A script that sets it several times does different things with it.
        return
    setting = settings[-1]
    value = (setting.value or "").strip()
    counts = [grant.gpus for grant in setup.given]
    count = sum(each for each in counts if each) if counts and None not in counts else None
    numbers = [int(entry) for entry in value.split(",") if entry.strip().isdecimal()]
    rests_on: tuple[Question, ...] = ("purpose",)
    if setting.value is not None and value in _HIDES_ALL:
        why = "hides all GPUs from CUDA"
    elif count and numbers and max(numbers) >= count:
        gpus = "one GPU, number 0" if count == 1 else f"{count} GPUs, numbers 0 to {count - 1}"
        why = f"names a GPU that is not there: {setup.title} gets {gpus}"
        rests_on = ("numbers",)
    else:
        return
    # An image may be for both. Then this is only its default, which a user can change.
    default = "" if setup.given else ", unless the container is started with another value"
    yield CAUSE.in_setup(
        setting.place,
        subject=MACHINE,
        message=f"CUDA_VISIBLE_DEVICES={value} {why}{default}",
        fix="Remove the line: a container or job sees only the GPUs that it asks for.",
        rests_on=rests_on,
        confidence="likely",
        severity="info" if default else "warning",
    )


def _withheld_from_pod(setup: Setup) -> Iterator[SetupFinding]:
    """For a service, Docker writes the variable itself if the service reserves GPUs."""
    for setting in setup.variables if setup.kind == "pod" and setup.given else ():
        if setting.name == "NVIDIA_VISIBLE_DEVICES" and setting.known in ("none", "void"):
            yield CAUSE.in_setup(
                setting.place,
                subject=MACHINE,
                message=f"NVIDIA_VISIBLE_DEVICES={setting.known} takes the GPUs away that "
                f"{setup.title} asks for, where NVIDIA's runtime reads this variable",
                fix="Remove it: the device plugin sets it.",
                rests_on=(),
                confidence="possible",
                severity="info",
            )


def _settings(variables: Sequence[VariableSetting]) -> list[VariableSetting]:
    return [each for each in variables if each.name == "CUDA_VISIBLE_DEVICES"]
