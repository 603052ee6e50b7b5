"""Hostile names, sources and streams: no verb obeys them, repeats a secret or crashes."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.test_output import OURS, SECRET, assert_harmless
from tests.kit import machine
from tests.patience import PATIENCE
from whygpu.cli import main as cli
from whygpu.model.codec import encode
from whygpu.model.outside_text import one_line

NAME = "x\x1b]0;owned\x07\x9b31m\rfine\u202e"
SOURCE = (
    "import tensorflow as tf\n"
    f"tf.config.set_memory_growth('{SECRET}', True)  # \x1b[8m \x9b31m \u202e\n"
)
LOG = (
    f"\x9d0;owned\x9c Could not load dynamic library 'libcudart.so.11.0\x1b[8m\u202e'; dlerror: "
    f"libcudart.so.11.0: cannot open shared object file \x9b31m {SECRET}\n"
    "Skipping registering GPU devices...\n"
)
PROGRAM = f"""
def breaks(batch_size=1):
    raise KeyError("\\x1b]0;owned\\x07 \\x9b31m \\u202e \\udc9b {SECRET}")
"""


@pytest.fixture
def outside(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder in which everything is hostile."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{NAME}.py").write_text(SOURCE)
    (tmp_path / f"{NAME}.log").write_text(LOG)
    (tmp_path / "program.py").write_text(PROGRAM)
    planted = machine(f'[driver.gpus.0]\nname = "GPU \\u001b[8m \\u009b31m \\u202e {SECRET}"')
    (tmp_path / f"{NAME}.json").write_text(json.dumps(encode(planted)))
    (tmp_path / "broken.json").write_text(f'{{"schema": "\\u001b[8m {SECRET}"}}')
    return tmp_path


COMMANDS: tuple[tuple[str, ...], ...] = (
    *(("lint", "."), ("lint", "-v", "--color", "always", "."), ("lint", "--json", ".")),
    *(("lint", "--sarif", "."), ("lint", "--github", "."), ("lint", f"{NAME}.py")),
    *(("lint", f"no {NAME}.py"), ("lint", "--select", NAME), ("lint", "--tensorflow", NAME)),
    *(("explain", f"{NAME}.log"), ("explain", "--json", f"{NAME}.log")),
    *(("explain", f"{NAME}.log", f"no {NAME}"), ("explain", "--json", f"{NAME}.log", "-v")),
    ("explain", "--color", "always", "-v", f"{NAME}.log"),
    *(("check", "--snapshot", f"{NAME}.json"), ("check", "--json", "--snapshot", f"{NAME}.json")),
    *(("check", "-v", "--snapshot", f"{NAME}.json"), ("check", "--snapshot", "broken.json")),
    *(("check", "--snapshot", NAME), ("check", "--python", NAME), ("snapshot", "--python", NAME)),
    *(("memory", "--snapshot", f"{NAME}.json"), ("memory", "--json", "--snapshot", f"{NAME}.json")),
    ("memory", "--gpu", NAME, "--snapshot", f"{NAME}.json"),
    ("memory", "estimate", "program.py:breaks", "--limit", "1GiB", "--python", sys.executable),
    ("memory", "estimate", "program.py:breaks", "--json", "--python", sys.executable),
    ("memory", "estimate", f"{NAME}.keras", "--limit", NAME),
    ("memory", "find", "program.py:breaks", "--device", "cpu", "--python", sys.executable),
    (
        "memory",
        "find",
        "program.py:breaks",
        "--json",
        "--device",
        "cpu",
        "--python",
        sys.executable,
    ),
    *(("plan", "--snapshot", f"{NAME}.json"), ("plan", "--json", "--snapshot", f"{NAME}.json")),
    *(
        ("plan", NAME),
        ("plan", "--gpu", NAME),
        ("plan", "--driver", NAME),
        ("plan", "--python", NAME),
    ),
    *(("rule", NAME), (NAME,), (f"{NAME}.log",), ("--" + NAME,), ("check", "--timeout", NAME)),
    *(("compare", f"{NAME}.py"), ("compare", "program.py:breaks", "--lanes", NAME)),
    ("run", "--dry-run", "--", sys.executable, "-c", NAME, SECRET),
    ("run", "--dry-run", "--json", "--", sys.executable, "-c", NAME, SECRET),
    *(("run", "--device", NAME, "--", "true"), ("run", "--", f"no-such-command-{NAME}")),
    *(("run", "--report", f"no/{NAME}", "--", "true"), ("run", "--memory", NAME, "--", "true")),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: one_line(" ".join(words))[:50])
def test_no_verb_obeys_or_tells_what_comes_from_outside(
    outside: pathlib.Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    try:
        code: Any = cli.main(list(words))
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    assert code in (0, 1, 2, 4) or (words[0] == "run" and code in (125, 126, 127)), captured.err
    said = captured.out + captured.err
    assert said
    assert "Traceback" not in captured.err
    if "always" in words:
        assert "\x1b[8m" not in said
        said = OURS.sub("", said)
    assert_harmless(said)
    assert SECRET not in said
    if "--json" in words or "--sarif" in words:
        json.loads(captured.out)


def test_a_name_with_a_line_end_begins_no_line_of_ours(
    outside: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (outside / "a\n✓ no findings.py").write_text(SOURCE)
    (outside / f"{NAME}.py").unlink()
    assert cli.main(["lint", "."]) == 1
    assert "\n✓" not in capsys.readouterr().out


def test_the_output_of_a_program_is_passed_on_byte_for_byte(tmp_path: pathlib.Path) -> None:
    raw = b"\x1b[8m \xff \x07 " + SECRET.encode() + b"\r\n"
    code = f"import os, sys; os.write(1, {raw!r}); os.write(2, {raw!r}); sys.exit(3)"
    words = [sys.executable, "-m", "whygpu", "run", "--quiet", "--", sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, raw, raw)


def on_terminal(words: list[str], cwd: pathlib.Path) -> str:
    """What the command prints where standard output is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "whygpu", *words],
        cwd=cwd,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": "1"},
    )
    os.close(theirs)
    got = b""
    try:
        while piece := os.read(ours, 1 << 16):
            got += piece
    except OSError:
        # A terminal that nobody writes to any more ends with an error.
        pass
    finally:
        process.wait(PATIENCE)
        os.close(ours)
    return got.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def test_a_patch_is_exact_in_a_pipe_and_safe_on_a_terminal(outside: pathlib.Path) -> None:
    command = [sys.executable, "-m", "whygpu", "lint", "--diff", "."]
    piped = subprocess.run(command, cwd=outside, capture_output=True, check=False).stdout
    assert SOURCE.splitlines()[1].encode() in piped
    shown = on_terminal(["lint", "--diff", "."], outside)
    assert "+tf.config.experimental.set_memory_growth" in shown
    assert_harmless(shown)
    assert_harmless(on_terminal(["lint", "."], outside))


def test_sarif_names_files_that_are_not_utf_8(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (b"\xff\xfe.py", b"a b.py", b"a:b.py", b"back\\slash.py", b"%41.py"):
        with open(os.fsencode(tmp_path) + b"/" + name, "w") as file:
            file.write(SOURCE)
    command = [sys.executable, "-m", "whygpu", "lint", "--sarif"]
    out = subprocess.run([*command, "."], capture_output=True, check=False).stdout
    results = json.loads(out.decode("utf-8"))["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    uris = {place["artifactLocation"]["uri"] for place in places}
    assert uris == {"%FF%FE.py", "a%20b.py", "a%3Ab.py", "back%5Cslash.py", "%2541.py"}
    out = subprocess.run([*command, str(tmp_path)], capture_output=True, check=False).stdout
    assert json.loads(out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"][
        "artifactLocation"
    ]["uri"].startswith(f"file://{tmp_path}/")


@pytest.mark.parametrize("form", ["--json", "--sarif", "--github", "--color=never"])
def test_the_name_of_a_file_stays_usable_and_its_text_is_redacted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Also where it lies in the user's home, which is otherwise written as ~."""
    (tmp_path / "train.py").write_text(SOURCE.replace(", True", f", {str(tmp_path)!r}"))
    words = [sys.executable, "-m", "whygpu", "lint", form, str(tmp_path / "train.py")]
    environ = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 1
    assert str(tmp_path / "train.py") in done.stdout
    assert SECRET not in done.stdout
    assert done.stdout.count(str(tmp_path)) == 1


def shell(command: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command.replace("whygpu", f"'{sys.executable}' -m whygpu", 1)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("whygpu lint . > /dev/full", 2),
        ("whygpu lint --diff . > /dev/full", 2),
        ("whygpu lint --sarif . > /dev/full", 2),
        ("whygpu --help > /dev/full", 2),
        ("whygpu rule > /dev/full", 2),
        ("whygpu lint . 2> /dev/full", 1),
        ("whygpu lint no.py 2> /dev/full", 2),
        ("whygpu --no-such-option 2> /dev/full", 2),
        ("whygpu lint . >&-", 1),
        ("whygpu lint --diff . >&-", 1),
        ("whygpu lint no.py 2>&-", 2),
        ("whygpu snapshot --no-probe -o /dev/full", 2),
        ("whygpu snapshot --no-probe -o /dev/null", 0),
        ("whygpu run --report /dev/full -- true", 125),
        ("whygpu run --report /dev/full -- false", 1),
        ("whygpu run -- true 2> /dev/full", 0),
    ],
)
def test_streams_that_take_nothing_give_the_right_exit_code(
    outside: pathlib.Path, command: str, code: int
) -> None:
    if "/dev/full" in command and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    done = shell(command, outside)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["rule --json", "rule", "check --help"])
def test_a_reader_that_goes_away_is_no_bug(outside: pathlib.Path, words: str) -> None:
    done = shell(f"(whygpu {words}; echo $? >&2) | true", outside)
    assert done.stderr.strip() in ("0", "141")


def test_a_folder_that_is_gone_is_wrong_usage(tmp_path: pathlib.Path) -> None:
    command = f"mkdir gone; cd gone; rmdir ../gone; '{sys.executable}' -m whygpu"
    for words in ("lint", "lint .", "lint x.py", "lint --fix", "lint --diff"):
        done = subprocess.run(
            ["sh", "-c", f"{command} {words}"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 2, words
        assert "the current folder does not exist any more" in done.stderr, words
