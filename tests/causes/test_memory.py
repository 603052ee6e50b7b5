"""Thresholds of the memory causes, and who is named."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run

NEIGHBOUR = cause_named("oom-other-process")
HOST = cause_named("host-oom")
HANDLE = cause_named("cudnn-init-failed-oom")
GIB = 1 << 30


def gpu(used: int, processes: str = "[]", index: int = 0) -> str:
    return f"""
[[driver.gpus]]
number = {index}
memory_total_bytes = {100 * GIB}
memory_used_bytes = {used}
processes = {processes}
"""


@pytest.mark.parametrize(("used", "status"), [(90, "found"), (89, "passed"), (100, "found")])
def test_nine_tenths_are_nearly_all(used: int, status: str) -> None:
    assert run(NEIGHBOUR, machine(gpu(used * GIB))).status == status


def test_the_greediest_process_is_named_first() -> None:
    processes = f"""[
    {{pid = 7, name = "small", memory_bytes = {GIB}}},
    {{pid = 8, name = "large", memory_bytes = {90 * GIB}}},
    {{pid = 9, name = {{unknown = "gone"}}, memory_bytes = {{unknown = "not told"}}}},
    {{pid = 10, name = "other", memory_bytes = {2 * GIB}}},
]"""
    (finding,) = run(NEIGHBOUR, machine(gpu(95 * GIB, processes))).findings
    assert "held by large (pid 8, 90 GiB), other (pid 10, 2 GiB)" in finding.message
    assert "and 1 more" in finding.message
    assert command_of(finding.remedies[1]) == "kill 8"


def test_processes_out_of_sight_are_said_to_be() -> None:
    (finding,) = run(NEIGHBOUR, machine(gpu(95 * GIB))).findings
    assert "not visible from here" in finding.message


def test_one_full_gpu_is_told_beside_one_that_keeps_silent() -> None:
    silent = '[[driver.gpus]]\nnumber = 1\nmemory_used_bytes = {unknown = "lost"}\n'
    outcome = run(NEIGHBOUR, machine(gpu(95 * GIB) + silent))
    assert len(outcome.findings) == 1
    assert "lost" in outcome.reasons[0]


@pytest.mark.parametrize(("size", "status"), [(64 << 20, "found"), ((64 << 20) + 1, "passed")])
def test_dockers_default_is_too_little_shared_memory(size: int, status: str) -> None:
    assert run(HOST, machine(f"[system.memory]\nshared_bytes = {size}")).status == status


def test_shared_memory_is_no_matter_without_a_gpu() -> None:
    snapshot = machine('start = "no-gpu"\n[system.memory]\nshared_bytes = 1')
    assert run(HOST, snapshot).status == "passed"


def killed(available: int, signal: str = "SIGKILL") -> str:
    return f"""
start = "no-gpu"
only = ["torch"]
[system.memory]
available_bytes = {available}
[probes.torch]
ended = "signal"
how = "{signal}"
stage = "import"
"""


@pytest.mark.parametrize(
    ("available", "signal", "status"),
    [
        (GIB, "SIGKILL", "found"),
        (4 * GIB, "SIGKILL", "passed"),
        (GIB, "SIGSEGV", "passed"),
    ],
)
def test_a_kill_with_little_memory_left(available: int, signal: str, status: str) -> None:
    assert run(HOST, machine(killed(available, signal))).status == status


def test_a_kill_is_an_error_and_little_shared_memory_a_warning() -> None:
    (finding,) = run(HOST, machine(killed(GIB))).findings
    assert (finding.severity, finding.effect) == ("error", "broken")
    (finding,) = run(HOST, machine("[system.memory]\nshared_bytes = 1")).findings
    assert (finding.severity, finding.effect) == ("warning", "none")


def test_keras_killed_with_its_backend_is_not_told_twice() -> None:
    text = (
        killed(GIB).replace('only = ["torch"]', 'only = ["torch", "keras"]')
        + """
[target.frameworks.keras.keras]
backend = "torch"
[probes.keras]
ended = "signal"
how = "SIGKILL"
stage = "import"
facts = [["backend", "torch"]]
"""
    )
    assert [finding.subject for finding in run(HOST, machine(text)).findings] == ["torch"]


def failing(words: str) -> str:
    return f"""
[[probes]]
name = "torch"
[[probes.operations]]
operation = "convolution"
requested = "cuda:0"
ran_on = {{unknown = "{words}"}}
kind = "gpu"
correct = {{unknown = "{words}"}}
"""


@each(
    ("words", "used", "status"),
    [
        ("CUDNN_STATUS_NOT_INITIALIZED", 60, "found"),
        ("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", 60, "found"),
        ("torch.OutOfMemoryError: CUDA out of memory", 60, "found"),
        ("CUDNN_STATUS_NOT_INITIALIZED", 40, "passed"),
        ("no kernel image is available", 99, "passed"),
    ],
)
def test_it_takes_both_the_words_and_the_neighbour(words: str, used: int, status: str) -> None:
    assert run(HANDLE, machine(gpu(used * GIB) + failing(words))).status == status
