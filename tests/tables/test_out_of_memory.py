"""The table of what running out of memory looks like, and of how much memory GPUs have."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.gpu_memory import SIZES, sizes_of
from whygpu.tables.out_of_memory import HANDLE_FAILED, out_of_memory

GIB = 1 << 30

SAYINGS = (
    (
        "tensorflow",
        "gpu",
        "refused",
        "OOM when allocating tensor with shape[8,64,900,904] and type",
    ),
    (
        "xla",
        "gpu",
        "refused",
        "Attempting to allocate 4.39G. That was not possible. There are 2G free",
    ),
    ("cuda", "gpu", "refused", "RuntimeError: CUDA driver error: out of memory"),
    ("cuda", "gpu", "refused", "RuntimeError: HIP error: out of memory"),
    ("torch", "gpu", "refused", "RuntimeError: Invalid buffer size: 9.75 GB"),
    (
        "sycl",
        "gpu",
        "refused",
        "backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
    ),
    (
        "directml",
        "gpu",
        "refused",
        "Could not allocate tensor with 234881024 bytes. There is not enough GPU video memory "
        "available!",
    ),
    (
        "llama.cpp",
        "pinned",
        "retried",
        "failed to allocate 512.00 MiB of pinned memory: out of memory",
    ),
    (
        "cuda",
        "pinned",
        "refused",
        "Check failed: cudaMallocHost(&p, n) == cudaSuccess out of memory",
    ),
    ("system", "host", "refused", "libgomp: Out of memory allocating 180908767704 bytes"),
    ("system", "host", "refused", "OpenBLAS: malloc failed in gemm_driver"),
    ("system", "host", "refused", "LLVM ERROR: out of memory"),
    (
        "shared memory",
        "shared-memory",
        "refused",
        "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
    ),
    (
        "shared memory",
        "shared-memory",
        "refused",
        "NCCL WARN Error: failed to extend /dev/shm/nccl-fjwOOB to 5967876 bytes",
    ),
    ("tensorflow", "gpu", "refused", "Ran out of memory trying to allocate 9.00MiB.  See logs"),
    (
        "tensorflow",
        "gpu",
        "retried",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB. The caller indicates "
        "that this is not a failure",
    ),
    (
        "tensorflow",
        "gpu",
        "retried",
        "failed to allocate 1.32G (1419129856 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY",
    ),
    ("tensorflow", "gpu", "refused", "InternalError: Dst tensor is not initialized."),
    ("xla", "gpu", "retried", "[0] Failed to allocate device memory of 104.85GiB (112 bytes): X"),
    (
        "xla",
        "gpu",
        "refused",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 13 bytes.",
    ),
    ("xla", "gpu", "refused", "Failed to allocate request for 176.00MiB (184549376B) on device"),
    (
        "xla",
        "gpu",
        "refused",
        "Ran out of memory in memory space hbm. Used 20.00G of 15.48G hbm. Exceeded hbm capacity",
    ),
    (
        "cupy",
        "gpu",
        "refused",
        "Out of memory allocating 1,024 bytes (allocated so far: 512 bytes).",
    ),
    (
        "cupy",
        "gpu",
        "refused",
        "out of memory to allocate 1073741824 bytes (total 12373894656 bytes)",
    ),
    (
        "paddle",
        "gpu",
        "refused",
        "Cannot allocate 1.95GB memory on GPU 0, 10.2GB memory has been allocated and available "
        "memory is only 512.00MB.",
    ),
    (
        "onnxruntime",
        "gpu",
        "refused",
        "Failed to allocate memory for requested buffer of size 643840",
    ),
    (
        "rmm",
        "gpu",
        "refused",
        "std::bad_alloc: out_of_memory: CUDA error at: rmm/cuda_memory.hpp:69",
    ),
    ("theano", "gpu", "refused", "MemoryError: Error allocating 411041792 bytes of device memory"),
    (
        "llama.cpp",
        "gpu",
        "refused",
        "allocating 5037.00 MiB on device 0: cudaMalloc failed: out of",
    ),
    ("faiss", "gpu", "refused", "Failed to cudaMalloc 1610612736 bytes on device 0 (error 2)"),
    ("cuda", "gpu", "refused", "RuntimeError: CUDA error: out of memory"),
    ("cuda", "gpu", "refused", "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"),
    ("cuda", "gpu", "refused", "Check failed: e == cudaSuccess (2 vs. 0) : out of memory"),
    ("cuda", "gpu", "refused", "CUDA Error: out of memory"),
    ("cuda", "gpu", "refused", "HIP out of memory."),
    (
        "tensorflow",
        "pinned",
        "retried",
        "failed to alloc 34357641216 bytes on host: CUDA_ERROR_OUT_OF",
    ),
    (
        "tensorflow",
        "pinned",
        "retried",
        "could not allocate pinned host memory of size: 34357641216",
    ),
    (
        "tensorflow",
        "host",
        "refused",
        "OOM when allocating tensor with shape[2,512] and type float on /job:localhost/replica:0/"
        "task:0/device:CPU:0 by allocator cpu",
    ),
    (
        "torch",
        "host",
        "refused",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9",
    ),
    (
        "numpy",
        "host",
        "refused",
        "Unable to allocate 37.3 GiB for an array with shape (50000, 100000)",
    ),
    (
        "shared memory",
        "shared-memory",
        "refused",
        "dataloader's workers are out of shared memory. Please try",
    ),
    (
        "windows",
        "host",
        "refused",
        "[WinError 1455] The paging file is too small for this operation",
    ),
    ("kernel", "host", "refused", "Out of memory: Killed process 4711 (python) total-vm:90000kB"),
    ("kernel", "host", "refused", "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=33.0"),
    ("system", "host", "refused", "OSError: [Errno 12] Cannot allocate memory"),
    ("system", "host", "refused", "  what():  std::bad_alloc"),
    ("system", "host", "refused", "MemoryError"),
)


@each(("of", "place", "outcome", "text"), SAYINGS, ids=lambda part: part[:40])
def test_each_says_it_in_its_own_words(of: str, place: str, outcome: str, text: str) -> None:
    found = out_of_memory(text)
    assert found is not None
    assert (found[0].of, found[0].place, found[0].outcome) == (of, place, outcome)


@each(
    "text",
    [
        "Allocation of 13958643712 exceeds 10% of free system memory.",
        "This TensorFlow binary is optimized to use memory well",
        "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 34 MB memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "Set memory growth for every GPU",
    ],
)
def test_talk_of_memory_is_not_want_of_it(text: str) -> None:
    assert out_of_memory(text) is None


@each(
    "text",
    [
        "Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR",
        "failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED",
        "This is probably because cuDNN failed to initialize",
        "UNIMPLEMENTED: DNN library is not found.",
        "jaxlib/gpu/solver_handle_pool.cc:37: operation gpusolverDnCreate(&handle) failed: x",
        "Blas GEMM launch failed : a.shape=(4, 512)",
        "cublas runtime error : resource allocation failed at THCGeneral.cpp:228",
    ],
)
def test_a_library_that_cannot_start(text: str) -> None:
    assert HANDLE_FAILED.search(text)


@each(
    ("name", "sizes"),
    [
        ("NVIDIA GeForce RTX 2080 Ti", (11, 11)),
        ("GeForce GTX 1060", (3, 6)),
        ("Tesla V100-SXM2-16GB", (16, 16)),
        ("NVIDIA A100-SXM4-80GB", (80, 80)),
        ("NVIDIA GH200 480GB", (96, 144)),
        ("NVIDIA GH200 144G HBM3e", (144, 144)),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", None),
        ("Radeon RX 7900", None),
    ],
)
def test_how_much_a_model_has(name: str, sizes: tuple[int, int] | None) -> None:
    expected = None if sizes is None else (sizes[0] * GIB, sizes[1] * GIB)
    assert sizes_of(name) == expected


def test_sizes_are_plausible() -> None:
    for name, sizes in SIZES.items():
        assert sizes == tuple(sorted(sizes)), name
        assert 1 <= sizes[0] <= sizes[-1] <= 192, name
