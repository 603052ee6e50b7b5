"""The installed framework has no GPU support, but the machine has a GPU.

## Why it happens

A package without GPU code was installed: `tensorflow-cpu`, `jax` without its CUDA plugin, a PyTorch
wheel from the CPU index, `onnxruntime` instead of `onnxruntime-gpu`. No driver, CUDA installation
or setting can make such a build use a GPU.

## What it looks like

Nothing fails. The list of GPUs is empty and everything runs on the CPU.

## Fix

Install the GPU build instead of the CPU build. If the CPU package has another name, uninstall it
first: both packages write to the same folder, and uninstalling one of them later deletes files of
the other.

## Fires on (machine)

```toml
only = ["torch"]
[target.frameworks.torch]
version = "2.8.0+cpu"
[target.frameworks.torch.build]
kind = "cpu"
```

## Quiet on (machine)

On a machine without a GPU, a CPU build is the right one.

```toml
start = "no-gpu"
[target.frameworks.torch.build]
kind = "cpu"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.build]
kind = {unknown = "build_info.py: permission denied"}
```

## Fires on (log)

```
  File "/opt/conda/lib/python3.9/site-packages/torch/cuda/__init__.py", line 211, in _lazy_init
    raise AssertionError("Torch not compiled with CUDA enabled")
AssertionError: Torch not compiled with CUDA enabled
```

```
WARNING:jax._src.xla_bridge:An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.
```

```
ValueError: Specified provider 'CUDAExecutionProvider' is not in available provider names. Available providers: 'AzureExecutionProvider, CPUExecutionProvider'
```

A model that was saved on a GPU is loaded with a PyTorch that has no GPU:

```
RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu')
```

```
DGLError: [10:11:12] /opt/dgl/src/runtime/c_runtime_api.cc:88: Check failed: allow_missing: Device API cuda is not enabled. Please install the cuda version of dgl.
```

## Quiet on (log)

```
Collecting torch==2.1.0+cpu
Successfully installed torch-2.1.0+cpu
epoch 1 loss 0.31
```

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
RUN pip install torch torchvision --index-url https://download.pytorch.org/whl/cpu
```

JAX 0.7 has no extra of this name, and pip only warns of it.

```
==> requirements.txt <==
jax[cuda12_pip]==0.7.0
```

The service gets a GPU, but its image has none of the builds that use it.

```
==> compose.yaml <==
services:
  notebook:
    image: tensorflow/tensorflow:2.15.0-jupyter
    gpus: all
```

```
==> compose.yaml <==
services:
  train:
    build: .
    deploy:
      resources:
        reservations:
          devices:
            - capabilities: [gpu]
==> Dockerfile <==
FROM python:3.11
COPY requirements.txt .
RUN pip install -r requirements.txt
==> requirements.txt <==
tensorflow-cpu==2.15.0
```

## Quiet on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
RUN pip install torch
```

```
==> requirements.txt <==
jax[cuda12_pip]==0.4.20
```

On purpose.

```
==> Dockerfile.cpu <==
FROM python:3.11
RUN pip install torch --index-url https://download.pytorch.org/whl/cpu
```

```
==> requirements.txt <==
--extra-index-url https://download.pytorch.org/whl/cpu
torch==2.1.0+cpu
```

## Sources

- <https://pytorch.org/get-started/locally/>
- <https://docs.jax.dev/en/latest/installation.html>
- <https://www.tensorflow.org/install/pip>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.cpu_build_remedies import remedies_in, remedies_on
from whygpu.causes.evidence.cuda_start_suspects import suspects
from whygpu.causes.evidence.log_cpu_builds import (
    CPU_VERSION,
    FELL_BACK,
    LAYERS_ASKED,
    LAYERS_ON_CPU,
    LOADED_WITHOUT,
    LOOKED_FOR_CUDA,
    NO_GPU_THERE,
    NO_SUCH_EXTRA,
    NOT_AVAILABLE,
    ONLY_CPU,
    PLATFORM_SET,
    TORCH_STARTED_CUDA,
    UNAVAILABLE,
    WITHOUT_GPU,
    asked_for_release,
    framework_of,
    has_none,
    ignores_layers,
    is_for_other_gpus,
    misses_gpu,
    plugin_is_there,
    shown_with_gpu,
    shown_without_gpu,
    silent_session,
    tensorflow_package,
)
from whygpu.causes.evidence.log_extensions import lines_about_extensions
from whygpu.causes.evidence.log_subjects import (
    ended_after,
    excerpt,
    failed_elsewhere,
    framework_title,
    subject_of,
)
from whygpu.causes.evidence.setup_cpu_builds import cpu_builds_in
from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match, Shown
from whygpu.model.observed import Absent, Unknown, need
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG301",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "gpu-unused",
        "gpu-index-unchecked",
        "device-placement-nonexistent",
        "device-placement-no-gpu-kernel",
    ),
)

_OFTEN_FOR_CPU = ("onnxruntime", "cupy", "numba")
"""Often installed for other purposes: a CPU build of these is worth a note, not an error."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    gpu = nvidia_gpu(machine)
    need(gpu)
    for framework in need(machine.target.frameworks):
        kind = framework.build.kind
        if isinstance(kind, Absent):
            continue
        if isinstance(kind, Unknown):
            name = display_name(framework.name)
            yield Gap(f"whether {name} {framework.version} has GPU support: {kind.reason}")
        elif kind.value == "cpu":
            yield CAUSE.finding(
                subject=framework.name,
                message=(
                    f"{display_name(framework.name)} {framework.version} (package "
                    f"{framework.distribution}) is a build without GPU support; it cannot use "
                    "this machine's GPU"
                ),
                evidence=(seen(kind, f"built for {kind.value}"), seen(gpu)),
                remedies=remedies_on(machine, framework),
                severity="info" if framework.name in _OFTEN_FOR_CPU else None,
            )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    elsewhere = lines_about_extensions(log)
    statement = next((m for m in log.find(WITHOUT_GPU) if m.line not in elsewhere), None)
    if plugin_is_there(log) or log.says(LOOKED_FOR_CUDA):
        statement = None
    if log.framework == "torch" and log.says(TORCH_STARTED_CUDA) and log.statuses:
        # PyTorch's statement about CUDA follows from the error that CUDA returned.
        return
    extra = log.first(NO_SUCH_EXTRA)
    version = None if is_for_other_gpus(log) else log.first(CPU_VERSION)
    loaded = log.first(LOADED_WITHOUT)
    fell_back = log.first(FELL_BACK)
    unavailable = log.first(UNAVAILABLE)
    shown = shown_without_gpu(log)
    if statement is not None:
        yield _stated(log, statement, extra)
    elif extra is not None:
        yield _stated(log, extra, extra)
    elif shown:
        yield _shown(log, shown)
    elif loaded is not None:
        yield _loaded(log, loaded, version)
    elif version is not None and (
        log.says(NO_GPU_THERE) or misses_gpu(log) or has_none(log) or asked_for_release(log)
    ):
        yield _stated(log, version, None)
    elif (package := tensorflow_package(log)) and (log.without_gpu() or misses_gpu(log)):
        yield _stated(log, package, None)
    elif version is not None and log.progress and log.without_gpu() and not log.devices:
        yield _worked_without(log, version)
    elif unavailable is not None:
        yield _unavailable(log, unavailable)
    elif (refused := log.first(_NOT_ENABLED)) is not None and log.says(_SINCE_1_15):
        yield _placed_without(log, refused)
    elif (mapped := silent_session(log)) is not None:
        yield _looked_for_none(log, mapped)
    elif (only := log.first(ONLY_CPU)) is not None and not log.says(PLATFORM_SET):
        yield _only_cpu(log, only)
    elif fell_back is not None and not log.statuses:
        yield _fell_back(log, fell_back)
    elif (layers := log.first(LAYERS_ON_CPU)) is not None and ignores_layers(log):
        yield _without_layers(log, layers)
    elif (without := log.first(NOT_AVAILABLE)) is not None and _nothing_else_known(log):
        yield _without(log, without)


def _without_layers(log: Log, layers: Match) -> Finding:
    asked = log.first(LAYERS_ASKED)
    return CAUSE.finding(
        subject=subject_of(log),
        severity="warning",
        message="the program asks for layers on the GPU, and llama.cpp keeps all of them on the "
        "CPU: its build has no GPU code",
        evidence=log.evidence(layers.line, *((asked.line,) if asked else ())),
        remedies=(
            Remedy(
                "Install a build with CUDA; for llama-cpp-python, "
                "https://llama-cpp-python.readthedocs.io/en/latest/ lists the wheels."
            ),
        ),
        confidence="likely",
        ask="Does `llama-cli --list-devices` (or `python -c 'import llama_cpp; "
        "print(llama_cpp.llama_supports_gpu_offload())'`) show a GPU?",
    )


def _stated(log: Log, statement: Match, extra: Match | None) -> Finding:
    framework = framework_of(log, statement)
    log = log._replace(framework=framework)
    what = f"{framework_title(log)} is a build without GPU support"
    if extra is not None:
        what += (
            f", because {extra.groups['package']} has no extra {extra.groups['extra']!r} and pip "
            "ignored it"
        )
    ended = ended_after(log, statement.line)
    unrelated = failed_elsewhere(log, statement.line)
    remark = log.line(statement.line).level == "info" and not ended
    return CAUSE.finding(
        subject=subject_of(log),
        severity="info" if unrelated or remark else None,
        effect="broken" if ended and not unrelated else None,
        message=f"{what}: {excerpt(statement.text)}",
        evidence=log.evidence(
            statement.line,
            *((extra.line,) if extra else ()),
            *(match.line for match in log.find(WITHOUT_GPU)),
            *(() if unrelated else ended),
        ),
        remedies=remedies_in(log),
    )


_ASKED_FOR = {
    "torch-cuda": "torch.version.cuda",
    "torch-built": "torch.backends.cuda.is_built()",
    "tensorflow-built": "tf.test.is_built_with_cuda()",
}
_WHICH_VALUES = (
    "Are these the values of torch.version.cuda and torch.cuda.is_available()? Then this PyTorch is "
    "a build without CUDA."
)


def _shown(log: Log, shown: Sequence[Shown]) -> Finding:
    """Somebody asked for the build, and the log has the answer."""
    first = shown[0]
    framework = "tensorflow" if first.of == "tensorflow-built" else "torch"
    log = log._replace(framework=framework)
    release = next(iter(log.shown_of("torch-version")), None)
    asked = first.asked > 0
    values = f"{_ASKED_FOR[first.of]} is {first.value}"
    lines = {line for seen in shown for line in (seen.asked, seen.line) if line}
    return CAUSE.finding(
        subject=framework,
        message=f"{framework_title(log)} is a build without GPU support: {values}"
        if asked
        else f"the values read like those of PyTorch: {values}, a build without GPU support",
        evidence=log.evidence(*lines, *ended_after(log, first.line)),
        remedies=remedies_in(log),
        confidence="certain" if asked else "likely" if release else "possible",
        ask=None if asked else _WHICH_VALUES,
    )


_NOT_ENABLED = late(r"requested device appears to be a GPU, but CUDA is not enabled")
_SINCE_1_15 = late(
    r"tensorflow_core[/\\]|Detected at node|\bcompat[./\\]v1\b|python[/\\]eager[/\\]"
)


def _placed_without(log: Log, refused: Match) -> Finding:
    """TensorFlow states that its build has no CUDA; before 1.15, builds with CUDA stated it too."""
    return CAUSE.finding(
        subject="tensorflow",
        effect="broken",
        message="the program pins operations to a GPU, but this TensorFlow is a build without GPU "
        "support; it says that CUDA is not enabled",
        evidence=log.evidence(refused.line, *ended_after(log, refused.line)),
        remedies=remedies_in(log._replace(framework="tensorflow")),
        confidence="likely",
        ask="Does `python -c 'import tensorflow as tf; print(tf.test.is_built_with_cuda())'` print "
        "False?",
    )


def _looked_for_none(log: Log, mapped: Match) -> Finding:
    return CAUSE.finding(
        subject="tensorflow",
        message="TensorFlow started a session and did not look for a GPU, about which a build with "
        "GPU support would have written lines: it is a build without",
        evidence=log.evidence(mapped.line),
        remedies=remedies_in(log._replace(framework="tensorflow")),
        confidence="likely",
        ask="Does `python -c 'import tensorflow as tf; print(tf.test.is_built_with_cuda())'` print "
        "False? Otherwise the program itself asks for no GPU (device_count).",
    )


def _worked_without(log: Log, version: Match) -> Finding:
    """Nothing failed: the build may have been chosen on purpose."""
    return CAUSE.finding(
        subject="torch",
        severity="info",
        message=f"PyTorch is a build without GPU support: {excerpt(version.text, 80)}",
        evidence=log.evidence(version.line),
        remedies=remedies_in(log._replace(framework="torch")),
    )


_WHICH_BUILD = (
    "What does `python -c 'import torch; print(torch.__version__, torch.version.cuda)'` print? None: "
    "a build without CUDA. A number: check the driver and the GPU."
)


def _loaded(log: Log, loaded: Match, version: Match | None) -> Finding:
    return CAUSE.finding(
        subject="torch",
        effect="broken",
        message="the file was saved from a GPU, but this PyTorch has no GPU to load it to"
        + (f": {excerpt(version.text, 80)}" if version else ""),
        evidence=log.evidence(
            loaded.line, *((version.line,) if version else ()), *ended_after(log, loaded.line)
        ),
        remedies=(
            Remedy(
                "To continue without a GPU, load it to the CPU: "
                "torch.load(..., map_location='cpu')."
            ),
            *remedies_in(log),
        ),
        confidence="certain" if version else "likely",
        ask=_WHICH_BUILD,
    )


def _unavailable(log: Log, statement: Match) -> Finding:
    """A program reports that torch.cuda.is_available() returned False."""
    return CAUSE.finding(
        subject="torch",
        effect="broken",
        message="the program needs a GPU, but PyTorch reports that CUDA is not available; most "
        "often the installed build has no CUDA",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=remedies_in(log),
        confidence="likely",
        ask=_WHICH_BUILD,
    )


def _nothing_else_known(log: Log) -> bool:
    answered_yes = any(seen.value == "True" for seen in log.shown_of("gpu-there"))
    has_gpu_code = answered_yes or bool(shown_with_gpu(log)) or is_for_other_gpus(log)
    is_explained = log.statuses or log.devices or has_gpu_code or suspects(log)
    return not is_explained and log.framework in ("torch", "")


def _without(log: Log, statement: Match) -> Finding:
    """Programs print this on every machine without a GPU: harmless, unless it ended this one."""
    ends = tuple(f.line for f in log.failures if NOT_AVAILABLE.search(f.text))
    return CAUSE.finding(
        subject="torch",
        severity="error" if ends else "info",
        effect="broken" if ends else "cpu",
        message="PyTorch has no GPU; if the machine has one, the installed build most often has no "
        "CUDA",
        evidence=log.evidence(*(match.line for match in log.find(NOT_AVAILABLE)), *ends),
        remedies=remedies_in(log),
        confidence="possible",
        ask=_WHICH_BUILD,
    )


def _only_cpu(log: Log, statement: Match) -> Finding:
    return CAUSE.finding(
        subject="jax",
        effect="broken",
        message="the program needs a GPU, but JAX has only the CPU: most often JAX is installed "
        "without its CUDA plugin",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=remedies_in(log),
        confidence="likely",
        ask="Does `pip list` show jax-cuda12-plugin or jax-cuda13-plugin? If so, what does `echo $JAX_PLATFORMS` print?",
    )


def _fell_back(log: Log, statement: Match) -> Finding:
    """These frameworks print the same for a missing GPU and for a build without CUDA."""
    of_jax = "GPU/TPU" in statement.text
    subject, name, gpu_build = (
        (
            "jax",
            "JAX",
            "jax-cuda12-plugin or jax-cuda13-plugin (or, before 0.4.30, a jaxlib with +cuda in its "
            "version)",
        )
        if of_jax
        else ("onnxruntime", "ONNX Runtime", "onnxruntime-gpu, and not onnxruntime as well")
    )
    return CAUSE.finding(
        subject=subject,
        severity="info",
        message=f"{name} runs on the CPU: it found no GPU, or the build has no CUDA",
        evidence=log.evidence(*(match.line for match in log.find(FELL_BACK))),
        remedies=remedies_in(log._replace(framework=subject)),
        confidence="possible",
        ask=f"Does `pip list` show {gpu_build}? If not, the build has no CUDA.",
    )


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    yield from _without_their_extra(setup)
    if setup.kind == "image":
        if setup.for_gpu and not setup.for_cpu:
            yield from _cpu_builds(setup, setup.for_gpu[0].text)
        return
    image = setup.image
    if image is None or not setup.given or image.for_cpu:
        return
    reason = f"{setup.title} gets a GPU"
    yield from _cpu_builds(image, reason)
    base = image.base
    if base is not None and base.uses_gpu is False and not image.requirements:
        yield CAUSE.in_setup(
            base.place,
            subject=base.framework,
            message=f"{base.reference} has {base.framework} for the CPU only, but {reason}",
            fix=f"Use the image with the GPU build: {base.name}:{base.tag or 'latest'}-gpu."
            if "jupyter" not in base.tag
            else f"Use the image with the GPU build: {base.tag.replace('jupyter', 'gpu-jupyter')}.",
            rests_on=("packages", "arguments"),
        )


def _without_their_extra(setup: Setup) -> Iterator[SetupFinding]:
    """JAX that is asked for with CUDA, by an extra that its release does not have."""
    for verdict in setup.verdicts:
        requirement = verdict.requirement
        asks = any(extra.startswith("cuda") for extra in requirement.extras)
        if verdict.kind != "cpu-build" or requirement.name != "jax" or not asks:
            continue
        # Which release pip chooses from a range depends on the Python.
        is_newest = not setup.python and "==" not in requirement.specifier
        yield CAUSE.in_setup(
            requirement.place,
            subject="jax",
            message=f"jax {verdict.reason}"
            + ("; an older Python gets an older release" if is_newest else ""),
            fix=f"Write jax[cuda12]{requirement.specifier}.",
            rests_on=("packages", "arguments"),
            confidence="possible" if is_newest else "likely",
            severity="info" if is_newest else "warning",
        )


def _cpu_builds(image: Setup, reason: str) -> Iterator[SetupFinding]:
    for build in cpu_builds_in(image):
        requirement = build.verdict.requirement
        doubt = f"; the GPU may be for {build.gpu_is_for}" if build.gpu_is_for else ""
        yield CAUSE.in_setup(
            requirement.place,
            subject=build.framework,
            message=f"{requirement.name} {build.verdict.reason}, but {reason}{doubt}",
            fix=build.fix,
            rests_on=("purpose", "packages", "arguments"),
            confidence="possible" if doubt else "likely",
            severity="info" if doubt else "warning",
        )
