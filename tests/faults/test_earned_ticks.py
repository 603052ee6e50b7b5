"""A tick is earned: for every fact that a verdict rests on, not knowing it takes the tick away.

Every observed fact of a healthy machine is made unknown, one at a time. Either the tick goes, or
the fact is on the list below, with the reason why the verdict does not rest on it. Then no other
value of that fact may change the verdict either: not knowing it would hide that.
"""

from __future__ import annotations

import json
import pathlib
import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import pytest

from tests.kit import machine
from tests.machines.healthy import healthy, without_gpu
from tests.mutation import NUMBERS, TEXTS
from whygpu import diagnose
from whygpu.model.codec import decode, encode, hints, is_record
from whygpu.model.observed import Known
from whygpu.model.probe import ProbeEnd
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot

Path = tuple[str | int, ...]
FOLDER = pathlib.Path(__file__).parent.parent / "machines"
RECORDED = ("h200-healthy-keras-jax", "h200-healthy-keras-torch")
UNKNOWN = {"unknown": "this could not be looked at"}

COMPUTED = "every framework was seen to compute, which outranks what files and the driver say"
SHOWN = "it is shown, and nothing is judged by it"
COMPARED = "a fleet compares it between machines, and nothing is judged by it alone"
NOT_FOR_CPU = "there is no GPU for it to matter to"

NEVER_DECIDES = {
    "system.cpu.model": SHOWN,
    "target.installer": "it words commands in remedies",
    "system.distribution": "it words commands in remedies",
    "system.memory.total_bytes": SHOWN,
    "system.memory.available_bytes": "it decides how many probes run at a time",
    "target.interpreter.modules": "the frameworks were collected by it, and say what it said",
    "driver.gpus.health.vbios": COMPARED,
    "driver.gpus.health.ecc": COMPARED,
    "driver.gpus.health.persistence": COMPARED,
    "driver.gpus.health.max_clock_mhz": COMPARED,
    "driver.gpus.health.max_memory_clock_mhz": COMPARED,
    "driver.gpus.health.nvlinks": COMPARED,
    "driver.gpus.health.mig_layout": COMPARED,
    "driver.gpus.health.fabric": COMPARED,
    "driver.pairs": COMPARED,
    "probes.version": SHOWN,
    "probes.devices": "where the work ran decides, not which devices are listed",
}
WHERE_ALL_COMPUTED = {
    "amd": "no framework here is built for AMD GPUs",
    "intel": "no framework here is built for Intel GPUs",
    "target.frameworks.build.amd_targets": "no framework here is built for AMD GPUs",
    "system.cpu.instruction_sets": COMPUTED,
    "system.libc": COMPUTED,
    "cuda.copies.version": COMPUTED,
    "cuda.toolkits.version": COMPUTED,
    "driver.cuda": COMPUTED,
    "driver.uvm": COMPUTED,
    "driver.version": COMPUTED,
    "target.frameworks.build.architectures": COMPUTED,
    "target.frameworks.build.cpu_features": COMPUTED,
    "target.frameworks.build.cuda": COMPUTED,
    "target.frameworks.build.cudnn": COMPUTED,
    "target.frameworks.libraries": COMPUTED,
    "target.interpreter.user_site": "the packages were collected by it, and say where they are",
}
ON_A_GPU = {
    "driver.cuda_library.version": COMPUTED,
    "driver.device_nodes": COMPUTED,
    "driver.gpus.mig": COMPUTED,
    "driver.gpus.processes": COMPUTED,
    "driver.kernel_module": COMPUTED,
    "driver.nvml_library.version": COMPUTED,
    "driver.state": COMPUTED,
    "graphics": COMPUTED,
    "graphics.kernel_driver": COMPUTED,
    "target.frameworks.keras.backend": "its probe says which backend it has",
}
WITHOUT_A_GPU = {
    "cuda": NOT_FOR_CPU,
    "driver.gpus": "a driver that is missing has no list of GPUs: its state tells",
    "driver.nvml_library": NOT_FOR_CPU,
    "environment.visible_gpus": NOT_FOR_CPU,
    "system.memory.shared_bytes": NOT_FOR_CPU,
    "target.frameworks.build.kind": COMPUTED,
}
"""The value of each that would be another verdict cannot stand beside the other facts."""
IMPOSSIBLE = {"driver.gpus"}


class Machine(NamedTuple):
    name: str
    data: Any
    rests_not_on: dict[str, str]


@cache
def machines() -> tuple[Machine, ...]:
    none = {**NEVER_DECIDES, **WHERE_ALL_COMPUTED, **WITHOUT_A_GPU}
    gpu = {**NEVER_DECIDES, **WHERE_ALL_COMPUTED, **ON_A_GPU}
    empty = encode(machine('start = "no-gpu"\nonly = []'))
    recorded = ((name, json.loads((FOLDER / f"{name}.json").read_text())) for name in RECORDED)
    return (
        Machine("healthy", encode(healthy()), gpu),
        Machine("no GPU", encode(without_gpu()), none),
        Machine("no GPU, no framework", {**empty, "probes": []}, none),
        *(Machine(name, data, gpu) for name, data in recorded),
    )


def observed(kind: Any) -> Any:
    """The type of the value, where a type is Observed; else None."""
    known = next((each for each in get_args(kind) if get_origin(each) is Known), None)
    return None if known is None else get_args(known)[0]


def facts(kind: Any, data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every observed fact that is known or absent, with the type of its value."""
    inner = observed(kind)
    if inner is not None:
        if "unknown" not in data:
            yield path, inner
        if "known" in data:
            yield from facts(inner, data["known"], (*path, "known"))
    elif is_record(kind):
        for name, hint in hints(kind):
            if name in data:
                yield from facts(hint, data[name], (*path, name))
    elif get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:
        for place, item in enumerate(data):
            yield from facts(get_args(kind)[0], item, (*path, place))
    elif get_origin(kind) in (Union, types.UnionType) and data is not None:
        for member in filter(is_record, get_args(kind)):
            yield from facts(member, data, path)


def named(path: Path) -> str:
    return ".".join(word for word in path if isinstance(word, str) and word != "known")


def replaced(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        return [*data[:first], replaced(data[first], rest, value), *data[first + 1 :]]
    return {**data, first: replaced(data[first], rest, value)}


def at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def judged(data: Any) -> Report:
    return diagnose(decode(Snapshot, data))


def ticked(report: Report) -> bool:
    assert (report.standing == "fine") == (report.exit_code == 0)
    return report.standing == "fine"


@cache
def looked_at(number: int) -> tuple[tuple[Path, Any], ...]:
    """The facts of a machine; of what it has many of, such as libraries, the first and the last."""
    every = list(facts(Snapshot, machines()[number].data))
    first = {named(path): (path, kind) for path, kind in reversed(every)}
    last = {named(path): (path, kind) for path, kind in every}
    return tuple({path: (path, kind) for path, kind in (*first.values(), *last.values())}.values())


@cache
def that_keep_the_tick(number: int) -> tuple[tuple[Path, Any], ...]:
    data = machines()[number].data
    return tuple(
        (path, kind)
        for path, kind in looked_at(number)
        if ticked(judged(replaced(data, path, UNKNOWN)))
    )


def test_a_fact_that_could_not_be_looked_at_takes_the_tick() -> None:
    for number, (name, data, rests_not_on) in enumerate(machines()):
        assert ticked(judged(data)), name
        assert len(looked_at(number)) > 25, name
        kept = {named(path) for path, _ in that_keep_the_tick(number)}
        assert not kept - rests_not_on.keys(), name


def test_every_fact_on_the_list_has_to_be_there() -> None:
    """A fact that does take the tick, everywhere, has nothing to do on the list."""
    numbers = range(len(machines()))
    kept = {named(path) for number in numbers for path, _ in that_keep_the_tick(number)}
    listed = {**NEVER_DECIDES, **WHERE_ALL_COMPUTED, **ON_A_GPU, **WITHOUT_A_GPU}
    assert kept == listed.keys()


def values(kind: Any, data: Any) -> Iterator[Any]:
    """Other values of a type: each leaf at its extremes, lists emptied and repeated."""
    origin = get_origin(kind)
    inner = observed(kind)
    if inner is not None:
        yield {"absent": "some place"}
        if "known" in data:
            for value in values(inner, data["known"]):
                yield {"known": value, "source": "elsewhere"}
    elif origin is Literal:
        yield from get_args(kind)
    elif is_record(kind):
        for name, hint in hints(kind):
            if name in data:
                yield from ({**data, name: value} for value in values(hint, data[name]))
    elif origin is tuple and get_args(kind)[-1] is Ellipsis:
        yield []
        for place, item in enumerate(data[:2]):
            for value in values(get_args(kind)[0], item):
                yield [*data[:place], value, *data[place + 1 :]]
    elif kind is str:
        yield from TEXTS[::3]
    elif kind is bool:
        yield not data
    elif kind in (int, float):
        yield from NUMBERS[::2]


def other_values(path: Path, kind: Any, data: Any, machine_data: Any) -> Iterator[Any]:
    """Legal values of a fact: changed ones, and those that the other kind of machine has there."""
    fact = at(data, path)
    yield {"absent": "some place"}
    if "known" in fact:
        for value in values(kind, fact["known"]):
            yield {"known": value, "source": "elsewhere"}
    try:
        yield at(machine_data, path)
    except (KeyError, IndexError, TypeError):
        return


def test_what_a_verdict_does_not_rest_on_does_not_change_it() -> None:
    for number in range(3):
        name, data, _ = machines()[number]
        verdict = judged(data).verdict
        other = machines()[1 if number == 0 else 0].data
        tried = 0
        for path, kind in that_keep_the_tick(number):
            if named(path) in IMPOSSIBLE:
                continue
            for value in other_values(path, kind, data, other):
                tried += 1
                report = judged(replaced(data, path, value))
                assert report.verdict == verdict, (name, path, value, report.headline)
        assert tried > 50, name


def test_a_list_of_gpus_that_a_driver_should_have_is_missed() -> None:
    """What makes an unknown list harmless is the state of the driver alone."""
    data = encode(without_gpu())
    works = replaced(data, ("driver", "state"), {"known": "working", "source": "NVML"})
    assert ticked(judged(replaced(works, ("driver", "gpus"), {"known": [], "source": "NVML"})))
    assert not ticked(judged(replaced(works, ("driver", "gpus"), UNKNOWN)))


@pytest.mark.parametrize("start", [healthy, without_gpu])
def test_a_probe_that_did_not_finish_takes_the_tick(start: Any) -> None:
    data = encode(start())
    for place, probe in enumerate(data["probes"]):
        for end in get_args(ProbeEnd):
            for how in ("SIGSEGV", "SIGTERM", "120 s"):
                changed = {**probe, "ended": end, "how": how, "stage": "import"}
                report = judged(replaced(data, ("probes", place), changed))
                if end != "finished" and probe["name"] != "cuda":
                    assert not ticked(report), (probe["name"], end, how)
        left_out = {**data, "probes": data["probes"][:place] + data["probes"][place + 1 :]}
        if probe["name"] != "cuda":
            assert not ticked(judged({**left_out, "probes_left_out": "--no-probe"}))
            assert not ticked(judged(left_out)), f"no {probe['name']} probe at all"


@pytest.mark.parametrize("start", [healthy, without_gpu])
def test_work_that_was_not_done_or_not_right_takes_the_tick(start: Any) -> None:
    data = encode(start())
    wrong = {"known": False, "source": "probe"}
    for place, probe in enumerate(data["probes"]):
        if probe["name"] == "cuda":
            continue
        assert not ticked(judged(replaced(data, ("probes", place, "operations"), [])))
        for number, _ in enumerate(probe["operations"]):
            path: Path = ("probes", place, "operations", number)
            for field, value in (
                ("ran_on", UNKNOWN),
                ("ran_on", {"absent": "x"}),
                ("correct", UNKNOWN),
                ("correct", {"absent": "x"}),
                ("correct", wrong),
            ):
                assert not ticked(judged(replaced(data, (*path, field), value))), (path, field)
