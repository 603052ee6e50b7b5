"""Verbs that need no Linux give the same answers without what Windows and macOS lack.

tests/other_system.py removes modules, functions and signals; tools/portability.py checks types.
"""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys

import pytest

from tests.other_system import ADDED, MISSING_NAMES
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parent.parent
SYSTEMS = ("win32", "darwin")
LOG = ROOT / "tests/logs/h200-torch-oom-beside.log"
SNAPSHOT = ROOT / "docs/examples/tensorflow-2.21.json"


def answer(system: str, *words: object, encoding: str = "utf-8") -> tuple[int, str]:
    """Exit code and output of whygpu on that system; "linux" is this one as it is."""
    start = ("whygpu",) if system == "linux" else ("tests.other_system", system)
    done = subprocess.run(
        (sys.executable, "-m", *start, *map(str, words)),
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout.decode(encoding)


@functools.cache
def answer_here(*words: object) -> tuple[int, str]:
    return answer("linux", *words)


PORTABLE = {
    "explain": ("explain", LOG),
    "lint": ("lint", "docs/examples"),
    "plan": ("plan", "tensorflow", "--snapshot", SNAPSHOT),
    "rule": ("rule", "WG203"),
    "check": ("check", "--snapshot", SNAPSHOT),
    "diff": ("diff", ROOT / "docs/examples/tensorflow-1.15.json", SNAPSHOT),
    "fleet": ("fleet", "report", ROOT / "docs/examples/tensorflow-1.15.json", SNAPSHOT),
    "help": ("--help",),
}


@pytest.mark.parametrize("words", PORTABLE.values(), ids=PORTABLE)
@pytest.mark.parametrize("system", SYSTEMS)
def test_an_answer_does_not_depend_on_the_system(system: str, words: tuple[object, ...]) -> None:
    assert answer(system, *words) == answer_here(*words)


NEEDS_LINUX = {
    "run": ("run", "--", "true"),
    "fix": ("fix",),
    "undo": ("fix", "--undo"),
    "compare": ("compare", "model.keras"),
    "memory find": ("memory", "find", "train.py:step"),
}


@pytest.mark.parametrize("words", NEEDS_LINUX.values(), ids=NEEDS_LINUX)
def test_what_needs_linux_says_so(words: tuple[str, ...]) -> None:
    code, text = answer("win32", *words)
    assert code == (125 if words[0] == "run" else 2)
    assert text.endswith("needs Linux, or Windows with WSL 2; this is Windows\n")


def test_an_estimate_works_on_a_mac_and_not_on_windows() -> None:
    words = ("memory", "estimate", "nothing.py:step")
    assert "does not exist" in answer("darwin", *words)[1]
    assert answer("win32", *words)[1].endswith("WSL 2; this is Windows\n")


def test_a_mac_is_checked_without_a_traceback(tmp_path: pathlib.Path) -> None:
    code, text = answer("darwin", "check", "--no-probe", "--python", sys.executable)
    assert code in (0, 1, 4), text
    assert "bug" not in text


LINES = (
    "2025-11-02 10:11:12.000 E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:152] "
    "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
    "café: Zugriff verweigert",
)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252"])
def test_logs_as_windows_saves_them(encoding: str, tmp_path: pathlib.Path) -> None:
    plain, saved = tmp_path / "plain" / "train.log", tmp_path / "train.log"
    plain.parent.mkdir()
    plain.write_bytes("\n".join(LINES).encode())
    saved.write_bytes("\r\n".join(LINES).encode(encoding))
    expected = answer("linux", "explain", "--json", plain)
    found = answer("win32", "explain", "--json", saved)
    assert expected[0] == found[0] == 1
    assert found[1].count('"code"') == expected[1].count('"code"') > 0


def test_source_with_the_line_ends_of_windows_is_fixed_and_keeps_them(
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "train.py"
    text = (ROOT / "docs/examples/cpu_only.py").read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(text)
    answer("win32", "lint", "--fix", file)
    fixed = file.read_bytes()
    assert fixed != text
    assert fixed.count(b"\n") == fixed.count(b"\r\n")


def test_output_fits_the_encoding_of_an_old_console() -> None:
    code, text = answer("win32", "check", "--snapshot", SNAPSHOT, encoding="cp1252")
    assert code == 1
    assert text.startswith("x TensorFlow and Keras do not use the GPU")


def test_a_folder_given_as_a_log(tmp_path: pathlib.Path) -> None:
    code, text = answer("win32", "explain", tmp_path)
    assert code == 2
    assert f"{tmp_path} is a folder; name the logs in it: {tmp_path / '*'}" in text


def test_the_names_that_are_taken_away_exist_here() -> None:
    for names in MISSING_NAMES.values():
        for module, text in names.items():
            assert [name for name in text.split() if not hasattr(module, name)] == []
    assert not any(
        hasattr(module, name) for module, names in ADDED["win32"].items() for name in names
    )
