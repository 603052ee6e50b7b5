"""How GPUs reach each other, from NVML and from the matrix of nvidia-smi."""

from __future__ import annotations

from typing import Any

import pytest

from tests.collectors.nvml_answers import NOT_SUPPORTED, value
from whygpu.collectors.gpu_pairs import gpu_pairs, read_matrix
from whygpu.collectors.nvml_worker import Nvml
from whygpu.model.driver import GpuPair
from whygpu.model.observed import Known, Unknown


def pairs_of(observed: Any) -> dict[tuple[int, int], GpuPair]:
    assert isinstance(observed, Known), observed
    return {(pair.first, pair.second): pair for pair in observed.value}


def plain(pair: GpuPair) -> tuple[Any, ...]:
    facts = (pair.path, pair.peer_access, pair.nvlinks)
    return tuple(fact.value if isinstance(fact, Known) else None for fact in facts)


def test_the_answer_of_nvml() -> None:
    found = pairs_of(
        gpu_pairs(
            value(
                [
                    {
                        "first": 0,
                        "second": 1,
                        "path": value(30),
                        "peer_access": value(0),
                        "nvlinks": value(4),
                    },
                    {
                        "first": 0,
                        "second": 2,
                        "path": value(99),
                        "peer_access": value(5),
                        "nvlinks": NOT_SUPPORTED,
                    },
                ]
            )
        )
    )
    assert plain(found[0, 1]) == ("host-bridge", "yes", 4)
    assert plain(found[0, 2]) == (None, "not-supported", 0)
    assert gpu_pairs({"error": 999, "text": "Unknown Error"}) == Unknown("NVML: Unknown Error")


class Bindings:
    """Four GPUs: 0 and 1 have a bridge of two links, of which GPU 0 has lost one; 3 has none."""

    import pynvml

    NVMLError = pynvml.NVMLError
    NVMLError_InvalidArgument = pynvml.NVMLError_InvalidArgument
    NVMLError_NotSupported = pynvml.NVMLError_NotSupported
    NVML_FEATURE_ENABLED = 1
    NVML_P2P_CAPS_INDEX_READ = (0,)
    """As the bindings have it."""
    links = {0: [1, 0], 1: [1, 1], 2: [0, 0]}
    remotes = {0: "B1", 1: "B0"}

    class _Info:
        def __init__(self, bus: str) -> None:
            self.busId = bus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:  # noqa: N802
        return self._Info(f"B{handle}")

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:  # noqa: N802
        if handle not in self.links:
            raise self.NVMLError_NotSupported
        if link >= len(self.links[handle]):
            raise self.NVMLError_InvalidArgument
        return self.links[handle][link]

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: int, link: int) -> Any:  # noqa: N802
        return self._Info(self.remotes[handle])

    def nvmlDeviceGetTopologyCommonAncestor(self, one: int, other: int) -> int:  # noqa: N802
        return 10 if (one, other) == (0, 1) else 50

    def nvmlDeviceGetP2PStatus(self, one: int, other: int, kind: int) -> int:  # noqa: N802
        assert kind == 0
        return 0 if (one, other) == (0, 1) else 3


def test_the_worker_asks_about_each_pair() -> None:
    worker = Nvml(Bindings())
    assert worker.links(0) == [True, False]
    found = pairs_of(gpu_pairs(worker.attempt(lambda: worker.pairs([0, 1, 2, 3]))))
    assert plain(found[0, 1]) == ("one-switch", "yes", 1)
    assert plain(found[0, 2]) == ("across-processors", "topology", 0)
    assert plain(found[2, 3]) == ("across-processors", "topology", 0)
    assert len(found) == 6


def test_a_gpu_that_is_lost_leaves_the_pairs_unknown() -> None:
    worker = Nvml(Bindings())

    def lost(index: int) -> int:
        raise Bindings.NVMLError(15)

    worker._nvml.nvmlDeviceGetHandleByIndex = lost
    assert isinstance(gpu_pairs(worker.attempt(lambda: worker.pairs([0, 1]))), Unknown)


MATRIX = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV12\tSYS\tPIX\t0-31\t0\t\tN/A
GPU1\tNV12\t X \tNODE\tSYS\t0-31\t0\t\tN/A
GPU2\tSYS\tNODE\t X \tSYS\t32-63\t1\t\tN/A
NIC0\tPIX\tSYS\tSYS\t X

Legend:

  X    = Self
  SYS  = Connection traversing PCIe
"""


def test_the_matrix_of_nvidia_smi() -> None:
    found = pairs_of(read_matrix(MATRIX))
    assert plain(found[0, 1]) == (None, None, None)
    assert plain(found[0, 2]) == ("across-processors", None, 0)
    assert plain(found[1, 2]) == ("one-processor", None, 0)
    assert len(found) == 3


@pytest.mark.parametrize("text", ["", "no devices", "GPU\nGPU0x\n"])
def test_another_text_is_not_taken_for_a_matrix(text: str) -> None:
    assert isinstance(read_matrix(text), Unknown)


def test_a_hostile_matrix_is_read_without_harm() -> None:
    odd = read_matrix("GPU0 GPU1\nGPU0 X WEIRD\nGPU1\nGPU7 SYS SYS SYS SYS\n")
    assert [plain(pair) for pair in pairs_of(odd).values()] == [(None, None, 0)]
