"""Refused memory, with the log's own numbers."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.log import Allocation
from whygpu.readers.log import read_text

MIB, GIB = 1 << 20, 1 << 30


def only(text: str) -> Allocation:
    (found,) = read_text(text).allocations
    return found


def test_pytorch_before_1_4_counts_the_cache_beside_what_is_allocated() -> None:
    found = only(
        "RuntimeError: CUDA out of memory. Tried to allocate 7.00 GiB (GPU 0; 10.00 GiB total "
        "capacity; 3.00 GiB already allocated; 6.00 GiB free; 512.00 MiB cached)"
    )
    assert (found.requested, found.total, found.held, found.free) == (
        7 * GIB,
        10 * GIB,
        3 * GIB,
        6 * GIB,
    )
    assert found.reserved == 3 * GIB + 512 * MIB


def test_pytorch_1_4_to_2_0() -> None:
    found = only(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 8.00 "
        "GiB total capacity; 5.00 GiB already allocated; 0 bytes free; 6.00 GiB reserved in total "
        "by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
    )
    assert (found.held, found.reserved, found.free) == (5 * GIB, 6 * GIB, 0)


def test_pytorch_since_2_1() -> None:
    found = only(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a "
        "total capacity of 16.00 GiB of which 256.00 MiB is free. Process 31 has 15.50 GiB memory "
        "in use. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 2.00 GiB is "
        "reserved by PyTorch but unallocated."
    )
    assert (found.requested, found.total, found.free) == (GIB, 16 * GIB, 256 * MIB)
    assert (found.held, found.reserved) == (12 * GIB, 14 * GIB)


def test_a_terminal_may_have_wrapped_it() -> None:
    found = only(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB\n"
        "total capacity; 5.00 GiB already allocated; 1.00 GiB free;\n"
        "6.00 GiB reserved in total by PyTorch)"
    )
    assert (found.total, found.held, found.free) == (8 * GIB, 5 * GIB, GIB)


def test_apple_says_it_in_another_order() -> None:
    found = only(
        "RuntimeError: MPS backend out of memory (MPS allocated: 5.00 GB, other allocations: "
        "352.27 MB, max allowed: 9.00 GB). Tried to allocate 500.00 MB on private pool."
    )
    # Both amounts are the process's own: Metal counts what each process holds.
    held = 5 * GIB + int(352.27 * MIB)
    assert (found.requested, found.held, found.total) == (500 * MIB, held, 9 * GIB)
    assert found.free == 9 * GIB - held


def test_a_shape_stands_for_the_size() -> None:
    found = only(
        "ResourceExhaustedError: OOM when allocating tensor with shape[10000,32,28,28] and type "
        "half on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
    )
    assert (found.place, found.final, found.requested, found.shape) == (
        "gpu",
        True,
        None,
        "[10000,32,28,28]",
    )


def test_a_remark_on_speed_is_not_final() -> None:
    found = only(
        "2021-07-09 00:20:24.192962: W tensorflow/core/common_runtime/bfc_allocator.cc:271] "
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB with freed_by_count=0. "
        "The caller indicates that this is not a failure"
    )
    assert (found.final, found.requested) == (False, GIB + GIB // 2)


def test_the_same_error_code_for_the_computers_memory() -> None:
    found = only(
        "failed to alloc 34357641216 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    )
    assert (found.place, found.final, found.requested) == ("pinned", False, 34357641216)


def test_cupy_tells_what_it_has() -> None:
    found = only(
        "Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes)."
    )
    assert (found.requested, found.held) == (25_600_000, 3_635_267_072)


def test_a_tpu_says_how_far_over_it_was() -> None:
    found = only("Ran out of memory in memory space hbm. Used 20.00G of 15.00G hbm. Exceeded hbm")
    assert (found.requested, found.total) == (20 * GIB, 15 * GIB)


def test_a_message_that_the_terminal_broke_is_told_where_it_begins() -> None:
    found = only(
        "I0000 local_client.cc:650] Execution of replica 0 failed: Resource exhausted: Out\n"
        "of memory while trying to allocate 4294967296 bytes."
    )
    assert (found.line, found.place, found.requested) == (1, "gpu", 4 * GIB)


def test_a_message_broken_twice() -> None:
    found = only(
        "RuntimeError: DataLoader worker (pid 61) is killed by signal: Bus\n"
        "error. It is possible that dataloader's workers are out of shared\n"
        "memory. Please try to raise your shared memory limit."
    )
    assert (found.line, found.place) == (2, "shared-memory")


def test_what_stands_on_a_line_of_its_own_is_told_once() -> None:
    found = only(
        "RuntimeError: CUDA error: out of memory\nSee the notes on memory management for help."
    )
    assert found.line == 1


@each(
    "words",
    [
        "The paging file is too small for this operation to complete.",
        "\u9875\u9762\u6587\u4ef6\u592a\u5c0f\uff0c\u65e0\u6cd5\u5b8c\u6210\u64cd\u4f5c\u3002",
        "\u0424\u0430\u0439\u043b \u043f\u043e\u0434\u043a\u0430\u0447\u043a\u0438 "
        "\u0441\u043b\u0438\u0448\u043a\u043e\u043c \u043c\u0430\u043b",
        "Die Auslagerungsdatei ist zu klein, um diesen Vorgang durchzuf\u00fchren.",
        "El archivo de paginaci\u00f3n es demasiado peque\u00f1o para completar la operaci\u00f3n.",
    ],
)
def test_windows_says_it_in_the_users_language(words: str) -> None:
    assert only(f"ImportError: DLL load failed: {words}").place == "host"


def test_a_limit_of_ones_own_is_all_that_there_is() -> None:
    found = only(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 80.00 GiB of which 70.00 GiB is free. Including non-PyTorch memory, this "
        "process has 9.00 GiB memory in use. 8.00 GiB allowed; Of the allocated memory 7.00 GiB is "
        "allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated."
    )
    assert (found.total, found.free, found.held) == (8 * GIB, 512 * MIB, 7 * GIB)


@each(
    ("text", "free", "total", "asked"),
    [
        (
            "ValueError: Free memory on device (31.44/47.38 GiB) on startup is less than desired "
            "GPU memory utilization (0.9, 42.64 GiB).",
            31.44,
            47.38,
            42.64,
        ),
        (
            "ValueError: Free memory on device cuda:0 (512.0 MiB/22.05 GiB) on startup is less "
            "than desired GPU memory utilization (0.9, 19.84 GiB).",
            0.5,
            22.05,
            19.84,
        ),
        (
            "(4.00 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(1.21 GiB).",
            1.21,
            None,
            4.0,
        ),
    ],
)
def test_vllm(text: str, free: float, total: float | None, asked: float) -> None:
    found = only(text)
    assert found.free == int(free * GIB)
    assert found.total == (int(total * GIB) if total else None)
    assert found.requested == int(asked * GIB)


def test_a_number_without_a_unit_is_no_size() -> None:
    found = only(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 (GPU 0; 7.79 total capacity; "
        "5.81 already allocated; 0.75 free; 6.00 reserved in total by PyTorch)"
    )
    assert (found.requested, found.total, found.held, found.free) == (None, None, None, None)


def test_some_write_bytes_and_do_not_say_so() -> None:
    found = only("Failed to allocate memory for requested buffer of size 1073741824")
    assert found.requested == GIB


def test_advice_for_the_case_that_memory_runs_out_is_no_failure() -> None:
    advice = "Graphs take more memory per GPU. If you are running out of memory, use fewer of them."
    assert not read_text(advice).allocations


def test_the_code_for_lack_of_memory_is_a_refused_request() -> None:
    found = only("cuMemAlloc_v2(&pointer, size) failed with error 2")
    assert (found.place, found.final, found.of) == ("gpu", True, "cuda")


NODE = (
    '\t [[Node: avg/sub_1 = Sub[T=DT_FLOAT, _class=["loc:@a"], '
    '_device="/job:localhost/replica:0/task:0/{}:0"](a, b)]]\n'
)
REFUSED = "Resource exhausted: OOM when allocating tensor with shape[2304,384]\n"


@each(("device", "place"), [("cpu", "host"), ("device:CPU", "host"), ("gpu", "gpu")])
def test_tensorflow_1_names_the_device_of_the_operation_below_the_message(
    device: str, place: str
) -> None:
    record = f"2017-07-20 13:58:20.791379: W tensorflow/core/op_kernel.cc:1158] {REFUSED}"
    raised = REFUSED.replace("Resource exhausted", "ResourceExhaustedError")
    log = read_text(record + "step 3\n" + raised + NODE.format(device))
    assert [each.place for each in log.allocations] == [place, place]
