"""What /proc tells of the processes on a GPU, and what it keeps to itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.cases import each
from tests.collectors.transcripts import HUNG, host, printed
from tests.machines.healthy import GPU, known
from whygpu.collectors import proc_worker
from whygpu.collectors.gpu_processes import command, described, short_command
from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.observed import Absent, Known, Observed, Unknown, need

DRIVER = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
SITE = "/home/me/venv/lib/python3.12/site-packages"
DENIED = {"unknown": "/proc/7/maps: permission denied"}


def on_gpu(*pids: int) -> Observed[tuple[Gpu, ...]]:
    rows = tuple(GpuProcess(pid, known("python"), known(1 << 30)) for pid in pids)
    return Known((GPU._replace(processes=known(rows)),), "NVML")


def answer(**facts: Any) -> dict[str, Any]:
    """What the worker says of a process of one's own; facts that are no dictionaries are values."""
    told = {
        "asking": False,
        "yours": True,
        "files": [DRIVER],
        "environ": {"value": {}},
        "words": ["python"],
        **facts,
    }
    return {
        name: fact if isinstance(fact, dict) else {"value": fact} for name, fact in told.items()
    }


def asked(*pids: int) -> str:
    return f"run {' '.join(command(host(), pids))}"


def seen(more: dict[str, Any] | None = None, **facts: Any) -> GpuProcess:
    """Process 7, of which the worker says this."""
    line = json.dumps({"7": answer(**facts)})
    machine = host({asked(7): printed(f"a word of sitecustomize\n{line}\n"), **(more or {})})
    (gpu,) = need(described(machine, on_gpu(7)))
    machine.assert_consumed()
    return need(gpu.processes)[0]


def test_a_process_of_ones_own_is_told_in_full() -> None:
    found = seen(
        files=[DRIVER, f"{SITE}/jax_plugins/xla_cuda12/xla_cuda_plugin.so"],
        environ={"value": {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5", "SOMETHING": "else"}},
        words=["/home/me/venv/bin/python", "train.py", "--token", "hunter2"],
    )
    assert need(found.yours) is True
    assert need(found.command) == "python train.py"
    assert need(found.frameworks) == ("jax",)
    assert need(found.settings) == (("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5"),)


def test_of_somebody_elses_process_no_more_than_the_driver_says() -> None:
    found = seen(yours=False, files=DENIED, environ=DENIED, words=["python", "their.py"])
    assert need(found.yours) is False
    assert found.command == found.name
    assert found.frameworks == found.settings == Unknown("the process belongs to another user")


def test_a_number_that_no_process_has_here_is_another_namespaces() -> None:
    gone = {"absent": "/proc/7/status"}
    found = seen(yours=gone, files=gone, environ=gone, words=gone)
    assert found.yours == found.frameworks == found.command == Absent("/proc/7")


def test_a_stranger_with_the_same_number_is_not_taken_for_it() -> None:
    found = seen(files=["/usr/bin/bash"])
    assert found.command == found.frameworks == Absent("the driver's libraries in /proc")


def test_a_process_that_is_ending_has_no_libraries_left() -> None:
    ending = {"unknown": "/proc/7/maps: it is empty, because the process is ending"}
    found = seen(files=ending, words=[])
    assert found.frameworks == Unknown(ending["unknown"])
    assert found.command == found.name


def test_one_that_hangs_in_the_kernel_does_not_hide_the_others() -> None:
    answers = {
        asked(7, 8): HUNG,
        asked(7): HUNG,
        asked(8): printed(json.dumps({"8": answer(files=[DRIVER, f"{SITE}/lib/libc10_cuda.so"])})),
    }
    machine = host(answers)
    (gpu,) = need(described(machine, on_gpu(7, 8)))
    machine.assert_consumed()
    stuck, other = need(gpu.processes)
    assert stuck.frameworks == Unknown("/proc/7 does not answer: the process hangs in the kernel")
    assert stuck.command == stuck.name
    assert need(other.frameworks) == ("torch",)


@each("output", ["", "{}", "[]", '{"7": ', "Traceback ..."])
def test_a_worker_that_says_nothing_is_no_answer(output: str) -> None:
    (gpu,) = need(described(host({asked(7): printed(output)}), on_gpu(7)))
    assert isinstance(need(gpu.processes)[0].frameworks, Unknown)


def test_where_there_is_no_proc_nobody_is_asked() -> None:
    (gpu,) = need(described(host(system="Windows"), on_gpu(7)))
    assert isinstance(need(gpu.processes)[0].frameworks, Unknown)


READY = "print('ready', flush=True); input()"


def test_the_worker_reads_real_processes() -> None:
    secret = "hunter2"
    child = subprocess.Popen(
        [sys.executable, "-c", READY, secret],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"NAMED": "seen", "TOKEN": secret},
    )
    assert child.stdout is not None
    child.stdout.readline()
    told = proc_worker.process(str(child.pid), frozenset(("NAMED",)), frozenset())
    child.communicate(b"\n")
    assert told["yours"] == {"value": True}
    assert any("libc.so" in file or "libc.musl" in file for file in told["files"]["value"])
    assert told["environ"] == {"value": {"NAMED": "seen"}}
    assert told["words"]["value"][1:] == ["-c", READY, secret]
    gone = proc_worker.process(str(child.pid), frozenset(), frozenset())
    assert gone.pop("asking") == {"value": False}
    assert {"absent"} == {key for fact in gone.values() for key in fact}


def test_the_program_that_asks_is_known_by_its_descendants() -> None:
    """The worker is started by whygpu, which is a part of the program or was started by it."""
    asking = (
        "import os; from whygpu.collectors.proc_worker import process, ancestors; "
        f"pids = '{os.getpid()}', str(os.getpid()); "
        "print(*(process(pid, frozenset(), ancestors())['asking'] for pid in pids))"
    )
    shell = ["/bin/sh", "-c", f'"{sys.executable}" -c "{asking}"; true']
    done = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert done.stdout == "{'value': True} {'value': False}\n"
    assert need(seen(asking=True).is_asking)
    assert not need(seen(asking=False).is_asking)


TOLD = '{"time": 1794700000.0, "in_use": %s}'


@each(
    ("text", "expected"),
    [
        (TOLD % '[["torch", "gpu:0", 5000]]', 5000),
        (TOLD % '[["torch", "gpu:0", 5000], ["jax", "gpu:0", 70]]', 5070),
        (TOLD % '[["torch", "gpu:0", 5000], ["torch", "gpu:1", 70]]', "several GPUs"),
        ("{", "cannot be read"),
        ('{"in_use": 7}', "cannot be read"),
        (None, "not reported it yet"),
    ],
)
def test_a_program_under_run_tells_what_is_in_use(text: str | None, expected: int | str) -> None:
    environ = {"value": {"WHYGPU_BOOTSTRAP_SETTINGS": "/tmp/run/settings.json"}}
    more = {} if text is None else {"read /tmp/run/reports/7.in-use": text}
    found = seen(more, environ=environ).in_use_bytes
    if isinstance(expected, int):
        assert need(found) == expected
    else:
        assert isinstance(found, Unknown)
        assert expected in found.reason


def test_a_program_on_its_own_tells_nothing() -> None:
    assert isinstance(seen().in_use_bytes, Absent)


def test_a_program_on_several_gpus_numbers_them_for_itself() -> None:
    environ = {"value": {"WHYGPU_BOOTSTRAP_SETTINGS": "/tmp/run/settings.json"}}
    answers = {
        asked(7): printed(json.dumps({"7": answer(environ=environ)})),
        "read /tmp/run/reports/7.in-use": TOLD % '[["torch", "gpu:0", 5000]]',
    }
    twice = known((*need(on_gpu(7)), *need(on_gpu(7))))
    for gpu in need(described(host(answers), twice)):
        assert isinstance(need(gpu.processes)[0].in_use_bytes, Unknown)


@each(
    ("files", "frameworks"),
    [
        ((), ()),
        (("torch/lib/libtorch_cpu.so", "jaxlib/libjax_common.so"), ()),
        (("torch/lib/libc10_cuda.so", "torch/lib/libtorch_cuda.so"), ("torch",)),
        (("tensorflow/libtensorflow_framework.so.2",), ("tensorflow",)),
        (("tensorflow_core/python/_pywrap_tensorflow_internal.so",), ("tensorflow",)),
        (("jaxlib/cuda/_solver.so",), ("jax",)),
        (("cupy_backends/cuda/api/runtime.cpython-312-x86_64-linux-gnu.so",), ("cupy",)),
        (("onnxruntime/capi/libonnxruntime_providers_cuda.so",), ("onnxruntime",)),
        (
            ("tensorflow/libtensorflow_framework.so.2", "torch/lib/libc10_cuda.so"),
            ("tensorflow", "torch"),
        ),
    ],
)
def test_frameworks_are_known_by_their_libraries(
    files: tuple[str, ...], frameworks: tuple[str, ...]
) -> None:
    found = seen(files=[DRIVER, *(f"{SITE}/{file}" for file in files)])
    assert need(found.frameworks) == frameworks


@each(
    ("words", "command"),
    [
        (["/usr/bin/python3.12", "-u", "/home/me/train.py", "--key", "x"], "python3.12 train.py"),
        (["python", "-X", "dev", "-Werror", "-m", "accelerate", "x"], "python -m accelerate"),
        (["python", "-mipykernel_launcher", "-f", "kernel.json"], "python -m ipykernel_launcher"),
        (["python3", "-Bc", "key = 'x'"], "python3 -c ..."),
        (["python3"], "python3"),
        (["/usr/bin/ollama", "runner", "--model", "x"], "ollama"),
        (["ray::train() step 7 of 9"], "ray::train()"),
        (["x" * 500], "x" * 60),
    ],
)
def test_a_command_without_its_arguments(words: list[str], command: str) -> None:
    assert short_command(words) == command
