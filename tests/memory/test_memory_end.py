"""How memory ended a run, from what the program, the kernel and the driver have left behind."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from tests.kit import machine
from whygpu import api
from whygpu.memory.memory_end import Run, memory_end, part_of
from whygpu.model.driver import Gpu
from whygpu.model.memory_use import (
    Allocator,
    Curve,
    HostMemory,
    Kept,
    MemoryEnd,
    Point,
    ProcessLimit,
    ProcessMemory,
    Rounds,
)
from whygpu.model.observed import Known
from whygpu.model.policy import DevicePolicy, FrameworkUse, MemoryLimit, ProcessRecord

GIB = 1 << 30
MIB = 1 << 20
LOGS = pathlib.Path(__file__).parent.parent / "logs"


def log(name: str) -> str:
    return (LOGS / f"h200-{name}.log").read_text()


def host(*sizes: int, limit: int = 16 * GIB, kills: int | None = 0) -> HostMemory:
    points = tuple(Point(float(second), size, size) for second, size in enumerate(sizes))
    return HostMemory(
        curve=Curve("kernel", "host", 1000.0, points),
        limit=limit,
        limit_is="the computer's memory",
        limit_kind="computer",
        least_available=3 * GIB,
        kills=kills,
    )


def record(memory: ProcessMemory, name: str = "torch", device: str = "gpu:0") -> ProcessRecord:
    use = FrameworkUse(name, "1.0", (device,), None)
    return ProcessRecord(7, True, (use,), (), {}, 1000.0, 2000.0, memory)


def gpus(**facts: Any) -> tuple[Gpu, ...]:
    found = machine("").driver.gpus
    assert isinstance(found, Known)
    return tuple(gpu._replace(**facts) for gpu in found.value[:1])


def end_of(text: str = "", *records: ProcessRecord, **more: Any) -> MemoryEnd:
    run = Run(text, records, more.pop("host", host(GIB)), more.pop("policy", DevicePolicy()))
    found = memory_end(run._replace(**more))
    assert found is not None
    return found


def rising(low: int, high: int, of: str = "torch") -> Curve:
    points = tuple(
        Point(n / 10, low + (high - low) * n // 60, low + (high - low) * n // 60) for n in range(61)
    )
    return Curve(of, "gpu:0", 1000.0, points)


LEAK = log("torch-leak")
LEAKING = ProcessMemory(
    error=LEAK.splitlines()[-1],
    curves=(rising(2 * GIB, 138 * GIB),),
    allocators=(
        Allocator(
            "torch",
            "gpu:0",
            live=139 * GIB,
            peak=139 * GIB,
            reserved=139 * GIB + 2 * MIB,
            total=int(139.8 * GIB),
            free=37 * MIB,
            pieces=140,
            pieces_ever=600,
        ),
    ),
    rounds=(Rounds("train.py:5", 68),),
    kept=(Kept("total", 68, None, "torch"),),
)


def test_a_leak_on_a_gpu_has_its_numbers() -> None:
    found = end_of(LEAK, record(LEAKING))
    assert (found.place, found.device, found.of) == ("gpu", "gpu:0", "torch")
    assert (found.asked, found.free) == (GIB, int(37.12 * MIB))
    assert (found.limit, found.limit_is) == (int(139.8 * GIB), "the GPU")
    assert found.held == int(139.09 * GIB)
    assert found.others == 0
    assert found.reason == "leak"


def test_the_log_alone_has_its_numbers_too() -> None:
    """The program caught the exception and went, or was no Python process that we saw."""
    found = end_of(log("torch-oom-beside"), progress=0)
    assert (found.asked, found.free) == (2 * GIB, int(691.56 * MIB))
    assert (found.place, found.device) == ("gpu", "gpu:0")


def test_what_was_watched_refutes_what_the_last_words_suggest() -> None:
    """They say that the GPU is full, of this process, and nothing of how it came to that."""
    last_words = LEAK.splitlines()[-1]
    alone = api.explain(last_words)
    assert alone.root_causes[0].cause == "oom-model-too-big"
    found = api.explain(last_words, memory=end_of(last_words, record(LEAKING)))
    assert [root.cause for root in found.root_causes] == ["oom-leak-or-fragmentation"]
    assert "rose from" in found.headline
    assert found.root_causes[0].ask is None


def test_what_was_watched_confirms_that_it_is_too_big() -> None:
    text = log("torch-oom-training")
    memory = ProcessMemory(error=text.splitlines()[-1], steps=0, rounds=(Rounds("train.py:9", 0),))
    found = api.explain(text, memory=end_of(text, record(memory)))
    assert [root.cause for root in found.root_causes] == ["oom-model-too-big"]
    assert "first round" in found.headline


def test_where_watching_cannot_tell_a_full_gpu_is_no_proof() -> None:
    last_words = LEAK.splitlines()[-1]
    assert api.explain(last_words).root_causes[0].confidence == "certain"
    unknown = end_of(last_words, record(ProcessMemory(error=last_words)))
    assert unknown.reason == "unknown"
    found = api.explain(last_words, memory=unknown)
    assert [(root.cause, root.confidence) for root in found.root_causes] == [
        ("oom-model-too-big", "likely"),
        ("oom-leak-or-fragmentation", "possible"),
    ]


JAX_ON_CPU = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9000 bytes."


def test_xla_has_the_same_words_for_the_computers_memory() -> None:
    memory = ProcessMemory(error=JAX_ON_CPU, in_loop=False)
    found = end_of(JAX_ON_CPU, record(memory, "jax", "cpu"))
    assert (found.place, found.device, found.reason) == ("host", "host", "too-big")
    explained = api.explain(JAX_ON_CPU, memory=found)
    assert explained.root_causes[0].cause == "host-oom"


def jax_run(held: int, others: int, limit: int = 100 * GIB) -> MemoryEnd:
    text = log("jax-oom-beside")
    allocator = Allocator("jax", "gpu:0", live=held, limit=limit)
    gpu = gpus(memory_total_bytes=Known(140 * GIB, "NVML"), memory_used_bytes=Known(others, "NVML"))
    memory = ProcessMemory(error=text.splitlines()[-3], allocators=(allocator,))
    return end_of(text, record(memory, "jax"), gpus=gpu)


def test_what_others_hold_is_asked_of_the_driver_afterwards() -> None:
    found = jax_run(held=GIB, others=125 * GIB)
    assert (found.others, found.reason) == (125 * GIB, "other-process")
    assert found.free == 14 * GIB


def test_others_are_not_to_blame_where_the_limit_is_the_programs_own() -> None:
    found = jax_run(held=10 * GIB, others=47 * GIB, limit=10 * GIB)
    assert found.others == 47 * GIB
    assert found.reason != "other-process"


def test_a_framework_takes_a_share_and_a_policy_another() -> None:
    assert jax_run(held=GIB, others=0).limit_is == "its framework's share of the GPU"
    text = log("torch-oom-limit")
    policy = DevicePolicy(memory=MemoryLimit("bytes", 40 * GIB))
    allocator = Allocator("torch", "gpu:0", live=40 * GIB, total=int(139.8 * GIB), limit=40 * GIB)
    memory = ProcessMemory(error=text.splitlines()[-1], allocators=(allocator,))
    found = end_of(text, record(memory), policy=policy)
    assert (found.limit, found.limit_is) == (40 * GIB, "--memory")


TENSORFLOW_ON_GPU = (
    "ResourceExhaustedError: Out of memory while trying to allocate 2029420544 bytes. "
    "[[{{node GPU:0}}]]"
)


def tensorflow_run(policy: DevicePolicy, limit: int | None) -> MemoryEnd:
    """TensorFlow tells what is in use, and the limit only where a logical device has one."""
    allocator = Allocator("tensorflow", "gpu:0", live=2 * GIB, limit=limit)
    gpu = gpus(memory_total_bytes=Known(140 * GIB, "NVML"), memory_used_bytes=Known(0, "NVML"))
    memory = ProcessMemory(error=TENSORFLOW_ON_GPU, allocators=(allocator,))
    return end_of(TENSORFLOW_ON_GPU, record(memory, "tensorflow"), gpus=gpu, policy=policy)


@pytest.mark.parametrize("reported", [3 * GIB, None], ids=["by TensorFlow", "by the policy alone"])
def test_the_limit_of_a_policy_is_in_force_with_tensorflow(reported: int | None) -> None:
    found = tensorflow_run(DevicePolicy(memory=MemoryLimit("bytes", 3 * GIB)), reported)
    assert (found.limit, found.limit_is, found.free) == (3 * GIB, "--memory", GIB)


def test_nobody_else_is_blamed_for_what_a_limit_keeps_from_the_program() -> None:
    log = (
        "I0000 00:00:1794787924.470175    2553 gpu_device.cc:2043] Created device "
        "/job:localhost/replica:0/task:0/device:GPU:0 with 3072 MB memory:  -> device: 0, name: "
        "NVIDIA H200, pci bus id: 0000:00:06.0, compute capability: 9.0a\n"
        "W0000 00:00:1794787925.470175    2553 bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out "
        "of memory trying to allocate 512.00MiB (rounded to 536870912)requested by op AddV2\n"
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: failed to allocate memory "
        "[Op:AddV2] name:\n"
    )
    memory = ProcessMemory(
        error=log.splitlines()[-1],
        allocators=(Allocator("tensorflow", "gpu:0", live=5 * GIB // 2, limit=3 * GIB),),
    )
    gpu = gpus(memory_total_bytes=Known(140 * GIB, "NVML"), memory_used_bytes=Known(0, "NVML"))
    policy = DevicePolicy(memory=MemoryLimit("bytes", 3 * GIB))
    end = end_of(log, record(memory, "tensorflow"), gpus=gpu, policy=policy)
    found = api.explain(log, memory=end)
    assert found.root_causes[0].cause == "oom-model-too-big"
    assert "others hold" not in found.headline


REFUSED_1_15 = """\
2026-11-16 09:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:419] Allocator \
(GPU_0_bfc) ran out of memory trying to allocate 1.89GiB (rounded to 2029420544).  Current \
allocation summary follows.
2026-11-16 09:00:00.000001: I tensorflow/core/common_runtime/bfc_allocator.cc:921] Sum Total of \
in-use chunks: 2.00GiB
2026-11-16 09:00:00.000002: I tensorflow/core/common_runtime/bfc_allocator.cc:923] \
total_region_allocated_bytes_: 3221225472 memory_limit_: 3221225472 available bytes: 0 \
curr_region_allocation_bytes_: 6442450944
2026-11-16 09:00:00.000003: I tensorflow/core/common_runtime/bfc_allocator.cc:929] Stats:
Limit:                  3221225472
InUse:                  2147483648
MaxInUse:               3000000000
NumAllocs:                      32
MaxAllocSize:           1000000000

"""
REFUSED_2_21 = """\
W0000 00:00:1794759536.102185   19845 bfc_allocator.cc:502] Allocator (GPU_0_bfc) ran out of \
memory trying to allocate 1.89GiB (rounded to 2029420544)requested by op Conv2D
Current allocation summary follows.
I0000 00:00:1794759536.102373   19845 bfc_allocator.cc:1119] Total size in pool: 3.00GiB \
memory_limit_: 3.00GiB available size: 0B curr_region_allocation_bytes_: 6.00GiB
I0000 00:00:1794759536.102375   19845 bfc_allocator.cc:1128] Stats:
Limit:                         3.00GiB
InUse:                         2.00GiB
MaxInUse:                      2.80GiB
NumAllocs:                           6

"""


@pytest.mark.parametrize("refusal", [REFUSED_1_15, REFUSED_2_21], ids=["1.15", "2.21"])
@pytest.mark.parametrize("limit", [None, MemoryLimit("bytes", 3 * GIB)])
def test_tensorflows_own_statistics_are_the_numbers(
    refusal: str, limit: MemoryLimit | None
) -> None:
    """After the exception, little is in use any more, and the allocator's limit may be unknown."""
    memory = ProcessMemory(
        error=TENSORFLOW_ON_GPU, allocators=(Allocator("tensorflow", "gpu:0", live=MIB),)
    )
    gpu = gpus(memory_total_bytes=Known(140 * GIB, "NVML"), memory_used_bytes=Known(0, "NVML"))
    text = refusal + TENSORFLOW_ON_GPU
    policy = DevicePolicy(memory=limit)
    found = end_of(text, record(memory, "tensorflow"), gpus=gpu, policy=policy)
    assert (found.limit, found.held, found.free) == (3 * GIB, 2 * GIB, GIB)
    assert found.limit_kind == ("framework-share" if limit is None else "policy")


def test_the_limit_of_a_new_device_is_in_the_log() -> None:
    created = (
        "I0000 00:00:1794787924.470175    2553 gpu_device.cc:2043] Created device "
        "/job:localhost/replica:0/task:0/device:GPU:0 with 3072 MB memory:  -> device: 0\n"
    )
    gpu = gpus(memory_total_bytes=Known(140 * GIB, "NVML"), memory_used_bytes=Known(0, "NVML"))
    memory = ProcessMemory(error=TENSORFLOW_ON_GPU)
    found = end_of(created + TENSORFLOW_ON_GPU, record(memory, "tensorflow"), gpus=gpu)
    assert (found.limit, found.limit_kind, found.free) == (3 * GIB, "framework-share", None)


def test_what_is_left_after_the_exception_is_not_what_was_in_use() -> None:
    memory = ProcessMemory(
        error=TENSORFLOW_ON_GPU, allocators=(Allocator("tensorflow", "gpu:0", live=MIB),)
    )
    policy = DevicePolicy(memory=MemoryLimit("bytes", 3 * GIB))
    gpu = gpus(memory_total_bytes=Known(140 * GIB, "NVML"), memory_used_bytes=Known(0, "NVML"))
    found = end_of(TENSORFLOW_ON_GPU, record(memory, "tensorflow"), gpus=gpu, policy=policy)
    assert (found.limit, found.held, found.free) == (3 * GIB, None, None)


def test_a_limit_that_was_not_in_force_is_none() -> None:
    memory = ProcessMemory(error=TENSORFLOW_ON_GPU)
    policy = DevicePolicy(memory=MemoryLimit("bytes", 3 * GIB))
    gpu = gpus(memory_total_bytes=Known(140 * GIB, "NVML"), memory_used_bytes=Known(0, "NVML"))
    found = end_of(
        TENSORFLOW_ON_GPU,
        record(memory, "tensorflow"),
        gpus=gpu,
        policy=policy,
        limit_overruled=True,
    )
    assert (found.limit, found.limit_kind) == (140 * GIB, "gpu")


def test_a_limit_that_the_program_set_itself_outranks_the_policy() -> None:
    found = tensorflow_run(DevicePolicy(memory=MemoryLimit("bytes", 30 * GIB)), 5 * GIB)
    assert (found.limit, found.limit_is) == (5 * GIB, "its framework's share of the GPU")


def test_a_part_of_the_gpu_is_a_limit_too() -> None:
    found = tensorflow_run(DevicePolicy(memory=MemoryLimit("fraction", 0.5)), None)
    assert (found.limit, found.limit_is) == (70 * GIB, "--memory")


def test_the_kernel_has_killed_it() -> None:
    found = end_of("Killed\n", host=host(GIB, 12 * GIB, kills=1))
    assert (found.place, found.asked, found.held) == ("host", None, 12 * GIB)
    explained = api.explain("Killed\n", memory=found)
    assert explained.root_causes[0].confidence == "certain"
    assert "the kernel ended" in explained.headline


@pytest.mark.parametrize("kills", [0, None])
def test_a_kill_that_the_kernel_does_not_own_up_to_is_not_one_of_its(kills: int | None) -> None:
    assert memory_end(Run("Killed\n", (), host(GIB, kills=kills), DevicePolicy())) is None


def test_a_limit_of_the_process_outranks_the_computers() -> None:
    memory = ProcessMemory(
        error="MemoryError: ",
        limit=ProcessLimit("RLIMIT_AS", 2 * GIB, 2 * GIB - MIB),
        in_loop=False,
    )
    found = end_of("MemoryError", record(memory, device="cpu"))
    assert (found.limit, found.free) == (2 * GIB, MIB)
    assert found.limit_is == "RLIMIT_AS of the process"


def test_shared_memory_has_its_size() -> None:
    text = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible "
    text += "that dataloader's workers are out of shared memory."
    found = end_of(text, shared_total=64 * MIB)
    assert (found.place, found.limit, found.limit_is) == ("shared-memory", 64 * MIB, "/dev/shm")


def test_another_failure_is_none_of_memorys() -> None:
    run = Run(log("torch-mixed-devices"), (), host(GIB), DevicePolicy())
    assert memory_end(run) is None


def test_what_would_fit_is_bounded_by_what_was_not_enough() -> None:
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 10.00 GiB. GPU 0 has a "
        "total capacity of 20.00 GiB of which 5.00 GiB is free. Of the allocated memory 15.00 GiB "
        "is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated."
    )
    memory = ProcessMemory(error=text, rounds=(Rounds("a.py:1", 0),), batch=100)
    found = end_of(text, record(memory))
    # 15 GiB in use and 10 more asked for are at least what 100 need; there are 20.
    assert (found.reason, found.batch, found.fits_below) == ("too-big", 100, 80)


def test_a_process_that_could_not_tell_had_its_limit_all_the_same() -> None:
    """TensorFlow aborts where it cannot have a little memory; its limits were seen from outside."""
    watched = host(GIB)._replace(process_limit=ProcessLimit("RLIMIT_DATA", 2 * GIB, GIB))
    found = end_of("  what():  std::bad_alloc\n", host=watched)
    assert (found.limit, found.limit_is) == (2 * GIB, "RLIMIT_DATA of the process")


def test_a_curve_is_judged_by_the_work_between_imports_and_the_end() -> None:
    curve = host(1, 2, 3, 4, 5).curve
    assert part_of(curve, 1002.0, 1003.5).points == (Point(0.0, 3, 3), Point(1.0, 4, 4))
    assert part_of(curve, None, None) == curve
