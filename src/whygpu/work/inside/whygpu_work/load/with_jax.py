"""JAX as the engine of a load."""

from collections import deque
from functools import partial

from .engine import Engine, Load, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


MOST_PENDING = 3


class JaxEngine(Engine):
    def __init__(self, device: "Any") -> None:
        import jax

        self._jax = jax
        self._numpy = jax.numpy
        self._device = device
        self.version = str(jax.__version__)

    def wait(self, value: "Any") -> None:
        value.block_until_ready()

    def put(self, numbers: "Any") -> "Any":
        return self._jax.device_put(numbers, self._device)

    def fetch(self, value: "Any") -> "Any":
        import numpy

        return numpy.asarray(value.astype("float32"))

    def cast(self, value: "Any", form: str) -> "Any":
        return value.astype("float32" if form == "tf32" else form)

    def differing(self, one: "Any", other: "Any") -> int:
        return int((one != other).sum())

    def product(self, left: "Any", right: "Any", form: str) -> "Callable[[], Any]":
        precision = {"float32": "highest", "tf32": "high"}.get(form)
        multiply = self._jax.jit(lambda a, b: self._numpy.matmul(a, b, precision=precision))
        return bounded(lambda: multiply(left, right))

    def copies(self, pattern: "Any") -> "Load":
        # The compiler would remove a plain copy.
        add_one = self._jax.jit(lambda values: values + 1)
        start = bounded(lambda: add_one(pattern))
        last = [pattern]

        def step() -> "Any":
            last[0] = start()
            return last[0]

        return Load(
            2.0 * pattern.size * pattern.dtype.itemsize,
            step,
            lambda: self.differing(last[0], pattern + 1),
            pattern.size,
        )

    def transfers(self, numbers: "Any") -> "tuple[Load, Load]":
        # It has pinned memory, but no copy into memory that is already there: measured on an H200,
        # copies from the GPU took ten times as long as the bus needs.
        raise Missing("JAX allocates pinned memory for each copy, which takes longer than the copy")


def bounded(start: "Callable[[], Any]") -> "Callable[[], Any]":
    """The same, with few results that are not finished yet: each of them takes GPU memory."""
    pending: "deque[Any]" = deque()

    def step() -> "Any":
        if len(pending) >= MOST_PENDING:
            pending.popleft().block_until_ready()
        pending.append(start())
        return pending[-1]

    return step


def engines() -> "dict[str, Callable[[], Engine]]":
    """Every GPU that the framework sees, by its PCI address."""
    import jax

    from .cuda_devices import addresses

    by_ordinal = addresses()
    found: "dict[str, Callable[[], Engine]]" = {}
    for place, device in enumerate(jax.local_devices()):
        if device.platform not in ("gpu", "cuda"):
            continue
        ordinal = getattr(device, "local_hardware_id", None)
        ordinal = place if ordinal is None else ordinal
        if 0 <= ordinal < len(by_ordinal):
            found[by_ordinal[ordinal]] = partial(JaxEngine, device)
    return found
