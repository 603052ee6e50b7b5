"""The installed framework build has no GPU support, on a machine that has a GPU.

## Why it happens

A package without GPU code was installed: `tensorflow-cpu`, `jax` without its CUDA plugin, a
PyTorch wheel from the CPU index, `onnxruntime` instead of `onnxruntime-gpu`. No driver, no CUDA
installation and no setting can make such a build use a GPU.

## What it looks like

Nothing fails. The list of GPUs is empty and everything runs on the CPU.

## Fix

Install the GPU build in place of the CPU build. Uninstall the CPU package first where it has
another name: both write the same folder, and the second to be removed takes the files of the
first with it.

## Fires on (machine)

```toml
only = ["torch"]
[target.frameworks.torch]
version = "2.8.0+cpu"
[target.frameworks.torch.build]
kind = "cpu"
```

## Quiet on (machine)

A CPU build on a machine without a GPU is what belongs there.

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

A model that was saved on a GPU is loaded where PyTorch has none:

```
RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu')
```

## Quiet on (log)

```
Collecting torch==2.1.0+cpu
Successfully installed torch-2.1.0+cpu
epoch 1 loss 0.31
```

## Sources

- <https://pytorch.org/get-started/locally/>
- <https://docs.jax.dev/en/latest/installation.html>
- <https://www.tensorflow.org/install/pip>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.shared_logs import ended_after, failed_elsewhere, framework_title, subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.log import Log, Match
from whygpu.model.observed import Absent, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause(
    "WG301",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "device-placement-nonexistent", "device-placement-no-gpu-kernel"),
)

_BESIDE_THE_POINT = ("onnxruntime", "cupy", "numba")
"""Installed for other purposes as often as not: a CPU build of these is worth a word, no more."""


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
                    f"{framework.distribution}) is a build without GPU support; this machine "
                    "has a GPU that it cannot use"
                ),
                evidence=(seen(kind, f"built for {kind.value}"), seen(gpu)),
                remedies=_remedies(framework),
                severity="info" if framework.name in _BESIDE_THE_POINT else None,
            )


def _remedies(framework: Framework) -> tuple[Remedy, ...]:
    if framework.name == "tensorflow":
        return (
            Remedy(
                "Replace it with the GPU build and its CUDA libraries.",
                f"python -m pip uninstall -y {framework.distribution} && "
                "python -m pip install 'tensorflow[and-cuda]'",
            ),
        )
    if framework.name == "jax":
        return (
            Remedy(
                "Add JAX's CUDA plugin of the same version.",
                f"python -m pip install 'jax[cuda12]=={framework.version}'",
            ),
        )
    if framework.name == "torch":
        return (
            Remedy(
                "Reinstall PyTorch from its CUDA index; the default index has CUDA builds for "
                "Linux on x86_64.",
                "python -m pip uninstall -y torch && python -m pip install torch",
            ),
        )
    if framework.name == "onnxruntime":
        return (
            Remedy(
                "If its GPU provider is wanted, install that build instead.",
                f"python -m pip uninstall -y {framework.distribution} && "
                "python -m pip install onnxruntime-gpu",
            ),
        )
    return (Remedy(f"Install a build of {display_name(framework.name)} with CUDA support."),)


WITHOUT_GPU = re.compile(
    r"Torch not compiled with CUDA enabled"
    r"|a CUDA-enabled jaxlib is not installed|jaxlib (?:is|was) (?:not )?built with(?:out)? CUDA"
    r"|provider '(?:CUDA|Tensorrt|TensorRT)ExecutionProvider' is not in available provider\s{1,8}names"
    r"|CUDAExecutionProvider (?:is )?not available|This ORT build has \['(?!CUDA|Tensorrt|ROCM)[^\n]{0,80}"
    r"|[Cc]ompile with USE_CUDA=1 to enable GPU|Please compile with CUDA enabled"
    r"|(?:Check failed|MXNetError)[^\n]{0,120}GPU is not enabled"
    r"|installed CPU version PaddlePaddle"
    r"|[Pp]addle(?:Paddle)?,? (?:is|was) not compiled with CUDA|Cannot use (?:CUDA|GPU) because you have"
    r"|(?:GPU|CUDA) Tree Learner was not enabled in this build"
    r"|not compiled with (?:GPU|CUDA|cuda)(?: offload)? support|was compiled without (?:GPU|CUDA) support"
    r"|library is compiled without (?:CUDA|GPU) support|[Nn]ot compiled with GPU support"
    r"|Cannot use GPU in CPU-only Caffe|cuda is not enabled in this build"
    r"|was not (?:built|compiled) with (?:CUDA|GPU)(?: support)?\b(?! kernel)"
    r"|Could not run 'torchvision::\w{2,40}' with arguments from the 'CUDA' backend"
    r"|This (?:\w+ )?package was not compiled with CUDA|dlib was not compiled with CUDA"
)
LOADED_WITHOUT = re.compile(
    r"Attempting to deserialize object on (?:a CUDA|CUDA) device(?! \d)[^\n]{0,40}"
    r"torch\.cuda\.is_available\(\) is False"
)
NO_SUCH_EXTRA = re.compile(
    r"(?P<package>jax|tensorflow|jaxlib|onnxruntime-gpu) \S{1,24} does not provide the extra "
    r"'(?P<extra>(?:cuda|gpu|and-cuda)[\w-]{0,20})'"
)
CPU_VERSION = re.compile(
    r"CUDA used to build PyTorch: (?:None|N/A|Could not collect)"
    r"|\bpytorch\b[^\n]{0,40}\bpy\d[\d.]{0,4}_cpu_\d"
    r"|(?i:torch|pytorch)\W{1,3}(?:version\W{1,4})?(?P<version>\d+\.\d[\d.]*\+cpu)"
)
NO_GPU_THERE = re.compile(
    r"is_available\(\)\W{0,8}False|^False$|CUDA available\W{1,4}False|Found no NVIDIA"
    r"|expected (?:a )?cuda|device type[^\n]{0,20}cuda|invalid device string: 'cuda",
    re.MULTILINE | re.IGNORECASE,
)
UNAVAILABLE = re.compile(
    r"CUDA unavailable, invalid device \S{1,12} requested"
    r"|assert torch\.cuda\.is_available\(\)[^\n]{0,80}\n\W{0,4}AssertionError"
    r"|Invalid CUDA 'device=[^'\n]{1,20}' requested(?:[^\n]{0,300}\n){1,4}?[^\n]{0,20}"
    r"is_available\(\): False"
)
_LOOKED_FOR_CUDA = re.compile(
    r"CUDA[_ ]SETUP: (?:WARNING|CUDA|PyTorch|Required|Something|Defaulting)"
)
"""bitsandbytes falls back to its part without GPU code when it does not find CUDA."""
_JAX_WORD = re.compile(r"a CUDA-enabled jaxlib is not installed")
_JAX_PLUGIN = re.compile(r"jax_plugins[./\\]xla_cuda|jax_cuda\d{1,2}_plugin")
JAX_FELL_BACK = re.compile(r"No GPU/TPU found, falling back to CPU")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    told = log.first(WITHOUT_GPU)
    if _plugin_is_there(log) or log.says(_LOOKED_FOR_CUDA):
        told = None
    extra = log.first(NO_SUCH_EXTRA)
    version = log.first(CPU_VERSION)
    loaded = log.first(LOADED_WITHOUT)
    fell_back = log.first(JAX_FELL_BACK)
    unavailable = log.first(UNAVAILABLE)
    if told is not None:
        yield _told(log, told, extra)
    elif extra is not None:
        yield _told(log, extra, extra)
    elif loaded is not None:
        yield _loaded(log, loaded, version)
    elif version is not None and log.says(NO_GPU_THERE):
        yield _told(log, version, None)
    elif unavailable is not None:
        yield _unavailable(log, unavailable)
    elif fell_back is not None and not log.statuses:
        yield _fell_back(log, fell_back)


def _plugin_is_there(log: Log) -> bool:
    """JAX says the same of a CUDA plugin that is installed and could not start."""
    started = any(status.api in ("driver", "runtime") for status in log.statuses)
    return log.says(_JAX_WORD) and (started or log.says(_JAX_PLUGIN))


def _told(log: Log, told: Match, extra: Match | None) -> Finding:
    what = f"{framework_title(log)} is a build without GPU support"
    if extra is not None:
        what += (
            f", because {extra.groups['package']} has no extra {extra.groups['extra']!r} and pip "
            "installed it without"
        )
    ended = ended_after(log, told.line)
    stranger = failed_elsewhere(log, told.line)
    return CAUSE.finding(
        subject=subject_of(log),
        severity="info" if stranger else None,
        effect="broken" if ended and not stranger else None,
        message=f"{what}: {told.text.strip()[:160]}",
        evidence=log.evidence(
            told.line,
            *((extra.line,) if extra else ()),
            *(match.line for match in log.find(WITHOUT_GPU)),
            *(() if stranger else ended),
        ),
        remedies=_log_remedies(log),
    )


def _loaded(log: Log, loaded: Match, version: Match | None) -> Finding:
    return CAUSE.finding(
        subject="torch",
        effect="broken",
        message="the file was saved from a GPU, and this PyTorch has none to load it to"
        + (f": {version.text.strip()[:80]}" if version else ""),
        evidence=log.evidence(
            loaded.line, *((version.line,) if version else ()), *ended_after(log, loaded.line)
        ),
        remedies=(
            Remedy(
                "To go on without a GPU, load it to the CPU: torch.load(..., map_location='cpu')."
            ),
            *_log_remedies(log),
        ),
        confidence="certain" if version else "likely",
        ask="What does `python -c 'import torch; print(torch.__version__, torch.version.cuda)'` "
        "print? None: a build without CUDA; a number: the driver or the GPU is the matter.",
    )


def _unavailable(log: Log, told: Match) -> Finding:
    """A program's own word for torch.cuda.is_available() being False."""
    return CAUSE.finding(
        subject="torch",
        effect="broken",
        message="a GPU was asked for, and PyTorch says that CUDA is not available; most often it is "
        "the build without CUDA",
        evidence=log.evidence(told.line, *ended_after(log, told.line)),
        remedies=_log_remedies(log),
        confidence="likely",
        ask="What does `python -c 'import torch; print(torch.__version__, torch.version.cuda)'` "
        "print? None: a build without CUDA; a number: the driver or the GPU is the matter.",
    )


def _fell_back(log: Log, told: Match) -> Finding:
    """JAX's old word for a missing GPU and for a jaxlib without CUDA alike."""
    return CAUSE.finding(
        subject="jax",
        severity="info",
        message="JAX runs on the CPU: it found no GPU, or its jaxlib is the one without CUDA",
        evidence=log.evidence(*(match.line for match in log.find(JAX_FELL_BACK))),
        remedies=_log_remedies(log),
        confidence="possible",
        ask="Does `pip list` show a jaxlib with +cuda in its version, or jax-cuda12-plugin? "
        "If not, it is the build without CUDA.",
    )


def _log_remedies(log: Log) -> tuple[Remedy, ...]:
    commands = {
        "torch": "python -m pip uninstall -y torch && python -m pip install torch "
        "--index-url https://download.pytorch.org/whl/cu126",
        "jax": "python -m pip install --upgrade 'jax[cuda12]'",
        "tensorflow": "python -m pip install 'tensorflow[and-cuda]'",
        "onnxruntime": "python -m pip uninstall -y onnxruntime && "
        "python -m pip install onnxruntime-gpu",
    }
    return (
        Remedy(
            "On a machine with an NVIDIA GPU, install the build with CUDA.",
            commands.get(log.framework),
        ),
        Remedy("On one without, ask for the CPU (--device cpu, device='cpu')."),
    )
