"""Makes the snapshots of a fleet: recorded machines with noise, and some that are made different.

Used by the tests and by benchmarks/fleet.py. What is planted comes back, so that a report can be
compared with it: each planted node must be named, and no other.
"""

from __future__ import annotations

import copy
import json
import pathlib
import random
from collections.abc import Callable
from typing import Any, NamedTuple

MACHINES = pathlib.Path(__file__).parent.parent / "machines"
HEALTHY = "h200-healthy-keras-torch"
Data = Any
Change = Callable[[Data], None]


class Planted(NamedTuple):
    odd: dict[str, dict[str, set[str]]]
    """By fact and value: the nodes that have it."""
    causes: dict[str, set[str]]
    """Nodes by the slug of their cause."""
    unreadable: set[str]


def recorded(name: str) -> Data:
    return json.loads((MACHINES / f"{name}.json").read_text())


def eight_gpus(data: Data, name: str = "NVIDIA H100 80GB HBM3", count: int = 8) -> None:
    """The same machine with several GPUs of another model, in the driver and on the bus."""
    gpus, bus = data["driver"]["gpus"], data["graphics"]
    first, device = gpus["known"][0], bus["known"][0]
    gpus["known"], bus["known"] = [], []
    for number in range(count):
        address = f"0000:{number + 1:02x}:00.0"
        gpus["known"].append(
            {**copy.deepcopy(first), "number": number, "name": name, "pci_address": address}
        )
        bus["known"].append({**copy.deepcopy(device), "address": address, "device_id": "2330"})
    data["system"]["cpu"]["cores"] = 112


def with_noise(data: Data, chance: random.Random) -> None:
    """What differs between any two machines, or two moments of one, and means nothing."""
    data["taken"] = f"2026-11-{chance.randint(9, 15):02}"
    data["system"]["memory"]["available_bytes"]["known"] -= chance.randrange(1 << 34)
    data["system"]["memory"]["total_bytes"]["known"] -= chance.randrange(1 << 28)
    for gpu in data["driver"]["gpus"]["known"]:
        gpu["memory_used_bytes"]["known"] = chance.randrange(1 << 30)
    for probe in data["probes"]:
        probe["seconds"] = round(probe["seconds"] * chance.uniform(0.8, 1.3), 2)
    for package in data["target"]["packages"]["known"]:
        if package["name"] in ("pip", "setuptools"):
            package["version"] = f"{chance.randint(20, 26)}.0"


def _driver(data: Data) -> None:
    driver = data["driver"]
    for fact in ("version", "kernel_module"):
        driver[fact]["known"] = "580.95.05"
    for library in ("cuda_library", "nvml_library"):
        driver[library]["known"]["version"]["known"] = "580.95.05"


def _cudnn(data: Data) -> None:
    for item in data["cuda"]["known"]["copies"]:
        if item["name"] == "cudnn":
            item["version"] = {"known": "9.99.0", "source": "the library"}


def _torch(data: Data) -> None:
    for framework in data["target"]["frameworks"]["known"]:
        if framework["name"] == "torch":
            framework["version"] = "2.10.1+cu130"


def _kernel(data: Data) -> None:
    data["system"]["kernel"] = "6.1.0-old"


def _memory(data: Data) -> None:
    data["system"]["memory"]["total_bytes"]["known"] //= 2


def _cores(data: Data) -> None:
    data["system"]["cpu"]["cores"] //= 2


def _variable(data: Data) -> None:
    variable = {"name": "NCCL_P2P_DISABLE", "value": "1", "meaning": "", "problem": ""}
    data["environment"]["variables"].append(variable)


def _mig(data: Data) -> None:
    data["driver"]["gpus"]["known"][0]["mig"]["known"] = True


def _seven(data: Data) -> None:
    data["driver"]["gpus"]["known"].pop()


CHANGES: tuple[tuple[str, str, Change], ...] = (
    ("driver", "580.95.05", _driver),
    ("cuDNN", "9.99.0", _cudnn),
    ("torch", "2.10.1+cu130 (CUDA 13.0)", _torch),
    ("kernel", "6.1.0-old", _kernel),
    ("main memory", "64 GiB", _memory),
    ("processor cores", "56", _cores),
    ("variables", "NCCL_P2P_DISABLE=1", _variable),
    ("MIG", "off (GPU 1 2 3 4 5 6 7), on (GPU 0)", _mig),
    ("GPUs", "7 x NVIDIA H100 80GB HBM3", _seven),
)
CAUSES = {
    "visible-devices-hides-gpu": "h200-hidden-empty",
    "platform-variable-excludes-gpu": "h200-keras-jax-on-cpu",
    "oom-other-process": "h200-memory-held",
    "driver-library-version-mismatch": "h200-old-compat-library",
}
BROKEN = (
    b"",
    b"{",
    b'{"schema": 2}',
    b"\x00" * 4096,
    b"[" * 100_000,
    b'{"schema": 1, "whygpu": "\x1b]0;owned\x07"}',
)


def make_fleet(folder: pathlib.Path, count: int, *, seed: int = 1, each: int = 3) -> Planted:
    """Write `count` snapshots: half with one H200, half with eight H100, and plant `each` nodes of
    every change, every cause and every kind of broken file."""
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"gpu-{number:05}" for number in range(count)]
    small, large = names[: count // 2], names[count // 2 :]
    free = [*chance.sample(large, len(large))]
    alone = [*chance.sample(small, len(small))]
    planted = Planted({}, {}, set())
    changes: dict[str, Change] = {}
    for fact, value, change in CHANGES:
        nodes = [free.pop() for _ in range(each)]
        planted.odd.setdefault(fact, {})[value] = set(nodes)
        changes.update(dict.fromkeys(nodes, change))
    sources: dict[str, str] = {}
    for cause, source in CAUSES.items():
        nodes = [alone.pop() for _ in range(each)]
        planted.causes[cause] = set(nodes)
        sources.update(dict.fromkeys(nodes, source))
    broken = {alone.pop(): BROKEN[place % len(BROKEN)] for place in range(2 * each)}
    planted.unreadable.update(broken)
    texts = {name: (MACHINES / f"{name}.json").read_text() for name in {HEALTHY, *CAUSES.values()}}
    for name in names:
        path = folder / f"{name}.json"
        if name in broken:
            path.write_bytes(broken[name])
            continue
        data = json.loads(texts[sources.get(name, HEALTHY)])
        if name not in sources:
            with_noise(data, chance)
        if name >= large[0]:
            eight_gpus(data)
        changes.get(name, lambda _: None)(data)
        path.write_text(json.dumps(data))
    return planted
