"""`whygpu run` with real frameworks on the CPU: what a policy does, seen from inside."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.launch.programs import WHYGPU, environment, run, script
from tests.targets import python_of

POLICY = ("--deterministic", "--tf32", "off", "--cudnn", "off", "--memory", "growth")

TENSORFLOW = """
import json, os, tensorflow as tf
print(json.dumps({
    "gpus": len(tf.config.list_physical_devices("GPU")),
    "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
    "random": float(tf.random.uniform(())),
    "growth": os.environ["TF_FORCE_GPU_ALLOW_GROWTH"],
    "flags": os.environ["XLA_FLAGS"],
}))
"""
TORCH = """
import json, torch
print(json.dumps({
    "cudnn": torch.backends.cudnn.enabled,
    "tf32": torch.backends.cuda.matmul.allow_tf32,
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "random": torch.rand(1).item(),
    "started": torch.cuda.is_initialized(),
}))
"""
JAX = """
import json, os, jax
jax.numpy.ones(3).sum().block_until_ready()
print(json.dumps({
    "platforms": jax.config.jax_platforms,
    "precision": str(jax.config.jax_default_matmul_precision),
    "preallocate": os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"],
    "flags": os.environ["XLA_FLAGS"],
}))
"""
KERAS = """
import json, numpy, keras
model = keras.Sequential([keras.layers.Input((4, 3)), keras.layers.LSTM(2), keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(numpy.random.rand(8, 4, 3), numpy.random.rand(8, 1), verbose=0)
print(json.dumps({
    "backend": keras.backend.backend(),
    "cudnn": model.layers[0].use_cudnn,
    "loss": history.history["loss"],
}))
"""


class Seen(NamedTuple):
    code: int
    facts: dict[str, Any]
    said: str
    report: dict[str, Any]


def under(folder: Path, target: str, code: str, *options: str, **environ: str) -> Seen:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    program = script(folder, code)
    report = folder / "report.json"
    done = run(
        [*WHYGPU, *options, "--report", report, "--", python_of(target), program],
        env=environment(HOME=str(home), **environ),
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    facts = json.loads(lines[-1]) if lines else {}
    written = json.loads(report.read_text()) if report.exists() else {}
    return Seen(done.returncode, facts, done.stderr, written)


def states(seen: Seen, framework: str) -> dict[str, str]:
    """By part of the policy whether it was in force in the framework."""
    found = [each for each in seen.report["in_force"] if each["framework"] == framework]
    for each in found:
        assert all(call["outcome"] == "executed" for call in each["calls"]), each
    return {each["part"]: each["state"] for each in found}


def test_tensorflow(tmp_path: Path) -> None:
    seen = under(tmp_path, "tensorflow-2.21", TENSORFLOW, "--device", "cpu", *POLICY)
    assert seen.code == 0, seen.said
    assert (seen.facts["gpus"], seen.facts["tf32"], seen.facts["growth"]) == (0, False, "true")
    assert seen.facts["flags"] == "--xla_gpu_deterministic_ops=true"
    again = under(tmp_path, "tensorflow-2.21", TENSORFLOW, *POLICY)
    assert again.facts["random"] == seen.facts["random"]
    assert (seen.report["device"], seen.report["fallback"]) == ("cpu", False)
    assert "ran on the CPU (TensorFlow 2.21.0); peak memory" in seen.said
    assert states(seen, "tensorflow") == {
        "memory": "cannot-tell",
        "cudnn": "cannot-tell",
        "deterministic": "in-force",
        "tf32": "in-force",
    }
    assert "policy in force at the end: deterministic (TensorFlow), tf32 (TensorFlow)" in seen.said


def test_torch(tmp_path: Path) -> None:
    seen = under(tmp_path, "torch", TORCH, *POLICY, "--memory", "50%")
    assert seen.code == 0, seen.said
    assert seen.facts | {"random": 0} == {
        "cudnn": False,
        "tf32": False,
        "deterministic": True,
        "random": 0,
        "started": False,
    }
    assert under(tmp_path, "torch", TORCH, *POLICY).facts["random"] == seen.facts["random"]
    assert seen.report["device"] == "cpu"
    (memory,) = [each for each in seen.report["in_force"] if each["part"] == "memory"]
    assert (memory["state"], memory["reason"]) == ("cannot-tell", "PyTorch did not start CUDA")
    assert [call["outcome"] for call in memory["calls"]] == ["not-reached"]


def test_a_program_that_undoes_the_policy_is_told_of(tmp_path: Path) -> None:
    code = "import torch; torch.backends.cudnn.enabled = True"
    seen = under(tmp_path, "torch", code, *POLICY)
    assert seen.code == 0
    assert states(seen, "torch") == {
        "memory": "in-force",
        "cudnn": "not-in-force",
        "deterministic": "in-force",
        "tf32": "in-force",
    }
    assert "policy NOT in force: cudnn (PyTorch reports cudnn_enabled = True)" in seen.said


def test_jax(tmp_path: Path) -> None:
    seen = under(tmp_path, "jax", JAX, "--device", "cpu", *POLICY)
    assert seen.facts == {
        "platforms": "cpu",
        "precision": "float32",
        "preallocate": "false",
        "flags": "--xla_gpu_deterministic_ops=true",
    }
    assert "ran on the CPU (JAX" in seen.said
    assert states(seen, "jax")["tf32"] == "in-force"
    assert "deterministic (JAX did not start a GPU)" in seen.said


@pytest.mark.parametrize(
    "target", ["tensorflow-2.21", pytest.param("jax", marks=pytest.mark.full), "torch"]
)
def test_keras_on_every_backend(tmp_path: Path, target: str) -> None:
    """Its default backend, TensorFlow, is not installed beside JAX and PyTorch: that is mended."""
    backend = target.partition("-")[0]
    seen = under(tmp_path, target, KERAS, "--deterministic", "--cudnn", "off")
    assert seen.code == 0, seen.said
    assert (seen.facts["backend"], seen.facts["cudnn"]) == (backend, False)
    codes = [repair["code"] for repair in seen.report["repairs"]]
    assert codes == ([] if backend == "tensorflow" else ["WG602"])
    assert seen.report["device"] == "cpu"
    assert states(seen, "keras") == {"cudnn": "in-force"}


def test_a_backend_that_is_not_there_is_replaced_unless_the_user_chose_it(tmp_path: Path) -> None:
    chosen = under(tmp_path, "torch", KERAS, KERAS_BACKEND="jax")
    assert chosen.code == 1
    assert "No module named 'jax'" in chosen.said
    assert chosen.report["repairs"] == []
    script(tmp_path, '{"backend": "jax"}', "home/.keras/keras.json")
    chosen = under(tmp_path, "torch", KERAS)
    assert (chosen.code, chosen.report["repairs"]) == (1, [])
    # As Keras itself writes the file.
    settings = script(tmp_path, '{"backend": "tensorflow"}', "home/.keras/keras.json")
    left = under(tmp_path, "torch", KERAS, "--no-repair")
    assert left.code == 1
    mended = under(tmp_path, "torch", KERAS)
    assert mended.facts["backend"] == "torch"
    assert "KERAS_BACKEND=torch" in mended.said
    (repair,) = mended.report["repairs"]
    for text in (mended.said, repair["why"]):
        assert "in ~/.keras/keras.json, cannot be imported" in " ".join(text.split())
        assert str(settings) not in text


def test_tensorflow_1(tmp_path: Path) -> None:
    code = (
        "import tensorflow as tf\n"
        "with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:\n"
        "    print(session.run(tf.constant(2) + 2))\n"
    )
    options = (*POLICY, "--memory", "80%", "--xla", "off", "--log-level", "error")
    seen = under(tmp_path, "tensorflow-gpu-1.15", code, "--device", "cpu", *options)
    assert seen.code == 0, seen.said
    assert seen.report["device"] == "cpu"
    assert "ran on the CPU (TensorFlow 1.15.5)" in seen.said


def test_sigterm_leaves_the_device_and_the_notes(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "import tensorflow as tf\n"
        "session = tf.Session()\n"
        "tf.contrib.layers.fully_connected(tf.ones([2, 2]), 2)\n"
        "os.kill(os.getpid(), 15)\n"
    )
    seen = under(tmp_path, "tensorflow-2.21", code, "--tf1", "--device", "cpu")
    assert (seen.code, seen.report["device"]) == (143, "cpu")
    assert "ran on the CPU (TensorFlow 2.21.0); as last reported before SIGTERM" in seen.said
    assert "--tf1: tf.contrib.layers -> whygpu's own implementation" in seen.said


def test_a_loader_with_workers(tmp_path: Path) -> None:
    code = """
import json, torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    data = TensorDataset(torch.arange(32.0))
    total = 0.0
    for way in ("fork", "spawn"):
        for (batch,) in DataLoader(data, 8, num_workers=2, multiprocessing_context=way):
            total += batch.sum().item()
    print(json.dumps({"total": total}))
"""
    seen = under(tmp_path, "torch", code)
    assert (seen.code, seen.facts) == (0, {"total": 992.0}), seen.said


def test_torchrun(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import os, torch, torch.distributed as group\n"
        "group.init_process_group('gloo')\n"
        "ones = torch.ones(1)\n"
        "group.all_reduce(ones)\n"
        "assert torch.backends.cudnn.enabled is False\n"
        "assert os.environ['CUDA_VISIBLE_DEVICES'] == '-1'\n"
        "os.write(1, b'sum %d\\n' % ones.item())\n"
        "group.destroy_process_group()\n",
    )
    policy = ("--device", "cpu", "--cudnn", "off")
    torchrun = os.path.join(os.path.dirname(python_of("torch")), "torchrun")
    done = run(
        [*WHYGPU, *policy, "--", torchrun, "--standalone", "--nproc-per-node", "2", program],
        env=environment(OMP_NUM_THREADS="1"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "sum 2\nsum 2\n"


def test_policies_in_a_running_program(tmp_path: Path) -> None:
    code = """
import json, os, torch, whygpu
whygpu.apply("cpu cudnn=off deterministic")
facts = {"cudnn": torch.backends.cudnn.enabled, "visible": os.environ["CUDA_VISIBLE_DEVICES"]}
with whygpu.device("cpu"):
    facts["device"] = str(torch.ones(1).device)
try:
    with whygpu.device("gpu:0"):
        pass
except whygpu.PolicyError as error:
    facts["refused"] = str(error)
print(json.dumps(facts))
"""
    source = str(Path(__file__).parents[2] / "src")
    program = script(tmp_path, code)
    done = run([python_of("torch"), program], env=environment(PYTHONPATH=source))
    assert json.loads(done.stdout) == {
        "cudnn": False,
        "visible": "-1",
        "device": "cpu",
        "refused": "there is no gpu:0 in this process for PyTorch",
    }, done.stderr


def test_a_policy_that_comes_too_late(tmp_path: Path) -> None:
    code = (
        "import jax, whygpu\n"
        "whygpu.apply('cpu')\nprint(jax.config.jax_platforms)\n"
        "jax.numpy.ones(1)\nwhygpu.apply('cpu')\n"
    )
    source = str(Path(__file__).parents[2] / "src")
    program = script(tmp_path, code)
    done = run([python_of("jax"), program], env=environment(PYTHONPATH=source))
    assert done.stdout == "cpu\n"
    assert "JAX has started its devices already" in done.stderr
