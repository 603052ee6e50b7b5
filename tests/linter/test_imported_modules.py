"""Functions of other files of the project are followed where a program calls them."""

from __future__ import annotations

import pathlib

import pytest

import whygpu
from tests.file_tree import write_tree
from whygpu.model.code_finding import LintReport

UTILS = """import os
import tensorflow as tf

def set_gpu(number):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(number)

def prepare():
    set_gpu(1)

def show():
    print(tf.config.list_logical_devices())
"""
STARTED = 'import tensorflow as tf\ntf.config.list_physical_devices("GPU")\n'


def project(folder: pathlib.Path, files: dict[str, str]) -> LintReport:
    return whygpu.lint(write_tree(folder, files))


def found(report: LintReport) -> list[tuple[str, str, int]]:
    return [(pathlib.Path(f.path).name, f.finding.code, f.line) for f in report.findings]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from utils import set_gpu", "set_gpu(1)"),
        ("from utils import set_gpu as choose", "choose(1)"),
        ("import utils", "utils.set_gpu(1)"),
        ("import utils as u", "u.set_gpu(1)"),
        ("from utils import prepare", "prepare()"),
    ],
)
def test_a_variable_that_a_helper_sets_too_late(
    tmp_path: pathlib.Path, imports: str, call: str
) -> None:
    program = f"{STARTED}{imports}\n{call}\n"
    report = project(tmp_path, {"utils.py": UTILS, "train.py": program})
    assert found(report) == [("train.py", "WG710", 4)]
    message = report.findings[0].finding.message
    assert f"{tmp_path / 'utils.py'}:5, which this calls" in message


def test_a_helper_in_a_package_and_above(tmp_path: pathlib.Path) -> None:
    files = {
        "common/__init__.py": "",
        "common/gpu.py": UTILS,
        "models/a.py": f"{STARTED}from common.gpu import set_gpu\nset_gpu(1)\n",
        "common/b.py": f"{STARTED}from .gpu import set_gpu\nset_gpu(1)\n",
    }
    report = project(tmp_path, files)
    assert found(report) == [("b.py", "WG710", 4), ("a.py", "WG710", 4)]


def test_a_helper_that_starts_the_runtime(tmp_path: pathlib.Path) -> None:
    program = (
        "import os\nimport utils\nutils.show()\n"
        'os.environ["CUDA_VISIBLE_DEVICES"] = "1"\nimport tensorflow\n'
    )
    report = project(tmp_path, {"utils.py": UTILS, "train.py": program})
    assert found(report) == [("train.py", "WG710", 4)]
    assert "line 3 (line 11 of " in report.findings[0].finding.message


@pytest.mark.parametrize(
    "program",
    [
        f"from utils import set_gpu\nset_gpu(1)\n{STARTED}",
        f"{STARTED}from utils import set_gpu\n",
        f"{STARTED}from utils import set_gpu\ndef later():\n    pass\n",
        f"{STARTED}from elsewhere import set_gpu\nset_gpu(1)\n",
        f"{STARTED}from ...utils import set_gpu\nset_gpu(1)\n",
    ],
)
def test_calls_that_come_in_time_or_lead_elsewhere(tmp_path: pathlib.Path, program: str) -> None:
    assert found(project(tmp_path, {"utils.py": UTILS, "train.py": program})) == []


def test_what_the_helper_does_wrong_itself_is_reported_there_only(tmp_path: pathlib.Path) -> None:
    helper = "import torch\n\ndef choose():\n    torch.cuda.set_device(3)\n"
    program = "import torch\nfrom helper import choose\nchoose()\n"
    report = project(tmp_path, {"helper.py": helper, "train.py": program})
    assert found(report) == [("helper.py", "WG720", 4)]


def test_files_that_import_each_other_or_cannot_be_read(tmp_path: pathlib.Path) -> None:
    files = {
        "a.py": f"{STARTED}from b import set_gpu\nset_gpu(1)\n",
        "b.py": "from a import set_gpu\nimport os\ndef set_gpu(:\n    os.environ['A'] = '1'\n",
    }
    report = project(tmp_path, files)
    assert found(report) == []


def test_fixes_do_not_touch_the_call_of_a_helper(tmp_path: pathlib.Path) -> None:
    files = {"utils.py": UTILS, "train.py": f"{STARTED}from utils import set_gpu\nset_gpu(1)\n"}
    report = project(tmp_path, files)
    assert [item.fixable for item in report.findings] == [False]
