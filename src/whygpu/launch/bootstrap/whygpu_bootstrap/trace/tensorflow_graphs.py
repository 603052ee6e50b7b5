"""Reads the graphs that TensorFlow has placed: operations per device, and what is on the CPU."""

from whygpu_bootstrap.trace import tensorflow_reasons as why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

NOT_WORK = frozenset(
    (
        "_Arg",
        "_Retval",
        "_DeviceArg",
        "_DeviceRetval",
        "_SOURCE",
        "_SINK",
        "NoOp",
        "Const",
        "_EagerConst",
    )
)
"""Nodes for arguments, results and constants, which are no work."""
LOOPS = frozenset(("Enter", "RefEnter", "While", "StatelessWhile"))
REWRITTEN = ("_MklNative", "_Mkl")
"""The prefix that oneDNN gives to operations that it rewrites, on the CPU."""


def label(device: str) -> str:
    """cpu or gpu:N, the device's name in reports."""
    last = device.rpartition("/")[2]
    if last.startswith("device:"):
        last = last[len("device:") :]
    name, _, index = last.lower().partition(":")
    if name in ("", "cpu") or name.startswith("xla_cpu"):
        return "cpu"
    return "%s:%s" % (name, index or "0")


def plain(op: str) -> str:
    """The operation's name before the rewriting for the CPU."""
    for prefix in REWRITTEN:
        if op.startswith(prefix):
            rest = op[len(prefix) :].lstrip("_")
            # A fused operation has no other name than the one with an underscore.
            return "_" + rest if rest.startswith("Fused") else rest
    return op


class Placement:
    """The nodes of one function or one step: how many of each operation on each device."""

    def __init__(self) -> None:
        self.counts: "dict[Any, Any]" = {}
        self.sights: "dict[Any, Any]" = {}
        self.has_loop = False
        self.has_xla = False

    def add(self, op: str, device: str, count: int = 1) -> None:
        self.counts[op, device] = self.counts.get((op, device), 0) + count

    def see(self, sight: "Any") -> None:
        self.sights.setdefault(sight.key(), sight)

    def only_on_cpu(self) -> bool:
        return all(device == "cpu" for _, device in self.counts)


def of_function(function_graphs: "Any") -> "Placement":
    """The placement of what ran when a tf.function was called."""
    placement = Placement()
    for graphs in function_graphs:
        before = graphs.pre_optimization_graph
        bodies = {body.signature.name: body for body in before.library.function}
        requested = _requests(before, bodies)
        for partition in graphs.partition_graphs:
            add_graph(placement, partition, bodies, requested)
    return placement


def add_graph(
    placement: "Placement",
    graph: "Any",
    bodies: "dict[str, Any]",
    requested: "Callable[[str], str]",
) -> None:
    """Add a placed graph. `requested(name)` is the device that the program asked for."""
    for node in graph.node:
        if node.op in NOT_WORK:
            continue
        placement.has_loop = placement.has_loop or node.op in LOOPS
        device = label(node.device)
        if node.attr["_XlaMustCompile"].b and node.attr["f"].func.name in bodies:
            placement.has_xla = True
            _add_body(placement, bodies[node.attr["f"].func.name], device, bodies)
            continue
        placement.add(plain(node.op), device)
        if device == "cpu":
            placement.see(why.sight_of_node(node, requested(node.name)))


def of_definition(body: "Any", device: str, bodies: "dict[str, Any]") -> "Placement":
    """The placement of a function without a placed graph, as if all of it were on the device.

    That is true for a function that XLA compiles as a whole.
    """
    placement = Placement()
    placement.has_xla = body.attr["_XlaMustCompile"].b
    _add_body(placement, body, device, bodies)
    return placement


def _add_body(placement: "Placement", body: "Any", device: str, bodies: "dict[str, Any]") -> None:
    for node in body.node_def:
        if node.op in NOT_WORK:
            continue
        placement.has_loop = placement.has_loop or node.op in LOOPS
        called = node.attr["f"].func.name if "f" in node.attr else ""
        if called in bodies and called != body.signature.name:
            _add_body(placement, bodies[called], device, bodies)
        else:
            placement.add(plain(node.op), device)


def _requests(graph: "Any", bodies: "dict[str, Any]") -> "Callable[[str], str]":
    """The device that was requested for a node, also if its function was inlined.

    The name of such a node begins with the name of the call.
    """
    asked = {node.name: node.device for node in graph.node if node.device}
    inner = {}
    for body in bodies.values():
        for node in body.node_def:
            if node.device:
                inner[node.name] = node.device
    asked.update((name, device) for name, device in inner.items() if name not in asked)

    def requested(name: str) -> str:
        while name:
            if name in asked:
                return asked[name]
            _, slash, name = name.partition("/")
            if not slash:
                return ""
        return ""

    return requested
