"""Variables that a fix keeps, as real shells see them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixing.small import environment
from whygpu.fixing.activation import activated, add_block, script_of, variable_steps
from whygpu.model.remedy import DropPath, Install, PrependPath, SetVariable, Step, Steps
from whygpu.model.target import PLAIN_PIP

BASE = {"PATH": os.environ["PATH"]}


def after(folder: Path, *steps: Step, **environ: str) -> dict[str, str]:
    script = script_of(str(folder))
    assert script is not None
    add_block(str(folder), script, steps, PLAIN_PIP)
    return activated(str(folder), script, {**BASE, **environ})


def test_a_variable_is_set(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    assert after(env, SetVariable("A", "b 'c'"))["A"] == "b 'c'"


def test_what_the_script_did_before_stays(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    assert after(env, SetVariable("A", "1"))["VIRTUAL_ENV"] == "here"


def test_a_folder_is_searched_first(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    found = after(env, PrependPath("LD_LIBRARY_PATH", ("/a b",)), LD_LIBRARY_PATH="/c")
    assert found["LD_LIBRARY_PATH"] == "/a b:/c"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("/old", ""),
        ("/a:/old:/b", "/a:/b"),
        ("/old/:/a", "/a"),
        ("/old2:/a/old", "/old2:/a/old"),
        ("/other:/old", "/other"),
    ],
)
def test_a_folder_leaves_whatever_the_variable_then_holds(
    before: str, expected: str, tmp_path: Path
) -> None:
    env = environment(tmp_path / "env")
    found = after(env, DropPath("LD_LIBRARY_PATH", "/old", ("/then",)), LD_LIBRARY_PATH=before)
    assert found["LD_LIBRARY_PATH"] == expected


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "dash"])
def test_other_shells_understand_the_block(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    env = environment(tmp_path / "env")
    after(env, DropPath("LD_LIBRARY_PATH", "/old", ()), SetVariable("A", "1"))
    done = subprocess.run(
        [shell, "-c", f'. "{env}/bin/activate"; echo "$A $LD_LIBRARY_PATH"'],
        env={**BASE, "LD_LIBRARY_PATH": "/old:/b"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 /b\n"


def test_conda_has_a_folder_for_such_scripts(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    (env / "conda-meta").mkdir()
    assert after(env, SetVariable("A", "1"))["A"] == "1"
    assert (env / "etc/conda/activate.d/whygpu-fix.sh").exists()


def test_an_environment_without_a_script(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    (env / "bin" / "activate").unlink()
    assert script_of(str(env)) is None


def test_only_variables_are_kept() -> None:
    action = Steps((Install(("a",)), SetVariable("B", "1")))
    assert variable_steps([action, None]) == (SetVariable("B", "1"),)
