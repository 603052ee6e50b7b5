"""How many cores a container may use, from the files of its cgroups."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from whygpu.launch.inprocess import bootstrap

usable_cores: Any = bootstrap("profile.usable_cores")
MACHINE = 64
CASES: dict[str, tuple[str, dict[str, str], int]] = {
    "no limit": ("0::/", {"cpu.max": "max 100000"}, MACHINE),
    "no files": ("0::/", {}, MACHINE),
    "four cores": ("0::/", {"cpu.max": "400000 100000"}, 4),
    "one and a half": ("0::/", {"cpu.max": "150000 100000"}, 2),
    "a tenth": ("0::/", {"cpu.max": "10000 100000"}, 1),
    "a group inside": ("0::/pod/box", {"pod/cpu.max": "300000 100000"}, 3),
    "a path of the machine": ("0::/pod/box", {"cpu.max": "200000 100000"}, 2),
    "version 1": (
        "4:memory:/pod\n3:cpu,cpuacct:/pod",
        {
            "cpu,cpuacct/pod/cpu.cfs_quota_us": "200000",
            "cpu,cpuacct/pod/cpu.cfs_period_us": "100000",
        },
        2,
    ),
    "version 1 without a limit": (
        "3:cpu,cpuacct:/",
        {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
        MACHINE,
    ),
    "an odd list of groups": ("nonsense", {"cpu.max": "100000 100000"}, MACHINE),
    "a deep group": ("0::" + "/a" * 500, {"cpu.max": "100000 100000"}, MACHINE),
    "not a number": ("0::/", {"cpu.max": "many few"}, MACHINE),
}


@pytest.mark.parametrize("name", CASES)
def test_a_limit_of_the_container_counts(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, files, expected = CASES[name]
    for path, text in files.items():
        file = tmp_path / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    own = tmp_path / "cgroup"
    own.write_text(groups + "\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(MACHINE)), raising=False)
    assert usable_cores.usable_cores(str(tmp_path / "root"), str(own)) == expected
