"""Gains of changes that concern a GPU, from what it does in a step."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.profile import Category, Gain
from whygpu.profiling.device_costs import DeviceCosts
from whygpu.profiling.step_costs import SMALLEST_SHARE, StepCosts

IMPERFECT = 0.25
"""Of what a change saves, this much may remain."""
FEW_CALLS = 3
"""Executions of compiled functions in a step of JAX: then most of the step is one function."""


def from_waits(costs: StepCosts) -> Iterator[Gain]:
    """Without waits, the program launches ahead: the longer of the two sides is the step."""
    device = costs.device
    if device is None or not costs.matters(costs.seconds("synchronisation")):
        return
    low = max(device.busy, costs.step - device.waited)
    yield Gain(
        *(_FEWER_WAITS_OF_KERAS if device.family == "keras" else _FEWER_WAITS),
        costs.step,
        low,
        low + IMPERFECT * (costs.step - low),
    )


_FEWER_WAITS = (
    "do not wait for the GPU in each step: read results once in a hundred steps",
    "the program does not need them before its next step",
)
_FEWER_WAITS_OF_KERAS = (
    "steps_per_execution=10 in compile(), so that Keras waits for the GPU once in ten batches",
    "callbacks do not need the results of each batch",
)


def from_launches(costs: StepCosts) -> Iterator[Gain]:
    device = costs.device
    launching = costs.seconds("launches")
    if device is None or not costs.matters(launching):
        return
    # The GPU was idle in time of unknown kind as well: mostly between two launches.
    low = max(costs.step - launching - costs.seconds("unknown"), device.busy)
    yield Gain(
        _fewer_launches(device),
        f"the {device.kernels:,.0f} kernels of a step ({device.kernel_seconds * 1e6:.0f} "
        "microseconds each) are then launched together",
        costs.step,
        low,
        low + IMPERFECT * launching,
    )


def _fewer_launches(device: DeviceCosts) -> str:
    if device.family == "jax" and device.calls <= FEW_CALLS:
        return "several steps in each call, with jax.lax.scan"
    if device.family == "keras" and device.backend == "torch":
        return "jit_compile=True in compile()"
    return _FEWER_LAUNCHES[device.family]


_FEWER_LAUNCHES = {
    "torch": 'torch.compile(mode="reduce-overhead"), or a CUDA graph',
    "jax": "put the whole step into one function under jax.jit",
    "tensorflow": "put the whole step into one tf.function(jit_compile=True)",
    "session": "fetch everything of a step in one run of the session",
    "keras": "steps_per_execution=10 in compile(), without run_eagerly=True",
}


def from_copies(costs: StepCosts) -> Iterator[Gain]:
    device = costs.device
    copies = costs.seconds("copies")
    if device is None or not costs.matters(copies):
        return
    if device.family == "torch" or device.backend == "torch":
        yield from _from_pinning(costs, device, copies)
        return
    # The next batch is copied while the step computes.
    saved = min(copies, device.computing)
    yield Gain(
        _COPY_AHEAD.get(device.family, _COPY_AHEAD["tensorflow"]),
        "the next batch is there before the step ends",
        costs.step,
        costs.step - saved,
        costs.step - (1 - IMPERFECT) * saved,
    )


_COPY_AHEAD = {
    "jax": "jax.device_put the next batch before the result of the step is needed",
    "tensorflow": "tf.data.experimental.prefetch_to_device as the last stage of the pipeline",
}


def _from_pinning(costs: StepCosts, device: DeviceCosts, copies: float) -> Iterator[Gain]:
    """From pinned memory, the bus is the limit, and the program does not wait for the copy."""
    # The rest of the time, the program converts data, for which it does not matter.
    copies = min(copies, device.pageable_seconds)
    if not device.bus_rate or not costs.matters(copies):
        return
    moving = device.pageable_bytes / device.bus_rate
    # The program no longer waits for the copy, and launches the step meanwhile.
    low = max(device.computing + moving, costs.step - copies)
    yield Gain(
        'pin_memory=True in the DataLoader (or .pin_memory()), and .to("cuda", non_blocking=True)',
        f"the bus moves {device.bus_rate / 1e9:.0f} GB a second, and the memory can be pinned "
        "outside of the step",
        costs.step,
        low,
        max(low, costs.step - copies + moving) + IMPERFECT * moving,
    )


def from_cpu_operations(costs: StepCosts) -> Iterator[Gain]:
    seconds = costs.seconds("cpu-operations")
    if costs.device is not None and seconds >= 2 * SMALLEST_SHARE * costs.step:
        # Their data need not be copied, converted and waited for either, and the program launches
        # the rest of the step while the GPU computes.
        around = sum(costs.seconds(name) for name in _AROUND_OPERATIONS)
        yield Gain(
            "run these operations on the GPU",
            "how long they take there is not known",
            costs.step,
            max(costs.step - seconds - around, costs.device.computing),
            costs.step,
            at_most=True,
        )


_AROUND_OPERATIONS: tuple[Category, ...] = ("copies", "synchronisation", "program", "launches")


def from_precision(costs: StepCosts) -> Iterator[Gain]:
    device = costs.device
    if device is None or not costs.matters(device.float32_products):
        return
    if device.float32_products < 0.25 * costs.step:
        return
    # Kernels that run at the same time do not add up.
    products = device.float32_products / device.kernel_total * min(device.computing, costs.step)
    yield Gain(
        _LOWER_PRECISION.get(device.family, _LOWER_PRECISION["torch"]),
        "products of matrices may be rounded to 10 bits; how much that gives depends on the GPU",
        costs.step,
        costs.step - products * (1 - 1 / _TIMES_FASTER.get(device.family, TF32_FASTER)),
        costs.step,
        at_most=True,
    )


TF32_FASTER = 8
"""Times: products in TF32 beside float32, at most, by NVIDIA's data sheets (TFLOP a second: 156 and
19.5 of an A100, 494 and 67 of an H100)."""
_TIMES_FASTER = {"keras": 2 * TF32_FASTER}
"""What is offered there is bfloat16, which is twice as fast as TF32."""
_LOWER_PRECISION = {
    "torch": 'torch.set_float32_matmul_precision("high"), which allows TF32',
    "jax": 'jax.config.update("jax_default_matmul_precision", "tensorfloat32")',
    "keras": 'keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    "tensorflow": "tf.config.experimental.enable_tensor_float_32_execution(True)",
}


def from_others(costs: StepCosts) -> Iterator[Gain]:
    device = costs.device
    if device is None or not device.is_hindered:
        return
    # Kernels that run at the same time do not add up.
    share = device.unhindered / device.kernel_total
    low = max(costs.step - (1 - share) * device.computing, 1e-9)
    yield Gain(
        "run it while no other process computes on this GPU",
        "its kernels always take as long as the fastest tenth of them did",
        costs.step,
        low,
        low + IMPERFECT * (costs.step - low),
    )


WAITING = (from_waits, from_launches, from_copies, from_cpu_operations)
"""What the GPU waits for."""
COMPUTING = (from_precision, from_others)
"""What would make it compute faster."""
