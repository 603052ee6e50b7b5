"""TensorFlow's own words about the memory of a GPU, from releases 1.15 and 2.21."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.shortage import AllocatorState, HopelessRequest
from whygpu.readers.allocator_state import Refusals, allocator_states

GIB = 1 << 30
CREATED = (
    "I0000 00:00:1794787924.470175 2553 gpu_device.cc:2043] Created device /job:localhost/replica:0"
    "/task:0/device:GPU:0 with 3072 MB memory:  -> device: 0, name: NVIDIA H200",
    "2020-01-01 00:00:00.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1304] Created "
    "TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 3072 MB memory) -> "
    "physical GPU (device: 0)",
)
REFUSED = (
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate 5.59GiB (rounded to 6000000000)"
)
TRIED = (
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate 5.59GiB with freed_by_count=0. The "
    "caller indicates that this is not a failure, but this may mean that there could be "
    "performance gains if more memory were available."
)
STATISTICS = ("Limit:      3221225472\nInUse:      1073741824", "Limit:  3.00GiB\nInUse:  1.00GiB")
HOPELESS = HopelessRequest(0, 6_000_000_000, 3 * GIB)


@each("created", CREATED)
def test_the_limit_of_a_new_device(created: str) -> None:
    assert allocator_states(created) == (AllocatorState(0, 3 * GIB, None),)


@each("statistics", STATISTICS)
def test_the_statistics_after_a_refusal(statistics: str) -> None:
    found = allocator_states(f"{REFUSED}requested by op A\n{statistics}\n{statistics}\n")
    assert found == (AllocatorState(0, 3 * GIB, GIB),)
    assert allocator_states(statistics) == ()


def test_a_request_above_a_known_limit_is_found_at_once() -> None:
    assert Refusals(3 * GIB).feed(f"{REFUSED}\n".encode()) == HOPELESS
    assert Refusals(7 * GIB).feed(f"{REFUSED}\n".encode()) is None
    assert Refusals(3 * GIB).feed(f"{TRIED}\n".encode()) is None


@each("text", [f"{CREATED[0]}\n{REFUSED}\n", *(f"{REFUSED}\n{each}\n" for each in STATISTICS)])
def test_the_limit_may_come_in_the_same_output_and_in_pieces(text: str) -> None:
    refusals = Refusals()
    found = [refusals.feed(text[index : index + 1].encode()) for index in range(len(text))]
    assert next(each for each in found if each is not None) == HOPELESS


def test_the_computers_memory_and_other_gpus_are_another_matter() -> None:
    host = REFUSED.replace("GPU_0_bfc", "gpu_host_bfc")
    assert Refusals(3 * GIB).feed(f"{host}\n".encode()) is None
    other = REFUSED.replace("GPU_0", "GPU_1")
    assert Refusals().feed(f"{CREATED[0]}\n{other}\n".encode()) is None
