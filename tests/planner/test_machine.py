"""A machine's facts come from a snapshot, and options override them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.kit import machine as made_machine
from tests.machines.healthy import DRIVER, GPU, SYSTEM, healthy, known, without_gpu
from tests.planner.small_table import machine
from whygpu.errors import UsageError
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.system import Libc
from whygpu.planner.machine import described, from_snapshot


def test_a_healthy_snapshot_tells_everything() -> None:
    seen = from_snapshot(healthy())
    facts = (seen.python, seen.platform, seen.glibc, seen.driver)
    assert [fact.value for fact in facts if isinstance(fact, Known)] == [
        "3.11.9",
        "linux_x86_64",
        "2.39",
        "580.65.06",
    ]
    assert isinstance(seen.gpus, Known)
    assert [(gpu.capability, gpu.kind) for gpu in seen.gpus.value] == [((8, 6), "workstation")]


def test_no_gpu_is_absent_and_not_unknown() -> None:
    seen = from_snapshot(without_gpu())
    assert isinstance(seen.gpus, Absent)
    assert isinstance(seen.driver, Absent)


def test_a_gpu_without_a_driver_is_unknown_and_says_what_to_do() -> None:
    taken = healthy()._replace(driver=DRIVER._replace(gpus=Unknown("no answer")))
    seen = from_snapshot(taken)
    assert isinstance(seen.gpus, Unknown)
    assert "--gpu" in seen.gpus.reason


def test_a_capability_the_driver_does_not_tell_comes_from_the_model() -> None:
    silent = GPU._replace(compute_capability=Unknown("NVML is too old"))
    seen = from_snapshot(healthy()._replace(driver=DRIVER._replace(gpus=known((silent,)))))
    assert isinstance(seen.gpus, Known)
    assert seen.gpus.value[0].capability == (8, 6)


def test_a_model_that_nobody_knows_is_unknown() -> None:
    odd = GPU._replace(compute_capability=Unknown("NVML is too old"), name="NVIDIA Graphics Device")
    seen = from_snapshot(healthy()._replace(driver=DRIVER._replace(gpus=known((odd,)))))
    assert isinstance(seen.gpus, Unknown)


def test_musl_is_no_glibc() -> None:
    alpine = SYSTEM._replace(libc=known(Libc("musl", "1.2.5")))
    seen = from_snapshot(healthy()._replace(system=alpine))
    assert seen.glibc == Absent("the C library is musl 1.2.5")


def test_options_override_what_was_seen() -> None:
    told = described(
        machine(), python="3.9", driver="470.82", gpu="H200", glibc="2.28", platform="windows"
    )
    assert told.python == Known("3.9", "--python")
    assert told.driver == Known("470.82", "--driver")
    assert told.glibc == Known("2.28", "--glibc")
    assert told.platform == Known("win_amd64", "--platform")
    assert isinstance(told.gpus, Known)
    assert told.gpus.value[0].capability == (9, 0)


def test_nothing_told_changes_nothing() -> None:
    assert described(machine()) == machine()


def test_a_described_gpu_does_not_make_a_missing_driver_this_machines() -> None:
    bare = from_snapshot(without_gpu())
    told = described(bare, gpu="T4")
    assert isinstance(told.driver, Unknown)
    assert "--driver" in told.driver.reason
    told = described(bare, driver="535.54.03")
    assert isinstance(told.gpus, Unknown)
    assert "--gpu" in told.gpus.reason


def test_another_platform_has_another_c_library() -> None:
    assert isinstance(described(machine(), platform="linux_aarch64").glibc, Unknown)
    assert described(machine(), platform="linux").glibc == machine().glibc


def test_another_platform_does_not_have_the_driver_and_gpu_of_this_one() -> None:
    windows = described(machine(), platform="windows")
    assert isinstance(windows.driver, Unknown)
    assert isinstance(windows.gpus, Unknown)
    mac = described(machine(), platform="macos")
    assert isinstance(mac.driver, Absent)
    assert isinstance(mac.gpus, Absent)
    same = described(machine(), platform="linux")
    assert (same.driver, same.gpus) == (machine().driver, machine().gpus)


def test_a_platform_that_is_named_but_not_seen_has_an_unknown_c_library() -> None:
    unseen = machine()._replace(platform=Unknown("nobody looked"))
    named = described(unseen, platform="linux")
    assert named.platform == Known("linux_x86_64", "--platform")
    assert isinstance(named.glibc, Unknown)


@each(
    ("text", "name"),
    [("h200", "H200"), ("3080", "GeForce RTX 3080"), ("Jetson Xavier", "Jetson Xavier")],
)
def test_a_gpu_has_the_name_of_its_model_if_only_one_matches(text: str, name: str) -> None:
    gpus = described(machine(), gpu=text).gpus
    assert isinstance(gpus, Known)
    assert [gpu.name for gpu in gpus.value] == [name]


def test_several_gpus_are_all_of_them_and_not_the_last() -> None:
    gpus = described(machine(), gpu="GTX 1080, RTX 5090").gpus
    assert isinstance(gpus, Known)
    assert [gpu.capability for gpu in gpus.value] == [(6, 1), (12, 0)]


def test_a_jetson_is_no_x86_machine() -> None:
    told = described(machine(), gpu="Jetson Orin")
    assert told.platform == Known("linux_aarch64", "--gpu")
    assert isinstance(told.glibc, Unknown)


def test_an_interpreter_other_than_cpython_is_not_in_the_table() -> None:
    taken = healthy()
    assert isinstance(taken.target.interpreter, Known)
    pypy = taken.target.interpreter.value._replace(implementation="pypy", version="3.10.14")
    seen = from_snapshot(taken._replace(target=taken.target._replace(interpreter=known(pypy))))
    assert isinstance(seen.python, Unknown)
    assert "pypy" in seen.python.reason


@each(
    ("options", "words"),
    [
        ({"python": "three"}, "python='three': expected a version"),
        ({"driver": "new"}, "driver='new': expected a version"),
        ({"driver": "12.2"}, "driver='12.2': this is no version of a driver but looks like one of"),
        ({"glibc": "musl"}, "glibc='musl': expected a version"),
        ({"gpu": "Voodoo 2"}, "gpu='Voodoo 2': no such model on record"),
        ({"gpu": "RX 7900 XTX"}, "gpu='RX 7900 XTX': this is a GPU of AMD"),
        ({"gpu": "MI300X"}, "gpu='MI300X': this is a GPU of AMD"),
        ({"gpu": "Arc A770"}, "gpu='Arc A770': this is a GPU of Intel"),
        ({"gpu": "RTX 6000"}, "gpu='RTX 6000': this may be any of RTX 6000 Ada (8.9), "),
        ({"gpu": "TITAN X"}, "gpu='TITAN X': this may be any of TITAN X Pascal (6.1), "),
        ({"platform": "amiga"}, "platform='amiga': expected one of linux_x86_64"),
    ],
)
def test_wrong_options_say_what_is_expected(options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        described(machine(), **options)
    assert str(caught.value).startswith(words)


def test_a_capability_stands_for_a_gpu() -> None:
    told = described(machine(), gpu="7.5")
    assert isinstance(told.gpus, Known)
    assert told.gpus.value[0].capability == (7, 5)


@each(
    ("os", "processor", "platform"),
    [
        ("linux", "x86_64", "linux_x86_64"),
        ("linux", "aarch64", "linux_aarch64"),
        ("darwin", "arm64", "macosx_arm64"),
        ("windows", "x86_64", "win_amd64"),
        ("windows", "AMD64", "win_amd64"),
    ],
)
def test_a_platform_is_named_as_wheels_name_it(os: Any, processor: str, platform: str) -> None:
    cpu = SYSTEM.cpu._replace(architecture=processor)
    seen = from_snapshot(healthy()._replace(system=SYSTEM._replace(os=os, cpu=cpu)))
    assert seen.platform == Known(platform, "the running system")


@each(("os", "processor"), [("linux", "riscv64"), ("other", "x86_64")])
def test_a_platform_without_wheels_is_unknown(os: Any, processor: str) -> None:
    cpu = SYSTEM.cpu._replace(architecture=processor)
    seen = from_snapshot(healthy()._replace(system=SYSTEM._replace(os=os, cpu=cpu)))
    assert seen.platform == Unknown(f"{os} on {processor} is not on record")


def test_what_could_not_be_seen_stays_unknown() -> None:
    seen = from_snapshot(made_machine("nothing_seen = true"))
    facts = (seen.python, seen.glibc, seen.driver, seen.gpus)
    assert all(isinstance(fact, Unknown) for fact in facts)


def test_options_say_where_a_fact_is_from() -> None:
    told = described(machine(), platform="macos", gpu="H200", python="3.9")
    assert told.platform == Known("macosx_arm64", "--platform")
    assert isinstance(told.gpus, Known)
    assert (told.gpus.source, told.gpus.value[0].name) == ("--gpu", "H200")
    seen_on_x86 = described(machine(), gpu="H200")
    assert (seen_on_x86.platform, seen_on_x86.glibc) == (machine().platform, machine().glibc)


def test_a_driver_that_lists_no_gpu_tells_no_model() -> None:
    empty = healthy()._replace(driver=DRIVER._replace(gpus=known(())))
    assert not isinstance(from_snapshot(empty).gpus, Known)


def test_what_the_driver_says_of_a_capability_outranks_the_model() -> None:
    gpu = GPU._replace(compute_capability=known("7.0"))
    seen = from_snapshot(healthy()._replace(driver=DRIVER._replace(gpus=known((gpu,)))))
    assert isinstance(seen.gpus, Known)
    assert seen.gpus.value[0].capability == (7, 0)


@each("model", ["GH200", "GB200", "DGX Spark", "T4G"])
def test_a_gpu_that_is_sold_with_an_arm_processor_is_no_x86_machine(model: str) -> None:
    assert described(machine(), gpu=model).platform == Known("linux_aarch64", "--gpu")
    there = described(machine(), gpu=model, platform="linux_x86_64").platform
    assert there == Known("linux_x86_64", "--platform")
