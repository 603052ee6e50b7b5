"""CUDA_VISIBLE_DEVICES, case by case. The cases with one GPU were measured on driver 580.159.04."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.machines.healthy import DRIVER, GPU, NO_DRIVER
from whygpu.collectors.driver_answer import GpuIds
from whygpu.collectors.visible_devices import select
from whygpu.model.driver import Driver
from whygpu.model.environment import GpuSelection
from whygpu.model.observed import Known, Unknown

UUID = "GPU-46f633e5-fbdc-f86b-7622-5e1983a4fe62"
OTHER = "GPU-46f7aaaa-d72c-4106-c12f-20bd9faed9f6"
INSTANCE = "MIG-8932f937-d72c-4106-c12f-20bd9faed9f6"

ONE = (GpuIds(UUID),)
TWO = (GpuIds(UUID), GpuIds(OTHER))

# fmt: off
SHOWING = [
    "0", " 0", "0 ", "\t0", "00", "+0", "-0", "0,", "0,,0", "0,7", "0,1", "0,-1,0",
    "0foo", "0-2", "0.5", "0x0", "0;1", "0:1", "0 1", "0 0", "4294967296", "9223372036854775808",
    UUID, "GPU-4", "GPU-46f633e5", "GPU-46F633E5", f"{UUID} ", f"{UUID}x",
    f"{UUID},0", f"0,{UUID}", "0,GPU-ffffffff", "0" * 5000,
]
HIDING = [
    "", " ", "-1", ",", ",0", "1", "7,0", "foo", "foo,0", "1e0", "18446744073709551616", "\u0660",
    "9" * 5000,
    "all", "none", "NoDevFiles", '"0"', "[0]",
    "GPU-", UUID.lower(), UUID[4:], f" {UUID}", "GPU-ffffffff", "GPU-ffffffff,0",
    f"MIG-{UUID}", f"MIG-{UUID}/0/0",
    "0,0", "0,00", f"{UUID},{UUID}", f"{UUID},GPU-46f633e5",
]
# fmt: on


def driver_with(count: int, *names: str) -> Driver:
    gpus = tuple(GPU._replace(number=index) for index in range(count))
    if names:
        gpus = tuple(gpu._replace(name=name) for gpu, name in zip(gpus, names, strict=True))
    return DRIVER._replace(gpus=Known(gpus, "test"))


def visible(selection: GpuSelection) -> tuple[int, ...]:
    assert isinstance(selection.visible, Known)
    return selection.visible.value


@each("text", SHOWING)
def test_values_that_show_the_only_gpu(text: str) -> None:
    assert visible(select(text, driver_with(1), ONE, "")) == (0,)


@each("text", HIDING)
def test_values_that_hide_the_only_gpu(text: str) -> None:
    assert visible(select(text, driver_with(1), ONE, "")) == ()


def test_the_list_ends_at_the_first_gpu_that_is_not_there() -> None:
    selection = select("0,7,1", driver_with(2), TWO, "")
    assert visible(selection) == (0,)
    assert [(entry.text, entry.reason) for entry in selection.ignored] == [
        ("7", "there is no GPU 7: this machine has 2 GPUs, numbers 0 to 1"),
        ("1", "it comes after '7', which ends the list"),
    ]


def test_the_order_is_the_lists() -> None:
    selection = select("1,0", driver_with(2), TWO, "")
    assert visible(selection) == (1, 0)
    assert selection.ignored == ()


def test_a_gpu_named_twice_spoils_the_whole_list() -> None:
    selection = select("1,0,1", driver_with(2), TWO, "")
    assert visible(selection) == ()
    assert [entry.text for entry in selection.ignored] == ["1", "0", "1"]
    assert "makes CUDA fail to start" in selection.ignored[0].reason


def test_text_after_a_number_is_named() -> None:
    selection = select("0-1", driver_with(2), TWO, "")
    assert visible(selection) == (0,)
    assert [(entry.text, entry.reason) for entry in selection.ignored] == [
        ("-1", "CUDA reads only the number of '0-1'")
    ]


def test_a_beginning_that_fits_two_gpus_fits_none() -> None:
    selection = select("GPU-46f", driver_with(2), TWO, "")
    assert visible(selection) == ()
    assert selection.ignored[0].reason == "the UUIDs of several GPUs begin with it"
    assert visible(select("GPU-46f7", driver_with(2), TWO, "")) == (1,)


@pytest.mark.parametrize("text", ["", "-1", "NoDevFiles"])
def test_hiding_on_purpose_ignores_nothing(text: str) -> None:
    assert select(text, driver_with(2), TWO, "").ignored == ()


def test_uuids_are_cut_short() -> None:
    selection = select(f"{UUID},{OTHER},x", driver_with(2), TWO, "")
    assert visible(selection) == (0, 1)
    assert selection.text == "GPU-46f6…,GPU-46f7…,x"
    ended = select(f"7,{UUID}", driver_with(2), TWO, "")
    assert "fbdc" not in repr(ended)


@each("text", [INSTANCE, INSTANCE[:12], f"MIG-{OTHER}/1/0", f"{INSTANCE},{INSTANCE[:8]}"])
def test_a_mig_instance_shows_the_gpu_that_holds_it(text: str) -> None:
    ids = (GpuIds(UUID), GpuIds(OTHER, (INSTANCE,)))
    assert visible(select(text, driver_with(2), ids, "")) == (1,)


def test_a_second_mig_instance_is_not_used() -> None:
    ids = (GpuIds(OTHER, (INSTANCE,)),)
    selection = select(f"{INSTANCE},MIG-1", driver_with(1), ids, "")
    assert [(entry.text, entry.reason) for entry in selection.ignored] == [
        ("MIG-1", "CUDA uses one MIG instance per process")
    ]


def test_unlike_gpus_are_numbered_by_speed_unless_told_otherwise() -> None:
    unlike = driver_with(2, "NVIDIA A100", "NVIDIA T4")
    selection = select("1", unlike, TWO, "")
    assert isinstance(selection.visible, Unknown)
    assert "CUDA_DEVICE_ORDER" in selection.visible.reason
    assert isinstance(select("1", unlike, TWO, "FASTEST_FIRST").visible, Unknown)
    assert visible(select("1", unlike, TWO, "PCI_BUS_ID")) == (1,)


@pytest.mark.parametrize(("text", "expected"), [("7", ()), ("-1", ()), (OTHER, (1,))])
def test_what_can_be_told_of_unlike_gpus_is_told(text: str, expected: tuple[int, ...]) -> None:
    unlike = driver_with(2, "NVIDIA A100", "NVIDIA T4")
    assert visible(select(text, unlike, TWO, "")) == expected


def test_a_split_gpu_among_several_makes_numbers_uncertain() -> None:
    gpus = (GPU._replace(mig=Known(True, "test")), GPU._replace(number=1))
    split = DRIVER._replace(gpus=Known(gpus, "test"))
    assert isinstance(select("0", split, TWO, "PCI_BUS_ID").visible, Unknown)
    alone = DRIVER._replace(gpus=Known(gpus[:1], "test"))
    assert visible(select("0", alone, ONE, "")) == (0,)


def test_a_silent_gpu_makes_numbers_uncertain() -> None:
    selection = select("0", driver_with(2), (GpuIds(UUID), GpuIds("")), "")
    assert selection.visible == Unknown("GPU 1 does not answer, and CUDA may not count it")


@each("text", ["0", "0,1", UUID, INSTANCE])
def test_without_a_driver_it_cannot_be_told_what_is_selected(text: str) -> None:
    assert isinstance(select(text, NO_DRIVER, (), "").visible, Unknown)
    hung = NO_DRIVER._replace(gpus=Unknown("NVML gave no answer"))
    assert select(text, hung, (), "").visible == Unknown("NVML gave no answer")


@each("text", ["", "-1", "junk", "-1,0", ",0"])
def test_without_a_driver_it_can_be_told_that_nothing_is(text: str) -> None:
    assert visible(select(text, NO_DRIVER, (), "")) == ()


def test_a_driver_without_gpus_has_none_to_select() -> None:
    selection = select("0", driver_with(0), (), "")
    assert visible(selection) == ()
    assert selection.ignored[0].reason == "there is no GPU 0: this machine has none"
