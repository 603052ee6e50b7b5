"""The lists of nodes that schedulers and other tools have are read, and others are refused."""

from __future__ import annotations

import pathlib

import pytest

from tests.cases import each
from whygpu import UsageError
from whygpu.fleet.node_lists import expected_nodes


def names(folder: pathlib.Path, text: str) -> tuple[str, ...]:
    path = folder / "nodes"
    path.write_text(text)
    return expected_nodes(str(path))


HOSTFILE = """\
# mpirun --hostfile
gpu-1 slots=8
gpu-2 slots=8 max_slots=16  # the new one
gpu-3:8
gpu-1
"""
INVENTORY = """\
; ansible -i
lonely ansible_host=10.0.0.1
[gpus]
web[01:03].example.com ansible_ssh_common_args='-o ProxyJump=login' ansible_port=2222
db-[a:c]:22
[gpus:vars]
ansible_user=admin
[all:children]
gpus
"""


@each(
    ("text", "expected"),
    [
        (HOSTFILE, "gpu-1 gpu-2 gpu-3"),
        ("node/gpu-1\nnode/gpu-2\n", "gpu-1 gpu-2"),
        ("gpu[01-03,07]\n", "gpu01 gpu02 gpu03 gpu07"),
        ("gpu[8-10],login\n", "gpu8 gpu9 gpu10 login"),
        ("r[1-2]n[1-2].x\n", "r1n1.x r1n2.x r2n1.x r2n2.x"),
        ("n[1:9:4]\n", "n1 n5 n9"),
        (
            INVENTORY,
            "lonely web01.example.com web02.example.com web03.example.com db-a db-b db-c",
        ),
        ("  hosts (2):\n    gpu-1\n    gpu-2\n", "gpu-1 gpu-2"),
        ("fe80::1\n10.0.0.1:8\n", "fe80::1 10.0.0.1"),
    ],
)
def test_lists_of_other_tools_are_read(text: str, expected: str, tmp_path: pathlib.Path) -> None:
    assert names(tmp_path, text) == tuple(expected.split())


@each(
    ("text", "number", "remedy"),
    [
        ("all:\n  hosts:\n", 1, "--list-hosts"),
        ("- gpu-1\n", 1, "--list-hosts"),
        ('gpu-1\n{"hosts": []}\n', 2, "--list-hosts"),
        ("NAME STATUS ROLES AGE\ngpu-1 Ready gpu 9d\n", 1, "kubectl get nodes -o name"),
        ("gpu[1-2\n", 1, "such as node[01-04]"),
        ("gpu[3-1]\n", 1, "a range that goes up"),
        ("gpu[1-x]\n", 1, "such as"),
        ("gpu[1-999999999]\n", 1, "at most 200,000"),
        ("a[1-1000]b[1-1000]\n", 1, "at most 200,000"),
        ("gpu 'x\n", 1, "a quote to be closed"),
        ("NodeName=gpu[1-4]\n", 1, "a name of a node"),
    ],
)
def test_what_is_no_list_is_refused_with_its_line(
    text: str, number: int, remedy: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(UsageError) as caught:
        names(tmp_path, text)
    assert f"nodes, line {number}, has " in str(caught.value)
    assert remedy in str(caught.value)


def test_a_list_without_a_name_is_wrong_usage(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="names no node"):
        names(tmp_path, "# nothing\n[gpus]\n")


def test_thousands_of_nodes_that_do_not_follow_each_other_are_one_list(
    tmp_path: pathlib.Path,
) -> None:
    odd = [f"{number:05}" for number in range(1, 10_000, 2)]
    assert len(names(tmp_path, f"gpu[{','.join(odd)}]\n")) == 5_000


def test_many_ranges_are_bounded_together(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="more than 200,000 nodes"):
        names(tmp_path, "a[1-150000]\nb[1-150000]\n")


def test_a_list_of_nodes_may_be_utf_16_as_windows_shells_write_it(tmp_path: pathlib.Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("gpu-1\r\ngpu-2\r\n", encoding="utf-16")
    assert expected_nodes(str(names)) == ("gpu-1", "gpu-2")
    names.write_text("gpu-1\n", encoding="utf-8-sig")
    assert expected_nodes(str(names)) == ("gpu-1",)


@each(
    ("text", "says"),
    [
        (f"a[{','.join(['1-200000'] * 9000)}]\n", "expected a range of at most 200,000 nodes"),
        (",".join(["a[1-200000]"] * 9000), "expected at most 200,000 nodes in a line"),
        ("a[1-200000]\n" * 9000, "has more than 1,600,000 names"),
    ],
)
def test_a_node_that_is_named_again_and_again_is_bounded(
    text: str, says: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(UsageError, match=says):
        names(tmp_path, text)
