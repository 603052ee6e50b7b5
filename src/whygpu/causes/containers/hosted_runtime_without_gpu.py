"""The runtime of a notebook service was chosen without a GPU.

## Why it happens

Colab, Kaggle and similar services start each session on a machine of the chosen kind: with a GPU,
with a TPU, or with neither. The frameworks are installed on each kind, so that programs start
everywhere, and then find no driver and no GPU. A machine with a TPU has no GPU: CUDA cannot use a
TPU, and PyTorch is installed there as a build for the CPU. Colab also gives a machine without a GPU
if none is free.

## What it looks like

The messages are those of a machine without a driver: `CUDA_ERROR_NO_DEVICE`, `Found no NVIDIA
driver`, `Torch not compiled with CUDA enabled`. Nothing in the notebook can change that.

## Fix

Choose a runtime with a GPU in the settings of the session, and run the notebook again from the
start. A TPU can be used with JAX, with TensorFlow's TPUStrategy and with torch_xla.

## Fires on (log)

A machine of Colab with a TPU.

```
TPU_ACCELERATOR_TYPE=v2-8
COLAB_TPU_1VM=1
2024-06-14 08:31:10.430001: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:282] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
>>> tf.config.list_physical_devices('GPU')
[]
```

```
>>> jax.devices()
[TpuDevice(id=0, process_index=0, coords=(0,0,0), core_on_chip=0)]
>>> model.cuda()
AssertionError: Torch not compiled with CUDA enabled
```

A machine of Colab with neither.

```
  File "/content/project/train.py", line 12, in <module>
    model.cuda()
RuntimeError: cuda runtime error (100) : no CUDA-capable device is detected at /pytorch/aten/src/THC/THCGeneral.cpp:47
```

A program that prints the address of the TPU.

```
[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
print(os.environ.get('COLAB_TPU_ADDR'))
10.63.21.122:8470
```

## Quiet on (log)

The GPU is there, and a setting hides it.

```
%env CUDA_VISIBLE_DEVICES=-1
  File "/content/project/train.py", line 12, in <module>
RuntimeError: No CUDA GPUs are available
```

A program that looked for a TPU found none.

```
KeyError: 'COLAB_TPU_ADDR'
```

## Sources

- <https://research.google.com/colaboratory/faq.html>
- <https://www.kaggle.com/docs/efficient-gpu-usage>
- <https://cloud.google.com/tpu/docs/run-calculation-jax>
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.cuda_start_suspects import suspects
from whygpu.causes.evidence.driver_state import CONSEQUENCES
from whygpu.causes.evidence.log_cpu_builds import WITHOUT_GPU, shown_without_gpu
from whygpu.causes.evidence.log_cuda_start import Story, failed_at, lines_with, story_of, weight
from whygpu.causes.evidence.log_subjects import ended_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

CAUSE = cause(
    "WG808",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        *CONSEQUENCES,
        "no-nvidia-driver",
        "visible-devices-hides-gpu",
        "docker-no-gpu-runtime",
        "cpu-only-build",
        "cuda-runtime-missing",
        "driver-too-old-for-cuda",
    ),
)

_TPU = late(
    r"\b(?:COLAB_TPU_ADDR|COLAB_TPU_1VM|TPU_ACCELERATOR_TYPE|TPU_WORKER_ID)['\"]?\s?[=:]\s?['\"]?\w"
    r"|\bTpuDevice\(|physical_device:TPU:\d|/device:TPU:\d|Finished initializing TPU system"
    r"|default_backend\(\)\W{1,8}tpu\b|\btpu_initializer_helper\b|\bv[2-6][ep]?-\d{1,4} TPU\b"
    r"|\bTPU v[2-6][ep]?\b|\bTPU runtime\b|(?:\b\d{1,3}(?:\.\d{1,3}){3}|<ip removed>):8470\b"
)
"""The last is the address of a TPU of Colab."""
_COLAB = late(r"google\.colab|\bCOLAB_\w|(?i:(?<![\w/])colab\b)")
_COLAB_FOLDER = late(r"(?<![\w/.])/content/")
"""Where Colab keeps files; an image may have such a folder as well."""
_KAGGLE = late(r"/kaggle/(?:working|input|lib)|\bKAGGLE_\w|(?i:(?<![\w/])kaggle\b(?! ?api))")
_GPU_RUNTIME = late(
    r"(?i)\b(?:connected to|on|with|have|has|set|selected|chose|changed|switched|using|enabled|is)\b"
    r"[^.\n]{0,40}\bGPUs?[- ](?:runtime|environment|backend|instance|accelerator)"
    r"|\b(?:accelerator|runtime(?: type)?)\b[^.\n]{0,30}?(?:\b(?:to|is|as)\b|[=:])"
    r" {0,2}(?:an? |the )?['\"]?(?:[TLAVP]\d{1,3} )?GPU\b"
    r"|\bconnected to (?:an? |the )?GPU\b"
)
"""A person, or the service, says that the runtime has a GPU. A program that uses another build,
or none for CUDA, does not see it."""
_IN_COLAB = Remedy(
    "Nothing in the notebook or program can change that: in the notebook's menu, choose Runtime > "
    "Change runtime type, select a GPU, and run all cells again."
)
_IN_KAGGLE = Remedy(
    "In the notebook's settings, choose a GPU as the accelerator, and run all cells again."
)
_ELSEWHERE = Remedy("Choose a machine with a GPU, and run the program there.")


class _Service(NamedTuple):
    sign: re.Pattern[str]
    title: str
    choose: Remedy
    question: str = "Which kind of runtime is selected in the settings of the notebook?"


_SERVICES = (
    _Service(_COLAB, "this Colab runtime", _IN_COLAB),
    _Service(_KAGGLE, "this Kaggle session", _IN_KAGGLE),
    _Service(
        _COLAB_FOLDER,
        "this machine (Colab, by its folder /content)",
        _IN_COLAB,
        "Is it Colab? In a container with a folder /content, look at how that is started.",
    ),
)
_USE_THE_TPU = Remedy(
    "Or use the TPU: with JAX, with TensorFlow's TPUStrategy, or with PyTorch and torch_xla."
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    tpu = lines_with(log, _TPU)[:2]
    service = next((each for each in _SERVICES if log.says(each.sign)), None)
    story = story_of(log)
    if not tpu and service is None:
        return
    if story.gpus or story.hiding or _names_another(story) or log.reports_gpu_at_work():
        return
    lines = _without_gpu(log, with_build=bool(tpu))
    if not lines or (log.says(_GPU_RUNTIME) and not suspects(log)):
        return
    lines = tuple(sorted({*lines, *story.wanted, *ended_after(log, min(lines))}))
    has = "has a TPU and no GPU" if tpu else "was started without a GPU"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{service.title if service else 'the machine'} {has}",
        evidence=log.evidence(*tpu, *lines, *_first_sign(log, service)),
        remedies=(
            service.choose if service else _ELSEWHERE,
            *((_USE_THE_TPU,) if tpu else ()),
        ),
        confidence="certain" if tpu and not _only_a_build(log) else "likely",
        severity=weight(log, lines, "info" if log.progress else "warning"),
        effect="broken" if failed_at(log, lines) else "cpu",
        ask=service.question if service and not tpu else None,
        kind_of="no-nvidia-driver",
    )


def _first_sign(log: Log, service: _Service | None) -> tuple[int, ...]:
    return tuple(lines_with(log, service.sign)[:1]) if service else ()


def _names_another(story: Story) -> bool:
    """CUDA_VISIBLE_DEVICES names a GPU other than the only one of such a machine."""
    return story.setting is not None and story.setting[1] not in ("", "0")


def _without_gpu(log: Log, *, with_build: bool) -> tuple[int, ...]:
    """Lines that show that CUDA found no GPU, or that the build for it is not there."""
    found = {line for suspect in suspects(log) for line in suspect.lines}
    says = ("no-gpu", "on-cpu") if with_build else ("no-gpu",)
    found |= {report.line for report in log.without_gpu() if report.says in says}
    if with_build:
        found |= _of_build(log)
    return tuple(sorted(found))


def _of_build(log: Log) -> set[int]:
    return {
        *lines_with(log, WITHOUT_GPU),
        *(seen.line for seen in shown_without_gpu(log)),
    }


def _only_a_build(log: Log) -> bool:
    return not _without_gpu(log, with_build=False)
