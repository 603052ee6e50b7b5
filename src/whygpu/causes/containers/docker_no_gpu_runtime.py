"""The host has an NVIDIA GPU, but this container did not get it, or not everything CUDA needs.

## Why it happens

A container uses the host's kernel but its own files. The GPU's device nodes and the driver's
libraries must be passed in when it starts. Docker does this with `--gpus all` and the NVIDIA
container toolkit, Kubernetes for pods that request `nvidia.com/gpu`, Apptainer with `--nv`. Even if
something is missing, the hardware is visible on the bus.

- Nothing was passed in: the option or the toolkit is missing.
- Device nodes without libraries: NVIDIA_DRIVER_CAPABILITIES lacks `compute`, or the nodes were
  passed in manually.
- The image contains its own driver library, in another version than the host's. Packages such as
  `cuda` or `nvidia-driver` in the Dockerfile install it, and it hides the one that is passed in.
- The container lost its access while it ran: a reload of systemd on the host resets the device
  rules of containers whose devices it does not know.

## What it looks like

- TensorFlow: `failed call to cuInit: UNKNOWN ERROR (303)` or `CUDA_ERROR_NO_DEVICE`.
- PyTorch: "Found no NVIDIA driver on your system".
- `Failed to initialize NVML: Unknown Error` in a container that worked before.
- nvidia-smi works on the host but not in the container.

## Fix

Start the container again, with GPUs. Keep the driver out of images; CUDA toolkits may stay.

## Fires on (machine)

Docker without `--gpus`.

```toml
[system.container]
runtime = "docker"
driver_mounts = {absent = "NVIDIA driver files in /proc/self/mountinfo"}
[driver]
state = "missing"
detail = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
cuda_library = {absent = "libcuda.so.1 in the usual folders"}
nvml_library = {absent = "libnvidia-ml.so.1 in the usual folders"}
device_nodes = {absent = "/dev/nvidia*, /dev/dxg"}
gpus = {unknown = "NVML could not tell: libnvidia-ml.so.1 is missing"}
[probes.cuda]
facts = [["libcuda.so.1", "libcuda.so.1: cannot open shared object file"]]
```

The image contains a driver library in another version than the host's.

```toml
[system.container]
runtime = "docker"
driver_mounts = ["/dev/nvidia0", "/dev/nvidiactl"]
[driver]
state = "mismatched"
detail = "Driver/library version mismatch"
[driver.cuda_library]
path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
version = "550.54.14"
[probes.cuda]
facts = [["cuInit", "803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"]]
```

## Quiet on (machine)

A container that got everything it needs.

```toml
[system.container]
runtime = "docker"
driver_mounts = ["/dev/nvidia0", "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"]
```

A container on a machine without a GPU.

```toml
start = "no-gpu"
[system.container]
runtime = "docker"
driver_mounts = {absent = "NVIDIA driver files in /proc/self/mountinfo"}
```

## Cannot tell on (machine)

```toml
start = "no-gpu"
graphics = {unknown = "/sys/bus/pci/devices is not there"}
[system.container]
runtime = "docker"
driver_mounts = {absent = "NVIDIA driver files in /proc/self/mountinfo"}
```

## Fires on (log)

```
docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].
ERRO[0000] error waiting for container: context canceled
```

The host name is a container's, and there is no driver.

```
2020-06-09 07:30:11.100001: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: /usr/local/nvidia/lib:/usr/local/nvidia/lib64
2020-06-09 07:30:11.100043: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:156] kernel driver does not appear to be running on this host (9c1e5f60ab37): /proc/driver/nvidia/version does not exist
```

It worked until systemd reloaded its rules.

```
root@7d0e61b2f3a4:/workspace# nvidia-smi
Failed to initialize NVML: Unknown Error
```

## Quiet on (log)

The container got its GPU, but the image's CUDA is newer than the driver.

```
docker: Error response from daemon: failed to create shim task: OCI runtime create failed: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.2, please update your driver to a newer version, or use an earlier cuda container: unknown.
```

```
Step 4/9 : RUN pip install tensorflow-gpu==2.4.1
ERROR: Could not find a version that satisfies the requirement tensorflow-gpu==2.4.1
```

## Sources

- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html>
- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html>
- <https://github.com/NVIDIA/nvidia-container-toolkit/issues/48>
- <https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/>
- <https://apptainer.org/docs/user/main/gpu.html>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.container_advice import (
    NVIDIA_RUNTIME_ON_NODE,
    ways_to_pass_in,
    without_label,
)
from whygpu.causes.evidence.cuda_start_suspects import mismatch_lines, suspected
from whygpu.causes.evidence.driver_state import (
    CONSEQUENCES,
    CONTROL_NODES,
    WSL_NODE,
    cuda_starts,
    device_nodes,
    differing_libraries,
    from_image,
    gpu_nodes,
    other_holders,
    real_library,
    uses_apt,
    uses_nvidia_module,
    withheld_at_start,
)
from whygpu.causes.evidence.log_container_engines import (
    access_was_lost,
    engine_statements,
    failed_on_the_host,
    host_has_no_driver,
    message_about,
    remedies_for,
)
from whygpu.causes.evidence.log_cuda_start import failed_at
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import DeviceNode
from whygpu.model.finding import MACHINE, Confidence, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, Unknown, need, need_or
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import ContainerRuntime

CAUSE = cause(
    "WG801",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(*CONSEQUENCES, "nvml-library-missing"),
)


_ASSIGNED = late(r"(?:GPU|MIG)-(?:GPU-)?[0-9a-f]{4}(?:[0-9a-f]|…)")
"""Names of devices that the device plugin of Kubernetes assigns; facts have them shortened."""


class _Fault(NamedTuple):
    """What the container lacks."""

    what: str
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...]
    confidence: Confidence = "certain"


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    container = machine.system.container
    need(container)
    gpu = nvidia_gpu(machine)
    if not isinstance(machine.system.wsl, Absent) and not isinstance(gpu, Known):
        yield Gap(
            "whether the Windows machine of this container has an NVIDIA GPU; docker run --gpus "
            "all passes one in"
        )
        return
    need(gpu)
    if cuda_starts(machine) or withheld_at_start(machine) is not None:
        return
    fault = _fault(machine)
    if fault is not None:
        yield CAUSE.finding(
            subject=MACHINE,
            message=f"this container ({_runtime(machine)}) {fault.what}",
            evidence=(*fault.evidence, seen(gpu), seen(container, "this is a container")),
            remedies=fault.remedies,
            confidence=fault.confidence,
        )


def _runtime(machine: Snapshot) -> ContainerRuntime:
    return need(machine.system.container).runtime


def _fault(machine: Snapshot) -> _Fault | None:
    nodes = device_nodes(machine)
    if not isinstance(machine.system.wsl, Absent):
        passed = any(node.path == WSL_NODE for node in nodes)
        return None if passed else _nothing_passed_in(machine)
    if not gpu_nodes(nodes):
        return _nothing_passed_in(machine)
    return (
        _closed_nodes(machine, nodes)
        or _without_library(machine)
        or _library_of_the_image(machine)
        or _incomplete_nodes(machine, nodes)
        or _lost_access(machine)
    )


def _nothing_passed_in(machine: Snapshot) -> _Fault:
    """No device node of any GPU. The host's module shows whether one could be passed in."""
    driver = machine.driver
    evidence = (seen(driver.device_nodes, "no device node of a GPU"),)
    # A sandbox hides /proc and /sys/module of the host, and the bus may still show the driver.
    module_there = not isinstance(driver.kernel_module, Absent) or uses_nvidia_module(machine)
    if not module_there and isinstance(machine.system.wsl, Absent):
        served = other_holders(machine)
        by = f" (its card uses {' and '.join(served)})" if served else ""
        return _Fault(
            f"runs on a host with an NVIDIA GPU, but NVIDIA's kernel module is not loaded{by}, "
            "so no GPU can be passed in",
            (*evidence, seen(driver.kernel_module, "the host's module nvidia is not loaded")),
            (
                Remedy(
                    "Install the NVIDIA driver on the host and check that nvidia-smi works there.",
                    command_line("nvidia-smi"),
                ),
                *ways_to_pass_in(_runtime(machine)),
            ),
        )
    return _withheld_by_layer(machine, evidence)


def _withheld_by_layer(machine: Snapshot, evidence: tuple[Evidence, ...]) -> _Fault:
    """The host could pass one in: was it not asked for, or did the runtime not obey?"""
    what = "did not get a GPU: the host has one, but /dev/nvidia0 was not passed in"
    runtime = _runtime(machine)
    ways = ways_to_pass_in(runtime)
    asked = machine.environment.get("NVIDIA_VISIBLE_DEVICES")
    value = asked.value.strip() if isinstance(asked, Known) else ""
    if value.lower() in ("", "none", "void"):
        where = "; nothing shows that its manifest asks for one" if runtime == "kubernetes" else ""
        return _Fault(what + where, evidence, ways)
    evidence = (*evidence, seen(asked))
    if runtime == "kubernetes" and _ASSIGNED.match(value):
        return _Fault(
            f"{what}. NVIDIA_VISIBLE_DEVICES names one, as the device plugin sets it for a pod "
            "whose manifest asks for a GPU, so the runtime of the node withheld it",
            evidence,
            (NVIDIA_RUNTIME_ON_NODE, *ways),
            "likely",
        )
    if runtime == "kubernetes":
        return _Fault(
            f"{what}; NVIDIA_VISIBLE_DEVICES is not the device plugin's (CUDA images set it too), "
            "so nothing shows that its manifest asks for one",
            evidence,
            ways,
        )
    return _Fault(
        f"{what}. NVIDIA_VISIBLE_DEVICES asks for it, in the image or at the start, but only "
        "NVIDIA's runtime reads that, and another runtime has started this container",
        evidence,
        ways,
    )


def _closed_nodes(machine: Snapshot, nodes: tuple[DeviceNode, ...]) -> _Fault | None:
    """Nodes whose modes allow everyone, but which still cannot be opened."""
    needed = [*gpu_nodes(nodes), *(node for node in nodes if node.path in CONTROL_NODES)]
    closed = [node for node in needed if not node.usable]
    if not closed or any(not node.mode.endswith("rw-rw-rw-") for node in closed):
        return None
    if any(node.usable for node in gpu_nodes(nodes)) and all(
        node.usable for node in needed if node.path in CONTROL_NODES
    ):
        return None
    return _Fault(
        f"may not open {closed[0].path}, although its mode is {closed[0].mode}: the container's "
        "device rules or its security label forbid it",
        tuple(
            Evidence("machine", node.path, f"{node.mode}, but cannot be opened") for node in closed
        ),
        (
            Remedy(
                "If it worked before, a reload of systemd on the host removed the access: start "
                "the container again."
            ),
            *without_label(_runtime(machine)),
            *ways_to_pass_in(_runtime(machine)),
        ),
        "likely",
    )


def _without_library(machine: Snapshot) -> _Fault | None:
    driver = machine.driver
    if isinstance(driver.cuda_library, Unknown) or real_library(driver.cuda_library) is not None:
        return None
    capabilities = machine.environment.get("NVIDIA_DRIVER_CAPABILITIES")
    lacking = isinstance(capabilities, Known) and _lacks_compute(capabilities.value)
    set_to = f": NVIDIA_DRIVER_CAPABILITIES={need_or(capabilities, '')} lacks compute"
    remedy = Remedy(
        "NVIDIA_DRIVER_CAPABILITIES must contain compute; an image or the start can set it.",
        command_line("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...")
        if _runtime(machine) == "docker"
        else None,
    )
    others = ways_to_pass_in(_runtime(machine))
    return _Fault(
        "got the GPU's device nodes, but not libcuda.so.1 of the host's driver"
        + (set_to if lacking else ""),
        (
            seen(driver.cuda_library),
            *((seen(capabilities),) if isinstance(capabilities, Known) else ()),
        ),
        (remedy, *others) if lacking else others,
    )


def _lacks_compute(capabilities: str) -> bool:
    """Empty, the variable has its default, which has compute."""
    words = {word.strip() for word in capabilities.split(",")} - {""}
    return bool(words) and not words & {"all", "compute"}


def _library_of_the_image(machine: Snapshot) -> _Fault | None:
    driver = machine.driver
    state = driver.state.value if isinstance(driver.state, Known) else None
    candidates = differing_libraries(machine)
    if not candidates and state == "mismatched":
        candidates = tuple(
            library
            for library in (driver.cuda_library, driver.nvml_library)
            if isinstance(library, Known) and library.value.kind == "driver"
        )
    baked = [library for library in candidates if from_image(machine, library.value)]
    if not baked:
        return None
    library = baked[0].value
    version = library.version.value if isinstance(library.version, Known) else "another version"
    module = driver.kernel_module
    on_host = module.value if isinstance(module, Known) else "another version"
    return _Fault(
        f"uses {library.path} of driver {version} from its image, but the host's kernel module "
        f"is {on_host}; the library must be the host's",
        (
            *(seen(item, f"{item.value.path}, part of the image") for item in baked),
            seen(module, f"the host's kernel module: {on_host}"),
        ),
        (
            Remedy(
                "Remove the driver from the image (in the Dockerfile, install cuda-toolkit and "
                "not cuda), and start the container with GPUs.",
                command_line("apt-get purge -y 'libnvidia-*' 'nvidia-driver-*' libcuda1")
                if uses_apt(machine)
                else None,
            ),
            *ways_to_pass_in(_runtime(machine)),
        ),
    )


def _incomplete_nodes(machine: Snapshot, nodes: tuple[DeviceNode, ...]) -> _Fault | None:
    there = {node.path for node in nodes}
    missing = [path for path in CONTROL_NODES if path not in there]
    if not missing:
        return None
    return _Fault(
        f"got the GPU, but not {' and '.join(missing)}, which CUDA needs as well",
        tuple(Evidence("machine", path, "missing") for path in missing),
        (
            *ways_to_pass_in(_runtime(machine)),
            Remedy(
                "If the host lacks the node too, create it there before the container starts.",
                command_line("sudo nvidia-modprobe -u -c=0"),
            ),
        ),
    )


def _lost_access(machine: Snapshot) -> _Fault | None:
    """All files exist, but the driver fails without a reason, as after a systemd reload."""
    state = machine.driver.state
    if not isinstance(state, Known) or state.value != "failed":
        return None
    return _Fault(
        "has the GPU's device nodes and libraries, but the driver fails: "
        f"{machine.driver.detail or 'no reason given'}; if it worked before, it has lost its "
        "access, as after a reload of systemd on the host",
        (seen(state, machine.driver.detail or "failed"),),
        (
            Remedy("Start the container again."),
            Remedy(
                "To prevent this, name the devices when it starts (or use CDI).",
                command_line(
                    "docker run --gpus all --device /dev/nvidia0 --device /dev/nvidiactl "
                    "--device /dev/nvidia-uvm ..."
                ),
            )
            if _runtime(machine) == "docker"
            else Remedy("To prevent this, let the container engine pass the GPU in by CDI."),
        ),
        "likely",
    )


_DRIVER_LIBRARIES = ("cuda", "nvidia-ml")
"""If a container once got its driver, empty files with these names remain in it."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statements = engine_statements(log)
    text = statements[0].text if statements else ""
    if host_has_no_driver(text) and failed_on_the_host(log):
        return
    suspect = suspected(log, CAUSE.slug)
    empty = [event.line for event in log.library_events("broken", _DRIVER_LIBRARIES)]
    if mismatch_lines(log) or (not statements and suspect is None and not empty):
        return
    lines = (*(m.line for m in statements), *empty, *(suspect.lines if suspect else ()))
    confidence: Confidence = suspect.confidence if suspect else "likely"
    if statements and not access_was_lost(text):
        confidence = "certain"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=message_about(log, text),
        evidence=log.evidence(*lines),
        remedies=remedies_for(log, text),
        confidence=confidence,
        severity="error" if statements else suspect.severity if suspect else "error",
        effect="broken" if statements or failed_at(log, lines) else "cpu",
        ask=None if statements or suspect is None else suspect.ask,
    )
