"""The command line: verbs, exit codes, and what each failure becomes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import types
from typing import Any

import pytest

from tests.cases import each
from tests.kit import machine
from tests.patience import PATIENCE
from tests.schemas import obeys
from whygpu.api import pages
from whygpu.causes import catalogue
from whygpu.cli import help_page, output, parser
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
        ("2024-05-03 loss: 0.3\n", "or a log (`whygpu explain` reads logs)"),
        ("[]", "JSON of another kind"),
        ('{"schema": 99}', "expected schema 1, received 99"),
        ('{"schema": 1}', "damaged snapshot"),
        (b"\xff\xfe\x00", "is no snapshot"),
        ("[" * 200_000, "is no snapshot"),
        ('{"schema": ' + "9" * 5000 + "}", "is no snapshot"),
        ('{"schema": NaN}', "expected schema 1, received NaN"),
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


@pytest.mark.parametrize("words", [["--frobnicate"], ["check", "--timeout", "soon"]])
def test_wrong_words_are_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert "usage: whygpu" in capsys.readouterr().err


def test_a_number_that_cannot_be_meant_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--timeout", "-1"]) == 2
    assert "--timeout -1: expected a number of seconds between" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("dance", "no such verb: 'dance'; expected whygpu check, compare, completion"),
        ("memroy", "no such verb: 'memroy'; did you mean `whygpu memory`?"),
        ("out/train.log", "  whygpu explain out/train.log "),
        ("my train.py", "  whygpu run -- python 'my train.py' "),
        ("wg203", "  whygpu rule wg203 "),
        ("/opt/env/bin/python3.11", "  whygpu run -- /opt/env/bin/python3.11 ..."),
        ("model.keras", "  whygpu compare model.keras "),
        ("requirements.txt", "  whygpu plan --from requirements.txt "),
        ("machine.json", "  whygpu check --snapshot machine.json "),
        ("a notebook.ipynb", "  whygpu explain 'a notebook.ipynb' "),
        (sys.prefix, "  whygpu check --python "),
        (os.path.dirname(__file__), "  whygpu lint "),
        ("PyTorch", "  whygpu plan PyTorch "),
        ("torch>=2.4", "  whygpu plan 'torch>=2.4' "),
        ("no GPU was found", "  whygpu explain 'no GPU was found' "),
    ],
)
def test_a_word_that_is_no_verb_is_met_with_what_it_was_meant_for(
    word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([word]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["check", "--pyton", "x"], "did you mean --python?"),
        (["check", "--pyton=x"], "did you mean --python?"),
        (["--jsn"], "did you mean --json?"),
        (["memory", "find", "--margn", "5%", "x.py:f"], "did you mean --margin?"),
        (["check", "train.log"], "did you mean `whygpu explain train.log`?"),
    ],
)
def test_an_unknown_option_is_met_with_the_one_it_was_meant_for(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert meant in capsys.readouterr().err


def test_nothing_is_suggested_for_an_option_that_is_like_no_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["check", "--frobnicate"])
    assert "did you mean" not in capsys.readouterr().err


def test_help_is_a_verb_too(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> str:
        with contextlib.suppress(SystemExit):
            assert cli.main(words) == 0
        return capsys.readouterr().out

    assert printed("help") == printed("--help") != ""
    assert printed("help", "check") == printed("check", "--help") != ""
    assert printed("help", "memory", "find") == printed("memory", "find", "--help") != ""
    assert cli.main(["help", "chek"]) == 2
    assert "did you mean `whygpu check`?" in capsys.readouterr().err


@each(
    ("words", "best"),
    [
        ("out of memory", "oom-model-too-big"),
        ("CUDA out of memory", "oom-model-too-big"),
        ("no kernel image", "compute-capability-too-old"),
        ("libcusolver", "library-path-conflict"),  # only the examples have it
    ],
)
def test_rule_lists_the_best_match_first(words: str, best: str) -> None:
    assert pages.search(words)[0].slug == best


def test_words_that_are_on_no_page_may_be_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rule", "Purple elephants failed"]) == 2
    assert "whygpu explain 'Purple elephants failed'" in capsys.readouterr().err


def test_rule_searches_for_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rule", "cuDNN"]) == 0
    found = capsys.readouterr().out.splitlines()
    assert found[0].startswith("WG202  cudnn-missing ")
    assert 3 < len(found) < len(catalogue())
    assert cli.main(["rule", "cudnn-missing"]) == 0
    assert capsys.readouterr().out.startswith("# WG202 cudnn-missing\n")
    assert cli.main(["rule", "--json", "cudnn"]) == 0
    assert len(json.loads(capsys.readouterr().out)["causes"]) == len(found)
    for nothing in ("xyzzy", " "):
        assert cli.main(["rule", nothing]) == 2
        assert "there is no cause" in capsys.readouterr().err


LONG = "dance " * 30


def test_messages_are_wrapped_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"/{'x' * 70}/y"
    command = "`whygpu run -- python train.py`"
    indented = f"  whygpu {'--long ' * 10}"
    monkeypatch.setenv("COLUMNS", "50")
    output.say(LONG)
    assert len(capsys.readouterr().err.splitlines()) == 1
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output.say(f"{LONG}{path} {LONG}{command}\n{indented}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 5
    assert all(len(line) <= 50 for line in lines if line not in (path, indented))
    assert path in lines
    assert indented in lines
    assert sum(command in line for line in lines) == 1
    assert len(help_page.help_page().splitlines()[0]) <= 50


@pytest.mark.parametrize("columns", ["", "0", "wide", "-3", "9" * 30, "٨٠"])
def test_columns_that_are_no_width_are_not_used(
    monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.width() == 80
    assert help_page.columns() == 78


@pytest.mark.parametrize(
    ("variables", "colored"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": ""}, False),
    ],
)
def test_colour_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colored: bool
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert output.use_color("auto") is colored


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"whygpu {VERSION}\n"


def test_the_list_of_subverbs_begins_with_a_subverb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["fleet", "--help"])
    first = capsys.readouterr().out.partition("subverbs:\n")[2].split()[0]
    assert first == "report"


def test_the_help_fits_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


VERBS_AND_SUBVERBS = (
    *parser.VERBS,
    *(
        f"{verb} {subverb}"
        for verb in parser.VERBS
        for subverb in getattr(parser.VERBS[verb], "SUBVERBS", ())
    ),
)


@pytest.mark.parametrize("verb", VERBS_AND_SUBVERBS)
def test_every_verb_has_help_with_examples_and_exit_codes(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([*verb.split(), "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"  whygpu {verb}" in text
    assert max(map(len, text.splitlines())) <= 80
    codes = re.findall(r"(?m)^  (\S+) +\S", text.partition("\nexit codes:\n")[2])
    usual = {"125", "126", "127"} if verb == "run" else {"0", "2", "3"}
    assert usual <= set(codes)


@pytest.fixture
def a_verb_that(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A verb, made for the test, that does what it is told."""

    def install(action: Any) -> None:
        verb = types.SimpleNamespace(
            __doc__="A verb.",
            EXAMPLES="",
            EXIT_CODES={},
            add_arguments=lambda parser: None,
            run=action,
        )
        monkeypatch.setitem(parser.VERBS, "made-up", verb)

    return install


def test_a_bug_leaves_a_report_without_private_data(
    a_verb_that: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: object) -> int:
        raise ZeroDivisionError("token=abcdefgh12345678 \udcff")

    a_verb_that(fail)
    assert cli.main(["made-up"]) == 3
    said = capsys.readouterr().err
    path = pathlib.Path(said.splitlines()[-1].strip())
    text = path.read_text()
    path.unlink()
    assert "ZeroDivisionError" in text
    assert f"whygpu {VERSION}" in text
    assert "def fail" in text or "in fail" in text
    assert "abcdefgh12345678" not in text + said


def raise_in_thread(options: object) -> int:
    thread = threading.Thread(target=lambda: [][1])
    thread.start()
    thread.join()
    return 0


def recurse(options: object) -> int:
    return recurse(options)


def take_all_memory(options: object) -> int:
    raise MemoryError


def library_exits(options: object) -> int:
    sys.exit(1)


@pytest.mark.parametrize("crash", [raise_in_thread, recurse, take_all_memory, library_exits])
def test_no_crash_has_the_exit_code_of_a_finding(
    a_verb_that: Any, crash: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    a_verb_that(crash)
    assert cli.main(["made-up"]) == 3
    said = capsys.readouterr().err
    pathlib.Path(said.splitlines()[-1].strip()).unlink()
    assert "this is a bug in whygpu" in said


def test_the_list_of_verbs_is_that_of_their_modules() -> None:
    assert list(parser.VERBS) == list(help_page.SUMMARIES)
    for name, summary in help_page.SUMMARIES.items():
        assert parser.VERBS[name].__doc__.partition("\n")[0] == summary


def test_an_interrupt_is_clean(a_verb_that: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(options: object) -> int:
        raise KeyboardInterrupt

    a_verb_that(interrupt)
    assert cli.main(["made-up"]) == 130
    assert capsys.readouterr().err == "\nwhygpu: interrupted\n"


def test_a_snapshot_may_come_from_a_windows_shell(
    saved: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pathlib.Path(saved())
    path.write_bytes(path.read_text().encode("utf-16"))
    assert cli.main(["check", "--snapshot", str(path)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("words", [["--snapshot", ""], ["--python", ""]])
def test_an_empty_name_is_not_taken_for_none(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Else `--snapshot "$UNSET"` would report on another machine than the one that is meant."""
    assert cli.main(["check", *words]) == 2
    assert capsys.readouterr().out == ""


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m whygpu {command}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_its_answer(saved: Any) -> None:
    done = shell(f"check --snapshot {shlex.quote(saved())}", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.startswith("+ ")
    assert done.stdout.isascii()


@pytest.mark.slow
def test_json_is_for_any_terminal(tmp_path: pathlib.Path, saved: Any) -> None:
    path = saved('[driver.gpus.0]\nname = "GPU der Größe 1"')
    done = shell(f"check --json --snapshot {shlex.quote(path)}", PYTHONIOENCODING="ascii")
    assert "Größe" in json.loads(done.stdout)["snapshot"]["driver"]["gpus"]["known"][0]["name"]


@pytest.mark.slow
def test_pages_are_there_when_python_drops_docstrings() -> None:
    done = shell("rule WG203", PYTHONOPTIMIZE="2")
    assert done.stdout.startswith("# WG203 library-path-conflict\n")
    assert done.stdout == shell("rule WG203").stdout


def test_rule_prints_the_page_and_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rule", "wg301"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# WG301 cpu-only-build\n")
    assert "## Fix" in page
    assert cli.main(["rule"]) == 0
    assert "WG301  cpu-only-build" in capsys.readouterr().out
    assert cli.main(["rule", "--json", "cpu-only-build"]) == 0
    assert json.loads(capsys.readouterr().out)["causes"][0]["code"] == "WG301"


def test_a_page_fits_a_terminal_without_colour(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.main(["rule", "WG203"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    prose = [line for line in text.partition("## Sources")[0].splitlines() if " " in line.strip()]
    assert max(map(len, prose)) <= 60


def test_a_page_says_what_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rule", "WG401"]) == 0
    text = capsys.readouterr().out.partition("## What is proven\n")[2]
    assert "NVIDIA H200" in text
    assert 'Remedy "Show every GPU": carried out, and the cause is gone.' in text
    assert cli.main(["rule", "--json", "WG401"]) == 0
    data = json.loads(capsys.readouterr().out)
    obeys("rule", data)
    (entry,) = data["causes"]
    assert all(f"- {line}" in text for line in entry["proofs"])


def test_an_unknown_rule_says_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rule", "cpu-only-biuld"]) == 2
    assert "did you mean cpu-only-build?" in capsys.readouterr().err
