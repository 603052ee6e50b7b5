"""whygpu lint on the command line: options, exit codes, and files that are changed."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from whygpu.cli import main as cli

DEFECT = "import tensorflow as tf\ntf.config.set_memory_growth(1, True)\n"
FIXED = "import tensorflow as tf\ntf.config.experimental.set_memory_growth(1, True)\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "train.py").write_text(DEFECT)
    (tmp_path / "good.py").write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_exit_codes(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", "good.py"]) == 0
    assert cli.main(["lint", "train.py"]) == 1
    assert cli.main(["lint"]) == 1
    assert cli.main(["lint", "missing.py"]) == 2
    assert "missing.py" in capsys.readouterr().err
    assert cli.main(["lint", "--select", "WG999", "train.py"]) == 2
    assert cli.main(["lint", "--tensorflow", "new", "train.py"]) == 2
    assert cli.main(["lint", "--select", "WG704", "train.py"]) == 0
    assert cli.main(["lint", "--ignore", "WG711,WG704", "train.py"]) == 0


def test_information_alone_is_no_failure(folder: pathlib.Path) -> None:
    (folder / "info.py").write_text(
        "import tensorflow as tf\n"
        "with tf.device('/GPU:0'):\n    d = tf.data.Dataset.from_tensor_slices(x)\n"
    )
    assert cli.main(["lint", "info.py"]) == 0


def test_a_file_that_cannot_be_parsed_is_reported(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "old.py").write_text("print 'x'\n")
    assert cli.main(["lint", "old.py", "good.py"]) == 2
    assert "written for Python 2" in capsys.readouterr().out
    assert cli.main(["lint", "old.py"]) == 2


@pytest.mark.parametrize("option", ["--json", "--sarif"])
def test_output_for_programs(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert cli.main(["lint", option, "."]) == 1
    data = json.loads(capsys.readouterr().out)
    if option == "--json":
        assert [found["path"] for found in data["findings"]] == ["train.py"]
        assert data["files"] == 2


def test_github(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", "--github", "train.py"]) == 1
    assert capsys.readouterr().out.startswith("::error file=train.py,line=2,")


def test_fix_changes_files_and_a_second_time_nothing(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["lint", "--fix", "."]) == 0
    assert "1 fixed" in capsys.readouterr().out
    assert (folder / "train.py").read_text() == FIXED
    before = (folder / "train.py").stat().st_mtime_ns
    assert cli.main(["lint", "--fix", "."]) == 0
    assert (folder / "train.py").stat().st_mtime_ns == before


def test_fix_lists_what_it_changed(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "twice.py").write_text(DEFECT + DEFECT.splitlines(True)[1])
    assert cli.main(["lint", "--fix", "."]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "fixed train.py: WG711 no-such-device-name" in lines
    assert "fixed twice.py: WG711 no-such-device-name (2 times)" in lines
    (folder / "train.py").write_text(DEFECT)
    assert cli.main(["lint", "--fix", "--json", "."]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["fixed"] == 1
    assert data["fixes"] == [{"path": "train.py", "code": "WG711", "cause": "no-such-device-name"}]


def test_a_log_is_not_linted_but_explained(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.log").write_text("E tensorflow: it failed\n")
    (folder / "broken.py").write_text("E tensorflow: it failed\n")
    assert cli.main(["lint", "train.log"]) == 2
    assert "for a log: whygpu explain train.log" in capsys.readouterr().err
    assert cli.main(["lint", "broken.py"]) == 2
    assert "whygpu explain" not in capsys.readouterr().err


def test_diff_shows_and_changes_nothing(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["lint", "--diff", "."]) == 1
    assert capsys.readouterr().out == (
        "--- a/train.py\n"
        "+++ b/train.py\n"
        "@@ -1,2 +1,2 @@\n"
        " import tensorflow as tf\n"
        "-tf.config.set_memory_growth(1, True)\n"
        "+tf.config.experimental.set_memory_growth(1, True)\n"
    )
    assert (folder / "train.py").read_text() == DEFECT
    assert cli.main(["lint", "--diff", "good.py"]) == 0


@pytest.mark.slow
def test_standard_input(folder: pathlib.Path) -> None:
    command = [sys.executable, "-m", "whygpu", "lint", "-"]
    done = subprocess.run(command, input=DEFECT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "-:2:1: WG711" in done.stdout
    assert cli.main(["lint", "--fix", "-"]) == 2


def test_settings_are_read(folder: pathlib.Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.whygpu.lint]\nexclude = ["train.py"]\n')
    assert cli.main(["lint"]) == 0
    (folder / "pyproject.toml").write_text("[tool.whygpu.lint]\nexcude = []\n")
    assert cli.main(["lint"]) == 2


def test_a_file_that_cannot_be_written_is_told(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (folder / "train.py").chmod(0o444)
    assert cli.main(["lint", "--fix", "train.py"]) == 2
    assert "left as it is" in capsys.readouterr().err
