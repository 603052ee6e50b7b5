"""The two values of a difference, in words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from whygpu.differences.bench import FactDifference
from whygpu.differences.facts import DRIVER
from whygpu.differences.tree import Leaf
from whygpu.model.codec import is_record
from whygpu.model.driver import (
    DeviceNode,
    Driver,
    DriverLibrary,
    Gpu,
    GpuProcess,
    GraphicsDevice,
    XidCount,
)
from whygpu.model.environment import Variable
from whygpu.model.figures import counted
from whygpu.model.libraries import LibraryCopy, Resolution, Toolkit
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.outside_text import excerpt
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import Container, Libc
from whygpu.model.target import Framework, Package
from whygpu.model.units import size_text

_LONGEST = 100
_FOUR_NUMBERS = re.compile(r"\d+(?:\.\d+){3}")
_MOST_PARTS = 2


def values_of(difference: FactDifference, sides: tuple[Snapshot, Snapshot]) -> tuple[str, str]:
    """Before and after, in words that differ."""
    leaf = difference.leaves[0]
    if _is_order(leaf):
        return "in one order", "in another order"
    for texts in (
        _in_short(difference, sides),
        _leaf_by_leaf(difference.leaves),
        # Sizes that are nearly the same.
        (str(_bare(leaf.before)), str(_bare(leaf.after))),
    ):
        before, after = (excerpt(text, _LONGEST) for text in texts)
        if before != after:
            return before, after
    return "as it was", "something else"


def _is_order(leaf: Leaf) -> bool:
    """Whether both sides have the same records, and only their order differs. Short texts, such as
    folders on a search path, are shown instead."""
    before, after = _bare(leaf.before), _bare(leaf.after)
    if type(before) is not tuple or type(after) is not tuple:
        return False
    return all(hasattr(item, "_fields") for item in before) and Counter(before) == Counter(after)


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, Known) else value


def _in_short(difference: FactDifference, sides: tuple[Snapshot, Snapshot]) -> tuple[str, str]:
    """The value that a person would name for the whole fact."""
    kind, leaves = difference.fact.kind, difference.leaves
    if difference.fact == DRIVER:
        return _driver(sides[0].driver), _driver(sides[1].driver)
    if kind == "package":
        return _versions(difference, 0), _versions(difference, 1)
    chosen = leaves[0]
    if kind == "variable":
        chosen = next((leaf for leaf in leaves if leaf.path[0] == "environment"), chosen)
    return _text(chosen.before, chosen), _text(chosen.after, chosen)


def _driver(driver: Driver) -> str:
    version = driver.version.value if isinstance(driver.version, Known) else ""
    if not isinstance(driver.state, Known):
        return version or "unknown"
    if driver.state.value == "working":
        return version or "working"
    return f"{driver.state.value} ({version})" if version else driver.state.value


def _versions(difference: FactDifference, side: int) -> str:
    """2.8.0; for several packages of one family: tensorflow-cpu 2.20.0."""
    found: dict[str, str] = {}
    names = set()
    for leaf in difference.leaves:
        if leaf.path[:2] != ("target", "packages") or len(leaf.path) < 3:
            continue
        name = leaf.path[2][0]
        names.add(name)
        value = (leaf.before, leaf.after)[side]
        if isinstance(value, Package):
            found[name] = value.version
        elif leaf.path[-1] == "version":
            found[name] = str(value)
    if names == {difference.fact.name}:
        version = found.get(difference.fact.name)
        if version is None:
            return "" if _changes_version(difference) else "installed"
        # Without this word, four numbers would be removed as an address.
        return f"version {version}" if _FOUR_NUMBERS.fullmatch(version) else version
    if not names:
        return ""
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def _changes_version(difference: FactDifference) -> bool:
    return any(
        leaf.path[-1] == "version" or isinstance(leaf.either, Package) for leaf in difference.leaves
    )


def _leaf_by_leaf(leaves: tuple[Leaf, ...]) -> tuple[str, str]:
    shown = leaves[:_MOST_PARTS]
    more = ", ..." if len(leaves) > len(shown) else ""
    before, after = (
        ", ".join(f"{_part(leaf)}{_text(value, leaf) or 'none'}" for leaf, value in pairs) + more
        for pairs in (
            [(leaf, leaf.before) for leaf in shown],
            [(leaf, leaf.after) for leaf in shown],
        )
    )
    return before, after


def _part(leaf: Leaf) -> str:
    """Which part of the fact it is, if it is a field of its own."""
    last = leaf.path[-1]
    return f"{last[0]} " if isinstance(last, tuple) else f"{last.replace('_', ' ')} "


def _text(value: Any, leaf: Leaf) -> str:
    if isinstance(value, Known):
        return _text(value.value, leaf)
    if value is None or isinstance(value, Absent):
        return ""
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and str(leaf.path[-1]).endswith("_bytes"):
        return size_text(value)
    shown = _RECORDS.get(type(value))
    if shown is not None:
        return str(shown(value))
    if is_record(type(value)):
        fields = zip(value._fields, value, strict=True)
        return ", ".join(f"{name.replace('_', ' ')} {_text(part, leaf)}" for name, part in fields)
    if isinstance(value, tuple):
        if value and isinstance(value[0], GpuProcess):
            return f"{len(value)} process{'es' if len(value) > 1 else ''}"
        return ", ".join(_text(item, leaf) for item in value) or "nothing"
    return str(value)


def _resolution(found: Resolution) -> str:
    if found.outcome == "loads":
        return f"loads from {found.path}"
    what = found.outcome.replace("-", " ")
    if found.outcome == "not-found" or not found.detail:
        return what
    if found.outcome == "broken-file" and found.chain:
        # Without the path of the file, after which its name stands: the difference has that name.
        return f"{what}: {found.detail.rpartition(f'{found.chain[-1]}: ')[2]}"
    return f"{what}: {found.detail}"


def _copy(copy: LibraryCopy) -> str:
    version = f" {copy.version.value}" if isinstance(copy.version, Known) else ""
    return f"{copy.path}{version}"


def _graphics(device: GraphicsDevice) -> str:
    driver = device.kernel_driver
    return f"{device.vendor} device" + (
        f" with the kernel driver {driver.value}" if isinstance(driver, Known) else ""
    )


def _device_node(node: DeviceNode) -> str:
    return f"{node.mode}, group {node.group}" + ("" if node.usable else ", closed to this user")


_RECORDS: dict[type, Any] = {
    DeviceNode: _device_node,
    Variable: lambda item: item.value or "empty",
    Resolution: _resolution,
    LibraryCopy: _copy,
    DriverLibrary: lambda item: item.path,
    Gpu: lambda item: item.name,
    GraphicsDevice: _graphics,
    Container: lambda item: item.runtime,
    XidCount: lambda item: f"Xid {item.number} at {item.address}, {counted(item.times, 'time')}",
    Libc: lambda item: f"{item.name} {item.version}",
    Framework: lambda item: item.version,
    Package: lambda item: item.version,
    Toolkit: lambda item: item.version.value if isinstance(item.version, Known) else "there",
}
