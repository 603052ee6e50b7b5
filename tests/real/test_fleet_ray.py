"""`whygpu fleet check` on a real Ray cluster of several nodes, of which one dies and one hangs.

Each node is a raylet of its own with its own variables: its own driver (the stub of the fault lab)
and its own way to fail.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.lab.driver import StubDriver, StubGpu
from tests.patience import wait_until

ray = pytest.importorskip("ray", reason="needs whygpu[ray]")
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="the stub driver needs gcc")

LIMIT = 60
SLOW_START = """
import os, sys, time
if "whygpu" in sys.orig_argv and "WHYGPU_TEST_STARTED" in os.environ:
    open(os.environ["WHYGPU_TEST_STARTED"], "w").close()
    time.sleep(600)
"""
"""Runs in every Python of a node; only whygpu's own process says that it has begun, and waits."""


class Nodes(NamedTuple):
    cluster: Any
    by_name: dict[str, Any]
    folder: pathlib.Path

    def has_begun(self, name: str) -> bool:
        """Whether whygpu has been started on a node that hangs."""
        return _mark_of_start(self.folder, name).exists()


def _mark_of_start(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / f"{name}-has-begun"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("ray")
    (folder / "start").mkdir()
    (folder / "start" / "sitecustomize.py").write_text(SLOW_START)

    def variables(name: str, version: str, *, hangs: bool = False) -> dict[str, str]:
        driver = StubDriver(version=version, gpus=(StubGpu(),) * 2)
        found = driver.install(folder / name, cache=folder / "cache")
        if hangs:
            began = str(_mark_of_start(folder, name))
            found |= {"PYTHONPATH": str(folder / "start"), "WHYGPU_TEST_STARTED": began}
        return found

    made: Any = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "include_dashboard": False,
            "node_name": "head",
            "env_vars": variables("head", "580.65.06"),
        },
    )
    by_name = {
        name: made.add_node(num_cpus=1, node_name=name, env_vars=environ, wait=False)
        for name, environ in {
            "fine": variables("fine", "580.65.06"),
            "old": variables("old", "570.10"),
            "dies": variables("dies", "580.65.06", hangs=True),
            "hangs": variables("hangs", "580.65.06", hangs=True),
        }.items()
    }
    made.wait_for_nodes()
    yield Nodes(made, by_name, folder)
    made.shutdown()


def test_a_report_is_complete_if_one_node_dies_and_one_hangs(
    nodes: Nodes, tmp_path: pathlib.Path
) -> None:
    def end_a_node_at_work() -> None:
        wait_until(lambda: nodes.has_begun("dies"))
        nodes.cluster.remove_node(nodes.by_name["dies"], allow_graceful=False)

    listed = tmp_path / "hostfile"
    listed.write_text("fine slots=1\nold slots=1\ndies slots=1\nhangs slots=1\nbefore slots=1\n")
    killer = threading.Thread(target=end_a_node_at_work, daemon=True)
    killer.start()
    words = ["fleet", "check", "--ray", nodes.cluster.address, "--no-probe", "--json"]
    words += ["--node-limit", str(LIMIT), "--keep", str(tmp_path), "--expect", str(listed)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "whygpu", *words],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "RAY_DEDUP_LOGS": "0"},
    )
    killer.join(10)
    report = json.loads(done.stdout)
    assert report["nodes"] == 6
    lost = {row["node"]: row["kind"] for row in report["lost"]}
    assert lost == {"dies": "died", "hangs": "hung", "before": "missing"}
    assert report["unexpected"] == ["head"]
    (drift,) = (row for row in report["drift"] if row["fact"] == "driver")
    assert (drift["usual"], drift["usual_nodes"]) == ("580.65.06", 2)
    assert drift["others"] == [{"value": "570.10", "nodes": ["old"]}]
    assert [row["gpus"] for row in report["hardware"]] == ["2 x NVIDIA A100-SXM4-40GB"]
    assert {path.stem for path in tmp_path.glob("*.json")} == {"head", "fine", "old"}
    assert time.monotonic() - began < LIMIT + 120


def test_logs_are_explained_by_the_cluster_as_by_one_process(
    nodes: Nodes,
) -> None:
    logs = str(pathlib.Path(__file__).parent.parent / "logs")

    def counted(*words: str) -> Any:
        command = [sys.executable, "-m", "whygpu", "fleet", "explain", logs, "--json", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=250)
        return json.loads(done.stdout)

    assert counted("--ray", nodes.cluster.address) == counted("--workers", "1")


def test_a_cluster_that_is_not_there_is_wrong_usage() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "whygpu", "fleet", "check", "--ray", "127.0.0.1:1", "--no-probe"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot reach the Ray cluster 127.0.0.1:1" in done.stderr
