"""Whether the outputs of a model follow from its layers, which are recorded separately.

Layers are recorded by a program that gives all of them. A compiler may make something else of the
model alone, and what it gets wrong there shows in no layer. But the recording has the same outputs
in it: if lanes are further apart in the model's outputs than in those, layers do not explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from whygpu.comparer.evidence import Witness, akin
from whygpu.comparer.layer_verdict import Lanes
from whygpu.comparer.output_evidence import AMPLIFIED
from whygpu.comparer.tolerance import LAST_BITS, UNITS, overall
from whygpu.model.comparison import TensorDifference, WholeOutput
from whygpu.model.derived import and_list
from whygpu.model.figures import figure
from whygpu.model.task_wire import PairFound

STRAYS = 16
"""Times the difference in the recording: amplified rounding is about as large in both."""


class Stray(NamedTuple):
    """An output whose difference no layer explains."""

    output: str
    apart: float
    """How far the two lanes are apart in it, as a part of its size."""
    by_layers: float
    """The same, when every layer's result is kept."""
    within: float
    """What rounding explains."""
    off: str | None
    """The lane whose output does not follow from its layers, if it is exactly one of the two."""


def stray(measured: PairFound, lanes: Lanes) -> Stray | None:
    steps = {tensor.name: tensor for layer in measured.layers for tensor in layer.tensors}
    # The lane that is nearer to its own layers says which of them an output is: it comes last.
    surest = sorted((*lanes.whole_a, *lanes.whole_b), key=_distance, reverse=True)
    known = {each.output: each.step for each in surest}
    for each in measured.outputs:
        step = steps.get(known.get(each.name, ""))
        if each.kind != "output" or step is None:
            continue
        apart, by_layers = overall(each) or 0.0, overall(step) or 0.0
        within = STRAYS * max(by_layers, _last_bits([each, *steps.values()], lanes))
        if apart > within:
            return Stray(each.name, apart, by_layers, within, _off(each.name, within, lanes))
    return None


def unfounded(measured: PairFound, lanes: Lanes) -> TensorDifference | None:
    """An output that differs by more than a little and is no layer's result: whether rounding was
    amplified on the way to it is unknown."""
    known = {each.output for each in (*lanes.whole_a, *lanes.whole_b)}
    return next(
        (
            each
            for each in measured.outputs
            if each.kind == "output" and each.name not in known and (overall(each) or 0) > AMPLIFIED
        ),
        None,
    )


def _last_bits(results: Sequence[TensorDifference], lanes: Lanes) -> float:
    """The rounding of any computation, as a part of the size of a result.

    Compilers keep more bits of a result that they need not store: with layers in bfloat16, the
    model alone is rounded less often than the recording.
    """
    types = {name for each in results for name in (each.dtype_a, each.dtype_b)}
    coarse = [UNITS.get(name, 0.0) for name in (*types, lanes.products or "")]
    if lanes.gpu_of_unknown_products:
        coarse.append(UNITS["tf32"])
    return max(LAST_BITS * UNITS["float32"], *coarse)


def _off(output: str, within: float, lanes: Lanes) -> str | None:
    strayed = [
        run.lane.name
        for run, whole in ((lanes.a, lanes.whole_a), (lanes.b, lanes.whole_b))
        if (gap(output, whole) or 0.0) > within
    ]
    return strayed[0] if len(strayed) == 1 else None


def _distance(whole: WholeOutput) -> float:
    return overall(whole.difference) or 0.0


def gap(output: str, whole: Sequence[WholeOutput]) -> float | None:
    """How far a lane's output is from what its layers give, as a part of its size."""
    found = next((each for each in whole if each.output == output), None)
    return overall(found.difference) if found is not None else None


def reasons(found: Stray, lanes: Lanes, witnesses: Sequence[Witness]) -> list[str]:
    reasons = [
        f"{found.output} differs by {_percent(found.apart)} of its size, but only by "
        f"{_percent(found.by_layers)} if each layer's result is kept: no layer explains it"
    ]
    if found.off is None:
        return reasons
    whole = lanes.whole_a if found.off == lanes.a.lane.name else lanes.whole_b
    reasons.append(
        f"on {found.off}, the whole model gives another result than the model with each layer's "
        f"result kept ({_percent(gap(found.output, whole) or 0.0)} apart); on the other lane both "
        "agree: a compiler, or a library that it calls, is wrong, not the program"
    )
    fine = [
        each.run.lane.name
        for each in witnesses
        if akin(each.run, lanes) and _follows(found.output, each.whole, found.within)
    ]
    if fine:
        reasons.append(f"the fault does not occur in {and_list(fine)}")
    return reasons


def _follows(output: str, whole: Sequence[WholeOutput], within: float) -> bool:
    apart = gap(output, whole)
    return apart is not None and apart <= within


def _percent(share: float) -> str:
    return f"{figure(100 * share)} %"
