"""Plans from the real release table: what is known to be true of published releases."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cases import each
from tests.planner.small_table import GTX_1080, K80, RTX_5090, machine
from whygpu.model.install_plan import PlanAnswer
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Absent
from whygpu.planner.candidate_cache import CandidateCache
from whygpu.planner.candidates import Table, candidates
from whygpu.planner.constraints import checks
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.wishes import FRAMEWORKS, parse, parse_all
from whygpu.tables.architectures import parse_code
from whygpu.tables.driver_floors import driver_floors
from whygpu.tables.releases import versions_of

TABLE = Table(versions_of)
H200 = PlannedGpu("H200", (9, 0), "data-center")
GH200 = PlannedGpu("GH200", (9, 0), "data-center")
V100 = PlannedGpu("V100", (7, 0), "data-center")
T4G = PlannedGpu("T4G", (7, 5), "data-center")
windows = partial(machine, platform="win_amd64")
arm = partial(machine, platform="linux_aarch64")


def mac(python: str, platform: str = "macosx_arm64") -> MachineSpec:
    nothing = Absent("macOS")
    known = machine(python=python, platform=platform)
    return known._replace(glibc=nothing, driver=nothing, gpus=nothing)


def plan(wishes: str, where: MachineSpec) -> PlanAnswer:
    return make_plan(where, parse_all(wishes.split()), TABLE)


def chosen(answer: PlanAnswer) -> list[str]:
    return [item.build for item in answer.plan.chosen] if answer.plan else []


@each("framework", FRAMEWORKS)
def test_every_candidate_with_a_build_can_be_judged(framework: str) -> None:
    found = candidates(framework, TABLE)
    assert found
    for item in found:
        assert all(parse_code(code) for code in item.architectures), item.requirement
        if item.has_gpu_code and not item.no_build:
            assert driver_floors(item.cuda), item.requirement


@pytest.mark.parametrize(
    ("wishes", "where", "expected"),
    [
        ("tensorflow<2.22", machine(gpu=H200), ["tensorflow[and-cuda]==2.20.0"]),
        ("tensorflow", machine(driver="470.82"), ["tensorflow==2.13.1"]),
        ("tensorflow==2.15", machine(), ["tensorflow[and-cuda]==2.15.1"]),
        ("tensorflow", machine(python="3.10", platform="win_amd64"), ["tensorflow==2.10.1"]),
        # The default build is for newer GPUs: the build for CUDA 12.6 is on PyTorch's own index.
        ("torch<2.16", machine(gpu=GTX_1080), ["torch==2.14.1+cu126"]),
        ("torch<2.16", machine(gpu=V100, driver="535.54"), ["torch==2.14.1+cu126"]),
        ("torch<2.16", machine("3.10", "470.82", K80), ["torch==1.12.1"]),
        ("torch<2.16", windows("3.10", "474.30", K80), ["torch==1.12.1+cu116"]),
        # Only what is likely to fail has wheels for this Python.
        ("torch<2.16", machine("3.11", "470.82", K80), ["torch==2.3.1+cu118"]),
        ("torch<2.16", machine(gpu=RTX_5090, driver="570.86"), ["torch==2.11.0+cu129"]),
        ("torch<2.16", windows(gpu=RTX_5090, driver="572.16"), ["torch==2.11.0+cu128"]),
        ("torch<2.16", windows(gpu=GTX_1080, driver="581.29"), ["torch==2.14.1+cu126"]),
        ("torch<2.16", windows(driver="581.29"), ["torch==2.15.0+cu132"]),
        ("torch<2.16", arm(gpu=GH200, driver="560.35"), ["torch==2.14.1+cu126"]),
        ("torch<2.16", arm(gpu=GH200), ["torch==2.15.0"]),
        ("torch<2.11", arm(gpu=GH200), ["torch==2.10.0+cu128"]),
        # 2.10.0 on the default index is a CPU build there, and so are all builds before 2.6.
        ("torch<2.6", arm(gpu=GH200), []),
        ("torch<2.16", arm(gpu=T4G), []),
        # It pins cuda-toolkit==13.0.3, which was published as 13.0.3.0.
        ("torch==2.13.0", machine(gpu=H200), ["torch==2.13.0"]),
        (
            "tensorflow<2.22 jax<=0.12.0.1 torch<2.16",
            machine(python="3.12", gpu=H200),
            ["tensorflow[and-cuda]==2.20.0", "jax[cuda12]==0.12.0.1", "torch==2.10.0"],
        ),
        # The newest torch goes with the newest jax, and that with no tensorflow at all: the choice
        # of the first wish has to be undone.
        (
            "torch<2.16 jax<0.11 tensorflow<2.22 keras<=3.15.1",
            machine(python="3.11", driver="580.65", gpu=H200),
            [
                "torch==2.10.0",
                "jax[cuda12]==0.10.2",
                "tensorflow[and-cuda]==2.20.0",
                "keras==3.15.1",
            ],
        ),
    ],
)
def test_known_answers(wishes: str, where: MachineSpec, expected: list[str]) -> None:
    assert chosen(plan(wishes, where)) == expected


def test_one_release_is_checked_by_the_build_that_fits() -> None:
    release = why_not(machine(gpu=GTX_1080), parse("torch==2.14.1"), (), TABLE)
    assert (release.candidate.build, release.standing) == ("torch==2.14.1+cu126", "fine")
    release = why_not(machine(gpu=GTX_1080), parse("torch==2.15.0"), (), TABLE)
    assert (release.candidate.build, release.standing) == ("torch==2.15.0", "wrong")


@each(
    ("wishes", "where", "expected", "standing"),
    [
        # The packages of NVIDIA that both install must agree: those of the index are not known.
        ("torch<2.16 tensorflow<2.22", machine(gpu=GTX_1080), "torch==2.7.1", "fine"),
        (
            "torch<2.16,>=2.8 tensorflow<2.22",
            machine(gpu=GTX_1080),
            "torch==2.14.1+cu126",
            "unknown",
        ),
        ("torch<2.16 keras", machine(gpu=GTX_1080), "torch==2.14.1+cu126", "fine"),
        ("torch<2.16 keras", windows(gpu=GTX_1080), "torch==2.14.1+cu126", "fine"),
    ],
)
def test_a_build_on_an_index_beside_other_wishes(
    wishes: str, where: MachineSpec, expected: str, standing: str
) -> None:
    answer = plan(wishes, where)
    assert chosen(answer)[0] == expected
    assert answer.standing == standing


@each(
    ("wish", "where", "expected", "standing"),
    [
        ("torch<2.16", mac("3.12"), ["torch==2.15.0"], "fine"),
        ("torch<2.16", mac("3.11", "macosx_x86_64"), ["torch==2.2.2"], "unknown"),
        ("torch<1.12", mac("3.9"), [], "wrong"),
        (
            "tensorflow==2.17",
            mac("3.11"),
            ["tensorflow==2.17.1", "tensorflow-metal==1.1.0"],
            "fine",
        ),
        (
            "tensorflow<2.22",
            mac("3.12"),
            ["tensorflow==2.18.1", "tensorflow-metal==1.2.0"],
            "fine",
        ),
        ("tensorflow<2.22", mac("3.13"), [], "wrong"),
        ("jax<=0.12.0.1", mac("3.12"), [], "wrong"),
    ],
)
def test_a_mac_uses_metal(
    wish: str, where: MachineSpec, expected: list[str], standing: str
) -> None:
    answer = plan(wish, where)
    found = answer.plan.chosen[0].requirements if answer.plan else ()
    assert list(found) == expected
    assert answer.standing == standing


def test_no_release_uses_an_nvidia_gpu_on_a_mac() -> None:
    answer = plan("torch", mac("3.12")._replace(gpus=machine(gpu=GTX_1080).gpus))
    assert answer.plan is None
    reason = answer.candidates[0].reason
    assert reason == "cannot use GeForce GTX 1080 (6.1) on macOS: macOS has no driver for it"


@each("platform", ["win_amd64", "macosx_arm64", "macosx_x86_64"])
def test_only_linux_has_a_glibc(platform: str) -> None:
    for framework in FRAMEWORKS:
        for item in candidates(framework, TABLE, platform):
            steps = checks(item, machine(platform=platform, glibc="2.5"))
            assert "glibc" not in [step.constraint for step in steps]


@pytest.mark.parametrize("version", ["2.16.1", "2.21.0"])
def test_the_known_defects_are_found_in_the_table(version: str) -> None:
    answer = plan("tensorflow", machine(python="3.12", gpu=H200))
    verdict = next(v for v in answer.candidates if v.candidate.version == version)
    assert verdict.breaks == "defect"


def test_a_conflict_of_pins_is_named() -> None:
    answer = plan("tensorflow==2.15 jax>=0.7,<=0.12.0.1", machine())
    assert answer.plan is None
    assert "tensorflow 2.15.1 needs nvidia-" in answer.conflict
    assert "jax-cuda12-plugin" in answer.conflict


def test_what_a_plan_installs_meets_every_need_of_what_it_installs() -> None:
    """The resolver's answer, checked without the resolver."""
    where = machine(python="3.12", gpu=H200)
    answer = plan("tensorflow jax torch keras", where)
    assert answer.plan is not None
    versions = dict(answer.plan.solution.packages)
    cache = CandidateCache(where, TABLE)
    checked = 0
    for name, version in versions.items():
        row = next(row for row in versions_of(name) if row.version == version)
        for need in cache.needs_of(name, row):
            package = need.name.partition("[")[0]
            if package in versions:
                allowed = {item.version for item in cache.allowed(package, {need.specifier})}
                assert versions[package] in allowed, need
                checked += 1
    assert checked > 20
