"""What takes a tick away from a log without a failure."""

from __future__ import annotations

from tests.cases import each
from whygpu import explain

READY = (
    "2023-02-20 01:08:03.662120: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1146] Created "
    "TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7431 MB memory) -> "
    "physical GPU (device: 0, name: Tesla T4, pci bus id: 0000:01:00.0, compute capability: 7.5)\n"
)
HARMLESS = (
    "2023-02-20 01:08:01.100000: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT "
    "Warning: Could not find TensorRT\n"
)
WORK = "Epoch 1/12\n"


@each("output", [READY, READY + WORK, HARMLESS, HARMLESS + READY])
@each(
    "told",
    [
        "Fit never returns on the second card",
        "Setup on the new node\n\nThe queue is empty since then.",
        "Same here with two workers:",
    ],
)
def test_output_that_a_person_shows_around_no_fault_earns_no_tick(told: str, output: str) -> None:
    answer = explain(f"{told}\n\n```shell\n{output}```\n")
    assert (answer.verdict, answer.exit_code) == ("unknown", 4)


@each("output", [READY, READY + WORK, HARMLESS])
def test_the_same_output_alone_is_fine(output: str) -> None:
    assert explain(output).verdict == "nothing-wrong"


@each(
    "told",
    [
        "What does this message mean",
        "I always get the following warning, training itself is as usual.",
        "这条警告是什么意思",
    ],
)
def test_words_about_messages_are_answered_by_harmless_lines(told: str) -> None:
    assert explain(f"{told}\n\n```\n{HARMLESS}{READY}```\n").verdict == "nothing-wrong"


def test_a_report_of_trouble_without_fences_counts_above_harmless_lines_too() -> None:
    told = "The job is stuck for an hour and the queue of the server is not empty.\n\n"
    assert explain(told + HARMLESS).verdict == "unknown"


@each(
    "end",
    [
        "2023-02-20 01:08:04.144819: E tensorfl",
        "2023-02-20 01:08:04.144819: E tensorflow/stream_executor/cuda/cuda_driver.cc:3",
        "E0611 08:35:28.413281  146213 cuda_d",
    ],
)
def test_a_log_that_ends_in_the_head_of_an_error_is_not_fine(end: str) -> None:
    answer = explain(READY + WORK + end)
    assert (answer.verdict, answer.exit_code) == ("unknown", 4)
    assert "the message itself is missing" in answer.headline


def test_a_log_that_ends_in_the_head_of_other_records_is_fine() -> None:
    assert explain(f"{READY}{WORK}2023-02-20 01:08:04.1: I tensorfl").verdict == "nothing-wrong"


def test_an_error_of_the_gpu_in_a_record_of_json_is_not_fine() -> None:
    log = (
        '{"level": "info", "message": "loading"}\n'
        '{"level": LEVEL, "message": "failed to open CUDA device 0"}\n'
    )
    for level, verdict in ('"error"', "unknown"), ("50", "unknown"), ('"info"', "nothing-wrong"):
        text = '{"level": "info", "message": "step 10 loss=0.4"}\n' + log.replace("LEVEL", level)
        assert explain(text).verdict == verdict, level


def test_two_answers_to_the_same_question_in_different_words() -> None:
    text = "print(torch.cuda.is_available()) ---> false\n\nPyTorch version: 2.0.1\n"
    answer = explain(text + "Is CUDA available: True\n")
    assert answer.verdict == "unknown"
    assert "line 1 says that there is no GPU, and line 4" in answer.headline


@each(
    ("told", "verdict"),
    [
        ("Training runs, yet the GPU of this node is skipped:", "found"),
        ("This node has no GPU, the output is from there:", "nothing-wrong"),
        ("Output of the node:", "nothing-wrong"),
    ],
)
def test_work_on_the_cpu_is_a_fault_for_those_who_write_about_their_gpu(
    told: str, verdict: str
) -> None:
    missing = (
        "2024-02-05 17:14:59.222201: W tensorflow/stream_executor/platform/default/dso_loader.cc:64"
        "] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot "
        "open shared object file: No such file or directory\n"
    )
    answer = explain(f"{told}\n```\n{missing}{WORK}Epoch 2/12\nloss: 0.3\n```\n")
    assert answer.verdict == verdict


def test_a_job_that_somebody_cancelled_gets_no_tick() -> None:
    cancelled = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-02T10:00:00 ***\n"
    explanation = explain(READY + WORK + cancelled)
    assert explanation.verdict == "unknown"
    assert "ended from outside" in explanation.headline
    told = explain("Epoch 1\nkilled my old script, now the GPU is idle\n")
    assert "ended from outside" not in told.headline
