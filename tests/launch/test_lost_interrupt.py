"""Ctrl-C while the interpreter is in a function whose exceptions it ignores."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

import whygpu
from tests.patience import PATIENCE

BOOTSTRAP = pathlib.Path(whygpu.__path__[0]) / "launch" / "bootstrap"
PROGRAM = """
import gc, os, signal, sys, time
sys.path.append({bootstrap!r})
from whygpu_bootstrap.profile import recorder
usual = sys.unraisablehook
left = [1]
busy = time.perf_counter() + {busy}

def press_ctrl_c(*ignored):
    if left:
        left.clear()
        os.kill(os.getpid(), signal.SIGINT)
    while time.perf_counter() < busy:
        pass

class Finalised:
    def __del__(self):
        press_ctrl_c()

if {where!r} == "collection":
    gc.callbacks.append(press_ctrl_c)
{before}
recorder.begin({folder!r})
end = time.perf_counter() + {seconds}
try:
    while time.perf_counter() < end:
        Finalised() if {where!r} == "finaliser" else gc.collect()
        time.sleep(0.001)
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
    recorder.result()
    print(sys.unraisablehook is usual)
"""


def output(tmp_path: pathlib.Path, where: str, **fields: object) -> list[str]:
    values: dict[str, object] = {"before": "", "seconds": PATIENCE / 2, "busy": 0, **fields}
    text = PROGRAM.format(bootstrap=str(BOOTSTRAP), folder=str(tmp_path), where=where, **values)
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("where", ["collection", "finaliser"])
@pytest.mark.parametrize("busy", [0, 1])
def test_it_ends_the_program(where: str, busy: float, tmp_path: pathlib.Path) -> None:
    """Even if it is lost again where it is repeated, as long as the program is busy there."""
    assert output(tmp_path, where, busy=busy) == ["interrupted", "True"]


def test_a_program_that_handles_ctrl_c_itself_gets_it_once(tmp_path: pathlib.Path) -> None:
    handler = "signal.signal(signal.SIGINT, lambda *ignored: None)"
    assert output(tmp_path, "collection", before=handler, seconds=1) == ["went on"]


def test_a_program_that_raises_it_itself_goes_on(tmp_path: pathlib.Path) -> None:
    """Its own handler raises it, so another signal would be one that nobody sent."""
    handler = (
        "signal.signal(signal.SIGINT, lambda *ignored: (_ for _ in ()).throw(KeyboardInterrupt))"
    )
    assert output(tmp_path, "collection", before=handler, seconds=1) == ["went on"]
