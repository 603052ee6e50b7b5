"""Which arrays of an XLA program exist in memory when a GPU runs it.

Elementwise work is fused into its users as long as computing it again costs less than storing the
result. The results of matrix products, convolutions and reductions are stored, and so is everything
that the kernel of a library reads.
"""

import re

from . import hlo_graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from .hlo_graph import Graph, Node

LIBRARY = (
    "barrier",
    "cholesky",
    "conditional",
    "convolution",
    "custom-call",
    "dot",
    "fft",
    "rng-bit-generator",
    "sort",
    "topk",
    "triangular-solve",
    "while",
)
"""Work that reads its operands from memory and writes its results there."""
WRITTEN = LIBRARY + ("reduce", "reduce-window", "scatter")
STANDING = WRITTEN + ("parameter", "part")
MOVES = (
    "broadcast",
    "concatenate",
    "convert",
    "dynamic-slice",
    "dynamic-update-slice",
    "gather",
    "pad",
    "reverse",
    "select",
    "slice",
    "transpose",
)
"""Operations that compute next to nothing."""
ELEMENTWISE = ("add", "maximum", "minimum", "multiply", "select", "subtract", "convert")
CHEAP = 4
"""Steps for one element that a matrix product can do while it reads its operand."""
CALCULATIONS = {
    "atan2": 40,
    "cbrt": 20,
    "cosine": 30,
    "divide": 5,
    "erf": 40,
    "exponential": 10,
    "exponential-minus-one": 15,
    "log": 10,
    "log-plus-one": 15,
    "logistic": 20,
    "power": 40,
    "rsqrt": 5,
    "sine": 30,
    "sqrt": 5,
    "tan": 40,
    "tanh": 20,
}
"""Steps of computation for one element, if there is more than one."""
CALCULATIONS_PER_BYTE = 14.0
"""Steps that a data-centre GPU computes in the time that it takes to read a byte."""

SHORT_REDUCTION = 4096
"""A sum over this many rows or more is computed in two steps."""


def written(
    graph: "Graph", finished: "dict[Node, Node]"
) -> "tuple[set[Node], dict[Node, set[Node]]]":
    """The nodes that are stored in memory, and from which of those each node is computed."""
    result = _always_written(graph, finished)
    sources, effort = _sources(graph, result), _efforts(graph, result)
    kernels: "dict[Node, set[Node]]" = {}
    for node in reversed(graph.nodes):
        users = graph.users_of(node)
        kernels[node] = set()
        for user in users:
            kernels[node] |= {user} if user in result else kernels[user]
        if node in result or node in finished or _is_never_written(node):
            continue
        reads = sum(each.size for each in sources[node]) + effort[node] / CALCULATIONS_PER_BYTE
        count = len(kernels[node])
        again, once = count * reads, reads + node.size * (1 + count)
        if count > 1 and (again > once or _is_for_short_reduction(graph, node)):
            result.add(node)
    return result, _sources(graph, result)


def _always_written(graph: "Graph", finished: "dict[Node, Node]") -> "set[Node]":
    roots, written = set(graph.roots), set(finished.values())
    for node in graph.nodes:
        users = graph.users_of(node)
        if node.aliases is not None or node in finished:
            continue
        if node.operation in hlo_graph.FREE:
            needed = node in roots
        elif node.operation == "broadcast" and node.inputs[0].size <= 8:
            shared = len(users) > 1 and any(user.operation == "room" for user in users)
            needed = node in roots or shared
        elif node.operation == "room":
            needed = node.inputs[0] in written
        else:
            needed = node.operation in STANDING or node in roots
            needed = needed or any(user.operation in LIBRARY for user in users)
        if needed:
            written.add(node)
    return written - _prologues(graph, written, roots)


def _prologues(graph: "Graph", written: "set[Node]", roots: "Any") -> "set[Node]":
    """Cheap elementwise work on one array that only matrix products read: they include it."""
    found, sources, effort = set(), _sources(graph, written), _efforts(graph, written)
    for node in graph.nodes:
        users = graph.users_of(node)
        if node not in written or node in roots or node.operation not in ELEMENTWISE:
            continue
        large = [each for each in sources[node] if each.size * 8 > node.size]
        if (
            all(user.operation == "dot" for user in users)
            and len(large) == 1
            and large[0].elements == node.elements
            and large[0].operation != "parameter"
            and effort[node] <= CHEAP * node.elements
        ):
            found.add(node)
    return found


def _is_never_written(node: "Node") -> bool:
    repeated = node.operation == "broadcast" and node.inputs[0].size <= 8
    return node.aliases is not None or repeated or node.operation in hlo_graph.FREE


def _sources(graph: "Graph", written: "set[Node]") -> "dict[Node, set[Node]]":
    sources: "dict[Node, set[Node]]" = {}
    for node in graph.nodes:
        sources[node] = set()
        for each in node.inputs:
            sources[node] |= {each} if each in written else sources[each]
        if node.aliases is not None:
            passed = node.aliases
            sources[node] |= {passed} if passed in written else sources[passed]
    return sources


def _efforts(graph: "Graph", written: "set[Node]") -> "dict[Node, float]":
    """Steps that computing a node again from stored arrays would take."""
    steps, fused = {}, {}
    for node in graph.nodes:
        each_step = 0 if node.operation in MOVES else CALCULATIONS.get(node.operation, 1)
        steps[node] = each_step * node.elements
        fused[node] = {node} if steps[node] else set()
        for each in node.inputs:
            if each not in written:
                fused[node] |= fused[each]
    return {node: sum(steps[each] for each in fused[node]) for node in graph.nodes}


def epilogues(graph: "Graph") -> "dict[Node, Node]":
    """Products and convolutions that come with a bias, a sum or a ReLU: what is written instead.

    By the node that is then never written.
    """
    result = {}
    for node in graph.nodes:
        if node.operation in ("dot", "convolution"):
            last = _followed(graph, node, "add", lambda other: _is_spread(other, 1))
            last = _followed(graph, last, "add", lambda other: other.operation != "broadcast")
            last = _followed(graph, last, "maximum", lambda other: _is_spread(other, 0))
            if last is not node:
                result[node] = last
    return result


def _followed(
    graph: "Graph", node: "Node", operation: str, takes: "Callable[[Node], bool]"
) -> "Node":
    """The only user of a node, if it is this operation and the other operand is accepted."""
    users = graph.users_of(node)
    if len(users) != 1 or users[0].operation != operation or node in graph.roots:
        return node
    others = [each for each in users[0].inputs if each is not node]
    return users[0] if len(others) == 1 and takes(others[0]) else node


def _is_spread(node: "Node", rank: int) -> bool:
    """Whether a node only repeats an array of so many dimensions."""
    return node.operation == "broadcast" and len(_trimmed(node.inputs[0].shape[1])) <= rank


def _trimmed(dimensions: "Iterable[int]") -> "list[int]":
    return [each for each in dimensions if each != 1]


def _is_for_short_reduction(graph: "Graph", node: "Node") -> bool:
    return any(_ends_in_short_reduction(graph, user) for user in graph.users_of(node))


def _ends_in_short_reduction(graph: "Graph", node: "Node") -> bool:
    """Whether a node is computed for a sum over so few rows that few threads work on it."""
    while node.operation not in WRITTEN and node.shape:
        users = graph.users_of(node)
        if len(users) != 1:
            return False
        node = users[0]
    if node.operation != "reduce" or node.shape is None:
        return False
    _, sizes = node.key[0]
    reduced = re.search(r"dimensions=\{([0-9,]*)\}", node.attributes)
    in_columns = reduced is not None and str(len(sizes) - 1) not in reduced.group(1).split(",")
    return in_columns and node.inputs[0].elements < SHORT_REDUCTION * node.elements
