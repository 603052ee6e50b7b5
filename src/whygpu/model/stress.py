"""What a GPU does under load: how fast it copies and multiplies, whether the results are right."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from whygpu.model.driver import NOT_LOOKED, Slowdown
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.target import FrameworkName

CopyName = Literal["memory", "to-gpu", "from-gpu"]
ProductName = Literal["float32", "tf32", "bfloat16", "float16"]
RateName = Literal["memory", "to-gpu", "from-gpu", "float32", "tf32", "bfloat16", "float16"]
"""`memory`: copies within the memory of the GPU; each byte counts twice, because it is read and
written. `to-gpu` and `from-gpu`: copies between pinned main memory and the GPU. The others:
products of two matrices in that format; `tf32` takes float32 and multiplies with fewer bits."""

COPIES: tuple[CopyName, ...] = get_args(CopyName)
PRODUCTS: tuple[ProductName, ...] = get_args(ProductName)
RATES: tuple[RateName, ...] = (*COPIES, *PRODUCTS)


class Speeds(NamedTuple):
    """Bytes or operations in one second, over all repetitions."""

    lowest: float
    median: float
    highest: float
    repetitions: int


class Rate(NamedTuple):
    name: RateName
    speeds: Observed[Speeds]
    """Absent if this GPU or this framework has no such operation."""
    peak: Observed[float]
    """What the data sheet of the card promises; absent if the card is not in the table."""

    @property
    def share(self) -> float | None:
        """The median as a share of the peak. A speed of nothing or less is no speed."""
        speeds, peak = self.speeds, self.peak
        if not isinstance(speeds, Known) or not isinstance(peak, Known):
            return None
        positive = speeds.value.median > 0 and peak.value > 0
        return speeds.value.median / peak.value if positive else None


class ResultCheck(NamedTuple):
    """Results that were known before: products of whole numbers, and copies of a pattern."""

    name: RateName
    right: Observed[bool]
    detail: str
    """How many of how many numbers were wrong, or why that could not be checked; else empty."""


class LoadState(NamedTuple):
    """The state of the GPU while it worked, as NVML reported it."""

    clock_mhz: Observed[int]
    """The clock of the multiprocessors during products; the median."""
    watts: Observed[int]
    celsius: Observed[int]
    """The highest of both."""
    slowdowns: Observed[tuple[Slowdown, ...]]
    """Every reason that was in effect at some moment of the load."""
    pcie_generation: Observed[int]
    pcie_width: Observed[int]
    """During copies from and to main memory, when the link does not save power."""


class LoadTest(NamedTuple):
    """One GPU under load."""

    framework: FrameworkName
    """What made it work."""
    version: str
    seconds: float
    rates: tuple[Rate, ...]
    results: tuple[ResultCheck, ...]
    state: LoadState
    others: Observed[int] = NOT_LOOKED
    """How many other processes computed on the GPU meanwhile. Its speeds are then a part of what it
    can do."""


class StressedGpu(NamedTuple):
    number: int
    """As nvidia-smi numbers it."""
    test: Observed[LoadTest]
    """Unknown if it was not tested: another process uses it, or the test did not end."""


NOT_STRESSED = Absent("a test under load, which only --stress makes")
"""Of a snapshot without such a test."""


def speed_text(name: RateName, per_second: float) -> str:
    """4.21 TB/s, 52.3 GB/s, 712 TFLOP/s; in powers of 1000, as data sheets count."""
    unit = "B/s" if name in COPIES else "FLOP/s"
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if per_second >= scale:
            amount = per_second / scale
            return (
                f"{amount:.0f} {prefix}{unit}" if amount >= 100 else f"{amount:.3g} {prefix}{unit}"
            )
    return f"{per_second:.3g} {unit}"
