"""What engines share: the command for a node, and files that hostile names cannot lead astray."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from whygpu import UsageError, fleet_check
from whygpu.fleet import ray_nodes
from whygpu.fleet.gathering import NODE_LIMIT, NodeRequest, distinct, file_name, node_limit, save
from whygpu.model.fleet import NodeLoss
from whygpu.readers import limits

REQUEST = NodeRequest(None, False, 60.0, 20.0)


@pytest.mark.parametrize(
    "node", ["gpu-1", "../../etc/passwd", "/abs", ".", "..", "", "a\nb", "x" * 1000, "\x1b[2J"]
)
def test_a_file_stays_in_its_folder(node: str, tmp_path: pathlib.Path) -> None:
    path = save(str(tmp_path), node, b"{}")
    assert isinstance(path, str)
    assert pathlib.Path(path).resolve().parent == tmp_path.resolve()
    assert file_name(node).endswith(".json")


def test_eight_gpus_under_load_are_not_called_hung() -> None:
    """They are tested one after the other."""
    assert node_limit(None) == NODE_LIMIT
    assert node_limit(60.0) >= NODE_LIMIT + 8 * 60.0


def test_no_two_nodes_have_the_same_file() -> None:
    names = ["", "node", "gpu 1", "gpu_1", "gpu/1", ".gpu_1", "x" * 300, "x" * 301, "x" * 200]
    assert len({file_name(name) for name in names}) == len(names)
    assert file_name("gpu_1") == "gpu_1.json"
    assert not any(file_name(name).startswith(".") for name in names)


def test_a_snapshot_that_cannot_be_saved_is_a_row(tmp_path: pathlib.Path) -> None:
    lost = save(str(tmp_path / "gone"), "a", b"{}")
    assert isinstance(lost, NodeLoss)
    assert "could not be saved: No such file or directory" in lost.reason


def test_a_node_that_sends_too_much_is_a_row(tmp_path: pathlib.Path) -> None:
    lost = save(str(tmp_path), "a", b"x" * (limits.SNAPSHOT + 1))
    assert isinstance(lost, NodeLoss)
    assert lost.kind == "unreadable"
    assert os.listdir(tmp_path) == []


def test_nodes_with_the_same_name_get_a_part_of_their_id() -> None:
    ids = ["1" * 20, "2" * 20, "3" * 20]
    assert distinct(["a", "b", "a"], ids) == ["a-11111111", "b", "a-33333333"]


def test_the_words_for_a_node() -> None:
    assert REQUEST.words() == ("snapshot", "--timeout", "60", "--no-probe")
    assert NodeRequest("/x", True, 5, 1).words() == ("snapshot", "--timeout", "5", "--python", "/x")


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"whygpu\[ray\]"):
        fleet_check()


def test_a_limit_that_is_no_time_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="node_limit=0"):
        fleet_check(node_limit=0)


def test_a_snapshot_is_taken_with_the_variables_of_the_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    # pytest's parent has variables of its own; os.environ changes do not reach it.
    assert ray_nodes.environment_of_node().get("CUDA_VISIBLE_DEVICES", "not set") != ""


def test_whygpu_that_fails_on_a_node_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, why = _here(monkeypatch, "import sys; sys.exit('no such thing')")
    assert kind == "unreachable"
    assert "no such thing" in why


def test_whygpu_that_hangs_on_a_node_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, why = _here(monkeypatch, "import time; time.sleep(600)", limit=1.0)
    assert kind == "hung"
    assert "within 1 s" in why


def _here(monkeypatch: pytest.MonkeyPatch, code: str, limit: float = 60.0) -> Any:
    """Run a program instead of whygpu."""
    start = subprocess.Popen

    def instead(command: list[str], **given: Any) -> Any:
        return start([command[0], "-c", code], **given)

    monkeypatch.setattr("whygpu.fleet.ray_nodes.subprocess.Popen", instead)
    return ray_nodes.snapshot_here(REQUEST._replace(limit=limit))
