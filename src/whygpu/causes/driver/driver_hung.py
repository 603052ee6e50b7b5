"""The NVIDIA driver does not answer.

## Why it happens

A call into the driver waits inside the kernel and never returns: the GPU has crashed, another
process holds the driver's lock while it ends, or a reset or an update is in progress. A machine
with many GPUs and without the persistence daemon can take half a minute to start them all, which
looks the same.

## What it looks like

`nvidia-smi`, the import of a framework or the first operation hangs and does not react to Ctrl-C.
The process stays in state D even after SIGKILL.

## Fix

Look for Xid messages in the kernel log, end the processes that hold the GPU, and reset it. If the
reset hangs too, restart the machine.

## Fires on (machine)

```toml
[driver]
state = "hung"
detail = "NVML gave no answer within 10 seconds"
version = {unknown = "NVML could not tell: NVML gave no answer within 10 seconds"}
cuda = {unknown = "NVML could not tell: NVML gave no answer within 10 seconds"}
gpus = {unknown = "NVML could not tell: NVML gave no answer within 10 seconds"}
```

NVML answers, but CUDA does not.

```toml
[probes.cuda]
ended = "timed-out"
how = "60 s"
stage = "cuInit"
facts = [["libcuda.so.1", "loaded"]]
```

## Quiet on (machine)

A probe that timed out before it called the driver shows nothing about the driver.

```toml
[probes.cuda]
ended = "timed-out"
how = "60 s"
stage = "start"
facts = []
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[driver]
state = {unknown = "NVML could not be asked: no pynvml"}
```

## Fires on (log)

```
[ 2417.331005] INFO: task nvidia-smi:8123 blocked for more than 120 seconds.
[ 2417.331011]       Tainted: P           OE     5.15.0-91-generic #101-Ubuntu
```

## Quiet on (log)

If an Xid comes before it, the Xid is the reason.

```
[ 2201.100021] NVRM: Xid (PCI:0000:61:00): 119, pid=8123, name=nvidia-smi, Timeout waiting for RPC from GSP!
[ 2417.331005] INFO: task nvidia-smi:8123 blocked for more than 120 seconds.
```

## Sources

- <https://docs.nvidia.com/deploy/xid-errors/>
- <https://docs.nvidia.com/deploy/driver-persistence/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.driver_state import CONSEQUENCES
from whygpu.causes.evidence.log_cuda_start import lines_with, lost_gpu_lines
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, need
from whygpu.model.remedy import command_line, shell_script
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG105",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(*CONSEQUENCES, "framework-hangs"),
)

_BEFORE_THE_DRIVER = "start"


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    state = machine.driver.state
    evidence: list[Evidence] = []
    if isinstance(state, Known) and state.value == "hung":
        evidence.append(seen(state, machine.driver.detail or "no answer in time"))
    probe = machine.probe("cuda")
    if (
        isinstance(probe, Known)
        and probe.value.ended == "timed-out"
        and probe.value.stage != _BEFORE_THE_DRIVER
    ):
        text = f"no answer within {probe.value.how} (at: {probe.value.stage})"
        evidence.append(Evidence("probe", probe.source, text))
    if not evidence:
        if isinstance(probe, Known) and probe.value.ended == "cut-short":
            yield Gap(f"whether the driver answers: not finished after {probe.value.how}")
        if not isinstance(probe, Known):
            need(state)
        return
    yield CAUSE.finding(
        subject=MACHINE,
        message=f"the NVIDIA driver does not answer: {'; '.join(item.text for item in evidence)}",
        evidence=tuple(evidence),
        remedies=(
            Remedy(
                "Look for Xid messages in the kernel log.",
                shell_script("sudo dmesg | grep -i -E 'nvrm|xid'"),
            ),
            Remedy(
                "Check which processes hold the GPU, and end those that hang.",
                shell_script("sudo fuser -v /dev/nvidia*"),
            ),
            Remedy(
                "If starting the GPUs takes long, keep them initialized.",
                command_line("sudo systemctl enable --now nvidia-persistenced"),
            ),
            Remedy("If nothing helps, restart the machine.", command_line("sudo reboot")),
        ),
    )


_BLOCKED = late(
    r"task (?:nvidia|nv_|nv-|irq/\d+-nvidia)[\w-]{0,24}:\d+ blocked for more than"
    r"|nvidia-container-cli: initialization error: driver rpc error: timed out"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    lines = lines_with(log, _BLOCKED)
    if not lines or lost_gpu_lines(log):
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message="a call into the NVIDIA driver waits in the kernel and does not return",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy(
                "Look for Xid messages in the kernel log.",
                shell_script("sudo dmesg | grep -i xid"),
            ),
            Remedy(
                "If starting the GPUs takes long, keep them initialized.",
                command_line("sudo systemctl enable --now nvidia-persistenced"),
            ),
            Remedy("If nothing helps, restart the machine.", command_line("sudo reboot")),
        ),
        confidence="likely",
    )
