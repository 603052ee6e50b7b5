"""`whygpu diff` from the command line."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from tests import bounded
from tests.launch.programs import unread
from tests.patience import PATIENCE, wait_until
from tests.schemas import obeys
from tests.test_recorded_machines import FOLDER, RECORDED
from whygpu.cli.main import main

GOOD = str(FOLDER / "h200-healthy-keras-jax.json")
BAD = str(FOLDER / "h200-hidden-empty.json")
WARNED = str(FOLDER / "h200-memory-held.json")


def test_worse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", GOOD, BAD]) == 1
    shown = capsys.readouterr().out
    assert "no longer use the GPU: because of CUDA_VISIBLE_DEVICES" in " ".join(shown.split())
    assert "WG401" in shown
    assert "None of them matters here" in " ".join(shown.split())


def test_others_are_not_called_harmless_if_a_framework_went(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(pathlib.Path(BAD).read_text())
    found = data["target"]["frameworks"]["known"]
    found[:] = [item for item in found if item["name"] != "torch"]
    packages = data["target"]["packages"]["known"]
    packages[:] = [item for item in packages if item["name"] != "torch"]
    without = tmp_path / "without.json"
    without.write_text(json.dumps(data))
    assert main(["diff", GOOD, str(without)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "PyTorch gpu → not-installed" in shown
    assert "None of them explains it." in shown
    assert "matters here" not in shown


def test_better(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", BAD, GOOD]) == 0
    assert "now use the GPU" in capsys.readouterr().out


def test_the_same_file_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", GOOD, GOOD]) == 0
    assert "Nothing differs" in capsys.readouterr().out


def test_a_new_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", GOOD, WARNED]) == 1
    assert "there is a new problem" in " ".join(capsys.readouterr().out.split())


def test_verbose_lists_every_difference(capsys: pytest.CaptureFixture[str]) -> None:
    main(["diff", GOOD, WARNED, "-v"])
    assert "KERAS_BACKEND: jax → torch" in capsys.readouterr().out


@pytest.mark.slow
def test_json_obeys_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    for other in RECORDED:
        main(["diff", GOOD, str(other), "--json"])
        obeys("diff", json.loads(capsys.readouterr().out))


@pytest.mark.slow
def test_standard_input() -> None:
    with open(BAD, "rb") as bad:
        command = [sys.executable, "-m", "whygpu", "diff", GOOD, "-", "--json"]
        done = subprocess.run(command, stdin=bad, capture_output=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["after"]["name"] == "standard input"


def test_a_compressed_snapshot_is_read_also_if_every_file_may_be_run(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a file system of Windows, where each file has the permission to be run."""
    path = tmp_path / "bad.json.gz"
    path.write_bytes(gzip.compress(pathlib.Path(BAD).read_bytes()))
    path.chmod(0o755)
    assert main(["diff", GOOD, str(path)]) == 1
    assert "no longer use" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        ("", "is no snapshot: it is empty"),
        ("[]", "it is JSON of another kind"),
        ('{"schema": 1, ', "as if it were cut off"),
        ('{"schema": 1, "whygpu": "99.0"}', "was written by whygpu 99.0"),
        ('{"schema": 2}', "update whygpu"),
        ('{"schema": 1}', "damaged"),
    ],
)
def test_what_is_no_snapshot(
    content: str | None, message: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content)
    assert main(["diff", GOOD, str(path)]) == 2
    assert message in capsys.readouterr().err
    assert main(["diff", str(path), GOOD]) == 2


def test_a_folder_without_python(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", str(tmp_path), GOOD]) == 2
    assert "not a Python environment" in capsys.readouterr().err


@pytest.mark.slow
def test_an_environment_and_a_copy_of_it_elsewhere(tmp_path: pathlib.Path) -> None:
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / name], check=True)
    package = tmp_path / "two/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = package / "site-packages/example-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")
    command = [sys.executable, "-m", "whygpu", "diff", "one", "two", "--no-probe", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    named = {item["name"] for item in answer["differences"] if item["kind"] != "moment"}
    assert named == {"example"}


def test_an_older_snapshot_without_facts_that_came_later(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(pathlib.Path(GOOD).read_text())
    data["whygpu"] = "0.0.1"
    for gpu in data["driver"]["gpus"]["known"]:
        gpu.pop("memory_reserved_bytes", None)
    data["target"]["interpreter"]["known"].pop("complaints", None)
    old = tmp_path / "old.json"
    old.write_text(json.dumps(data))
    assert main(["diff", str(old), BAD]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "because of CUDA_VISIBLE_DEVICES" in shown
    assert "different versions of whygpu" in shown


def test_escape_sequences_and_secrets_of_a_hostile_snapshot(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(pathlib.Path(BAD).read_text())
    key = "ghp_" + "a8Kd02mXq7Zt" * 3
    for variable in data["environment"]["variables"]:
        variable["value"] = f"\x1b[2J{key}"
    for package in data["target"]["packages"]["known"][:30]:
        package["version"] = "1\x1b]0;title\x07"
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(data))
    for options in ([], ["-v"], ["--json"]):
        assert main(["diff", GOOD, str(hostile), *options]) in (1, 4)
        shown = capsys.readouterr().out
        assert "\x1b" not in shown
        assert key not in shown


@pytest.mark.slow
def test_a_huge_snapshot_stays_within_time_and_memory(tmp_path: pathlib.Path) -> None:
    data = json.loads(pathlib.Path(BAD).read_text())
    packages = data["target"]["packages"]["known"]
    example = packages[0]
    packages += [{**example, "name": f"nvidia-{number}"} for number in range(60_000)]
    huge = tmp_path / "huge.json"
    huge.write_text(json.dumps(data, separators=(",", ":")))
    done = bounded.whygpu("diff", GOOD, str(huge), "--json")
    assert done.code == 1
    assert "CUDA_VISIBLE_DEVICES" in json.loads(done.stdout)["headline"]


@pytest.mark.slow
def test_ctrl_c() -> None:
    command = [sys.executable, "-m", "whygpu", "diff", GOOD, "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    pipe = process.stdin.fileno()
    os.write(pipe, b"{")
    wait_until(lambda: not unread(pipe), process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode in (130, -signal.SIGINT)
    assert b"Traceback" not in error
