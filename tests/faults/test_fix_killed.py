"""Fixes that are killed at each of their steps: the environment is the old one or the new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.fixing.small import content, environment
from tests.fixing.test_applying import apply, siblings
from whygpu.fixing import workshop
from whygpu.fixing.applying import undo

KILLED = """
import os, signal, sys
from pathlib import Path

steps, count = int(sys.argv[2]), 0
EVENTS = ("os.mkdir", "os.link", "os.symlink", "os.rename", "os.remove", "os.rmdir", "os.chmod",
          "os.utime", "os.listdir", "shutil.copyfile", "shutil.rmtree", "subprocess.Popen")

def killer(event, arguments):
    global count
    writes = event == "open" and arguments[1] and arguments[1][0] in "wxa"
    if event in EVENTS or writes:
        if count == steps:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

from tests.fixing.test_applying import apply
from whygpu.fixing.applying import undo
env = Path(sys.argv[1])
sys.addaudithook(killer)
undo(str(env), force=False) if sys.argv[3] == "undo" else apply(env)
print(count)
"""


def run_until(env: Path, steps: int, what: str) -> int:
    """Apply or undo a fix and be killed after so many steps; the number of steps, or -9."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(env), str(steps), what],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode or int(done.stdout)


def test_a_fix_that_is_killed_at_any_step_leaves_the_old_environment_or_the_new(
    tmp_path: Path,
) -> None:
    model = environment(tmp_path / "model" / "env", "a")
    old = content(model)
    total = run_until(model, 1_000_000, "apply")
    new = _without_identity(content(model))
    outcomes = set()
    for steps in _sampled(total):
        env = environment(tmp_path / str(steps) / "env", "a")
        assert run_until(env, steps, "apply") == -signal.SIGKILL
        now = _without_identity(content(env))
        there = _moved(new, model, env)
        assert now in (old, there), f"after {steps} of {total} steps"
        outcomes.add(now == there)
        # The next fix removes what was left behind, and the way back still works.
        workshop.remove_leftovers(str(env))
        if now == old:
            assert siblings(env) == []
        else:
            undo(str(env), force=False)
            assert content(env) == old
    assert outcomes == {False, True}


def test_an_undo_that_is_killed_at_any_step_leaves_the_old_environment_or_the_new(
    tmp_path: Path,
) -> None:
    env = environment(tmp_path / "env", "a")
    old = content(env)
    apply(env)
    new = content(env)
    total = run_until(env, 1_000_000, "undo")
    assert total > 3
    for steps in _sampled(total):
        apply(env)
        new = content(env)
        run_until(env, steps, "undo")
        assert content(env) in (old, new)
        workshop.remove_leftovers(str(env))
        if content(env) == new:
            undo(str(env), force=False)
        assert content(env) == old
        # The very last step is to remove the empty folder.
        assert not any(os.listdir(env.parent / name) for name in siblings(env))
        for name in siblings(env):
            (env.parent / name).rmdir()


def _sampled(total: int) -> list[int]:
    """Every step if there are few, else about forty, and all of the last ones."""
    apart = max(1, total // 30)
    return sorted({*range(0, total, apart), *range(max(0, total - 25), total)})


def _without_identity(found: dict[str, bytes | str]) -> dict[str, bytes | str]:
    return {name: text for name, text in found.items() if name != workshop.MARKER}


def _moved(found: dict[str, bytes | str], old: Path, new: Path) -> dict[str, bytes | str]:
    return {
        name: text.replace(str(old).encode(), str(new).encode())
        if isinstance(text, bytes)
        else text
        for name, text in found.items()
    }
