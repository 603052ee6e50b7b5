"""The load on a GPU, with a GPU that is made of NumPy and has the faults that a test gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from tests.cases import each
from tests.comparer.inside import part

STRESS = part("tasks.stress")
ENGINE = part("load.engine")
FACTORS = part("load.whole_numbers")
MEASURING = part("load.measuring")

ADDRESS = "0000:41:00.0"
FORMATS = {"tf32": "float32", "bfloat16": "float32"}


class NumpyEngine(ENGINE.Engine):  # type: ignore[misc, name-defined]
    """Computes as a GPU should; `fault` changes what an operation of this name gives."""

    version = "1"

    def __init__(self, fault: str = "", change: Callable[[Any], Any] = lambda value: value) -> None:
        self._fault = fault
        self._change = change

    def _result(self, name: str, value: Any) -> Any:
        return self._change(value) if name == self._fault else value

    def wait(self, value: Any) -> None:
        pass

    def put(self, numbers: Any) -> Any:
        return numbers.copy()

    def fetch(self, value: Any) -> Any:
        return value.astype("float32")

    def cast(self, value: Any, form: str) -> Any:
        return value.astype(FORMATS.get(form, form))

    def differing(self, one: Any, other: Any) -> int:
        return int((one != other).sum())

    def product(self, left: Any, right: Any, form: str) -> Callable[[], Any]:
        return lambda: self._result(form, left @ right)

    def copies(self, pattern: Any) -> Any:
        last = [pattern]

        def step() -> Any:
            last[0] = self._result("memory", pattern.copy())
            return last[0]

        return ENGINE.Load(
            2.0 * pattern.nbytes, step, lambda: self.differing(last[0], pattern), pattern.size
        )

    def transfers(self, numbers: Any) -> Any:
        raise ENGINE.Missing("there is no bus")


class Channel:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def send(self, kind: str, **fields: Any) -> None:
        self.messages.append({"kind": kind, **fields})

    def tell(self, text: str) -> None:
        self.send("progress", text=text)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["kind"] == kind]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that a processor can do, and a GPU that has every format."""
    monkeypatch.setattr(STRESS, "PRODUCT_SIZES", ((0, 128),))
    monkeypatch.setattr(STRESS, "LARGEST_COPY", 1 << 16)
    monkeypatch.setattr(MEASURING, "SLICE_SECONDS", 0.001)
    monkeypatch.setattr(STRESS.cuda_devices, "capability", lambda address: (8, 0))


def under_load(engine: NumpyEngine, seconds: float = 5.0) -> Channel:
    channel = Channel()
    gpu = {"address": ADDRESS, "bytes": 1 << 24}
    # The shares of this time are measured; a test needs no more than the fewest repetitions.
    STRESS.GpuTest(gpu, seconds, channel, {}).run(engine)
    return channel


def results(channel: Channel) -> dict[str, bool | None]:
    return {message["name"]: message["right"] for message in channel.of("stress-result")}


@pytest.mark.usefixtures("small")
def test_a_healthy_gpu_is_measured_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STRESS, "PRODUCT_SHARE", 0.0)
    monkeypatch.setattr(STRESS, "COPY_SHARE", 0.0)
    channel = under_load(NumpyEngine())
    assert results(channel) == {
        "memory": True,
        "float32": True,
        "tf32": True,
        "bfloat16": True,
    }
    rates = {message["name"]: message for message in channel.of("stress-rate")}
    assert len(rates["float32"]["per_second"]) >= MEASURING.FEWEST_SLICES
    assert all(rate > 0 for rate in rates["memory"]["per_second"])
    assert (rates["to-gpu"]["applies"], rates["to-gpu"]["reason"]) == (False, "there is no bus")
    assert not rates["float16"]["applies"]
    assert [message["kind"] for message in channel.messages][-1] == "stress-end"


def one_more(value: Any) -> Any:
    """One wrong number in the last place."""
    wrong = value.copy()
    wrong.flat[-1] += 1
    return wrong


@pytest.mark.slow
@each("fault", ["memory", "float32", "tf32", "bfloat16"])
@pytest.mark.usefixtures("small")
def test_one_wrong_number_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STRESS, "PRODUCT_SHARE", 0.0)
    monkeypatch.setattr(STRESS, "COPY_SHARE", 0.0)
    channel = under_load(NumpyEngine(fault, one_more))
    assert [name for name, right in results(channel).items() if not right] == [fault]


@pytest.mark.usefixtures("small")
def test_a_number_that_is_wrong_only_sometimes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first product is right and the last one is not; two errors cancel in every sum."""
    monkeypatch.setattr(STRESS, "PRODUCT_SHARE", 0.0)
    monkeypatch.setattr(STRESS, "COPY_SHARE", 0.0)
    calls = [0]

    def late(value: Any) -> Any:
        calls[0] += 1
        if calls[0] < 4:
            return value
        wrong = value.copy()
        wrong[:2, :2] += numpy.array([[1, -1], [-1, 1]])
        return wrong

    channel = under_load(NumpyEngine("tf32", late))
    (result,) = [each for each in channel.of("stress-result") if not each["right"]]
    assert result["detail"] == "4 of 16384 numbers differ between two runs"


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_operation_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STRESS, "PRODUCT_SHARE", 0.0)
    monkeypatch.setattr(STRESS, "COPY_SHARE", 0.0)

    def fail(value: Any) -> Any:
        raise RuntimeError("CUDA error:\n an illegal memory access")

    channel = under_load(NumpyEngine("float32", fail))
    rates = {message["name"]: message for message in channel.of("stress-rate")}
    assert rates["float32"]["reason"] == "RuntimeError: CUDA error: an illegal memory access"
    assert rates["float32"]["applies"]
    assert rates["tf32"]["per_second"]


@pytest.mark.usefixtures("small")
def test_when_the_time_is_over_the_rest_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STRESS, "PREPARATION_SECONDS", 0.0)
    channel = under_load(NumpyEngine(), seconds=1e-6)
    rates = {message["name"]: message for message in channel.of("stress-rate")}
    assert rates["bfloat16"]["reason"] == "the time for this GPU was over"
    assert [message["kind"] for message in channel.messages][-1] == "stress-end"


@each("size", [128, 1024])
def test_products_of_the_whole_numbers_are_exact_in_every_format(size: int) -> None:
    """No sum may be larger than 256, which is what bfloat16 can count to."""
    factors = FACTORS.Factors(size)
    product = factors.left.astype("float64") @ factors.right.astype("float64")
    assert numpy.abs(product).max() <= 256 * size / 8192 + 120
    assert factors.wrong_sums(product.astype("float32")) == (0, 0)
    product[3, 5] += 1
    assert factors.wrong_sums(product) == (1, 1)


def test_a_gpu_that_something_else_uses_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STRESS, "LOOK_SECONDS", 0.0)
    looks: dict[str, list[int | None]] = {
        "busy": [80, 95, 60],
        "just ended": [90, 40, 0],
        "not said": [None, None, None],
    }

    def refused(kind: str, *, even_if_busy: bool = False) -> str:
        answers = iter(looks[kind])
        monkeypatch.setattr(STRESS.Nvml, "busy_percent", lambda self: next(answers))
        channel = Channel()

        class Adapter:
            @staticmethod
            def engines() -> Any:
                return {ADDRESS: broken}

        monkeypatch.setattr(STRESS.importlib, "import_module", lambda name: Adapter)
        STRESS.run(
            {
                "framework": "torch",
                "gpus": [{"address": ADDRESS, "bytes": 1}],
                "gpu_seconds": 1.0,
                "even_if_busy": even_if_busy,
            },
            channel,
        )
        assert [message["kind"] for message in channel.messages[-2:]] == [
            "stress-try",
            "stress-refused",
        ]
        return str(channel.messages[-1]["reason"])

    def broken() -> NumpyEngine:
        raise RuntimeError("it came to the engine")

    assert "60 %" in refused("busy")
    assert "it came to the engine" in refused("busy", even_if_busy=True)
    assert "it came to the engine" in refused("just ended")
    assert "it came to the engine" in refused("not said")


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_gpu_that_cannot_be_opened_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STRESS, "PRODUCT_SHARE", 0.0)
    monkeypatch.setattr(STRESS, "COPY_SHARE", 0.0)

    def closed() -> NumpyEngine:
        raise RuntimeError("CUDA error: device unavailable")

    class Adapter:
        @staticmethod
        def engines() -> dict[str, Callable[[], NumpyEngine]]:
            return {"a": closed, "b": NumpyEngine}

    monkeypatch.setattr(STRESS.importlib, "import_module", lambda name: Adapter)
    channel = Channel()
    gpus = [{"address": address, "bytes": 1 << 24} for address in ("a", "b", "c")]
    request = {"framework": "torch", "gpus": gpus, "gpu_seconds": 5.0, "even_if_busy": True}
    STRESS.run(request, channel)
    refused = {message["address"]: message["reason"] for message in channel.of("stress-refused")}
    assert refused == {
        "a": "RuntimeError: CUDA error: device unavailable",
        "c": "torch does not see it",
    }
    assert [message["address"] for message in channel.of("stress-end")] == ["b"]


def test_nvml_that_is_not_there_answers_nothing() -> None:
    nvml = part("load.nvml").Nvml("ffff:00:00.0")
    assert nvml.busy_percent() is None
    assert set(nvml.state().values()) == {None}
