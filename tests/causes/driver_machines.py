"""Machines with one fault each in driver, device access or container, as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.machines import healthy as machines
from tests.machines.healthy import known
from whygpu.model.driver import DeviceNode, Driver, DriverLibrary, DriverState, GraphicsDevice
from whygpu.model.environment import Environment, GpuSelection, Variable
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.probe import Probe
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import Container, ContainerRuntime
from whygpu.model.target import Framework

SILENT: Any = Unknown("NVML could not tell: it does not answer")
OTHER_VERSION = "580.82.07"
HEALTHY = machines.healthy()
DRIVER = HEALTHY.driver
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
DXG = DeviceNode("/dev/dxg", "crw-rw-rw-", "root", True)


def nodes(*, mode: str = "crw-rw-rw-", group: str = "root", usable: bool = True) -> Any:
    names = ("nvidia0", "nvidiactl", "nvidia-uvm")
    return known(tuple(DeviceNode(f"/dev/{name}", mode, group, usable) for name in names))


def library(name: str, version: str, kind: Any = "driver", folder: str = LIBRARIES) -> Any:
    return known(DriverLibrary(f"{folder}/{name}", known(version), kind))


def driver_that(state: DriverState, **changes: Any) -> Driver:
    """A driver in trouble: it is installed and loaded, but what it would tell is not known."""
    facts: dict[str, Any] = {"version": SILENT, "cuda": SILENT, "gpus": SILENT, **changes}
    return DRIVER._replace(state=known(state), detail=f"the driver says: {state}", **facts)


NO_DRIVER = machines.NO_DRIVER._replace(
    uvm=known(False),
    device_nodes=Absent("/dev/nvidia*, /dev/dxg"),
)
NOT_LOADED = driver_that(
    "not-loaded",
    kernel_module=Absent("/proc/driver/nvidia/version"),
    uvm=known(False),
    device_nodes=Absent("/dev/nvidia*, /dev/dxg"),
)
MISMATCHED = driver_that(
    "mismatched",
    cuda_library=library("libcuda.so.1", OTHER_VERSION),
    nvml_library=library("libnvidia-ml.so.1", OTHER_VERSION),
)
DENIED = driver_that("denied", device_nodes=nodes(mode="crw-rw----", group="video", usable=False))

ON_BARE_METAL: dict[DriverState, tuple[Driver, str | None]] = {
    "working": (DRIVER, None),
    "missing": (NO_DRIVER, "no-nvidia-driver"),
    "not-loaded": (NOT_LOADED, "nvidia-kernel-module-state"),
    "mismatched": (MISMATCHED, "driver-library-version-mismatch"),
    "hung": (driver_that("hung"), "driver-hung"),
    "denied": (DENIED, "device-permission-denied"),
    "lost": (driver_that("lost"), "ecc-xid-hardware-error"),
    "failed": (driver_that("failed"), "cuda-init-failed"),
}
IN_A_CONTAINER: dict[DriverState, tuple[Driver, str | None]] = {
    "working": (DRIVER, None),
    "missing": (
        NO_DRIVER._replace(kernel_module=DRIVER.kernel_module, gpus=SILENT, uvm=known(True)),
        "docker-no-gpu-runtime",
    ),
    "not-loaded": (NOT_LOADED, "docker-no-gpu-runtime"),
    "mismatched": (MISMATCHED, "docker-no-gpu-runtime"),
    "hung": (driver_that("hung"), "driver-hung"),
    "denied": (DENIED, "device-permission-denied"),
    "lost": (driver_that("lost"), "ecc-xid-hardware-error"),
    "failed": (driver_that("failed"), "docker-no-gpu-runtime"),
}


def under_windows(driver: Driver) -> Driver:
    """The same driver as WSL shows it: Windows' libraries, /dev/dxg and no module."""
    return driver._replace(
        kernel_module=Absent("WSL: the kernel's part of the driver runs in Windows"),
        uvm=known(False),
        device_nodes=known((DXG,)),
        cuda_library=library("libcuda.so.1", "580.65", "wsl", "/usr/lib/wsl/lib"),
        nvml_library=library("libnvidia-ml.so.1", "580.65", "wsl", "/usr/lib/wsl/lib"),
    )


LINUX_DRIVER_IN_WSL = NOT_LOADED._replace(device_nodes=known((DXG,)))

UNDER_WSL: dict[DriverState, tuple[Driver, str | None]] = {
    "working": (under_windows(DRIVER), None),
    "not-loaded": (LINUX_DRIVER_IN_WSL, "wsl-no-gpu"),
    "hung": (under_windows(driver_that("hung")), "driver-hung"),
    "failed": (under_windows(driver_that("failed")), "cuda-init-failed"),
}


def cuda_probe(driver: Driver, code: str | None) -> Probe:
    """The CUDA probe on this driver; without a code, one that found no libcuda."""
    if isinstance(driver.cuda_library, Absent):
        missing = "libcuda.so.1: cannot open shared object file: No such file or directory"
        return machines.CUDA_PROBE._replace(
            facts=(("libcuda.so.1", missing),), devices=Absent(missing)
        )
    if isinstance(driver.state, Known) and driver.state.value == "hung":
        return machines.CUDA_PROBE._replace(
            ended="timed-out",
            how="60 s",
            stage="cuInit",
            facts=(("libcuda.so.1", "loaded"),),
            devices=Unknown("no answer"),
        )
    assert code is not None
    if code.startswith("0"):
        return machines.CUDA_PROBE
    return machines.CUDA_PROBE._replace(
        facts=(("libcuda.so.1", "loaded"), ("cuInit", code)),
        devices=known(()) if code.startswith("100") else Unknown(f"cuInit: {code}"),
    )


CODES: dict[DriverState, str] = {
    "not-loaded": "100 CUDA_ERROR_NO_DEVICE",
    "mismatched": "803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "denied": "304 CUDA_ERROR_OPERATING_SYSTEM",
    "lost": "999 CUDA_ERROR_UNKNOWN",
    "failed": "999 CUDA_ERROR_UNKNOWN",
    "working": "100 CUDA_ERROR_NO_DEVICE",
    "missing": "100 CUDA_ERROR_NO_DEVICE",
}


def on_the_cpu(machine: Snapshot, code: str | None = None) -> Snapshot:
    """Every framework was run and computed on the CPU, because cuInit failed with this code."""
    state = machine.driver.state
    told = code or (CODES.get(state.value) if isinstance(state, Known) else None)
    frameworks = machine.target.frameworks
    names: tuple[Framework, ...] = frameworks.value if isinstance(frameworks, Known) else ()
    return machine.with_probes(
        (
            cuda_probe(machine.driver, told),
            *(machines.probe_of(item.name, item.version, None) for item in names),  # type: ignore[arg-type]
        )
    )


def container(runtime: ContainerRuntime = "docker", *mounts: str) -> Known[Container]:
    found: Any = known(mounts) if mounts else Absent("NVIDIA driver files in mountinfo")
    return Known(Container(runtime, found), "example")


def machine_with(driver: Driver, **changes: Any) -> Snapshot:
    system = HEALTHY.system._replace(
        container=changes.pop("container", HEALTHY.system.container),
        wsl=changes.pop("wsl", HEALTHY.system.wsl),
    )
    if isinstance(system.wsl, Known):
        changes["graphics"] = Absent("graphics device in /sys/bus/pci/devices")
    return HEALTHY._replace(driver=driver, system=system, **changes)


def environment(**values: str) -> Environment:
    variables = tuple(Variable(name, value, "") for name, value in values.items())
    return Environment(variables, HEALTHY.environment.visible_gpus)


def served_by(name: str | None) -> Any:
    driver: Any = known(name) if name else Absent("driver of the device")
    return known((GraphicsDevice("nvidia", "0000:01:00.0", "2684", driver),))


def only(machine: Snapshot, *names: str) -> Snapshot:
    frameworks = machine.target.frameworks
    assert isinstance(frameworks, Known)
    kept = known(tuple(item for item in frameworks.value if item.name in names))
    return machine._replace(
        target=machine.target._replace(frameworks=kept),
        probes=tuple(probe for probe in machine.probes if probe.name in ("cuda", *names)),
    )


@dataclass(frozen=True)
class Case:
    name: str
    machine: Snapshot
    root: str | None
    static: bool = True
    """It can be told without running anything."""


def states() -> Iterator[Case]:
    """Every state of the driver, on the machine itself, in a container, and under WSL."""
    places: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("bare", ON_BARE_METAL, {}),
        ("docker", IN_A_CONTAINER, {"container": container()}),
        ("wsl", UNDER_WSL, {"wsl": known(2)}),
    )
    for place, table, changes in places:
        for state, (driver, root) in table.items():
            machine = machine_with(driver, **dict(changes))
            yield Case(f"{state} {place}", machine if root is None else on_the_cpu(machine), root)


def bare_machines() -> Iterator[Case]:
    yield Case(
        "laptop: nouveau and no driver",
        on_the_cpu(machine_with(NO_DRIVER, graphics=served_by("nouveau"))),
        "no-nvidia-driver",
    )
    yield Case(
        "laptop: nouveau beats an installed driver",
        on_the_cpu(machine_with(NOT_LOADED, graphics=served_by("nouveau"))),
        "nvidia-kernel-module-state",
    )
    yield Case(
        "secure boot refuses the module, or prime-select switched the card off",
        on_the_cpu(machine_with(NOT_LOADED, graphics=served_by(None))),
        "nvidia-kernel-module-state",
    )
    yield Case(
        "the card is reserved for virtual machines",
        on_the_cpu(machine_with(NOT_LOADED, graphics=served_by("vfio-pci"))),
        "nvidia-kernel-module-state",
    )
    yield Case(
        "module loaded, libraries not installed",
        on_the_cpu(
            machine_with(
                driver_that(
                    "missing",
                    cuda_library=Absent("libcuda.so.1"),
                    nvml_library=Absent("libnvidia-ml.so.1"),
                )
            )
        ),
        "no-nvidia-driver",
    )
    yield Case(
        "the card could not be started (pass-through, wrong module flavour)",
        on_the_cpu(machine_with(DRIVER._replace(gpus=known(())))),
        "nvidia-kernel-module-state",
    )
    yield Case(
        "device nodes missing",
        on_the_cpu(machine_with(driver_that("failed", device_nodes=Absent("/dev/nvidia*")))),
        "nvidia-kernel-module-state",
    )
    yield Case(
        "nvidia_uvm not loaded, and nobody loads it",
        on_the_cpu(machine_with(DRIVER._replace(uvm=known(False))), "999 CUDA_ERROR_UNKNOWN"),
        "nvidia-kernel-module-state",
        static=False,
    )
    yield Case(
        "a DGX without its fabric manager",
        on_the_cpu(machine_with(DRIVER), "802 CUDA_ERROR_SYSTEM_NOT_READY"),
        "nvidia-kernel-module-state",
        static=False,
    )
    yield Case(
        "a laptop after it slept",
        on_the_cpu(machine_with(DRIVER), "999 CUDA_ERROR_UNKNOWN"),
        "cuda-init-failed",
        static=False,
    )
    split = machines.GPU._replace(mig=known(True))
    yield Case(
        "MIG switched on, no instance created",
        on_the_cpu(machine_with(DRIVER._replace(gpus=known((split,)))), "100 CUDA_ERROR_NO_DEVICE"),
        "cuda-init-failed",
        static=False,
    )
    prohibited = machines.GPU._replace(compute_mode=known("prohibited"))
    yield Case(
        "compute mode prohibited",
        on_the_cpu(
            machine_with(DRIVER._replace(gpus=known((prohibited,)))),
            "46 CUDA_ERROR_DEVICE_UNAVAILABLE",
        ),
        "compute-mode-blocks",
    )
    nothing: GpuSelection = GpuSelection("", known(()), ())
    yield Case(
        "CUDA_VISIBLE_DEVICES is empty",
        on_the_cpu(
            machine_with(DRIVER, environment=Environment((), known(nothing))),
            "100 CUDA_ERROR_NO_DEVICE",
        ),
        "visible-devices-hides-gpu",
    )
    without_nvml = driver_that("missing", nvml_library=Absent("libnvidia-ml.so.1"))
    yield Case(
        "libnvidia-ml.so.1 missing: TensorFlow alone misses it",
        only(on_the_cpu(machine_with(without_nvml), "0 CUDA_SUCCESS"), "tensorflow"),
        "nvml-library-missing",
    )
    yield Case(
        "nothing known against it, and still unused",
        only(on_the_cpu(HEALTHY, "0")._replace(probes=_torch_on_the_cpu()), "torch"),
        "gpu-unused",
        static=False,
    )


def _torch_on_the_cpu() -> tuple[Probe, ...]:
    return (machines.CUDA_PROBE, machines.probe_of("torch", "2.8.0", None))


def containers() -> Iterator[Case]:
    in_pod = IN_A_CONTAINER["missing"][0]
    yield Case(
        "a pod without the device plugin",
        on_the_cpu(machine_with(in_pod, container=container("kubernetes"))),
        "docker-no-gpu-runtime",
    )
    yield Case(
        "apptainer without --nv: the host's nodes, no libraries",
        on_the_cpu(
            machine_with(
                driver_that(
                    "missing",
                    cuda_library=Absent("libcuda.so.1"),
                    nvml_library=Absent("libnvidia-ml.so.1"),
                ),
                container=container("apptainer"),
            )
        ),
        "docker-no-gpu-runtime",
    )
    yield Case(
        "capability utility without compute",
        on_the_cpu(
            machine_with(
                DRIVER._replace(cuda_library=Absent("libcuda.so.1")),
                container=container("docker", "/dev/nvidia0"),
            )
        ),
        "docker-no-gpu-runtime",
    )
    yield Case(
        "capability compute without utility",
        only(
            on_the_cpu(
                machine_with(
                    driver_that("missing", nvml_library=Absent("libnvidia-ml.so.1")),
                    container=container("docker", "/dev/nvidia0", f"{LIBRARIES}/libcuda.so.1"),
                ),
                "0 CUDA_SUCCESS",
            ),
            "tensorflow",
        ),
        "nvml-library-missing",
    )
    host_updated = container(
        "docker",
        "/dev/nvidia0",
        f"{LIBRARIES}/libcuda.so.{OTHER_VERSION}",
        f"{LIBRARIES}/libnvidia-ml.so.{OTHER_VERSION}",
    )
    yield Case(
        "libraries from a host that was updated and not restarted",
        on_the_cpu(machine_with(MISMATCHED, container=host_updated)),
        "driver-library-version-mismatch",
    )
    yield Case(
        "device rules lost after a reload of systemd",
        on_the_cpu(
            machine_with(
                driver_that("failed", device_nodes=nodes(usable=False)),
                container=container("docker", "/dev/nvidia0"),
            ),
            "304 CUDA_ERROR_OPERATING_SYSTEM",
        ),
        "docker-no-gpu-runtime",
    )
    yield Case(
        "a compat image without --gpus",
        on_the_cpu(
            machine_with(
                in_pod._replace(
                    cuda_library=library("libcuda.so.1", "590.44.01", "compat", "/cuda/compat"),
                ),
                container=container(),
            ),
            "100 CUDA_ERROR_NO_DEVICE",
        ),
        "docker-no-gpu-runtime",
    )
    mounted = container("docker", "/dev/nvidia0", f"{LIBRARIES}/libnvidia-ml.so.580.65.06")
    yield Case(
        "a compat image on a GeForce card",
        on_the_cpu(
            machine_with(
                DRIVER._replace(
                    cuda_library=library("libcuda.so.1", "590.44.01", "compat", "/cuda/compat"),
                ),
                container=mounted,
            ),
            "804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        ),
        "cuda-init-failed",
        static=False,
    )
    yield Case(
        "started with NVIDIA_VISIBLE_DEVICES=void",
        on_the_cpu(
            machine_with(
                in_pod,
                container=container(),
                environment=environment(NVIDIA_VISIBLE_DEVICES="void"),
            )
        ),
        "visible-devices-hides-gpu",
    )
    yield Case(
        "Docker Desktop's WSL system, asked from a container with the GPU in it",
        machine_with(
            under_windows(DRIVER), container=container("docker", "/dev/dxg"), wsl=known(2)
        ),
        None,
    )


CASES = [*states(), *bare_machines(), *containers()]
