"""Reads the graphs that TensorFlow has placed: operations per device, and what is on the CPU.

Two kinds of nodes are no operations: one that TensorFlow has folded into a constant keeps its name
and its device and never runs, and a pair of a send and a receive moves a tensor between devices.
"""

import collections

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
SENDS = frozenset(("_Send", "_HostSend"))
RECEIVES = frozenset(("_Recv", "_HostRecv"))
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


Written = collections.namedtuple("Written", "op device")
"""A node as the program wrote it; both are empty if the program did not write it."""

Transfer = collections.namedtuple("Transfer", "source target producer slot")
"""A tensor that moves from the memory of one device to that of another."""


class Placement:
    """The nodes of one function or one step: how many of each operation on each device."""

    def __init__(self) -> None:
        self.counts: "dict[Any, Any]" = {}
        self.folded: "dict[Any, int]" = {}
        self.transfers: "list[Any]" = []
        self.sights: "dict[Any, Any]" = {}
        self.has_loop = False
        self.has_xla = False

    def add(self, op: str, device: str, count: int = 1) -> None:
        self.counts[op, device] = self.counts.get((op, device), 0) + count

    def add_folded(self, op: str, device: str) -> None:
        self.folded[op, device] = self.folded.get((op, device), 0) + 1

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
        add_graphs(placement, graphs.partition_graphs, bodies, _as_written(before, bodies))
    return placement


def add_graphs(
    placement: "Placement",
    graphs: "Any",
    bodies: "dict[str, Any]",
    written: "Callable[[str], Any]",
) -> None:
    """Add placed graphs, one for each device. `written(name)` is the program's own node."""
    for graph in graphs:
        _add_graph(placement, graph, bodies, written)
    placement.transfers += transfers_between(graphs)


def transfers_between(graphs: "Any") -> "list[Any]":
    """The tensors that move between the memories of devices.

    A GPU's node can send or receive a tensor in host memory; the tensor does not move then.
    """
    nodes = [node for graph in graphs for node in graph.node]
    into_host = {_tensor(node) for node in nodes if node.op == "_HostRecv"}
    found = []
    for node in nodes:
        if node.op not in SENDS:
            continue
        source = "cpu" if node.op == "_HostSend" else label(_text(node, "send_device"))
        target = "cpu" if _tensor(node) in into_host else label(_text(node, "recv_device"))
        if source != target:
            producer, _, slot = node.input[0].partition(":")
            found.append(Transfer(source, target, producer, int(slot or 0)))
    return found


def _tensor(node: "Any") -> str:
    return _text(node, "tensor_name")


def _text(node: "Any", attribute: str) -> str:
    return node.attr[attribute].s.decode()


def _before_folding(name: str) -> str:
    """TensorFlow before 1.14 gives a folded node a name such as add/_0__cf__0."""
    return name.partition("/_")[0] if "__cf__" in name else name


def _add_graph(
    placement: "Placement",
    graph: "Any",
    bodies: "dict[str, Any]",
    written: "Callable[[str], Any]",
) -> None:
    for node in graph.node:
        if node.op in SENDS or node.op in RECEIVES:
            continue
        if node.op in NOT_WORK:
            before = written(_before_folding(node.name)).op if node.op == "Const" else ""
            if before and before not in NOT_WORK:
                placement.add_folded(before, label(node.device))
            continue
        placement.has_loop = placement.has_loop or node.op in LOOPS
        device = label(node.device)
        if node.attr["_XlaMustCompile"].b and node.attr["f"].func.name in bodies:
            placement.has_xla = True
            _add_body(placement, bodies[node.attr["f"].func.name], device, bodies)
            continue
        placement.add(plain(node.op), device)
        if device == "cpu":
            placement.see(why.sight_of_node(node, written(node.name).device))


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


def _as_written(graph: "Any", bodies: "dict[str, Any]") -> "Callable[[str], Any]":
    """The node that the program wrote, also if its function was inlined.

    The name of such a node begins with the name of the call.
    """
    known: "dict[str, Any]" = {}
    for body in bodies.values():
        known.update((node.name, Written(node.op, node.device)) for node in body.node_def)
    for node in graph.node:
        if node.device or node.name not in known:
            known[node.name] = Written(node.op, node.device)

    def written(name: str) -> "Any":
        while name:
            if name in known:
                return known[name]
            _, _, name = name.partition("/")
        return Written("", "")

    return written
