"""Two values of one type, compared part by part, and mixtures of both.

A leaf is the smallest part that is taken from one side or the other. Sources and reasons are not
compared: the same fact, read from another file, is the same fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Union

from whygpu.model.driver import DeviceNode, DriverLibrary, Gpu, GpuPair, GraphicsDevice
from whygpu.model.environment import Variable
from whygpu.model.libraries import LibraryCopy, Resolution, Toolkit
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.target import FoundModule, Framework, Package, Plugin, RequirementConflict

_KEYS: dict[type, Callable[[Any], tuple[str, ...]]] = {
    DeviceNode: lambda item: (item.path,),
    FoundModule: lambda item: (item.name,),
    Framework: lambda item: (item.name,),
    Gpu: lambda item: (str(item.number),),
    GpuPair: lambda item: (f"{item.first}-{item.second}",),
    GraphicsDevice: lambda item: (item.address,),
    LibraryCopy: lambda item: (item.path,),
    Package: lambda item: (item.name, item.location),
    Plugin: lambda item: (item.name,),
    RequirementConflict: lambda item: (item.package, item.requirement),
    Resolution: lambda item: (item.library, item.requester),
    Toolkit: lambda item: (item.path,),
    Variable: lambda item: (item.name,),
}
"""What makes two items of two lists the same item. Lists of other types are compared as a whole."""

_WHOLE = (Resolution, Variable, DeviceNode, DriverLibrary, LibraryCopy, GraphicsDevice)
"""Records whose fields depend on each other, so that they are only exchanged as a whole."""

Key = tuple[str, ...]
Step = Union[str, Key]
"""The name of a field, or the key of an item."""
Path = tuple[Step, ...]


class Leaf(NamedTuple):
    path: Path
    before: Any
    after: Any
    """None for an item of a list that this side does not have."""
    number: int

    @property
    def bits(self) -> int:
        """The leaf in a set of leaves. It is not kept: in the last of 100,000 leaves, it is as long
        as all of them."""
        return 1 << self.number

    @property
    def either(self) -> Any:
        """The value of the side that has it, the later one if both have."""
        return self.before if self.after is None else self.after

    @property
    def comparable(self) -> bool:
        return not isinstance(self.before, Unknown) and not isinstance(self.after, Unknown)

    @property
    def place(self) -> str:
        """target.packages[torch].version."""
        words = [f"[{step[0]}]" if isinstance(step, tuple) else f".{step}" for step in self.path]
        return "".join(words).lstrip(".")


class _Fields(NamedTuple):
    """A record in which some fields differ."""

    before: Any
    after: Any
    parts: tuple[tuple[str, Node], ...]

    @property
    def bits(self) -> int:
        return _union(part for _, part in self.parts)


class _Inside(NamedTuple):
    """A fact that both sides know, with values that differ in part."""

    before: Known[Any]
    after: Known[Any]
    part: Node

    @property
    def bits(self) -> int:
        return self.part.bits


class _Items(NamedTuple):
    """A list with keys: an item of both sides that is the same, or a node for one that differs."""

    before: tuple[Any, ...]
    after: tuple[Any, ...]
    bits: int
    items: tuple[tuple[Any, Node | None], ...]


Node = Union[Leaf, _Fields, _Inside, _Items]


class Comparison(NamedTuple):
    """Both values, with every leaf that differs."""

    root: Node | None
    leaves: tuple[Leaf, ...]
    before: Any

    @property
    def everything(self) -> int:
        return (1 << len(self.leaves)) - 1

    def mixture(self, chosen: int) -> Any:
        """The value before, with the leaves whose bits are chosen as they are after."""
        return self.before if self.root is None else _mixed(self.root, chosen)


def compare(before: Any, after: Any) -> Comparison:
    leaves: list[Leaf] = []
    root = _compare(before, after, (), leaves)
    return Comparison(root, tuple(leaves), before)


def same(one: Any, other: Any) -> bool:
    """Equal, whatever the sources and reasons."""
    if isinstance(one, Known):
        return isinstance(other, Known) and same(one.value, other.value)
    if isinstance(one, Absent | Unknown):
        return type(one) is type(other)
    if isinstance(one, Variable) and isinstance(other, Variable):
        # What a value means, and whether it works, depends on other facts, such as the GPUs.
        return (one.name, one.value) == (other.name, other.value)
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _compare(before: Any, after: Any, path: Path, leaves: list[Leaf]) -> Node | None:
    if before is after or same(before, after):
        return None
    if isinstance(before, Known) and isinstance(after, Known):
        if _is_divisible(before.value, after.value):
            part = _compare(before.value, after.value, path, leaves)
            return None if part is None else _Inside(before, after, part)
    elif _is_divisible(before, after):
        if hasattr(before, "_fields"):
            return _fields(before, after, path, leaves)
        return _items(before, after, path, leaves)
    leaf = Leaf(path, before, after, len(leaves))
    leaves.append(leaf)
    return leaf


def _is_divisible(before: Any, after: Any) -> bool:
    if hasattr(before, "_fields"):
        return type(before) is type(after) and not isinstance(before, _WHOLE)
    if not isinstance(before, tuple) or not isinstance(after, tuple):
        return False
    return _keyed(before) is not None and _keyed(after) is not None


def _keyed(items: tuple[Any, ...]) -> dict[Key, Any] | None:
    """The items by their keys; None if they have none. Equal keys get a number."""
    found: dict[Key, Any] = {}
    times: dict[Key, int] = {}
    for item in items:
        if type(item) not in _KEYS:
            return None
        key = _KEYS[type(item)](item)
        times[key] = times.get(key, 0) + 1
        found[key if times[key] == 1 else (*key, f"number {times[key]}")] = item
    return found if len(found) == len(items) else None


def _fields(before: Any, after: Any, path: Path, leaves: list[Leaf]) -> Node:
    parts = []
    for name, one, other in zip(before._fields, before, after, strict=True):
        part = _compare(one, other, (*path, name), leaves)
        if part is not None:
            parts.append((name, part))
    return _Fields(before, after, tuple(parts))


def _items(before: Any, after: Any, path: Path, leaves: list[Leaf]) -> Node:
    first, second = _keyed(before) or {}, _keyed(after) or {}
    items: list[tuple[Any, Node | None]] = []
    for key in _in_order(first, second):
        one, other = first.get(key), second.get(key)
        items.append((one, _compare(one, other, (*path, key), leaves)))
    bits = _union(part for _, part in items if part is not None)
    if not bits:
        # Only the order differs.
        leaves.append(leaf := Leaf(path, before, after, len(leaves)))
        return leaf
    return _Items(before, after, bits, tuple(items))


def _in_order(before: Iterable[Key], after: Mapping[Key, Any]) -> Iterator[Key]:
    """The keys of both lists in the order of the second one, because order can matter: the first
    of two copies of a package is imported. A key of the first list only stays where it was."""
    gone: dict[Key | None, list[Key]] = {}
    anchor = None
    for key in before:
        if key in after:
            anchor = key
        else:
            gone.setdefault(anchor, []).append(key)
    yield from gone.get(None, ())
    for key in after:
        yield key
        yield from gone.get(key, ())


def _union(parts: Iterator[Node]) -> int:
    bits = 0
    for part in parts:
        bits |= part.bits
    return bits


def _mixed(node: Node, chosen: int) -> Any:
    if not node.bits & chosen:
        return node.before
    if node.bits & chosen == node.bits:
        return node.after
    if isinstance(node, _Inside):
        return Known(_mixed(node.part, chosen), node.before.source)
    if isinstance(node, _Fields):
        return node.before._replace(**{name: _mixed(part, chosen) for name, part in node.parts})
    assert isinstance(node, _Items)
    items = (item if part is None else _mixed(part, chosen) for item, part in node.items)
    return tuple(item for item in items if item is not None)
