"""Compares what lanes have recorded: each with itself, with the reference, and with each other.

DifferencesRequest of whygpu.model.task_wire says what is in the request; its folders are written by
recording.py and local.py. What is found goes to a file, one FoundEntry a line.
"""

import itertools
import json

import numpy

from ..judging import differences, discrete, floats, layer_settings, local, rounding
from ..lanes.recording import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from ..main import Channel

MOST_STEPS = 16
"""The number of last steps of a model among which its outputs are searched."""
LARGEST_EXPLAINED = 1 << 24
"""Choices among more numbers than this are not traced to their source."""


class Lane(object):
    def __init__(self, request: "dict[str, Any]") -> None:
        self.name = request["name"]
        self.runs = [Recording(folder) for folder in request["runs"]]
        self.first = self.runs[0]
        self.local: "Any" = local.Errors(request["local"]) if request["local"] else None


def run(request: "dict[str, Any]", channel: "Channel") -> None:
    with open(request["found"], "w") as stream:
        for found in all_differences(request, channel):
            stream.write(json.dumps(found) + "\n")


def all_differences(request: "dict[str, Any]", channel: "Channel") -> "Iterator[dict[str, Any]]":
    lanes = [Lane(each) for each in request["lanes"]]
    reference = Recording(request["reference"]) if request["reference"] else None
    for lane in lanes:
        channel.tell("comparing {} with itself".format(lane.name))
        about = {"lane": lane.name}
        for other in lane.runs[1:]:
            yield dict(about, kind="own", tensors=own_differences(lane, other, reference))
        if reference is not None:
            tensors = output_differences(lane.first, reference, reference)
            yield dict(about, kind="reference", tensors=tensors)
        if lane.local is not None:
            yield dict(about, kind="layer-errors", errors=layer_errors(lane))
        if lane.first.steps:
            yield dict(about, kind="whole", outputs=whole_outputs(lane.first))
    for a, b in itertools.combinations(lanes, 2):
        channel.tell("comparing {} with {}".format(a.name, b.name))
        yield {
            "kind": "pair",
            "a": a.name,
            "b": b.name,
            "outputs": output_differences(a.first, b.first, reference),
            "layers": layer_differences(a, b),
        }


def own_differences(
    lane: "Lane", other: "Recording", reference: "Recording | None"
) -> "list[dict[str, Any]]":
    """Only what differs. Before the first such step everything is the same, also its inputs, so the
    rounding of that step alone must explain the whole difference."""
    found: "list[dict[str, Any]]" = []
    for name in sorted(_names(lane.first, other), key=lambda name: not _is_step(lane.first, name)):
        if _in_both(lane.first, other, name) and lane.first.shares(name, other):
            continue
        made = tensor_difference(lane.first, other, name)
        if made["how"] != "not-at-all" and not made["unequal"]:
            continue
        if not found and lane.local is not None:
            made["units"] = _units_in_step(lane, other, name)
        elif made["kind"] != "layer":
            made["units"] = _units_of_output(lane.first, other, name, reference)
        found.append(made)
    return found


def _is_step(recording: "Recording", name: str) -> bool:
    return name in recording.tensors and recording.tensors[name].kind == "layer"


def _units_in_step(lane: "Lane", other: "Recording", name: str) -> "dict[str, float] | None":
    for step in lane.first.steps:
        errors = lane.local.read(step.name) if step.name in lane.local.steps else []
        places = [output for output in step.outputs if _is_real(lane.first, output)]
        if name in places and len(places) == len(errors):
            error = errors[places.index(name)]
            allowed = rounding.Allowance(error.own, error.products)
            return allowed.units(_gap(lane.first, other, name))
    return None


def output_differences(
    one: "Recording", other: "Recording", reference: "Recording | None"
) -> "list[dict[str, Any]]":
    """For everything but layers: outputs, recorded arrays, losses, gradients, weights."""
    found = []
    for name in _names(one, other):
        made = tensor_difference(one, other, name)
        if made["kind"] == "layer":
            continue
        made["units"] = _units_of_output(one, other, name, reference)
        if made["how"] == "exactly" and made["unequal"]:
            made["follows"], made["margin"] = _source(one, other, name)
        found.append(made)
    return found


def _units_of_output(
    one: "Recording", other: "Recording", name: str, reference: "Recording | None"
) -> "dict[str, float] | None":
    """If the reference says how far rounding changes an output."""
    if reference is None or name not in reference.tensors or not _in_both(one, other, name):
        return None
    known = reference.rounding(name)
    sides = (one, other, reference)
    if (
        known is None
        or len({side.array(name).shape for side in sides}) > 1
        or not all(_is_real(side, name) for side in sides)
    ):
        return None
    spread, reduction, precision = known
    exact = _wide(reference, name)
    allowed = rounding.allowance(exact, numpy.asarray(spread), precision, reduction, True)
    return allowed.units(_gap(one, other, name))


def tensor_difference(one: "Recording", other: "Recording", name: str) -> "dict[str, Any]":
    if not _in_both(one, other, name):
        present = (one if name in one.tensors else other).tensors[name]
        missing = differences.compare(name, present.kind, _NOTHING, "", _NOTHING, "")
        side, recording = ("a", one) if name in one.tensors else ("b", other)
        missing["dtype_" + side] = present.dtype
        missing["shape_" + side] = list(recording.array(name).shape)
        missing["how"] = "not-at-all"
        return missing
    a, b = one.tensors[name], other.tensors[name]
    return differences.compare(name, a.kind, one.array(name), a.dtype, other.array(name), b.dtype)


_NOTHING = numpy.zeros((), dtype=bool)


def _source(one: "Recording", other: "Recording", name: str) -> "tuple[str, float | None]":
    """The array that integers or booleans were computed from, if it was recorded as well."""
    choices = (numpy.asarray(one.array(name)), numpy.asarray(other.array(name)))
    candidates = []
    for candidate in _names(one, other):
        if not _in_both(one, other, candidate) or not _is_real(one, candidate):
            continue
        arrays = [side.array(candidate) for side in (one, other)]
        if arrays[0].shape == arrays[1].shape and arrays[0].size <= LARGEST_EXPLAINED:
            wide = [_wide(side, candidate) for side in (one, other)]
            candidates.append((candidate, wide[0], wide[1]))
    return discrete.source_of(choices, candidates)


def whole_outputs(recording: "Recording") -> "list[dict[str, Any]]":
    """Each output against what a step gave that is nearest to it, of those of its shape.

    Steps may have been recorded for a part of the examples only.
    """
    steps = [output for step in recording.steps for output in step.outputs]
    found = []
    for name, tensor in recording.tensors.items():
        if tensor.kind != "output" or not _is_real(recording, name):
            continue
        output = recording.array(name)
        alike = [
            step
            for step in steps
            if _is_real(recording, step) and _is_of(recording.array(step), output)
        ]
        compared = [_against_step(recording, name, step) for step in alike[-MOST_STEPS:]]
        if compared:
            found.append(min(compared, key=_distance))
    return found


def _is_of(step: "Any", output: "Any") -> bool:
    """Whether a step's array can be the first rows of an output."""
    if not output.shape or len(step.shape) != len(output.shape):
        return step.shape == output.shape
    return step.shape[1:] == output.shape[1:] and 0 < len(step) <= len(output)


def _against_step(recording: "Recording", name: str, step: str) -> "dict[str, Any]":
    whole, part = recording.array(name), recording.array(step)
    rows = whole[: len(part)] if part.shape else whole
    types = [recording.tensors[each].dtype for each in (name, step)]
    made = differences.compare(name, "output", rows, types[0], part, types[1])
    return {"output": name, "step": step, "difference": made}


def _distance(found: "dict[str, Any]") -> "tuple[int, float]":
    made = found["difference"]
    return (made["not_finite_in_one"], made["rms"] or 0.0)


def layer_errors(lane: "Lane") -> "list[dict[str, Any]]":
    """Every layer of a lane compared with float64 on the same input."""
    found = []
    for name, step in lane.local.steps.items():
        errors = lane.local.read(name)
        if not errors:
            continue
        gaps = [error.gap.astype(numpy.float64) for error in errors]
        allowances = [rounding.Allowance(error.own, error.products) for error in errors]
        found.append(
            {
                "layer": name,
                "lane": lane.name,
                "precision": step["precision"],
                "max_abs": max(_largest(gap) for gap in gaps),
                "units": _worst_units(allowances, gaps),
                "not_finite": sum(int(numpy.isinf(gap).sum()) for gap in gaps),
                "finite_alone": sum(int(numpy.isnan(gap).sum()) for gap in gaps),
            }
        )
    return found


def layer_differences(a: "Lane", b: "Lane") -> "list[dict[str, Any]]":
    found = []
    steps = [{step.name: step for step in lane.first.steps} for lane in (a, b)]
    names = list(steps[0]) + [name for name in steps[1] if name not in steps[0]]
    for name in names:
        one, other = steps[0].get(name), steps[1].get(name)
        present: "Any" = one or other
        made = {
            "layer": name,
            "kind": present.kind,
            "tensors": [tensor_difference(a.first, b.first, output) for output in present.outputs],
            "local": None,
            "local_unknown": "",
            "settings": [],
            "weights_differ": False,
        }
        if one is None or other is None:
            lane = a if one is None else b
            made["local_unknown"] = "{} has no such layer".format(lane.name)
        else:
            made["local"], made["local_unknown"] = local_difference(a, b, name)
            made["settings"] = layer_settings.differences(one.settings, other.settings)
            made["weights_differ"] = one.weights != other.weights
        found.append(made)
    return found


def local_difference(a: "Lane", b: "Lane", name: str) -> "tuple[dict[str, Any] | None, str]":
    """Two lanes in one step, without the difference of their inputs; or None and the reason."""
    pairs = []
    for lane in (a, b):
        step = lane.local.steps.get(name) if lane.local is not None else None
        if step is None or step["unknown"]:
            return None, step["unknown"] if step else "it has no float64 reference"
        pairs.append(lane.local.read(name))
    one, other = pairs
    if [error.gap.shape for error in one] != [error.gap.shape for error in other]:
        return None, "its outputs have other shapes"
    if not one:
        return None, "it returns no floating-point numbers"
    with numpy.errstate(all="ignore"):
        gaps = [p.gap.astype(numpy.float64) - q.gap for p, q in zip(one, other)]
    allowances = [
        rounding.Allowance(p.own, p.products).joined(rounding.Allowance(q.own, q.products))
        for p, q in zip(one, other)
    ]
    ratios = [allowed.units(gap)["own"] for allowed, gap in zip(allowances, gaps)]
    worst = ratios.index(max(ratios))
    place = allowances[worst].worst_place(gaps[worst])
    odd = [
        (numpy.isinf(p.gap) != numpy.isinf(q.gap)) | (numpy.isnan(p.gap) != numpy.isnan(q.gap))
        for p, q in zip(one, other)
    ]
    return {
        "max_abs": max(_largest(gap) for gap in gaps),
        "units": _worst_units(allowances, gaps),
        "not_finite_in_one": sum(int(each.sum()) for each in odd),
        "where": [int(part) for part in numpy.unravel_index(place or 0, gaps[worst].shape)]
        if gaps[worst].size
        else [],
        "code_before": any(lane.local.steps[name].get("between", False) for lane in (a, b)),
    }, ""


def _worst_units(allowances: "Any", gaps: "Any") -> "Any":
    each = [allowed.units(gap) for allowed, gap in zip(allowances, gaps)]
    result = {}
    for name in ("own", "tf32", "bfloat16"):
        known = [units[name] for units in each if units[name] is not None]
        result[name] = max(known) if known else None
    return result


def _largest(gap: "numpy.ndarray") -> "Any":
    finite = numpy.abs(gap[numpy.isfinite(gap)])
    return differences.bounded(finite.max()) if finite.size else 0.0


def _gap(one: "Recording", other: "Recording", name: str) -> "numpy.ndarray":
    with numpy.errstate(all="ignore"):
        return _wide(one, name) - _wide(other, name)


def _wide(recording: "Recording", name: str) -> "numpy.ndarray":
    return floats.widened(numpy.asarray(recording.array(name)), recording.tensors[name].dtype)


def _is_real(recording: "Recording", name: str) -> bool:
    return floats.is_real(recording.tensors[name].dtype)


def _in_both(one: "Recording", other: "Recording", name: str) -> bool:
    return name in one.tensors and name in other.tensors


def _names(one: "Recording", other: "Recording") -> "Any":
    return list(one.tensors) + [name for name in other.tensors if name not in one.tensors]
