"""What can be compared between machines: the facts of one snapshot, each as one short text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from whygpu.model.derived import gpu_at
from whygpu.model.driver import Gpu, GpuHealth, GpuPair, PcieLink, XidCount
from whygpu.model.fleet import FactName, NodeFact
from whygpu.model.observed import Absent, Known, Observed, Unknown, transform
from whygpu.model.outside_text import excerpt, one_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.model.units import GIB
from whygpu.tables.architectures import shares_main_memory
from whygpu.tables.xids import is_of_the_hardware

LONGEST_VALUE = 120
"""Characters. A snapshot may be hostile, and a fleet keeps some twenty facts of each node."""
NONE = "none"
"""The value of a fact that is absent: no such framework, no MIG."""

_FRAMEWORKS: tuple[FactName, ...] = (
    "tensorflow",
    "keras",
    "jax",
    "torch",
    "cupy",
    "onnxruntime",
    "numba",
)


_COMPARED_VARIABLES = ("NCCL_", "LD_PRELOAD")
"""They slow a node down or change it without a cause that says so. Those that decide whether a GPU
is used have causes, and those of a job differ between jobs."""


def chassis_of(machine: Snapshot) -> str:
    """The processor and its cores: machines that are alike in this should have the same GPUs."""
    cpu = machine.system.cpu
    model = cpu.model.value if isinstance(cpu.model, Known) else f"a processor ({cpu.architecture})"
    return _short(f"{model}, {cpu.cores} cores")


def gpus_of(machine: Snapshot) -> Observed[str]:
    """Models and numbers of the GPUs that the driver lists: "8 x NVIDIA H100 80GB HBM3"."""
    return shortened(transform(machine.driver.gpus, _models))


def _models(gpus: tuple[Gpu, ...]) -> str:
    counts = sorted(Counter(gpu.name for gpu in gpus).items())
    return " and ".join(f"{count} x {name}" for name, count in counts) or "no GPU"


def facts_of(machine: Snapshot) -> tuple[NodeFact, ...]:
    """Every fact. What is absent has the value "none", so that it can be compared as well."""
    return tuple(
        NodeFact(name, shortened(Known(NONE, fact.source) if isinstance(fact, Absent) else fact))
        for name, fact in _facts(machine)
    )


def shortened(fact: Observed[str]) -> Observed[str]:
    if isinstance(fact, Known):
        return Known(_short(fact.value), _short(fact.source))
    if isinstance(fact, Absent):
        return Absent(_short(fact.source))
    return Unknown(_short(fact.reason))


def _short(text: str) -> str:
    return excerpt(one_line(text), LONGEST_VALUE)


def _facts(machine: Snapshot) -> Iterator[tuple[FactName, Observed[str]]]:
    driver, target = machine.driver, machine.target
    yield "GPUs", gpus_of(machine)
    yield "driver", driver.version
    yield "CUDA of the driver", driver.cuda
    yield "kernel module", driver.kernel_module
    for name, fact in _OF_HEALTH.items():
        yield name, _of_gpus(machine, partial(_health, fact=fact))
    yield "MIG", _of_gpus(machine, lambda gpu: transform(gpu.mig, _on_or_off))
    yield "GPU memory", _of_gpus(machine, _memory)
    yield "compute mode", _of_gpus(machine, lambda gpu: transform(gpu.compute_mode, str))
    yield "GPU topology", transform(driver.pairs, _topology)
    yield "peer access", transform(driver.pairs, _peers)
    yield "Xids", transform(driver.xids, partial(_xids, machine))
    yield "processor cores", Known(str(machine.system.cpu.cores), "the kernel")
    yield "main memory", transform(machine.system.memory.total_bytes, _installed)
    yield "kernel", Known(machine.system.kernel, "the kernel")
    yield "distribution", machine.system.distribution
    yield "Python", transform(target.interpreter, lambda python: python.version)
    yield "cuDNN", _library(machine, "cudnn")
    yield "NCCL", _library(machine, "nccl")
    yield "variables", Known(_variables(machine), "environment variables")
    for name in _FRAMEWORKS:
        yield name, _framework(machine, name)


def _memory(gpu: Gpu) -> Observed[str]:
    """In whole GiB: drivers differ in the megabytes that they keep for themselves."""
    if shares_main_memory(gpu):
        return Absent("memory of this GPU alone")
    return transform(gpu.memory_total_bytes, lambda size: f"{round(size / GIB)} GiB")


def _installed(total: int) -> str:
    """Rounded up to a sixteenth: of installed memory, the firmware and the kernel keep a part."""
    size = max(total / GIB, 1.0)
    step = 2.0 ** (math.floor(math.log2(size)) - 4)
    return f"{math.ceil(size / step) * step:g} GiB"


def _variables(machine: Snapshot) -> str:
    found = (
        f"{variable.name}={variable.value}"
        for variable in machine.environment.variables
        if variable.name.startswith(_COMPARED_VARIABLES)
    )
    return ", ".join(sorted(found)) or NONE


def _clocks(health: GpuHealth) -> Observed[str]:
    memory = health.max_memory_clock_mhz
    if not isinstance(memory, Known):
        return memory
    clock = health.max_clock_mhz
    return transform(clock, lambda mhz: f"{mhz} MHz, memory {memory.value} MHz")


def _watts(health: GpuHealth) -> Observed[str]:
    default = health.power_default_watts
    usual = f" of {default.value} W" if isinstance(default, Known) else ""
    return transform(health.power_limit_watts, lambda watts: f"{watts} W{usual}")


def _link(link: PcieLink) -> str:
    """Without the present generation, which an idle GPU lowers."""
    return f"{link.width} of {link.max_width} lanes, generation {link.max_generation}"


_OF_HEALTH: dict[FactName, Callable[[GpuHealth], Observed[str]]] = {
    "VBIOS": lambda health: health.vbios,
    "ECC": lambda health: transform(health.ecc, _on_or_off),
    "MIG layout": lambda health: transform(
        health.mig_layout, lambda names: ", ".join(names) or NONE
    ),
    "persistence mode": lambda health: transform(health.persistence, _on_or_off),
    "power limit": _watts,
    "maximum clocks": _clocks,
    "PCIe link": lambda health: transform(health.pcie, _link),
    "NVLinks": lambda health: transform(health.nvlinks, lambda links: f"{links} active"),
    "NVSwitch fabric": lambda health: transform(health.fabric, str),
}


def _topology(pairs: tuple[GpuPair, ...]) -> str:
    """How many pairs of GPUs are connected in which way."""
    ways = Counter(_way(pair) for pair in pairs)
    return ", ".join(f"{count} x {way}" for way, count in sorted(ways.items())) or NONE


def _way(pair: GpuPair) -> str:
    if isinstance(pair.nvlinks, Known) and pair.nvlinks.value:
        return f"{pair.nvlinks.value} NVLinks"
    return pair.path.value if isinstance(pair.path, Known) else "not known"


def _peers(pairs: tuple[GpuPair, ...]) -> str:
    reached = sum(
        isinstance(pair.peer_access, Known) and pair.peer_access.value == "yes" for pair in pairs
    )
    return f"{reached} of {len(pairs)} pairs" if pairs else NONE


def _xids(machine: Snapshot, counts: tuple[XidCount, ...]) -> str:
    """Those of the hardware; the others are about programs, which differ between nodes."""
    texts = (
        f"{each.number} ({gpu_at(machine, each.address)})"
        for each in counts
        if is_of_the_hardware(each.number)
    )
    return ", ".join(sorted(texts)) or NONE


def _health(gpu: Gpu, fact: Callable[[GpuHealth], Observed[str]]) -> Observed[str]:
    return fact(gpu.health.value) if isinstance(gpu.health, Known) else gpu.health


def _of_gpus(machine: Snapshot, fact: Callable[[Gpu], Observed[str]]) -> Observed[str]:
    """One text for the GPUs of a node: the value of all, or each value with its GPUs."""
    gpus = machine.driver.gpus
    if not isinstance(gpus, Known):
        return gpus
    values = [(gpu, fact(gpu)) for gpu in gpus.value]
    reasons = {value.reason if isinstance(value, Unknown) else "" for _, value in values}
    found: dict[str, list[int]] = {}
    for gpu, value in values:
        if isinstance(value, Unknown):
            which = f"GPU {gpu.number}: " if len(reasons) > 1 else ""
            return Unknown(f"{which}{value.reason}")
        text = value.value if isinstance(value, Known) else NONE
        found.setdefault(text, []).append(gpu.number)
    if len(found) < 2:
        return Known(next(iter(found), NONE), gpus.source)
    parts = (f"{text} (GPU {_numbers(numbers)})" for text, numbers in sorted(found.items()))
    return Known(", ".join(parts), gpus.source)


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _on_or_off(state: bool) -> str:
    return "on" if state else "off"


def _library(machine: Snapshot, name: str) -> Observed[str]:
    """The versions of all copies of a library, because which one is used depends on the program."""
    if not isinstance(machine.cuda, Known):
        return machine.cuda
    versions = set()
    for copy in machine.cuda.value.copies:
        if copy.name != name:
            continue
        if isinstance(copy.version, Unknown):
            return Unknown(f"the version of {copy.path}: {copy.version.reason}")
        if isinstance(copy.version, Known):
            versions.add(copy.version.value)
    if not versions:
        return Absent(f"copies of {name}")
    return Known(", ".join(sorted(versions)), machine.cuda.source)


def _framework(machine: Snapshot, name: FactName) -> Observed[str]:
    frameworks = machine.target.frameworks
    if not isinstance(frameworks, Known):
        return frameworks
    for framework in frameworks.value:
        if framework.name == name:
            return Known(f"{framework.version}{_build(framework)}", frameworks.source)
    return Absent(f"{name} in the target's packages")


def _build(framework: Framework) -> str:
    """What tells two builds of one release apart."""
    kind, cuda = framework.build.kind, framework.build.cuda
    if not isinstance(kind, Known):
        return ""
    if kind.value == "cuda" and isinstance(cuda, Known):
        return f" (CUDA {cuda.value})"
    return f" ({kind.value} build)"
