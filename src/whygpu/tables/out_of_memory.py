"""The out-of-memory messages of each framework and library."""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.shortage import MemoryPlace

Outcome = Literal["refused", "retried"]
"""The request failed for good; or the program tried again with less, or continued without."""

ALLOCATOR_LIMIT = r"Limit: {1,40}"
ALLOCATOR_IN_USE = r"InUse: {1,40}"
"""What stands before the figures of TensorFlow's allocator, which pads them."""

_NUMBER = r"\d[\d.,]{0,20}"
_UNIT = r"[KMGT]?i?[bB](?:ytes)?|[KMGT]|bytes"


_NOT_ROOM = r"Too many open files|No such file|File exists|Permission denied|Invalid argument"


def _size(name: str) -> str:
    return rf"(?P<{name}>{_NUMBER}) ?(?P<{name}_unit>{_UNIT})?"


def _bytes(name: str) -> str:
    """A count of bytes without a unit in the message: its unit is the empty word."""
    return rf"(?P<{name}>\d{{1,20}})(?P<{name}_unit>)"


SECOND_OF_PAIR = late(rf" ?/ ?{_NUMBER} ?(?P<unit>{_UNIT})")
"""The text after the first number of a pair with one unit: 31.44/47.38 GiB."""


class Form(NamedTuple):
    """One form of message. Named groups are sizes: asked, free, total, held, reserved, unused. Each
    may have a unit, and a shape may replace the requested size."""

    of: str
    """The source of the message."""
    place: MemoryPlace
    outcome: Outcome
    pattern: re.Pattern[str]


def _form(of: str, place: MemoryPlace, outcome: Outcome, *patterns: str) -> Form:
    return Form(of, place, outcome, late("|".join(patterns)))


TORCH = late(
    r"(?:(?:CUDA|HIP|XPU|NPU|MPS backend) out of memory\b(?P<before>[^\n]{0,160}?))?"
    rf"Tried to allocate {_size('asked')}(?P<rest>[^\n]{{0,900}})"
)
"""PyTorch's, whose further numbers TORCH_PARTS finds in `before` and `rest`."""
TORCH_ASYNC = late(
    r"Allocation on device \d{0,3} ?would exceed allowed memory\. \(out of memory\)"
    rf"(?P<rest>[^\n]{{0,600}}?\bRequested {{1,24}}: {_size('asked')}[^\n]{{0,600}})"
)
"""The same with the allocator cudaMallocAsync, in one line: it has a line for each number."""
TORCH_PARTS = {
    name: late("|".join(patterns))
    for name, patterns in {
        "total": (
            rf"{_size('a')} total capacity",
            rf"total capaci?ty of {_size('b')}",
            rf"max allowed: {_size('c')}",
            rf"Device limit {{1,12}}: {_size('d')}",
        ),
        "held": (
            rf"{_size('a')} already allocated",
            rf"{_size('b')} is allocated by PyTorch",
            rf"MPS allocated: {_size('c')}",
            rf"Currently allocated {{1,12}}: {_size('d')}",
        ),
        "free": (
            rf"{_size('a')} (?:is )?free",
            rf"Free \(according to CUDA\) ?: {_size('b')}",
        ),
        # On a Mac: what the same process holds outside of PyTorch's allocator.
        "other": (rf"other allocations: {_size('a')}",),
        # A limit that the program sets: torch.cuda.set_per_process_memory_fraction.
        "allowed": (rf"{_size('a')} allowed;",),
        "reserved": (rf"{_size('a')} reserved in total",),
        # Before PyTorch 1.4, "cached" is what is reserved and not in use.
        "unused": (rf"{_size('a')} (?:is reserved by PyTorch but unallocated|cached)",),
    }.items()
}

PAGING_FILE = (
    r"[Pp]aging file is too small|WinError 1455"
    # Windows speaks the user's language: Chinese, Russian, German, French, Spanish, Portuguese,
    # Italian, Japanese, Korean.
    "|\u9875\u9762\u6587\u4ef6\u592a\u5c0f"
    "|[\u0424\u0444]\u0430\u0439\u043b \u043f\u043e\u0434\u043a\u0430\u0447\u043a\u0438"
    r"|Auslagerungsdatei ist zu klein|fichier de pagination est (?:insuffisant|trop petit)"
    r"|archivo de paginaci\w{1,2}n es demasiado|arquivo de pagina\w{2,4}o \S{1,3} muito pequeno"
    r"|file di paging \S{1,3} (?:insufficiente|troppo piccolo)"
    "|\u30da\u30fc\u30b8\u30f3\u30b0 ?\u30d5\u30a1\u30a4\u30eb\u304c\u5c0f\u3055"
    "|\ud398\uc774\uc9d5 \ud30c\uc77c\uc774 \ub108\ubb34 \uc791"
)
"""Windows has no more virtual memory to give, in the words for error 1455."""

FORMS: tuple[Form, ...] = (
    # The computer's own memory, in words that could be mistaken for the GPU's.
    _form(
        "tensorflow",
        "pinned",
        "retried",
        rf"failed to alloc(?:ate)? {_size('asked')}[^\n]{{0,30}} on host",
        rf"could not allocate pinned host memory of size: {_bytes('asked_2')}",
    ),
    # llama.cpp does without, in its CUDA and its SYCL parts.
    _form(
        "llama.cpp", "pinned", "retried", rf"failed to allocate {_size('asked')} of pinned memory"
    ),
    _form(
        "cuda",
        "pinned",
        "refused",
        r"cuda(?:MallocHost|HostAlloc)\b[^\n]{0,200}out of memory",
    ),
    _form(
        "tensorflow",
        "host",
        "refused",
        r"OOM when allocating tensor\b(?: (?:with|of) shape ?(?P<shape>\[[\d,]{0,80}\]))?"
        r"[^\n]{0,200}(?:device:CPU:\d+|by allocator (?:cpu|mklcpu|cuda_host_bfc|gpu_host_bfc))",
        r"Allocator \((?:cpu|mklcpu|cuda_host_bfc|gpu_host_bfc)\) ran out of memory trying to "
        rf"allocate {_size('asked')}",
        r"device:CPU:\d+\}\} failed to allocate memory",
    ),
    _form(
        "torch",
        "host",
        "refused",
        r"(?:enforce fail at alloc_cpu\.cpp[^\n]{0,120})?"
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to "
        rf"allocate {_size('asked')}",
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)",
        r"buy new RAM!",
        r"enforce fail at alloc_cpu\.cpp",
    ),
    _form(
        "numpy",
        "host",
        "refused",
        rf"Unable to allocate {_size('asked')} for an array",
        r"Unable to allocate array with shape",
    ),
    _form(
        "shared memory",
        "shared-memory",
        "refused",
        r"[Bb]us error[^\n]{0,200}shared memory",
        r"workers are out of shared memory",
        # Too many open files are another kind of limit; PyTorch passes memory on as files.
        r"unable to (?:open|write to|mmap|resize) (?:shared memory|file <?/?torch)"
        rf"(?![^\n]{{0,160}}(?:{_NOT_ROOM}))",
        r"No space left on device[^\n]{0,120}(?:/dev/shm|/torch_|psm_)",
        r"[Uu]nable to initialize shared memory key|[Ff]ailed to (?:increase|allocate|create)"
        r" (?:the )?shared memory (?:pool|region|segment)",
        r"[Ii]nsufficient shared memory \(shm\)|[Nn]ot enough (?:shared memory|space in /dev/shm)",
        r"(?:/dev/shm|/torch_\d)[^\n]{0,120}No space left on device",
        # NCCL 2.9, and later ones, which name the file and since 2.21 the reason. That a segment
        # could not be created is said for other reasons as well.
        r"NCCL WARN Call to posix_fallocate failed ?: No space left on device",
        rf"failed to extend /dev/shm/nccl-\w{{1,12}} to {_size('asked')}"
        r"(?!, error: (?!No space left))",
    ),
    _form(
        "windows",
        "host",
        "refused",
        PAGING_FILE,
        r"Not enough memory resources are available to process this command",
        r"WinError 8\]",
    ),
    _form(
        "kernel",
        "host",
        "refused",
        r"Out of memory: Kill(?:ed)? process",
        r"Memory cgroup out of memory",
        r"\boom[-_]kill(?:er)?\b",
        r"OOMKilled",
        r"[Ee]xceeded (?:job |step )?memory limit",
        r"node (?:was |is )?running low on memory|low on resource: memory",
        r"exceeded \d{1,3}% memory budget",
        r"tried to allocate more memory than is available",
        # The kernel ends a compiler like any other process.
        r"\bKilled signal terminated program|internal compiler error: Killed",
        # ptxas, fatbinary and nvlink
        r"^(?:ptxas |nvlink |fatbinary )?fatal {1,4}: Memory allocation failure",
    ),
    _form(
        "system",
        "host",
        "refused",
        r"Cannot allocate memory",
        r"RayOutOfMemoryError\b|More than \d{1,3}% of the memory on node",
        r"java\.lang\.OutOfMemoryError(?!: [^\n]{0,40}(?:GPU|CUDA|device))",
        r"Physical memory usage is too high: physicalBytes",
        r"Insufficient memory to run circuit",
        r"Failed to allocate CPU Memory",
        r"cannot allocate memory for thread-local data",
        r"(?<!')std::bad_alloc(?!\w)(?![^\n]{0,80}(?:CUDA|cuda|out_of_memory|RMM))",
        r"\bbad allocation\b(?!: temporary)",
        r"Virtual memory exhausted",
        rf"libgomp: Out of memory allocating {_size('asked')}",
        r"OpenBLAS[^\n]{0,20}: (?:malloc failed|Memory allocation still failed)",
        r"LLVM ERROR: out of memory",
        r"CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        r"^MemoryError\s*$",
        r"\bMemoryError: (?!std::bad_alloc: (?:out_of_memory|CUDA|cuda)|Error allocating)"
        r"(?![^\n]{0,120}(?:CUDA|cuda|GPU|RMM))",
    ),
    # TensorFlow, XLA, and CuPy, which words it nearly like XLA
    _form(
        "tensorflow",
        "gpu",
        "retried",
        rf"[Rr]an out of memory trying to allocate {_size('asked')}[^\n]{{0,120}}"
        r"(?:with freed_by_count|caller indicates that this is not a failure)",
    ),
    _form(
        "tensorflow",
        "gpu",
        "refused",
        rf"[Rr]an out of memory trying to allocate {_size('asked')}",
    ),
    _form(
        "tensorflow",
        "gpu",
        "refused",
        r"OOM when allocating tensor\b(?: (?:with|of) shape ?(?P<shape>\[[\d,]{0,80}\]))?",
    ),
    _form(
        "tensorflow",
        "gpu",
        "refused",
        r"Dst tensor is not initialized",
        r"CUDNN failed to allocate the scratch space",
        r"(?:[Rr]esource ?[Ee]xhausted(?:Error)?|RESOURCE_EXHAUSTED)[^\n]{0,60}: "
        r"(?:\{\{[^\n}]{0,200}\}\} )?[Ff]ailed to allocate memory",
        # In a graph, the reason has a line of its own, between the node and its name.
        r"^failed to allocate memory$",
    ),
    _form(
        "tensorflow",
        "gpu",
        "retried",
        rf"failed to allocate {_size('asked')} \(\d{{1,20}} ?(?:bytes|B)?\) from device",
    ),
    _form(
        "cupy",
        "gpu",
        "refused",
        rf"[Oo]ut of memory allocating {_size('asked')} \(allocated so far: {_size('held')}",
        rf"out of memory to allocate {_size('asked_2')} \(total",
    ),
    _form("xla", "gpu", "retried", rf"[Ff]ailed to allocate device memory of {_size('asked')}"),
    _form(
        "xla",
        "gpu",
        "refused",
        rf"[Oo]ut of memory (?:while )?(?:trying to )?allocat(?:e|ing) {_size('asked')}",
        rf"Failed to allocate request for {_size('asked_2')}",
        rf"Attempting to reserve {_size('asked_4')} at the bottom of memory",
        # On a TPU, by JAX and by PyTorch/XLA.
        rf"Attempting to allocate {_size('asked_6')}\. That was not possible\. "
        rf"There are {_size('free')} free",
        rf"Failed to allocate {_size('asked_5')} for new constant",
        r"Ran out of memory in memory space \w{1,12}[.:]? {1,4}Used "
        rf"{_size('asked_3')} of {_size('total')}",
    ),
    # Other libraries on GPUs
    _form(
        "directml",
        "gpu",
        "refused",
        rf"Could not allocate tensor with {_size('asked')}\. There is not enough GPU video memory",
    ),
    # PyTorch's allocator fails while it collects the figures for its message.
    _form(
        "torch", "gpu", "refused", r"NVML_SUCCESS == r INTERNAL ASSERT FAILED[^\n]{0,120}Allocator"
    ),
    # PyTorch on a Mac: more than Metal gives in one piece.
    _form("torch", "gpu", "refused", rf"Invalid buffer size: {_size('asked')}"),
    _form("sycl", "gpu", "refused", r"(?:UR|ZE)_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"),
    _form(
        "paddle",
        "gpu",
        "refused",
        rf"Cannot allocate {_size('asked')} memory on GPU \d+, {_size('held')} memory has been "
        rf"allocated and available memory is only {_size('free')}",
        rf"Out of memory error on GPU \d+\. Cannot allocate {_size('asked_2')}",
    ),
    _form(
        "onnxruntime",
        "gpu",
        "refused",
        rf"Failed to allocate memory for requested buffer of size {_bytes('asked')}",
        rf"Available memory of {_bytes('free')} is smaller than requested bytes of "
        rf"{_bytes('asked_2')}",
    ),
    _form(
        "rmm",
        "gpu",
        "refused",
        r"std::bad_alloc: (?:out_of_memory|CUDA error|cudaErrorMemoryAllocation)",
        r"RMM failure at[^\n]{0,200}(?:pool size exceeded|out of memory|allocate)",
        r"RMM_ERROR_OUT_OF_MEMORY",
    ),
    _form("theano", "gpu", "refused", rf"Error allocating {_size('asked')} of device memory"),
    _form(
        "tensorrt",
        "gpu",
        "refused",
        rf"Requested amount of GPU memory \({_size('asked')}\) could not be allocated",
        r"\[TRT\][^\n]{0,200}OutOfMemory",
    ),
    _form(
        "llama.cpp",
        "gpu",
        "refused",
        rf"allocating {_size('asked')} on device \d+: cudaMalloc failed",
        rf"failed to allocate (?:CUDA|ROCm|HIP)\d+ buffer of size {_bytes('asked_2')}",
        r"unable to allocate (?:CUDA|ROCm|HIP)\d+ buffer",
    ),
    _form("faiss", "gpu", "refused", rf"[Ff]ailed to cudaMalloc {_size('asked')} on device \d+"),
    _form(
        "vllm",
        "gpu",
        "refused",
        rf"Free memory on device[^\n]{{0,20}} \({_size('free')}/{_size('total')}\) on startup is "
        rf"less than(?: desired GPU memory utilization \([\d.]{{1,8}}, {_size('asked')}\))?",
        rf"{_size('asked_2')} KV cache is needed, which is larger than the available KV cache "
        rf"memory \({_size('free_2')}\)",
        r"is larger than the maximum number of tokens that can be stored in KV cache",
        r"No available memory for the cache blocks",
        r"memory reserved for KV Cache is -[\d.]{1,12}GiB",
        r"larger than the available KV cache memory",
    ),
    # Other servers of language models.
    _form(
        "serving",
        "gpu",
        "refused",
        r"Not enough memory\. Please try to (?:increase|decrease) --mem-fraction-static",
        r"Not enough memory to handle \d{1,9} (?:prefill|total) tokens",
        r"memory capacity is unbalanced\. Some GPUs may be occupied by other processes",
    ),
    _form(
        "ollama",
        "host",
        "refused",
        rf"model requires more system memory \({_size('asked')}\) than is available "
        rf"\({_size('free')}\)",
    ),
    # The driver and the CUDA runtime, under whatever name a program passes their answer on.
    _form(
        "cuda",
        "gpu",
        "refused",
        r"CUDA_ERROR_OUT_OF_MEMORY",
        r"cudaErrorMemoryAllocation",
        r"hipErrorOutOfMemory",
        r"(?:CUDA driver|HIP) error: out of memory",
        r"[Cc][Uu][Dd][Aa](?: [Ee]rror| failure \d+| runtime error \(2\))? ?: ?'?out of memory",
        r"error=2 : out of memory",
        r"\(2 vs\. 0\) {1,4}:? ?out of memory",
        r"cuda(?:Malloc|Success)\w{0,20}[^\n]{0,200}out of memory",
        r"[Cc]uda failure '?\(?\d{0,2}\)? ?'?out of memory",
        r"Unexpected CUDA error: out of memory",
        r"Triton Error \[CUDA\]: out of memory",
        r"CUDA failed with error out of memory",
        r"cuda execution failed with error 2\b",
        r"[Ff]ailed to allocate scratch buffer for device",
        r"pooled_storage_manager\.h:\d{1,5}: Memory allocation failed",
        r"(?:CUDA|HIP|MPS backend|XPU) out of memory",
        r"\b(?:torch(?:\.cuda)?|cupy[\w.]{0,30})\.OutOfMemoryError\b",
        # Not in advice: "... per GPU. If you are running out of memory, ..."
        r"(?:GPU|[Dd]evice|VRAM)[^\n]{0,40}(?<!running )\bout of memory",
        r"\b[Oo]ut of (?:GPU|device|video|VRAM) memory",
        # Programs also print advice for this case.
        r"(?:Error|Exception): (?:[^\n?]{0,80} )?(?:[Ii]nsufficient|[Nn]ot enough|[Oo]ut of)"
        r" VRAM\b",
        r"Gpu API call\) out of memory",
        r"ErrorOutOfDeviceMemory",
    ),
)

HANDLE_FAILED = late(
    r"(?:[Cc]ould not|[Ff]ailed to) create "
    r"(?:cudnn|cublas(?:Lt)?|cusolver(?: dn)?|cusparse|cu(?:fft|FFT))"
    r" ?(?:handle|instance|batched plan|plan)"
    r"|cu(?:dnn|blas|solverDn|sparse)Create(?:_v2)?\b[^\n]{0,40}(?:fail|STATUS|handle)"
    r"|gpusolverDnCreate[^\n]{0,20} failed"
    r"|DNN library (?:is not found|is not initialized|initialization failed)"
    r"|cuDNN failed to initialize|Fail to find the dnn implementation"
    r"|without (?:DNN|BLAS) support"
    r"|[Bb]las (?:x?GEMM\w{0,20}|[SDHC]GEMM|GEMV|SCAL|xGEMV)\w{0,20} launch failed"
    r"|failed to run cu(?:BLAS|DNN) routine"
    r"|CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
    r"|CUDNN_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
    r"|cuSolverDN call failed with status ?=? ?(?:7|2|1)\b"
    r"|cuSolver internal error|\bcu(?:Solver|BLAS|Sparse|DNN) has not been initialized"
    r"|CUSOLVER_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED|INTERNAL_ERROR)[^\n]{0,80}(?:Create|handle)"
    r"|CUFFT_ALLOC_FAILED"
    r"|[Cc]reate (?:cublas|cudnn|CURAND|curand) handle failed"
    r"|cublas runtime error : (?:resource allocation failed|library not initialized)"
)
"""A CUDA library could not initialise. It seldom says why; usually memory is lacking."""


LIBRARY_REFUSED = Form(
    "cuda libraries",
    "gpu",
    "refused",
    late(
        r"CU(?:BLAS|DNN|SPARSE|SOLVER|RAND)_STATUS_ALLOC(?:ATION)?_FAILED|CUFFT_ALLOC_FAILED"
        r"|CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
        r"|cublas runtime error : resource allocation failed"
        r"|HIPBLAS_STATUS_ALLOC_FAILED|rocblas_status_memory_error|miopenStatusAllocFailed"
    ),
)
"""The part of HANDLE_FAILED that does say why, and AMD's messages for it: the driver gave the
library no memory."""

PERHAPS = Form(
    "cpu kernels",
    "host",
    "refused",
    late(r"could not (?:create|execute) a primitive(?! descriptor)|YNNPACK operation failed"),
)
"""A kernel for the CPU could not be set up: oneDNN in PyTorch and TensorFlow, YNNPACK in XLA.

They say so for lack of memory, and for a processor or a shape that they cannot handle: it is a
shortage only where memory is known to have been near its limit.
"""

NO_ALGORITHM = Form(
    "xla",
    "gpu",
    "refused",
    late(
        r"Autotuning failed for HLO|Autotuner could not find any supported configs for HLO"
        r"|Failed to determine best cudnn convolution algorithm|All algorithms tried for"
        r"|Failed to get configs for: \d{1,9} out of"
    ),
)
"""XLA found no algorithm for an operation.

It tries them in memory that is free, so it says this for lack of memory as well, besides for a
shape or a GPU that no algorithm can handle: it is a shortage only where a request was refused.
"""

NO_START = late(
    r"cudaSetDevice\(\) on GPU:\d{1,3} failed|cuDevicePrimaryCtxRetain"
    r"|(?:[Cc]ould not|[Ff]ailed to) create (?:a )?CUDA context"
)
"""The GPU could not even be started: other processes hold its memory, whatever the batch is."""

_TYPE_BYTES = {"half": 2, "bfloat16": 2, "double": 8, "int64": 8, "int8": 1, "uint8": 1, "bool": 1}
_TYPE = late(r"and type (?P<name>\w{1,20})")


def bytes_of_shape(shape: str, text: str) -> int | None:
    """The size of the tensor that TensorFlow could not allocate, by the text around its shape."""
    numbers = [int(number) for number in shape.strip("[]").split(",") if number]
    if not numbers:
        return None
    kind = _TYPE.search(text)
    return math.prod(numbers) * (_TYPE_BYTES.get(kind["name"], 4) if kind else 4)


def out_of_memory(text: str) -> tuple[Form, re.Match[str]] | None:
    """The out-of-memory form of this text; None if it has none."""
    for form in FORMS:
        match = form.pattern.search(text)
        if match:
            return form, match
    return None
