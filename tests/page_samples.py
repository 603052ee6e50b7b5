"""An answer of every kind that has a page: as real machines and programs give them, or hostile."""

from __future__ import annotations

import pathlib
from typing import Any

import whygpu
from tests.comparer.kit import FINE, TIMING, WRONG, errors, judged, layer, pair, run
from tests.kit import machine
from tests.samples import sample
from whygpu.model.batch import BatchResult, Gauge, Trial
from whygpu.model.comparison import ComparisonReport
from whygpu.model.estimate import BatchMemory, MemoryEstimate, MemoryPart, MemoryRoom
from whygpu.model.fix import Attempt, FixAnswer, FixStep
from whygpu.model.memory_use import Curve, HostMemory, Point
from whygpu.model.observed import Known
from whygpu.model.overview import Overview
from whygpu.model.policy import DevicePolicy, PartState, RunReport

MACHINES = pathlib.Path(__file__).parent / "machines"
LOGS = pathlib.Path(__file__).parent / "logs"
BROKEN = """
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
[probes.tensorflow]
operations = [{kind = "cpu"}]
"""
LOG = """\
2023-08-08 08:00:01.000000: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could \
not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: \
No such file or directory
2023-08-08 08:00:01.000000: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1850] Cannot dlopen \
some GPU libraries. Skipping registering GPU devices...
"""
PROGRAM = """\
import tensorflow as tf

with tf.Session() as session:
    with tf.device("/gpu:7"):
        a = tf.constant(1.0)
"""
GIB = 1 << 30


def realistic(folder: pathlib.Path) -> dict[str, Any]:
    """By the name of the page."""
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "requirements.txt").write_text("tensorflow==2.9\ntorch\n", encoding="utf-8")
    held = whygpu.load_snapshot(str(MACHINES / "h200-memory-held.json"))
    broken = whygpu.diagnose(machine(BROKEN))
    holders = whygpu.memory_holders(machine=held)
    plan = whygpu.plan("tensorflow", "torch", machine=held)
    return {
        "check-broken": broken,
        "check-healthy": whygpu.diagnose(machine()),
        "check-unseen": whygpu.diagnose(machine("nothing_seen = true")),
        "compare": comparison(),
        "diff": whygpu.diff(
            str(MACHINES / "h200-healthy-keras-torch.json"),
            str(MACHINES / "h200-keras-jax-on-cpu.json"),
        ),
        "explain": whygpu.explain(LOG),
        "fix": _fix(),
        "fleet-explain": whygpu.fleet_explain([str(LOGS)]),
        "fleet-report": whygpu.fleet_report([str(MACHINES)]),
        "lint": whygpu.lint([str(folder / "train.py")]),
        "memory": holders,
        "memory-estimate": _estimate(),
        "memory-find": _search(),
        "plan": plan,
        "plan-file": whygpu.plan_from(str(folder / "requirements.txt"), machine=held),
        "plan-why-not": whygpu.why_not("tensorflow==2.9", machine=held),
        "report": Overview(broken, holders, plan),
        "run": run_report(),
    }


def hostile(kind: type, text: str) -> Any:
    """A value with this text in every field that may hold any."""
    value: Any = sample(kind, text)
    if kind is RunReport:
        return value._replace(trace=trace(text))
    if kind is MemoryEstimate:
        return value._replace(framework="torch")
    if hasattr(value, "machine"):
        linux = value.machine._replace(platform=Known("linux_x86_64", text))
        return value._replace(machine=linux)
    return value


def trace(name: str) -> dict[str, Any]:
    """One operation of this name on a device of this name."""
    op = {"op": name, "device": name, "count": 1, "seconds": None}
    return {
        "ops": [op, {**op, "op": f"tf.function {name}"}],
        "on_cpu_because": [{"op": name, "reason": name, "detail": name}],
        "notes": [name],
        "folded": [op],
        "transfers": [{"source": name, "target": name, "count": 1, "bytes": None}],
        "nothing_because": [name],
    }


def run_report() -> RunReport:
    points = tuple(Point(second / 4, second * 2**26, second * 2**26) for second in range(1, 60))
    counts = {"aten::mm": 4200, "aten::add": 2100, "aten::relu": 900, "aten::topk": 60}
    ops = [
        {"op": name, "device": "cpu" if name == "aten::topk" else "gpu:0", "count": count}
        for name, count in counts.items()
    ]
    return RunReport(
        exit_code=0,
        device="gpu",
        fallback=False,
        policy=DevicePolicy(),
        repairs=(),
        peak_memory_bytes=Known(4 * GIB, "the allocator"),
        records=(),
        traced=True,
        in_force=(PartState("cudnn", "torch", "in-force", (), (), ""),),
        trace={
            **trace("aten::topk"),
            "ops": [{**op, "seconds": 0.25} for op in ops],
            "folded": [],
            "on_cpu_because": [
                {"op": "aten::topk", "reason": "no kernel", "detail": "it has no GPU kernel here"}
            ],
            "transfers": [{"source": "cpu", "target": "gpu:0", "count": 60, "bytes": 2**28}],
        },
        host_memory=HostMemory(
            Curve("kernel", "host", 0.0, points), 16 * GIB, "the computer's memory", None, None
        ),
    )


def comparison() -> ComparisonReport:
    """A GPU that computes one layer wrongly, and is slower than the CPU."""
    layers = [layer("conv", FINE), layer("norm", WRONG), layer("dense")]
    slow = TIMING._replace(seconds=(2.0, 2.1, 2.2), first_call_seconds=9.0)
    return judged(
        [run("cpu", timing=TIMING), run("gpu", timing=slow)],
        [pair("cpu", "gpu", layers)],
        layers={"cpu": errors("cpu", norm=FINE), "gpu": errors("gpu", norm=WRONG)},
    )


def _fix() -> FixAnswer:
    before = whygpu.diagnose(machine(BROKEN))
    root = before.root_causes[0]
    steps = [FixStep(root.code, root.cause, root.subject, remedy) for remedy in root.remedies]
    return FixAnswer(
        environment="~/venv",
        before=before,
        steps=(steps[-1],),
        by_hand=(steps[0]._replace(by_hand="it starts a program"),),
        attempts=(Attempt(steps[0], "no-effect", "WG203", 12.0),),
        after=whygpu.diagnose(machine()),
    )


def _estimate() -> MemoryEstimate:
    parts = (
        MemoryPart("weights", GIB, "measured", ""),
        MemoryPart("activations", 6 * GIB, "modelled", "the working memory of cuDNN is a guess"),
    )
    at = BatchMemory(32, 7 * GIB, 7 * GIB, 7 * GIB, 7 * GIB, "backward", parts)
    room = MemoryRoom("on the RTX 4090", 24 * GIB, (8, 9), "")
    return MemoryEstimate(
        *("net.py:net", "torch", "train", False, "fits", "", at, GIB // 2, room, at, 33, ()),
        notes=("the loss is assumed to be a cross-entropy",),
        source="PyTorch 2.13.0",
        traceback="",
        seconds=1.0,
    )


def _search() -> BatchResult:
    def trial(batch: int, amount: int) -> Trial:
        gauge = Gauge("gpu", GIB, amount, amount, 8 * GIB)
        return Trial(batch, "fits", "", (gauge,), 3, 0.1, 4.0)

    trials = [trial(8, 2 * GIB), trial(64, 4 * GIB), trial(190, 7 * GIB)]
    too_big = Trial(256, "does-not-fit", "CUDA out of memory", (), 0, None, 4.0)
    return BatchResult(
        *("train.py:step", "found", 190, 190, 256, 210, 0.0, "NVIDIA RTX A6000"),
        limit=trials[-1].gauges[0],
        frameworks=(("torch", "2.13.0"),),
        trials=(*trials, too_big),
        traceback="",
        notes=(),
        seconds=30.0,
    )
