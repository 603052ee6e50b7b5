"""Completion of words: each shell itself is asked what it would offer."""

from __future__ import annotations

import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess

import pytest

from tests.patience import PATIENCE
from tools import completions
from whygpu.cli import main as cli
from whygpu.cli.completion import FILES

CASES = {
    "whygpu ch": ["check"],
    "whygpu memory e": ["estimate"],
    "whygpu memory estimate --mi": ["--mixed-precision"],
    "whygpu lint --color a": ["always", "auto"],
    "whygpu rule WG20": [f"WG20{number}" for number in range(1, 10)],
    "whygpu plan te": ["tensorflow"],
    "whygpu explain tra": ["train.log"],
    "whygpu check --python my": ["my-environment"],
}
"""The words so far, and what the last one can become."""

LONGEST_WAIT = 20.0

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p whygpu); function=${function##*-F }; function=${function%% *}
$function whygpu "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "train.log").touch()
    (tmp_path / "my-environment").touch()
    return tmp_path


def need(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed here")
    return found


def script(shell: str) -> str:
    return str(completions.FOLDER / FILES[shell])


def test_the_scripts_are_current() -> None:
    for name, text in completions.files().items():
        assert (completions.FOLDER / name).read_text(encoding="utf-8") == text, "run `make docs`"


@pytest.mark.parametrize("shell", list(FILES))
def test_the_verb_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert capsys.readouterr().out == pathlib.Path(script(shell)).read_text(encoding="utf-8")


def test_bash(folder: pathlib.Path) -> None:
    bash = need("bash")
    for words, expected in CASES.items():
        command = [bash, "-c", BASH, "bash", script("bash"), *words.split(" ")]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
        assert sorted(said.stdout.split()) == expected, (words, said.stderr)


@pytest.mark.slow
def test_fish(folder: pathlib.Path) -> None:
    fish = need("fish")
    environ = {**os.environ, "HOME": str(folder)}
    for words, expected in CASES.items():
        command = [fish, "--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"']
        said = subprocess.run(
            [*command, script("fish"), words],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        offered = sorted(line.split("\t")[0] for line in said.stdout.splitlines())
        assert offered == expected, (words, said.stderr)


SETUP = """autoload -U compinit; compinit -u -D; eval "$(cat '{script}')"; PS1=; print rea''dy
"""
ANOTHER_LINE = "\x15\n"
"""Ctrl-U deletes what was typed."""


@pytest.mark.slow
def test_zsh(folder: pathlib.Path) -> None:
    """zsh completes on a terminal only, so it gets one."""
    zsh = need("zsh")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(zsh, [zsh, "-f", "-i"], {"TERM": "dumb", "PATH": os.environ["PATH"]})
    try:
        os.write(terminal, SETUP.format(script=script("zsh")).encode())
        read_until(terminal, "ready")
        for words, expected in CASES.items():
            if len(expected) == 1:
                os.write(terminal, f"{words}\t".encode())
                read_until(terminal, f"{words.rpartition(' ')[0]} {expected[0]}")
                os.write(terminal, ANOTHER_LINE.encode())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def read_until(terminal: int, expected: str) -> None:
    """Read what the terminal shows until the text has come."""
    shown = b""
    while expected not in shown.decode("utf-8", "replace").replace("\x07", ""):
        assert select.select([terminal], [], [], LONGEST_WAIT)[0], (expected, shown)
        shown += os.read(terminal, 1 << 16)
