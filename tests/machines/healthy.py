"""Two healthy machines. A test says only in what its machine differs from one of them."""

from __future__ import annotations

from typing import Any, Literal

from whygpu.model.driver import (
    DeviceNode,
    Driver,
    DriverLibrary,
    Gpu,
    GpuHealth,
    GraphicsDevice,
    PcieLink,
    RowRepairs,
)
from whygpu.model.environment import Environment
from whygpu.model.libraries import CudaFiles, LibraryCopy, Resolution, SearchedFolder
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.probe import DeviceKind, Probe, ProbeDevice, ProbeName, ProbeOperation
from whygpu.model.snapshot import SCHEMA, Snapshot
from whygpu.model.stress import (
    LoadState,
    LoadTest,
    Rate,
    RateName,
    ResultCheck,
    Speeds,
    StressedGpu,
)
from whygpu.model.system import Cpu, Libc, Memory, System
from whygpu.model.target import (
    Build,
    Framework,
    FrameworkName,
    Installer,
    Interpreter,
    KerasSetup,
    Package,
    Plugin,
    Target,
)

SITE = "~/venv/lib/python3.11/site-packages"
GIB = 1 << 30


def known(value: Any) -> Any:
    """A fact of an example machine. (Any: Known is invariant, and these are many small facts.)"""
    return Known(value, "example")


SYSTEM = System(
    os="linux",
    kernel="6.8.0-40-generic",
    distribution=known("Ubuntu 24.04"),
    libc=known(Libc("glibc", "2.39")),
    cpu=Cpu("x86_64", known("AMD EPYC 7543"), known(("avx", "avx2", "f16c", "fma", "sse4_2")), 16),
    memory=Memory(known(128 * GIB), known(120 * GIB), known(64 * GIB)),
    wsl=Absent("/proc/version"),
    container=Absent("/proc/1/cgroup"),
)

GPU = Gpu(
    number=0,
    name="NVIDIA RTX A6000",
    pci_address="0000:41:00.0",
    compute_capability=known("8.6"),
    memory_total_bytes=known(48 * GIB),
    memory_used_bytes=known(GIB // 2),
    compute_mode=known("default"),
    mig=known(False),
    ecc_uncorrected=known(0),
    processes=known(()),
    health=known(
        GpuHealth(
            vbios=known("94.02.5C.00.02"),
            ecc=known(True),
            persistence=known(True),
            power_limit_watts=known(300),
            power_default_watts=known(300),
            max_clock_mhz=known(2100),
            max_memory_clock_mhz=known(8001),
            slowdowns=known(()),
            pcie=known(PcieLink(16, 16, 4, 4)),
            rows=known(RowRepairs(0, 0, False, False)),
            pages_pending=known(False),
            nvlinks=Absent("NVML: Not Supported"),
            mig_layout=known(()),
            fabric=Absent("NVSwitch of this GPU"),
        )
    ),
)


def _rate(name: RateName, speed: float, peak: float | None) -> Rate:
    speeds = Speeds(0.98 * speed, speed, 1.02 * speed, 16)
    return Rate(name, known(speeds), Absent("data sheet") if peak is None else known(peak))


LOAD_TEST = StressedGpu(
    0,
    known(
        LoadTest(
            framework="torch",
            version="2.8.0",
            seconds=7.5,
            rates=(
                _rate("memory", 6.6e11, 7.68e11),
                _rate("to-gpu", 2.5e10, 3.15e10),
                _rate("from-gpu", 2.6e10, 3.15e10),
                _rate("float32", 2.4e13, 3.87e13),
                _rate("tf32", 5.5e13, 7.74e13),
                _rate("bfloat16", 1.1e14, 1.548e14),
                Rate("float16", Absent("bfloat16 is measured instead"), known(1.548e14)),
            ),
            results=tuple(
                ResultCheck(name, known(True), "")
                for name in ("memory", "to-gpu", "from-gpu", "float32", "tf32", "bfloat16")
            ),
            state=LoadState(
                clock_mhz=known(1605),
                watts=known(296),
                celsius=known(71),
                slowdowns=known(("power-cap",)),
                pcie_generation=known(4),
                pcie_width=known(16),
            ),
        )
    ),
)
"""The GPU above under load; no machine has it unless a test says so."""

DRIVER = Driver(
    state=known("working"),
    detail="",
    version=known("580.65.06"),
    cuda=known("13.0"),
    kernel_module=known("580.65.06"),
    uvm=known(True),
    cuda_library=known(
        DriverLibrary(
            "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06", known("580.65.06"), "driver"
        )
    ),
    nvml_library=known(
        DriverLibrary(
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.65.06", known("580.65.06"), "driver"
        )
    ),
    device_nodes=known(
        tuple(
            DeviceNode(f"/dev/{name}", "crw-rw-rw-", "root", True)
            for name in ("nvidia0", "nvidiactl", "nvidia-uvm")
        )
    ),
    gpus=known((GPU,)),
    pairs=known(()),
)

NO_DRIVER = Driver(
    state=known("missing"),
    detail="libnvidia-ml.so.1 is not there",
    version=Absent("example"),
    cuda=Absent("example"),
    kernel_module=Absent("/sys/module/nvidia"),
    uvm=Absent("/sys/module/nvidia_uvm"),
    cuda_library=Absent("libcuda.so.1"),
    nvml_library=Absent("libnvidia-ml.so.1"),
    device_nodes=Absent("/dev"),
    gpus=Absent("no NVIDIA driver"),
)


def package(name: str, version: str, *, requires: tuple[str, ...] = ()) -> Package:
    return Package(name, version, SITE, False, requires, ("py3-none-any",))


def resolution(library: str, folder: str, requester: str) -> Resolution:
    """A library that loads as it should."""
    return Resolution(
        library=library,
        requester=requester,
        required=True,
        outcome="loads",
        path=f"{folder}/{library}",
        chain=(),
        detail="",
        searched=(SearchedFolder(folder, "runpath", requester, "found"),),
        other_copies=(),
    )


NO_ROCM = Absent("a build without ROCm")

TENSORFLOW_CC = f"{SITE}/tensorflow/libtensorflow_cc.so.2"
TENSORFLOW_LIBRARIES = tuple(
    resolution(library, f"{SITE}/nvidia/{wheel}/lib", TENSORFLOW_CC)
    for library, wheel in (
        ("libcudart.so.12", "cuda_runtime"),
        ("libcublas.so.12", "cublas"),
        ("libcublasLt.so.12", "cublas"),
        ("libcufft.so.11", "cufft"),
        ("libcusolver.so.11", "cusolver"),
        ("libcusparse.so.12", "cusparse"),
        ("libcudnn.so.9", "cudnn"),
    )
)

FRAMEWORKS = (
    Framework(
        name="tensorflow",
        distribution="tensorflow",
        version="2.20.0",
        location=f"{SITE}/tensorflow",
        build=Build(
            kind=known("cuda"),
            cuda=known("12.5.1"),
            cudnn=known("9"),
            architectures=known(("sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90")),
            cpu_features=known(("avx",)),
            amd_targets=NO_ROCM,
        ),
        libraries=known(TENSORFLOW_LIBRARIES),
    ),
    Framework(
        name="keras",
        distribution="keras",
        version="3.11.3",
        location=f"{SITE}/keras",
        build=Build(
            kind=Absent("keras has no binaries"),
            cuda=Absent("keras has no binaries"),
            cudnn=Absent("keras has no binaries"),
            architectures=Absent("keras has no binaries"),
            cpu_features=Absent("keras has no binaries"),
            amd_targets=Absent("keras has no binaries"),
        ),
        libraries=Absent("keras has no binaries"),
        keras=KerasSetup(Known("tensorflow", "the default"), "keras-3"),
    ),
    Framework(
        name="jax",
        distribution="jax",
        version="0.7.2",
        location=f"{SITE}/jax",
        build=Build(
            kind=known("cuda"),
            cuda=known("12"),
            cudnn=known("9"),
            architectures=known(("sm_60", "sm_70", "sm_80", "sm_90", "compute_120")),
            cpu_features=known(("avx",)),
            amd_targets=NO_ROCM,
        ),
        libraries=known(
            (
                resolution(
                    "libcudart.so.12",
                    f"{SITE}/nvidia/cuda_runtime/lib",
                    f"{SITE}/jax_plugins/xla_cuda12/xla_cuda_plugin.so",
                ),
            )
        ),
        plugins=(Plugin("jax-cuda12-plugin", "0.7.2"), Plugin("jax-cuda12-pjrt", "0.7.2")),
    ),
    Framework(
        name="torch",
        distribution="torch",
        version="2.8.0",
        location=f"{SITE}/torch",
        build=Build(
            kind=known("cuda"),
            cuda=known("12.8"),
            cudnn=known("9"),
            architectures=known(("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "compute_120")),
            cpu_features=known(()),
            amd_targets=NO_ROCM,
        ),
        libraries=known(
            (
                resolution(
                    "libcudart.so.12",
                    f"{SITE}/nvidia/cuda_runtime/lib",
                    f"{SITE}/torch/lib/libtorch_cuda.so",
                ),
            )
        ),
    ),
)

PACKAGES = (
    package(
        "tensorflow", "2.20.0", requires=("keras>=3.10.0", "numpy>=1.26.0", "protobuf>=5.28.0")
    ),
    package("keras", "3.11.3", requires=("numpy",)),
    package("jax", "0.7.2", requires=("jaxlib<=0.7.2,>=0.7.2", "numpy>=2.0")),
    package("jaxlib", "0.7.2"),
    package("jax-cuda12-plugin", "0.7.2"),
    package("jax-cuda12-pjrt", "0.7.2"),
    package("torch", "2.8.0"),
    package("numpy", "2.1.3"),
    package("protobuf", "6.31.1"),
    package("nvidia-cudnn-cu12", "9.10.2.21"),
    package("nvidia-cuda-nvcc-cu12", "12.9.86"),
)

TARGET = Target(
    interpreter=known(
        Interpreter(
            path="~/venv/bin/python",
            version="3.11.9",
            implementation="cpython",
            prefix="~/venv",
            isolated=True,
            user_site=Absent("switched off in a virtual environment"),
            paths=("/usr/lib/python3.11", SITE),
            wheel_tags=("cp311-cp311-linux_x86_64",),
            modules=known(()),
            complaints=known(()),
        )
    ),
    packages=known(PACKAGES),
    conflicts=known(()),
    frameworks=known(FRAMEWORKS),
    installer=known(Installer("python", "pip", False)),
)


def operation(
    work: Literal["matmul", "convolution", "training-step"], device: str, kind: DeviceKind
) -> ProbeOperation:
    return ProbeOperation(work, device, known(device), kind, known(True))


def probe_of(name: ProbeName, version: str, gpu_device: str | None) -> Probe:
    """A probe that went well: on the CPU, and on a GPU where a device is named."""
    devices = [ProbeDevice("CPU:0", "cpu", "")]
    operations = [operation("matmul", "CPU:0", "cpu"), operation("convolution", "CPU:0", "cpu")]
    if gpu_device is not None:
        devices.append(ProbeDevice(gpu_device, "gpu", GPU.name))
        operations.append(operation("matmul", gpu_device, "gpu"))
        operations.append(operation("convolution", gpu_device, "gpu"))
    return Probe(
        name=name,
        ended="finished",
        how="",
        stage="end",
        seconds=4.0,
        version=known(version),
        devices=known(tuple(devices)),
        operations=tuple(operations),
        traceback=(),
        facts=(("backend", "tensorflow"),) if name == "keras" else (),
        log=(),
        log_cut=False,
    )


CUDA_PROBE = probe_of("cuda", "13.0", None)._replace(
    devices=known((ProbeDevice("cuda:0", "gpu", GPU.name),)),
    operations=(),
    facts=(("cuInit", "0 CUDA_SUCCESS"),),
)


def healthy() -> Snapshot:
    """One NVIDIA GPU, four frameworks, each computing on it."""
    frameworks: Observed[tuple[Framework, ...]] = TARGET.frameworks
    assert isinstance(frameworks, Known)
    return Snapshot(
        schema=SCHEMA,
        whygpu="0.1.0",
        taken="2026-11-15",
        system=SYSTEM,
        graphics=known((GraphicsDevice("nvidia", "0000:41:00.0", "2230", known("nvidia")),)),
        driver=DRIVER,
        environment=Environment((), Absent("environment variable CUDA_VISIBLE_DEVICES")),
        cuda=known(
            CudaFiles(
                toolkits=(),
                copies=(
                    LibraryCopy(
                        "cudnn",
                        "libcudnn.so.9",
                        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9",
                        known("9.10.2"),
                        "wheel",
                        "nvidia-cudnn-cu12 9.10.2.21",
                    ),
                ),
            )
        ),
        target=TARGET,
        probes=(
            CUDA_PROBE,
            probe_of("tensorflow", "2.20.0", "GPU:0"),
            probe_of("keras", "3.11.3", "GPU:0"),
            probe_of("jax", "0.7.2", "cuda:0"),
            probe_of("torch", "2.8.0", "cuda:0"),
        ),
        probes_left_out="",
        amd=Absent("a GPU of AMD"),
        intel=Absent("a GPU of Intel"),
    )


def without_gpu() -> Snapshot:
    """The same software on a machine with no GPU: healthy, and on the CPU."""
    machine = healthy()
    names: tuple[FrameworkName, ...] = ("tensorflow", "keras", "jax", "torch")
    versions = {"tensorflow": "2.20.0", "keras": "3.11.3", "jax": "0.7.2", "torch": "2.8.0"}
    return machine._replace(
        graphics=Absent("/sys/bus/pci/devices"),
        driver=NO_DRIVER,
        probes=tuple(probe_of(name, versions[name], None) for name in names),  # type: ignore[arg-type]
    )
