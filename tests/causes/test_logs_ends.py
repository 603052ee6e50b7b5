"""How a program ended, where nothing says why: never a tick, and never "not the GPU"."""

from __future__ import annotations

from tests.cases import each
from tests.kit import explained

KERAS_BAR = " 212/1000 [=====>....] - ETA: 2:13 - loss: 0.4"
BARS = (
    KERAS_BAR,
    " 21%|██   | 21/100 [00:10<00:40, 1.9it/s]",
    "12/40 [===>...] - ETA: 13s",
    "40/40 - 3s 70ms/step",
    "12/40 - loss: nan",
)


@each("bar", BARS)
def test_killed_is_seen_behind_a_progress_bar(bar: str) -> None:
    (root,) = explained(f"Epoch 1/2\n{bar}Killed\n").root_causes
    assert root.cause == "host-oom"
    assert root.evidence[0].text == "Killed"


@each(
    "end",
    [
        "Terminated",
        "Segmentation fault (core dumped)",
        "Aborted (core dumped)",
        "Bus error",
        "Floating point exception (core dumped)",
    ],
)
def test_other_ends_are_seen_behind_a_progress_bar(end: str) -> None:
    explanation = explained(f"Epoch 1/2\n{KERAS_BAR}{end}\n")
    assert explanation.verdict == "unknown"
    assert explanation.unexplained[0].text == end


def test_an_illegal_instruction_behind_a_progress_bar_has_its_cause() -> None:
    (root, *_) = explained(f"{KERAS_BAR}Illegal instruction (core dumped)").root_causes
    assert root.cause == "avx-missing-sigill"


def test_words_that_end_alike_are_no_ends() -> None:
    assert explained("Epoch 1/2 loss: 0.1\npodKilled: 0, jobs isTerminated").standing == "fine"


@each(
    "end",
    [
        "The kernel appears to have died. It will restart automatically.",
        "The Jupyter kernel died unexpectedly",
        "Process finished with exit code -1073740791 (0xC0000409)",
        "Process finished with exit code -1073741819 (0xC0000005)",
        "Process finished with exit code 1",
        "Command terminated by signal 11",
        "Terminated",
    ],
)
def test_an_end_without_a_reason_may_be_the_gpus(end: str) -> None:
    for before in ("", "Epoch 1/2\n10/10 loss: 0.3\n"):
        explanation = explained(before + end)
        assert explanation.verdict == "unknown"
        assert explanation.guidance is not None
        assert explanation.guidance.steps


def test_what_a_program_says_before_its_kernel_dies_is_the_reason() -> None:
    stranger = "ValueError: not enough values to unpack (expected 2, got 1)"
    assert explained(f"{stranger}\nThe kernel appears to have died.").verdict == "not-gpu"


@each(
    ("end", "confidence"),
    [
        ("Command terminated by signal 9", "likely"),
        ("Your session crashed after using all available RAM.", "certain"),
    ],
)
def test_memory_of_the_computer_that_ran_out(end: str, confidence: str) -> None:
    (root,) = explained(end).root_causes
    assert (root.cause, root.confidence) == ("host-oom", confidence)


@each("status", ["cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "CUBLAS_STATUS_EXECUTION_FAILED"])
def test_what_is_only_possible_does_not_read_like_an_answer(status: str) -> None:
    explanation = explained(f"RuntimeError: {status}")
    assert explanation.root_causes[0].confidence == "possible"
    assert "does not show the cause" in explanation.headline


_OVER = "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2024-05-01T11:00:21 DUE TO TIME LIMIT ***"
_PBS_OVER = "=>> PBS: job killed: walltime 3612 exceeded limit 3600"


@each(
    ("lines", "verdict", "headline"),
    [
        (("Using device: cuda", "Epoch 1: loss 2.0", _OVER), "not-gpu", "its time was over"),
        (("Using device: cpu", "Epoch 1: loss 2.0", _OVER), "unknown", "works on the CPU"),
        (("GPU available: False", "Epoch 1: loss 2.0", _PBS_OVER), "unknown", "sees none"),
        (("Epoch 1: loss 2.0", _OVER), "unknown", "does not show whether it worked on the GPU"),
        (
            (
                "Could not find cuda drivers on your machine, GPU will not be used.",
                "loss: 2",
                _OVER,
            ),
            "found",
            "reached its time limit",
        ),
        (("RuntimeError: shapes cannot be multiplied", _OVER), "not-gpu", "its time was over"),
    ],
)
def test_a_job_without_the_gpu_reaches_its_time_limit_because_of_that(
    lines: tuple[str, ...], verdict: str, headline: str
) -> None:
    answer = explained("\n".join(lines))
    assert (answer.verdict, headline in answer.headline) == (verdict, True), answer.headline


def test_an_announced_error_is_the_next_line() -> None:
    missing = (
        "Could not load dynamic library 'cudart64_110.dll'; dlerror: cudart64_110.dll not found"
    )
    head = f"2022-05-05 05:05:05.000001: W tensorflow/dso_loader.cc:64] {missing}\n"
    for announced in (
        "Error occurred:",
        "An error has ocurred!",
        "Error occurred when executing A:",
    ):
        log = f"{head}{announced}\n\nThe folder with the data does not exist\n"
        assert explained(log).verdict == "not-gpu", announced


@each(
    ("summary", "verdict"),
    [
        ("============ 12 passed in 3.41s ============", "nothing-wrong"),
        ("12 passed, 3 skipped, 1 warning in 63.41s (0:01:03)", "nothing-wrong"),
        ("Ran 12 tests in 3.201s\n\nOK", "nothing-wrong"),
        ("Ran 12 tests in 3.201s\n\nOK (skipped=2)", "nothing-wrong"),
        ("100% tests passed, 0 tests failed out of 12", "nothing-wrong"),
        ("======== 1 failed, 12 passed in 3.41s ========", "found"),
        ("Ran 12 tests in 3.201s\n\nFAILED (errors=1)", "found"),
        ("12 passed in 3.41s\nRuntimeError: CUDA error: device-side assert triggered", "found"),
    ],
)
def test_errors_of_tests_that_passed_were_raised_on_purpose(summary: str, verdict: str) -> None:
    log = f"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n{summary}\n"
    assert explained(log).verdict == verdict
