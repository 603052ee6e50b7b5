"""The verb plan: from words to text, JSON and exit codes."""

from __future__ import annotations

import argparse
import json
import pathlib

import pytest

from tests.machines.healthy import without_gpu
from tests.schemas import obeys
from whygpu.cli import plan
from whygpu.errors import UsageError
from whygpu.model.install_plan import TableEdition, TableUpdate
from whygpu.render.check_json import render_snapshot

MACHINES = pathlib.Path(__file__).parent.parent / "machines"

H200 = ["--python", "3.12", "--driver", "580.65.06", "--gpu", "H200", "--glibc", "2.39"]


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    return plan.run(parser.parse_args(list(words)))


def test_a_plan_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tensorflow", *H200, "--color", "never") == 0
    assert capsys.readouterr().out.startswith("✓ TensorFlow 2.")


def test_no_plan_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tensorflow==2.12", *H200) == 1
    assert "Possible with:" in capsys.readouterr().out


def test_a_snapshot_is_planned_for() -> None:
    assert run("tensorflow", "--snapshot", str(MACHINES / "h200-healthy-keras-jax.json")) == 0


def test_missing_facts_end_with_4(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "machine.json"
    path.write_text(render_snapshot(without_gpu()), encoding="utf-8")
    assert run("tensorflow", "--snapshot", str(path)) == 4
    assert "none was found" in capsys.readouterr().out
    assert run("tensorflow", "--snapshot", str(path), "--gpu", "T4") == 4
    assert run("tensorflow", "--snapshot", str(path), "--gpu", "T4", "--driver", "535.54") == 0


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    run("tensorflow", "jax", *H200, "--json")
    data = json.loads(capsys.readouterr().out)
    versions = [package["version"] for package in data["plan"]["packages"]]
    assert any(version.count(".") == 3 for version in versions), "NVIDIA's look like addresses"
    assert not any("removed" in version for version in versions)
    assert data["machine"]["python"] == {"known": "3.12", "source": "--python"}
    assert data["plan"] is not None
    assert {item["name"] for item in data["candidates"]} >= {"tensorflow", "jax"}


def test_why_not_judges_one_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--why-not", "tensorflow==2.12", *H200) == 1
    assert "✗  python" in capsys.readouterr().out


def test_the_matrix_as_json_is_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("torch", "--matrix", "--json", *H200) == 0
    assert json.loads(capsys.readouterr().out)["candidates"]


def test_the_matrix_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    run("tensorflow", *H200, "--matrix", "--color", "never")
    assert capsys.readouterr().out.startswith("release")


@pytest.mark.slow
def test_this_machine_is_looked_at_where_options_say_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("tensorflow", "--json") in (0, 1, 4)
    machine = json.loads(capsys.readouterr().out)["machine"]
    assert "known" in machine["python"]
    assert "known" in machine["platform"]


def test_an_interpreter_that_does_not_start_is_unknown(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert run("tensorflow", "--python", str(broken), "--json") == 4
    assert "does not start" in json.loads(capsys.readouterr().out)["machine"]["python"]["unknown"]


@pytest.mark.parametrize(
    "words",
    [
        [*H200, "tensroflow"],
        ["--gpu", "Voodoo 2"],
        ["--python", "no/such/python"],
        ["--snapshot", "no/such/file"],
        [*H200, "tensorflow==99"],
    ],
)
def test_wrong_usage(words: list[str]) -> None:
    with pytest.raises(UsageError):
        run(*words)


def test_a_file_is_judged(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.6.0+cpu\njax[cuda12]==0.7.2\n-e .\n", encoding="utf-8")
    assert run("--from", str(path), *H200, "--color", "never") == 1
    text = capsys.readouterr().out
    assert text.startswith("✗")
    assert "instead of this line, write:\n       torch==2.6.0\n" in text
    assert "project that it installs were not read" in " ".join(text.split())
    assert run("--from", str(path), *H200, "--json") == 1
    data = json.loads(capsys.readouterr().out)
    obeys("plan-from", data)
    assert [item["ability"] for item in data["requirements"]] == ["cannot", "can"]
    assert [item["line"] for item in data["unread"]] == [3]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("torch==2.6.0", 0, "can use that of this machine"),
        ("requests", 0, "names no framework"),
        ("torch==99", 4, "cannot tell whether torch can use the GPU"),
        ("torch==2.6.0\n-e .", 4, "not everything was checked"),
    ],
)
def test_the_headline_and_exit_code_of_a_file(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], text: str, code: int, words: str
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text, encoding="utf-8")
    assert run("--from", str(path), *H200, "--color", "never") == code
    assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "words",
    [
        ["--from", "no/such/requirements.txt"],
        ["--from", "setup.py"],
        ["--from", "requirements.txt", "torch"],
        ["--from", "requirements.txt", "--matrix"],
    ],
)
def test_a_file_that_cannot_be_judged_is_wrong_usage(words: list[str]) -> None:
    with pytest.raises(UsageError):
        run(*words, *H200)


@pytest.mark.parametrize(
    ("path", "problem"),
    [("absent", "No such file or directory"), (".", "is a folder; name a file in it, such as")],
)
def test_a_wrong_path_is_not_called_a_wrong_kind_of_file(path: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        run("--from", path, *H200)


def test_a_file_in_place_of_a_framework_is_met_with_its_option(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "my requirements.txt"
    path.write_text("jax\n", encoding="utf-8")
    with pytest.raises(UsageError, match=f"`whygpu plan --from '{path}'` reads it"):
        run(str(path), *H200)


def test_an_update_is_made_first_and_its_changes_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edition = TableEdition("2030-01-02", "updated")
    new = tuple(f"torch 9.{minor}" for minor in range(10))
    done = TableUpdate(edition, edition, "https://example.org/simple", "x", new, ("jax 1.0",), ())
    monkeypatch.setattr("whygpu.api.release_table.update_releases", lambda show: done)
    assert run("torch", "--update", *H200) == 0
    shown = capsys.readouterr()
    assert "the release table is now of 2030-01-02" in shown.err
    assert "torch 9.9 and 2 more" in shown.err
    assert "no longer on the index: jax 1.0" in shown.err
    assert "Release table of" in shown.out


def test_a_plan_that_may_not_work_comes_after_the_change_that_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "plan torch --python 3.11 --driver 470.256.02 --platform linux_x86_64 --glibc 2.31"
    assert run(*words.split()[1:], "--gpu", "Tesla K80") == 4
    printed = capsys.readouterr().out
    assert "No such reports with" in printed
    assert 0 < printed.index("Python 3.10: torch 1.12.1") < printed.index("pip install")
