"""Puts GPUs under load, one after the other: how fast they are, and whether they compute right.

StressRequest of whygpu.model.task_wire says what is in the request. Every result is sent as soon as
it is known, so that what a GPU did before it hung or crashed is kept.
"""

import importlib
import time
from functools import partial

from ..load import cuda_devices
from ..load.engine import Missing
from ..load.measuring import repeated
from ..load.nvml import Nvml
from ..load.whole_numbers import Factors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..load.engine import Engine, Load
    from ..main import Channel

BUSY_PERCENT = 10
BUSY_LOOKS = 3
LOOK_SECONDS = 0.2
"""NVML averages over up to a second, and the frameworks that were run before have just ended."""

COPY_SHARE = 0.08
PRODUCT_SHARE = 0.14
"""Of the time for one GPU, for each measurement. The rest is for preparing and checking, which took
2.5 s on an H200."""
PREPARATION_SECONDS = 5.0
"""How much longer it may take on a slower machine."""
MIB = 1 << 20
LARGEST_COPY = 512 * MIB
"""Several times the largest cache."""
LARGEST_TRANSFER = 256 * MIB
PRODUCT_SIZES = ((1900 * MIB, 8192), (0, 4096))
"""With so much memory for the test, matrices of this size."""
FORMS = ("float32", "tf32", "bfloat16", "float16")
HAS_TF32 = (8, 0)
HAS_FAST_HALF = (7, 0)
MOST_STATES = 40
"""Of one measurement: a clock that is low at one moment only shows in the rates as well."""
LONGEST_REASON = 300


class Refused(Exception):
    """The GPU is not tested."""


class TimeIsOver(Exception):
    """The rest is not measured."""


def run(request: "dict[str, Any]", channel: "Channel") -> None:
    adapter = importlib.import_module("whygpu_work.load.with_" + request["framework"])
    channel.tell("loading " + request["framework"])
    engines = adapter.engines()
    factors: "dict[int, Factors]" = {}
    for gpu in request["gpus"]:
        address = gpu["address"]
        channel.send("stress-try", address=address)
        try:
            if address not in engines:
                raise Refused("%s does not see it" % request["framework"])
            busy = busy_percent(address)
            if is_much(busy) and not request["even_if_busy"]:
                text = "something keeps it busy (%d %%); to test it anyway: --stress-busy"
                raise Refused(text % busy)
            engine = engines[address]()
        except Exception as error:
            # The other GPUs are tested all the same.
            channel.send("stress-refused", address=address, reason=described(error))
        else:
            test = GpuTest(gpu, request["gpu_seconds"], channel, factors)
            test.run(engine, busy=is_much(busy))


def described(error: "Exception") -> str:
    if isinstance(error, (Refused, Missing, TimeIsOver)):
        return str(error)
    text = " ".join(str(error).split())[:LONGEST_REASON]
    return "%s: %s" % (type(error).__name__, text)


def busy_percent(address: str) -> "int | None":
    """How busy other programs keep the GPU; None if NVML does not say, as for parts of a GPU."""
    nvml = Nvml(address)
    looks = []
    for _ in range(BUSY_LOOKS):
        time.sleep(LOOK_SECONDS)
        looks.append(nvml.busy_percent())
    # What ran before this has ended; what still runs is seen by every look.
    return min((look for look in looks if look is not None), default=None)


def is_much(percent: "int | None") -> "bool | None":
    return None if percent is None else percent >= BUSY_PERCENT


class GpuTest(object):
    """The test of one GPU."""

    def __init__(
        self,
        gpu: "dict[str, Any]",
        seconds: float,
        channel: "Channel",
        factors: "dict[int, Factors]",
    ) -> None:
        self._address = gpu["address"]
        self._bytes = gpu["bytes"]
        self._seconds = seconds
        self._channel = channel
        self._factors = factors
        self._nvml = Nvml(self._address)
        self._began = time.perf_counter()
        self._measured: "set[str]" = set()

    def run(self, engine: "Engine", busy: "bool | None" = None) -> None:
        self._send("stress-begin", version=engine.version, busy=busy)
        self._attempt(("memory",), lambda: self._copies(engine))
        self._attempt(("to-gpu", "from-gpu"), lambda: self._transfers(engine))
        for form in FORMS:
            self._attempt((form,), partial(self._product, engine, form))
        self._send("stress-end", seconds=time.perf_counter() - self._began)

    def _copies(self, engine: "Engine") -> None:
        import numpy

        # Whole numbers that float32 has, also with one added.
        numbers = numpy.arange(1 << 20, dtype="float32")
        times = max(1, min(LARGEST_COPY, self._bytes // 3) // numbers.nbytes)
        pattern = engine.put(numpy.tile(numbers, times))
        self._copy("memory", engine, engine.copies(pattern))

    def _transfers(self, engine: "Engine") -> None:
        import numpy

        count = min(LARGEST_TRANSFER, self._bytes // 3) // 4
        to_gpu, from_gpu = engine.transfers(numpy.arange(count, dtype="int32"))
        self._copy("to-gpu", engine, to_gpu)
        self._copy("from-gpu", engine, from_gpu)

    def _copy(self, name: str, engine: "Engine", load: "Load") -> None:
        self._measure(name, engine, load.step, load.amount, COPY_SHARE)
        wrong = load.wrong()
        detail = "%d of %d numbers were copied wrongly" % (wrong, load.count) if wrong else ""
        self._send("stress-result", name=name, right=not wrong, detail=detail)

    def _product(self, engine: "Engine", form: str) -> None:
        major_minor = cuda_devices.capability(self._address)
        if form in ("tf32", "bfloat16") and major_minor < HAS_TF32:
            raise Missing("a GPU of compute capability %d.%d has no such products" % major_minor)
        if form == "float16" and not HAS_FAST_HALF <= major_minor < HAS_TF32:
            raise Missing("bfloat16 is measured instead, or this GPU multiplies it slowly")
        factors = self._factors_for(self._bytes)
        left = engine.cast(engine.put(factors.left), form)
        right = engine.cast(engine.put(factors.right), form)
        multiply = engine.product(left, right, form)
        compiling = time.perf_counter()
        first = multiply()
        engine.wait(first)
        # What a compiler takes (JAX tries kernels for seconds) is not taken from the GPU's time.
        self._began += time.perf_counter() - compiling
        self._measure(form, engine, multiply, 2.0 * factors.size**3, PRODUCT_SHARE)
        last = multiply()
        changed = engine.differing(first, last)
        rows, columns = factors.wrong_sums(engine.fetch(last))
        problems = []
        if changed:
            count = factors.size**2
            problems.append("%d of %d numbers differ between two runs" % (changed, count))
        if rows or columns:
            text = "the sums of %d rows and %d columns of %d are wrong"
            problems.append(text % (rows, columns, factors.size))
        self._send("stress-result", name=form, right=not problems, detail="; ".join(problems))

    def _factors_for(self, size: int) -> "Factors":
        """The same matrices for all GPUs: making them takes as long as a measurement."""
        wanted = next(matrix for least, matrix in PRODUCT_SIZES if size >= least)
        if wanted not in self._factors:
            self._factors[wanted] = Factors(wanted)
        return self._factors[wanted]

    def _measure(
        self, name: str, engine: "Engine", step: "Callable[[], Any]", amount: float, share: float
    ) -> None:
        if time.perf_counter() - self._began > self._seconds + PREPARATION_SECONDS:
            raise TimeIsOver("the time for this GPU was over")
        states: "list[dict[str, int | None]]" = []
        self._channel.tell("%s %s" % (self._address, name))
        rates = repeated(
            step,
            engine.wait,
            amount,
            share * self._seconds,
            lambda: states.append(self._nvml.state()),
        )
        self._measured.add(name)
        self._send("stress-rate", name=name, per_second=rates, reason="", applies=True)
        for state in states[:MOST_STATES]:
            self._send("stress-state", name=name, **state)

    def _attempt(self, names: "tuple[str, ...]", work: "Callable[[], None]") -> None:
        """An exception is a result too; only a crash of the process ends the test."""
        reason, applies = "", True
        try:
            work()
        except Exception as error:
            reason, applies = described(error), not isinstance(error, Missing)
        for name in names:
            if name not in self._measured:
                self._send("stress-rate", name=name, per_second=[], reason=reason, applies=applies)
            elif reason:
                self._send("stress-result", name=name, right=None, detail=reason)

    def _send(self, kind: str, **fields: "Any") -> None:
        self._channel.send(kind, address=self._address, **fields)
