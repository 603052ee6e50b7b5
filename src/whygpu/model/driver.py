"""Graphics hardware and the NVIDIA driver, as the machine shows them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Observed, Unknown

NOT_LOOKED = Unknown("the snapshot was taken by a version of whygpu that did not look")
"""What an older snapshot knows of facts that came later."""

Vendor = Literal["nvidia", "amd", "intel", "apple", "other"]


class GraphicsDevice(NamedTuple):
    """A GPU as the bus shows it, with or without a driver."""

    vendor: Vendor
    address: str
    device_id: str
    """The PCI device id ("2335"), or the chip's name where there is no PCI bus."""
    kernel_driver: Observed[str]


class DeviceNode(NamedTuple):
    """A file under /dev through which programs reach the GPU."""

    path: str
    mode: str
    """Permissions as ls prints them: crw-rw-rw-."""
    group: str
    usable: bool
    """This user may read and write it."""


class DriverLibrary(NamedTuple):
    """libcuda.so.1 or libnvidia-ml.so.1, as the loader would find it."""

    path: str
    version: Observed[str]
    kind: Literal["driver", "toolkit-stub", "compat", "wsl"]
    """A toolkit stub only serves linking; compat is NVIDIA's forward-compatibility package."""


class GpuProcess(NamedTuple):
    """A process on a GPU. What lies beyond NVML's word is read from /proc, where it may be read."""

    pid: int
    name: Observed[str]
    memory_bytes: Observed[int]
    yours: Observed[bool] = NOT_LOOKED
    """It is this user's. Absent, as all that follows, where no process here has this number."""
    command: Observed[str] = NOT_LOOKED
    """Program and script, without arguments: python train.py."""
    frameworks: Observed[tuple[str, ...]] = NOT_LOOKED
    """Those whose GPU libraries it has loaded."""
    settings: Observed[tuple[tuple[str, str], ...]] = NOT_LOOKED
    """Variables that it was started with and that decide how a framework takes memory."""
    in_use_bytes: Observed[int] = NOT_LOOKED
    """What its tensors take, as its frameworks say under `whygpu run`; absent elsewhere."""


class Gpu(NamedTuple):
    """One GPU as the driver describes it. Its UUID is deliberately not kept."""

    number: int
    """Its place in PCI bus order, as nvidia-smi numbers it."""
    name: str
    pci_address: str
    compute_capability: Observed[str]
    memory_total_bytes: Observed[int]
    memory_used_bytes: Observed[int]
    compute_mode: Observed[Literal["default", "exclusive", "prohibited"]]
    mig: Observed[bool]
    ecc_uncorrected: Observed[int]
    processes: Observed[tuple[GpuProcess, ...]]
    memory_reserved_bytes: Observed[int] = NOT_LOOKED
    """What the driver keeps for itself: neither used nor free, and no part of CUDA's total."""


DriverState = Literal[
    "working", "missing", "not-loaded", "mismatched", "hung", "denied", "lost", "failed"
]
"""What came of asking the driver: `missing` no driver library, `not-loaded` library but no kernel
module, `mismatched` library and module of different versions, `hung` no answer in time, `denied`
no permission, `lost` the GPU dropped off the bus, `failed` any other error."""


class Driver(NamedTuple):
    state: Observed[DriverState]
    detail: str
    """The driver's own words about that state."""
    version: Observed[str]
    cuda: Observed[str]
    """The newest CUDA version that the driver supports."""
    kernel_module: Observed[str]
    """Version of the loaded kernel module; absent when it is not loaded."""
    uvm: Observed[bool]
    """Whether nvidia_uvm, which CUDA needs and nvidia-smi does not, is loaded."""
    cuda_library: Observed[DriverLibrary]
    nvml_library: Observed[DriverLibrary]
    device_nodes: Observed[tuple[DeviceNode, ...]]
    gpus: Observed[tuple[Gpu, ...]]
