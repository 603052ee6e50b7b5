"""What lint says of the frameworks, tried out with them: when variables are read, what starts."""

from __future__ import annotations

import subprocess

import pytest

from tests.patience import PATIENCE
from tests.targets import python_of
from whygpu.tables.device_names import right_name
from whygpu.tables.runtime_starts import TENSORFLOW_STARTS
from whygpu.tables.tensorflow_names import EVER, REMOVED, SINCE_2


def run(target: str, code: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    return subprocess.run(
        [python_of(target), "-c", code],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def set_to(variable: str, value: str) -> str:
    return f"import os; os.environ[{variable!r}] = {value!r}\n"


GARBAGE_XLA = "--no_such_flag"
TF_LOOK = "import tensorflow as tf\ntf.config.list_physical_devices()\n"


@pytest.mark.parametrize(
    ("target", "early", "late", "setting"),
    [
        ("tensorflow-2.21", "import tensorflow as tf\n", TF_LOOK, ("TF_XLA_FLAGS", GARBAGE_XLA)),
        ("tensorflow-2.21", "", "import tensorflow as tf\n", ("KERAS_BACKEND", "garbage")),
        ("jax", "", "import jax\n", ("JAX_PLATFORMS", "garbage")),
        ("jax", "import jax\n", "import jax\njax.devices()\n", ("XLA_FLAGS", GARBAGE_XLA)),
    ],
    ids=["TF_XLA_FLAGS", "KERAS_BACKEND", "JAX_PLATFORMS", "XLA_FLAGS"],
)
def test_a_wrong_value_is_noticed_when_set_in_time_and_not_later(
    target: str, early: str, late: str, setting: tuple[str, str]
) -> None:
    use = "tf.constant(1) + 1\ntf.keras.layers.Dense(1)\n" if "tensorflow" in target else ""
    use = "import tensorflow as tf\n" + use if use else "import jax\njax.numpy.ones(3)\n"
    assert run(target, early + set_to(*setting) + use).returncode != 0
    done = run(target, late + set_to(*setting) + use)
    assert done.returncode == 0, done.stderr


def test_what_starts_tensorflow_and_what_does_not() -> None:
    starts = {
        "constant": "tf.constant(1)",
        "Variable": "tf.Variable(1.0)",
        "device": "tf.device('/cpu:0')",
        "config.list_logical_devices": "tf.config.list_logical_devices()",
        "distribute.OneDeviceStrategy": "tf.distribute.OneDeviceStrategy('/cpu:0')",
        "data.Dataset.range": "tf.data.Dataset.range(3)",
        "convert_to_tensor": "tf.convert_to_tensor([1])",
    }
    assert starts.keys() <= TENSORFLOW_STARTS
    harmless = (
        "tf.config.list_physical_devices()",
        "tf.config.get_visible_devices()",
        "tf.random.set_seed(1)",
        "tf.test.is_built_with_cuda()",
        "tf.keras.layers.Dense(1)",
        "tf.function(lambda x: x)",
    )
    code = (
        "import os, tensorflow as tf\n"
        "from tensorflow.python.eager import context\n"
        f"for text in {[*starts.values(), *harmless]!r}:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        eval(text)\n"
        "        os._exit(10 + int(context.context()._initialized))\n"
        "    print(text, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = run("tensorflow-2.21", code)
    expected = [f"{text} 11" for text in starts.values()] + [f"{text} 10" for text in harmless]
    assert done.stdout.splitlines() == expected, done.stderr


@pytest.mark.parametrize("target", ["tensorflow-2.21", "tensorflow-gpu-1.15"])
def test_the_names_are_those_of_the_packages(target: str) -> None:
    code = (
        "import tensorflow as tf\n"
        f"for module in {sorted(EVER)!r}:\n"
        "    found = tf\n"
        "    for part in module.split('.'):\n"
        "        found = getattr(found, part)\n"
        "    print(module, *[name for name in dir(found) if not name.startswith('_')])\n"
        "print('top', *[name for name in dir(tf) if not name.startswith('_')])\n"
    )
    lines = run(target, code).stdout.splitlines()
    names = {line.split()[0]: set(line.split()[1:]) for line in lines}
    for module, ever in EVER.items():
        assert names[module] <= ever
    top = {name.partition(".")[0] for name in SINCE_2}
    if target == "tensorflow-2.21":
        assert not REMOVED & names["top"]
        assert top <= names["top"]
    else:
        assert names["top"] >= REMOVED
        assert not {f"config.{name}" for name in names["config"]} & SINCE_2


def test_corrections_exist_and_what_they_correct_does_not() -> None:
    wrong = [
        "tensorflow.config.set_memory_growth",
        "tensorflow.config.experimental_list_physical_devices",
        "tensorflow.errors.CUDAOutOfMemoryError",
    ]
    code = "import tensorflow\n" + "".join(
        f"try:\n    {name}\n    print('there')\n"
        f"except AttributeError:\n    print({right_name(name)})\n"
        for name in wrong
    )
    done = run("tensorflow-2.21", code)
    assert "there" not in done.stdout
    assert len(done.stdout.splitlines()) == 3, done.stderr
