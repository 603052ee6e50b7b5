"""Training in float64, and how far rounding changes its results.

A training step has no layers that could be examined one by one: it runs as a whole, and again with
weights and inputs changed as much as rounding changes the largest sums in it, times the number of
steps; see rounding.py.
"""

import numpy

from . import floats, rounding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..lanes.recording import Recording, Writer


class Kept(object):
    """Like a Writer, but keeps the arrays in memory."""

    def __init__(self) -> None:
        self.tensors: "list[tuple[str, str, numpy.ndarray]]" = []

    def tensor(
        self, name: str, kind: str, array: "numpy.ndarray", dtype: "str | None" = None
    ) -> None:
        self.tensors.append((name, kind, numpy.array(array)))


def record(lifted: "Any", writer: "Writer", steps: int, lane: "Recording") -> None:
    """`lane` is the Recording of a lane, for the sizes of its layers.

    Nothing is written if the training draws random numbers, which would look like rounding.
    """
    precision, reduction = _sums(lane)
    size = rounding.amplitude(precision, reduction)
    exact = _trained(lifted, steps)
    if not _same(exact, _trained(lifted, steps)):
        return
    random = numpy.random.RandomState(0)
    samples = []
    for _ in range(rounding.SAMPLES):
        samples.append(_trained(lifted, steps, lambda array: _moved(array, size, random)))
    floors = _floors(exact, {"gradient": size}, floats.FORMATS[precision].unit)
    chance = _left_to_chance(exact, floors)
    furthest = _furthest(exact, _trained(lifted, 0)) if chance else 0.0
    trained = {_weight(name) for name, kind, _ in exact if kind == "gradient"}
    aside = min(furthest, _way_of_chance(exact, lane, chance))
    for number, (name, kind, values) in enumerate(exact):
        moved = [sample[number][2] for sample in samples]
        spread = numpy.maximum(rounding.spread(values, moved), floors[_layer(name, kind)])
        if kind == "weight" and _weight(name) in chance:
            spread = numpy.where(chance[_weight(name)], numpy.maximum(spread, furthest), spread)
        elif kind == "weight" and _weight(name) not in trained:
            # An average of layer results, which follows the biases that randomness has moved.
            spread = numpy.maximum(spread, aside)
        writer.tensor(name, kind, values, rounding=(spread, reduction, precision))


def _left_to_chance(tensors: "Any", floors: "Any") -> "dict[str, Any]":
    """By weight: the elements whose gradient is only the rounding error of a sum that cancels out.
    An optimizer such as Adam makes full steps of it, in a random direction."""
    found = {}
    for name, kind, values in tensors:
        if kind == "gradient":
            places = numpy.abs(values) <= rounding.SAFETY * floors[_layer(name, kind)]
            if places.any():
                found[_weight(name)] = places
    return found


def _furthest(after: "Any", before: "Any") -> float:
    """The largest change of a weight by training."""
    start = {name: values for name, kind, values in before if kind == "weight"}
    ways = [
        float(numpy.max(numpy.abs(values - start[name])))
        for name, _, values in after
        if name in start and values.size and values.dtype.kind == "f"
    ]
    return max(ways or [0.0])


def _way_of_chance(exact: "Any", lane: "Recording", chance: "Any") -> float:
    """How far randomness moved a lane's weights: not at all with plain SGD, far with Adam."""
    ways = [0.0]
    for name, kind, values in exact:
        places = chance.get(_weight(name)) if kind == "weight" and name in lane.tensors else None
        if places is not None and lane.array(name).shape == values.shape:
            wide = floats.widened(numpy.asarray(lane.array(name)), lane.tensors[name].dtype)
            ways.append(float(numpy.max(numpy.abs(wide - values)[places])))
    return max(ways)


def _weight(name: str) -> str:
    """The weight of a tensor: "gradient conv/bias" and "weight conv/bias" have the same."""
    return name.partition(" ")[2]


def _floors(tensors: "Any", units: "dict[str, float]", unit: float) -> "dict[Any, float]":
    """What rounding does to the largest number of each layer: one of `units`, by kind, or `unit`.

    A gradient can be a sum that cancels out whatever the inputs are, as that of a bias which the
    softmax of an attention or a batch normalization does not see. Moving inputs does not show what
    is left of its terms.
    """
    floors: "dict[tuple[str, str], float]" = {}
    for name, kind, values in tensors:
        if values.dtype.kind == "f" and values.size:
            largest = float(numpy.max(numpy.abs(values))) * units.get(kind, unit)
            group = _layer(name, kind)
            floors[group] = max(floors.get(group, 0.0), largest)
        floors.setdefault(_layer(name, kind), 0.0)
    return floors


def _layer(name: str, kind: str) -> "tuple[str, str]":
    """What a tensor shares with those of the same layer: all but the last part of its name, which
    Keras divides by "/" and PyTorch by "."."""
    return kind, name.replace("/", ".").rpartition(".")[0] or name


def _trained(
    lifted: "Any", steps: int, change: "Callable[[Any], Any] | None" = None
) -> "list[Any]":
    kept = Kept()
    lifted.train(kept, steps, change)
    return kept.tensors


def _same(one: "list[Any]", other: "list[Any]") -> bool:
    pairs = zip(one, other)
    return len(one) == len(other) and all(floats.same(a[2], b[2]) for a, b in pairs)


def _moved(array: "numpy.ndarray", size: float, random: "Any") -> "numpy.ndarray":
    return rounding.moved(array, size, random) if array.dtype.kind == "f" else array


def _sums(lane: "Recording") -> "tuple[str, int]":
    """The coarsest precision of the layers, and how many numbers are summed on the way at most.

    A gradient is summed over all places that share a weight, and errors of every step add up.
    """
    precisions = [step.precision for step in lane.steps if step.precision in floats.FORMATS]
    precision = max(precisions or ["float32"], key=lambda name: floats.FORMATS[name].unit)
    longest = 1
    for tensor in lane.tensors.values():
        shape = lane.array(tensor.name).shape
        if len(shape) > 1 and tensor.kind in ("layer", "weight"):
            size = int(numpy.prod(shape, dtype=numpy.int64))
            longest = max(longest, size // max(1, shape[-1]))
    return precision, longest * max(1, len(lane.steps))
