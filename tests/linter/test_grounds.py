"""A finding is a warning or an error only if something in the files supports its claim."""

from __future__ import annotations

import json
import pathlib

import pytest

from whygpu.linter.lint_files import lint_files
from whygpu.linter.settings import Settings

SESSION = "import tensorflow as tf\nsess = tf.Session()\n"
SWALLOWED = "import torch\ntry:\n    torch.cuda.set_device(0)\nexcept Exception as error:\n    {}\n"
SELECT = """\
import os

def select(device):
    os.environ["CUDA_VISIBLE_DEVICES"] = device

def select_if(device):
    if device != "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = device
"""


def found(folder: pathlib.Path, text: str, **others: str) -> list[tuple[str, str]]:
    """The codes and severities of one file, with these files beside it, in a new folder."""
    folder = folder / str(len(list(folder.iterdir())))
    folder.mkdir()
    for name, content in {"main.py": text, **others}.items():
        (folder / name.replace("_", ".")).write_text(content)
    report = lint_files([str(folder / "main.py")], Settings())
    return [(each.finding.code, each.finding.severity) for each in report.findings]


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ({"README_md": "A program."}, [("WG704", "info")]),
        # It may be about the other files.
        ({"README_md": "Needs TensorFlow 2.4."}, [("WG704", "info")]),
        ({"requirements_txt": "tensorflow==2.4"}, [("WG704", "warning")]),
        ({"README_md": "Needs TensorFlow 1.4."}, []),
    ],
)
def test_a_session_is_a_warning_only_in_a_project_that_pins_tensorflow_2(
    tmp_path: pathlib.Path, project: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert found(tmp_path, SESSION, **project) == expected


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\ntf.train.MonitoredSession()\n",
        "import tensorflow as tf\ntf.keras.backend.get_session()\n",
    ],
)
def test_names_inside_modules_that_remain_are_names_of_tensorflow_1_as_well(
    tmp_path: pathlib.Path, text: str
) -> None:
    assert found(tmp_path, text) == [("WG704", "info")]
    assert found(tmp_path, text, README_md="Needs TensorFlow 1.4.") == []


def test_a_module_of_old_keras_shows_that_a_file_is_for_tensorflow_1(
    tmp_path: pathlib.Path,
) -> None:
    old = "from keras.backend.tensorflow_backend import set_session\nset_session(sess)\n"
    assert found(tmp_path, SESSION + old) == []


def test_a_program_far_below_the_requirements_may_be_for_another_release(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "requirements.txt").write_text("tensorflow==2.10.0\n")
    text = (
        "import tensorflow as tf\n" + "tf.contrib.layers.flatten(tf.placeholder(tf.float32))\n" * 10
    )
    codes = []
    for folder in ("a/b/c", "a/b/c/d"):
        file = tmp_path / folder / "main.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        report = lint_files([str(file)], Settings())
        codes.append([(each.finding.code, each.finding.severity) for each in report.findings])
    assert codes == [[("WG704", "warning")], []]


@pytest.mark.parametrize(
    ("name", "guarded", "severity"),
    [
        ("main.py", False, "error"),
        ("main.py", True, "warning"),
        ("main.ipynb", False, "error"),
        ("main.ipynb", True, "info"),
    ],
)
def test_a_late_setting_whose_error_is_caught_is_less_than_an_error(
    tmp_path: pathlib.Path, name: str, guarded: bool, severity: str
) -> None:
    setting = "tf.config.set_visible_devices([], 'GPU')"
    if guarded:
        setting = f"try:\n    {setting}\nexcept RuntimeError as error:\n    print(error)"
    text = f"import tensorflow as tf\ntf.constant(1)\n{setting}\n"
    if name.endswith(".ipynb"):
        cells = [{"cell_type": "code", "source": text}]
        text = json.dumps({"cells": cells, "nbformat": 4})
    (tmp_path / name).write_text(text)
    report = lint_files([str(tmp_path / name)], Settings())
    assert [(each.finding.code, each.finding.severity) for each in report.findings] == [
        ("WG701", severity)
    ]


def test_names_of_both_are_an_error_only_if_one_run_needs_both(tmp_path: pathlib.Path) -> None:
    both = (
        "import tensorflow as tf\ngpus = tf.config.list_physical_devices()\nsess = tf.Session()\n"
    )
    assert found(tmp_path, both) == [("WG704", "error")]
    apart = (
        "import tensorflow as tf\ndef old():\n    return tf.Session()\n"
        "def new():\n    return tf.config.list_physical_devices()\n"
    )
    assert found(tmp_path, apart) == [("WG704", "info")]


def test_a_deprecated_check_is_no_finding_in_a_project_for_tensorflow_1(
    tmp_path: pathlib.Path,
) -> None:
    text = "import tensorflow as tf\nprint(tf.test.is_gpu_available())\n"
    assert found(tmp_path, text) == [("WG715", "info")]
    assert found(tmp_path, text, README_md="Needs TensorFlow 1.4.") == []


def test_a_deprecated_check_is_a_warning_where_it_comes_before_a_limit(
    tmp_path: pathlib.Path,
) -> None:
    text = (
        "import tensorflow as tf\nif tf.test.is_gpu_available():\n"
        "    for gpu in tf.config.list_physical_devices('GPU'):\n"
        "        tf.config.experimental.set_memory_growth(gpu, True)\n"
    )
    assert ("WG715", "warning") in found(tmp_path, text)


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ("tf.Session()", "warning"),
        ("tf.Session(config=tf.ConfigProto(allow_soft_placement=True))", "info"),
    ],
)
def test_a_gpu_number_matters_where_tensorflow_may_not_take_another_device(
    tmp_path: pathlib.Path, session: str, expected: str
) -> None:
    text = (
        "import tensorflow as tf\nwith tf.device('/gpu:1'):\n    x = tf.placeholder(tf.float32)\n"
        f"with {session} as s:\n    s.run(x)\n"
    )
    readme = {"README_md": "Needs TensorFlow 1.4."}
    assert ("WG720", expected) in found(tmp_path, text, **readme)
    two = "import tensorflow as tf\nwith tf.device('/gpu:1'):\n    x = tf.constant(1.0)\n"
    assert found(tmp_path, two) == [("WG720", "info")]


def test_memory_variables_of_gpus_are_a_note_in_a_program_for_tpus(tmp_path: pathlib.Path) -> None:
    text = (
        "import os\nimport jax\njax.devices(){}\n"
        "os.environ['XLA_PYTHON_CLIENT_MEM_FRACTION'] = '.5'\n"
    )
    assert found(tmp_path, text.format("")) == [("WG710", "error")]
    assert found(tmp_path, text.format("  # the TPU")) == [("WG710", "info")]
    assert found(tmp_path, text.format("  # TPU\u30e1\u30e2\u30ea")) == [("WG710", "info")]


def test_a_list_of_losses_is_a_note_and_their_sum_a_warning(tmp_path: pathlib.Path) -> None:
    text = (
        "import torch\nfor x in loader:\n    loss = model(x).mean()\n    loss.backward()\n    {}\n"
    )
    assert found(tmp_path, text.format("total = total + loss")) == [("WG734", "warning")]
    assert found(tmp_path, text.format("losses.append(loss)")) == [("WG734", "info")]


def test_running_eagerly_is_a_note_if_the_model_needs_it(tmp_path: pathlib.Path) -> None:
    text = (
        "import tensorflow as tf\ntf.config.run_functions_eagerly(True)\n"
        "def loss(y_true, y_pred):\n    return y_true{}\nmodel.fit(x)\n"
    )
    assert found(tmp_path, text.format("")) == [("WG410", "warning")]
    step = "class Model(tf.keras.Model):\n    def train_step(self, data):\n        return {}\n"
    assert found(tmp_path, text.format("") + step) == [("WG410", "info")]
    alone = text.replace("model.fit(x)\n", "")
    assert found(tmp_path, alone.format("")) == [("WG410", "info")]
    assert found(tmp_path, text.format(".numpy()")) == [("WG410", "info")]
    metric = "class Kept:\n    def update_state(self, y, p):\n        self.all.append(p)\n"
    assert found(tmp_path, text.format("") + metric) == [("WG410", "info")]


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        ("pass", "warning"),
        ("print('no GPU')", "warning"),
        ("print('no GPU:', error)", "info"),
        ("logging.exception('no GPU')", "info"),
        ("logging.warning('no GPU', exc_info=True)", "info"),
        ("pass  # the devices are initialised already", "info"),
    ],
)
def test_an_error_that_is_shown_or_explained_is_not_hidden(
    tmp_path: pathlib.Path, body: str, severity: str
) -> None:
    assert found(tmp_path, SWALLOWED.format(body)) == [("WG722", severity)]


@pytest.mark.parametrize(
    ("uses", "severity"),
    [
        ("", "info"),
        ("from old import Net\n", "warning"),
        ("from . import old\n", "warning"),
        ("from tensorflow.keras.applications import old\n", "info"),
    ],
)
def test_a_file_for_tensorflow_1_that_no_program_for_2_imports_was_left_over(
    tmp_path: pathlib.Path, uses: str, severity: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("tensorflow==2.8\n")
    new = "import tensorflow as tf\n@tf.function\ndef step(x):\n    return x\n"
    (tmp_path / "train.py").write_text(uses + new)
    old = tmp_path / "old.py"
    old.write_text(
        "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n"
        "y = tf.contrib.layers.flatten(x)\n"
    )
    report = lint_files([str(old)], Settings())
    assert [(each.finding.code, each.finding.severity) for each in report.findings] == [
        ("WG704", severity)
    ]


def test_a_default_device_counts_where_a_call_does_not_give_another(tmp_path: pathlib.Path) -> None:
    text = (
        "import torch\ndef load(path, device=torch.device('cuda:2')):\n"
        "    return torch.load(path, device)\n"
    )
    assert found(tmp_path, text) == [("WG720", "info")]
    assert found(tmp_path, text + "load('a')\n") == [("WG720", "warning")]
    assert found(tmp_path, text + "load('a', chosen)\n") == []
    assert found(tmp_path, text + "load('a', device=chosen)\n") == []


def test_a_setting_that_changes_with_the_call_is_too_late_the_second_time(
    tmp_path: pathlib.Path,
) -> None:
    text = (
        "import os\nimport torch\ndef run(gpu):\n    chosen = str(gpu)\n"
        "    os.environ['CUDA_VISIBLE_DEVICES'] = chosen\n    return torch.cuda.is_available()\n"
        "run(0)\nrun(1)\n"
    )
    assert found(tmp_path, text) == [("WG710", "error")]


def test_where_a_checkpoint_was_saved_is_unknown(tmp_path: pathlib.Path) -> None:
    text = (
        'import torch\ndevice = "cuda" if torch.cuda.is_available() else "cpu"\n'
        'model.load_state_dict(torch.load("model.pth"))\n'
    )
    assert found(tmp_path, text) == [("WG732", "info")]


@pytest.mark.parametrize(("function", "severity"), [("select", "error"), ("select_if", "info")])
def test_a_function_of_another_file_that_may_set_a_variable_is_a_remark(
    tmp_path: pathlib.Path, function: str, severity: str
) -> None:
    text = (
        f"import torch\nfrom devices import {function}\n"
        f"torch.ones(1).cuda()\n{function}(torch.device('cuda'))\n"
    )
    assert found(tmp_path, text, devices_py=SELECT) == [("WG710", severity)]


@pytest.mark.parametrize(
    ("argument", "words"),
    [("torch.float16", "x stays as it was"), ("'cuda'", "x stays on its device")],
)
def test_a_dropped_conversion_is_not_called_a_move(
    tmp_path: pathlib.Path, argument: str, words: str
) -> None:
    file = tmp_path / "main.py"
    file.write_text(f"import torch\nx = torch.ones(3)\nx.to({argument})\n")
    (item,) = lint_files([str(file)], Settings()).findings
    assert words in item.finding.message
