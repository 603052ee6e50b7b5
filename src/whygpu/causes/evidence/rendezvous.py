"""How training processes meet at a network port, and logs that say that the port is taken."""

from __future__ import annotations

from typing import NamedTuple

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
    ports = (_PORT.search(text) for text in texts)
    port = next((p["bound"] or p["node"] or p["port"] for p in ports if p is not None), "")
    return PortTaken(port, tuple(lines))


def _ended_by_it(text: str) -> bool:
    taken = ADDRESS_IN_USE.search(text) or _COULD_NOT_MEET.search(text)
    return taken is not None and not _BY_NCCL.search(text)
