"""A second opinion on a plan: pip, or uv, resolves it against the real package index."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.host.base import Completed
from whygpu.host.local import LocalHost
from whygpu.model.install_plan import Plan
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.planner.advice import requirements
from whygpu.tables.torch_indexes import INDEX_ROOT
from whygpu.tables.versions import release_numbers

TIME_LIMIT = 600.0
LONGEST_WORDS = 400
_REFUSALS = ("ResolutionImpossible", "No matching distribution", "No solution found")
_NO_REFUSALS = ("(from versions: none)", "building from source is disabled")
"""An index that cannot be reached looks to pip like one that has nothing. A package without a wheel
can be installed, but is not built here: that would run its code."""
_OLDEST_TAGS = ((5, "manylinux1"), (12, "manylinux2010"), (17, "manylinux2014"))
_NEWEST_GLIBC = 40
_UV_GLIBCS = (17, 28, *range(31, 41))
"""Minor numbers of the glibc releases that uv has names for."""
_UV_SYSTEMS = {
    "win_amd64": "x86_64-pc-windows-msvc",
    "macosx_arm64": "aarch64-apple-darwin",
    "macosx_x86_64": "x86_64-apple-darwin",
}
NEW_MACOS = {"MACOSX_DEPLOYMENT_TARGET": "15.0"}
"""uv assumes macOS 13 otherwise. The plan says which macOS each release needs."""


class Verified(NamedTuple):
    text: str
    """The result, in a sentence."""
    refuted: bool
    """The resolver refused the plan; not that it could not be asked."""


def verify(plan: Plan, machine: MachineSpec) -> Verified:
    wanted = requirements(plan)
    tags = [item.torch_index for item in plan.chosen if item.torch_index]
    # uv resolves for a free-threaded Python only if it is installed here.
    uv = None if machine.free_threaded else shutil.which("uv")
    with tempfile.TemporaryDirectory(prefix="whygpu-") as folder:
        if uv:
            backends = [f"--torch-backend={tag}" for tag in tags]
            command = (*_uv(uv, wanted, machine, folder), *backends)
        else:
            indexes = [f"--extra-index-url={INDEX_ROOT}{tag}" for tag in tags]
            # The default index has another build of the same release.
            builds = {item.requirement: item.build for item in plan.chosen}
            command = (*_pip([builds.get(w, w) for w in wanted], machine, folder), *indexes)
        name = "uv pip compile" if uv else "pip install --dry-run"
        answer = LocalHost().run(command, timeout=TIME_LIMIT, env={**os.environ, **NEW_MACOS})
    if isinstance(answer, Absent):
        return Verified(f"{name} could not be started: there is no {answer.source}", False)
    if isinstance(answer, Unknown):
        return Verified(f"{name} gave no answer: {answer.reason}", False)
    if answer.value.timed_out:
        return Verified(f"{name} did not finish within {TIME_LIMIT:.0f} s", False)
    return _outcome(name, answer.value)


def _outcome(name: str, done: Completed) -> Verified:
    if done.code == 0:
        return Verified(f"{name} finds every package and no conflict", False)
    words = " ".join((done.stderr or done.stdout).split())
    ending = words[-LONGEST_WORDS:]
    if "No module named pip" in words or "no such option" in words:
        return Verified(f"{name} is not available here: {ending}", False)
    refuted = any(text in words for text in _REFUSALS) and not any(
        text in words for text in _NO_REFUSALS
    )
    verb = "refuses the plan" if refuted else "failed"
    return Verified(f"{name} {verb}: {ending}", refuted)


def _uv(uv: str, wanted: Sequence[str], machine: MachineSpec, folder: str) -> tuple[str, ...]:
    listing = os.path.join(folder, "requirements.in")
    with open(listing, "w", encoding="utf-8") as file:
        file.write("\n".join(wanted) + "\n")
    python = machine.python_minor
    return (
        uv,
        "pip",
        "compile",
        "--quiet",
        "--no-build",
        *(("--python-version", python) if python else ()),
        *uv_platform(machine),
        listing,
    )


def uv_platform(machine: MachineSpec) -> tuple[str, ...]:
    """The option of uv for the platform. uv knows a few glibc releases by name."""
    if not isinstance(machine.platform, Known):
        return ()
    system, _, architecture = machine.platform.value.partition("_")
    if system == "linux":
        name = f"{architecture}-unknown-linux-gnu"
        if isinstance(machine.glibc, Known):
            mine = release_numbers(machine.glibc.value)[1]
            # The next newer one: the planner has checked the C library of every wheel already.
            known = next((minor for minor in _UV_GLIBCS if minor >= mine), _UV_GLIBCS[-1])
            name = f"{architecture}-manylinux_2_{known}"
    else:
        name = _UV_SYSTEMS[machine.platform.value]
    return ("--python-platform", name)


def _pip(wanted: Sequence[str], machine: MachineSpec, folder: str) -> tuple[str, ...]:
    python = machine.python_minor
    return (
        sys.executable,
        "-I",
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
        "--disable-pip-version-check",
        "--no-input",
        "--only-binary=:all:",
        # pip resolves for another Python or platform only if it installs into another folder.
        f"--target={folder}",
        *((f"--python-version={python}",) if python else ()),
        *(f"--abi={abi}" for abi in _abis(machine)),
        *(f"--platform={tag}" for tag in _tags(machine)),
        *wanted,
    )


def _abis(machine: MachineSpec) -> tuple[str, ...]:
    """The options that pip needs for a free-threaded build; it knows the usual build by itself."""
    python = machine.python_build
    if python is None or not machine.free_threaded:
        return ()
    return (f"cp{python.replace('.', '')}", "none")


def _tags(machine: MachineSpec) -> tuple[str, ...]:
    """The platform tags that the machine accepts; none if pip's own are right."""
    if not isinstance(machine.platform, Known):
        return ()
    if not machine.platform.value.startswith("linux_"):
        return (machine.platform.value,)
    architecture = machine.platform.value.partition("_")[2]
    glibc = machine.glibc
    newest = release_numbers(glibc.value)[1] if isinstance(glibc, Known) else _NEWEST_GLIBC
    modern = [f"manylinux_2_{minor}_{architecture}" for minor in range(newest, 4, -1)]
    old = [f"{name}_{architecture}" for minor, name in _OLDEST_TAGS if minor <= newest]
    return (*modern, *old, machine.platform.value)
