"""Exceptions are shown as ever, and explained below."""

from __future__ import annotations

import pytest

from tests.launch.programs import PYTHON, run

pytestmark = pytest.mark.slow
"""Each test starts programs."""

START = """
from whygpu.launch.excepthook import install
install(lambda error: f"explained: {error}\\n" if "CUDA" in str(error) else "")
install(lambda error: "a second time")
"""


@pytest.mark.parametrize(
    ("code", "said", "kept_quiet"),
    [
        ("raise RuntimeError('CUDA out of memory')", "explained: CUDA out of memory", "second"),
        ("raise RuntimeError('other')", "RuntimeError: other", "explained"),
        ("raise KeyboardInterrupt('CUDA')", "KeyboardInterrupt", "explained"),
        ("import sys; sys.exit('CUDA')", "CUDA", "explained"),
        (
            "import threading\ndef f(): raise ValueError('CUDA in a thread')\n"
            "t = threading.Thread(target=f); t.start(); t.join()",
            "explained: CUDA in a thread",
            "second",
        ),
    ],
)
def test_what_goes_uncaught(code: str, said: str, kept_quiet: str) -> None:
    done = run([PYTHON, "-c", START + code])
    assert said in done.stderr
    assert kept_quiet not in done.stderr
    bare = run([PYTHON, "-c", code])
    assert done.returncode == bare.returncode
    assert done.stderr.count("Traceback") == bare.stderr.count("Traceback")


def test_an_explanation_that_fails_hides_nothing() -> None:
    code = START.replace('f"explained: {error}\\n"', "1 / 0") + "raise RuntimeError('CUDA')"
    done = run([PYTHON, "-c", code])
    assert "RuntimeError: CUDA" in done.stderr
    assert "could not explain it: ZeroDivisionError" in done.stderr


def test_in_ipython() -> None:
    shell = """
import builtins
class Shell:
    def set_custom_exc(self, kinds, handler): self.handler = handler
    def showtraceback(self, told, tb_offset=None): print("shown:", told[1])
shell = Shell()
builtins.get_ipython = lambda: shell
"""
    code = shell + START + "shell.handler(shell, ValueError, ValueError('CUDA'), None, tb_offset=1)"
    done = run([PYTHON, "-c", code])
    assert done.stdout == "shown: CUDA\n"
    assert "explained: CUDA" in done.stderr
