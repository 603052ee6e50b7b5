"""Lint as a whole: many files, ignored findings, problems, and the same answer every time."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

import whygpu
from tests.unprivileged import unprivileged
from whygpu.linter.lint_files import lint_files
from whygpu.linter.settings import Settings
from whygpu.model.code_finding import LintReport

DEFECT = "import tensorflow as tf\ntf.config.set_memory_growth(1, True)\n"


def lint(folder: pathlib.Path, **texts: str) -> LintReport:
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        paths.append(str(path))
    return lint_files(paths, Settings())


def codes(report: LintReport) -> list[str]:
    return [found.finding.code for found in report.findings]


def test_a_finding_has_its_place_and_its_line(tmp_path: pathlib.Path) -> None:
    (found,) = lint(tmp_path, a=DEFECT).findings
    assert found.path == str(tmp_path / "a.py")
    assert (found.line, found.column, found.end_line, found.end_column) == (2, 1, 2, 28)
    assert found.source == "tf.config.set_memory_growth(1, True)"
    assert found.finding.evidence[0].where == f"{found.path}:2:1"
    assert found.fixable


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("# whygpu: ignore[WG711] a stub of ours", "a stub of ours"),
        ("# whygpu: ignore[WG711]: a stub of ours", "a stub of ours"),
        ("# whygpu: ignore[WG701, WG711]", ""),
        ("# whygpu:ignore", ""),
        ("# whygpu: ignore[no-such-device-name] by name", "by name"),
        ("# noqa  # whygpu: ignore[WG711] both", "both"),
    ],
)
def test_a_comment_takes_a_finding_back_and_its_reason_is_kept(
    tmp_path: pathlib.Path, comment: str, reason: str
) -> None:
    report = lint(tmp_path, a=DEFECT.rstrip() + f"  {comment}\n")
    assert report.findings == ()
    (ignored,) = report.ignored
    assert ignored.reason == reason
    assert report.exit_code == 0


def test_a_comment_for_another_code_does_not(tmp_path: pathlib.Path) -> None:
    report = lint(tmp_path, a=DEFECT.rstrip() + "  # whygpu: ignore[WG701] no\n")
    assert codes(report) == ["WG711"]


def test_a_whole_file_can_be_left_out(tmp_path: pathlib.Path) -> None:
    report = lint(tmp_path, a="# whygpu: ignore-file[WG711] generated\n" + DEFECT * 2)
    assert report.findings == ()
    assert [found.reason for found in report.ignored] == ["generated"] * 2


def test_files_that_cannot_be_read_are_reported_and_others_are_linted(
    tmp_path: pathlib.Path,
) -> None:
    report = lint(tmp_path, a=f"print 'old'\n{DEFECT}", b=f"def f(:\n{DEFECT}", c=DEFECT)
    assert [problem.kind for problem in report.problems] == ["python2", "syntax"]
    assert codes(report) == ["WG711"]
    missing = lint_files([str(tmp_path / "gone.py")], Settings())
    assert missing.problems[0].kind == "unreadable"


def test_files_without_any_word_about_devices_are_not_parsed(tmp_path: pathlib.Path) -> None:
    report = lint(tmp_path, a="print 'old'\n", b="def f(:\n")
    assert (report.files, report.problems, report.findings) == (2, (), ())
    named = whygpu.lint([tmp_path / "a.py", tmp_path / "b.py"])
    assert [problem.kind for problem in named.problems] == ["python2", "syntax"]


@pytest.mark.slow
def test_many_files_give_the_same_answer_as_one_at_a_time(tmp_path: pathlib.Path) -> None:
    texts = {f"f{n:03}": DEFECT if n % 3 else "import torch\n" for n in range(100)}
    together = lint(tmp_path, **texts)
    apart = [lint_files([str(tmp_path / f"{name}.py")], Settings()) for name in texts]
    assert together.findings == tuple(found for one in apart for found in one.findings)
    assert together.files == 100


def test_progress_is_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text("")
    told: list[tuple[int, int]] = []
    lint_files([str(tmp_path / "a.py")] * 3, Settings(), lambda *words: told.append(words))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_notebook_is_told_by_cell(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.ipynb"
    cells = [
        {"cell_type": "markdown", "source": "# x"},
        {"cell_type": "code", "source": "import tensorflow as tf"},
        {"cell_type": "code", "source": ["!ls\n", "tf.config.set_memory_growth(1, True)"]},
    ]
    path.write_text(json.dumps({"cells": cells}))
    (found,) = lint_files([str(path)], Settings()).findings
    assert (found.cell, found.line, found.column) == (3, 2, 1)
    assert found.source == "tf.config.set_memory_growth(1, True)"
    assert found.finding.evidence[0].where == f"{path}:cell 3:2:1"


def notebook_of(path: pathlib.Path, *cells: str, language: str = "python") -> pathlib.Path:
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    metadata = {"kernelspec": {"language": language}}
    path.write_text(json.dumps({"nbformat": 4, "metadata": metadata, "cells": code}))
    return path


def test_messages_count_the_lines_of_a_notebook_from_the_cell(tmp_path: pathlib.Path) -> None:
    cells = ("import os\n", "\nimport jax\n", 'os.environ["JAX_PLATFORMS"] = "cpu"\n')
    (found,) = whygpu.lint(notebook_of(tmp_path / "a.ipynb", *cells)).findings
    assert "after line 2 of cell 2 (import jax)" in found.finding.message


def test_a_notebook_in_another_language_has_no_findings(tmp_path: pathlib.Path) -> None:
    report = whygpu.lint(notebook_of(tmp_path / "a.ipynb", "library(torch)\nx <- 1", language="R"))
    assert (report.findings, report.problems) == ((), ())


def test_one_line_that_sets_growth_for_an_unchecked_gpu_is_reported_once() -> None:
    text = (
        "import tensorflow as tf\n"
        "gpus = tf.config.list_physical_devices('GPU')\n"
        "tf.config.experimental.set_memory_growth(gpus[0], True)\n"
    )
    report = whygpu.lint(text)
    assert codes(report) == ["WG701"]
    assert "IndexError" in report.findings[0].finding.message
    assert report.findings[0].finding.severity == "error"


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ('os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"', "info"),
        ('os.environ["KERAS_BACKEND"] = "tensorflow"', "info"),
        ('os.environ["KERAS_BACKEND"] = "jax"', "error"),
    ],
)
def test_a_late_variable_that_changes_no_device_is_a_remark(line: str, severity: str) -> None:
    (found,) = whygpu.lint(f"import os\nimport tensorflow as tf\n{line}\n").findings
    assert found.finding.severity == severity


def test_the_api_takes_source_paths_and_folders(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(DEFECT)
    assert codes(whygpu.lint(DEFECT)) == ["WG711"]
    assert codes(whygpu.lint(path)) == ["WG711"]
    assert codes(whygpu.lint(str(tmp_path))) == ["WG711"]
    assert codes(whygpu.lint([path, tmp_path])) == ["WG711"]
    old = "import tensorflow as tf\ntf.Session()\n"
    assert codes(whygpu.lint(old)) == ["WG704"]
    assert codes(whygpu.lint(old, tensorflow="1.15")) == []


def test_a_projects_own_requirements_say_which_tensorflow(tmp_path: pathlib.Path) -> None:
    (tmp_path / "requirements.txt").write_text("tensorflow==1.15\n")
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "src"
    inner.mkdir()
    (inner / "a.py").write_text("import tensorflow as tf\ntf.Session()\n")
    assert codes(whygpu.lint(tmp_path)) == []


SESSION = "import tensorflow as tf\n\nsess = tf.Session()\n"


def found_in(path: pathlib.Path) -> list[str]:
    return codes(whygpu.lint(path))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("README.md", "Tested with TensorFlow 1.14 and Python 3.6.", []),
        ("README.md", "Needs TF1.2 (GPU version).", []),
        ("README.rst", "TensorFlow >= 1.4 is required; TensorFlow 2 is not supported.", []),
        ("README.md", "Use gcr.io/kubeflow-images-public/tensorflow-1.15.2-notebook-gpu.", []),
        ("README.md", "docker run tensorflow/tensorflow:1.14.0-gpu", []),
        ("README.md", "docker run tensorflow/tensorflow:2.14.0-gpu", ["WG704"]),
        ("README.md", "Runs on TensorFlow 2.", ["WG704"]),
        ("README.md", "Runs on TensorFlow 1.15 and on TensorFlow 2.3.", []),
        ("README.md", "TensorFlow is fun, and 1 of 2 people likes it.", ["WG704"]),
        ("Dockerfile", "FROM nvcr.io/nvidia/tensorflow:20.06-tf1-py3\n", []),
        ("Dockerfile", "FROM nvcr.io/nvidia/tensorflow:20.06-tf2-py3\n", ["WG704"]),
        ("requirements.txt", "tensorflow>=1.11.0\n", []),
        ("requirements.txt", "tensorflow-serving-api==1.12.*\n", []),
    ],
)
def test_a_project_says_what_it_was_made_for(
    tmp_path: pathlib.Path, name: str, text: str, expected: list[str]
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    (tmp_path / "code").mkdir()
    script = tmp_path / "code" / "train.py"
    script.write_text(SESSION)
    assert found_in(script) == expected


def test_neighbours_tell_which_tensorflow_a_folder_is_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".git").mkdir()
    script = tmp_path / "train.py"
    script.write_text(SESSION)
    for name in ("layers.py", "loss.py"):
        (tmp_path / name).write_text("import tensorflow as tf\n\nnorm = tf.contrib.layers.norm\n")
    assert found_in(script) == []


def test_one_neighbour_for_tensorflow_2_is_enough_to_speak(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".git").mkdir()
    script = tmp_path / "train.py"
    script.write_text(SESSION)
    for name in ("layers.py", "loss.py"):
        (tmp_path / name).write_text("import tensorflow as tf\n\nnorm = tf.contrib.layers.norm\n")
    (tmp_path / "new.py").write_text("import tensorflow as tf\n\nstep = tf.function(print)\n")
    assert found_in(script) == ["WG704"]


def test_a_program_for_tensorflow_1_from_end_to_end_is_no_slip() -> None:
    body = "".join(f"x{n} = tf.placeholder(tf.float32)\n" for n in range(12))
    assert codes(whygpu.lint("import tensorflow as tf\n" + body)) == []


def test_a_test_of_several_devices_is_skipped_by_its_runner(tmp_path: pathlib.Path) -> None:
    text = "import jax\n\n\ndef second():\n    return jax.devices()[1]\n"
    for name, expected in (("test_mesh.py", []), ("mesh_test.py", []), ("mesh.py", ["WG719"])):
        path = tmp_path / name
        path.write_text(text)
        assert found_in(path) == expected


def test_the_same_item_taken_twice_is_told_once() -> None:
    text = "import jax\n\nfirst = jax.devices()[1]\nagain = jax.devices()[1]\n"
    assert codes(whygpu.lint(text)) == ["WG719"]


@pytest.mark.slow
def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "good.py").write_text("x = 1\n")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    code = "import sys, whygpu; r = whygpu.lint(sys.argv[1]); print(r.standing, r.unread)"
    done = subprocess.run(
        [*unprivileged(), sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True
    )
    locked.chmod(0o700)
    assert done.stdout.split() == ["unknown", "1"], done.stderr
