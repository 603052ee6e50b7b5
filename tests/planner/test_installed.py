"""Installed releases that are newer than the table are judged by their own files."""

from __future__ import annotations

from tests.kit import machine
from tests.planner.small_table import release, tensorflow
from whygpu.model.install_plan import TableEdition
from whygpu.model.release import Release
from whygpu.model.snapshot import Snapshot
from whygpu.planner.candidates import Table
from whygpu.planner.installed import installed_rows
from whygpu.planner.machine import from_snapshot
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.wishes import parse

ROWS = (
    release("torch", "2.7.0", cuda="12.6", architectures=("sm_80",)),
    release("jax", "0.7.0"),
    release("jax-cuda12-plugin", "0.7.0", cuda="12.9", architectures=("sm_80",)),
    release("keras", "3.11.3"),
    tensorflow("2.20.0", "3.11", "12.5.1"),
)
"""An old table: the healthy machine has torch 2.8.0 and JAX 0.7.2 for CUDA 12."""


def versions_of(package: str) -> list[Release]:
    return [row for row in ROWS if row.package == package]


def table_for(snapshot: Snapshot) -> Table:
    rows = installed_rows(snapshot.target, versions_of)
    return Table(versions_of, TableEdition("2025-06-01", "shipped"), rows)


def test_only_what_is_newer_than_the_table_gets_a_row() -> None:
    rows = installed_rows(machine().target, versions_of)
    assert [(row.package, row.version) for row in rows] == [
        ("jax-cuda12-plugin", "0.7.2"),
        ("jax", "0.7.2"),
        ("torch", "2.8.0"),
    ]


def test_the_row_has_what_the_files_show() -> None:
    snapshot = machine()
    (torch,) = (r for r in installed_rows(snapshot.target, versions_of) if r.package == "torch")
    assert torch.cuda == "12.8"
    assert "sm_90" in torch.architectures
    assert torch.pythons == (from_snapshot(snapshot).python_minor,)
    assert torch.file == "the installed files of torch 2.8.0"


def test_the_answer_says_how_it_was_judged() -> None:
    snapshot = machine()
    remark = "is newer than this table of 2025-06-01, and was judged by its installed files"
    for name, version in (("torch", "2.8.0"), ("jax", "0.7.2")):
        answer = make_plan(from_snapshot(snapshot), (parse(name),), table_for(snapshot))
        assert answer.plan is not None, name
        assert answer.plan.chosen[0].version == version
        assert remark in answer.plan.verdicts[0].notes
    chain = why_not(from_snapshot(snapshot), parse("torch"), (), table_for(snapshot)).chain
    assert ("build", "note", remark) in chain


def test_a_release_of_the_table_has_no_remark() -> None:
    answer = make_plan(from_snapshot(machine()), (parse("keras"),), table_for(machine()))
    assert all(not verdict.candidate.remark for verdict in answer.candidates)


def test_a_build_that_the_files_do_not_show_is_unknown() -> None:
    snapshot = machine('[target.frameworks.torch.build]\ncuda = {unknown = "no permission"}')
    (torch,) = (r for r in installed_rows(snapshot.target, versions_of) if r.package == "torch")
    assert (torch.cuda, torch.architectures, torch.unread) == ("", (), "no permission")


def test_an_installed_cpu_build_does_not_speak_for_the_release() -> None:
    snapshot = machine('[target.frameworks.torch.build]\nkind = "cpu"')
    (torch,) = (r for r in installed_rows(snapshot.target, versions_of) if r.package == "torch")
    assert torch.unread == "the installed build is not one for CUDA"


def test_without_frameworks_there_are_no_rows() -> None:
    snapshot = machine('[target]\nframeworks = {unknown = "not looked"}')
    assert installed_rows(snapshot.target, versions_of) == ()
