"""The bootstrap's tables of calls and readings, with small objects in place of frameworks."""

from __future__ import annotations

import copy
import importlib
import pathlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.launch.test_launch_plan import planned
from whygpu import launch

BOOTSTRAP = pathlib.Path(launch.__file__).parent / "bootstrap"
EVERYTHING = "cudnn=off deterministic tf32=off xla=off log-level=error tf1"
MEMORY = ("memory=4GiB", "memory=50%", "memory=growth")
GIB = 1 << 30


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Gives modules of the bootstrap by name, as new."""
    monkeypatch.syspath_prepend(str(BOOTSTRAP))

    def forget() -> None:
        for name in [name for name in sys.modules if name.startswith("whygpu_bootstrap")]:
            del sys.modules[name]

    forget()
    yield lambda name: importlib.import_module(f"whygpu_bootstrap.{name}")
    forget()


def recorded(part: Any, folder: pathlib.Path) -> Any:
    record = part("process_record")
    record._begin(str(folder))
    return record._state["calls"]


def made(part: Any, framework: str, module: Any, name: str, **arguments: Any) -> None:
    call = {"framework": framework, "name": name, "arguments": arguments}
    part("policy.calls").make(framework, module, [call])


def test_the_tables_have_just_what_plans_ask_for(part: Any) -> None:
    plans = [planned(f"{EVERYTHING} {memory}") for memory in MEMORY]
    plans.append(planned("memory=4GiB", environ={"XLA_CLIENT_MEM_FRACTION": "0.9"}))
    calls = part("policy.calls")
    assert {(call.framework, call.name) for plan in plans for call in plan.calls} | {
        ("jax", "update_config"),
        ("tensorflow", "refuse_at_once"),
    } == {*calls.TABLE, *calls.DEFERRED}
    assert {
        (each.framework, each.reading)
        for plan in plans
        for each in plan.expectations
        if each.reading
    } == set(part("policy.readings").TABLE)


def test_what_became_of_each_call(part: Any, tmp_path: pathlib.Path) -> None:
    calls = recorded(part, tmp_path)
    numbers: list[int] = []
    made(part, "random", SimpleNamespace(seed=numbers.append), "set_seed", seed=7)
    made(part, "numpy.random", SimpleNamespace(), "set_seed", seed=7)
    waiting = SimpleNamespace(cuda=SimpleNamespace(_lazy_call=numbers.append))
    made(part, "torch", waiting, "set_memory_limit", bytes=GIB, fraction=None)
    old = SimpleNamespace(config=SimpleNamespace(experimental=SimpleNamespace()))
    made(part, "tensorflow", old, "disable_tf32")
    made(part, "jax", SimpleNamespace(__version__="0.2.9"), "add_xla_flag", flag="--a=1")
    assert numbers[0] == 7
    assert [(each["framework"], each["outcome"]) for each in calls] == [
        ("random", "executed"),
        ("numpy.random", "failed"),
        ("torch", "not-reached"),
        ("tensorflow", "failed"),
        ("jax", "failed"),
    ]
    assert calls[1]["reason"].startswith("AttributeError: ")
    name = "tf.config.experimental.enable_tensor_float_32_execution"
    assert calls[3]["reason"] == f"this TensorFlow has no {name}"
    assert calls[4]["reason"] == "XLA knows --a only since release 0.3"


class Cuda:
    """Two GPUs of unequal size."""

    totals = (24 * GIB, 80 * GIB)

    def __init__(self) -> None:
        self.fractions: dict[int, float] = {}
        self.waiting: list[Any] = []
        self._lazy_call = self.waiting.append

    def is_initialized(self) -> bool:
        return not self.waiting

    def device_count(self) -> int:
        return len(self.totals)

    def get_device_properties(self, index: int) -> Any:
        return SimpleNamespace(total_memory=self.totals[index])

    def set_per_process_memory_fraction(self, fraction: float, index: int) -> None:
        self.fractions[index] = fraction

    def get_per_process_memory_fraction(self, index: int) -> float:
        return self.fractions.get(index, 1.0)

    def start(self) -> None:
        while self.waiting:
            self.waiting.pop()()


@pytest.mark.parametrize(
    ("arguments", "fractions", "limits"),
    [
        ({"bytes": 6 * GIB, "fraction": None}, [0.25, 0.075], [6 * GIB, 6 * GIB]),
        ({"bytes": None, "fraction": 0.5}, [0.5, 0.5], [12 * GIB, 40 * GIB]),
        ({"bytes": 40 * GIB, "fraction": None}, [1.0, 0.5], [24 * GIB, 40 * GIB]),
    ],
)
def test_torch_limits_each_gpu_when_cuda_starts(
    part: Any, tmp_path: pathlib.Path, arguments: Any, fractions: Any, limits: Any
) -> None:
    (calls, cuda) = recorded(part, tmp_path), Cuda()
    torch = SimpleNamespace(cuda=cuda)
    taken = part("policy.readings").taken
    made(part, "torch", torch, "set_memory_limit", **arguments)
    (before,) = taken("torch", torch, ["memory_limits"])
    assert (before["status"], before["reason"]) == ("not-reached", "PyTorch did not start CUDA")
    cuda.start()
    assert calls[0]["outcome"] == "executed"
    found = taken("torch", torch, ["memory_fractions", "memory_limits"])
    assert [each["value"] for each in found] == [fractions, limits]


def test_an_old_release_is_said_to_be_one(part: Any) -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True))
    (found,) = part("policy.readings").taken("torch", torch, ["memory_limits"])
    assert (found["status"], found["value"]) == ("unknown", None)
    assert found["reason"] == "this release has no cuda.get_per_process_memory_fraction"


class TensorFlow:
    """Two GPUs in eager mode; the second may be divided by the program."""

    def __init__(self, divided: bool = False) -> None:
        self.made: dict[str, Any] = {"GPU:1": [SimpleNamespace(memory_limit=7)]} if divided else {}
        gpus = [SimpleNamespace(name="GPU:0"), SimpleNamespace(name="GPU:1")]
        self.config = SimpleNamespace(
            experimental=SimpleNamespace(get_visible_devices=lambda kind: gpus),
            get_logical_device_configuration=lambda gpu: self.made.get(gpu.name),
            set_logical_device_configuration=lambda gpu, made: self.made.update({gpu.name: made}),
            LogicalDeviceConfiguration=SimpleNamespace,
        )


class Context:
    """tensorflow.python.eager.context.Context, as far as its start is concerned."""

    _initialized = False
    _logical_devices = (SimpleNamespace(device_type="GPU"),)

    def ensure_initialized(self) -> None:
        self._initialized = True


@pytest.mark.parametrize(
    ("by_gpu", "divided", "limits"),
    [
        ([2 * GIB, 3 * GIB], False, [2 * GIB, 3 * GIB]),
        ([2 * GIB], False, [GIB, GIB]),
        ([], False, [GIB, GIB]),
        ([2 * GIB, 3 * GIB], True, [2 * GIB, 7 << 20]),
    ],
)
def test_tensorflow_limits_each_gpu_before_it_starts(
    part: Any,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    by_gpu: list[int],
    divided: bool,
    limits: list[int],
) -> None:
    calls, tensorflow = recorded(part, tmp_path), TensorFlow(divided)
    started = type("Context", (Context,), {"ensure_initialized": Context.ensure_initialized})
    module = SimpleNamespace(Context=started, _context=started(), __spec__=None)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", module)
    made(
        *(part, "tensorflow", tensorflow, "set_memory_limit"),
        bytes=GIB,
        bytes_by_gpu=by_gpu,
        fraction=0.1,
    )
    assert calls[0]["outcome"] == "not-reached"
    (before,) = part("policy.readings").taken("tensorflow", tensorflow, ["memory_limits"])
    assert before["status"] == "not-reached"
    module._context.ensure_initialized()
    assert calls[0]["outcome"] == "executed"
    (after,) = part("policy.readings").taken("tensorflow", tensorflow, ["memory_limits"])
    assert after["value"] == limits


class Message(SimpleNamespace):
    """A message of protobuf, as far as it is copied."""

    def CopyFrom(self, other: Any) -> None:  # noqa: N802
        self.__dict__.update(copy.deepcopy(other.__dict__))


def config_proto(**experimental: Any) -> Message:
    options = SimpleNamespace(experimental=SimpleNamespace(**experimental))
    return Message(gpu_options=options, threads=0)


@pytest.mark.parametrize("given", [None, 4])
def test_tensorflow_refuses_at_once_before_it_starts(
    part: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, given: int | None
) -> None:
    calls = recorded(part, tmp_path)
    option = "disallow_retry_on_allocation_failure"

    class Started(Context):
        _config: Any = None

    class Session:
        def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
            self.config = config

    new = SimpleNamespace(ConfigProto=lambda: config_proto(**{option: False}))
    eager = SimpleNamespace(Context=Started, config_pb2=new, __spec__=None)
    sessions = SimpleNamespace(BaseSession=Session, config_pb2=new, __spec__=None)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", eager)
    monkeypatch.setitem(sys.modules, "tensorflow.python.client.session", sessions)
    made(part, "tensorflow", SimpleNamespace(), "refuse_at_once")
    context, own = Started(), None
    if given is not None:
        own = new.ConfigProto()
        own.threads = given
    context._config = own
    context.ensure_initialized()
    session = sessions.BaseSession("", None, own)
    assert calls[0]["outcome"] == "executed"
    for config in (context._config, session.config):
        assert getattr(config.gpu_options.experimental, option) is True
        assert config.threads == (given or 0)
    assert own is None or getattr(own.gpu_options.experimental, option) is False


def test_an_old_tensorflow_cannot_refuse_at_once(
    part: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = recorded(part, tmp_path)

    class Started(Context):
        _config = None

    new = SimpleNamespace(ConfigProto=config_proto)
    eager = SimpleNamespace(Context=Started, config_pb2=new, __spec__=None)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", eager)
    made(part, "tensorflow", SimpleNamespace(), "refuse_at_once")
    context = Started()
    context.ensure_initialized()
    assert context._initialized
    assert context._config is None
    assert calls[0]["outcome"] == "failed"
    assert "disallow_retry_on_allocation_failure" in calls[0]["reason"]


def test_variables_are_those_of_the_moment_at_which_jax_started(
    part: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = SimpleNamespace(
        _init_backend=lambda platform: SimpleNamespace(platform=platform),
        _backends={},
        __spec__=None,
    )
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    part("devices.jax").watch_start(None)
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"

    def taken() -> Any:
        (found,) = part("policy.readings").taken("jax", None, [name])
        return found["status"], found["value"]

    bridge._init_backend("cpu")
    assert taken() == ("not-reached", None)
    bridge._init_backend("cuda")
    monkeypatch.setenv(name, "true")
    assert taken() == ("reported", "false")
