"""The GitHub action: its steps are run here as GitHub runs them, on a project with a mistake.

The scripts of the workflows are read by shellcheck, as those of the action are.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.patience import PATIENCE

ROOT = pathlib.Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, LINT = ACTION["runs"]["steps"]
BAD = """import tensorflow as tf
tf.config.set_visible_devices(tf.config.list_physical_devices("CPU"), "CPU")
"""

_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
_ANY_EXPRESSION = re.compile(r"\$\{\{.*?\}\}")


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed here")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(BAD)
    (folder / "fine.py").write_text("print(1)\n")
    # Python would import it instead of its own module.
    (folder / "types.py").write_text("raise SystemExit('imported')\n")
    return folder


class Ended:
    def __init__(self, done: subprocess.CompletedProcess[str], output: str) -> None:
        self.code, self.text, self.messages = done.returncode, done.stdout, done.stderr
        self.outputs = dict(line.split("=", 1) for line in output.splitlines())


def run_step(step: dict[str, Any], folder: pathlib.Path, **given: str) -> Ended:
    inputs = {name: about["default"] for name, about in ACTION["inputs"].items()} | given
    contexts = {f"inputs.{name}": value for name, value in inputs.items()}
    contexts |= {"runner.temp": str(folder.parent), "github.action_path": str(ROOT)}
    contexts["steps.install.outputs.python"] = sys.executable
    output = folder.parent / "GITHUB_OUTPUT"
    output.write_text("")
    environ = {
        **os.environ,
        "GITHUB_OUTPUT": str(output),
        **{
            name: _EXPRESSION.sub(lambda match: contexts[match[1]], text)
            for name, text in step["env"].items()
        },
    }
    script = folder.parent / "step.sh"
    script.write_text(step["run"])
    # As GitHub does for `shell: bash`.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=PATIENCE
    )
    return Ended(done, output.read_text())


def scripts() -> Iterator[tuple[str, str]]:
    """The scripts of the action and of the workflows, each with its place."""
    for step in ACTION["runs"]["steps"]:
        yield f"action: {step['name']}", step["run"]
    for file in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
        for name, job in jobs.items():
            for number, step in enumerate(job["steps"], 1):
                if "run" in step:
                    # GitHub puts the value of an expression there before the shell sees it.
                    yield f"{file.stem}: {name} {number}", _ANY_EXPRESSION.sub("value", step["run"])


@pytest.mark.parametrize("script", [pytest.param(text, id=place) for place, text in scripts()])
def test_shellcheck_accepts_the_scripts(script: str) -> None:
    # The one that was installed with the other tools for developers, even if none is on PATH.
    found = shutil.which("shellcheck", path=os.path.dirname(sys.executable))
    shellcheck = found or shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed here")
    done = subprocess.run(
        [shellcheck, "--norc", "--shell=bash", "-"],
        input=script,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_findings_are_annotations_and_fail_the_step(project: pathlib.Path) -> None:
    ended = run_step(LINT, project)
    assert ended.code == 1
    assert ended.text.startswith("::error file=train.py,line=2,title=WG712 ")
    assert ended.outputs == {"exit-code": "1"}


def test_findings_need_not_fail_the_step(project: pathlib.Path) -> None:
    ended = run_step(LINT, project, fail="false")
    assert (ended.code, ended.outputs["exit-code"]) == (0, "1")
    # What is wrong with the step itself fails it all the same.
    assert run_step(LINT, project, fail="false", select="WG999").code == 2


def test_inputs_reach_lint(project: pathlib.Path) -> None:
    assert run_step(LINT, project, ignore="WG712").code == 0
    assert run_step(LINT, project, paths="fine.py\n").code == 0
    assert run_step(LINT, project, paths="fine.py\ntrain.py").code == 1
    ended = run_step(LINT, project, sarif="found.sarif")
    assert ended.code == 1
    (run,) = json.loads((project / "found.sarif").read_text())["runs"]
    assert run["results"][0]["ruleId"] == "WG712"


def test_no_value_becomes_a_command(project: pathlib.Path) -> None:
    hostile = '"; touch owned; $(touch owned) `touch owned`'
    for name in ("paths", "select", "ignore", "tensorflow", "version"):
        run_step(LINT, project, **{name: hostile})
    assert not (project / "owned").exists()
    for step in (INSTALL, LINT):
        assert "${{" not in step["run"]
    assert run_step(LINT, project, paths="--fix").code == 2
    assert (project / "train.py").read_text() == BAD


def test_whygpu_is_installed_from_the_action_or_by_its_version(project: pathlib.Path) -> None:
    """pip is not run: a stand-in for Python says what it would install."""
    said = project.parent / "said"
    stand_in = project.parent / "bin" / "python3"
    stand_in.parent.mkdir()
    stand_in.write_text(
        '#!/bin/sh\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
        f'echo "$*" >> "{said}"\n'
    )
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
    for version, wanted in (("", f"{ROOT}[infra]"), ("0.1.0", "whygpu[infra]==0.1.0")):
        step = {**INSTALL, "env": {**INSTALL["env"], "PATH": path}}
        ended = run_step(step, project, version=version)
        assert ended.code == 0, ended.messages
        assert said.read_text().splitlines()[-1].endswith(f" {wanted}")
        assert ended.outputs["python"] == f"{project.parent}/whygpu/bin/python"
