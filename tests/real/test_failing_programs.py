"""Short programs that fail in real TensorFlow releases without a GPU, and what explain says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kit import explained
from tests.patience import PATIENCE
from tests.targets import python_of

RUN_ALL = """
import runpy, sys, traceback
import tensorflow as tf
tf.config.experimental.list_physical_devices()
for program in sys.argv[1:]:
    print("PROGRAM", flush=True)
    try:
        runpy.run_path(program)
    except BaseException:
        traceback.print_exc()
"""
"""TensorFlow is imported once; what it says of the GPU is before the first program."""

NO_GPU = frozenset({"no-nvidia-driver", "visible-devices-hides-gpu", "cuda-runtime-missing"})
"""Which of them depends on the machine that runs this."""
IMPORT = "import tensorflow as tf\n"


def log_of(target: str, *arguments: str) -> str:
    done = subprocess.run(
        [python_of(target), "-u", "-W", "ignore", *arguments],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": "-1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.stdout


def answer(log: str) -> str:
    explanation = explained(log)
    assert not explanation.crashed
    return explanation.root_causes[0].cause if explanation.root_causes else explanation.verdict


BOTH = [
    (
        "gpus = tf.config.experimental.list_physical_devices('GPU')\n"
        "tf.config.experimental.set_memory_growth(gpus[0], True)\n",
        NO_GPU,
    ),
    (
        "if not tf.test.gpu_device_name():\n    raise SystemError('GPU device not found')\n",
        NO_GPU,
    ),
    (
        "tf.config.experimental.set_visible_devices('/GPU:0', 'GPU')\n",
        {"gpu-config-misuse"},
    ),
    (
        "cpus = tf.config.experimental.list_physical_devices('CPU')\n"
        "tf.config.experimental.set_visible_devices(cpus, 'GPU')\n",
        {"gpu-config-misuse"},
    ),
    ("tf.config.set_memory_growth(None, True)\n", {"no-such-device-name"}),
    ("tf.errors.CUDAOutOfMemoryError\n", {"no-such-device-name"}),
]
SESSIONS = [
    (
        "with tf.device('/gpu:2'):\n    a = tf.constant(1.0)\nprint(tf.Session().run(a))\n",
        NO_GPU,
    ),
    ("tf.config.list_physical_devices('GPU')\n", {"no-such-device-name"}),
    ("sess = tf.Session()\nsess.close()\nsess.run(tf.constant(1.0))\n", {"not-gpu"}),
    ("tf.Session('grpc_near://host:1')\n", {"not-gpu"}),
]
EAGER = [
    ("sess = tf.Session()\n", {"session-api-removed-in-tf2"}),
    ("config = tf.ConfigProto()\n", {"session-api-removed-in-tf2"}),
    ("tf.compat.v1.Session().run(tf.constant(1.0))\n", {"session-api-removed-in-tf2"}),
    ("tf.config.experimental.get_memory_info('GPU:0')\n", NO_GPU),
    (
        "tf.config.set_soft_device_placement(False)\n"
        "with tf.device('/GPU:0'):\n    tf.constant(1.0)\n",
        NO_GPU,
    ),
    (
        "tf.config.set_soft_device_placement(False)\n"
        "@tf.function\ndef step():\n    with tf.device('/GPU:0'):\n"
        "        return tf.constant(1.0) + 1.0\nstep()\n",
        NO_GPU,
    ),
]


@pytest.mark.parametrize(
    ("target", "programs"),
    [("tensorflow-gpu-1.15", [*BOTH, *SESSIONS]), ("tensorflow-2.21", [*BOTH, *EAGER])],
    ids=["1.15", "2.21"],
)
def test_the_answer_to_a_program_that_really_failed(
    tmp_path: Path, target: str, programs: list[tuple[str, set[str]]]
) -> None:
    files = [tmp_path / f"train_{number}.py" for number in range(len(programs))]
    for file, (code, _) in zip(files, programs, strict=True):
        file.write_text(IMPORT + code)
    start, *logs = log_of(target, "-c", RUN_ALL, *map(str, files)).split("PROGRAM\n")
    assert len(logs) == len(programs), start
    wrong = {
        code: (found, log)
        for (code, expected), log in zip(programs, logs, strict=True)
        if (found := answer(start + log)) not in expected
    }
    assert not wrong


def test_1_15_aborts_if_a_listed_gpu_does_not_exist(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    options = "tf.GPUOptions(visible_device_list='3')"
    program.write_text(f"{IMPORT}tf.Session(config=tf.ConfigProto(gpu_options={options}))\n")
    log = log_of("tensorflow-gpu-1.15", str(program))
    assert "Attempting to fetch value instead of handling error" in log
    assert answer(log) in NO_GPU
