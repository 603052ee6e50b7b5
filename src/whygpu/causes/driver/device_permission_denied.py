"""The GPU's device nodes exist, but this user has no permission to open them.

## Why it happens

To use the GPU, programs open /dev/nvidia0, /dev/nvidiactl and /dev/nvidia-uvm for reading and
writing. Usually every user may do this. Some distributions and administrators restrict it to a
group (`video`, `render`), and a rootless container drops the user's extra groups. On a cluster the
scheduler blocks the nodes of every GPU that a job did not request.

## What it looks like

- `Failed to initialize NVML: Insufficient Permissions`, or "Driver Not Loaded" although it is
  loaded.
- `CUDA_ERROR_NO_DEVICE`, `CUDA_ERROR_OPERATING_SYSTEM` (304) or `CUDA_ERROR_NOT_INITIALIZED` (3).
- The same program works under sudo.

## Fix

Join the group that owns the nodes and log in again (groups are read at login). On a cluster,
request a GPU from the scheduler.

## Fires on (machine)

```toml
[driver]
state = "denied"
detail = "Driver Not Loaded: /dev/nvidiactl is crw-rw----, group video"
gpus = {unknown = "NVML could not tell: Driver Not Loaded"}
[driver.device_nodes."/dev/nvidiactl"]
mode = "crw-rw----"
group = "video"
usable = false
[driver.device_nodes."/dev/nvidia0"]
mode = "crw-rw----"
group = "video"
usable = false
[probes.cuda]
devices = {unknown = "cuInit: 304 CUDA_ERROR_OPERATING_SYSTEM"}
facts = [["cuInit", "304 CUDA_ERROR_OPERATING_SYSTEM"]]
```

The mode of one of two GPUs is wrong. Programs work, with the other GPU only.

```toml
[driver.device_nodes."/dev/nvidia1"]
mode = "crw-rw----"
group = "video"
usable = false
[probes.cuda]
facts = [["cuInit", "0 CUDA_SUCCESS"]]
```

## Quiet on (machine)

A job got one of two GPUs. The other one is blocked, which is correct.

```toml
[driver.device_nodes."/dev/nvidia1"]
mode = "crw-rw-rw-"
group = "root"
usable = false
[probes.cuda]
facts = []
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[driver]
device_nodes = {unknown = "/dev cannot be listed"}
```

## Fires on (log)

```
$ nvidia-smi
Failed to initialize NVML: Insufficient Permissions
```

```
NVIDIA: could not open the device file /dev/nvidiactl (Permission denied).
E tensorflow/stream_executor/cuda/cuda_driver.cc:491] failed call to cuInit: CUDA_ERROR_NO_DEVICE
```

## Quiet on (log)

The program's own file is not a device.

```
PermissionError: [Errno 13] Permission denied: '/data/nvidia/checkpoints/model.ckpt'
```

## Sources

- <https://download.nvidia.com/XFree86/Linux-x86_64/580.65.06/README/faq.html>
- <https://slurm.schedmd.com/gres.html>
- <https://github.com/NVIDIA/nvidia-container-toolkit/issues/210>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.driver_state import (
    CONSEQUENCES,
    CONTROL_NODES,
    WSL_NODE,
    cuda_starts,
    device_nodes,
    gpu_nodes,
    place_of,
)
from whygpu.causes.evidence.log_cuda_start import failed_at, lines_with, story_of
from whygpu.causes.evidence.log_subjects import excerpt, subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import DeviceNode
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, need
from whygpu.model.remedy import a_name, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import ContainerRuntime

CAUSE = cause("WG104", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)

_OPEN_TO_ALL = "rw-rw-rw-"


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    if cuda_starts(machine):
        yield from _left_out(machine)
        return
    closed = _closed(device_nodes(machine))
    state = machine.driver.state
    denied = isinstance(state, Known) and state.value == "denied"
    if not closed and not denied:
        return
    by_mode = [node for node in closed if not node.mode.endswith(_OPEN_TO_ALL)]
    if closed and not by_mode and place_of(machine) == "container":
        # The file modes allow it, but the container's device rules do not: docker-no-gpu-runtime.
        return
    yield CAUSE.finding(
        subject=MACHINE,
        message=_message(machine, closed),
        evidence=_evidence(machine, closed),
        remedies=_remedies(machine, by_mode),
        confidence="certain" if closed else "likely",
    )


def _closed(nodes: tuple[DeviceNode, ...]) -> tuple[DeviceNode, ...]:
    """Nodes that CUDA needs and that this user has no permission to open.

    One usable GPU is enough: schedulers block the GPUs of other jobs.
    """
    needed = [node for node in nodes if node.path in (*CONTROL_NODES, WSL_NODE)]
    closed = [node for node in needed if not node.usable]
    cards = gpu_nodes(nodes)
    if cards and not any(node.usable for node in cards):
        closed += cards
    return tuple(sorted(closed, key=lambda node: node.path))


def _left_out(machine: Snapshot) -> Iterator[Finding]:
    """GPUs beside a usable one that their file mode, and no scheduler, keeps from this user."""
    nodes = machine.driver.device_nodes
    # Where a GPU computes, it does not matter that the nodes could not be listed.
    cards = gpu_nodes(nodes.value) if isinstance(nodes, Known) else ()
    closed = tuple(
        node for node in cards if not node.usable and not node.mode.endswith(_OPEN_TO_ALL)
    )
    if closed and len(closed) < len(cards):
        yield CAUSE.finding(
            subject=MACHINE,
            severity="info",
            effect="none",
            message=f"{_message(machine, closed)}, and leaves out this GPU",
            evidence=_evidence(machine, closed),
            remedies=_remedies(machine, list(closed)),
        )


def _message(machine: Snapshot, closed: tuple[DeviceNode, ...]) -> str:
    if not closed:
        return (
            "the NVIDIA driver denies access to this user: "
            f"{machine.driver.detail or 'insufficient permissions'}"
        )
    first = closed[0]
    more = f" (and {len(closed) - 1} more)" if len(closed) > 1 else ""
    if all(node.mode.endswith(_OPEN_TO_ALL) for node in closed):
        return (
            f"this process may not open {first.path}{more}, although its mode is {first.mode}: the "
            "device rules (cgroup) of the job or service that it runs in forbid it, as Slurm does "
            "in a job that asks for no GPU"
        )
    return (
        f"this user may not read and write {first.path}{more}: its mode is {first.mode}, its "
        f"group is {first.group}; CUDA has to open it"
    )


def _evidence(machine: Snapshot, closed: tuple[DeviceNode, ...]) -> tuple[Evidence, ...]:
    evidence = [
        Evidence("machine", node.path, f"{node.mode}, group {node.group}, no access for this user")
        for node in closed
    ]
    state = machine.driver.state
    if isinstance(state, Known) and state.value == "denied":
        evidence.append(seen(state, machine.driver.detail or "denied"))
    return tuple(evidence)


def _group_in_container(runtime: ContainerRuntime, group: str) -> Remedy:
    if runtime == "podman":
        return Remedy(
            "Start the container with the groups that you have on the host.",
            command_line("podman run --group-add keep-groups --device nvidia.com/gpu=all ..."),
        )
    if runtime == "kubernetes":
        return Remedy(
            f"Add the number of the host's group {group} to the pod's "
            "securityContext.supplementalGroups."
        )
    if runtime == "apptainer":
        return Remedy(
            f"Join the group {group} on the host, then log in there again.",
            shell_script("sudo usermod -aG ", a_name(group), ' "$USER"'),
        )
    return Remedy(
        f"Start the container with the group {group} (use its number if the container does not "
        "have the name).",
        command_line("docker run --gpus all --group-add", a_name(group), "..."),
    )


def _remedies(machine: Snapshot, by_mode: list[DeviceNode]) -> tuple[Remedy, ...]:
    scheduler = Remedy(
        "On a cluster, request a GPU from the scheduler; it gives the job access to the nodes.",
        command_line("srun --gres=gpu:1 --pty bash"),
    )
    groups = [node.group for node in by_mode if node.group != "root" and "rw-" in node.mode[4:7]]
    if not groups:
        reset = Remedy(
            "Allow all users to open the nodes, which is the driver's default. After a restart, "
            "the module's option NVreg_DeviceFileMode applies again.",
            shell_script("sudo chmod 0666 /dev/nvidia*"),
        )
        return (reset, scheduler) if by_mode else (scheduler,)
    group = groups[0]
    container = machine.system.container
    if isinstance(container, Known):
        return (_group_in_container(container.value.runtime, group),)
    return (
        Remedy(
            f"Join the group {group}, then log out and in again.",
            shell_script("sudo usermod -aG ", a_name(group), ' "$USER"'),
        ),
        scheduler,
    )


_DENIED = late(
    r"/dev/nvidia[\w-]{0,12}[^\n]{0,40}[Pp]ermission denied"
    r"|[Pp]ermission denied[^\n]{0,40}/dev/nvidia"
    # On Jetson boards
    r"|NvRmMemInitNvmap failed with Permission denied"
    r"|NVML: Insufficient Permissions|NVMLError_NoPermission|nvml error: insufficient permissions"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    lines = lines_with(log, _DENIED)
    if not lines:
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message="the user who ran this has no permission to open the GPU's device nodes "
        f"(line {lines[0]}: {excerpt(log.line(lines[0]).text, 100)})",
        evidence=log.evidence(*lines, *story_of(log).wanted),
        remedies=(
            Remedy("Check who may open them.", shell_script("ls -l /dev/nvidia*; id")),
            Remedy(
                "Join the group that owns them (usually video or render), then log in again.",
                shell_script('sudo usermod -aG video,render "$USER"'),
            ),
            Remedy(
                "In a rootless container, keep the groups of the user who starts it.",
                command_line("podman run --group-add keep-groups --device nvidia.com/gpu=all ..."),
            ),
        ),
        effect="broken" if failed_at(log, lines) else "cpu",
    )
