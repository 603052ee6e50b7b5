"""Verbs about releases: plan and why_not."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

from whygpu.api.arguments import THIS_PYTHON, checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from whygpu.model.install_plan import PlanAnswer, ReleaseAnswer
    from whygpu.model.machine_spec import MachineSpec
    from whygpu.model.snapshot import Snapshot
    from whygpu.model.target import Installer, Package
    from whygpu.planner.candidates import Table

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?t?")


@checked
def plan(
    *wishes: str,
    machine: Snapshot | None = None,
    python: str | None = THIS_PYTHON,
    driver: str | None = None,
    gpu: str | None = None,
    glibc: str | None = None,
    platform: str | None = None,
    verify: bool = False,
) -> PlanAnswer:
    """Which releases can use the GPU of a machine, together, and which command installs them?

    The machine is this one, or `machine`, a snapshot of another. Each option overrides one of its
    facts; `python` is a version ("3.11"), or an interpreter or virtual environment of this machine:
    this program's, unless another is given.
    Without wishes, the plan is for TensorFlow. `verify=True` also asks pip, or uv, to resolve the
    plan, which uses the package index.

    Example:
        whygpu.plan("tensorflow", "jax==0.4.30")
        whygpu.plan("torch", python="3.12", driver="535.54", gpu="RTX 4090")
    """
    from whygpu.planner.advice import advice
    from whygpu.planner.changes import changes, undoubted
    from whygpu.planner.planning import make_plan
    from whygpu.planner.wishes import parse_all

    basis = basis_of(machine, python, driver=driver, gpu=gpu, glibc=glibc, platform=platform)
    wanted = parse_all(list(wishes))
    table = basis.table
    answer = make_plan(basis.spec, wanted, table, may_guess=True)._replace(table=table.edition)
    if answer.plan is None:
        return answer._replace(changes=changes(basis.spec, wanted, table))
    today = time.strftime("%Y-%m-%d")
    better = undoubted(basis.spec, wanted, table) if answer.plan.likely_failure else ()
    told = advice(answer, answer.plan, today, basis.installer)
    answer = answer._replace(advice=told, changes=better)
    if verify and answer.plan is not None:
        from whygpu.api.verification import verify as verify_plan

        text, refuted = verify_plan(answer.plan, basis.spec)
        answer = answer._replace(verified=text, refuted=refuted)
    return answer


@checked
def why_not(
    release: str,
    *others: str,
    machine: Snapshot | None = None,
    python: str | None = THIS_PYTHON,
    driver: str | None = None,
    gpu: str | None = None,
    glibc: str | None = None,
    platform: str | None = None,
) -> ReleaseAnswer:
    """Does one release fit a machine, together with `others`, and if not, what stands in its way?

    The options are those of `plan`.

    Example:
        whygpu.why_not("tensorflow==2.12", python="3.12")
    """
    from whygpu.planner.planning import why_not as check_release
    from whygpu.planner.wishes import parse, parse_all

    basis = basis_of(machine, python, driver=driver, gpu=gpu, glibc=glibc, platform=platform)
    company = parse_all(list(others)) if others else ()
    answer = check_release(basis.spec, parse(release), company, basis.table)
    return answer._replace(table=basis.table.edition)


class Basis(NamedTuple):
    """The machine to plan for, and what is known about releases there."""

    spec: MachineSpec
    installer: Installer | None
    """Of the environment to install into; None if options describe another machine."""
    table: Table


def basis_of(
    machine: Snapshot | None,
    python: str | None,
    *,
    driver: str | None,
    gpu: str | None,
    glibc: str | None,
    platform: str | None,
) -> Basis:
    from whygpu.api.release_table import current_table
    from whygpu.model.derived import installer_of
    from whygpu.model.observed import Known
    from whygpu.planner.candidates import Table
    from whygpu.planner.installed import installed_rows, newer_packages
    from whygpu.planner.machine import described, from_snapshot

    rows, edition = current_table()
    version = python if python and _VERSION.fullmatch(python) else None
    if machine is None:
        machine = _this_machine(
            python,
            asks_python=version is None,
            asks_driver=not (driver and gpu),
            needs_frameworks=lambda found: bool(newer_packages(found, rows.versions_of)),
        )
    installed = () if version else installed_rows(machine.target, rows.versions_of)
    table = Table(rows.versions_of, edition, installed)
    spec = described(
        from_snapshot(machine),
        python=version,
        driver=driver,
        gpu=gpu,
        glibc=glibc,
        platform=platform,
    )
    if any((version, driver, gpu, glibc, platform)):
        return Basis(spec, None, table)
    is_known = isinstance(machine.target.interpreter, Known)
    return Basis(spec, installer_of(machine) if is_known else None, table)


def _this_machine(
    python: str | None,
    *,
    asks_python: bool,
    asks_driver: bool,
    needs_frameworks: Callable[[tuple[Package, ...]], bool],
) -> Snapshot:
    """What the options leave open. Commands are made from it, so homes of others stay."""
    from whygpu.collectors.collect import collect_for_plan
    from whygpu.host.local import LocalHost
    from whygpu.privacy import Redactor

    host = LocalHost()
    taken = collect_for_plan(
        host,
        python,
        asks_python=asks_python,
        asks_driver=asks_driver,
        needs_frameworks=needs_frameworks,
    )
    return Redactor(host.platform, keeps_other_homes=True).value(taken)
