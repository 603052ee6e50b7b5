"""What the tracers share: counts of operations per device, and reasons for the CPU.

A tracer has start(module, settings), result() and after_fork(). result() may be called more than
once, and returns what is known by then.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_GPU = "no GPU visible"
NO_KERNEL = "no GPU kernel"
HOST_DTYPE = "host-only dtype"
EXPLICIT = "explicit device"
SOFT = "soft placement"
CPU_INPUTS = "CPU tensor inputs"
CPU_RESOURCE = "resource on the CPU"
HOST_RESULT = "host-memory operation"
HOST_CALLBACK = "host callback"
UNEXPLAINED = "framework's choice"

EVERYTHING = "*"
"""The op of a reason that holds for every operation."""


class Tally:
    """How often and how long each operation ran on each device."""

    def __init__(self) -> None:
        self._counts: "dict[Any, Any]" = {}
        self._seconds: "dict[Any, Any]" = {}

    def add(self, op: str, device: str, count: float, seconds: "float | None" = None) -> None:
        """There are seconds only if all runs of the operation on the device were timed."""
        key = (op, device)
        self._counts[key] = self._counts.get(key, 0) + count
        known = self._seconds.get(key, 0.0)
        self._seconds[key] = None if seconds is None or known is None else known + seconds

    def rows(self) -> "list[dict[str, Any]]":
        return [
            {
                "op": op,
                "device": device,
                "count": round(count),
                "seconds": None if seconds is None else round(seconds, 6),
            }
            for (op, device), count in sorted(self._counts.items())
            for seconds in [self._seconds[op, device]]
            if count
        ]


class Reasons:
    """Why operations ran on the CPU, each said once."""

    def __init__(self) -> None:
        self._found: "dict[Any, Any]" = {}

    def add(self, op: str, reason: str, detail: str) -> None:
        self._found.setdefault((op, reason), detail)

    def rows(self) -> "list[dict[str, Any]]":
        return [
            {"op": op, "reason": reason, "detail": detail}
            for (op, reason), detail in sorted(self._found.items())
        ]


class Transfers:
    """How often tensors moved between devices, and how many bytes."""

    def __init__(self) -> None:
        self._found: "dict[Any, list[Any]]" = {}

    def add(self, source: str, target: str, count: int, size: "int | None") -> None:
        """There are bytes only if the size of every tensor is known."""
        cell = self._found.setdefault((source, target), [0, 0])
        cell[0] += count
        cell[1] = None if size is None or cell[1] is None else cell[1] + size

    def rows(self) -> "list[dict[str, Any]]":
        return [
            {"source": source, "target": target, "count": count, "bytes": size}
            for (source, target), (count, size) in sorted(self._found.items())
        ]


def outcome(
    tally: "Tally",
    reasons: "Reasons",
    notes: "list[str]",
    folded: "dict[tuple[str, str], int] | None" = None,
    transfers: "Transfers | None" = None,
    nothing_because: str = "",
) -> "dict[str, Any]":
    """`folded` has the operations that were placed and became constants before they ran.

    `nothing_because` says why no operation was seen; empty if the tracer cannot tell.
    """
    operations = tally.rows()
    return {
        "ops": operations,
        "on_cpu_because": reasons.rows(),
        "notes": list(notes),
        "folded": [
            {"op": op, "device": device, "count": count}
            for (op, device), count in sorted((folded or {}).items())
        ],
        "transfers": transfers.rows() if transfers is not None else [],
        "nothing_because": [nothing_because] if nothing_because and not operations else [],
    }
