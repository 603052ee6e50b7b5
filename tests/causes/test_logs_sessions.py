"""Exceptions that do not say why: the native record before them does, or nobody does."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import explained
from whygpu.model.explanation import Explanation

FAILED = "tensorflow.python.framework.errors_impl.InternalError: Failed to create session."
TRACEBACK = f"""\
Traceback (most recent call last):
  File "train.py", line 6, in <module>
    sess = tf.Session(config=config)
  File "/opt/python/site-packages/tensorflow/python/client/session.py", line 1560, in __init__
    super(Session, self).__init__(target, graph, config=config)
{FAILED}
"""
RECORD = "2018-06-29 15:14:01.715820: E tensorflow/core/common_runtime/direct_session.cc:154] "
OPENING = (
    "Internal: failed initializing StreamExecutor for CUDA device ordinal {number}: Internal: "
    "failed call to cuDevicePrimaryCtxRetain: {error}"
)


def session(reason: str) -> Explanation:
    explanation = explained(f"{RECORD}{reason}\n{TRACEBACK}")
    assert not explanation.crashed
    assert explanation.verdict == "found", explanation.headline
    return explanation


def opening(error: str, number: int = 0) -> str:
    return OPENING.format(number=number, error=error)


@each(
    ("reason", "cause"),
    [
        (
            opening("CUDA_ERROR_OUT_OF_MEMORY; total memory reported: 11523260416"),
            "oom-other-process",
        ),
        (opening("CUDA_ERROR_OUT_OF_MEMORY: out of memory"), "oom-other-process"),
        (opening("CUDA_ERROR_INVALID_DEVICE", 1), "invalid-device-ordinal"),
        (opening("CUDA_ERROR_UNKNOWN"), "nvidia-kernel-module-state"),
        (opening("CUDA_ERROR_ILLEGAL_ADDRESS"), "kernel-bug-illegal-access"),
        (
            "Internal: cudaGetDevice() failed. Status: CUDA driver version is insufficient for "
            "CUDA runtime version",
            "driver-too-old-for-cuda",
        ),
        (
            "Internal: cudaGetDevice() failed. Status: no CUDA-capable device is detected",
            "visible-devices-hides-gpu",
        ),
        (
            "Invalid argument: 'visible_device_list' listed an invalid GPU id '5' but visible "
            "device count is 1",
            "invalid-device-ordinal",
        ),
    ],
)
def test_the_native_record_before_a_session_that_failed_is_the_cause(
    reason: str, cause: str
) -> None:
    explanation = session(reason)
    assert explanation.root_causes[0].cause == cause
    assert 1 in {evidence.line for evidence in explanation.root_causes[0].evidence}


def test_a_gpu_that_is_busy_is_held_or_in_a_bad_state() -> None:
    reason = (
        "Internal: CUDA runtime implicit initialization on GPU:0 failed. Status: all CUDA-capable "
        "devices are busy or unavailable"
    )
    found = {root.cause for root in session(reason).root_causes}
    assert found == {"nvidia-kernel-module-state", "compute-mode-blocks"}


def test_a_listed_gpu_that_is_invalid_when_opened_may_be_held_alone() -> None:
    """The driver itself has listed it: that its number does not exist is not certain."""
    first, second = session(opening("CUDA_ERROR_INVALID_DEVICE", 1)).root_causes
    assert (first.confidence, second.cause) == ("likely", "compute-mode-blocks")
    assert "GPU 1" in first.message
    assert first.ask is not None
    assert "Exclusive_Process" in first.ask


@each("log", [FAILED, TRACEBACK, "InternalError: Failed to create session."])
def test_alone_the_exception_tells_nothing_of_the_gpu(log: str) -> None:
    explanation = explained(log)
    assert explanation.verdict == "unknown"
    assert "TensorFlow could not create a session" in explanation.headline
    assert explanation.guidance is not None
    assert len(explanation.guidance.candidates) > 2
    assert explanation.guidance.ask
    assert "2>&1" in str(explanation.guidance.steps[0])


def test_what_is_printed_after_the_exception_is_not_its_reason() -> None:
    after = "loaded sample 1 of shard 2\nloaded sample 2 of shard 2\n"
    assert explained(f"{TRACEBACK}{after}").verdict == "unknown"


def test_a_harmless_record_is_not_taken_for_the_reason() -> None:
    noise = (
        "2024-07-19 02:13:38.598047: E external/local_xla/xla/stream_executor/cuda/"
        "cuda_dnn.cc:8454] Unable to register cuDNN factory: Attempting to register factory for "
        "plugin cuDNN when one has already been registered"
    )
    assert explained(f"{noise}\n{TRACEBACK}").verdict == "unknown"


def test_a_record_of_the_devices_is_not_taken_for_the_reason() -> None:
    noise = (
        "2018-02-14 12:34:03.208044: E tensorflow/stream_executor/cuda/cuda_gpu_executor.cc:881] "
        "could not open file to read NUMA node: /sys/bus/pci/devices/0000:00:00.0/numa_node"
    )
    explanation = explained(f"{noise}\n{TRACEBACK}")
    assert explanation.verdict == "unknown"
    assert "could not create a session" in explanation.headline


def test_a_session_that_nobody_can_make_is_not_the_gpus_matter() -> None:
    record = (
        'Not found: No session factory registered for the given session options: {target: "local" '
        "config: } Registered factories are {DIRECT_SESSION, GRPC_SESSION}."
    )
    explanation = explained(f"{RECORD}{record}\n{TRACEBACK}")
    assert explanation.verdict == "not-gpu"
    assert "target" in explanation.headline
    assert explanation.guidance is not None
    assert explanation.guidance.steps


ENGINE = "RuntimeError: Engine core initialization failed. See root cause above."


@each(
    ("first", "verdict", "words"),
    [
        (
            "ValueError: Free memory on device (31.44/47.38 GiB) on startup is less than desired "
            "GPU memory utilization (0.9, 42.64 GiB).",
            "found",
            "31.4 GiB",
        ),
        ("KeyError: 'architectures'", "not-gpu", "architectures"),
    ],
)
def test_an_error_that_points_above_is_what_stands_above(
    first: str, verdict: str, words: str
) -> None:
    explanation = explained(f"{first}\nTraceback (most recent call last):\n{ENGINE}\n")
    assert explanation.verdict == verdict
    assert words in explanation.headline


@each(
    "log",
    [
        ENGINE,
        "subprocess.CalledProcessError: Command '['python', '-u', 'train.py', '--local_rank=1']' "
        "returned non-zero exit status 1.",
        "RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly",
        "tensorflow.python.framework.errors_impl.InternalError: Graph execution error:",
        "InternalError                             Traceback (most recent call last)\n"
        "<ipython-input-1-161a99cea532> in <module>()\n"
        "----> 2 device_lib.list_local_devices()\n",
    ],
)
def test_the_word_of_a_parent_alone_leaves_everything_open(log: str) -> None:
    explanation = explained(log)
    assert explanation.verdict == "unknown"
    assert explanation.guidance is not None
    assert explanation.guidance.candidates


@each(
    ("log", "words"),
    [
        ("", "it is empty"),
        ("hello", "nothing in it reports a failure"),
        ("the widget failed", "look like a problem"),
        ("Segmentation fault (core dumped)", "crashed at line 1"),
        ("AssertionError: Not enough GPU hardware devices available", "saw none"),
        ("RuntimeError: CUDA error: invalid OpenGL or DirectX context", "CUDA error: invalid Open"),
    ],
)
def test_doubt_says_what_was_understood_and_what_to_do(log: str, words: str) -> None:
    explanation = explained(log)
    assert explanation.verdict == "unknown"
    assert words in explanation.headline
    assert explanation.guidance is not None
    assert explanation.guidance.ask
    assert explanation.guidance.steps


@each(
    "log",
    [
        "tensorflow.python.framework.errors_impl.InternalError: stream did not block host until "
        "done; was already in an error state",
        'RuntimeError: handle_0 INTERNAL ASSERT FAILED at "../c10/cuda/driver_api.cpp":15, please '
        "report a bug to PyTorch.",
        "RuntimeError: CUDA error: launch would exceed maximum depth of nested launches",
    ],
)
def test_words_of_the_gpus_code_are_not_called_foreign_to_it(log: str) -> None:
    assert explained(log).verdict == "unknown"


def test_a_folder_named_cuda_is_not_the_gpus_code() -> None:
    log = "FileNotFoundError: [Errno 2] No such file or directory: '/data/cuda/labels.txt'"
    assert explained(log).verdict == "not-gpu"


@pytest.mark.slow
def test_a_long_log_around_it_changes_nothing() -> None:
    rows = "".join(f"loaded sample {number} of shard 3 in 12 ms\n" for number in range(4000))
    record = f"{RECORD}{opening('CUDA_ERROR_UNKNOWN')}\n"
    explanation = explained(f"{rows}{record}{TRACEBACK}{rows}")
    assert [root.cause for root in explanation.root_causes] == ["nvidia-kernel-module-state"]
    assert explanation.root_causes[0].evidence[0].line == 4001
