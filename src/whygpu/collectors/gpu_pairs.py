"""How the GPUs of a machine reach each other, as NVML or nvidia-smi tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from whygpu.host.base import Host
from whygpu.model.driver import GpuPair, PairPath, PeerAccess
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known, Observed, Unknown

T = TypeVar("T")

SOURCE = "NVML"
TOPOLOGY = ("nvidia-smi", "topo", "-m")
_MATRIX = "nvidia-smi topo -m"

_PATHS: dict[int, PairPath] = {
    0: "same-board",
    10: "one-switch",
    20: "several-switches",
    30: "host-bridge",
    40: "one-processor",
    50: "across-processors",
}
"""nvmlGpuTopologyLevel_t."""

_ACCESS: dict[int, PeerAccess] = {
    0: "yes",
    1: "chipset",
    2: "gpu",
    3: "topology",
    4: "switched-off",
    5: "not-supported",
    6: "unknown",
}
"""nvmlGpuP2PStatus_t."""

_WORDS: dict[str, PairPath] = {
    "PIX": "one-switch",
    "PXB": "several-switches",
    "PHB": "host-bridge",
    "NODE": "one-processor",
    "SYS": "across-processors",
}
"""The legend of nvidia-smi."""
_ESCAPES = late(r"\x1b\[[0-9;]{0,20}m")
_GPU = late(r"GPU(\d{1,3})")
_LINKS = late(r"NV(\d{1,3})")


def gpu_pairs(fact: dict[str, Any]) -> Observed[tuple[GpuPair, ...]]:
    """From the answer of the NVML worker."""
    if "error" in fact:
        return Unknown(f"NVML: {fact['text']}")
    return Known(
        tuple(
            GpuPair(
                first=pair["first"],
                second=pair["second"],
                path=_named(pair["path"], _PATHS),
                peer_access=_named(pair["peer_access"], _ACCESS),
                nvlinks=_links(pair["nvlinks"]),
            )
            for pair in fact["value"]
        ),
        SOURCE,
    )


def _named(fact: dict[str, Any], names: Mapping[int, T]) -> Observed[T]:
    if "error" in fact:
        return Unknown(f"NVML: {fact['text']}")
    if fact["value"] not in names:
        return Unknown(f"NVML answers with an unknown number: {fact['value']}")
    return Known(names[fact["value"]], SOURCE)


def _links(fact: dict[str, Any]) -> Observed[int]:
    """A GPU without NVLink refuses the question."""
    if "value" in fact:
        return Known(int(fact["value"]), SOURCE)
    return Known(0, SOURCE) if fact["error"] == 3 else Unknown(f"NVML: {fact['text']}")


def ask_nvidia_smi(host: Host, *, timeout: float) -> Observed[tuple[GpuPair, ...]]:
    """The same from the matrix of nvidia-smi, which says nothing about peer access."""
    answer = host.run(TOPOLOGY, timeout=timeout)
    if not isinstance(answer, Known):
        return Unknown("nvidia-smi could not be asked for the topology")
    if answer.value.timed_out or answer.value.code != 0:
        return Unknown("nvidia-smi does not show the topology")
    return read_matrix(answer.value.stdout)


def read_matrix(text: str) -> Observed[tuple[GpuPair, ...]]:
    lines = [_ESCAPES.sub("", line).split() for line in text.splitlines()]
    header = next((words for words in lines if words and words[0] == "GPU0"), None)
    if header is None:
        return Unknown("nvidia-smi shows the topology in an unknown form")
    columns = [int(match[1]) for word in header if (match := _GPU.fullmatch(word))]
    pairs = []
    for words in lines:
        row = _GPU.fullmatch(words[0]) if words else None
        if row is None or words is header:
            continue
        for other, word in zip(columns, words[1:], strict=False):
            if other > int(row[1]):
                pairs.append(_pair(int(row[1]), other, word))
    return Known(tuple(pairs), _MATRIX)


def _pair(first: int, second: int, word: str) -> GpuPair:
    links = _LINKS.fullmatch(word)
    unsaid = Unknown("the matrix of nvidia-smi does not show it")
    path: Observed[PairPath] = unsaid
    if word in _WORDS:
        path = Known(_WORDS[word], _MATRIX)
    elif links is None:
        path = Unknown(f"nvidia-smi shows an unknown kind of connection: {word[:20]}")
    # Through NVSwitches, nvidia-smi shows the links as if they led from GPU to GPU.
    count: Observed[int] = unsaid if links else Known(0, _MATRIX)
    return GpuPair(first, second, path, unsaid, count)
