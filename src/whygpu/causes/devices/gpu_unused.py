"""The machine has a GPU, but the framework did not use it when it was run.

## Why it happens

This is the consequence of other causes. If one of them is found, this finding is shown below it. If
it is the only finding, whygpu saw that the GPU is not used but does not know the reason. The lines
that the framework printed are then the best evidence.

## What it looks like

The framework lists no GPU, or lists one and fails when it computes on it.

## Fix

Read the quoted lines. TensorFlow prints the names of missing libraries only on request:
`TF_CPP_VMODULE=dso_loader=1`.

## Fires on (machine)

```toml
only = ["torch"]
[probes.torch]
devices = [{name = "cpu", kind = "cpu", description = ""}]
operations = [
    {operation = "matmul", requested = "cpu", ran_on = "cpu", kind = "cpu", correct = true},
]
facts = [["torch.cuda.init", "failed: RuntimeError: No CUDA GPUs are available"]]
```

The GPU is listed, but operations on it fail.

```toml
only = ["jax"]
[[probes]]
name = "jax"
devices = [{name = "cuda:0", kind = "gpu", description = "NVIDIA RTX A6000"}]
[[probes.operations]]
operation = "matmul"
requested = "cuda:0"
ran_on = {unknown = "XlaRuntimeError: INTERNAL: no kernel image is available"}
kind = "gpu"
correct = {unknown = "XlaRuntimeError: INTERNAL: no kernel image is available"}
```

## Quiet on (machine)

```toml
start = "no-gpu"
```

If the import of a framework fails, another cause reports it.

```toml
only = ["torch"]
[probes.torch]
ended = "exception"
how = "ImportError: libtorch_cuda.so: undefined symbol"
stage = "import"
devices = {absent = "devices"}
operations = []
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
```

## Fires on (log)

A GPU was found, but every operation runs on the CPU.

```
2019-04-02 10:00:00.000001: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1053] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7439 MB memory) -> physical GPU (device: 0, name: GeForce GTX 1080, pci bus id: 0000:01:00.0, compute capability: 6.1)
MatMul: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0
a: (Const): /job:localhost/replica:0/task:0/device:CPU:0
```

```
Device mapping: no known devices.
MatMul: (MatMul): /job:localhost/replica:0/task:0/cpu:0
```

## Quiet on (log)

```
Device mapping:
/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: Tesla K80, pci bus id: 0000:00:1e.0, compute capability: 3.7
MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0
```

## Sources

- <https://www.tensorflow.org/guide/gpu>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
- <https://docs.jax.dev/en/latest/installation.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.log_cuda_start import lines_with
from whygpu.causes.evidence.log_subjects import framework_title, subject_of
from whygpu.causes.evidence.probe_ends import GPU_USERS, imported
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, gpu_for, gpu_proven_by, usable_gpu
from whygpu.model.finding import Effect, Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.outside_text import excerpt
from whygpu.model.probe import Probe, ProbeName, ProbeOperation
from whygpu.model.remedy import PYTHON, Action, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import BuildKind
from whygpu.model.units import logged_size
from whygpu.tables.gpu_vocabulary import message_is_about_gpu

CAUSE = cause("WG404", __name__, __doc__, severity="error", effect="cpu")

_NOISE = late(
    r"register(?:ing)? \w+ factory|cpu_feature_guard|InitializeLog|oneDNN|NUMA|TF-TRT|"
    r"computation_placer",
    re.IGNORECASE,
)
_RELEVANT_FACTS = ("warning", "torch.cuda.init", "backend message")
_LINES = 5


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(usable_gpu(machine))
    for name in GPU_USERS:
        framework = machine.framework(name)
        if isinstance(framework, Absent):
            continue
        if isinstance(framework, Known) and isinstance(gpu_for(machine, framework.value), Absent):
            # The GPU is of another maker than this build is for: non-nvidia-backend.
            continue
        probe = machine.probe(name)
        if isinstance(probe, Unknown):
            yield Gap(probe.reason)
        elif isinstance(probe, Known):
            kind = framework.value.build.kind if isinstance(framework, Known) else framework
            yield from _judge(probe.value, kind.value if isinstance(kind, Known) else None)


def _judge(probe: Probe, kind: BuildKind | None) -> Iterator[Finding | Gap]:
    if probe.ended == "exception" and imported(probe):
        what = f"{_title(probe)} imports, but fails at {probe.stage}: {excerpt(probe.how)}"
        yield _finding(probe, what, "broken", kind)
        return
    if probe.ended != "finished" or gpu_proven_by(probe):
        return
    on_gpu = [operation for operation in probe.operations if operation.kind == "gpu"]
    failed = [operation for operation in on_gpu if isinstance(operation.ran_on, Unknown)]
    if failed:
        yield _finding(probe, _failure(probe, failed[0]), "broken", kind)
    elif on_gpu:
        # It computed there, but wrongly: wrong-results-on-gpu.
        return
    elif isinstance(probe.devices, Unknown):
        yield Gap(f"which devices {display_name(probe.name)} has: {probe.devices.reason}")
    else:
        yield _finding(
            probe,
            f"{_title(probe)} lists no GPU and computes on the CPU, although this machine has one",
            "cpu",
            kind,
        )


def _title(probe: Probe) -> str:
    version = f" {probe.version.value}" if isinstance(probe.version, Known) else ""
    return f"{display_name(probe.name)}{version}"


def _failure(probe: Probe, operation: ProbeOperation) -> str:
    reason = operation.ran_on.reason if isinstance(operation.ran_on, Unknown) else "no reason"
    return (
        f"{_title(probe)} lists {operation.requested}, but a {operation.operation} on it fails: "
        f"{reason}"
    )


def _finding(probe: Probe, what: str, effect: Effect, kind: BuildKind | None) -> Finding:
    name = display_name(probe.name)
    return CAUSE.finding(
        subject=probe.name,
        message=f"{what}; if no other finding explains it, the reason is unknown",
        evidence=tuple(_trace(probe)) or (Evidence("probe", f"{name} probe", what),),
        remedies=_remedies(probe, kind),
        effect=effect,
    )


def _trace(probe: Probe) -> Iterator[Evidence]:
    """Messages of the framework that may be relevant."""
    name = display_name(probe.name)
    facts = [text for key, text in probe.facts if key in _RELEVANT_FACTS]
    about_gpu = filter(message_is_about_gpu, probe.log)
    printed = [line for line in about_gpu if not _NOISE.search(line)]
    for line in list(dict.fromkeys(facts + printed))[:_LINES]:
        yield Evidence("probe", f"{name} probe", line)


_QUESTIONS: dict[tuple[ProbeName, BuildKind | None], Action] = {
    ("tensorflow", None): shell_script(
        "TF_CPP_VMODULE=dso_loader=1,gpu_device=1 ",
        PYTHON,
        " -c 'import tensorflow as tf; tf.config.list_physical_devices()'",
    ),
    ("torch", None): shell_script(PYTHON, " -c 'import torch; torch.cuda.init()'"),
    ("torch", "xpu"): shell_script(PYTHON, " -c 'import torch; torch.xpu.init()'"),
    ("jax", None): shell_script(
        "JAX_PLATFORMS=cuda ", PYTHON, " -c 'import jax; print(jax.devices())'"
    ),
    ("jax", "rocm"): shell_script(
        "JAX_PLATFORMS=rocm ", PYTHON, " -c 'import jax; print(jax.devices())'"
    ),
}
"""What makes a framework say why it has no GPU; None for any other build."""


def _remedies(probe: Probe, kind: BuildKind | None) -> tuple[Remedy, ...]:
    action = _QUESTIONS.get((probe.name, kind)) or _QUESTIONS[probe.name, None]
    return (Remedy(f"Make {display_name(probe.name)} print the reason.", action),)


_PLACED = late(
    r"\((?P<op>MatMul|Conv2D|Conv2DBackpropInput|BatchMatMul\w{0,4}|Add\w{0,3}|Mul|MaxPool"
    r"|FusedBatchNorm\w{0,2})\)\)?: ?"
    r"/job:\S{1,60}/(?:device:)?(?P<kind>[A-Za-z_]{3,8}):\d"
    r"|Executing op (?P<eager>MatMul|Conv2D|Add\w{0,3}|Mul"
    r"|MaxPool) in device \S{1,80}device:(?P<where>[A-Z_]{3,8}):\d"
)
_NO_DEVICES = late(r"Device mapping: no known devices")
_CPU_IS_A_GPU = late(r"device:CPU:\d -> device: \d+, name: ")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    yield from _not_requested(log)
    yield from _misplaced(log)


_ON_PURPOSE = late(
    r"test session starts|^=+ (?:\d+ \w+, )*\d+ passed|^collected \d+ items?|^Ran \d+ tests? in "
    r"|::test_\w{1,80}(?:\[[^\]\n]{0,80}\])? PASSED"
    r"|accelerator ?= ?['\"]?cpu\b|--(?:device|accelerator)[ =]cpu\b",
    re.MULTILINE,
)
"""Tests use the CPU so that they run anywhere; other programs are told to."""


def _not_requested(log: Log) -> Iterator[Finding]:
    """The program reports that there is a GPU, and that it uses the CPU."""
    reports = log.without_gpu()
    unused = [report.line for report in reports if report.says == "gpu-unused"]
    # A list without a GPU is of another process than a list with one.
    on_cpu = [
        report.line
        for report in reports
        if report.says == "on-cpu" and "physical_device:CPU" not in log.line(report.line).text
    ]
    there = [report.line for report in log.reports if report.says == "gpu"]
    if not unused and not (on_cpu and there):
        return
    layers = [line for line in on_cpu if _NO_LAYERS.search(log.line(line).text)]
    if layers:
        yield _without_layers(log, (*there[:2], *layers[:2]))
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message="the program sees a GPU but does not use it, because it was not told to",
        evidence=log.evidence(*(unused[:4] or (*there[:2], *on_cpu[:2]))),
        remedies=(
            Remedy(
                "Select the GPU where the program chooses its device: Trainer(accelerator='gpu', "
                "devices=1) in Lightning, .to('cuda') in PyTorch, or the program's own option for "
                "the device."
            ),
            Remedy("Check whether the GPU works on this machine.", command_line("whygpu check")),
        ),
        confidence="likely",
        severity="info" if log.says(_ON_PURPOSE) else "warning",
        ask="Which device do the program's options or configuration name?",
    )


_OFFERED = late(
    r"memory\.available=\"\[(?P<free>[\d.]{1,8} [KMG]iB)\]\"[^\n]{0,200}"
    r"memory\.required\.full=\"(?P<needed>[\d.]{1,8} [KMG]iB)\""
)
"""Ollama writes what is free on its only GPU, and what the whole model needs."""
_NO_LAYERS = late(r"\boffloaded 0/\d{1,4} layers")


def _without_layers(log: Log, lines: tuple[int, ...]) -> Finding:
    """llama.cpp and programs around it decide themselves how much of a model the GPU gets."""
    offered = log.first(_OFFERED)
    if offered is not None and _too_little(offered):
        return _without_room(log, lines, offered)
    return CAUSE.finding(
        subject=subject_of(log),
        message="the program sees a GPU, but keeps all layers of the model on the CPU: its part for "
        "the GPU was not loaded, the GPU's memory did not suffice, or it was told to",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy(
                "Look for the part for the GPU (libggml-cuda, libggml-hip) beside the program's "
                "other libraries; the log names each part that it loads."
            ),
            Remedy(
                "Check the number of layers that it was told to put on the GPU: num_gpu for Ollama, "
                "-ngl (--n-gpu-layers) for llama.cpp."
            ),
        ),
        confidence="possible",
        ask="Does the log have a line 'load_backend: loaded CUDA backend'? If not, that part is "
        "missing or does not fit the driver.",
    )


def _too_little(offered: Match) -> bool:
    free, needed = (_bytes(offered.groups[name] or "") for name in ("free", "needed"))
    return free is not None and needed is not None and free < needed


def _bytes(text: str) -> int | None:
    number, _, unit = text.partition(" ")
    return logged_size(number, unit)


def _without_room(log: Log, lines: tuple[int, ...], offered: Match) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"the program keeps all layers of the model on the CPU, because {offered.groups['free']} "
        f"of the GPU's memory were free and the model needs {offered.groups['needed']}",
        evidence=log.evidence(offered.line, *lines),
        remedies=(
            Remedy(
                "Check which processes hold the memory, and end those that are not needed.",
                command_line("nvidia-smi"),
            ),
            Remedy("If the GPU is too small, use a smaller or more strongly quantized model."),
        ),
        confidence="likely",
        ask="Does another program hold the rest (`nvidia-smi`)?",
        kind_of="oom-other-process",
    )


def _misplaced(log: Log) -> Iterator[Finding]:
    """TensorFlow operations that were placed on the CPU."""
    placed = list(log.find(_PLACED))
    on_gpu = [m for m in placed if (m.groups["kind"] or m.groups["where"] or "").upper() == "GPU"]
    if on_gpu:
        return
    mapped = lines_with(log, _CPU_IS_A_GPU)
    ready = [device for device in log.devices if device.event == "ready"]
    unknown = lines_with(log, _NO_DEVICES)
    if ready and (placed or mapped):
        lines = (ready[0].line, *mapped, *(m.line for m in placed[:4]))
        name = ready[0].name or "its name is cut off"
        message = f"the GPU was found ({name}), but the operations ran on the CPU"
    elif unknown:
        lines = (*unknown, *(m.line for m in placed[:4]))
        message = f"{framework_title(log)} sees no GPU and computes on the CPU"
    else:
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{message}; the log does not show the reason",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy(
                "If the program has tf.device('/cpu:0') around its operations, that is the "
                "reason; remove it. Operations on strings and integers always run on the CPU."
            ),
            Remedy("Check this machine for the reason.", command_line("whygpu check")),
        ),
        confidence="likely" if ready else "possible",
        severity="warning" if ready else "info",
        ask="Does the program itself select the CPU (tf.device), and which package is installed "
        "(`pip list | grep -i tensorflow`)?",
    )
