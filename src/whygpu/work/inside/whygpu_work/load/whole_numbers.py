"""Matrices of small whole numbers, and sums of their product that the processor computes.

The numbers are -1, 0 and 1, so sparse that no sum within a product is larger than 256. Such sums
are exact in every format, in whatever order a GPU adds: a result that differs is wrong. The sums of
a whole row of the product stay below 2**24, up to which float32 is exact as well.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEED = 20260
OF_BYTES = 51
"""Of the 256 values of a random byte, this many become 1, and as many -1: a fifth each."""
ROWS_AT_ONCE = 512
"""As float32, the whole matrix would need four times its memory."""


class Factors(object):
    """Two square matrices, and what the rows and columns of their product add up to."""

    def __init__(self, size: int) -> None:
        import numpy

        random = numpy.random.RandomState(SEED)
        self.size = size
        self.left, self.right = (_matrix(numpy, random, size) for _ in range(2))
        of_right = self.right.sum(1, dtype="int32").astype("float32")
        of_left = self.left.sum(0, dtype="int32").astype("float32")
        blocks = [slice(first, first + ROWS_AT_ONCE) for first in range(0, size, ROWS_AT_ONCE)]
        self._rows = numpy.concatenate(
            [self.left[block].astype("float32").dot(of_right) for block in blocks]
        )
        self._columns = sum(
            of_left[block].dot(self.right[block].astype("float32")) for block in blocks
        )

    def wrong_sums(self, product: "Any") -> "tuple[int, int]":
        """How many rows and columns of a product have the wrong sum."""
        rows = product.sum(1) != self._rows
        columns = product.sum(0) != self._columns
        return int(rows.sum()), int(columns.sum())


def _matrix(numpy: "Any", random: "Any", size: int) -> "Any":
    values = numpy.zeros(256, "int8")
    values[:OF_BYTES] = 1
    values[-OF_BYTES:] = -1
    return values[numpy.frombuffer(random.bytes(size * size), "uint8")].reshape(size, size)
