"""The command line: verbs, exit codes, and what each failure becomes."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types
from typing import Any

import pytest

from tests.kit import machine
from whygpu.cli import main as cli
from whygpu.model.codec import encode
from whygpu.version import VERSION


@pytest.fixture
def saved(tmp_path: pathlib.Path) -> Any:
    """Saves a machine described in TOML as a snapshot file."""

    def save(toml: str = "") -> str:
        path = tmp_path / "machine.json"
        path.write_text(json.dumps(encode(machine(toml))))
        return str(path)

    return save


@pytest.mark.parametrize(
    ("toml", "code"),
    [
        ("", 0),
        ('start = "no-gpu"', 0),
        ('only = ["torch"]\n[target.frameworks.torch.build]\nkind = "cpu"', 1),
        ('[target.frameworks.torch.build]\nkind = {unknown = "permission denied"}', 4),
    ],
    ids=["healthy", "no GPU", "found", "cannot tell"],
)
def test_the_exit_code_says_what_was_found(
    saved: Any, capsys: pytest.CaptureFixture[str], toml: str, code: int
) -> None:
    if code == 1:
        toml += "\n[probes.torch]\ndevices = []\noperations = []"
    assert cli.main(["check", "--snapshot", saved(toml)]) == code, capsys.readouterr().out


def test_check_is_the_default_verb(saved: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--snapshot", saved()]) == 0
    plain = capsys.readouterr().out
    assert cli.main(["check", "--snapshot", saved()]) == 0
    assert capsys.readouterr().out == plain


def test_the_output_of_check_can_be_checked_again(
    saved: Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["check", "--json", "--snapshot", saved()])
    report = capsys.readouterr().out
    again = tmp_path / "report.json"
    again.write_text(report)
    cli.main(["check", "--json", "--snapshot", str(again)])
    assert capsys.readouterr().out == report


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot read"),
        ("", "is no snapshot"),
        ("{", "is no snapshot"),
        ("[]", "expected schema 1"),
        ('{"schema": 99}', "expected schema 1, received 99"),
        ('{"schema": 1}', "damaged snapshot"),
        (b"\xff\xfe\x00", "is no snapshot"),
    ],
)
def test_a_bad_snapshot_is_wrong_usage_and_says_why(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    content: str | bytes | None,
    complaint: str,
) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert cli.main(["check", "--snapshot", str(path)]) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("words", [["--frobnicate"], ["check", "--timeout", "-1"], ["dance"]])
def test_wrong_words_are_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert "usage: whygpu" in capsys.readouterr().err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"whygpu {VERSION}\n"


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([verb, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"  whygpu {verb}" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.fixture
def a_verb_that(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A verb, made for the test, that does what it is told."""

    def install(action: Any) -> None:
        verb = types.SimpleNamespace(
            __doc__="A verb.", EXAMPLES="", add_arguments=lambda parser: None, run=action
        )
        monkeypatch.setitem(cli.VERBS, "made-up", verb)

    return install


def test_a_bug_leaves_a_report_without_private_data(
    a_verb_that: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: object) -> int:
        raise ZeroDivisionError("token=abcdefgh12345678")

    a_verb_that(fail)
    assert cli.main(["made-up"]) == 3
    said = capsys.readouterr().err
    path = pathlib.Path(said.splitlines()[-1].strip())
    text = path.read_text()
    path.unlink()
    assert "ZeroDivisionError" in text
    assert f"whygpu {VERSION}" in text
    assert "def fail" in text or "in fail" in text
    assert "abcdefgh12345678" not in text


def test_an_interrupt_is_clean(a_verb_that: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(options: object) -> int:
        raise KeyboardInterrupt

    a_verb_that(interrupt)
    assert cli.main(["made-up"]) == 130
    assert capsys.readouterr().err == "\nwhygpu: interrupted\n"


def test_ctrl_c_while_a_framework_hangs_leaves_nothing_behind(tmp_path: pathlib.Path) -> None:
    """A real interrupt, with a framework whose import never ends."""
    site = tmp_path / "site"
    (site / "torch").mkdir(parents=True)
    note = tmp_path / "pid"
    (site / "torch" / "__init__.py").write_text(
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)\n"
    )
    (site / "torch-2.13.0.dist-info").mkdir()
    (site / "torch-2.13.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "whygpu", "check", "--python", sys.executable],
        env={**os.environ, "PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < deadline, process.communicate(timeout=1)
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_closed_pipe_is_no_bug(saved: Any) -> None:
    command = f"{sys.executable} -m whygpu check --json --snapshot {saved()} | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""


def test_rule_prints_the_page_and_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rule", "wg301"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# WG301 cpu-only-build\n")
    assert "## Fix" in page
    assert cli.main(["rule"]) == 0
    assert "WG301  cpu-only-build" in capsys.readouterr().out
    assert cli.main(["rule", "--json", "cpu-only-build"]) == 0
    assert json.loads(capsys.readouterr().out)["causes"][0]["code"] == "WG301"


def test_an_unknown_rule_says_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rule", "cpu-only-biuld"]) == 2
    assert "did you mean cpu-only-build?" in capsys.readouterr().err
