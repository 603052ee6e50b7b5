"""A report on many snapshots names what is wrong and what is different, and nothing else."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import pathlib
from typing import Any

import pytest

from tests.fleet.closed import closed_to_the_walk
from tests.fleet.made import HEALTHY, MACHINES, eight_gpus, make_fleet, recorded
from tests.kit import machine
from tests.schemas import obeys
from whygpu import UsageError, diagnose, fleet_report
from whygpu.cli.main import main
from whygpu.fleet.drift import drift_of
from whygpu.fleet.expected import compared
from whygpu.fleet.summary import node_report, summarise
from whygpu.model.codec import decode, encode
from whygpu.model.fleet import FleetReport, NodeLoss, NodeReport, OddValue
from whygpu.model.observed import Known, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.readers.saved_snapshot import read_snapshot
from whygpu.render.fleet_text import render


def node(name: str, toml: str = "") -> NodeReport:
    return node_report(name, diagnose(machine(toml)))


def summary(*nodes: NodeReport, lost: tuple[NodeLoss, ...] = ()) -> FleetReport:
    return summarise(nodes, lost, lambda node, code: None)


@pytest.mark.slow
def test_planted_nodes_are_named_and_no_others(tmp_path: pathlib.Path) -> None:
    planted = make_fleet(tmp_path / "fleet", 80, each=2)
    report = fleet_report(tmp_path / "fleet")
    found = {group.cause: set(group.nodes) for group in report.causes}
    assert found == planted.causes
    odd: dict[str, dict[str, set[str]]] = {}
    for drift in report.drift:
        assert drift.usual is not None
        for other in drift.others:
            odd.setdefault(drift.fact, {})[other.value] = set(other.nodes)
    # The module has the version of the driver.
    assert odd.pop("kernel module") == planted.odd["driver"]
    assert odd == planted.odd
    assert {loss.node for loss in report.lost} == planted.unreadable
    assert {loss.kind for loss in report.lost} == {"unreadable"}
    assert report.nodes == 80
    assert sum(count.nodes for count in report.verdicts) + len(report.lost) == 80
    assert report.exit_code == 1


@pytest.mark.slow
def test_many_snapshots_are_judged_by_a_pool_with_the_same_result(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_fleet(tmp_path, 60, each=1)
    alone = fleet_report(tmp_path)
    monkeypatch.setattr("whygpu.fleet.judging._WORTH_A_POOL", 1)
    monkeypatch.setattr("whygpu.fleet.judging.cores", lambda: 2)
    assert fleet_report(tmp_path) == alone


def test_each_cause_has_an_example_with_its_remedies(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_bytes((MACHINES / "h200-hidden-empty.json").read_bytes())
    (group,) = fleet_report(tmp_path).causes
    assert group.example is not None
    assert group.example.node == "a"
    assert group.example.finding.remedies


@pytest.mark.parametrize(
    ("expected", "seen", "lost", "extra"),
    [
        (["n1.cluster.local", "n2"], ["n1", "n2.cluster.local"], [], []),
        (["n1.cluster.local", "n2.cluster.local"], ["n1"], ["n2.cluster.local"], []),
        # Which of the two it is cannot be told.
        (["n1.a", "n1.b"], ["n1"], ["n1.a", "n1.b"], ["n1"]),
        (["n1"], ["n1.a", "n1.b"], ["n1"], ["n1.a", "n1.b"]),
        (["n1.a"], ["n1.b"], ["n1.a"], ["n1.b"]),
        (["10.0.0.1"], ["10.0.0.2"], ["10.0.0.1"], ["10.0.0.2"]),
        (["10"], ["10.0.0.2"], ["10"], ["10.0.0.2"]),
        # In a folder below, and in several: one for each day.
        (["n1", "n2.cluster.local"], ["rack/n1", "rack/n2"], [], []),
        (["n1"], ["monday/n1", "tuesday/n1"], [], []),
        (["n1"], ["/east/n1.json", "/west/n1.json"], [], []),
        (["rack1/n1"], ["rack2/n1"], ["rack1/n1"], ["rack2/n1"]),
        (["GPU-1", "gpu-2.cluster.local"], ["gpu-1", "GPU-2"], [], []),
    ],
)
def test_an_expected_node_is_known_by_its_host_name(
    expected: list[str], seen: list[str], lost: list[str], extra: list[str]
) -> None:
    assert compared(expected, seen) == (tuple(lost), tuple(extra))


def test_a_node_that_is_on_no_list_is_named(tmp_path: pathlib.Path) -> None:
    for name in ("a", "b", "forged"):
        (tmp_path / f"{name}.json").write_bytes((MACHINES / f"{HEALTHY}.json").read_bytes())
    names = tmp_path / "names"
    names.write_text("a slots=8\nb slots=8\n")
    report = fleet_report(tmp_path, expect=names)
    assert report.unexpected == ("forged",)
    assert "Not on the list of expected nodes:\n   forged (1)" in render(
        report, width=80, color=False
    )
    assert fleet_report(tmp_path).unexpected == ()


def test_a_closed_folder_and_other_files_are_named_and_do_not_end_the_report(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = (MACHINES / f"{HEALTHY}.json").read_bytes()
    for name in ("a.json", "B.JSON", "c.json.bak", ".d.json"):
        (tmp_path / name).write_bytes(healthy)
    (tmp_path / "lost+found").mkdir()
    closed_to_the_walk(monkeypatch, tmp_path / "lost+found")
    report = fleet_report(tmp_path)
    assert [count.names for count in report.verdicts] == [("B", "a")]
    assert report.other_files == 2
    assert report.unread_folders == ((str(tmp_path / "lost+found"), "Permission denied"),)
    assert report.exit_code == 4
    assert main(["fleet", "report", str(tmp_path), "-v"]) == 4
    shown = capsys.readouterr().out
    assert "2 files with other names were not read" in shown
    assert "lost+found:Permissiondenied" in "".join(shown.split())
    assert "on the GPU (2): B, a" in shown
    main(["fleet", "report", str(tmp_path), "--json"])
    obeys("fleet", json.loads(capsys.readouterr().out))


def test_a_file_that_is_named_twice_is_one_node(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_bytes((MACHINES / f"{HEALTHY}.json").read_bytes())
    (tmp_path / "below").mkdir()
    assert fleet_report([tmp_path, f"{tmp_path}/below/../a.json"]).nodes == 1


def test_an_expected_node_without_a_snapshot_is_reported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_bytes((MACHINES / f"{HEALTHY}.json").read_bytes())
    names = tmp_path / "names.txt"
    names.write_text("# all of them\nnode/a\nb\n\nb\n")
    report = fleet_report(tmp_path / "a.json", expect=names)
    assert [(loss.node, loss.kind) for loss in report.lost] == [("b", "missing")]
    assert report.exit_code == 4


def test_nodes_in_two_folders_keep_apart(tmp_path: pathlib.Path) -> None:
    content = (MACHINES / f"{HEALTHY}.json").read_bytes()
    for folder in ("east", "west"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "n1.json").write_bytes(content)
    below = fleet_report(tmp_path)
    assert below.nodes == 2
    both = fleet_report([tmp_path / "east", tmp_path / "west"])
    assert both.nodes == 2


def test_only_the_odd_value_is_named() -> None:
    old = '[driver]\nversion = "570.10"'
    nodes = [node(f"n{i}") for i in range(4)]
    (drift,) = [d for d in drift_of([*nodes, node("odd", old)]) if d.fact == "driver"]
    assert (drift.usual, drift.usual_nodes, drift.compared) == ("580.65.06", 4, 5)
    assert [(other.value, other.nodes) for other in drift.others] == [("570.10", ("odd",))]


def test_half_of_the_nodes_are_no_majority() -> None:
    old = '[driver]\nversion = "570.10"'
    (drift,) = [d for d in drift_of([node("a"), node("b", old)]) if d.fact == "driver"]
    assert drift.usual is None
    assert {other.value for other in drift.others} == {"580.65.06", "570.10"}


def test_a_majority_says_of_how_many_nodes_nothing_is_known() -> None:
    silent = '[driver]\nversion = {unknown = "NVML: Unknown Error"}'
    old = '[driver]\nversion = "570.10"'
    report = summary(node("a"), node("b"), node("c", silent), node("d", silent), node("odd", old))
    shown = " ".join(render(report, width=80, color=False).split())
    assert (
        "driver 580.65.06 on 2 of 3 nodes with 1 x NVIDIA RTX A6000, not counting 2 where it is "
        "unknown" in shown
    )
    assert "driver on 2 nodes: NVML: Unknown Error" in shown
    assert "1 node not like the others" in shown


@pytest.mark.parametrize(("new", "odd"), [(1, True), (3, True), (4, False), (5, False)])
def test_no_half_of_a_fleet_is_the_odd_one(new: int, odd: bool) -> None:
    updated = '[system]\nkernel = "6.8.0-60-generic"\n'
    nodes = [node(f"n{i}", updated if i < new else "") for i in range(9)]
    (kernel,) = (drift for drift in summary(*nodes).drift if drift.fact == "kernel")
    assert (kernel.usual is not None) is odd
    assert {name for other in kernel.others for name in other.nodes} >= {
        f"n{i}" for i in range(new)
    }


def test_facts_in_which_the_same_nodes_differ_stand_together() -> None:
    bare = "only = []"
    nodes = [*(node(f"n{i}") for i in range(4)), node("x", bare), node("y", bare)]
    report = summary(*nodes)
    facts = [drift.fact for drift in report.drift]
    assert {"torch", "jax"} <= set(facts)
    shown = render(report, width=80, color=False)
    assert shown.count("x, y (2)") == 1
    for fact in facts:
        assert f"\n      {fact}  none; " in shown


def test_a_node_without_a_framework_is_named_with_the_reason() -> None:
    report = summary(node("a"), node("bare", "only = []"))
    (reason,) = [row for row in report.uncheckable if row.nodes == ("bare",)]
    assert reason.reason.startswith("no deep-learning framework is installed")


def test_what_is_unknown_is_said_once_for_each_reason() -> None:
    denied = '[driver]\nxids = {unknown = "the kernel log: not permitted"}'
    read = "[driver]\nxids = []"
    report = summary(node("a", read), node("b", denied), node("c", denied))
    (row,) = report.unknown_facts
    assert row == ("the kernel log: not permitted", ("Xids",), ("b", "c"))
    assert report.standing == "fine"
    assert "Xids on 2 nodes: the kernel log: not permitted" in render(report, width=80, color=False)


def test_cards_of_one_name_with_other_memory_are_odd() -> None:
    """As of the GeForce RTX 3060. A few megabytes are the driver's; main memory is everyone's."""
    sizes = {"n1": 48 << 30, "n2": (48 << 30) - (200 << 20), "n3": 48 << 30, "n4": 32 << 30}
    nodes = [
        node(name, f"[driver.gpus.0]\nmemory_total_bytes = {size}\n")
        for name, size in sizes.items()
    ]
    (drift,) = (each for each in summary(*nodes).drift if each.fact == "GPU memory")
    assert (drift.usual, drift.others) == ("48 GiB", (OddValue("32 GiB", ("n4",)),))
    shared = [
        node(name, f"[driver.gpus.0]\ncompute_capability = '12.1'\nmemory_total_bytes = {size}\n")
        for name, size in sizes.items()
    ]
    assert not [each for each in summary(*shared).drift if each.fact == "GPU memory"]


def test_an_unknown_fact_is_not_odd() -> None:
    silent = '[driver]\nversion = {unknown = "NVML: Unknown Error"}'
    nodes = [node("a"), node("b"), node("c", silent)]
    assert [d for d in drift_of(nodes) if d.fact == "driver"] == []
    old = node("d", '[driver]\nversion = "570.10"')
    (drift,) = [d for d in drift_of([*nodes, old]) if d.fact == "driver"]
    assert (drift.compared, drift.unknown) == (3, 1)


def test_machines_with_other_gpus_are_not_compared() -> None:
    other = '[driver]\nversion = "570.10"\n[driver.gpus.0]\nname = "NVIDIA L4"'
    nodes = [*(node(f"a{i}") for i in range(3)), *(node(f"l{i}", other) for i in range(2))]
    assert [d for d in drift_of(nodes) if d.fact == "driver"] == []


def test_a_node_whose_driver_is_silent_is_compared_with_its_own_kind() -> None:
    silent = """
[driver]
state = "hung"
gpus = {unknown = "NVML did not answer"}
[system]
kernel = "5.0-other"
"""
    nodes = [*(node(f"n{i}") for i in range(3)), node("silent", silent)]
    (drift,) = [d for d in drift_of(nodes) if d.fact == "kernel"]
    assert drift.others[0].nodes == ("silent",)


def test_a_missing_gpu_shows_between_machines_with_the_same_processor() -> None:
    def report(name: str, count: int) -> NodeReport:
        data = recorded(HEALTHY)
        eight_gpus(data, count=count)
        return node_report(name, diagnose(decode(Snapshot, data)))

    (drift,) = drift_of([report("a", 8), report("b", 8), report("c", 7)])
    assert drift.fact == "GPUs"
    assert drift.others[0].nodes == ("c",)


def test_what_the_nodes_of_a_cause_share_is_named() -> None:
    hidden = """
[environment.visible_gpus]
text = ""
visible = []
ignored = []
[system]
distribution = "Debian 11"
"""
    nodes = [*(node(f"n{i}") for i in range(3)), node("x", hidden), node("y", hidden)]
    report = summary(*nodes)
    (group,) = [g for g in report.causes if g.cause == "visible-devices-hides-gpu"]
    assert group.nodes == ("x", "y")
    assert group.shared == (("distribution", "Debian 11", 0),)


def test_what_only_some_nodes_have_says_on_how_many_it_is_unknown() -> None:
    worn = '[driver.gpus.0]\necc_uncorrected = 3\n[system]\ndistribution = "Debian 11"'
    silent = '[system]\ndistribution = {unknown = "/etc/os-release: not permitted"}'
    nodes = (node("a"), node("d"), node("b", silent), node("c", silent), node("x", worn))
    report = summary(*nodes)
    (group,) = report.causes
    assert group.shared == (("distribution", "Debian 11", 2),)
    assert (report.affected, report.odd) == (("x",), ("x",))
    shown = " ".join(render(report, width=80, color=False).split())
    assert "distribution Debian 11 (unknown on 2 of the others)" in shown
    assert "1 node with something to do, 1 node not like the others" in shown


def test_causes_of_most_nodes_come_first_within_a_severity() -> None:
    prohibited = '[driver.gpus.0]\ncompute_mode = "prohibited"\n[system]\nkernel = "x"'
    worn = "[driver.gpus.0]\necc_uncorrected = 3"
    nodes = [node("a", worn), node("b", worn), node("c", prohibited), node("d", worn)]
    codes = [(group.severity, group.code, len(group.nodes)) for group in summary(*nodes).causes]
    assert codes == sorted(codes, key=lambda row: (row[0] != "error", -row[2]))
    assert {"WG107", "WG109"} <= {code for _, code, _ in codes}


def test_nothing_wrong_is_fine_only_if_every_node_was_judged() -> None:
    fine = [node("a"), node("b")]
    assert summary(*fine).standing == "fine"
    assert summary(*fine, lost=(NodeLoss("c", "hung", "x"),)).standing == "unknown"
    assert summary().standing == "unknown"
    blind = node("c", "nothing_seen = true")
    assert summary(*fine, blind).standing != "fine"


@pytest.mark.slow
def test_a_hostile_snapshot_costs_little() -> None:
    data = recorded(HEALTHY)
    data["driver"]["version"]["known"] = "9" * 1_000_000
    data["driver"]["gpus"] = {"unknown": "y" * 1_000_000}
    data["system"]["cpu"]["model"]["known"] = "z" * 1_000_000
    made = node_report("x", diagnose(decode(Snapshot, data)))
    assert len(json.dumps([str(part) for part in made])) < 20_000
    assert isinstance(made.gpus, Unknown)


def test_a_compressed_snapshot_is_read_under_the_name_of_its_node(tmp_path: pathlib.Path) -> None:
    content = (MACHINES / f"{HEALTHY}.json").read_bytes()
    (tmp_path / "gpu-1.json.gz").write_bytes(gzip.compress(content))
    (tmp_path / "GPU-2.JSON.XZ").write_bytes(lzma.compress(content))
    names = tmp_path / "names"
    names.write_text("gpu-[1-2].cluster.local\n")
    report = fleet_report(tmp_path, expect=names)
    assert [count.names for count in report.verdicts] == [("GPU-2", "gpu-1")]
    assert report.lost == ()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (gzip.compress(bytes(1 << 25)), "only the first 16 MiB of the unpacked snapshot were read"),
        (gzip.compress(b"{}" * 999)[:20], "the gzip data are truncated"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "is a PNG image, not a snapshot"),
        (b"\x8b\x8b", "it has binary data, not text"),
        (b"", "it is empty"),
        (b"bash: whygpu: command not found\n", "a message: bash: whygpu: command not found"),
        (b"root:$6$secret:1\n", "it is not JSON, but perhaps the message of a program that failed"),
    ],
    ids=["bomb", "truncated", "image", "binary", "empty", "message", "other"],
)
def test_what_is_wrong_with_a_file_is_said_in_plain_words(
    content: bytes, why: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "a.json").write_bytes(content)
    (loss,) = fleet_report(tmp_path).lost
    assert loss.kind == "unreadable"
    assert why in loss.reason
    assert "secret" not in loss.reason


def test_nodes_that_are_lost_for_one_reason_are_one_row(tmp_path: pathlib.Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.json").write_bytes(b"{")
    shown = render(fleet_report(tmp_path), width=80, color=False)
    assert "   a, b, c (3)\n      unreadable: its file is no snapshot: it ends in" in shown


def test_a_pipe_among_the_snapshots_does_not_block(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (loss,) = fleet_report(tmp_path).lost
    assert "pipe" in loss.reason


def test_no_snapshot_at_all_is_wrong_usage(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="no snapshot in"):
        fleet_report(tmp_path)
    with pytest.raises(UsageError, match="there is no"):
        fleet_report(tmp_path / "nowhere")


def test_the_text_counts_every_node_once() -> None:
    report = summary(node("a"), node("b"), lost=(NodeLoss("c", "hung", "no answer in 60 s"),))
    text = render(report, width=80, color=False)
    assert text.startswith("? 3 nodes: 2 on the GPU, 1 without a usable snapshot")
    assert "c  hung: no answer in 60 s" in text


def test_names_of_nodes_stay_and_cannot_forge_lines(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "10.1.2.3.json").write_text("{")
    (tmp_path / "a\n✓ forged\x1b[2J.json").write_text("{")
    assert main(["fleet", "report", str(tmp_path)]) == 4
    shown = capsys.readouterr().out
    assert "10.1.2.3" in shown
    assert "\n✓ forged" not in shown
    assert "\x1b" not in shown


@pytest.mark.slow
def test_the_json_obeys_its_schema(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_fleet(tmp_path, 40, each=1)
    assert main(["fleet", "report", "--json", str(tmp_path)]) == 1
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    obeys("fleet", data)
    assert data["nodes"] == 40
    assert data["causes"][0]["example"]["finding"]["remedies"]


def test_settings_of_the_hardware_are_compared() -> None:
    odd = """
[driver.gpus.0.health]
vbios = "94.02.26.00.01"
power_limit_watts = 200
persistence = false
fabric = "in-progress"
[driver.gpus.0.health.pcie]
generation = 1
"""
    found = {
        drift.fact: drift.others[0].value
        for drift in drift_of([node("a"), node("b"), node("odd", odd)])
    }
    assert found == {
        "VBIOS": "94.02.26.00.01",
        "NVSwitch fabric": "in-progress",
        "persistence mode": "off",
        "power limit": "200 W of 300 W",
    }


def test_gpus_of_one_node_that_differ_are_told_apart() -> None:
    data = recorded(HEALTHY)
    eight_gpus(data, count=3)
    data["driver"]["gpus"]["known"][1]["compute_mode"]["known"] = "exclusive"
    made = node_report("x", diagnose(decode(Snapshot, data)))
    modes = {fact.name: fact.value for fact in made.facts}["compute mode"]
    assert isinstance(modes, Known)
    assert modes.value == "default (GPU 0 2), exclusive (GPU 1)"


def test_what_is_unknown_of_one_gpu_names_it_and_of_all_does_not() -> None:
    data = recorded(HEALTHY)
    eight_gpus(data, count=3)
    gpus = data["driver"]["gpus"]["known"]
    for chosen, reason in ((gpus[1:2], "GPU 1: lost"), (gpus, "lost")):
        for gpu in chosen:
            gpu["mig"] = {"unknown": "lost"}
        made = node_report("x", diagnose(decode(Snapshot, data)))
        assert {fact.name: fact.value for fact in made.facts}["MIG"] == Unknown(reason)


def test_xids_of_the_hardware_make_a_node_odd_and_those_of_programs_do_not() -> None:
    def logged(number: int) -> str:
        return (
            f'[[driver.xids]]\naddress = "0000:41:00"\nnumber = {number}\ntimes = 1\n'
            "last_second = 60\n"
        )

    found = drift_of([node("a", logged(31)), node("b", logged(63)), node("odd", logged(79))])
    assert [(drift.fact, drift.usual, drift.others[0].value) for drift in found] == [
        ("Xids", "none", "79 (GPU 0)")
    ]


def test_a_snapshot_that_repeats_a_framework_is_damaged() -> None:
    taken = encode(machine())
    taken["target"]["frameworks"]["known"] *= 2
    with pytest.raises(UsageError, match='each framework once, received "tensorflow"'):
        read_snapshot(json.dumps(taken).encode(), "node.json")
