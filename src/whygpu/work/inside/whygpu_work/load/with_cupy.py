"""CuPy as the engine of a load."""

from functools import partial

from .engine import Engine, Load, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class CupyEngine(Engine):
    def __init__(self, ordinal: int) -> None:
        import cupy  # type: ignore[import-not-found, unused-ignore]

        self._cupy = cupy
        self._device = cupy.cuda.Device(ordinal)
        self._device.use()
        self.version = str(cupy.__version__)

    def wait(self, value: "Any") -> None:
        self._device.synchronize()

    def put(self, numbers: "Any") -> "Any":
        return self._cupy.asarray(numbers)

    def fetch(self, value: "Any") -> "Any":
        return self._cupy.asnumpy(value.astype("float32"))

    def cast(self, value: "Any", form: str) -> "Any":
        if form in ("tf32", "bfloat16"):
            raise Missing("CuPy has no products in this format that can be chosen here")
        return value.astype(form)

    def differing(self, one: "Any", other: "Any") -> int:
        return int((one != other).sum())

    def product(self, left: "Any", right: "Any", form: str) -> "Callable[[], Any]":
        return lambda: self._cupy.matmul(left, right)

    def copies(self, pattern: "Any") -> "Load":
        copy = self._cupy.zeros_like(pattern)

        def step() -> "Any":
            self._cupy.copyto(copy, pattern)
            return copy

        return Load(2.0 * pattern.nbytes, step, lambda: self.differing(copy, pattern), pattern.size)

    def transfers(self, numbers: "Any") -> "tuple[Load, Load]":
        cupy = self._cupy
        source, back = self._pinned(numbers), self._pinned(numbers)
        source[...] = numbers
        back[...] = 0
        there = cupy.zeros(numbers.shape, numbers.dtype)

        def to_gpu() -> "Any":
            there.set(source)
            return there

        def from_gpu() -> "Any":
            there.get(out=back)
            return there

        amount = float(numbers.nbytes)
        return (
            Load(amount, to_gpu, lambda: int((there.get() != numbers).sum()), numbers.size),
            Load(amount, from_gpu, lambda: int((back != numbers).sum()), numbers.size),
        )

    def _pinned(self, numbers: "Any") -> "Any":
        import numpy

        memory = self._cupy.cuda.alloc_pinned_memory(numbers.nbytes)
        flat = numpy.frombuffer(memory, numbers.dtype, numbers.size)
        return flat.reshape(numbers.shape)


def engines() -> "dict[str, Callable[[], Engine]]":
    """Every GPU that the framework sees, by its PCI address."""
    from .cuda_devices import addresses

    return {address: partial(CupyEngine, ordinal) for ordinal, address in enumerate(addresses())}
