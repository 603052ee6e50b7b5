"""python -m tools.check_described_plans: can the plans for the described machines be installed?

Asks the package index, through `uv pip compile`, to resolve the requirements of every plan of
tests/planner/test_described_machines.py for its Python and platform. It uses the network and takes
minutes, so it is not a part of the tests.

With --install, it also creates an environment below the given folder for each Python that
~/.pyenv/versions has, installs the plan for Linux on x86_64 there, imports the frameworks, and
removes the environment. CUDA wheels take gigabytes.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from tests.planner.test_described_machines import LINUX, MACHINES, Described, planned
from whygpu.api.verification import NEW_MACOS, uv_platform
from whygpu.model.install_plan import Plan
from whygpu.planner.advice import requirements
from whygpu.planner.wishes import keras_backend, parse_all
from whygpu.tables.torch_indexes import INDEX_ROOT

_PYTHONS = pathlib.Path.home() / ".pyenv" / "versions"
_MODULES = {"onnxruntime-gpu": "onnxruntime", "tensorflow-gpu": "tensorflow"}
_TIME_LIMIT_SECONDS = 900


class Outcome(NamedTuple):
    title: str
    plan: str
    resolved: str
    installed: str


def main(words: list[str] | None = None) -> int:
    options = _options(words)
    outcomes = []
    for case in MACHINES:
        plan = planned(case).plan
        if plan is None or not re.search(options.only, case.title):
            continue
        resolved = _resolve(case, plan, options.uv)
        installed = _install(case, plan, options) if options.install else ""
        outcomes.append(Outcome(case.title, case.plan, resolved, installed))
        print("\t".join(outcomes[-1]), flush=True)
    return any(outcome.resolved.startswith("refused") for outcome in outcomes)


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.check_described_plans")
    parser.add_argument("--uv", default="uv", help="the program uv (default: %(default)s)")
    parser.add_argument("--only", default="", help="machines whose title this pattern finds")
    parser.add_argument("--install", metavar="FOLDER", help="install and import in this folder")
    return parser.parse_args(words)


def _resolve(case: Described, plan: Plan, uv: str) -> str:
    """What uv says. PyTorch's own indexes are asked for the builds that are only there."""
    if case.machine.free_threaded:
        return "not asked: uv resolves for a free-threaded Python only if it is installed"
    wanted = requirements(plan)
    with tempfile.TemporaryDirectory() as folder:
        listing = os.path.join(folder, "requirements.in")
        pathlib.Path(listing).write_text("\n".join(wanted) + "\n", encoding="utf-8")
        command = [uv, "pip", "compile", "--quiet", "--python-version", case.python]
        command += [*uv_platform(case.machine), *_indexes(plan), listing]
        return _said(command, "resolved", "refused")


def _indexes(plan: Plan) -> Iterator[str]:
    for candidate in plan.chosen:
        if candidate.torch_index:
            yield f"--index={INDEX_ROOT}{candidate.torch_index}"
            yield "--index-strategy=unsafe-best-match"


def _install(case: Described, plan: Plan, options: argparse.Namespace) -> str:
    versions = sorted(_PYTHONS.glob(f"{case.python}.*")) if _PYTHONS.is_dir() else []
    if case.platform != LINUX or not versions or any(c.torch_index for c in plan.chosen):
        return ""
    folder = os.path.join(options.install, re.sub(r"\W+", "-", case.title))
    python = os.path.join(folder, "bin", "python")
    try:
        own = str(versions[-1] / "bin" / "python")
        subprocess.run([options.uv, "venv", "--quiet", "--python", own, folder], check=True)
        command = [options.uv, "pip", "install", "--quiet", "--no-cache", "--python", python]
        command += requirements(plan)
        installed = _said(command, "installed", "not installed")
        if installed != "installed":
            return installed
        modules = [_MODULES.get(c.package, c.package.split("-")[0]) for c in plan.chosen]
        lines = "; ".join(f"import {name}; print({name}.__version__)" for name in modules)
        backend = keras_backend(parse_all(case.wishes.split())) or "tensorflow"
        command = ["env", f"KERAS_BACKEND={backend}", python, "-c", lines]
        return _said(command, "imported", "not imported")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _said(command: list[str], good: str, bad: str) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIME_LIMIT_SECONDS,
            env={**os.environ, **NEW_MACOS},
        )
    except subprocess.TimeoutExpired:
        return f"{bad}: no answer in {_TIME_LIMIT_SECONDS} s"
    words = " ".join((done.stderr or done.stdout).split())
    if "Failed to fetch" in words or "error sending request" in words:
        bad = "index not reached"
    return good if done.returncode == 0 else f"{bad}: {words[-300:]}"


if __name__ == "__main__":
    sys.exit(main())
