"""Arrays to feed a model with, made from the shapes and types of its inputs, or from examples."""

from .loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy

ROWS = "the batch"
WHOLE_KINDS = "iu"


def parse_shapes(text: str) -> "list[tuple[tuple[int, ...], str]]":
    """--input 3x224x224, or 256:int64, or several with commas; shapes are without the batch."""
    return [parse_shape(part) for part in text.split(",")]


def parse_shape(text: str) -> "tuple[tuple[int, ...], str]":
    sizes, _, dtype = text.strip().partition(":")
    try:
        shape = tuple(int(size) for size in sizes.lower().split("x")) if sizes else ()
    except ValueError:
        shape = (0,)
    if any(size < 1 for size in shape):
        raise Unusable(
            "--input %s: expected sizes without the batch, such as 3x224x224, or 256:int64 for "
            "256 whole numbers" % text
        )
    return shape, dtype or "float32"


def random_array(
    shape: "tuple[int, ...]", dtype: str, seed: int, below: int = 2
) -> "numpy.ndarray":
    """Standard normal numbers, or integers from 0 up to, but not including, `below`."""
    import numpy

    generator = numpy.random.RandomState(seed % 2**32)
    if dtype == "bool":
        return generator.randint(0, 2, shape).astype(bool)
    kind = "f" if dtype == "bfloat16" else numpy.dtype(dtype).kind
    if kind in WHOLE_KINDS:
        return generator.randint(0, max(1, below), shape).astype(dtype)
    if kind == "c":
        return (generator.randn(*shape) + 1j * generator.randn(*shape)).astype(dtype)
    values = generator.standard_normal(shape).astype("float32")
    return values if dtype in ("float32", "bfloat16") else values.astype(dtype)


def rows_of(array: "numpy.ndarray", count: int) -> "numpy.ndarray":
    """An array with `count` rows, made by repeating the rows of `array`.

    So every value is one that the model accepts.
    """
    import numpy

    return numpy.take(array, numpy.arange(count) % array.shape[0], axis=0)
