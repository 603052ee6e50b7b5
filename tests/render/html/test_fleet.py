"""Many machines and the logs of many jobs on a page."""

from __future__ import annotations

import pathlib
from xml.etree import ElementTree

import pytest

from tests.fleet.made import make_fleet
from whygpu import fleet_explain, fleet_report
from whygpu.model.fleet import FleetReport, NodeLoss
from whygpu.render.html.answers import fragment, page

LOGS = pathlib.Path(__file__).parent.parent.parent / "logs"


def texts(markup: str, path: str) -> list[str]:
    tree = ElementTree.fromstring(markup.removeprefix("<!DOCTYPE html>"))
    return ["".join(found.itertext()) for found in tree.iterfind(path)]


@pytest.mark.slow
def test_every_node_that_is_lost_or_odd_is_on_the_page(tmp_path: pathlib.Path) -> None:
    planted = make_fleet(tmp_path, 40, each=1)
    made = page(fleet_report(tmp_path), "1.0")
    assert "40 nodes: 35 on the GPU" in texts(made, ".//h1")[0]
    whole = "".join(texts(made, ".//body"))
    nodes = set().union(*planted.causes.values(), planted.unreadable)
    for values in planted.odd.values():
        nodes.update(*values.values())
    assert [node for node in sorted(nodes) if node not in whole] == []
    titles = [text.strip() for text in texts(made, ".//h2")]
    assert titles[1:] == [
        "Not like the others",
        "Without a usable snapshot",
        "Not compared, because it is unknown there",
        "Every node",
    ]
    assert titles[0].startswith("What to do")


def test_names_of_nodes_are_text() -> None:
    lost = NodeLoss("<script>alert(1)</script>", "hung", "<b>no</b>")
    report = FleetReport(1, (), (), (), (), (lost,), (), "", "")
    assert "<script>alert" not in fragment(report)
    assert "&lt;script&gt;alert(1)" in fragment(report)


@pytest.mark.slow
def test_the_jobs_of_each_cause_are_counted() -> None:
    found = fleet_explain(LOGS)
    made = page(found, "1.0")
    groups = texts(made, ".//article")
    assert len(groups) == len(found.causes)
    for text, group in zip(groups, found.causes, strict=True):
        assert f"{group.code} {group.cause}" in text
        assert f"{group.jobs} job" in text
