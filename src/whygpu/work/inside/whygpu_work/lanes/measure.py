"""The speed and the memory of one lane's work."""

import sys

from .. import gauges
from . import host_arrays, timing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

PARTS_SECONDS = 0.5


def timing_of(
    work: "Any", call: "Callable[[], Any]", first_seconds: float, request: "dict[str, Any]"
) -> "dict[str, Any]":
    """The fields of whygpu.model.comparison.Timing."""
    measure = request["measure"]
    gauges.reset_peak()
    if work.kind == "script":
        # It is not repeated: the second process is the second measurement.
        seconds = []
    else:
        timed = call if work.make_input is None else _with_new_input(work, call)
        seconds = timing.measured(timed, first_seconds, measure["seconds"], measure["repeat"])
    device, host = gauges.device_memory(), gauges.host_memory()
    result = {
        "first_call_seconds": first_seconds,
        "seconds": seconds,
        "items": work.items,
        "transfer_seconds": None,
        "compute_seconds": None,
        "input_seconds": input_seconds(work),
        "launches": None,
        "busy_seconds": None,
        "peak_device_bytes": device["peak"] if device else None,
        "peak_host_bytes": host["peak"] if host else None,
    }
    if request["subject"]["device"] == "gpu" and not request["subject"]["train"]:
        result.update(parts(work))
    return result


def _with_new_input(work: "Any", call: "Callable[..., Any]") -> "Callable[[], Any]":
    """As the program does it: first the input, then the work. The time does not depend on the
    numbers, so the work uses the inputs that all lanes share."""

    def timed() -> "Any":
        work.make_input()
        return call()

    return timed


def input_seconds(work: "Any") -> "float | None":
    """How long it takes to make the input of one call, if the program has a function for that."""
    if work.make_input is None:
        return None

    def made() -> None:
        host_arrays.wait_for(work.make_input())

    return timing.median(timing.measured(made, 0.0, PARTS_SECONDS))


def parts(work: "Any") -> "dict[str, Any]":
    """The times of copying and of computing; empty if they cannot be separated."""
    ways = work.on_device()
    if ways is None:
        return {}
    move, compute = ways
    inputs = move()

    def there() -> None:
        host_arrays.wait_for(move())

    def computed() -> "Any":
        result = compute(inputs)
        host_arrays.wait_for(result)
        return result

    def back() -> float:
        # A new result each time: JAX caches what it has copied back.
        result = computed()
        return timing.length(lambda: host_arrays.all_on_host(result, ""))

    lengths = [
        timing.measured(there, 0.0, PARTS_SECONDS),
        timing.measured(computed, 0.0, PARTS_SECONDS),
        [back() for _ in range(timing.FEWEST)],
    ]
    medians = [timing.median(each) for each in lengths]
    launches, busy = kernels_of(computed)
    return {
        "transfer_seconds": medians[0] + medians[2],
        "compute_seconds": medians[1],
        "launches": launches,
        "busy_seconds": busy,
    }


def kernels_of(call: "Callable[..., Any]") -> "tuple[int | None, float | None]":
    """(number of kernels of one call, their seconds), if PyTorch can tell."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None, None
    from torch.profiler import ProfilerActivity, profile

    try:
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            call()
        cuda = torch.autograd.DeviceType.CUDA
        on_device = [each for each in seen.events() if each.device_type == cuda]
        kernels = [each for each in on_device if not each.name.startswith("Mem")]
        if not kernels:
            return None, None
        return len(kernels), 1e-6 * sum(each.time_range.elapsed_us() for each in kernels)
    except (RuntimeError, AttributeError):
        # The counters are in use, or not permitted.
        return None, None
