"""`whygpu history`, and what it adds to check and run."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.kit import machine
from tests.schemas import obeys
from tests.test_recorded_machines import judged
from tests.unprivileged import unprivileged
from whygpu import diagnose
from whygpu.api import past_runs
from whygpu.cli.main import main
from whygpu.cli.remembering import after_check
from whygpu.host.state_folder import is_recording, state_folder
from whygpu.model.observed import Known
from whygpu.render.history_text import render_since

pytestmark = pytest.mark.slow

BROKEN_TORCH = "raise ImportError('broken on purpose')\n"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "whygpu"


@pytest.fixture
def recording() -> None:
    past_runs.record_history(True)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whygpu", *words], capture_output=True, text=True, check=False
    )


def test_nothing_is_recorded_unless_asked_for(own_folder: pathlib.Path) -> None:
    assert not is_recording()
    assert main(["check", "--no-probe", "--python", sys.executable]) in (0, 1, 4)
    assert not own_folder.exists()


def test_on_show_off_clear(own_folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "on"]) == 0
    assert main(["check", "--no-probe", "--python", sys.executable]) in (0, 1, 4)
    assert main(["history", "off"]) == 0
    assert main(["check", "--no-probe", "--python", sys.executable]) in (0, 1, 4)
    capsys.readouterr()
    assert main(["history", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    obeys("history", shown)
    assert [item["verb"] for item in shown["runs"]] == ["check"]
    assert not shown["recording"]
    assert main(["history"]) == 0
    assert "1 record in" in capsys.readouterr().out
    assert main(["history", "clear"]) == 0
    assert "There is no record in" in capsys.readouterr().out
    assert not (own_folder / "history.sqlite3").exists()


@pytest.mark.usefixtures("recording")
def test_a_record_is_a_snapshot_that_check_and_diff_read(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past_runs.remember_check(judged("h200-healthy-keras-jax"))
    assert main(["history", "export", "1"]) == 0
    saved = tmp_path / "one.json"
    saved.write_text(capsys.readouterr().out)
    assert main(["check", "--snapshot", str(saved)]) == 0
    assert main(["diff", str(saved), str(saved)]) == 0


@pytest.mark.usefixtures("recording")
def test_a_record_holds_no_private_data() -> None:
    report = judged("h200-healthy-keras-jax")
    home = os.path.expanduser("~")
    variables = tuple(
        item._replace(value=f"{home}/lib") for item in report.snapshot.environment.variables
    )
    environment = report.snapshot.environment._replace(variables=variables)
    past_runs.remember_check(
        report._replace(snapshot=report.snapshot._replace(environment=environment))
    )
    recorded = past_runs.recorded_snapshot(1)
    assert {item.value for item in recorded.environment.variables} == {"~/lib"}


@pytest.mark.usefixtures("recording")
def test_a_failure_names_the_last_good_check_and_what_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    past_runs.remember_check(judged("h200-healthy-keras-jax"))
    past_runs.remember_check(judged("h200-memory-held"))
    after_check(judged("h200-hidden-empty"), silent=False, color="never")
    shown = " ".join(capsys.readouterr().out.split())
    assert "The last good check was on" in shown
    assert "CUDA_VISIBLE_DEVICES (not set → empty): with it, WG401 appears" in shown
    assert [item.good for item in past_runs.history().runs] == [False, True, True]


@pytest.mark.usefixtures("recording")
def test_a_check_with_an_error_is_not_good_although_the_gpu_is_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    legacy = '[environment.variables.TF_USE_LEGACY_KERAS]\nvalue = "1"'
    past_runs.remember_check(diagnose(machine()))
    for _ in range(2):
        worse = diagnose(machine(legacy))
        assert worse.verdict == "gpu"
        after_check(worse, silent=False, color="never")
        shown = " ".join(capsys.readouterr().out.split())
        assert "TF_USE_LEGACY_KERAS (not set → 1): with it, WG604 appears" in shown
    assert [item.good for item in past_runs.history().runs] == [False, False, True]


@pytest.mark.usefixtures("recording")
def test_a_gpu_that_is_gone_is_said_once_and_then_the_machine_has_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    past_runs.remember_check(diagnose(machine()))
    shown = []
    for _ in range(2):
        after_check(diagnose(machine('start = "no-gpu"')), silent=False, color="never")
        shown.append(" ".join(capsys.readouterr().out.split()))
    assert "The last good check was on" in shown[0]
    assert "the driver (580.65.06 → missing)" in shown[0]
    assert shown[1] == ""


@pytest.mark.usefixtures("recording")
def test_what_explains_several_faults_is_named_once() -> None:
    past_runs.remember_check(judged("h200-healthy-keras-jax"))
    since = past_runs.since_good_check(judged("h200-hidden-empty"))
    assert since is not None
    (reason,) = (each for each in since.answer.reasons if each.sets)
    assert reason.finding is not None
    other = reason._replace(finding=reason.finding._replace(code="WG999"))
    answer = since.answer._replace(reasons=(reason, other, reason))
    shown = render_since(since._replace(answer=answer), width=200, color=False)
    assert shown.count("CUDA_VISIBLE_DEVICES (not set") == 1
    assert "with it, WG401 and WG999 appear" in shown


@pytest.mark.usefixtures("recording")
def test_without_a_good_check_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        after_check(judged("h200-hidden-empty"), silent=False, color="never")
    assert capsys.readouterr().out == ""
    assert len(past_runs.history().runs) == 2


def test_a_framework_that_was_fine_breaks(tmp_path: pathlib.Path) -> None:
    """The whole way, in an environment in which a package is installed between two checks."""
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    assert command("history", "on").returncode == 0
    assert command("check", "--python", str(environment)).returncode == 0
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text(BROKEN_TORCH)
    (site / "torch-9.9.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n"
    (site / "torch-9.9.dist-info/METADATA").write_text(metadata)
    done = command("check", "--python", str(environment))
    assert done.returncode == 1
    shown = " ".join(done.stdout.split())
    assert "The last good check was on" in shown
    assert "torch (not installed → 9.9)" in shown


def test_a_run_is_recorded_if_it_fails() -> None:
    assert command("history", "on").returncode == 0
    done = command("run", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.returncode == 3
    (recorded,) = past_runs.history().runs
    assert (recorded.verb, recorded.exit_code, recorded.good) == ("run", 3, False)
    assert "SystemExit" not in recorded.program


def test_a_program_of_one_word_is_recorded(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "start"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    command("history", "on")
    done = command("run", str(program))
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    (recorded,) = past_runs.history().runs
    assert recorded.program == "start"


def test_a_program_without_a_framework_that_works_is_not_recorded() -> None:
    command("history", "on")
    assert command("run", "--", sys.executable, "-c", "").returncode == 0
    assert past_runs.history().runs == ()


@pytest.mark.parametrize("content", [b"no database", b""])
def test_a_damaged_history_is_a_note(content: bytes, own_folder: pathlib.Path) -> None:
    command("history", "on")
    (own_folder / "history.sqlite3").write_bytes(content)
    done = command("check", "--no-probe", "--python", sys.executable, "--json")
    assert done.returncode in (0, 1, 4)
    assert json.loads(done.stdout)["verdict"]
    assert ("whygpu history clear" in done.stderr) == bool(content)
    if content:
        assert command("history").returncode == 2
        assert command("history", "clear").returncode == 0
    assert command("history").returncode == 0


def test_on_and_off_say_what_they_did_if_the_history_is_damaged(
    own_folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_folder.mkdir(parents=True)
    (own_folder / "history.sqlite3").write_bytes(b"no database")
    assert main(["history", "on"]) == 2
    assert not is_recording()
    assert "history.sqlite3 is damaged" in capsys.readouterr().err
    (own_folder / "history.on").touch()
    assert main(["history", "off"]) == 2
    assert not is_recording()
    assert "recording is off now, but" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_a_note(own_folder: pathlib.Path) -> None:
    command("history", "on")
    own_folder.chmod(0o500)

    def restricted(*words: str) -> subprocess.CompletedProcess[str]:
        line = [*unprivileged(), sys.executable, "-m", "whygpu", *words]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    try:
        done = restricted("check", "--no-probe", "--python", sys.executable, "--json")
        assert done.returncode in (0, 1, 4)
        assert "the history cannot be used" in done.stderr
        assert restricted("history", "off").returncode == 2
    finally:
        own_folder.chmod(0o700)


def test_a_history_that_cannot_be_written_can_be_read(own_folder: pathlib.Path) -> None:
    past_runs.record_history(True)
    past_runs.remember_check(judged("h200-healthy-keras-jax"))
    own_folder.chmod(0o500)
    (own_folder / "history.sqlite3").chmod(0o400)
    line = [*unprivileged(), sys.executable, "-m", "whygpu", "history"]
    try:
        done = subprocess.run([*line, "--json"], capture_output=True, text=True, check=False)
        exported = subprocess.run([*line, "export", "1"], capture_output=True, check=False)
    finally:
        own_folder.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert [item["number"] for item in json.loads(done.stdout)["runs"]] == [1]
    assert json.loads(exported.stdout)["schema"] == 1


@pytest.mark.usefixtures("recording")
def test_the_environment_to_compare_is_the_one_that_was_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = judged("h200-healthy-keras-jax")
    past_runs.remember_check(good)
    system = good.snapshot.system._replace(kernel="6.0.0")
    later = good._replace(verdict="broken", snapshot=good.snapshot._replace(system=system))
    after_check(later, silent=False, color="never")
    shown = " ".join(capsys.readouterr().out.split())
    assert "`whygpu history export 1 > good.json`" in shown
    assert "`whygpu diff good.json ~/venv/bin/python`" in shown


@pytest.mark.usefixtures("recording")
def test_a_good_check_of_another_machine_is_called_that(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of a cluster share the home of a user."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(past_runs, "_this_machine", lambda: "login")
        past_runs.remember_check(judged("h200-healthy-keras-jax"))
    after_check(judged("h200-hidden-empty"), silent=False, color="never")
    shown = " ".join(capsys.readouterr().out.split())
    assert "on another machine or in another container. This is different here, and it is" in shown
    assert "ince then" not in shown
    main(["history"])
    assert "on another machine" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("recording")
def test_a_machine_without_a_gpu_is_no_example_for_one_with_a_gpu(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = judged("h200-healthy-keras-jax")
    past_runs.remember_check(good._replace(verdict="no-gpu"))
    bad = judged("h200-hidden-empty")
    after_check(bad, silent=False, color="never")
    assert capsys.readouterr().out == ""
    after_check(bad._replace(verdict="broken"), silent=False, color="never")
    assert "The last good check was on" in capsys.readouterr().out


@pytest.mark.usefixtures("recording")
def test_environments_are_named_if_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    report = judged("h200-healthy-keras-jax")
    past_runs.remember_check(report)
    main(["history"])
    assert "~/venv/bin/python" not in capsys.readouterr().out
    target = report.snapshot.target
    assert isinstance(target.interpreter, Known)
    other = target.interpreter.value._replace(path="/opt/other/bin/python")
    target = target._replace(interpreter=Known(other, "test"))
    past_runs.remember_check(report._replace(snapshot=report.snapshot._replace(target=target)))
    main(["history"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "in ~/venv/bin/python" in shown
    assert "in /opt/other/bin/python" in shown


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["/usr/bin/python3", "train.py", "--key", "secret"], "python3 {here}/train.py"),
        (["python", "../b/train.py"], "python {above}/b/train.py"),
        (["python", "-m", "project.train", "x.py"], "python -m project.train"),
        (["./start.sh"], "start.sh"),
    ],
)
def test_a_script_is_known_by_its_folder(
    words: list[str], program: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert past_runs._program(words) == program.format(here=tmp_path / "a", above=tmp_path)


def test_where_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert state_folder({"XDG_STATE_HOME": "/x"}, "linux") == "/x/whygpu"
    assert state_folder({"XDG_STATE_HOME": "x"}, "linux") == "/home/me/.local/state/whygpu"
    assert state_folder({}, "linux") == "/home/me/.local/state/whygpu"
    assert state_folder({}, "darwin") == "/home/me/Library/Application Support/whygpu"
    assert state_folder({"LOCALAPPDATA": "/local"}, "win32") == "/local/whygpu"


def test_a_python_without_sqlite() -> None:
    command("history", "on")
    code = "import sys; sys.modules['sqlite3'] = None; from whygpu.cli.main import main\n"

    def without(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", f"{code}sys.exit(main({list(words)!r}))"]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    done = without("check", "--no-probe", "--python", sys.executable)
    assert done.returncode in (0, 1, 4)
    assert "no module sqlite3" in done.stderr
    assert without("history").returncode == 2
