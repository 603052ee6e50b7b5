"""Faults while kernels run and GPUs talk: what explains what, and what only follows."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import command_of, explained

ASSERTED = "device-assert-bad-input"
KERNEL = "kernel-bug-illegal-access"
NCCL = "nccl-failure"

BLOCK = "block: [0,0,0], thread: [31,0,0] "
LABELS = (
    f"ClassNLLCriterion.cu:108: updateOutput: {BLOCK}Assertion `t >= 0 && t < n_classes` failed."
)
TOKENS = f"Indexing.cu:1141: indexSelect: {BLOCK}Assertion `srcIndex < srcSelectDimSize` failed."
TRIGGERED = "RuntimeError: CUDA error: device-side assert triggered"


def roots(log: str) -> list[str]:
    explanation = explained(log)
    assert not explanation.crashed
    return [finding.cause for finding in explanation.root_causes]


@each(
    ("assertion", "words"),
    [
        (LABELS, "class label"),
        (TOKENS, "token id"),
        (
            f"Loss.cu:111: bce: {BLOCK}Assertion `input_val >= zero && input_val <= one` failed.",
            "0 and 1",
        ),
        (
            f"S.cu:144: o(): {BLOCK}Assertion `idx_dim >= 0 && idx_dim < index_size` failed.",
            "bounds",
        ),
        (f"K.cu:9: mine: {BLOCK}Assertion `count > 3` failed.", "label or an index"),
    ],
    ids=["labels", "tokens", "probabilities", "index", "unknown"],
)
def test_the_assertion_says_which_value_it_is(assertion: str, words: str) -> None:
    finding = explained(f"{assertion}\n{TRIGGERED}").root_causes[0]
    assert finding.cause == ASSERTED
    assert finding.confidence == "certain"
    assert words in finding.message


def test_without_its_lines_it_is_likely() -> None:
    (finding,) = explained(TRIGGERED).root_causes
    assert (finding.cause, finding.confidence) == (ASSERTED, "likely")


@each(
    "follower",
    [
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784, unhandled cuda error, NCCL 2",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ],
)
@each("first", [True, False], ids=["after", "before"])
def test_what_else_fails_follows_from_it(follower: str, first: bool) -> None:
    """Lines of several processes come in any order."""
    log = f"{TOKENS}\n{follower}" if first else f"{follower}\n{TOKENS}"
    assert roots(log) == [ASSERTED]


@each(
    "log",
    [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: cuda runtime error (77) : an illegal memory access at /x/ext/nms.cu:103",
        "cupy.cuda.driver.CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access",
        "RuntimeError: CUDA error: misaligned address",
        "RuntimeError: CUDA error: unspecified launch failure",
        "RuntimeError: CUDA error: invalid configuration argument",
    ],
)
def test_kernels_that_fail(log: str) -> None:
    assert roots(log)[0] == KERNEL


def test_an_extension_is_named() -> None:
    finding = explained(
        "RuntimeError: cuda runtime error (77) : an illegal memory access was encountered at "
        "/home/a/ssd/ext/cuda/nms.cu:103"
    ).root_causes[0]
    assert "nms.cu" in finding.message
    assert command_of(finding.remedies[0]) == "CUDA_VISIBLE_DEVICES=0 python ..."


TORCH_CONV = (
    '  File "/opt/lib/python{}/site-packages/torch/nn/modules/conv.py", line 9, in forward\n'
)


@pytest.mark.parametrize(("python", "leads"), [("3.6", False), ("3.11", True)])
def test_execution_failed_in_old_builds_is_rather_a_gpu_that_is_too_new(
    python: str, leads: bool
) -> None:
    log = f"{TORCH_CONV.format(python)}RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"
    assert (roots(log)[0] == KERNEL) is leads


def test_cudnn_without_room_is_not_a_bug() -> None:
    log = (
        "E tensorflow/stream_executor/cuda/cuda_dnn.cc:82] CUDNN_STATUS_EXECUTION_FAILED\n"
        "InternalError: cuDNN launch failure : input shape ([306,1,16,29])"
    )
    assert roots(log)[0] == "cudnn-init-failed-oom"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("h:1:2 [0] init.cc:642 NCCL WARN Duplicate GPU detected : rank 0 and rank 2", "same GPU"),
        ("h:1:2 [0] include/shm.h:27 NCCL WARN Call to shm_open failed : No space", "/dev/shm"),
        ("h:1:2 [0] misc/socket.cc:484 NCCL WARN Connect to 10.0.0.1<4> failed", "network"),
    ],
)
def test_the_warning_of_nccl_says_why(line: str, words: str) -> None:
    log = f"{line}\nRuntimeError: NCCL error in: ProcessGroupNCCL.cpp:47, unhandled system error"
    finding = explained(log).root_causes[0]
    assert finding.cause == NCCL
    assert words in finding.message


def test_a_time_out_says_to_look_at_the_others() -> None:
    finding = explained(
        "[rank0]:[E626 06:24:44.1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, Timeout(ms)=600000) ran for "
        "600020 milliseconds before timing out."
    ).root_causes[0]
    assert finding.cause == NCCL
    assert "every other process" in finding.remedies[0].text


def test_a_process_that_ran_out_of_memory_is_what_the_others_waited_for() -> None:
    log = (
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 "
        "has a total capacity of 24.00 GiB of which 1.00 GiB is free. Of the allocated memory "
        "22.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n"
        "[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE) ran for 600020 milliseconds"
    )
    assert roots(log)[0] == "oom-model-too-big"


def test_talk_of_nccl_is_no_failure() -> None:
    log = (
        "h:1:2 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal\n"
        "h:1:2 [0] NCCL INFO comm 0x7f rank 0 nranks 2 - Init COMPLETE\n"
        "Epoch 1/3\nstep 10 loss: 0.3\n"
    )
    assert not roots(log)


def test_tensorflow_2_0_aborts_a_collective_whatever_fails() -> None:
    log = (
        "W tensorflow/core/common_runtime/base_collective_executor.cc:217] "
        "BaseCollectiveExecutor::StartAbort Invalid argument: indices[0] = 7 is not in [0, 5)\n"
        "InvalidArgumentError: indices[0] = 7 is not in [0, 5) [Op:ResourceGather]"
    )
    assert NCCL not in roots(log)


@pytest.mark.parametrize(
    "line",
    [
        "ExternalError:  Nccl error, unhandled cuda error  at (/paddle/nccl_context.cc:110)",
        "ncclAllReduce() : 0002 unhandled system error",
        "Test NCCL failure common.cu:891 'unhandled system error'",
    ],
)
def test_nccl_by_any_spelling(line: str) -> None:
    assert roots(line)[0] == NCCL


def test_a_fork_as_the_optimizer_of_graphs_meets_it() -> None:
    log = "E tensorflow/core/grappler/clusters/utils.cc:83] Failed to get device properties, error"
    assert roots(f"{log} code: 3")[0] == "cuda-fork-multiprocessing"


def test_a_program_that_aborts_beside_an_xid_of_its_own() -> None:
    log = (
        "NVRM: Xid (PCI:0000:0f:00): 13, SM Warp Exception: Illegal Instruction Parameter\n"
        "Fatal Python error: Aborted"
    )
    assert roots(log)[0] == KERNEL


@pytest.mark.parametrize(
    "line",
    [
        "XlaRuntimeError: INTERNAL: cusolverDnSsyevd failed: CUSOLVER_STATUS_INTERNAL_ERROR",
        "XlaRuntimeError: INTERNAL: custom call 'xla.gpu.conv' failed: CUDNN_STATUS_NOT_SUPPORTED",
    ],
)
def test_what_xla_hears_from_a_library_and_is_no_want_of_memory(line: str) -> None:
    assert roots(line)[0] == KERNEL


def test_a_copy_to_memory_that_is_not_the_gpus_is_the_programs_fault() -> None:
    log = (
        "F tensorflow/stream_executor/cuda/cuda_driver.cc:201] Check failed: "
        "is_host_ptr == points_to_host_memory (0 vs. 1)dst pointer is not actually on GPU: 0x7f10\n"
        "Fatal Python error: Aborted\n"
    )
    assert roots(log) == [KERNEL]


DSA = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."


@each(
    ("error", "cause"),
    [
        ("an illegal memory access was encountered", KERNEL),
        ("unspecified launch failure", KERNEL),
        ("misaligned address", KERNEL),
        ("an illegal instruction was encountered", KERNEL),
        ("invalid configuration argument", KERNEL),
        ("too many resources requested for launch", KERNEL),
        ("device-side assert triggered", ASSERTED),
        ("invalid device ordinal", "invalid-device-ordinal"),
        ("no kernel image is available for execution on the device", "compute-capability-too-new"),
        ("unknown error", "nvidia-kernel-module-state"),
        ("out of memory", "oom-model-too-big"),
    ],
)
def test_what_pytorch_2_puts_below_every_error_changes_nothing(error: str, cause: str) -> None:
    told = f"RuntimeError: CUDA error: {error}"
    late = "CUDA kernel errors might be asynchronously reported at some other API call"
    assert roots(f"{told}\n{late}\n{DSA}\n")[0] == cause
    assert roots(f"{told}\n{late}\n{DSA}\n") == roots(f"{told}\n{late}\n")


@each(
    ("log", "port"),
    [
        (
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any "
            "local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, "
            "message: address already in use",
            "29500",
        ),
        (
            "[W socket.cpp:401] [c10d] The server socket has failed to bind to 0.0.0.0:47531 "
            "(errno: 98 - Address already in use).\n"
            "[E socket.cpp:435] [c10d] The server socket has failed to listen on any local network "
            "address.\n"
            "RuntimeError: The server socket has failed to listen on any local network address. "
            "The server socket has failed to bind to 0.0.0.0:47531 (errno: 98 - Address already in "
            "use).",
            "47531",
        ),
        (
            "[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29400 (errno: "
            "98 - Address already in use).\n"
            "[E socket.cpp:472] [c10d] The server socket has failed to listen on any local network "
            "address.\n",
            "29400",
        ),
        (
            "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to start coordination service: "
            "Failed to bind to address [::]:1234: Address already in use",
            "1234",
        ),
        (
            "ConnectionError: Tried to launch distributed communication on port `29501`, but "
            "another process is utilizing it. Please specify a different port.",
            "29501",
        ),
        (
            '{"os_error":"Address already in use","target_address":"[::]:2222"}\n'
            "UnknownError: Could not start gRPC server",
            "2222",
        ),
        (
            "c10d: bind to node01:29500 failed\n"
            "DistNetworkError: node01:29500: Address already in use",
            "29500",
        ),
    ],
)
def test_the_port_where_a_training_meets_is_named(log: str, port: str) -> None:
    (found,) = explained(log).root_causes
    assert found.cause == "not-gpu"
    assert f"({port})" in found.message
    assert f":{port}" in str(command_of(found.remedies[0]))


@each(
    "log",
    [
        "2024-10-18 10:01:22 TCPStore(host)\nRuntimeError: Address already in use",
        "torchrun train.py\n[10:01:22] Address already in use\n",
        "init_process_group('gloo')\n"
        "OSError: [WinError 10048] Only one usage of each socket address",
    ],
)
def test_a_port_that_the_log_does_not_name_is_not_made_up(log: str) -> None:
    (found,) = explained(log).root_causes
    assert found.cause == "not-gpu"
    assert "the port where the processes of this training meet" in found.message
    assert command_of(found.remedies[0]) == "ss -ltnp"


TAKEN = (
    "[W socket.cpp:426] [c10d] failed to bind to [::]:29500 (errno: 98 - Address already in use)."
)


@each(
    ("lines", "taken"),
    [
        ((TAKEN,), True),
        (("Epoch 1: loss 0.71", TAKEN), True),
        ((TAKEN, "Epoch 1: loss 0.71"), False),
        ((TAKEN, "KeyError: 'label'"), False),
        ((TAKEN, "KeyError: 'label'", "RuntimeError: Address already in use"), True),
        ((TAKEN, "RuntimeError: NCCL error: Address already in use"), False),
        # Of a web server beside the training.
        (
            (
                "torchrun serve.py",
                "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): "
                "address already in use",
            ),
            False,
        ),
        (("torchrun train.py", "TensorBoard: port 6006: Address already in use"), False),
    ],
)
def test_a_taken_port_counts_if_it_ended_the_training(lines: tuple[str, ...], taken: bool) -> None:
    assert ("not-gpu" in roots("\n".join(lines))) is taken


def test_the_evidence_of_a_taken_port_is_short() -> None:
    log = "\n".join([*[TAKEN] * 6, "RuntimeError: Address already in use"])
    (found,) = explained(log).root_causes
    assert [evidence.line for evidence in found.evidence] == [1, 2, 3, 4, 7]


LOST = "[rank1]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1."


@each(
    ("error", "first", "expected"),
    [
        (LOST, "KeyError: 'label'", []),
        (LOST.replace("aborted", "shut down"), "KeyError: 'label'", []),
        # NCCL's own failure, and one after it.
        (LOST.replace("was aborted", "invalid usage"), "KeyError: 'label'", [NCCL]),
        (LOST, "", [NCCL]),
    ],
)
def test_a_process_that_loses_a_failed_one_is_not_the_cause(
    error: str, first: str, expected: list[str]
) -> None:
    assert roots(f"{first}\n\n{error}\n") == expected


@each(
    ("log", "found"),
    [
        ("triton.runtime.errors.OutOfResources: out of resource: {}", True),
        ("RuntimeError: Triton Error: out of resources: {}", True),
        ("tuning: out of resource: {}\nEpoch 1: loss 0.71", False),
        ("tuning: out of resource: {}", False),
    ],
)
def test_a_variant_that_a_tuner_gives_up_is_no_fault(log: str, found: bool) -> None:
    lacking = "shared memory, Required: 147456, Hardware limit: 101376."
    assert (KERNEL in roots(log.format(lacking))) is found


@each(
    "log",
    [
        "RuntimeError: Address already in use",
        "OSError: [Errno 98] Address already in use",
        "OSError: [WinError 10048] Only one usage of each socket address (protocol/network "
        "address/port) is normally permitted",
    ],
)
def test_a_port_of_any_other_program_is_not_the_gpus_matter(log: str) -> None:
    explanation = explained(log)
    assert explanation.verdict == "not-gpu"
    assert "port" in explanation.headline
    assert explanation.guidance is not None
    assert "port" in explanation.guidance.steps[0].text


def test_processes_that_do_not_reach_each_other_are() -> None:
    assert roots(
        "torch.distributed.DistNetworkError: The client socket has timed out after 60s while "
        "trying to connect to (10.0.0.1, 29500)."
    ) == [NCCL]


def test_an_address_that_nccl_itself_cannot_bind_is_nccls() -> None:
    assert roots(
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled "
        "system error, NCCL version 2.18.1\nLast error:\n"
        "Call to bind failed : Address already in use\n"
    ) == [NCCL]


def test_an_operation_that_complains_before_cuda_fails_is_not_the_end() -> None:
    log = (
        "2017-11-10 05:10:43.484563: W tensorflow/core/framework/op_kernel.cc:1192] Invalid "
        "argument: Invalid reduction dimension (-1146944963 for input with 4 dimension(s)\n"
        "2017-11-10 05:10:44.646881: E tensorflow/stream_executor/cuda/cuda_driver.cc:1068] failed "
        "to synchronize the stop event: CUDA_ERROR_LAUNCH_FAILED\n"
    )
    assert roots(log) == [KERNEL]


def test_a_copy_that_is_not_on_the_gpu() -> None:
    assert roots(
        "2019-03-08 19:33:01.647196: F tensorflow/stream_executor/cuda/cuda_driver.cc:1184] Check "
        "failed: PointerIsValid(gpu_dst) Destination pointer is not actually on GPU: 67666247680\n"
        "Aborted (core dumped)\n"
    ) == [KERNEL]


REFUSED = (
    "[W socket.cpp:697] [c10d] The client socket has failed to connect to [node7]:29500 (errno: "
    "111 - Connection refused)."
)
NO_ANSWER = (
    "TimeoutError: The client socket has timed out after 900s while trying to connect to (node7, "
    "29500)."
)


@each(
    ("lines", "what"),
    [
        ((REFUSED, NO_ANSWER), "(port 29500), which they do before they use NCCL; nothing listens"),
        ((NO_ANSWER,), "(port 29500), which they do before they use NCCL; nobody answers there"),
        (
            (
                "[W socket.cpp:464] [c10d] The server socket cannot be initialized",
                "[E socket.cpp:957] [c10d] The IPv4 network addresses of (node7, 29511) cannot be "
                "retrieved (gai error: -2 - Name or service not known).",
            ),
            "(port 29511), which they do before they use NCCL; the name of that machine has no",
        ),
        (
            (
                "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for "
                "clients. 3/8 clients joined.",
            ),
            "MASTER_ADDR, which they do before they use NCCL; the others did not come",
        ),
        (("RuntimeError: connect() timed out. Original timeout was 1800000 ms.",), "nobody"),
    ],
)
def test_processes_that_do_not_meet_get_no_advice_about_nccl(
    lines: tuple[str, ...], what: str
) -> None:
    (found,) = explained("\n".join(lines)).root_causes
    assert (found.code, found.cause) == ("WG731", "nccl-failure")
    assert what in found.message
    assert not any("NCCL_" in str(command_of(remedy)) for remedy in found.remedies)


@each(
    ("lines", "code"),
    [
        ((REFUSED, "Epoch 1: loss 0.71"), None),
        (("KeyError: 'label'", REFUSED, NO_ANSWER), None),
        ((NO_ANSWER, "RuntimeError: NCCL error: unhandled system error"), "WG210"),
        ((TAKEN, REFUSED, "RuntimeError: Address already in use"), "WG730"),
    ],
)
def test_processes_that_do_not_meet_count_if_nothing_else_came_first(
    lines: tuple[str, ...], code: str | None
) -> None:
    assert [f.code for f in explained("\n".join(lines)).root_causes] == ([code] if code else [])


TORCH = "import torch\n"


@each(
    ("error", "expected"),
    [
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling "
            "`cublasCreate(handle)`",
            [("cudnn-init-failed-oom", "likely"), (ASSERTED, "possible")],
        ),
        (
            "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
            [("cudnn-init-failed-oom", "likely"), ("cudnn-version-mismatch", "possible")],
        ),
        (
            "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
            [("compute-capability-too-new", "possible"), (KERNEL, "possible")],
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling "
            "`cublasSgemm(handle)`",
            [("compute-capability-too-new", "possible"), (KERNEL, "possible")],
        ),
    ],
)
def test_a_status_with_several_reasons_has_two_candidates_and_a_question(
    error: str, expected: list[tuple[str, str]]
) -> None:
    found = explained(TORCH + error).root_causes
    assert [(finding.cause, finding.confidence) for finding in found] == expected
    assert all(finding.ask for finding in found)


@each(
    "reason",
    [
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "Indexing.cu:699: block: [12,0,0], thread: [64,0,0] Assertion `srcIndex < n` failed.",
    ],
)
def test_no_second_candidate_beside_a_message_that_gives_the_reason(reason: str) -> None:
    status = "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED"
    found = explained(f"{TORCH}{reason}\n{status}").root_causes
    assert "possible" not in [finding.confidence for finding in found]


@each(
    "error",
    [
        "RuntimeError: CUDA error: operation not permitted when stream is capturing",
        "CUDA error: invalid resource handle\n  current device: 1, in function mul at mul.cu:12",
        "ERROR: CUDA error: invalid argument (code 1, ERROR_INVALID_VALUE)\nStacktrace:\n [1] f()",
        "what():  cuMemcpyHtoD_v2(dst, src, n) failed with error 400\nAborted (core dumped)",
    ],
)
def test_a_code_alone_suggests_its_kind_of_fault(error: str) -> None:
    finding = explained(error).root_causes[0]
    assert (finding.cause, finding.confidence) == (KERNEL, "possible")


def test_a_second_code_leaves_the_first_undecided() -> None:
    first = "E: CUDA error: invalid argument"
    second = "RuntimeError: CUDA error: the MPS client has been terminated by the server"
    assert KERNEL not in roots(f"{first}\n{second}")


STARTED = (
    "I0000 00:00:1.0 1 service.cc:161]   StreamExecutor [0]: NVIDIA {gpu} (Driver: 12.2.0; "
    "Runtime: 12.5.0; Toolkit: 12.5.0; DNN: {cudnn})\n"
)
PASCAL, TURING = "GTX 1050 Ti, Compute Capability 6.1", "RTX 2080, Compute Capability 7.5"
NO_ALGORITHM = (
    "jax.errors.JaxRuntimeError: INTERNAL: Autotuning failed for HLO: %cudnn-conv.1 = "
    '(f32[8,16]{1,0}) custom-call(%a), custom_call_target="__cudnn$convForward" with error: '
    "NOT_FOUND: No valid config found!"
)


@each(
    ("gpu", "cudnn", "words"),
    [
        (PASCAL, "9.11.0", "cuDNN 9.11 has no code for GTX 1050 Ti"),
        (PASCAL, "9.10.2", "too little memory was free"),
        (PASCAL, "8.9.7", "too little memory was free"),
        (TURING, "9.22.0", "too little memory was free"),
    ],
)
def test_no_algorithm_is_put_on_cudnn_only_if_it_has_dropped_the_gpu(
    gpu: str, cudnn: str, words: str
) -> None:
    log = STARTED.format(gpu=gpu, cudnn=cudnn) + NO_ALGORITHM
    assert roots(log) == ["xla-finds-no-algorithm"]
    assert words in explained(log).root_causes[0].message


def test_a_refused_request_is_why_no_algorithm_was_found() -> None:
    refused = (
        "W0000 00:00:1.0 1 bfc_allocator.cc:311] Allocator (GPU_0_bfc) ran out of memory trying to "
        "allocate 3.50GiB with freed_by_count=0.\n"
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3759489792 bytes.\n"
    )
    assert roots(refused + NO_ALGORITHM) == ["oom-model-too-big"]


def test_what_bitsandbytes_says_of_its_setup_gives_no_reason() -> None:
    explanation = explained("RuntimeError: CUDA Setup failed despite GPU being available.\n")
    assert explanation.verdict == "unknown"
    assert "python -m bitsandbytes" in explanation.headline


@each(
    ("error", "cause"),
    [
        ("CURANDError: CURAND_STATUS_INITIALIZATION_FAILED", "cudnn-init-failed-oom"),
        ("RuntimeError: CUDA error: CURAND_STATUS_ALLOCATION_FAILED", "cudnn-init-failed-oom"),
        ("CURANDError: CURAND_STATUS_LAUNCH_FAILURE", "kernel-bug-illegal-access"),
        ("RuntimeError: No valid execution plans built.", "cudnn-version-mismatch"),
        (
            "RuntimeError: cuDNN Frontend error: [cudnn_frontend] Error: No execution plans "
            "support the graph.",
            "cudnn-version-mismatch",
        ),
    ],
)
def test_errors_of_curand_and_of_cudnns_plans_have_a_possible_cause(error: str, cause: str) -> None:
    first = explained(error).root_causes[0]
    assert (first.cause, first.confidence) == (cause, "possible")
    assert first.ask


def test_a_licence_explains_what_the_gpu_refuses_later() -> None:
    log = (
        "nvidia-gridd[10]: Failed to acquire license from dls.example.com\n"
        "RuntimeError: CUDA error: operation not permitted\n"
    )
    explanation = explained(log)
    assert [root.code for root in explanation.root_causes] == ["WG119"]
    assert [symptom.code for symptom in explanation.symptoms] == ["WG211"]


def test_ollama_that_had_no_room_says_so() -> None:
    log = (
        'level=INFO source=types.go:130 msg="inference compute" id=GPU-1 library=cuda compute=9.0 '
        'name="NVIDIA H100" total="79.1 GiB" available="1.2 GiB"\n'
        "level=INFO source=server.go:175 msg=offload library=cuda layers.offload=0 "
        'memory.available="[{}]" memory.required.full="21.5 GiB"\n'
        "load_tensors: offloaded 0/49 layers to GPU\n"
    )
    assert explained(log.format("1.2 GiB")).root_causes[0].cause == "oom-other-process"
    assert explained(log.format("40.0 GiB")).root_causes[0].cause == "gpu-unused"


def test_the_library_at_the_top_of_a_native_stack_is_named() -> None:
    log = (
        'Thread 2 "python3" received signal SIGSEGV, Segmentation fault.\n'
        "#0  0x00007fffae2b40a7 in hip::FatBinaryInfo::AddDevProgram(int) ()\n"
        "   from /env/lib/python3.10/site-packages/torch/lib/libamdhip64.so\n"
    )
    assert "crashed in libamdhip64.so" in explained(log).headline


_PLAN = "a.py:4: UserWarning: Plan failed with "


@each(
    "tried",
    [
        "a cudnnException: cudnnFinalizeDescriptor Failed cudnn_status: CUDNN_STATUS_NOT_SUPPORTED",
        "an OutOfMemoryError: CUDA out of memory. Tried to allocate 4.12 GiB. GPU 0 has a total "
        "capacity of 23.69 GiB of which 2.87 GiB is free.",
    ],
)
def test_a_plan_of_cudnn_that_pytorch_passed_over_is_no_failure(tried: str) -> None:
    assert explained(f"{_PLAN}{tried}\nEpoch 1 loss 0.3\n").verdict == "nothing-wrong"
    assert explained(f"RuntimeError: {tried}\n").verdict == "found"


def test_a_warning_about_metal_is_no_failure_of_it() -> None:
    warning = (
        "UserWarning: 'pin_memory' argument is set as true but not supported on MPS now, then "
        "device pinned memory won't be used.\n"
    )
    assert explained(f"Using device: mps\n{warning}Epoch 1 loss 0.4\n").verdict == "nothing-wrong"
    failure = "NotImplementedError: 'aten::a' is not currently implemented for the MPS device.\n"
    (root,) = explained(warning + failure).root_causes
    assert (root.cause, root.evidence[0].line) == ("non-nvidia-backend", 2)


def test_rocm_without_gpus_is_about_the_variable_that_hides_them() -> None:
    error = "RuntimeError: No HIP GPUs are available\n"
    hidden, shown = (
        explained(f"HIP_VISIBLE_DEVICES={value}\n{error}").root_causes[0].remedies
        for value in ("-1", "0")
    )
    assert [command_of(remedy) for remedy in hidden] == ["unset HIP_VISIBLE_DEVICES"]
    assert len(shown) > 1
