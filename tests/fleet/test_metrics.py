"""Metrics of a fleet: what is in them, that Prometheus' own parser reads them, and who may ask."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.fleet.made import make_fleet
from tests.patience import PATIENCE
from whygpu import fleet_report
from whygpu.cli.fleet_metrics import endpoint
from whygpu.cli.main import main
from whygpu.render.fleet_metrics import render

parser = pytest.importorskip("prometheus_client.parser", reason="needs whygpu[metrics]")


def samples(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


@pytest.mark.slow
def test_the_metrics_say_what_the_report_says(tmp_path: pathlib.Path) -> None:
    planted = make_fleet(tmp_path, 40, each=1)
    report = fleet_report(tmp_path)
    found = samples(render(report, made=1000.0))
    verdicts = {dict(labels)["verdict"]: n for labels, n in found["whygpu_fleet_nodes"].items()}
    assert sum(verdicts.values()) == report.judged
    assert verdicts["broken"] == 0
    causes = {(dict(row)["cause"], dict(row)["node"]) for row in found["whygpu_node_cause"]}
    assert causes == {(cause, node) for cause, nodes in planted.causes.items() for node in nodes}
    odd = {dict(row)["node"] for row in found["whygpu_node_odd"]}
    assert odd == {
        node for values in planted.odd.values() for nodes in values.values() for node in nodes
    }
    assert {dict(row)["node"] for row in found["whygpu_node_lost"]} == planted.unreadable
    assert found["whygpu_fleet_report_time_seconds"] == {(): 1000.0}


def test_hostile_names_cannot_add_samples(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'a"} 1\nwhygpu_fleet_nodes{verdict="gpu"} 99.json').write_text("{")
    found = samples(render(fleet_report(tmp_path), made=1.0))
    assert set(found["whygpu_fleet_nodes"].values()) == {0.0}
    assert len(found["whygpu_node_lost"]) == 1


@pytest.mark.slow
def test_a_file_for_the_node_exporter(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_fleet(tmp_path / "fleet", 30, each=1)
    path = tmp_path / "whygpu.prom"
    assert main(["fleet", "report", str(tmp_path / "fleet"), "--metrics", str(path)]) == 1
    assert sum(samples(path.read_text())["whygpu_fleet_nodes"].values()) == 28
    assert main(["fleet", "report", str(tmp_path), "--metrics", str(tmp_path / "no" / "x")]) == 2


def test_a_file_that_holds_something_else_is_not_replaced(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = tmp_path / "a.json"
    snapshot.write_text("{}")
    assert main(["fleet", "report", str(tmp_path), "--metrics", str(snapshot)]) == 2
    assert snapshot.read_text() == "{}"
    assert "holds no metrics" in capsys.readouterr().err
    path = tmp_path / "old.prom"
    for _ in range(2):
        assert main(["fleet", "report", str(tmp_path), "--metrics", str(path)]) == 4
    path.write_text("")
    assert main(["fleet", "report", str(tmp_path), "--metrics", str(path)]) == 4


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "1e9"])
def test_how_often_a_report_is_made_is_checked_before_anything_is_served(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], every: str
) -> None:
    (tmp_path / "a.json").write_text("{}")
    words = ["fleet", "report", str(tmp_path), "--serve", "0", f"--every={every}"]
    assert main(words) == 2
    assert "--every" in capsys.readouterr().err


@pytest.fixture
def served(tmp_path: pathlib.Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    make_fleet(tmp_path, 30, each=1)
    words = ["fleet", "report", str(tmp_path), "--serve", "0", "--every", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "whygpu", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    match = re.search(r"http://\S+/metrics", line)
    assert match is not None, line
    yield match[0], process
    process.kill()
    process.wait()
    process.stderr.close()


@pytest.mark.slow
def test_metrics_are_served_to_this_machine_until_interrupted(
    served: tuple[str, subprocess.Popen[str]],
) -> None:
    address, process = served
    assert address.startswith("http://127.0.0.1:")
    first = samples(urllib.request.urlopen(address, timeout=PATIENCE).read().decode())
    assert sum(first["whygpu_fleet_nodes"].values()) == 28
    began = first["whygpu_fleet_report_time_seconds"][()]
    deadline = time.monotonic() + PATIENCE
    now = began
    while now == began and time.monotonic() < deadline:
        time.sleep(0.5)
        again = samples(urllib.request.urlopen(address, timeout=PATIENCE).read().decode())
        now = again["whygpu_fleet_report_time_seconds"][()]
    assert now > began
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == 130


@pytest.mark.slow
def test_a_port_that_is_taken_is_wrong_usage(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_fleet(tmp_path, 24, each=1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["fleet", "report", str(tmp_path), "--serve", port]) == 2
    assert "choose another port" in capsys.readouterr().err


def test_other_machines_are_served_only_if_an_address_is_given() -> None:
    assert endpoint("9400") == ("127.0.0.1", 9400)
    assert endpoint("0.0.0.0:9400") == ("0.0.0.0", 9400)
    assert endpoint("[::1]:9400") == ("::1", 9400)
