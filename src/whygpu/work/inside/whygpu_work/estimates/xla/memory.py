"""The peak memory of an XLA program's temporary arrays on a GPU.

The kernels are put into an order that keeps few arrays alive at a time, as XLA does, and the arrays
are counted.
"""

import heapq

from . import fusion
from .fusion import WRITTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .hlo_graph import Graph, Node

IN_PLACE = ("scatter", "dynamic-update-slice")


class Peak(object):
    def __init__(self, size: int, live: "list[Node]") -> None:
        self.size = size
        self.live = live
        """The arrays that exist at the peak, as nodes of the graph."""


class _Kernel(object):
    __slots__ = ("inputs", "outputs", "replaced", "scratch")

    def __init__(self, outputs: "Any", inputs: "Any", scratch: int, replaced: "Any") -> None:
        self.outputs = outputs
        self.inputs = inputs
        self.scratch = scratch
        self.replaced = replaced
        """Inputs whose memory an output may reuse, if no later kernel reads them."""


def peak(graph: "Graph", workspace: "Callable[[Node], int] | None" = None) -> "Peak":
    """The peak of what a graph allocates in addition to its parameters and results.

    `workspace` returns the bytes of workspace for a node.
    """
    finished = fusion.epilogues(graph)
    written, sources = fusion.written(graph, finished)
    kernels = _kernels(graph, written, sources, _scratch(graph, finished, workspace))
    counted = _sizes(graph, kernels)
    orders = [kernels, _frugal_order(kernels, counted)]
    return min((_run(order, counted) for order in orders), key=lambda found: found.size)


def _kernels(
    graph: "Graph",
    written: "set[Node]",
    sources: "dict[Node, set[Node]]",
    scratch: "dict[Node, int]",
) -> "list[_Kernel]":
    parts: "dict[Node, list[Node]]" = {}
    for node in graph.nodes:
        if node.operation == "part" and node.aliases is None:
            parts.setdefault(node.inputs[0], []).append(node)
    beside = _beside(graph, written)
    kernels = []
    for node in graph.nodes:
        made = parts.get(node, [])
        if node not in written or node.operation in ("parameter", "part"):
            continue
        if node.operation == "transpose" and node.inputs[0] in beside:
            continue
        replaced = []
        if node.operation in IN_PLACE:
            replaced = node.inputs[:1]
        elif node.operation == "while":
            replaced = [node.inputs[part.key] for part in made]
        outputs = [node] + made + beside.get(node, [])
        kernels.append(_Kernel(outputs, sources[node], scratch.get(node, 0), replaced))
    return kernels


def _beside(graph: "Graph", written: "set[Node]") -> "dict[Node, list[Node]]":
    """Arrays that the same kernel also stores as a transposed copy."""
    own = WRITTEN + ("parameter", "part", "transpose")
    turned = {
        node: [
            user
            for user in graph.users_of(node)
            if user.operation == "transpose" and user in written
        ]
        for node in written
        if node.operation not in own
    }
    return {node: users for node, users in turned.items() if users}


def _scratch(
    graph: "Graph", finished: "dict[Node, Node]", workspace: "Callable[[Node], int] | None"
) -> "dict[Node, int]":
    """Bytes of workspace, by the node that is stored."""
    found: "dict[Node, int]" = {}
    for node in graph.nodes:
        size = max([peak(body, workspace).size for body in node.bodies] or [0])
        if node.operation == "sort":
            size = node.inputs[0].size
        if workspace is not None:
            size = max(size, workspace(node))
        if size:
            found[finished.get(node, node)] = size
    return found


def _sizes(graph: "Graph", kernels: "list[_Kernel]") -> "dict[Node, int]":
    """The bytes of each array; 0 for the results of the program, which are counted elsewhere."""
    roots = set(graph.roots)
    return {
        each: 0 if each in roots else each.size for kernel in kernels for each in kernel.outputs
    }


def _uses(kernels: "list[_Kernel]", counted: "dict[Node, int]") -> "dict[Node, int]":
    uses: "dict[Node, int]" = {}
    for kernel in kernels:
        for each in kernel.inputs:
            if each in counted:
                uses[each] = uses.get(each, 0) + 1
    return uses


def _run(kernels: "list[_Kernel]", counted: "dict[Node, int]") -> "Peak":
    """The peak when the kernels run in this order."""
    lives = _lives(kernels, counted)
    changes = [0] * (len(kernels) + 1)
    for life in lives.values():
        changes[life.first] += life.size
        changes[life.last + 1] -= life.size
    now, largest, at = 0, 0, 0
    for step, kernel in enumerate(kernels):
        now += changes[step]
        if now + kernel.scratch > largest:
            largest, at = now + kernel.scratch, step
    return Peak(largest, [node for node, life in lives.items() if life.first <= at <= life.last])


class _Life(object):
    __slots__ = ("first", "last", "size")

    def __init__(self, size: int, first: int, last: int) -> None:
        self.size, self.first, self.last = size, first, last


def _lives(kernels: "list[_Kernel]", counted: "dict[Node, int]") -> "dict[Node, _Life]":
    """The first and last step of each array; one that reuses memory extends the earlier one."""
    uses = _uses(kernels, counted)
    lives: "dict[Node, _Life]" = {}
    for step, kernel in enumerate(kernels):
        inputs = [each for each in kernel.inputs if each in counted]
        for each in inputs:
            uses[each] -= 1
            lives[each].last = max(step, lives[each].last)
        handed_on = [each for each in kernel.replaced if each in inputs and not uses[each]]
        for each in kernel.outputs:
            same = [other for other in handed_on if counted[other] == counted[each]]
            if same:
                handed_on.remove(same[0])
                lives[each] = lives.pop(same[0])
                lives[each].last = step
            else:
                lives[each] = _Life(counted[each], step, step)
    return lives


def _frugal_order(kernels: "list[_Kernel]", counted: "dict[Node, int]") -> "list[_Kernel]":
    """At each step, run the ready kernel that frees the most memory, net of what it allocates."""
    position = {kernel: at for at, kernel in enumerate(kernels)}
    maker = {each: kernel for kernel in kernels for each in kernel.outputs}
    needs = {
        kernel: [each for each in kernel.inputs if each in counted and maker[each] is not kernel]
        for kernel in kernels
    }
    readers: "dict[Node, list[_Kernel]]" = {}
    uses: "dict[Node, int]" = {}
    for kernel in kernels:
        for each in needs[kernel]:
            readers.setdefault(each, []).append(kernel)
            uses[each] = uses.get(each, 0) + 1
    missing = {kernel: len(needs[kernel]) for kernel in kernels}
    balance: "dict[_Kernel, int]" = {}
    ready: "list[tuple[int, int, _Kernel]]" = []
    order: "list[_Kernel]" = []
    done: "set[_Kernel]" = set()

    def offer(kernel: "_Kernel") -> None:
        freed = sum(counted[each] for each in needs[kernel] if uses[each] == 1)
        taken = sum(counted[each] for each in kernel.outputs)
        if balance.get(kernel) != taken - freed:
            balance[kernel] = taken - freed
            heapq.heappush(ready, (taken - freed, position[kernel], kernel))

    for kernel in kernels:
        if not missing[kernel]:
            offer(kernel)
    while ready:
        cost, _, kernel = heapq.heappop(ready)
        if kernel in done or balance[kernel] != cost:
            continue
        done.add(kernel)
        order.append(kernel)
        changed = []
        for each in needs[kernel]:
            uses[each] -= 1
            if uses[each] == 1:
                changed += [reader for reader in readers[each] if not missing[reader]]
        for each in kernel.outputs:
            for reader in readers.get(each, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    changed.append(reader)
        for each in changed:
            if each not in done:
                offer(each)
    return order
