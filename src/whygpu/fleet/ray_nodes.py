"""Takes a snapshot on every node of a Ray cluster.

One task is pinned to each node. It requests no resources, so it runs beside whatever the node is
working on and keeps nothing from it. Results are read as they come; a node that dies or hangs
during the run is a row and does not end the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from whygpu.fleet.gathering import Gathered, NodeRequest, OnNode, distinct, save
from whygpu.fleet.ray_cluster import connected
from whygpu.host.processes import variables
from whygpu.model.fleet import NodeLoss
from whygpu.model.outside_text import excerpt, one_line

_GRACE = 20.0
"""Seconds beyond the limit of a node in which its own report about that limit can arrive."""
_TO_END = 5.0
"""Seconds for whygpu to end the processes that it has started."""
_LOOK = 2.0
"""Seconds between two looks at which nodes are alive."""


class RayNode(NamedTuple):
    id: str
    name: str


def gather(
    folder: str, request: NodeRequest, *, address: str = "auto", on_node: OnNode | None = None
) -> Gathered:
    """Run the request on each node that is alive now. Snapshots are saved in the folder."""
    with connected(address) as ray:
        return _gathered(ray, folder, request, on_node)


def _gathered(ray: Any, folder: str, request: NodeRequest, on_node: OnNode | None) -> Gathered:
    nodes = _alive(ray)
    pending = {_started(ray, node, request): node for node in nodes}
    files: dict[str, str] = {}
    lost: list[NodeLoss] = []
    deadline = time.monotonic() + request.limit + _GRACE
    while pending:
        ready, _ = ray.wait(list(pending), num_returns=1, timeout=_LOOK)
        for reference in ready:
            node = pending.pop(reference)
            _keep(_result(ray, reference, node), node, folder, files, lost)
        for reference, loss in _given_up(ray, pending, time.monotonic() > deadline, request):
            del pending[reference]
            ray.cancel(reference, force=True)
            lost.append(loss)
        if on_node is not None:
            on_node(len(nodes) - len(pending), len(nodes))
    return Gathered(files, tuple(lost))


def _alive(ray: Any) -> list[RayNode]:
    rows = [row for row in ray.nodes() if row.get("Alive")]
    names = distinct(list(map(_name, rows)), [str(row["NodeID"]) for row in rows])
    return [RayNode(str(row["NodeID"]), name) for row, name in zip(rows, names, strict=True)]


def _name(row: dict[str, Any]) -> str:
    """The name that `ray start --node-name` gave, or else that of the host."""
    given = row.get("NodeName")
    if given and given != row.get("NodeManagerAddress"):
        return str(given)
    return str(row.get("NodeManagerHostname") or given or "node")


def _started(ray: Any, node: RayNode, request: NodeRequest) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(snapshot_here).options(
        num_cpus=0,
        max_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
    )
    return task.remote(request)


def _result(ray: Any, reference: Any, node: RayNode) -> bytes | NodeLoss:
    errors = ray.exceptions
    try:
        answer = ray.get(reference, timeout=_GRACE)
    except errors.RayTaskError as error:
        return NodeLoss(node.name, "unreachable", f"its task failed: {_text(error.cause or error)}")
    except errors.GetTimeoutError:
        return NodeLoss(node.name, "died", "its answer could not be fetched")
    except errors.RayError as error:
        return NodeLoss(node.name, "died", f"{type(error).__name__}: {_text(error)}")
    if isinstance(answer, bytes):
        return answer
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] in ("hung", "unreachable"):
        return NodeLoss(node.name, answer[0], excerpt(one_line(str(answer[1]))))
    return NodeLoss(node.name, "unreadable", f"it sent a {type(answer).__name__}, not a snapshot")


def _text(error: object) -> str:
    return excerpt(one_line(str(error).strip().partition("\n")[0]))


def _keep(
    result: bytes | NodeLoss,
    node: RayNode,
    folder: str,
    files: dict[str, str],
    lost: list[NodeLoss],
) -> None:
    kept = save(folder, node.name, result) if isinstance(result, bytes) else result
    if isinstance(kept, NodeLoss):
        lost.append(kept)
    else:
        files[node.name] = kept


def _given_up(
    ray: Any, pending: dict[Any, RayNode], too_late: bool, request: NodeRequest
) -> Iterator[tuple[Any, NodeLoss]]:
    """Tasks that will not answer: Ray may take long to notice that a pinned task lost its node."""
    alive = {str(row["NodeID"]) for row in ray.nodes() if row.get("Alive")}
    for reference, node in list(pending.items()):
        if node.id not in alive:
            yield reference, NodeLoss(node.name, "died", "Ray lost the node during the run")
        elif too_late:
            why = f"no answer within {request.limit:g} s; the node is still in the cluster"
            yield reference, NodeLoss(node.name, "hung", why)


def snapshot_here(request: NodeRequest) -> bytes | tuple[str, str]:
    """Runs on the node: the snapshot, or why there is none. The types are Python's own, so that a
    node with another version of whygpu can send them."""
    command = [sys.executable, "-m", "whygpu", *request.words()]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment_of_node(),
        )
    except OSError as error:
        return "unreachable", f"whygpu could not be started there: {error}"
    with process:
        try:
            output, errors = process.communicate(timeout=request.limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return "hung", f"whygpu did not end within {request.limit:g} s there"
    if process.returncode != 0:
        why = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return "unreachable", f"whygpu ended with {process.returncode} there: {why}"
    return output


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let whygpu end the processes that it has started; kill it if it does not."""
    process.terminate()
    try:
        process.communicate(timeout=_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def environment_of_node() -> dict[str, str]:
    """The variables of the node, not those of a Ray worker.

    Ray sets CUDA_VISIBLE_DEVICES to nothing for a task without GPUs, which hides the GPUs from the
    check. The process that started the worker has the node's own variables.
    """
    pairs = variables(os.getppid())
    if not pairs:
        own = dict(os.environ)
        if not own.get("CUDA_VISIBLE_DEVICES", "x"):
            del own["CUDA_VISIBLE_DEVICES"]
        return own
    named = (os.fsdecode(pair).partition("=") for pair in pairs if b"=" in pair)
    return {name: value for name, _, value in named}
