"""Impossible wishes get the smallest change that makes them possible."""

from __future__ import annotations

from typing import Any

from tests.cases import each
from tests.planner.small_table import GTX_1080, K80, RTX_5090, TABLE, machine, table_of, tensorflow
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Known, Unknown
from whygpu.planner.changes import changes
from whygpu.planner.wishes import parse_all


def possible(wishes: str, where: MachineSpec) -> list[tuple[str, list[str]]]:
    found = changes(where, parse_all(wishes.split()), TABLE)
    return [(change.what, [item.version for item in change.chosen]) for change in found]


def test_another_release_or_the_nearest_other_python() -> None:
    assert possible("tensorflow==2.12", machine(python="3.13")) == [
        ("another release of tensorflow", ["2.20.0"]),
        ("Python 3.11", ["2.12.1"]),
    ]


def test_a_free_threaded_build_needs_wheels_of_its_own() -> None:
    free_threaded = machine(python="3.13")._replace(free_threaded=True)
    assert possible("tensorflow", free_threaded) == [
        ("the usual build of Python 3.13", ["2.20.0"]),
    ]


def test_the_smallest_step_of_the_driver() -> None:
    assert possible("tensorflow==2.20", machine(driver="390.48")) == [
        ("driver 525.60.13 or newer", ["2.20.0"]),
    ]


def test_a_windows_machine_gets_a_windows_driver() -> None:
    v100 = GTX_1080._replace(name="V100", capability=(7, 0), kind="data-center")
    where = machine(driver="460.89", gpu=v100, platform="win_amd64")
    # NVIDIA has no package for forward compatibility on Windows.
    found = possible("torch==2.8", where)
    assert ("driver 527.41 or newer, up to branch 580", ["2.8.0"]) in found
    assert not any("cuda-compat" in what for what, _ in found)


def test_no_driver_is_proposed_that_has_dropped_the_gpu() -> None:
    """Driver 470 is the last for Kepler, whatever a release was built for."""
    table = table_of([tensorflow("2.15.0", "3.11", "12.2", architectures=("sm_35",))])
    wishes = parse_all(["tensorflow"])
    assert changes(machine(driver="470.82", gpu=K80), wishes, table) == ()
    newer = K80._replace(capability=(5, 0))
    served = table_of([tensorflow("2.15.0", "3.11", "12.2", architectures=("sm_50",))])
    assert changes(machine(driver="470.82", gpu=newer), wishes, served) != ()


def test_of_gpus_that_no_release_serves_together_one_is_shown() -> None:
    mixed = machine(driver="580.65")._replace(gpus=Known((GTX_1080, RTX_5090), "test"))
    assert possible("torch==2.11", mixed) == [
        ("CUDA_VISIBLE_DEVICES set to show only GeForce RTX 5090 (12.0)", ["2.11.0"]),
    ]


def test_the_last_driver_for_a_gpu_is_proposed() -> None:
    """Driver 580 is the last for Pascal."""
    table = table_of([tensorflow("2.30.0", "3.11", "13.0", architectures=("sm_60",))])
    found = changes(machine(driver="470.82", gpu=GTX_1080), parse_all(["tensorflow"]), table)
    assert [change.what for change in found] == [
        "a driver of branch 580, the last one for this GPU"
    ]


def test_a_driver_that_is_too_new_for_the_gpu() -> None:
    table = table_of([tensorflow("2.20.0", "3.11", "12.5", architectures=("sm_60",))])
    for driver in ("590.44", "615.10"):
        found = changes(machine(driver=driver, gpu=GTX_1080), parse_all(["tensorflow"]), table)
        assert [change.what for change in found] == [
            "a driver of branch 580, the last one for this GPU"
        ]


def test_data_center_gpus_may_keep_their_driver() -> None:
    v100 = GTX_1080._replace(name="V100", capability=(7, 0), kind="data-center")
    what = [what for what, _ in possible("tensorflow==2.20", machine(driver="470.82", gpu=v100))]
    assert "cuda-compat" in what[-1]
    assert "another release of tensorflow" in what


def test_a_newer_system_where_only_its_c_library_is_too_old() -> None:
    assert possible("jax", machine(glibc="2.17")) == [
        ("a system with glibc 2.27 or newer", ["0.7.2"])
    ]


def test_windows_gets_wsl() -> None:
    found = possible("tensorflow==2.20", machine(platform="win_amd64"))
    assert ("Linux, as in WSL2", ["2.20.0"]) in found


def test_two_changes_where_no_single_one_is_enough() -> None:
    found = possible("tensorflow==2.20", machine(python="3.14", driver="470.82"))
    assert ("Python 3.13 and driver 525.60.13 or newer", ["2.20.0"]) in found
    assert all(" and " in what for what, _ in found)


def test_a_wish_without_a_range_has_no_other_release_to_give() -> None:
    found = possible("tensorflow", machine(python="3.14"))
    assert found
    assert not any("another release" in what for what, _ in found)


def test_of_two_wishes_each_can_give_way_alone() -> None:
    found = possible("jax==0.7.2 tensorflow==2.12", machine(python="3.13"))
    assert ("another release of tensorflow", ["0.7.2", "2.20.0"]) in found
    assert not any("another release of jax" in what for what, _ in found)


def test_nothing_is_proposed_for_what_is_unknown_of_the_machine() -> None:
    """A change starts from what is there."""
    unknown: dict[str, Any] = dict.fromkeys(("python", "driver", "glibc", "platform"), Unknown("?"))
    blank = machine()._replace(**unknown)
    for change in changes(blank, parse_all(["tensorflow==2.12"]), TABLE):
        assert change.what == "another release of tensorflow"


def test_a_driver_that_is_new_enough_is_not_proposed_again() -> None:
    wanted = parse_all(["tensorflow==2.20"])
    for driver in ("525.60.13", "580.10"):
        found = changes(machine(python="3.14", driver=driver), wanted, TABLE)
        assert found
        assert not any("driver" in change.what for change in found)


def test_a_c_library_that_is_new_enough_is_not_proposed_again() -> None:
    found = possible("jax", machine(glibc="2.27", driver="390.48"))
    assert found
    assert not any("glibc" in what for what, _ in found)


def test_the_forward_compatibility_package_is_for_data_center_gpus_only() -> None:
    desktop = possible("tensorflow==2.20", machine(driver="470.82"))
    assert desktop
    assert not any("cuda-compat" in what for what, _ in desktop)
    nobody = machine(driver="470.82")._replace(gpus=Unknown("no driver"))
    assert not any("cuda-compat" in what for what, _ in possible("tensorflow==2.20", nobody))


def test_linux_is_proposed_on_windows_only() -> None:
    for platform in ("linux_x86_64", "macosx_arm64"):
        found = possible("tensorflow==2.12", machine(python="3.13", platform=platform))
        assert not any("WSL2" in what for what, _ in found)


@each(
    ("wish", "where", "kinds"),
    [
        ("tensorflow==2.12", machine(python="3.13"), [("release",), ("python",)]),
        ("tensorflow==2.20", machine(driver="390.48"), [("driver",)]),
        ("jax", machine(glibc="2.17"), [("glibc",)]),
        ("jax", machine(platform="win_amd64"), [("platform",)]),
        ("jax", machine(python="3.10", glibc="2.17"), [("python", "glibc")]),
    ],
)
def test_a_change_has_the_kinds_of_its_parts(
    wish: str, where: MachineSpec, kinds: list[tuple[str, ...]]
) -> None:
    assert [change.kinds for change in changes(where, parse_all([wish]), TABLE)] == kinds


def test_at_most_two_pairs_of_changes_are_proposed() -> None:
    table = table_of(
        [
            tensorflow("2.10.0", "3.12", "11.2"),
            tensorflow("2.11.0", "3.11", "12.2"),
            tensorflow("2.12.0", "3.11", "11.2", glibc="2.27"),
            tensorflow("2.20.0", "3.12", "12.2", glibc="2.27"),
        ]
    )
    where = machine(driver="470.82", glibc="2.17")
    found = changes(where, parse_all(["tensorflow==2.20"]), table)
    assert [change.kinds for change in found] == [("release", "python"), ("release", "driver")]


@each(
    ("pythons", "mine", "nearest"),
    [
        ("3.9 3.13", "3.11", "3.13"),
        ("3.9 3.10", "3.11", "3.10"),
        ("2.7 3.14", "3.6", "3.14"),
        ("3.9 3.10", "2.7", "3.9"),
    ],
)
def test_the_nearest_python_is_proposed_and_of_two_the_newer(
    pythons: str, mine: str, nearest: str
) -> None:
    table = table_of([tensorflow("2.20.0", pythons, "12.5.1")])
    found = changes(machine(python=mine), parse_all(["tensorflow"]), table)
    assert [change.what for change in found] == [f"Python {nearest}"]


def test_a_patch_release_of_the_same_python_is_no_change_of_python() -> None:
    table = table_of([tensorflow("2.20.0", "3.11 3.12", "12.5.1", requires_python=">=3.11.4")])
    found = changes(machine(python="3.11.2"), parse_all(["tensorflow"]), table)
    assert [change.what for change in found] == ["Python 3.12"]


def test_a_change_to_a_release_that_is_likely_to_fail_says_so() -> None:
    blackwell = GTX_1080._replace(name="RTX 5090", capability=(12, 0))
    table = table_of([tensorflow(version, "3.11", "12.5") for version in ("2.20.0", "2.21.0")])
    found = changes(machine(driver="580.65", gpu=blackwell), parse_all(["tensorflow==2.20"]), table)
    assert [item.version for item in found[0].chosen] == ["2.21.0"]
    assert found[0].doubt.startswith("is likely not to work on RTX 5090 (12.0)")
