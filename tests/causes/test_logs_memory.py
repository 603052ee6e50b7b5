"""Which memory ran out and who holds it, by the numbers and circumstances of a log."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import explained

TOO_BIG = "oom-model-too-big"
OTHERS = "oom-other-process"
KEPT = "oom-leak-or-fragmentation"
HANDLE = "cudnn-init-failed-oom"
HOST = "host-oom"

REFUSED = (
    "ResourceExhaustedError: OOM when allocating tensor with shape[{shape}] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
)
CREATED = (
    "2023-08-08 08:00:01.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1639] Created "
    "device /job:localhost/replica:0/task:0/device:GPU:0 with {mb} MB memory:  -> device: 0, name: "
    "{name}, pci bus id: 0000:61:00.0, compute capability: 7.5"
)


def torch(asked: str, total: str, held: str, free: str, reserved: str) -> str:
    return (
        f"RuntimeError: CUDA out of memory. Tried to allocate {asked} (GPU 0; {total} total "
        f"capacity; {held} already allocated; {free} free; {reserved} reserved in total by PyTorch)"
    )


def roots(log: str) -> list[str]:
    explanation = explained(log)
    assert not explanation.crashed
    return [finding.cause for finding in explanation.root_causes]


@each(
    ("log", "cause"),
    [
        # This process holds nearly all of it.
        (torch("2.00 GiB", "24.00 GiB", "22.00 GiB", "1.00 GiB", "22.50 GiB"), TOO_BIG),
        # It holds next to nothing, and nothing is free.
        (torch("2.00 MiB", "47.00 GiB", "0.20 GiB", "0.01 GiB", "0.60 GiB"), OTHERS),
        # Others hold some, but it would not fit without them either.
        (torch("3.00 GiB", "8.00 GiB", "5.00 GiB", "0.50 GiB", "5.10 GiB"), TOO_BIG),
        # One request for nearly all of it.
        (torch("8.16 GiB", "11.00 GiB", "0.43 GiB", "8.16 GiB", "0.55 GiB"), TOO_BIG),
        # More than the GPU has, whoever holds what.
        (torch("30.00 GiB", "24.00 GiB", "0.10 GiB", "0.10 GiB", "0.20 GiB"), TOO_BIG),
        # Reserved and not in use, more than was asked for.
        (torch("1.00 GiB", "24.00 GiB", "12.00 GiB", "0.10 GiB", "23.00 GiB"), KEPT),
        # Reserved and not in use, but less than was asked for.
        (torch("4.00 GiB", "24.00 GiB", "20.00 GiB", "0.10 GiB", "23.00 GiB"), TOO_BIG),
        # Free, and still refused.
        (torch("0.02 GiB", "4.00 GiB", "1.20 GiB", "2.35 GiB", "1.25 GiB"), KEPT),
    ],
)
def test_pytorch_tells_who_has_what(log: str, cause: str) -> None:
    assert roots(log)[0] == cause


def test_the_message_says_how_far_over_it_was() -> None:
    log = torch("2.00 GiB", "24.00 GiB", "22.00 GiB", "1.00 GiB", "22.50 GiB")
    message = explained(log).root_causes[0].message
    assert "requested 2 GiB with 1 GiB free" in message
    assert "holds 22 GiB of 24 GiB" in message


@each(
    ("mb", "name", "shape", "cause"),
    [
        (9649, "NVIDIA GeForce RTX 2080 Ti", "64,512,1024", TOO_BIG),
        (1607, "NVIDIA GeForce RTX 2080 Ti", "64,512,1024", OTHERS),
        (34, "NVIDIA GeForce RTX 2080 Ti", "64,1024,1024,1024", TOO_BIG),
        (1607, "Some GPU nobody knows", "64,512,1024", TOO_BIG),
    ],
)
def test_what_tensorflow_got_at_its_start(mb: int, name: str, shape: str, cause: str) -> None:
    log = f"{CREATED.format(mb=mb, name=name)}\n{REFUSED.format(shape=shape)}"
    assert roots(log)[0] == cause


def test_a_limit_of_ones_own_is_not_anothers_doing() -> None:
    """TensorFlow 1 logs what was free; a small device then is what the program asked for."""
    log = "\n".join(
        (
            "I tensorflow/core/common_runtime/gpu/gpu_device.cc:1433] Found device 0 with",
            "name: GeForce RTX 2080 Ti major: 7 minor: 5 memoryClockRate(GHz): 1.62",
            "pciBusID: 0000:41:00.0",
            "totalMemory: 10.76GiB freeMemory: 10.40GiB",
            "I tensorflow/core/common_runtime/gpu/gpu_device.cc:1115] Created TensorFlow device "
            "(/job:localhost/replica:0/task:0/device:GPU:0 with 2203 MB memory) -> physical GPU "
            "(device: 0, name: GeForce RTX 2080 Ti, pci bus id: 0000:41:00.0)",
            REFUSED.format(shape="64,512,1024"),
        )
    )
    assert roots(log)[0] == TOO_BIG


@each(
    ("limit", "in_use", "regions", "cause"),
    [
        (10 << 30, 9 << 30, 10 << 30, TOO_BIG),
        (10 << 30, 2048, 4096, OTHERS),
        (55 << 20, 2048, 55 << 20, OTHERS),
        (10 << 30, 2 << 30, 2 << 30, OTHERS),
    ],
)
def test_what_tensorflows_allocator_lists(
    limit: int, in_use: int, regions: int, cause: str
) -> None:
    log = "\n".join(
        (
            "I tensorflow/core/common_runtime/bfc_allocator.cc:1004] "
            f"total_region_allocated_bytes_: {regions} memory_limit_: {limit} available bytes: 0",
            "I tensorflow/core/common_runtime/bfc_allocator.cc:1010] Stats:",
            f"Limit:              {limit}",
            f"InUse:              {in_use}",
            REFUSED.format(shape="64,512,4096"),
        )
    )
    assert roots(log)[0] == cause


LADDER = "\n".join(
    "E external/xla/xla/stream_executor/cuda/cuda_executor.cc:1365] [0] Failed to allocate device "
    f"memory of {size}GiB (1 bytes): RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    for size in (104.85, 94.37, 84.93)
)


@pytest.mark.parametrize(
    ("asked", "cause"), [(20 << 30, OTHERS), (200 << 30, TOO_BIG)], ids=["fits", "fits not"]
)
def test_a_ladder_of_reservations_means_somebody_else(asked: int, cause: str) -> None:
    end = (
        f"jaxlib._jax.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating {asked} bytes."
    )
    assert roots(f"{LADDER}\n{end}")[0] == cause


def test_a_ladder_that_the_program_survived_is_a_warning() -> None:
    (finding,) = explained(LADDER).root_causes
    assert (finding.cause, finding.severity, finding.effect) == (OTHERS, "warning", "none")


def test_a_ladder_does_not_explain_what_failed_of_something_else() -> None:
    explanation = explained(f"{LADDER}\nFileNotFoundError: [Errno 2] No such file: 'labels.csv'")
    assert explanation.verdict == "not-gpu"
    assert not explanation.root_causes


RAW = "RuntimeError: CUDA error: out of memory"


@each(
    ("before", "cause"),
    [
        ('  File "a.py", line 3, in <module>\n    model.to("cuda")\n', OTHERS),
        ('  File "torch/autograd/__init__.py", line 90, in backward\n    pass\n', TOO_BIG),
        ("".join(f"Epoch {n}: loss 0.{n}\n" for n in range(1, 9)), KEPT),
        ("".join(f"Epoch {n}: loss 0.{n}\n" for n in range(1, 9)) + "Evaluating\n", TOO_BIG),
        ("".join(f"step {n} allocated {n * 20} GiB\n" for n in range(1, 6)), KEPT),
    ],
    ids=["start", "at work", "epochs", "evaluation", "growing"],
)
def test_when_the_driver_refuses_without_figures(before: str, cause: str) -> None:
    assert roots(f"import torch\n{before}{RAW}")[0] == cause


def test_a_context_that_cannot_be_created() -> None:
    log = (
        "Internal: failed initializing StreamExecutor for CUDA device ordinal 0: Internal: failed "
        "call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY; total memory reported: 1"
    )
    assert roots(log)[0] == OTHERS


def test_pinned_memory_is_the_computers() -> None:
    log = (
        '  File "/usr/lib/python3.10/site-packages/torch/utils/data/_utils/pin_memory.py", line 9, '
        f"in pin_memory\n    return data.pin_memory()\n{RAW}"
    )
    assert roots(log) == [HOST]


@each(
    ("log", "cause"),
    [
        ("Killed", HOST),
        ("./run.sh: line 12:  4711 Killed                  python train.py", HOST),
        ("make: *** [train] Killed: 9", HOST),
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", HOST),
        ("container train exited with code 137, reason: OOMKilled", HOST),
        ("RuntimeError: DataLoader worker (pid 3069) is killed by signal: Killed.", HOST),
        ("OSError: [Errno 12] Cannot allocate memory", HOST),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'\n"
            "  what():  std::bad_alloc",
            HOST,
        ),
        (
            "terminate called after throwing an instance of 'rmm::bad_alloc'\n"
            "  what():  std::bad_alloc: out_of_memory: CUDA error at: rmm/mr/cuda.hpp:70",
            TOO_BIG,
        ),
        ("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: rmm/mr/cuda.hpp:70", TOO_BIG),
    ],
)
def test_the_computers_memory_or_the_gpus(log: str, cause: str) -> None:
    assert roots(log)[0] == cause


def test_being_killed_after_another_failure_is_only_cleaning_up() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        "KeyError: 'labels'\n"
        "torch.distributed.elastic: failed (exitcode: -9) local_rank: 1 (pid: 12)\n"
    )
    assert explained(log).verdict == "not-gpu"


HANDLE_LINE = "E tensorflow/stream_executor/cuda/cuda_dnn.cc:329] Could not create cudnn handle: {}"


@pytest.mark.parametrize("status", ["CUDNN_STATUS_INTERNAL_ERROR", "CUDNN_STATUS_NOT_INITIALIZED"])
def test_a_handle_that_cannot_be_created(status: str) -> None:
    log = (
        f"{HANDLE_LINE.format(status)}\n"
        "E tensorflow/stream_executor/cuda/cuda_dnn.cc:398] Possibly insufficient driver version: 5"
    )
    assert roots(log) == [HANDLE]


def test_a_handle_that_fails_after_reservations_follows_from_who_holds_the_memory() -> None:
    log = (
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:828] failed to allocate 138.0K (141312 "
        "bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
        f"{HANDLE_LINE.format('CUDNN_STATUS_ALLOC_FAILED')}\n"
        "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed"
    )
    assert roots(log)[0] == OTHERS
    assert HANDLE not in roots(log)


@pytest.mark.parametrize(
    ("before", "cause"),
    [
        (
            "NVRM: Xid (PCI:0000:01:00): 79, pid=12, GPU has fallen off the bus.",
            "ecc-xid-hardware-error",
        ),
        (
            "x.cu:1: f: block: [0,0,0], thread: [1,0,0] Assertion `t < n_classes` failed.",
            "device-assert-bad-input",
        ),
    ],
)
def test_a_handle_that_fails_after_a_fault_of_the_gpu_follows_from_it(
    before: str, cause: str
) -> None:
    log = f"{before}\nRuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"
    assert HANDLE not in roots(log)
    assert cause in roots(log)


def test_a_remark_on_speed_is_nothing_wrong() -> None:
    log = (
        "W tensorflow/core/common_runtime/bfc_allocator.cc:248] Allocator (GPU_0_bfc) ran out of "
        "memory trying to allocate 2.25GiB with freed_by_count=0. The caller indicates that this "
        "is not a failure, but may mean that there could be performance gains\n"
        "Epoch 1/10\n100/100 [=====] - 3s 30ms/step - loss: 0.4\n"
    )
    assert explained(log).verdict == "nothing-wrong"


def test_a_batch_that_was_tried_again_smaller_is_nothing_wrong() -> None:
    refused = torch("2.00 GiB", "24.00 GiB", "22.00 GiB", "1.00 GiB", "22.50 GiB")
    log = (
        f"batch 64: {refused}\nbatch 32 fits\nstep 1 loss: 0.4\nstep 2 loss: 0.3\nstep 3 loss: 0.2"
    )
    assert explained(log).verdict == "nothing-wrong"


def test_pinned_memory_that_fails_beside_the_gpus_is_not_what_ends_it() -> None:
    log = (
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:893] failed to alloc 966367744 bytes on "
        "host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n" + REFUSED.format(shape="64,512,1024")
    )
    assert roots(log)[0] == TOO_BIG


def test_a_few_bytes_of_pinned_memory_are_no_want_of_memory() -> None:
    log = (
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:967] failed to alloc 2304 bytes on host: "
        "CUDA_ERROR_UNKNOWN"
    )
    assert HOST not in roots(log)


def test_a_round_size_is_a_limit_of_ones_own() -> None:
    created = CREATED.format(mb=2048, name="NVIDIA GeForce RTX 2080 Ti")
    assert roots(f"{created}\n{REFUSED.format(shape='64,512,1024')}")[0] == TOO_BIG


def test_a_table_of_nvidia_smi_that_shows_a_full_gpu() -> None:
    table = (
        "|   0  Tesla V100-SXM2...  On   | 00000000:00:08.0 Off |                    0 |\n"
        "| N/A   54C    P0   246W / 300W |  15514MiB / 16130MiB |    100%      Default |\n"
    )
    assert roots(f"{table}{RAW}")[0] == OTHERS


def test_what_a_person_ended_did_not_run_out_of_memory() -> None:
    assert HOST not in roots("KeyboardInterrupt\nKilled by user")


def test_a_context_that_a_program_in_java_cannot_create() -> None:
    log = (
        'Exception in thread "main" jcuda.CudaException: CUDA_ERROR_OUT_OF_MEMORY\n'
        "\tat jcuda.driver.JCudaDriver.checkResult(JCudaDriver.java:312)\n"
        "\tat jcuda.driver.JCudaDriver.cuCtxCreate(JCudaDriver.java:1310)"
    )
    assert roots(log)[0] == OTHERS


@pytest.mark.parametrize(
    ("limit", "cause"), [(8 << 30, TOO_BIG), (120 << 20, OTHERS)], ids=["its own", "what was left"]
)
def test_the_list_of_the_allocator_alone_tells_that_memory_ran_out(limit: int, cause: str) -> None:
    log = (
        "2020-02-02 02:02:02.000000: I tensorflow/core/common_runtime/bfc_allocator.cc:645] Sum "
        f"Total of in-use chunks: 7.80GiB\nLimit: {limit:>20}\nInUse: {limit - 4096:>20}"
    )
    assert roots(log)[0] == cause


def test_tensorflow_without_a_shape() -> None:
    log = (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: failed to allocate memory "
        "[Op:Mul]"
    )
    assert roots(log)[0] == TOO_BIG


def test_a_dll_for_which_there_is_no_virtual_memory_is_no_missing_dll() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "C:\\py\\lib\\site-packages\\tensorflow\\python\\pywrap_tensorflow.py", line 64\n'
        "ImportError: DLL load failed: Die Auslagerungsdatei ist zu klein, um diesen Vorgang zu "
        "beenden."
    )
    assert roots(log) == [HOST]


def test_a_program_that_checks_and_aborts() -> None:
    log = (
        "syncedmem.cpp:64] Check failed: error == cudaSuccess (2 vs. 0)  out of memory\n"
        "*** Check failure stack trace: ***\n"
        "Process finished with exit code 134 (interrupted by signal 6: SIGABRT)"
    )
    assert explained(log).verdict == "found"
    assert roots(log)[0] == TOO_BIG


@pytest.mark.parametrize(
    "line",
    [
        "MXNetError: Check failed: e == CUDNN_STATUS_SUCCESS : cuDNN: CUDNN_STATUS_INTERNAL_ERROR",
        "RuntimeError: cuSolver has not been initialized",
        "tensorflow.python.framework.errors_impl.InternalError: Failed to call ThenRnnForward with "
        "model config: [rnn_mode, rnn_input_mode, rnn_direction_mode]: 2, 0, 0",
    ],
)
def test_libraries_without_room_in_other_words(line: str) -> None:
    assert roots(line)[0] == HANDLE


@each(
    ("line", "cause"),
    [
        ("RuntimeError: CUDA failed with error out of memory", TOO_BIG),
        ("RuntimeError: cuda execution failed with error 2", TOO_BIG),
        ("UnknownError: CUDNN failed to allocate the scratch space for the runner", TOO_BIG),
        ("W op_kernel.cc:1401] Resource exhausted: OOM when allocating tensor", TOO_BIG),
        ("Resource exhausted: OOM when allocating tensor on device:CPU:0 by allocator cpu", HOST),
        ("MXNetError: src/storage/cpu_device_storage.h:72: Failed to allocate CPU Memory", HOST),
    ],
)
def test_out_of_memory_in_other_words(line: str, cause: str) -> None:
    assert roots(line)[0] == cause


def test_vllm_counts_what_others_hold_before_it_starts() -> None:
    (finding,) = explained(
        "ValueError: Free memory on device (31.44/47.38 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 42.64 GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes."
    ).root_causes
    assert (finding.cause, finding.confidence) == ("oom-other-process", "certain")
    assert "wants 42.6 GiB of the GPU's memory, and 31.4 GiB of 47.4 GiB are" in finding.message
    assert "--gpu-memory-utilization 0.66 or less" in str(finding.remedies)


def test_sizes_that_round_to_the_same_are_told_apart() -> None:
    finding = explained(
        "ValueError: Free memory on device (19.77/22.05 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 19.84 GiB)."
    ).root_causes[0]
    assert "wants 19.84 GiB of the GPU's memory, and 19.77 GiB of" in finding.message


def test_a_key_value_cache_that_does_not_fit_says_how_much_is_left() -> None:
    (finding,) = explained(
        "ValueError: To serve at least one request with the models's max seq len (32768), (4.00 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (1.21 GiB)."
    ).root_causes
    assert finding.cause == "oom-model-too-big"
    assert "4 GiB needed, 1.21 GiB left" in finding.message


SHORT_CACHE = (
    "ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB KV "
    "cache is needed, which is larger than the available KV cache memory (1.21 GiB). "
)
NO_CACHE = "ValueError: No available memory for the cache blocks."


@each(
    ("log", "confidence", "message", "advice"),
    [
        (
            SHORT_CACHE + "Based on that, the estimated maximum model length is 9904.",
            "likely",
            "too little memory for one request",
            ["--max-model-len 9904 or less", "--gpu-memory-utilization.", "--tensor-parallel-size"],
        ),
        (
            "ValueError: The model's max seq len (32768) is larger than the maximum number of "
            "tokens that can be stored in KV cache (9904).",
            "likely",
            "too little memory for one request of the longest allowed length",
            ["--max-model-len with a smaller number", "--gpu-memory-utilization."],
        ),
        (
            f"INFO desired GPU memory utilization (0.85, 19.84 GiB)\n{NO_CACHE}",
            "likely",
            "leave nothing for the cache",
            ["--gpu-memory-utilization (it is 0.85 now)"],
        ),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "likely",
            "leave nothing for the cache",
            ["--mem-fraction-static.", "--tensor-parallel-size"],
        ),
        (
            "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease "
            "`--max-batch-prefill-tokens`",
            "likely",
            "too little memory for one request",
            ["--max-batch-prefill-tokens with a", "--cuda-memory-fraction.", "--num-shard"],
        ),
        (
            "ValueError: Free memory on device (19.77/22.05 GiB) on startup is less than desired "
            f"GPU memory utilization (0.9, 19.84 GiB).\n{NO_CACHE}",
            "certain",
            "other processes hold the rest",
            ["--gpu-memory-utilization 0.89 or less", "which processes hold memory"],
        ),
    ],
)
def test_each_server_is_told_which_of_its_options_to_change(
    log: str, confidence: str, message: str, advice: list[str]
) -> None:
    (finding,) = explained(log).root_causes
    assert (finding.code, finding.confidence) == ("WG506", confidence)
    assert message in finding.message
    for words in advice:
        assert any(words in remedy.text for remedy in finding.remedies), words
    assert (finding.ask is None) is (confidence == "certain")


def test_a_context_is_not_shortened_where_nothing_is_left_for_any() -> None:
    (finding,) = explained(NO_CACHE).root_causes
    assert "--max-model-len" not in str(finding.remedies)


def test_a_server_that_runs_out_of_memory_at_work_is_not_told_of_its_share() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."
    found = explained(f"{NO_CACHE}\n{oom}").root_causes
    assert found
    assert "WG506" not in [finding.code for finding in found]


def test_notes_of_memory_are_compared_with_their_units() -> None:
    """512 MB, 600 MB, 1 GB, 1 GB is no growth to twice as much of one unit."""
    notes = [f"Epoch 1 step {n} memory: {size}" for n, size in enumerate(("1 GB", "2 MB", "3 MB"))]
    log = "\n".join([*notes, "Epoch 1 step 3 memory: 4 MB", "CUDA_ERROR_OUT_OF_MEMORY"])
    assert "grew" not in explained(log).headline


@each(
    ("error", "cause"),
    [
        ("RuntimeError: Triton Error [CUDA]: out of memory", "oom-model-too-big"),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "oom-model-too-big",
        ),
        (
            "RuntimeError: Not enough memory to handle 4096 prefill tokens.",
            "oom-model-too-big",
        ),
        (
            "Error: model requires more system memory (5.5 GiB) than is available (3.1 GiB)",
            "host-oom",
        ),
        (
            "ValueError: The model's max seq len (32768) is larger than the maximum number of "
            "tokens that can be stored in KV cache (7344).",
            "oom-model-too-big",
        ),
        (
            "tensorflow.python.framework.errors_impl.UnknownError: Fail to find the dnn "
            "implementation.",
            "cudnn-init-failed-oom",
        ),
    ],
)
def test_further_words_for_memory_that_ran_out(error: str, cause: str) -> None:
    assert explained(error).root_causes[0].cause == cause


@each(
    ("asked", "held", "unused", "expected"),
    [
        ("1.00", "30.00", "4.00", [(KEPT, "likely"), (TOO_BIG, "possible")]),
        ("1.00", "30.00", "3.99", [(TOO_BIG, "likely"), (KEPT, "possible")]),
        ("0.50", "38.00", "1.00", [(TOO_BIG, "likely"), (KEPT, "possible")]),
        ("0.50", "38.90", "0.60", [(TOO_BIG, "certain")]),
        # Less is unused than was requested: order would not help.
        ("5.00", "35.00", "4.50", [(TOO_BIG, "certain")]),
    ],
)
def test_memory_that_lies_unused_counts_by_its_share_of_the_gpu(
    asked: str, held: str, unused: str, expected: list[tuple[str, str]]
) -> None:
    found = explained(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU 0 has a "
        "total capacity of 40.00 GiB of which 0.10 GiB is free. Of the allocated memory "
        f"{held} GiB is allocated by PyTorch, and {unused} GiB is reserved by PyTorch but "
        "unallocated."
    ).root_causes
    assert [(finding.cause, finding.confidence) for finding in found] == expected


def test_the_epoch_that_is_named_is_the_last_one_and_not_their_count() -> None:
    epochs = "".join(f"Epoch {n}/50 loss: 0.4\n" for n in (7, 8, 9, 10))
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."
    headline = explained(epochs + oom).headline
    assert "it came to epoch 10, and then needed more memory than before" in headline


def test_a_cache_in_main_memory_fills_main_memory() -> None:
    frame = '  File "/opt/vllm/worker/cache_engine.py", line 82, in allocate_cpu_cache\n'
    log = f"Traceback (most recent call last):\n{frame}    torch.empty(shape)\n"
    assert roots(f"{log}RuntimeError: CUDA error: out of memory") == [HOST]


ASYNC = """Allocation on device 0 would exceed allowed memory. (out of memory)
Currently allocated     : {held}
Requested               : {asked}
Device limit            : 8.00 GiB
Free (according to CUDA): {free}
PyTorch limit (set by user-supplied memory fraction)
                        : 17179869184.00 GiB"""


@each(
    ("held", "asked", "free", "expected"),
    [
        ("7.20 GiB", "512.00 MiB", "0 bytes", TOO_BIG),
        ("0.30 GiB", "512.00 MiB", "100.00 MiB", OTHERS),
        ("1.50 GiB", "20.00 MiB", "4.10 GiB", KEPT),
    ],
)
def test_the_figures_of_the_asynchronous_allocator(
    held: str, asked: str, free: str, expected: str
) -> None:
    message = ASYNC.format(held=held, asked=asked, free=free)
    assert roots(f"torch.cuda.OutOfMemoryError: {message}")[0] == expected
    assert roots(" ".join(message.split()))[0] == expected, "on one line"


@each(
    ("message", "first"),
    [
        ("Process 1234 has 70 GiB in use", OTHERS),
        # As PyTorch 2.0 and 2.1 spelt it.
        (
            "Tried to allocate 4.00 GiB. GPU 0 has a total capacty of 79.15 GiB of which 0.50 GiB "
            "is free. Process 77 has 70.28 GiB memory in use.",
            OTHERS,
        ),
        # It is too little to be the reason.
        (
            "Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 0.50 GiB "
            "is free. Process 77 has 1.28 GiB memory in use.",
            TOO_BIG,
        ),
        # In a container, PyTorch lists itself like any other process.
        (
            "Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 11.76 GiB of which 0.50 GiB "
            "is free. Process 4242 has 10.90 GiB memory in use. Of the allocated memory 9.80 GiB "
            "is allocated by PyTorch, and 0.70 GiB is reserved by PyTorch but unallocated.",
            TOO_BIG,
        ),
    ],
)
def test_a_process_that_pytorch_names_holds_the_memory(message: str, first: str) -> None:
    assert roots(f"torch.OutOfMemoryError: CUDA out of memory. {message}")[0] == first


@each(
    ("before", "after", "first"),
    [
        ("39800MiB / 40960MiB", "", OTHERS),
        ("300MiB / 40960MiB", "", TOO_BIG),
        # Another GPU is free, and it is not known which one the program used.
        ("39800MiB / 40960MiB |  0% |\n|   4MiB / 40960MiB", "", TOO_BIG),
        ("", "39800MiB / 40960MiB", TOO_BIG),
    ],
)
def test_a_table_of_nvidia_smi_before_the_failure_shows_who_holds_the_memory(
    before: str, after: str, first: str
) -> None:
    table = "| N/A   34C    P0    56W / 400W |  {} |      0%      Default |\n"
    oom = "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB\n"
    log = (table.format(before) if before else "") + oom + (table.format(after) if after else "")
    assert roots(log)[0] == first


@each(
    ("message", "root"),
    [
        ("FIND was unable to find an engine to execute this computation", "cudnn-init-failed-oom"),
        ("Unable to find a valid cuDNN algorithm to run convolution", "cudnn-init-failed-oom"),
        ("no valid convolution algorithms available in CuDNN", "cudnn-init-failed-oom"),
        ("GET was unable to find an engine to execute this computation", "cudnn-version-mismatch"),
        ("cuDNN Frontend error: No valid execution plans built", "cudnn-version-mismatch"),
        ("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error", "cudnn-version-mismatch"),
        (
            "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED\nUnable to find a valid cuDNN algorithm to "
            "run convolution",
            "cudnn-init-failed-oom",
        ),
    ],
)
def test_an_operation_that_no_engine_of_cudnn_computes_has_several_possible_reasons(
    message: str, root: str
) -> None:
    answer = explained(f'File "/a/torch/nn/modules/conv.py", line 1, in f\nRuntimeError: {message}')
    assert [(f.cause, f.confidence) for f in answer.root_causes] == [(root, "possible")]
    assert "memory" in answer.headline
    assert "data type" in answer.headline
