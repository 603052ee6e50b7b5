"""Graphics hardware and the NVIDIA driver, as the machine shows them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Observed, Unknown

NOT_LOOKED = Unknown("the version of whygpu that took this snapshot did not check this")
"""The value, in an older snapshot, of a fact that was added later."""

Vendor = Literal["nvidia", "amd", "intel", "apple", "other"]


class GraphicsDevice(NamedTuple):
    """A GPU as the bus shows it, with or without a driver."""

    vendor: Vendor
    address: str
    device_id: str
    """The PCI device id ("2335"), or the chip's name if there is no PCI bus."""
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
    """A stub from the toolkit is only for linking; compat is the forward-compatibility package."""


class GpuProcess(NamedTuple):
    """A process on a GPU. NVML reports it; further facts come from /proc, if it is readable."""

    pid: int
    name: Observed[str]
    memory_bytes: Observed[int]
    yours: Observed[bool] = NOT_LOOKED
    """Whether it belongs to this user. This and the fields below are absent if no process in this
    container or machine has this number."""
    command: Observed[str] = NOT_LOOKED
    """Program and script, without arguments: python train.py."""
    frameworks: Observed[tuple[str, ...]] = NOT_LOOKED
    """The frameworks whose GPU libraries it has loaded."""
    settings: Observed[tuple[tuple[str, str], ...]] = NOT_LOOKED
    """Variables from its environment that decide how a framework allocates memory."""
    is_asking: Observed[bool] = NOT_LOOKED
    """Whether it is the program that calls whygpu, such as the kernel of a notebook, or one that
    started that program."""
    in_use_bytes: Observed[int] = NOT_LOOKED
    """Memory of its tensors, as its frameworks report under `whygpu run`; otherwise absent."""


Slowdown = Literal["thermal", "power-brake", "hardware", "software-thermal", "power-cap"]
"""Why the clocks of a GPU are below what it was asked for. `thermal`, `power-brake` and `hardware`
are forced by the hardware: it is too hot, its power supply asks for it, or either of both.
`software-thermal` and `power-cap` are the driver's own, and normal under full load."""


class PcieLink(NamedTuple):
    width: int
    """Lanes in use now."""
    max_width: int
    """Lanes that both the GPU and its slot have."""
    generation: int
    max_generation: int
    """An idle GPU lowers its generation to save power."""


class RowRepairs(NamedTuple):
    """Memory rows that the GPU has replaced by spare ones (Ampere and newer)."""

    corrected: int
    """Because of errors that were corrected."""
    uncorrected: int
    pending: bool
    """A row will be replaced at the next reset."""
    failed: bool
    """There was no spare row left."""


FabricState = Literal["not-started", "in-progress", "joined", "failed"]
"""Whether a GPU has joined the NVLink network of its NVSwitches. The fabric manager sets it up; a
GPU that is not `joined` mostly waits for it."""


class GpuHealth(NamedTuple):
    """Settings and state of the hardware. Absent: this GPU, or this driver, does not report it."""

    vbios: Observed[str]
    ecc: Observed[bool]
    """Whether error correction is switched on."""
    persistence: Observed[bool]
    """Whether the driver keeps the GPU initialised while no program uses it."""
    power_limit_watts: Observed[int]
    power_default_watts: Observed[int]
    max_clock_mhz: Observed[int]
    """The highest clock of the multiprocessors."""
    max_memory_clock_mhz: Observed[int]
    slowdowns: Observed[tuple[Slowdown, ...]]
    """Reasons that are in effect now."""
    pcie: Observed[PcieLink]
    rows: Observed[RowRepairs]
    pages_pending: Observed[bool]
    """Whether memory pages will be retired at the next reset (before Ampere)."""
    nvlinks: Observed[int]
    """Links that are active."""
    mig_layout: Observed[tuple[str, ...]]
    """Names of the MIG instances, in their order."""
    fabric: Observed[FabricState] = NOT_LOOKED
    """Absent if the GPU has no NVSwitch, or is older than Hopper."""
    nvlinks_there: Observed[int] = NOT_LOOKED
    """Links that the GPU has, active or not."""


class Gpu(NamedTuple):
    """One GPU as the driver describes it. Its UUID is deliberately not kept."""

    number: int
    """Its position in PCI bus order, as nvidia-smi numbers it."""
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
    """Memory that the driver reserves: neither used nor free, and not part of CUDA's total."""
    health: Observed[GpuHealth] = NOT_LOOKED


PairPath = Literal[
    "same-board",
    "one-switch",
    "several-switches",
    "host-bridge",
    "one-processor",
    "across-processors",
]
"""What lies between two GPUs on the PCIe bus, the nearest first; NVLink is another way."""
PeerAccess = Literal[
    "yes", "chipset", "gpu", "topology", "switched-off", "not-supported", "unknown"
]
"""Whether one GPU can read the memory of the other, or what prevents it."""


class GpuPair(NamedTuple):
    """Two GPUs of one machine, and how they reach each other."""

    first: int
    second: int
    path: Observed[PairPath]
    peer_access: Observed[PeerAccess]
    nvlinks: Observed[int]
    """Active links that lead directly from one to the other; 0 if they lead to NVSwitches."""


class XidCount(NamedTuple):
    """How often the driver has reported one kind of fault since the machine was started."""

    address: str
    """The PCI address of the GPU, without the function: 0000:3b:00."""
    number: int
    times: int
    last_second: int
    """When it was last reported, in seconds after the start of the machine."""


DriverState = Literal[
    "working", "missing", "not-loaded", "mismatched", "hung", "denied", "lost", "failed"
]
"""The outcome of querying the driver. `missing`: no driver library. `not-loaded`: library but no
kernel module. `mismatched`: library and module have different versions. `hung`: no answer in time.
`denied`: no permission. `lost`: the GPU dropped off the bus. `failed`: any other error."""


class Driver(NamedTuple):
    state: Observed[DriverState]
    detail: str
    """The driver's own message about that state."""
    version: Observed[str]
    cuda: Observed[str]
    """The newest CUDA version that the driver supports."""
    kernel_module: Observed[str]
    """Version of the loaded kernel module; absent if it is not loaded."""
    uvm: Observed[bool]
    """Whether nvidia_uvm, which CUDA needs and nvidia-smi does not, is loaded."""
    cuda_library: Observed[DriverLibrary]
    nvml_library: Observed[DriverLibrary]
    device_nodes: Observed[tuple[DeviceNode, ...]]
    gpus: Observed[tuple[Gpu, ...]]
    xids: Observed[tuple[XidCount, ...]] = NOT_LOOKED
    """From the kernel log, which many systems show only to root."""
    pairs: Observed[tuple[GpuPair, ...]] = NOT_LOOKED
    """Each two GPUs once; empty if there are fewer than two."""
