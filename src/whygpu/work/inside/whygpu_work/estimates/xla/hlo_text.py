"""Reads XLA's HLO text: a program's computations and their instructions.

The text is what every XLA front end can show, JAX's `lowered.as_text("hlo")` and TensorFlow's
`experimental_get_compiler_ir` alike, and what a compiled program shows of itself.
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    # The type of the elements, and the dimensions.
    Shape = tuple[str, tuple[int, ...]]

SIZES = {
    "pred": 1,
    "s4": 1,
    "u4": 1,
    "s8": 1,
    "u8": 1,
    "s16": 2,
    "u16": 2,
    "f16": 2,
    "bf16": 2,
    "s32": 4,
    "u32": 4,
    "f32": 4,
    "s64": 8,
    "u64": 8,
    "f64": 8,
    "c64": 8,
    "c128": 16,
    "token": 0,
}
_SHAPE = re.compile(r"\b([a-z][a-z0-9]*)\[([0-9,<= ]*)\]")
_LINE = re.compile(r"^\s*(ROOT )?%?(\S+) = (.*)$")
_HEAD = re.compile(r"^(ENTRY )?%?([^\s(]+)")
_COMMENT = re.compile(r"/\*.*?\*/")
_NESTING = re.compile(r"[()]|\b[a-z][a-z0-9]*\[")
_LAYOUT = re.compile(r"\{[^}]*\}")
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")


class Instruction(object):
    __slots__ = (
        "attributes",
        "inside",
        "is_tuple",
        "name",
        "opcode",
        "operands",
        "root",
        "shapes",
        "structure",
    )
    attributes: str
    inside: str
    is_tuple: bool
    name: str
    opcode: str
    operands: "list[str]"
    root: bool
    shapes: "list[Shape]"
    structure: "Any"

    def attribute(self, name: str) -> "Any":
        """The text of an attribute's value; None if there is no such attribute."""
        found = re.search(r"\b%s=(\{[^}]*\}|[^,\s]+)" % name, self.attributes)
        return found.group(1) if found else None

    def number(self, name: str) -> int:
        return int(self.attribute(name))

    def computation(self, kind: str) -> str:
        """The name of the computation that the instruction calls as `to_apply`, `body`, ..."""
        return self.attribute(kind).lstrip("%")

    def branches(self) -> "list[str]":
        """The computations that a conditional chooses from."""
        listed = _BRANCHES.search(self.attributes)
        if listed:
            return [name.strip().lstrip("%") for name in listed.group(1).split(",")]
        return [self.computation("true_computation"), self.computation("false_computation")]


class Program(object):
    """Computations by name, each a list of instructions in a valid order."""

    def __init__(self, computations: "dict[str, list[Instruction]]", entry: str) -> None:
        self.computations = computations
        self.entry = entry


def size_of(shape: "Shape") -> int:
    """Bytes of one array: (element type, dimensions)."""
    kind, dimensions = shape
    size = SIZES.get(kind, 1 if kind.startswith("f8") else 4)
    for each in dimensions:
        size *= each
    return size


def parse(text: str) -> "Program":
    computations: "dict[str, list[Instruction]]" = {}
    entry, current = None, None
    for line in text.splitlines():
        if current is None:
            if line.endswith("{") and not line.startswith("HloModule"):
                found = _HEAD.match(line)
                if found is None:
                    raise ValueError("a computation without a name: %r" % line)
                current = computations.setdefault(found.group(2), [])
                entry = found.group(2) if found.group(1) else entry
        elif line.startswith("}"):
            current = None
        else:
            instruction = _instruction(line)
            if instruction is not None:
                current.append(instruction)
    if entry is None:
        raise ValueError("no ENTRY computation in the text of the program")
    return Program(computations, entry)


def _instruction(line: str) -> "Instruction | None":
    found = _LINE.match(line)
    if not found:
        return None
    result = Instruction()
    result.root, result.name = bool(found.group(1)), found.group(2)
    rest = _COMMENT.sub("", found.group(3)) if "/*" in line else found.group(3)
    result.is_tuple = rest.startswith("(")
    end = _closing(rest, 0) if result.is_tuple else rest.index(" ")
    result.shapes = shapes(rest[:end])
    result.structure = structure(rest[:end])
    rest = rest[end:].lstrip()
    opening = rest.index("(")
    closing = _closing(rest, opening)
    result.opcode = rest[:opening]
    result.inside = rest[opening + 1 : closing - 1]
    result.attributes = rest[closing:]
    constant = result.opcode in ("parameter", "constant", "iota")
    result.operands = [] if constant else _operands(result.inside)
    return result


def shapes(text: str) -> "list[Shape]":
    """All arrays that a shape is written with, in order; a tuple has several."""
    return [
        (kind, tuple(int(each.strip("<= ")) for each in sizes.split(",") if each.strip()))
        for kind, sizes in _SHAPE.findall(text)
    ]


def structure(text: str) -> "Any":
    """How a shape's arrays are nested: a number for an array, a list for a tuple."""
    open_lists: "list[list[Any]]" = [[]]
    count = 0
    for token in _NESTING.findall(_LAYOUT.sub("", text)):
        if token == "(":
            open_lists.append([])
        elif token == ")":
            done = open_lists.pop()
            open_lists[-1].append(done)
        else:
            open_lists[-1].append(count)
            count += 1
    return open_lists[0][0]


def packed(structure: "Any", values: "Sequence[Any]") -> "Any":
    """Values of a shape's arrays, nested as the shape is."""
    if isinstance(structure, list):
        return [packed(each, values) for each in structure]
    return values[structure]


def _closing(text: str, position: int) -> int:
    """The position after the bracket that closes the one at `position`."""
    depth = 0
    while True:
        character = text[position]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                return position + 1
        elif character == '"':
            position = text.index('"', position + 1)
        position += 1


def _operands(text: str) -> "list[str]":
    """Names in the order given; some texts write an operand's shape before its name."""
    names, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            names.append(text[start:position])
            start = position + 1
    names.append(text[start:])
    return [name.split()[-1].lstrip("%") for name in names if name.strip()]
