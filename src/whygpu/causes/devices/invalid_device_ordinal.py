"""The program uses a GPU number that does not exist for this process.

## Why it happens

A process numbers its GPUs from 0, and counts only those that it may see. A script written for
another machine asks for `cuda:1` although there is only one GPU. A launcher starts more processes
than there are GPUs, and each process uses the GPU with its own rank. CUDA_VISIBLE_DEVICES=2 leaves
one GPU, which then has number 0. A checkpoint stores the number of the GPU it was saved from.

The numbers follow CUDA's order (fastest first), not that of nvidia-smi, unless CUDA_DEVICE_ORDER is
PCI_BUS_ID.

## What it looks like

- PyTorch: `CUDA error: invalid device ordinal`, `Invalid device id`, `Attempting to deserialize
  object on CUDA device 2 but torch.cuda.device_count() is 1`.
- TensorFlow: `'visible_device_list' listed an invalid Device id '1' but visible device count is 1`
  (older releases write `GPU id`).
- Lightning: `You requested gpu: [1] But your machine only has: [0]`.

## Fix

Use a number below the number of GPUs, or start as many processes as there are GPUs.

## Fires on (log)

Eight processes on a machine with fewer GPUs.

```
$ torchrun --nproc_per_node=8 train.py
    torch.cuda.set_device(args.local_rank)
RuntimeError: CUDA error: invalid device ordinal
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
```

```
THCudaCheck FAIL file=torch/csrc/cuda/Module.cpp line=32 error=10 : invalid device ordinal
```

```
tensorflow.python.framework.errors_impl.InvalidArgumentError: 'visible_device_list' listed an invalid GPU id '1' but visible device count is 1
```

```
tensorflow.python.framework.errors_impl.InvalidArgumentError: 'visible_device_list' listed an invalid Device id '5' but visible device count is 1
```

```
RuntimeError: Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 1. Please use torch.load with map_location to map your storages to an existing device.
```

## Quiet on (log)

There is no GPU at all, so the number is not the reason.

```
E tensorflow/stream_executor/cuda/cuda_driver.cc:300] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:148] kernel driver does not appear to be running on this host (pc): /proc/driver/nvidia/version does not exist
tensorflow.python.framework.errors_impl.InvalidArgumentError: 'visible_device_list' listed an invalid GPU id '2' but visible device count is -1
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
- <https://docs.pytorch.org/docs/stable/elastic/run.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_cuda_start import MAKES_CONTEXT, lines_of
from whygpu.causes.evidence.log_subjects import ended_by, excerpt, gpu_ends_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match, Status
from whygpu.model.remedy import SetVariable, command_line, shell_script

CAUSE = cause(
    "WG407",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("device-assert-bad-input", "device-placement-nonexistent"),
)

_STATUSES = ("cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice")
_ORDINAL = late(r"for CUDA device ordinal (?P<number>\d{1,3})\b")
_ONLY_COUNTS = ("cuInit", "cudaGetDeviceCount")
_IN_A_KERNEL = late(
    r"(?:radix_sort|merge_sort|parallel_for|reduce|scan|unique\w{0,20})[:\s]{1,2}failed"
)
"""Thrust passes this code on if it has no code for the GPU; no GPU number is involved."""
_STATEMENTS = late(
    r"listed an invalid (?:GPU|[Dd]evice) id '?(?P<id>\d+)'? but visible device count is "
    r"(?P<count>[1-9]\d*)|Could not parse entry in 'visible_device_list': '(?P<entry>[^'\n]{0,40})'"
    r"|deserialize object on CUDA device (?P<saved>\d+) but torch\.cuda\.device_count\(\) is"
    r" (?P<have>[1-9]\d*)|HIP error: invalid device ordinal"
    r"|AssertionError: Invalid device id|[Ii]nvalid device id:? ?\d+"
    r"|You requested (?:GPUs|gpu): \[(?P<wanted>[\d, ]{1,40})\]\s{1,40}But your machine only has:"
    r" \[(?P<only>[\d, ]{0,40})\]"
    r"|Invalid CUDA '(?:--)?device[= ](?P<asked>[\d, ]{1,20})' requested(?:[^\n]{0,200}\n){1,8}?"
    r"torch\.cuda\.device_count\(\): (?P<counted>[1-9]\d*)"
    r"|(?:CUDA|cuda|GPU|gpu) (?:device )?(?:id|index|ordinal) (?:\d+ )?(?:is )?out of range"
    r"|[Ii]nvalid (?:GPU|gpu|CUDA device) (?:id|ID|index|ordinal)\b(?! '?\d+'? but visible)"
    r"|device_id must be (?:less than|<)|(?:device|gpu) (?:id|index) \d+ (?:is )?(?:not valid"
    r"|invalid)"
    r"|Invalid CUDAPlace\(\d+\), must inside|No slot '\d+' specified on host"
    r"|[Cc]uda device (?:id )?\d+ (?:is )?not (?:available|found)|Device index out of range"
    r"|Could not find any GPU device matching index \d+"
    r"|device >= 0 && device < num_gpus INTERNAL ASSERT FAILED"
    # More GPUs than there are, for a model that is split over several.
    r"|[Tt]ensor parallel size \(\d+\) cannot be larger than the number of available GPUs"
    r"|number of required GPUs exceeds the total number of available GPUs"
    r"|invalid device ordinal value \(\d+\)|Device ordinal \d+ (?:is )?(?:invalid|not found)"
)
_GPU_NUMBER = r"(?:GPU|[Cc][Uu][Dd][Aa](?: device)?|[Dd]evice)(?: (?:id|number|index|ordinal|device))?[ :#=]{1,3}\d{1,2}\b"
_IN_OTHER_WORDS = late(
    rf"{_GPU_NUMBER}[^\n]{{0,40}}(?:out of range|does(?:n't| not) exist|but only \d|only \d)"
    rf"|(?:[Ii]nvalid|[Uu]nknown|[Nn]o such) {_GPU_NUMBER}"
)
"""The number of a GPU, and that there is none with it. It counts in what ended the program."""
_MORE_PROCESSES = late(
    r"nproc[_-]per[_-]node[ =]\S|local_rank|torchrun|torch\.distributed\.launch|mpirun|horovod"
    r"|accelerate launch|deepspeed"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statements = list(log.find(_STATEMENTS))
    otherwise = None if statements else ended_by(log, _IN_OTHER_WORDS)
    # From calls that only count GPUs, this code means that the driver itself does not work.
    statuses = [
        status
        for status in log.status_named(*_STATUSES)
        if status.call not in _ONLY_COUNTS and not _IN_A_KERNEL.search(log.line(status.line).text)
    ]
    if not statements and not statuses and otherwise is not None:
        yield CAUSE.finding(
            subject=subject_of(log),
            message=f"{_message(None)}: {excerpt(otherwise.text)}",
            evidence=log.evidence(otherwise.line),
            remedies=_remedies([], many=False),
            confidence="likely",
            ask="How many GPUs does `nvidia-smi -L` list, and which of them does "
            "CUDA_VISIBLE_DEVICES leave visible?",
        )
        return
    if not statements and not statuses:
        yield from _none_of_the_list(log)
        return
    if not statements and all(status.call in MAKES_CONTEXT for status in statuses):
        yield _refused_when_opened(log, statuses)
        return
    launcher = log.first(_MORE_PROCESSES)
    lines = (
        *lines_of(statuses),
        *(match.line for match in statements),
        *_failures(log),
        *((launcher.line,) if launcher else ()),
    )
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_message(statements[0] if statements else None),
        evidence=log.evidence(*lines),
        remedies=_remedies(statements, many=launcher is not None),
        confidence="possible" if _has_none(statements) else "certain",
        ask="Why does the process see no GPU at all? `whygpu check` shows the reason."
        if _has_none(statements)
        else None,
    )


def _refused_when_opened(log: Log, statuses: list[Status]) -> Finding:
    """The driver lists the GPU but refuses to open it: the number itself may be right."""
    ordinal = log.first(_ORDINAL)
    which = f"GPU {ordinal.groups['number']}" if ordinal else "the GPU"
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"the driver refuses {which} as an invalid device when a program opens it: the "
        "number does not exist for this process, or another process holds that GPU in exclusive "
        "mode",
        evidence=log.evidence(*lines_of(statuses), *gpu_ends_after(log, statuses[0].line)),
        remedies=(
            Remedy(
                "Check which GPUs there are, and their compute mode.",
                command_line("nvidia-smi --query-gpu=index,name,compute_mode --format=csv"),
            ),
            Remedy(
                "Let the process see one free GPU, by its number.",
                SetVariable("CUDA_VISIBLE_DEVICES", "0"),
            ),
        ),
        confidence="likely",
        ask="Is the compute mode of that GPU Exclusive_Process (`nvidia-smi -q -d COMPUTE`)? Then "
        "another process holds it. If it is Default, the number is wrong.",
    )


_IN_THE_LIST = Remedy(
    "Write only numbers of GPUs into gpu_options.visible_device_list, separated by commas; the first "
    "is 0."
)
_NONE_LEFT = late(r"handling error Internal: no supported devices found for platform CUDA")
_REFUSED = late(r"unable to create StreamExecutor|insufficient compute capability")


def _none_of_the_list(log: Log) -> Iterator[Finding]:
    """XLA, which TensorFlow 1.15 starts first, skips a GPU that is not in visible_device_list.

    It reports every other reason to skip a GPU, but as information or as a warning.
    """
    fatal = log.first(_NONE_LEFT)
    if fatal is None or log.says(_REFUSED):
        return
    complete = any(line.level == "info" for line in log.lines)
    yield CAUSE.finding(
        subject=subject_of(log),
        message="none of the GPUs is in visible_device_list: it probably contains only numbers "
        "that do not exist",
        evidence=log.evidence(fatal.line, *gpu_ends_after(log, fatal.line)),
        remedies=(
            Remedy("Check how many GPUs there are.", command_line("nvidia-smi -L")),
            _IN_THE_LIST,
        ),
        confidence="likely" if complete else "possible",
        ask="Which numbers are in gpu_options.visible_device_list?",
    )


def _has_none(statements: list[Match]) -> bool:
    """If there is no GPU at all, the number is not the main problem."""
    return any(match.groups["only"] == "" for match in statements)


def _failures(log: Log) -> tuple[int, ...]:
    return tuple(
        failure.line
        for failure in log.failures
        if ("invalid device ordinal" in failure.text and not _IN_A_KERNEL.search(failure.text))
        or _STATEMENTS.search(failure.text)
    )


def _message(statement: Match | None) -> str:
    asked = count = None
    if statement is not None:
        groups = statement.groups
        if groups["entry"] is not None:
            return f"visible_device_list contains {groups['entry']!r}, which is not a GPU number"
        asked = groups["id"] or groups["saved"] or groups["wanted"] or groups["asked"]
        count = groups["count"] or groups["have"] or groups["counted"]
        if groups["only"] is not None:
            count = str(len(groups["only"].split(","))) if groups["only"] else "none"
    which = f"GPU {asked}" if asked else "a GPU number that does not exist"
    if not count:
        return f"the program uses {which}; numbers start at 0"
    gpus = "no GPU" if count == "none" else "1 GPU" if count == "1" else f"{count} GPUs"
    return f"the program uses {which}; this process sees {gpus}, numbered from 0"


def _remedies(statements: list[Match], *, many: bool) -> tuple[Remedy, ...]:
    count = Remedy(
        "Check how many GPUs there are, and which of them the process may see.",
        shell_script('nvidia-smi -L; echo "$CUDA_VISIBLE_DEVICES"'),
    )
    if any(match.groups["saved"] for match in statements):
        return (
            Remedy("Load it onto a device that exists: torch.load(..., map_location='cuda:0')."),
        )
    if any("visible_device_list" in match.text for match in statements):
        return (count, _IN_THE_LIST)
    processes = Remedy("Start as many processes as there are GPUs: --nproc_per_node=NUMBER.")
    number = Remedy("Use a lower number (cuda:0 if there is one GPU).")
    return (processes, count, number) if many else (count, number, processes)
