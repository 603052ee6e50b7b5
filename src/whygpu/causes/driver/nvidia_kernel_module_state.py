"""The NVIDIA driver is installed, but its kernel modules or device nodes are not ready for CUDA.

## Why it happens

In addition to its libraries, the driver needs the kernel modules nvidia and nvidia_uvm, the device
nodes under /dev, and on machines with NVSwitch a running fabric manager. Each can be missing:

- The module is not loaded: Secure Boot refused it, it was not rebuilt for a new kernel, nouveau or
  vfio-pci uses the card, or the graphics switch of a laptop turned the card off.
- The module is loaded, but could not start any card, or takes only some of the cards: an old card
  needs a legacy driver, and a card from 2025 or later the open kernel modules.
- nvidia_uvm or a device node is missing, and nothing on the machine creates it on demand.
- The fabric manager does not run, so CUDA waits for an NVLink network that is not set up.
- In a confidential virtual machine, nobody has set the GPU ready yet.

## What it looks like

- `NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver`.
- `No devices were found` from nvidia-smi.
- nvidia-smi works, but CUDA reports `CUDA_ERROR_UNKNOWN` (999) or `CUDA_ERROR_SYSTEM_NOT_READY`
  (802).

## Fix

`sudo modprobe nvidia` either loads the module or prints the reason, and `sudo dmesg` shows the
driver's messages. "Key was rejected by service" means Secure Boot. "not found in directory" means
that the module was not built for this kernel.

## Fires on (machine)

Secure Boot refuses the module.

```toml
[[graphics]]
vendor = "nvidia"
address = "0000:01:00.0"
device_id = "2684"
kernel_driver = {absent = "/sys/bus/pci/devices/0000:01:00.0/driver"}
[driver]
state = "not-loaded"
detail = "Driver Not Loaded"
version = {unknown = "NVML could not tell: Driver Not Loaded"}
cuda = {unknown = "NVML could not tell: Driver Not Loaded"}
kernel_module = {absent = "/proc/driver/nvidia/version, /sys/module/nvidia/version"}
uvm = false
device_nodes = {absent = "/dev/nvidia*, /dev/dxg"}
gpus = {unknown = "NVML could not tell: Driver Not Loaded"}
[probes.cuda]
devices = []
facts = [["cuInit", "100 CUDA_ERROR_NO_DEVICE"]]
```

A GPU without NVSwitch in a confidential virtual machine.

```toml
[driver.gpus.0]
name = "NVIDIA H100 PCIe"
compute_capability = "9.0"
[probes.cuda]
devices = {unknown = "cuInit: 802 CUDA_ERROR_SYSTEM_NOT_READY"}
facts = [["cuInit", "802 CUDA_ERROR_SYSTEM_NOT_READY"]]
```

A machine with NVSwitch whose fabric manager does not run.

```toml
[driver.gpus.0.health]
fabric = "in-progress"
[probes.cuda]
devices = {unknown = "cuInit: 802 CUDA_ERROR_SYSTEM_NOT_READY"}
facts = [["cuInit", "802 CUDA_ERROR_SYSTEM_NOT_READY"]]
```

The module is loaded but could not start any card.

```toml
[driver]
gpus = []
[probes.cuda]
devices = []
facts = [["cuInit", "100 CUDA_ERROR_NO_DEVICE"]]
```

The driver takes one of two cards.

```toml
[[graphics]]
vendor = "nvidia"
address = "0000:41:00.0"
device_id = "2230"
kernel_driver = "nvidia"
[[graphics]]
vendor = "nvidia"
address = "0000:81:00.0"
device_id = "102d"
kernel_driver = {absent = "/sys/bus/pci/devices/0000:81:00.0/driver"}
```

## Quiet on (machine)

A GPU that does not answer may be the card that no driver uses.

```toml
[[graphics]]
vendor = "nvidia"
address = "0000:81:00.0"
device_id = "2230"
kernel_driver = {absent = "/sys/bus/pci/devices/0000:81:00.0/driver"}
[driver.gpus.0]
name = "GPU that does not answer"
pci_address = ""
```

A card that was given to virtual machines.

```toml
[[graphics]]
vendor = "nvidia"
address = "0000:41:00.0"
device_id = "2230"
kernel_driver = "nvidia"
[[graphics]]
vendor = "nvidia"
address = "0000:81:00.0"
device_id = "2230"
kernel_driver = "vfio-pci"
```

nvidia_uvm is often not loaded before the first CUDA program; the driver loads it then.

```toml
[driver]
uvm = false
```

## Cannot tell on (machine)

Only a CUDA program can show whether the driver can load nvidia_uvm.

```toml
probes_left_out = "--no-probe"
[driver]
uvm = false
```

## Fires on (log)

Both parts of the driver are installed and match, but CUDA does not start.

```
2018-03-20 17:02:11.430001: E tensorflow/stream_executor/cuda/cuda_driver.cc:406] failed call to cuInit: CUDA_ERROR_UNKNOWN
2018-03-20 17:02:11.430087: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:189] libcuda reported version is: 387.26.0
2018-03-20 17:02:11.430101: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:193] kernel reported version is: 387.26.0
2018-03-20 17:02:11.430110: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:300] kernel version seems to match DSO: 387.26.0
```

```
$ nvidia-smi
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.
```

The driver refuses access to a GPU and gives no reason.

```
RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable
```

```
2019-05-05 05:05:05.000001: F tensorflow/stream_executor/lib/statusor.cc:34] Attempting to fetch value instead of handling error Internal: failed to get device attribute 13 for device 0: CUDA_ERROR_UNKNOWN: unknown error
```

A machine with NVSwitch.

```
UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 802: system not yet initialized (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)
```

## Quiet on (log)

An error without a reason during a run comes from a kernel, not from the module.

```
Epoch 3/10 loss: 0.4127
RuntimeError: CUDA error: an illegal memory access was encountered
```

## Sources

- <https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/>
- <https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide>
- <https://github.com/NVIDIA/nvtrust/issues/39>
- <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html>
- <https://wiki.debian.org/SecureBoot>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.cuda_start_suspects import mismatch_lines, suspected
from whygpu.causes.evidence.driver_state import (
    CONSEQUENCES,
    CONTROL_NODES,
    CuInit,
    cu_init,
    cuda_starts,
    device_nodes,
    gpu_nodes,
    nvidia_hardware,
    on_tegra,
    other_holders,
    place_of,
    probed,
    real_library,
)
from whygpu.causes.evidence.kernel_module_remedies import (
    READ_KERNEL_LOG,
    log_remedies,
    ways_to_load,
)
from whygpu.causes.evidence.log_cuda_start import (
    NOT_READY,
    failed_at,
    in_order,
    lines_of,
    lost_gpu_lines,
    named,
    story_of,
    weight,
)
from whygpu.causes.evidence.log_kernel_module import (
    BUSY,
    COMPUTE_MODES,
    MODULE_ERRORS,
    refused_without_reason,
)
from whygpu.causes.evidence.log_status_families import decided_by_code
from whygpu.causes.evidence.log_subjects import gpu_ends_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import and_list, nvidia_gpu
from whygpu.model.driver import Gpu, GraphicsDevice
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, NotApplicable, need, need_or
from whygpu.model.remedy import command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.tables.architectures import parse_capability

CAUSE = cause("WG103", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)

_NO_DEVICE = 100
_SYSTEM_NOT_READY = 802
_TELLS_FABRIC = (9, 0)
"""From this compute capability on, NVML says whether a GPU belongs to an NVSwitch."""
_CODES_WITH_OWN_REASON = (34, _NO_DEVICE, _SYSTEM_NOT_READY, 803, 804)
"""Codes of cuInit that have their own reason, independent of nvidia_uvm."""

_EXPLAINED_BY_MODULE = (None, "missing", "not-loaded", "failed")
"""Driver states that a missing module explains; other states have their own causes."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    answer = cu_init(machine)
    if isinstance(answer, Known) and answer.value.code == _SYSTEM_NOT_READY:
        yield _without_fabric(answer, machine) or _fabric_manager(machine, answer)
        return
    if place_of(machine) != "bare" or on_tegra(machine):
        raise NotApplicable("NVIDIA kernel module that belongs to this system")
    if real_library(machine.driver.cuda_library) is None:
        raise NotApplicable("NVIDIA driver whose kernel modules could be checked")
    if not cuda_starts(machine):
        yield from _judge_module(machine)
    yield from _cards_left_out(machine)


def _judge_module(machine: Snapshot) -> Iterator[Finding | Gap]:
    driver = machine.driver
    state = driver.state.value if isinstance(driver.state, Known) else None
    if isinstance(driver.kernel_module, Absent) and state in _EXPLAINED_BY_MODULE:
        yield _not_loaded(machine)
    elif state == "working" and isinstance(driver.gpus, Known) and not driver.gpus.value:
        # The driver lists no GPU whose node may not be opened: device-permission-denied.
        cards = gpu_nodes(device_nodes(machine))
        if not cards or any(node.usable for node in cards):
            yield _no_card_started(machine)
    elif state in ("failed", "not-loaded") and not gpu_nodes(device_nodes(machine)):
        yield _without_nodes(machine)
    elif state is None and not isinstance(driver.kernel_module, Known):
        need(driver.kernel_module)
    elif state in (None, "working"):
        yield from _judge_uvm(machine)


def _judge_uvm(machine: Snapshot) -> Iterator[Finding | Gap]:
    driver = machine.driver
    node = CONTROL_NODES[1]
    has_node = any(item.path == node for item in device_nodes(machine))
    if has_node and not isinstance(driver.kernel_module, Known):
        # A sandbox hides the files of the modules; then the device node decides.
        return
    loaded = need(driver.uvm)
    if loaded and has_node:
        return
    what = f"its device node {node} is missing" if loaded else "it is not loaded"
    answer = cu_init(machine)
    if not isinstance(answer, Known):
        yield Gap(
            f"CUDA needs the kernel module nvidia_uvm, but {what}; the driver can often repair "
            "this itself, but CUDA was not started to check it"
        )
    elif answer.value.code not in (0, *_CODES_WITH_OWN_REASON):
        yield CAUSE.finding(
            subject=MACHINE,
            message=f"CUDA does not start ({answer.value.text}): in addition to nvidia "
            f"{_version(machine)} it needs the kernel module nvidia_uvm, but {what}",
            evidence=(seen(driver.uvm, "loaded" if loaded else "not loaded"), probed(answer)),
            remedies=(
                Remedy("Load the module.", command_line("sudo modprobe nvidia_uvm")),
                Remedy(
                    "Or create the device nodes and load the modules.",
                    command_line("sudo nvidia-modprobe -u -c=0"),
                ),
                READ_KERNEL_LOG,
            ),
        )


def _version(machine: Snapshot) -> str:
    module = machine.driver.kernel_module
    return module.value if isinstance(module, Known) else ""


def _not_loaded(machine: Snapshot) -> Finding:
    driver = machine.driver
    library = need(driver.cuda_library)
    holders = other_holders(machine)
    held = f"; the card uses {' and '.join(holders)}" if holders else ""
    return CAUSE.finding(
        subject=MACHINE,
        message=f"NVIDIA's driver is installed ({library.path}), but its kernel module is not "
        f"loaded{held}",
        evidence=(
            seen(driver.kernel_module, "the module nvidia is not loaded"),
            seen(driver.state, driver.detail or None),
            seen(nvidia_gpu(machine)),
        ),
        remedies=ways_to_load(holders),
    )


def _cards_left_out(machine: Snapshot) -> Iterator[Finding]:
    """Cards beside those in use that the driver did not take.

    The list of GPUs alone does not show that: a scheduler may hide the GPUs of other jobs, and to
    give a card to a virtual machine (vfio-pci) is a choice.
    """
    listed = need_or(machine.driver.gpus, ())
    if not listed or not all(gpu.pci_address for gpu in listed):
        # A GPU that does not answer has no address, and may be the card.
        return
    # The virtual functions of a GPU are on its bus, and have no driver on their host.
    buses = {gpu.pci_address.rpartition(":")[0] for gpu in listed}
    left_out = [
        device
        for device in nvidia_hardware(machine)
        if device.address
        and device.address.rpartition(":")[0] not in buses
        and (isinstance(device.kernel_driver, Absent) or _holder(device) == "nouveau")
    ]
    if not left_out:
        return
    cards = and_list([f"{device.address} (device id {device.device_id})" for device in left_out])
    holder = " or ".join(sorted({_holder(device) or "no driver" for device in left_out}))
    yield CAUSE.finding(
        subject=MACHINE,
        message=f"the NVIDIA driver {_version(machine)} does not use the card at {cards}: {holder} "
        f"uses it; programs can use only {and_list([gpu.name for gpu in listed])}",
        evidence=(
            *(seen(device.kernel_driver, _holder(device) or "none") for device in left_out),
            seen(machine.driver.gpus, f"{len(listed)} listed"),
        ),
        remedies=(
            READ_KERNEL_LOG,
            Remedy(
                "If the log says that a legacy driver supports the card, it is too old for this "
                "driver, and no driver supports both cards. If it asks for the open kernel "
                "modules, install these."
            ),
        ),
        severity="warning",
        effect="none",
    )


def _holder(device: GraphicsDevice) -> str | None:
    return device.kernel_driver.value if isinstance(device.kernel_driver, Known) else None


def _no_card_started(machine: Snapshot) -> Finding:
    driver = machine.driver
    cards = ", ".join(device.address for device in nvidia_hardware(machine))
    holders = other_holders(machine)
    held = f", which uses {' and '.join(holders)}" if holders else ""
    where = f"although the bus shows one at {cards}{held}" if cards else "although one was seen"
    return CAUSE.finding(
        subject=MACHINE,
        message=f"the NVIDIA driver {_version(machine)} is loaded but has no GPU, {where}: it "
        "could not start the card, or may not show it here",
        evidence=(
            seen(driver.gpus, driver.detail or "the driver lists no GPU"),
            seen(nvidia_gpu(machine)),
        ),
        remedies=(
            READ_KERNEL_LOG,
            Remedy(
                "If the log contains 'RmInitAdapter failed', the driver does not support this card "
                "(cards from 2025 on need the open kernel modules, cards before 2018 the "
                "proprietary ones), or the card lacks power or is not passed through properly. If "
                "it names a legacy driver for the card, install that one."
            ),
            Remedy(
                "On a cluster, a job without a GPU sees none: request one from the scheduler.",
                command_line("srun --gres=gpu:1 --pty bash"),
            ),
        ),
    )


def _without_nodes(machine: Snapshot) -> Finding:
    driver = machine.driver
    return CAUSE.finding(
        subject=MACHINE,
        message=f"the NVIDIA kernel module {_version(machine)} is loaded, but the device node "
        "/dev/nvidia0, which programs need to use the GPU, does not exist",
        evidence=(
            seen(driver.device_nodes, "no device node of a GPU"),
            seen(driver.state, driver.detail or None),
        ),
        remedies=(
            Remedy("Create the nodes.", command_line("sudo nvidia-modprobe -u -c=0")),
            Remedy(
                "To create them at every start, install the package nvidia-modprobe or run the "
                "driver's persistence daemon.",
                command_line("sudo systemctl enable --now nvidia-persistenced"),
            ),
            READ_KERNEL_LOG,
        ),
    )


def _without_fabric(answer: Known[CuInit], machine: Snapshot) -> Finding | None:
    """The system is not ready, and no GPU has an NVSwitch that it could wait for.

    NVML answers this for Hopper and newer only; older GPUs may have one all the same.
    """
    gpus = machine.driver.gpus
    if not isinstance(gpus, Known) or not gpus.value or not all(map(_has_no_fabric, gpus.value)):
        return None
    return CAUSE.finding(
        subject=MACHINE,
        message=f"CUDA does not start ({answer.value.text}): the GPUs are there, but the system "
        "is not ready. They have no NVSwitch, so no fabric manager is missing; in a confidential "
        "virtual machine, a GPU is not ready before somebody has accepted it",
        evidence=(probed(answer), seen(gpus, "no GPU belongs to an NVSwitch")),
        remedies=(
            Remedy(
                "If confidential computing is on, set the GPUs ready after their attestation.",
                shell_script("nvidia-smi conf-compute -f; sudo nvidia-smi conf-compute -srs 1"),
            ),
            READ_KERNEL_LOG,
        ),
        confidence="possible",
    )


def _has_no_fabric(gpu: Gpu) -> bool:
    capability = gpu.compute_capability
    numbers = parse_capability(capability.value) if isinstance(capability, Known) else None
    if numbers is None or numbers < _TELLS_FABRIC or not isinstance(gpu.health, Known):
        return False
    return isinstance(gpu.health.value.fabric, Absent)


def _not_joined(machine: Snapshot) -> Iterator[Evidence]:
    gpus = machine.driver.gpus
    for gpu in gpus.value if isinstance(gpus, Known) else ():
        state = gpu.health.value.fabric if isinstance(gpu.health, Known) else gpu.health
        if isinstance(state, Known) and state.value != "joined":
            yield seen(state, f"GPU {gpu.number} has not joined the fabric: {state.value}")


def _fabric_manager(machine: Snapshot, answer: Known[CuInit]) -> Finding:
    version = machine.driver.version
    exact = f" {version.value}" if isinstance(version, Known) else ""
    on_host = " (on the host)" if place_of(machine) == "container" else ""
    return CAUSE.finding(
        subject=MACHINE,
        message=f"CUDA does not start ({answer.value.text}): the GPUs are there, but the system "
        "is not ready; on machines with NVSwitch the fabric manager must be running",
        evidence=(probed(answer), seen(nvidia_gpu(machine)), *_not_joined(machine)),
        remedies=(
            Remedy(
                f"Start the fabric manager{on_host}.",
                command_line("sudo systemctl enable --now nvidia-fabricmanager"),
            ),
            Remedy(
                f"It must have exactly the driver's version{exact}; another version stops at once "
                "and reports the reason.",
                command_line("systemctl status nvidia-fabricmanager"),
            ),
            Remedy(
                "Check whether the GPUs joined the fabric.",
                shell_script("nvidia-smi -q | grep -A3 Fabric"),
            ),
        ),
        confidence="likely",
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    suspect = suspected(log, CAUSE.slug)
    by_code = lines_of(decided_by_code(log, CAUSE.slug))
    errors = in_order((*(match.line for match in log.find(MODULE_ERRORS)), *by_code))
    refused = () if suspect or log.says(COMPUTE_MODES) else lines_of(named(log, BUSY))
    gone = () if suspect or errors else (*refused, *refused_without_reason(log))
    if suspect is None and (not (errors or gone) or mismatch_lines(log) or lost_gpu_lines(log)):
        return
    lines = (*errors, *gone, *(suspect.lines if suspect else ()))
    if errors:
        lines += gpu_ends_after(log, errors[0])
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_log_message(log, (*errors, *gone)),
        evidence=log.evidence(*lines),
        remedies=log_remedies(log),
        confidence=suspect.confidence if suspect else "likely" if errors else "possible",
        severity=suspect.severity if suspect else weight(log, lines, "error"),
        effect="broken" if failed_at(log, lines) else "cpu",
        ask=suspect.ask if suspect else _ASK_RESTART if gone else None,
    )


_ASK_RESTART = "Does it work after a restart of the machine? Then the driver was in a bad state."


def _log_message(log: Log, errors: tuple[int, ...]) -> str:
    version = log.version_of("kernel-module") or log.version_of("driver")
    driver = f"the NVIDIA driver {version}" if version else "the NVIDIA driver"
    if named(log, NOT_READY):
        return (
            f"{driver} shows the GPUs, but the system is not ready; on machines with NVSwitch the "
            "fabric manager may not be running"
        )
    if errors and named(log, BUSY):
        return (
            f"{driver} does not let the process use the GPU (busy or unavailable): the GPU is in a "
            "bad state, or another process holds it exclusively"
        )
    if errors:
        return f"the kernel module of {driver} does not work: {log.line(errors[0]).text[:140]}"
    if story_of(log).matching:
        return (
            f"both parts of {driver} are installed and have the same version, but CUDA does not "
            "start and gives no reason: most often the module nvidia_uvm or its device node is "
            "missing or in a bad state"
        )
    return (
        f"{driver} is installed, but its kernel module does not work with CUDA: it is not loaded, "
        "lacks nvidia_uvm, or could not start the card"
    )
