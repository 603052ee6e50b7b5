"""What /proc tells of the processes on a GPU, and what it keeps to itself."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.collectors.transcripts import host
from tests.machines.healthy import GPU, known
from whygpu.collectors.gpu_processes import described, short_command
from whygpu.model.driver import GpuProcess
from whygpu.model.observed import Absent, Known, Unknown, need

ME, SOMEBODY = "Uid:\t1000\t1000\t1000\t1000\n", "Uid:\t1001\t1001\t1001\t1001\n"
DRIVER = "7f00-7f10 r-xp 00000000 08:01 1  /usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06\n"
SITE = "7f20-7f30 r-xp 00000000 08:01 2  /home/me/venv/lib/python3.12/site-packages"
DENIED = Unknown("permission denied")


def seen(**files: Any) -> GpuProcess:
    """Process 7, with these files below its folder."""
    answers: dict[str, Any] = {"read /proc/self/status": f"Name:\tpython\n{ME}"}
    for name, content in files.items():
        if isinstance(content, bytes):
            answers[f"read_bytes /proc/7/{name}"] = base64.b64encode(content).decode()
        else:
            answers[f"read /proc/7/{name}"] = content
    process = GpuProcess(7, known("python"), known(1 << 30))
    machine = host(answers)
    (gpu,) = need(described(machine, known((GPU._replace(processes=known((process,))),))))
    return need(gpu.processes)[0]


def test_a_process_of_ones_own_is_told_in_full() -> None:
    found = seen(
        status=f"Name:\tpython\n{ME}",
        maps=f"{DRIVER}{SITE}/jax_plugins/xla_cuda12/xla_cuda_plugin.so\n",
        environ=b"HOME=/home/me\0XLA_PYTHON_CLIENT_MEM_FRACTION=.5\0API_TOKEN=hunter2\0",
        cmdline=b"/home/me/venv/bin/python\0train.py\0--token\0hunter2\0",
    )
    assert need(found.yours) is True
    assert need(found.command) == "python train.py"
    assert need(found.frameworks) == ("jax",)
    assert need(found.settings) == (("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5"),)
    assert "hunter2" not in repr(found)


def test_of_somebody_elses_process_no_more_than_the_driver_says() -> None:
    found = seen(status=SOMEBODY, maps=DENIED)
    assert need(found.yours) is False
    assert found.command == found.name
    assert found.frameworks == found.settings == Unknown("the process is another user's")


def test_a_number_that_no_process_has_here_is_another_namespaces() -> None:
    found = seen()
    assert found.yours == found.frameworks == found.command == Absent("/proc/7")


def test_a_stranger_with_the_same_number_is_not_taken_for_it() -> None:
    found = seen(status=ME, maps="7f00-7f10 r-xp 00000000 08:01 1  /usr/bin/bash\n")
    assert found.command == Absent("the driver's libraries in /proc/7/maps")


def test_a_process_that_is_ending_has_no_libraries_left() -> None:
    found = seen(status=ME, maps="", environ=b"", cmdline=b"")
    assert found.frameworks == Unknown("the process is ending")
    assert found.command == found.name


@pytest.mark.parametrize(
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
    maps = DRIVER + "".join(f"{SITE}/{file}\n" for file in files)
    found = seen(status=ME, maps=maps, cmdline=b"python\0")
    assert found.frameworks == Known(frameworks, "transcript")


@pytest.mark.parametrize(
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
