"""CUDA and cuDNN libraries, and the loader."""

from __future__ import annotations

from tests.elfwriter import Library, write
from tests.lab.bench import Bench
from tests.lab.cuda import CUDA_12, StubLibrary, Wheel, cublas, cublas_lt, cudart, cudnn
from tests.lab.driver import StubDriver, StubGpu
from tests.lab.machines import (
    GPU_MACHINE,
    complete_cuda,
    cuda_without,
    official_cuda,
    replace,
)
from tests.lab.programs import LIST_GPUS, LIST_GPUS_V1, NAMING_LIBRARIES
from tests.lab.scenario import Does, Root, Scenario, warning

ON_CPU = {"tensorflow": "cpu", "keras": "cpu"}
BROKEN = {"tensorflow": "broken", "keras": "broken"}

V100 = StubGpu("Tesla V100-SXM2-16GB", compute_capability="7.0")
CANNOT_LOAD = "Could not load dynamic library '{}'; dlerror: [^;]*{}"


def _missing(soname: str, reason: str = "cannot open shared object file") -> Does:
    """TensorFlow gives the GPU up for want of a library, and names it when asked to."""
    says = CANNOT_LOAD.format(soname, reason) + r"[\s\S]*GPUs: 0"
    return Does(NAMING_LIBRARIES + LIST_GPUS, says)


def _compiler_only(bench: Bench) -> None:
    bench.cuda_wheel(CUDA_12["cuda_nvcc"])


def _truncated_cublas(bench: Bench) -> None:
    complete_cuda(bench)
    path = "nvidia/cublas/lib/libcublasLt.so.12"
    content = (bench.site / path).read_bytes()
    bench.replace(path, content[: len(content) // 2])


def _unreadable_cufft(bench: Bench) -> None:
    complete_cuda(bench)
    (bench.site / "nvidia/cufft/lib/libcufft.so.11").chmod(0)


def _old_cublas_first(bench: Bench) -> None:
    complete_cuda(bench)
    cluster = bench.folder / "cluster" / "cuda-12.1" / "lib64"
    bench.library(cublas((12, 1, 3), old=True), cluster)
    bench.library(cublas_lt((12, 1, 3)), cluster)
    bench.prepend("LD_LIBRARY_PATH", cluster)


def _cuda_11_only(bench: Bench) -> None:
    toolkit = bench.folder / "cuda-11.8" / "lib64"
    for soname in (
        "libcublas.so.11",
        "libcublasLt.so.11",
        "libcufft.so.10",
        "libcusolver.so.11",
        "libcusparse.so.11",
    ):
        bench.library(StubLibrary(soname), toolkit)
    bench.library(cudart((11, 8, 0)), toolkit)
    bench.cuda_wheel(CUDA_12["cudnn"])
    bench.cuda_wheel(CUDA_12["cuda_nvcc"])
    bench.prepend("LD_LIBRARY_PATH", toolkit)


def _cudnn_8_only(bench: Bench) -> None:
    cuda_without("cudnn")(bench)
    bench.cuda_wheel(Wheel("nvidia-cudnn-cu12", "8.9.7.29", "cudnn", (cudnn((8, 9, 7)),)))


def _other_cudnn_first(bench: Bench) -> None:
    complete_cuda(bench)
    other = bench.folder / "cudnn" / "lib"
    bench.library(cudnn((9, 14, 0)), other)
    bench.prepend("LD_LIBRARY_PATH", other)


SCENARIOS = (
    Scenario(
        "no-cuda-libraries",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"Could not find cuda drivers[\s\S]*GPUs: 0"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_compiler_only,),
        roots=(Root("cuda-runtime-missing", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "cudnn-missing",
        "tensorflow-2.21",
        _missing("libcudnn.so.9"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(cuda_without("cudnn"),),
        roots=(Root("cudnn-missing", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        # The loader names the library that asks, and in its reason the one that is missing.
        "need-of-a-need-missing",
        "tensorflow-2.21",
        _missing("libcusparse.so.12", "libnvJitLink.so.12"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(cuda_without("nvjitlink"),),
        roots=(Root("cuda-runtime-missing", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("no-cuda-libraries",),
    ),
    Scenario(
        "official-install-of-2.21",
        "tensorflow-2.21",
        _missing("libcusolver.so.11"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(official_cuda,),
        roots=(Root("library-path-conflict", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "older-cublas-searched-first",
        "tensorflow-2.21",
        _missing("libcusolver.so.11", "undefined symbol: cublasSetEnvironmentMode"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_old_cublas_first,),
        roots=(Root("library-path-conflict", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("official-install-of-2.21",),
    ),
    Scenario(
        "cudnn-file-empty",
        "tensorflow-2.21",
        _missing("libcudnn.so.9", "file too short"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda, replace("nvidia/cudnn/lib/libcudnn.so.9", b"")),
        roots=(Root("library-file-broken", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "cublas-file-cut-off",
        "tensorflow-2.21",
        Does(LIST_GPUS, exit_code=-7),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_truncated_cublas,),
        roots=(Root("library-file-broken", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "cufft-of-another-architecture",
        "tensorflow-2.21",
        _missing("libcufft.so.11"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(
            complete_cuda,
            replace(
                "nvidia/cufft/lib/libcufft.so.11",
                write(Library("libcufft.so.11", machine="aarch64")),
            ),
        ),
        roots=(Root("library-file-broken", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("cudnn-file-empty",),
    ),
    Scenario(
        "cufft-unreadable",
        "tensorflow-2.21",
        _missing("libcufft.so.11"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_unreadable_cufft,),
        roots=(Root("library-file-broken", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("cudnn-file-empty",),
    ),
    Scenario(
        "cuda-11-for-a-cuda-12-build",
        "tensorflow-2.21",
        _missing("libcudart.so.12"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_cuda_11_only,),
        roots=(Root("cuda-version-mismatch", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "cudnn-8-for-a-cudnn-9-build",
        "tensorflow-2.21",
        _missing("libcudnn.so.9"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_cudnn_8_only,),
        roots=(Root("cudnn-version-mismatch", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "another-cudnn-searched-first",
        "tensorflow-2.21",
        Does(
            LIST_GPUS + "print(open('/proc/self/maps').read())",
            r"GPUs: 1[\s\S]*/cudnn/lib/libcudnn\.so\.9",
        ),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_other_cudnn_first,),
        probe=False,
        roots=(warning("cudnn-copy-differs", "tensorflow"),),
        verdicts={"tensorflow": "unknown", "keras": "unknown"},
        verdict="unknown",
    ),
    Scenario(
        "no-compiler-for-xla",
        "tensorflow-2.21",
        Does(
            "import importlib.metadata as m\nprint(m.version('nvidia-cuda-nvcc-cu12'))",
            "PackageNotFoundError",
            exit_code=1,
        ),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(cuda_without("cuda_nvcc"),),
        probe=False,
        roots=(warning("ptxas-libdevice-missing", "tensorflow"),),
        verdicts={"tensorflow": "unknown", "keras": "unknown"},
        verdict="unknown",
    ),
    Scenario(
        "tensorflow-1.15-without-cuda-10",
        "tensorflow-gpu-1.15",
        Does(LIST_GPUS_V1, r"Could not load dynamic library 'libcudart.so.10.0'[\s\S]*GPUs: 0"),
        driver=StubDriver(gpus=(V100,)),
        stage=GPU_MACHINE,
        roots=(Root("cuda-runtime-missing", "tensorflow"),),
        verdicts={"tensorflow": "cpu"},
        verdict="cpu",
        like=("tensorflow-1.12-without-cuda-9",),
    ),
    Scenario(
        "tensorflow-1.12-without-cuda-9",
        "tensorflow-gpu-1.12",
        Does("import tensorflow", "ImportError: libcublas.so.9.0", exit_code=1),
        driver=StubDriver(gpus=(V100,)),
        stage=GPU_MACHINE,
        roots=(Root("cuda-runtime-missing", "tensorflow"),),
        verdicts={"tensorflow": "broken"},
        verdict="broken",
    ),
)
