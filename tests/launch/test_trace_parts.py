"""The tracers' own arithmetic and reading, without a framework."""

from __future__ import annotations

import collections
import importlib
import pathlib
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import each
from whygpu import launch

BOOTSTRAP = pathlib.Path(launch.__file__).parent / "bootstrap"
FLOAT, INT32, STRING, RESOURCE = 1, 3, 7, 20
NAMES = {FLOAT: "float32", INT32: "int32", STRING: "string", RESOURCE: "resource"}


@pytest.fixture(scope="module")
def part() -> Iterator[Any]:
    """Gives modules of the bootstrap by name."""
    sys.path.insert(0, str(BOOTSTRAP))
    yield lambda name: importlib.import_module(f"whygpu_bootstrap.{name}")
    sys.path.remove(str(BOOTSTRAP))


def kernel(device: str, host: tuple[str, ...] = (), **types: tuple[int, ...]) -> Any:
    """A registered kernel, as TensorFlow describes it."""
    constraints = [
        SimpleNamespace(
            name=name, allowed_values=SimpleNamespace(list=SimpleNamespace(type=list(allowed)))
        )
        for name, allowed in types.items()
    ]
    return SimpleNamespace(device_type=device, constraint=constraints, host_memory_arg=list(host))


def definition(inputs: tuple[int, ...] = (), outputs: tuple[str, ...] = ("z",)) -> Any:
    return SimpleNamespace(
        input_arg=[SimpleNamespace(name=str(i), type=kind) for i, kind in enumerate(inputs)],
        output_arg=[SimpleNamespace(name=name, type=0) for name in outputs],
    )


CPU = kernel("CPU")
GPU_FLOAT = kernel("GPU", T=(FLOAT,))
GPU_INT32_ON_HOST = kernel("GPU", ("x", "y", "z"), T=(INT32,))


@each(
    ("kernels", "types", "requested", "reason"),
    [
        ([CPU], {}, "", "no GPU kernel"),
        ([CPU, GPU_FLOAT], {"T": STRING}, "", "host-only dtype"),
        ([CPU, GPU_FLOAT], {"T": INT32}, "", "no GPU kernel"),
        ([CPU, GPU_FLOAT, GPU_INT32_ON_HOST], {"T": INT32}, "", "host-only dtype"),
        ([CPU, kernel("DEFAULT", ("z",))], {}, "", "host-memory operation"),
        ([CPU, GPU_FLOAT], {"T": FLOAT}, "/device:GPU:3", "soft placement"),
        ([CPU, GPU_FLOAT], {"T": FLOAT}, "/GPU:*", "framework's choice"),
        ([CPU, GPU_FLOAT], {"T": FLOAT}, "", "framework's choice"),
        ([CPU], {}, "/job:localhost/device:CPU:0", "explicit device"),
        ([CPU, GPU_FLOAT], {"T": FLOAT}, "/cpu:0", "explicit device"),
        ([CPU], {}, "/device:GPU:3", "no GPU kernel"),
    ],
)
def test_the_reason_is_the_first_that_the_evidence_shows(
    part: Any, kernels: list[Any], types: dict[str, int], requested: str, reason: str
) -> None:
    why = part("trace.tensorflow_reasons")
    sight = why.Sight("Op", tuple(types.items()), requested, ())
    known = why.Knowledge(kernels, definition(), NAMES.get)
    assert why.explain(sight, known, ["gpu:0"])[0] == reason


def test_without_the_types_nothing_is_said_of_them(part: Any) -> None:
    why = part("trace.tensorflow_reasons")
    known = why.Knowledge([CPU, GPU_FLOAT], definition(), NAMES.get)
    assert why.explain(why.Sight("AddV2", None, "", ()), known, ["gpu:0"]) is None
    assert why.explain(why.Sight("AddV2", None, "/CPU:0", ()), known, ["gpu:0"]) is not None


def test_what_works_on_a_variable_goes_where_that_is(part: Any) -> None:
    why = part("trace.tensorflow_reasons")
    known = why.Knowledge([CPU, GPU_FLOAT], definition(inputs=(RESOURCE,)), NAMES.get)
    sight = why.Sight("ReadVariableOp", (("T", FLOAT),), "", ())
    assert why.explain(sight, known, ["gpu:0"])[0] == "resource on the CPU"


@each(
    ("device", "label"),
    [
        ("/job:localhost/replica:0/task:0/device:GPU:1", "gpu:1"),
        ("/job:localhost/replica:0/task:0/device:CPU:0", "cpu"),
        ("/GPU:0", "gpu:0"),
        ("/device:TPU:2", "tpu:2"),
        ("", "cpu"),
    ],
)
def test_devices_have_one_spelling(part: Any, device: str, label: str) -> None:
    assert part("trace.tensorflow_graphs").label(device) == label


@each(
    ("rewritten", "plain"),
    [
        ("_MklMatMul", "MatMul"),
        ("_MklNativeFusedMatMul", "_FusedMatMul"),
        ("_FusedConv2D", "_FusedConv2D"),
        ("MatMul", "MatMul"),
    ],
)
def test_rewriting_for_the_cpu_does_not_change_an_operations_name(
    part: Any, rewritten: str, plain: str
) -> None:
    assert part("trace.tensorflow_graphs").plain(rewritten) == plain


def test_a_sampled_step_stands_for_the_runs_like_it(part: Any) -> None:
    step = part("trace.tensorflow_session").Step()
    samples = []
    for number in range(1, 101):
        step.runs = number
        if step.is_sample():
            samples.append(number)
    assert samples == [1, 2, 4, 8, 16, 32, 64]
    step.sampled = len(samples)
    step.first = {("MatMul", "cpu"): [2, 1.0]}
    step.later = {("MatMul", "cpu"): [2 * 6, 0.6]}
    (count, seconds) = step.totals()["MatMul", "cpu"]
    assert count == pytest.approx(200)
    assert seconds == pytest.approx(1.0 + 99 * 0.1)


def node(name: str, op: str, device: str, *inputs: str, **texts: str) -> types.SimpleNamespace:
    empty = types.SimpleNamespace(b=False, s=b"", func=types.SimpleNamespace(name=""))
    attributes: dict[str, Any] = collections.defaultdict(lambda: empty)
    attributes.update((key, types.SimpleNamespace(s=text.encode())) for key, text in texts.items())
    return types.SimpleNamespace(name=name, op=op, device=device, input=inputs, attr=attributes)


ON_CPU, ON_GPU = "/device:CPU:0", "/device:GPU:0"


def sent(op: str, name: str, source: str, target: str, *inputs: str) -> types.SimpleNamespace:
    here = source if "Send" in op else target
    ends = {"tensor_name": name, "send_device": source, "recv_device": target}
    return node(f"{name}/{op}", op, here, *inputs, **ends)


def test_a_folded_graph_on_a_gpu_has_one_transfer_and_no_operation(part: Any) -> None:
    """What `session.run(a + b)` of two constants leaves."""
    placed = part("trace.tensorflow_graphs")
    step = part("trace.tensorflow_session").Step()
    graphs = [
        types.SimpleNamespace(
            node=[node("add", "Const", ON_GPU), sent("_Send", "edge", ON_GPU, ON_CPU, "add")]
        ),
        types.SimpleNamespace(
            node=[sent("_Recv", "edge", ON_GPU, ON_CPU), node("r", "_Retval", ON_CPU)]
        ),
    ]
    written = {"add": placed.Written("AddV2", "")}
    nothing = placed.Written("", "")
    placed.add_graphs(step.placement, graphs, {}, lambda name: written.get(name, nothing))
    step.runs = 3
    assert step.totals() == {}
    assert step.placement.folded == {("AddV2", "gpu:0"): 1}
    assert step.moved() == {("gpu:0", "cpu"): [3, None]}
    step.sizes["add", 0] = 8
    assert step.moved() == {("gpu:0", "cpu"): [3, 24]}


def test_a_tensor_in_host_memory_does_not_move(part: Any) -> None:
    placed = part("trace.tensorflow_graphs")
    nodes = [
        sent("_HostSend", "shape", ON_GPU, ON_CPU, "a"),
        sent("_Recv", "shape", ON_GPU, ON_CPU),
        sent("_Send", "axis", ON_CPU, ON_GPU, "b"),
        sent("_HostRecv", "axis", ON_CPU, ON_GPU),
        sent("_Send", "data", ON_CPU, ON_GPU, "c:1"),
        sent("_Recv", "data", ON_CPU, ON_GPU),
    ]
    found = placed.transfers_between([types.SimpleNamespace(node=nodes)])
    assert found == [placed.Transfer("cpu", "gpu:0", "c", 1)]


def test_a_time_known_in_part_is_no_time(part: Any) -> None:
    tally = part("trace.results").Tally()
    tally.add("add", "cpu", 2, 0.5)
    tally.add("mul", "cpu", 2, 0.5)
    tally.add("mul", "cpu", 1)
    tally.add("never", "cpu", 0)
    assert tally.rows() == [
        {"op": "add", "device": "cpu", "count": 2, "seconds": 0.5},
        {"op": "mul", "device": "cpu", "count": 3, "seconds": None},
    ]


class Stretches:
    """A torch that makes as many nodes of autograd's graph as a test says."""

    def __init__(self) -> None:
        self.nodes = 0
        self.autograd = SimpleNamespace(_get_sequence_nr=lambda: self.nodes)
        self.Tensor = SimpleNamespace
        self.version = SimpleNamespace(cuda=None)


def test_samples_of_pytorch_stand_for_the_rests_between_them(part: Any) -> None:
    torch = Stretches()
    watch = part("trace.torch").Watch(torch)

    def see(times: int) -> None:
        for _ in range(times):
            watch.count("aten::relu", (), None, 0.0)
        torch.nodes += times

    watch.opened()
    see(1000)
    watch.closed()
    torch.nodes += 4000
    watch.opened()
    see(500)
    watch.closed()
    torch.nodes += 1000
    totals, exact = watch.totals()
    assert not exact
    assert totals["aten::relu", "cpu"][0] == pytest.approx(1000 + 500 * (1 + 5000 / 500))


def test_without_autograd_the_time_tells_and_a_wrong_cost_does_no_harm(part: Any) -> None:
    watch = part("trace.torch").Watch(Stretches())
    watch.cost = 1e6
    watch.opened()
    watch.closed()
    watch.opened()
    watch.count("aten::relu", (), None, 0.25)
    watch.closed()
    watch.rested.seconds = 1.0
    count, _ = watch.totals()[0]["aten::relu", "cpu"]
    assert count == pytest.approx(1 + 1.0 / 0.25, rel=0.05)


@dataclass(frozen=True)
class Device:
    type: str
    index: int


@each(
    ("result", "arguments", "label"),
    [
        ("cpu", ("cpu", "cpu"), "cpu"),
        ("cpu", ("cuda",), "gpu:0"),
        ("cpu", ("cpu", "cuda"), "gpu:0"),
        ("cuda", ("cpu",), "gpu:0"),
    ],
)
def test_a_copy_from_a_gpu_is_the_gpus_work(
    part: Any, result: str, arguments: tuple[str, ...], label: str
) -> None:
    torch = Stretches()
    torch.version.cuda = "12.8"
    watch = part("trace.torch").Watch(torch)
    watch.opened()
    tensors = [SimpleNamespace(device=Device(kind, 0)) for kind in (result, *arguments)]
    watch.count("aten::_to_copy", tensors[1:], tensors[0], 0.0)
    assert list(watch.totals()[0]) == [("aten::_to_copy", label)]


def test_a_short_program_of_pytorch_is_counted_exactly(part: Any) -> None:
    watch = part("trace.torch").Watch(Stretches())
    watch.opened()
    for _ in range(7):
        watch.count("aten::relu", (), None, 0.5)
    assert watch.totals() == ({("aten::relu", "cpu"): [7.0, 3.5]}, True)
