"""How training processes meet at a network port, and logs that say that they could not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.tables.failures_elsewhere import ADDRESS_IN_USE

_MEETING = late(
    r"c10d|TCPStore|torch[./\\]distributed|init_process_group|MASTER_PORT|master[_-]port"
    r"|main_process_port|distributed communication|rendezvous|DistNetworkError|torchrun"
    r"|Could not start gRPC server|TF_CONFIG|coordination[_ ]service|coordinator_address"
    r"|deepspeed|horovod|ProcessGroup"
)
"""Words of programs whose processes meet: a web server that finds its port taken has none."""
_WEB_SERVER = late(
    r"while attempting to bind on address|[Tt]ensor[Bb]oard|[Uu]vicorn|[Gg]unicorn|https?://"
)
"""A web server that a training starts beside its work."""
_COULD_NOT_MEET = late(r"Could not start gRPC server")
_BY_NCCL = late(r"NCCL (?:error|WARN)|nccl[A-Z]\w{4,30}Error")
_PORT = late(
    # [::]:29500, 0.0.0.0:29500, but not the time 10:01:22
    r"(?:\]|\d(?:\.\d{1,3}){3}|localhost|\*):(?P<bound>\d{2,5})(?!\d|:\d)"
    r"|\b[A-Za-z][\w-]{0,60}\d:(?P<node>\d{4,5})(?!\d|:\d)"
    r"|\bport[: =`]{1,3}(?P<port>\d{2,5})\b"
    r"|\([\w.:-]{1,120}, (?P<pair>\d{2,5})\)"
)
_MOST_LINES = 4


class PortTaken(NamedTuple):
    port: str
    """Empty if the log does not name it."""
    lines: tuple[int, ...]


def port_taken(log: Log) -> PortTaken | None:
    """The processes could not meet, because another program uses the port."""
    said = [match for match in log.find(ADDRESS_IN_USE) if not _WEB_SERVER.search(match.text)]
    if not said or not log.says(_MEETING):
        return None
    ends = [failure for failure in log.failures if _ended_by_it(failure.text)]
    if log.failures and not ends:
        return None
    if not log.failures and any(line > said[-1].line for line in log.progress):
        # A warning about one address, after which another one was free.
        return None
    lines = [match.line for match in said[:_MOST_LINES]] + [failure.line for failure in ends]
    texts = [match.text for match in said] + [failure.text for failure in ends]
    return PortTaken(_port_in(texts), tuple(lines))


def _port_in(texts: Sequence[str]) -> str:
    found = (_PORT.search(text) for text in texts)
    return next((match[match.lastgroup or 0] for match in found if match is not None), "")


def _ended_by_it(text: str) -> bool:
    taken = ADDRESS_IN_USE.search(text) or _COULD_NOT_MEET.search(text)
    return taken is not None and not _BY_NCCL.search(text)


Obstacle = Literal["refused", "no-answer", "unknown-name", "others-missing"]
"""Nothing listens at the address, nobody answers there, the name has no address, or the store
works and other processes did not come."""

_OBSTACLES: tuple[tuple[Obstacle, re.Pattern[str]], ...] = (
    (
        "unknown-name",
        late(
            r"network addresses of \([^)\n]{1,160}\) cannot be retrieved"
            r"|client socket [^\n]{0,200}gai error"
        ),
    ),
    (
        "others-missing",
        late(
            r"waiting for clients\. \d{1,6}/\d{1,6} clients joined"
            r"|initializing process group in store based barrier"
            r"|RendezvousTimeoutError"
            # The service where the processes of JAX and TensorFlow meet.
            r"|DEADLINE_EXCEEDED: Barrier timed out"
        ),
    ),
    (
        "refused",
        late(
            r"client socket has failed to connect to [^\n]{1,200}refused"
            r"|connection to the C10d store has failed|TCPStore[^\n]{0,160}Connection refused"
        ),
    ),
    (
        "no-answer",
        late(
            r"client socket has (?:timed out|failed to connect)"
            r"|connect\(\) timed out\. Original timeout was"
            r"|TCP client failed to connect/validate to host"
            r"|DEADLINE_EXCEEDED[^\n]{0,120}RegisterTask"
        ),
    ),
)


class Unmet(NamedTuple):
    """The processes of a training did not meet."""

    obstacle: Obstacle
    port: str
    """Empty if the log does not name it."""
    lines: tuple[int, ...]


def unmet(log: Log) -> Unmet | None:
    """How this process failed to meet the others, if that ended it.

    A process that tries to connect before the first one listens warns and tries again. If another
    failure came first, the other processes only lost the one that failed.
    """
    said = [(kind, match) for kind, words in _OBSTACLES for match in log.find(words)]
    if not said or log.says(_BY_NCCL) or port_taken(log) is not None:
        return None
    ends = [
        failure for failure in log.failures if any(w.search(failure.text) for _, w in _OBSTACLES)
    ]
    if log.failures and log.failures[0] not in ends:
        return None
    if not log.failures and log.progress:
        return None
    kinds = {kind for kind, _ in said}
    texts = [match.text for _, match in said] + [failure.text for failure in ends]
    lines = sorted({match.line for _, match in said})
    return Unmet(
        next(kind for kind, _ in _OBSTACLES if kind in kinds),
        _port_in(texts),
        (*lines[:_MOST_LINES], *(failure.line for failure in ends)),
    )
