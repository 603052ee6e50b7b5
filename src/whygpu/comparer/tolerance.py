"""How much two lanes may differ: by what rounding explains, or by a number that was given."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.model.comparison import Precision, TensorDifference, Units

UNITS: dict[str, float] = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-10,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
"""The most that one rounding changes a number, relative to it."""

LAST_BITS = 64
"""Without a reference: differences of so many units are rounding in any computation."""
UNRELATED = 0.1
"""Without a reference: a difference of a tenth of the result is no longer the same result."""


class Tolerance(NamedTuple):
    relative: float | None = None
    """Of the largest value of an array; None is auto: what rounding explains."""

    def __str__(self) -> str:
        return "auto" if self.relative is None else f"{self.relative:g}"


def parse(text: str) -> Tolerance:
    if text.strip().lower() == "auto":
        return Tolerance()
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise UsageError(
            "expected auto, or a fraction of an output's largest value, such as 1e-4",
            option="tolerance",
            value=text,
        )
    return Tolerance(number)


def explaining_precision(
    units: Units, own: Precision, allowed: Precision | None, may_be_tf32: bool
) -> Precision | None:
    """The precision whose rounding explains a difference; None if none that is in use does.

    `allowed` is the coarsest precision that the settings of the two lanes allow for products of
    float32 numbers. Where they could not be asked, `may_be_tf32` tells whether a GPU is among them.
    """
    if units.own <= 1:
        return own
    coarse = {"tf32": units.tf32, "bfloat16": units.bfloat16}
    usable: tuple[Precision, ...] = ()
    if allowed == "tf32" or (allowed is None and may_be_tf32):
        usable = ("tf32",)
    elif allowed == "bfloat16":
        usable = ("tf32", "bfloat16")
    for name in usable:
        ratio = coarse[name]
        if ratio is not None and ratio <= 1:
            return name
    return None


def within(tensor: TensorDifference, tolerance: float) -> bool:
    """Whether a given tolerance holds: largest difference against the largest value."""
    if tensor.how == "not-at-all" or tensor.not_finite_in_one:
        return False
    if tensor.how == "exactly":
        return not tensor.unequal or bool(tensor.follows)
    return tensor.relative is None or tensor.relative <= tolerance


def digits_lost(tensor: TensorDifference) -> float | None:
    """The difference over the whole array, in units of its type; None for other than floats."""
    unit = max((UNITS.get(dtype, 0.0) for dtype in (tensor.dtype_a, tensor.dtype_b)), default=0.0)
    relative = overall(tensor)
    return None if relative is None or not unit else relative / unit


def overall(tensor: TensorDifference) -> float | None:
    """The root mean square of the difference against that of the values."""
    if tensor.rms is None or tensor.level is None:
        return None
    if tensor.level == 0:
        return 0.0 if tensor.rms == 0 else 1.0
    return tensor.rms / tensor.level
