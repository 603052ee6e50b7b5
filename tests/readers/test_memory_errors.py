"""What is out of memory, and what only sounds like it."""

from __future__ import annotations

import errno
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cases import each
from whygpu.readers.memory_errors import shortage_in, shortage_in_text

GIB = 1 << 30
LOGS = pathlib.Path(__file__).parent.parent / "logs"


def kind(module: str, name: str, *bases: type[Exception]) -> type[Exception]:
    """A type of a framework that is not installed here, by its own name."""
    return type(name, bases or (RuntimeError,), {"__module__": module})


Exhausted = kind("tensorflow.python.framework.errors_impl", "ResourceExhaustedError", Exception)
Jax = kind("jax.errors", "JaxRuntimeError")
Torch = kind("torch", "OutOfMemoryError")
OldTorch = kind("torch.cuda", "OutOfMemoryError")


RECOGNISED = [
    (
        Torch(
            "CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of "
            "139.80 GiB of which 37.12 MiB is free. Including non-PyTorch memory, this process "
            "has 139.76 GiB memory in use. Of the allocated memory 139.09 GiB is allocated by "
            "PyTorch, and 1.97 MiB is reserved by PyTorch but unallocated."
        ),
        ("torch", "gpu", GIB),
    ),
    (
        OldTorch(
            "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; "
            "14.20 GiB already allocated; 1.10 GiB free; 14.30 GiB reserved in total by PyTorch)"
        ),
        ("torch", "gpu", 2 * GIB),
    ),
    (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), ("torch", "gpu", 2 * GIB)),
    (Torch("some later release says it in other words"), ("", "gpu", None)),
    (RuntimeError("CUDA error: out of memory"), ("cuda", "gpu", None)),
    (
        ValueError("RESOURCE_EXHAUSTED: Out of memory allocating 67108864 bytes."),
        ("xla", "gpu", 1 << 26),
    ),
    (
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        ("cuda libraries", "gpu", None),
    ),
    (
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        ("cuda libraries", "gpu", None),
    ),
    (
        Exhausted(
            "Graph execution error:\n\nOOM when allocating tensor with shape[2,512] and type half "
            "on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]"
        ),
        ("tensorflow", "gpu", 2048),
    ),
    (
        Exhausted(
            "Graph execution error:\n\nDetected at node Conv2D_1 defined at (most recent call last)"
            ':\n  File "train.py", line 9, in loss\nfailed to allocate memory\n'
            "\t [[{{node Conv2D_1}}]]\nHint: If you want to see a list of allocated tensors when "
            "OOM happens, add report_tensor_allocations_upon_oom to RunOptions.\n [Op:__inference_"
            "step_12]"
        ),
        ("tensorflow", "gpu", None),
    ),
    (
        Exhausted(
            "{{function_node __wrapped__AddV2_device_/job:localhost/replica:0/task:0/"
            "device:GPU:0}} failed to allocate memory [Op:AddV2]"
        ),
        ("tensorflow", "gpu", None),
    ),
    (
        Exhausted(
            "{{function_node __wrapped__AddV2_device_/job:localhost/replica:0/task:0/"
            "device:CPU:0}} failed to allocate memory [Op:AddV2]"
        ),
        ("tensorflow", "host", None),
    ),
    (
        kind("tensorflow.python.framework.errors_impl", "InternalError", Exception)(
            "Failed copying input tensor from CPU:0 to GPU:0 in order to run _EagerConst: "
            "Dst tensor is not initialized."
        ),
        ("tensorflow", "gpu", None),
    ),
    (
        kind("jaxlib.xla_extension", "XlaRuntimeError")(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
        ),
        ("xla", "gpu", 16 * GIB),
    ),
    (
        Jax(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 200.00GiB with allocator "
            "GPU_0_bfc on device 0. [tf-allocator-allocation-error='']"
        ),
        ("xla", "gpu", 200 * GIB),
    ),
    (
        # Raised, it is an end, though the same words in a log are followed by another try.
        Jax("RESOURCE_EXHAUSTED: Failed to allocate device memory of 937.10MiB (982624000 bytes)"),
        ("xla", "gpu", int(937.10 * (1 << 20))),
    ),
    (
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 42949672960 bytes. Error code 12"
        ),
        ("torch", "host", 40 * GIB),
    ),
    (MemoryError(), ("system", "host", None)),
    (
        kind("numpy._core._exceptions", "_ArrayMemoryError", MemoryError)(
            "Unable to allocate 40.0 GiB for an array with shape (5368709120,)"
        ),
        ("numpy", "host", 40 * GIB),
    ),
    (
        MemoryError("std::bad_alloc: out_of_memory: CUDA error at: rmm/cuda_memory.hpp:69"),
        ("rmm", "gpu", None),
    ),
    (OSError(errno.ENOMEM, "Cannot allocate memory"), ("system", "host", None)),
    (
        RuntimeError(
            "DataLoader worker (pid 211) is killed by signal: Bus error. It is possible that "
            "dataloader's workers are out of shared memory."
        ),
        ("shared memory", "shared-memory", None),
    ),
    (
        RuntimeError("unable to write to file </torch_211_99>: No space left on device (28)"),
        ("shared memory", "shared-memory", None),
    ),
    (
        OSError(errno.ENOSPC, "No space left on device", "/psm_21467_46075"),
        ("shared memory", "shared-memory", None),
    ),
    (
        RuntimeError(
            "Caught RuntimeError in pin memory thread for device 0.\nOriginal Traceback (most "
            "recent call last):\n  ...\nRuntimeError: CUDA error: out of memory"
        ),
        ("cuda", "pinned", None),
    ),
]


@each(("error", "told"), RECOGNISED, ids=lambda part: repr(part)[:60])
def test_each_is_recognised(error: Exception, told: tuple[str, str, int | None]) -> None:
    found = shortage_in(error)
    assert found is not None
    assert (found.of, found.place, found.asked) == told


OTHERS = [
    Exhausted("{{function_node __wrapped__WriteFile}} /data/a.ckpt; No space left on device"),
    Exhausted("Received message larger than max (5242880 vs. 4194304)"),
    Exhausted("/data/a.tfrecord; Too many open files"),
    Exhausted("Queue 'input_producer' is full"),
    Jax("RESOURCE_EXHAUSTED: Received message larger than max (5242880 vs. 4194304)"),
    Jax("RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 164352, available 1024"),
    Jax("INVALID_ARGUMENT: Executable expected parameter 0 of size 16 but got buffer of size 8"),
    kind("grpc", "RpcError", Exception)("StatusCode.RESOURCE_EXHAUSTED: Quota exceeded"),
    kind("triton.runtime.errors", "OutOfResources", Exception)(
        "out of resource: shared memory, Required: 147456, Hardware limit: 101376."
    ),
    OSError(errno.ENOSPC, "No space left on device", "/data/checkpoint.pt"),
    RuntimeError("unable to open shared memory object </torch_1_2>: Too many open files (24)"),
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError("DataLoader worker (pid(s) 4711) exited unexpectedly"),
    RuntimeError("cannot change oom_killer score: permission denied"),
    MemoryError("Cannot allocate write+execute memory for ffi.callback()"),
    KeyError("CUDA out of memory"),
    ValueError("expected 'retry' or 'CUDA out of memory' for --on-error"),
    ValueError("no such status: RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes"),
    RuntimeError("batch of 64 is larger than the data set"),
    KeyboardInterrupt(),
]


@each("error", OTHERS, ids=lambda error: repr(error)[:60])
def test_what_only_sounds_like_it_is_not(error: BaseException) -> None:
    assert shortage_in(error) is None


def test_pytorchs_numbers_are_read() -> None:
    found = shortage_in(RECOGNISED[0][0])
    assert found is not None
    told = (found.free, found.total, found.held)
    assert told == (int(37.12 * (1 << 20)), int(139.80 * GIB), int(139.09 * GIB))


def raised(outer: Exception, inner: BaseException, *, named: bool) -> Exception:
    """The outer one, raised while the inner one was handled, or from it."""
    outer.__context__ = inner
    if named:
        outer.__cause__ = inner
    return outer


OUT = "CUDA out of memory. Tried to allocate 2.00 GiB"


@pytest.mark.parametrize("named", [True, False])
def test_what_an_error_was_raised_for_counts(named: bool) -> None:
    found = shortage_in(raised(RuntimeError("step 7 failed"), Torch(OUT), named=named))
    assert found is not None
    assert found.asked == 2 * GIB


def test_a_slip_in_a_handler_is_an_error_of_its_own() -> None:
    assert (
        shortage_in(raised(NameError("name 'tf' is not defined"), Torch(OUT), named=False)) is None
    )


def test_what_was_put_aside_does_not_count() -> None:
    error = raised(RuntimeError("step 7 failed"), Torch(OUT), named=False)
    error.__suppress_context__ = True
    assert shortage_in(error) is None


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert shortage_in(first) is None


def test_an_exception_that_cannot_be_worded_is_no_crash() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    assert shortage_in(Mute()) is None


def test_pinned_memory_is_told_by_the_line_that_asked_for_it() -> None:
    class Refused:
        def __getattr__(self, name: str) -> Callable[[], None]:
            raise RuntimeError("CUDA error: out of memory")

    with pytest.raises(RuntimeError) as caught:
        Refused().pin_memory()
    error = caught.value
    # PyTorch's own method is no Python code: the innermost line is that of its caller.
    error.__traceback__ = caught.tb
    caught.tb.tb_next = None
    found = shortage_in(error)
    assert found is not None
    assert found.place == "pinned"


@pytest.mark.slow
@each(
    ("name", "of", "place"),
    [
        ("torch-leak", "torch", "gpu"),
        ("torch-oom-training", "torch", "gpu"),
        ("torch-oom-beside", "torch", "gpu"),
        ("torch-oom-limit", "torch", "gpu"),
        ("torch-full-then-conv", "torch", "gpu"),
        ("jax-oom-alone", "xla", "gpu"),
        ("jax-oom-beside", "xla", "gpu"),
        ("jax-beside-full", "cuda", "gpu"),
        ("cupy-oom", "cupy", "gpu"),
        ("host-oom-numpy", "numpy", "host"),
        ("host-oom-torch", "torch", "host"),
        ("tensorflow-exhausted-and-caught", "tensorflow", "gpu"),
        ("tensorflow-variable-larger-than-the-gpu", "tensorflow", "host"),
        ("tensorflow-oom-autotuning", "tensorflow", "gpu"),
        ("tensorflow-oom-eager-kernels", "tensorflow", "gpu"),
    ],
)
def test_recorded_ends_are_recognised(name: str, of: str, place: str) -> None:
    found = shortage_in_text((LOGS / f"h200-{name}.log").read_text())
    assert found is not None
    assert (found.of, found.place) == (of, place)


@each(
    "name",
    [
        path.stem
        for path in sorted(LOGS.glob("*.log"))
        if not any(
            word in path.stem for word in ("oom", "leak", "full", "beside", "exhausted", "larger")
        )
    ],
)
def test_recorded_ends_of_other_kinds_are_not(name: str) -> None:
    assert shortage_in_text((LOGS / f"{name}.log").read_text()) is None


def test_a_reservation_that_was_tried_again_is_no_shortage() -> None:
    text = "Failed to allocate device memory of 17.49GiB (18775746560 bytes): retrying"
    assert shortage_in_text(text) is None


@pytest.mark.parametrize(
    "words", ["could not create a primitive", "INTERNAL: YNNPACK operation failed: error"]
)
def test_words_with_several_reasons_count_where_memory_was_near_its_limit(words: str) -> None:
    assert shortage_in(RuntimeError(words)) is None
    program = f"""
import resource
from whygpu.readers.memory_errors import shortage_in
with open("/proc/self/status") as stream:
    peak = next(int(line.split()[1]) * 1024 for line in stream if line.startswith("VmPeak"))
resource.setrlimit(resource.RLIMIT_AS, (peak * 11 // 10, peak * 11 // 10))
print(shortage_in(RuntimeError({words!r})))
print(shortage_in(RuntimeError("could not create a primitive descriptor")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    found, descriptor = done.stdout.splitlines()
    assert "place='host'" in found
    assert descriptor == "None"
