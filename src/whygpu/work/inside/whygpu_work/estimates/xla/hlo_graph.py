"""An XLA program as a graph of arrays, in the form that its GPU compiler works on.

Calls are inlined, tuples and reshapes disappear, common subexpressions are merged, and the changes
that the GPU compiler makes to convolutions and pooling are made here too: all of this decides which
arrays exist at all.
"""

import re

from . import hlo_text as text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


ALIASES = ("reshape", "bitcast", "bitcast-convert", "copy", "domain")
FREE = ("constant", "iota")
READ_IN_SHAPE = ("convolution", "dot", "reduce")
WHOLE = ("custom-call", "rng-bit-generator", "sort", "topk")
"""Operations whose results are all stored, whether they are used or not."""
UNIQUE = ("parameter", "while", "conditional", "custom-call", "rng", "barrier", "infeed")


class Node(object):
    """One array, or the work that makes several: then each is a node with the operation `part`."""

    __slots__ = ("aliases", "attributes", "bodies", "inputs", "key", "operation", "shape", "size")

    def __init__(
        self,
        operation: str,
        shape: "Any",
        inputs: "list[Node]",
        attributes: str = "",
        key: "Any" = None,
    ) -> None:
        self.operation = operation
        self.shape = shape
        self.size = text.size_of(shape) if shape else 0
        self.inputs = inputs
        self.attributes = attributes
        self.key = key
        """What else it depends on: a constant's value, a part's number, or the shapes that its
        inputs are read in, which are not always their own."""
        self.bodies: "tuple[Graph, ...]" = ()
        """The graphs that a loop or a branch runs."""
        self.aliases: "Node | None" = None
        """For a part of a loop or barrier that is only passed through: what it is."""

    @property
    def elements(self) -> int:
        count = 1
        for each in self.shape[1] if self.shape else ():
            count *= each
        return count


class Graph(object):
    """Nodes in a valid order; `parameters` and `roots` are among them."""

    def __init__(self, nodes: "list[Node]", parameters: "list[Node]", roots: "list[Node]") -> None:
        self.nodes = nodes
        self.parameters = parameters
        self.roots = roots
        self.users: "dict[Node, list[Node]]" = {}
        for node in nodes:
            for each in set(node.inputs):
                self.users.setdefault(each, []).append(node)

    def users_of(self, node: "Node") -> "list[Node]":
        return self.users.get(node, [])


def build(program: "text.Program", name: "str | None" = None) -> "Graph":
    """The graph of a computation, the whole program's unless a name is given."""
    builder = _Builder(program)
    parameters, roots = builder.computation(name or program.entry)
    nodes, roots = _without_repetition(builder.nodes, roots)
    return Graph(_needed(nodes, roots), parameters, roots)


class _Builder(object):
    def __init__(self, program: "text.Program") -> None:
        self._program = program
        self.nodes: "list[Node]" = []

    def computation(self, name: str) -> "tuple[list[Node], list[Node]]":
        instructions = self._program.computations[name]
        given = [each for each in instructions if each.opcode == "parameter"]
        values = []
        for each in sorted(given, key=lambda instruction: int(instruction.inside)):
            made = [self._add(Node("parameter", shape, [])) for shape in each.shapes]
            values.append(text.packed(each.structure, made))
        return _flat(values), _flat(self._inline(name, values))

    def _inline(self, name: str, parameters: "Any") -> "Any":
        """The value of a computation's root, with its instructions inlined."""
        values: "dict[str, Any]" = {}
        shapes: "dict[str, Any]" = {}
        root = None
        for each in self._program.computations[name]:
            if each.opcode == "parameter":
                value = parameters[int(each.inside)]
            else:
                read = [shapes[operand] for operand in each.operands]
                value = self._value(each, [values[operand] for operand in each.operands], read)
            values[each.name], shapes[each.name] = value, each.shapes[0] if each.shapes else None
            root = value if each.root else root
        return root

    def _value(self, instruction: "text.Instruction", operands: "Any", read: "Any") -> "Any":
        """`read`: the shapes of the operands as the instruction reads them."""
        opcode = instruction.opcode
        if opcode == "tuple":
            return operands
        if opcode == "get-tuple-element":
            return operands[0][instruction.number("index")]
        if opcode == "call":
            return self._inline(instruction.computation("to_apply"), operands)
        if opcode in ALIASES or _is_annotation(instruction) or _moves_nothing(instruction):
            return operands[0]
        inputs = _flat(operands)
        if opcode == "opt-barrier":
            return self._barrier(inputs, instruction)
        if opcode == "while":
            return self._loop(inputs, instruction)
        if opcode == "conditional":
            return self._choice(inputs[1:], instruction)
        if opcode == "convolution":
            inputs = self._convolved(inputs, read[0], instruction)
        if opcode == "select-and-scatter":
            return self._scattered(inputs, instruction)
        if instruction.is_tuple:
            whole = self._add(Node(opcode, None, inputs, _distinguishing(instruction.attributes)))
            return text.packed(instruction.structure, self._parts(whole, instruction.shapes))
        if opcode == "broadcast" and text.size_of(instruction.shapes[0]) == inputs[0].size:
            return inputs[0]
        attributes = _distinguishing(instruction.attributes)
        key: "Any" = instruction.inside if opcode in FREE else None
        key = tuple(read) if opcode in READ_IN_SHAPE else key
        return self._add(Node(opcode, instruction.shapes[0], inputs, attributes, key))

    def _parts(self, whole: "Node", shapes: "Any") -> "list[Node]":
        return [
            self._add(Node("part", shape, [whole], key=position))
            for position, shape in enumerate(shapes)
        ]

    def _barrier(self, inputs: "list[Node]", instruction: "text.Instruction") -> "Any":
        whole = self._add(Node("barrier", None, inputs))
        parts = self._parts(whole, instruction.shapes)
        for part, passed in zip(parts, inputs):
            part.aliases = passed
        return text.packed(instruction.structure, parts)

    def _choice(self, inputs: "list[Node]", instruction: "text.Instruction") -> "Any":
        whole = self._add(Node("conditional", None, inputs))
        whole.bodies = tuple(build(self._program, name) for name in instruction.branches())
        return text.packed(instruction.structure, self._parts(whole, instruction.shapes))

    def _loop(self, inputs: "list[Node]", instruction: "text.Instruction") -> "Any":
        whole = self._add(Node("while", None, inputs))
        body = build(self._program, instruction.computation("body"))
        whole.bodies = (body,)
        parts = self._parts(whole, instruction.shapes)
        for part, passed, before, after in zip(parts, inputs, body.parameters, body.roots):
            part.aliases = passed if after is before else None
        return text.packed(instruction.structure, parts)

    def _convolved(
        self, inputs: "list[Node]", read: "Any", instruction: "text.Instruction"
    ) -> "list[Node]":
        """The operands as cuDNN takes them: evenly padded, the batch first."""
        image, kernel = inputs
        if image.operation == "pad" and _is_even(image.attributes):
            image = image.inputs[0]
        window = instruction.attribute("window") or ""
        labels = instruction.attribute("dim_labels") or ""
        spread = "lhs_dilate" in window
        if labels.startswith("f") and spread:
            # The gradient of a transposed convolution's kernel: no call of cuDNN's is made for it,
            # so it is done as a plain convolution, of operands that are turned around first.
            return [self._copy("transpose", each, each.shape) for each in (image, kernel)]
        uneven = [
            (int(low), int(high))
            for low, high in re.findall(r"(-?\d+)_(-?\d+)", _field(window, "pad"))
        ]
        if spread or all(low == high for low, high in uneven):
            return [image, kernel]
        places = [at for at, letter in enumerate(labels.split("_")[0]) if letter.isdecimal()]
        sizes = list(read[1] if image is inputs[0] else image.shape[1])
        for place, (low, high) in zip(places, uneven):
            sizes[place] += max(0, low) + max(0, high)
        return [self._copy("pad", image, (read[0], tuple(sizes)), str(uneven)), kernel]

    def _copy(self, operation: str, node: "Node", shape: "Any", attributes: str = "") -> "Node":
        return self._add(Node(operation, shape, [node], attributes))

    def _scattered(self, inputs: "list[Node]", instruction: "text.Instruction") -> "Node":
        """Max pooling's gradient: places are searched for, then written into an array of zeros.

        Where a ReLU compares with zeros of the same shape, they are one array, and it is kept.
        """
        image, source, start = inputs
        shape = instruction.shapes[0]
        if set(_field(instruction.attribute("window") or "", "size")) <= set("1x"):
            return self._add(Node("pad", shape, [source, start], instruction.attribute("window")))
        places = ("s32", (len(shape[1]),) + tuple(source.shape[1]))
        searched = self._add(Node("reduce-window", places, [image]))
        zeros = self._add(Node("broadcast", shape, [start], "dimensions={}"))
        room = self._add(Node("room", shape, [zeros]))
        return self._add(Node("scatter", shape, [room, searched, source]))

    def _add(self, node: "Node") -> "Node":
        self.nodes.append(node)
        return node


def _field(window: str, name: str) -> str:
    found = re.search(r"\b%s=(\S+)" % name, window.strip("{}"))
    return found.group(1) if found else ""


def _is_even(attributes: str) -> bool:
    """Whether padding is equal on both sides and not between elements: cuDNN supports that."""
    found = re.search(r"padding=([0-9x_]+)", attributes)
    sides = [each.split("_") for each in found.group(1).split("x")] if found else [("", "?")]
    return all(len(each) == 2 and each[0] == each[1] for each in sides)


def _moves_nothing(instruction: "text.Instruction") -> bool:
    """A transpose that keeps the order of the axes: TensorFlow writes one after each product."""
    if instruction.opcode != "transpose":
        return False
    order = re.findall(r"\d+", instruction.attribute("dimensions") or "")
    return order == [str(place) for place in range(len(instruction.shapes[0][1]))]


def _is_annotation(instruction: "text.Instruction") -> "Any":
    """A custom call that is a hint for the compiler and computes nothing."""
    return (
        instruction.opcode == "custom-call"
        and not instruction.is_tuple
        and re.search(r'custom_call_target="(Sharding|.*sdy.*|annotate.*)"', instruction.attributes)
    )


def _flat(value: "Any") -> "list[Node]":
    if isinstance(value, Node):
        return [value]
    return [leaf for each in value for leaf in _flat(each)]


def _distinguishing(attributes: str) -> str:
    """The attributes that distinguish two instructions: not their place in the user's program."""
    return re.sub(
        r",\s*(metadata=\{[^}]*\}|to_apply=[^,\s]+|sharding=\{[^}]*\}|"
        r"frontend_attributes=\{[^}]*\})",
        "",
        attributes,
    ).lstrip(", ")


def _without_repetition(
    nodes: "list[Node]", roots: "list[Node]"
) -> "tuple[list[Node], list[Node]]":
    """Merge nodes that compute the same into the first of them."""
    stands_for: "dict[Node, Node]" = {}
    known: "dict[Any, Node]" = {}
    kept = []
    for node in nodes:
        node.inputs = [stands_for.get(each, each) for each in node.inputs]
        if node.aliases is not None:
            node.aliases = stands_for.get(node.aliases, node.aliases)
        identity = (node.operation, node.shape, tuple(node.inputs), node.attributes, node.key)
        same = known.get(identity) if node.operation not in UNIQUE else None
        if same is not None:
            stands_for[node] = same
        else:
            known[identity] = node
            kept.append(node)
    return kept, [stands_for.get(root, root) for root in roots]


def _needed(nodes: "list[Node]", roots: "list[Node]") -> "list[Node]":
    """The nodes that a root depends on, in their order."""
    reached, waiting = set(), list(roots)
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting.extend(node.inputs)
    return [node for node in nodes if node in reached or _is_there_anyway(node, reached)]


def _is_there_anyway(node: "Node", reached: "set[Node]") -> bool:
    if node.operation == "part":
        return node.inputs[0] in reached and node.inputs[0].operation in WHOLE
    return node.operation == "parameter"
