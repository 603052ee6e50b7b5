"""Logs in which nothing fails, and in which the GPU is not used or the work has no result."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import explained
from whygpu.model.commands import shell_text

WORK = "Epoch 1/2\n10/10 - loss: 0.1\nEpoch 2/2\n10/10 - loss: 0.05"
NO_DRIVER = (
    "2024-01-01 10:00:00.1: I external/local_xla/xla/tsl/cuda/cudart_stub.cc:32] Could not find "
    "cuda drivers on your machine, GPU will not be used."
)


@each(
    "line",
    [
        "CUDA available: False",
        "torch.cuda.is_available() False",
        "Num GPUs Available:  0",
        "Using device: cpu",
        "GPU available: False, used: False",
        "[CpuDevice(id=0)]",
        "list_physical_devices('GPU') []",
        "No GPU/TPU found, falling back to CPU.",
    ],
)
def test_work_without_a_gpu_and_without_a_reason_gets_no_tick(line: str) -> None:
    explanation = explained(f"{line}\n{WORK}")
    assert explanation.standing == "unknown"
    assert "line 1" in explanation.headline
    assert "does not say why" in explanation.headline
    assert explanation.guidance is not None
    assert explanation.guidance.steps[0].action is not None


@each(
    "line",
    [
        "GPU available: True (cuda), used: False",
        "GPU available but not used. Set accelerator and devices.",
        "CUDA available: True\nUsing device: cpu",
    ],
)
def test_a_gpu_that_is_left_alone_is_found(line: str) -> None:
    (root,) = explained(f"{line}\n{WORK}").root_causes
    assert (root.cause, root.confidence) == ("gpu-unused", "likely")


@each(
    "line",
    [
        "WARNING utils.py:1] Install another NCCL if you see NCCL error in runs with several GPUs.",
        'If you get "No CUDA GPUs are available", check your driver.',
        "If you encounter CUDA error: out of memory, use a smaller batch.",
    ],
)
def test_advice_for_an_error_that_did_not_happen_is_no_cause(line: str) -> None:
    assert not explained(f"{line}\n{WORK}").root_causes
    assert not explained(f"{line}\nRunning on local URL:  http://127.0.0.1:7000").root_causes


def test_a_build_that_goes_on_without_cuda_has_no_fault() -> None:
    missing = "-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR)"
    assert explained(missing).root_causes
    assert not explained(f"{missing}\n-- Build files have been written to: /x").root_causes


@each(
    ("lines", "verdict"),
    [
        (("collected 9 items", "====== 9 passed, 1 warning in 3.10s ======"), "nothing-wrong"),
        (("Ran 9 tests in 3.1s", "OK"), "nothing-wrong"),
        (("E       assert 3 == 2", "tests/test_a.py:4: AssertionError"), "not-gpu"),
        (("FAILED tests/test_a.py::test_x - assert 3 == 2",), "not-gpu"),
    ],
)
def test_tests_on_a_machine_without_a_gpu(lines: tuple[str, ...], verdict: str) -> None:
    assert explained("\n".join((NO_DRIVER, *lines))).verdict == verdict


@each(
    "line",
    [
        "============ 12 passed in 14.20s ============",
        "collected 12 items",
        "tests/test_model.py::test_training[2] PASSED",
        "Ran 12 tests in 14.20s",
        "$ python train.py --accelerator cpu",
    ],
)
def test_a_program_that_was_told_to_use_the_cpu_has_no_fault(line: str) -> None:
    explanation = explained(f"GPU available: True (cuda), used: False\n{WORK}\n{line}\n")
    assert (explanation.verdict, explanation.standing) == ("nothing-wrong", "answered")
    assert "on the CPU" in explanation.headline


@each("line", [NO_DRIVER, "torch 2.1.0+cpu", "Ultralytics 8.0 torch-2.1.0+cpu CPU"])
def test_work_on_the_cpu_with_a_known_reason_is_told_and_gets_no_tick(line: str) -> None:
    explanation = explained(f"{line}\n{WORK}")
    assert (explanation.verdict, explanation.standing) == ("nothing-wrong", "answered")
    assert "on the CPU" in explanation.headline


@each("line", ["", "Using device: cuda", "CUDA available: True", "Num GPUs Available: 1"])
def test_work_that_says_nothing_of_the_cpu_is_fine(line: str) -> None:
    assert explained(f"{line}\n{WORK}").standing == "fine"


@each("loss", ["nan", "NaN", "inf", "-inf"])
def test_a_loss_that_is_no_number_is_not_harmless(loss: str) -> None:
    explanation = explained(f"Epoch 1/2\n10/10 - loss: {loss}\nEpoch 2/2\n10/10 - loss: {loss}")
    assert explanation.verdict == "unknown"
    assert "line 2" in explanation.headline


@pytest.mark.slow
@each("line", ["Running on the CPU", "7/9 - loss: nan"])
def test_one_such_line_is_found_in_a_long_log(line: str) -> None:
    work = "\n".join(f"{n}/9000 - loss: 0.{n}" for n in range(9000))
    assert explained(f"{work}\n{line}\n{work}").verdict == "unknown"


LIGHTNING = (
    "UserWarning: The 'train_dataloader' does not have many workers which may be a bottleneck. "
    "Consider increasing the value of the `num_workers` argument` to `num_workers=23` in the "
    "`DataLoader` to improve performance."
)
KERAS = "is slow compared to the batch"


@each(
    ("line", "waits_for"),
    [
        (LIGHTNING, "the next batch"),
        (f"WARNING:tensorflow:Callback method `on_train_batch_end` {KERAS} time", "a callback"),
        (f"WARNING:tensorflow:Callbacks method `on_train_batch_end` {KERAS} time", "a callback"),
        (f"WARNING:tensorflow:Method (on_train_batch_end) {KERAS} update (0.12)", "a callback"),
    ],
)
def test_work_that_a_library_says_may_be_slow_gets_no_tick(line: str, waits_for: str) -> None:
    explanation = explained(f"GPU available: True (cuda), used: True\n{line}\n{WORK}")
    assert explanation.standing == "unknown"
    assert f"the GPU may wait for {waits_for}" in explanation.headline
    assert explanation.guidance is not None
    first = explanation.guidance.steps[0].action
    assert "whygpu run --profile" in str(shell_text(first))


def test_a_failure_comes_before_slow_steps() -> None:
    failed = f"{LIGHTNING}\n{WORK}\nRuntimeError: CUDA error: out of memory"
    assert explained(failed).root_causes[0].cause != "files-read-in-training-process"
