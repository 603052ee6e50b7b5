"""Judges each step of a lane by itself: it is computed in float64 from the lane's own input.

The float64 model is run with every step's result replaced by what the lane recorded for that step.
So each step gets the lane's own numbers, regardless of errors before it, and its float64 result is
compared with the lane's. A fault shows at the step that causes it and at no other; rounding that a
deep network amplifies does not show.

`tools` knows the framework; see tools_keras.py for what is asked of it.
"""

import collections
import json
import os

import numpy

from . import floats, rounding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, Sequence

    from ..lanes.recording import Recording

LARGEST_MOVED = 1 << 20
"""Larger weights are not changed: their factors are, which changes the products as much."""
CLOSE = 0.05
"""Two results whose relative difference is below this react to rounding in the same way."""
MOVED_AS_BY = 64
"""Numbers are changed as rounding changes a sum of that many products; the effect is then scaled to
the sums of each step."""
CODE_BETWEEN = 256
"""Code of the user between two steps is assumed to sum that many products."""
INDEX = "steps.json"
DRAWS = "its result differs each time: it, or the code before it, uses random numbers"

StepError = collections.namedtuple("StepError", "gap own products")
"""What a lane has less what float64 has, see _gap; what rounding explains, see Allowance."""


class ErrorWriter(object):
    """Writes the errors of one lane to disk: they may not fit into memory."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._steps: "list[dict[str, Any]]" = []
        os.makedirs(folder, exist_ok=True)

    def found(
        self, name: str, precision: str, errors: "Sequence[Any]", between: bool = False
    ) -> None:
        """`between`: code of the user between the layers made an input of this step."""
        file = "{:05d}.npz".format(len(self._steps))
        arrays: "dict[str, Any]" = {}
        for number, error in enumerate(errors):
            for field, array in zip(StepError._fields, error):
                if array is not None:
                    arrays["{}{}".format(field, number)] = _single(array)
        numpy.savez(os.path.join(self._folder, file), **arrays)
        entry = {"name": name, "precision": precision, "file": file, "unknown": ""}
        self._steps.append(dict(entry, outputs=len(errors), between=between))

    def unknown(self, name: str, precision: str, reason: str) -> None:
        entry = {"name": name, "precision": precision, "file": None, "unknown": reason}
        self._steps.append(entry)

    def close(self) -> None:
        with open(os.path.join(self._folder, INDEX), "w") as stream:
            json.dump(self._steps, stream)


def _single(array: "numpy.ndarray") -> "numpy.ndarray":
    """The array in float32, which is precise enough to compare an error with its allowance."""
    largest = numpy.finfo(numpy.float32).max
    with numpy.errstate(all="ignore"):
        finite = numpy.isfinite(array)
        return numpy.where(finite, numpy.clip(array, -largest, largest), array).astype("float32")


class Errors(object):
    """Reads what an ErrorWriter wrote."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        with open(os.path.join(folder, INDEX)) as stream:
            self.steps = collections.OrderedDict((step["name"], step) for step in json.load(stream))

    def read(self, name: str) -> "list[Any]":
        """The StepErrors of a step, one for each of its outputs."""
        step = self.steps[name]
        if step["file"] is None:
            return []
        with numpy.load(os.path.join(self._folder, step["file"])) as arrays:
            fields = [
                [field + str(number) for field in StepError._fields]
                for number in range(step["outputs"])
            ]
            return [
                StepError(*(arrays[name] if name in arrays.files else None for name in names))
                for names in fields
            ]


class Forcing(object):
    """Does the steps of a float64 model for a lane: with its numbers, and noting its errors.

    The model is run once for each of `passes()`: first with the lane's numbers as they are, then
    once more like that, to see which steps give something else each time, then with all numbers
    moved by what rounding may do. In these, each step is given what the code
    before it makes of moved numbers, so that whatever lies between two steps answers to rounding
    too; it is reckoned to the step after it.
    """

    def __init__(
        self,
        tools: "Any",
        lane: "Recording",
        writer: "ErrorWriter",
        inputs: "Any",
        before: "Any" = None,
    ) -> None:
        """`lane` is the Recording of it, `inputs` are the arrays that the model is given. `before`
        is (Recording, Errors) of another lane: what rounding explains there it explains here, where
        the two are close."""
        self._tools = tools
        self._inputs = inputs
        self._lane = lane
        self._recorded = {step.name: step for step in lane.steps}
        self._writer = writer
        self._before = before
        self._done: "dict[str, Any]" = collections.OrderedDict()
        self._random: "Any" = None
        self._again = False
        self._size = rounding.amplitude(_coarsest(lane.steps), MOVED_AS_BY)
        self._given_on: "dict[int, Any]" = {}

    def passes(self) -> "Iterator[None]":
        """Yields once for each time that the model has to be run."""
        yield
        if not all(self._is_known(each) for each in self._done.values()):
            # Random results would change by themselves below, and that would look like rounding.
            self._again = True
            self._given_on.clear()
            yield
            self._again = False
            for number in range(rounding.SAMPLES):
                self._random = numpy.random.RandomState(number)
                self._given_on.clear()
                yield
        for name, each in self._done.items():
            self._write(name, each)

    def __call__(
        self,
        name: str,
        layer: "Any",
        compute: "Callable[[Any, Any], Any]",
        args: "Any",
        kwargs: "Any",
    ) -> "Any":
        step = self._recorded.get(name)
        if step is None:
            # The lane took another path; its steps are compared by name.
            return compute(args, kwargs)
        lane = [widened(self._lane, output) for output in step.outputs]
        if self._again:
            return self._repeated(name, compute, (args, kwargs), lane)
        if self._random is not None:
            return self._moved(name, layer, compute, (args, kwargs), lane)
        try:
            result = compute(args, kwargs)
            exact = [self._tools.to_numpy(tensor) for tensor in self._tools.flat(result)]
        except Exception as error:  # whatever a layer may raise that does not know float64
            words = "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0][:200])
            self._done[name] = _Unknown(step, "float64 does not work in it: " + words, fails=True)
            return self._instead(None, lane)
        if [array.shape for array in exact] != [array.shape for array in lane]:
            self._done[name] = _Unknown(
                step, "its outputs have other shapes in float64", fits=False
            )
            return result
        if self._tools.keeps_state(layer):
            self._done[name] = _Unknown(step, "it keeps a state from call to call")
        else:
            between = self._has_code_before((args, kwargs))
            facts = self._tools.facts(layer, (args, kwargs), exact)
            self._done[name] = _Known(step, exact, lane, facts, between)
        return self._instead(result, lane)

    def _repeated(
        self, name: str, compute: "Callable[[Any, Any], Any]", given: "Any", lane: "Any"
    ) -> "Any":
        """Run the step again with the same numbers: the result must be the same."""
        known = self._done[name]
        result = None if isinstance(known, _Unknown) and known.fails else compute(*given)
        if isinstance(known, _Known):
            now = [self._tools.to_numpy(tensor) for tensor in self._tools.flat(result)]
            if not all(floats.same(*pair) for pair in zip(known.exact, now)):
                self._done[name] = _Unknown(known.step, DRAWS)
        elif not known.fits:
            return result
        return self._instead(result, lane)

    def _moved(
        self,
        name: str,
        layer: "Any",
        compute: "Callable[[Any, Any], Any]",
        given: "Any",
        lane: "Any",
    ) -> "Any":
        """Run the step with all inputs changed; the next step gets a changed result, too."""
        tools, known = self._tools, self._done[name]
        if isinstance(known, _Known):
            args, kwargs = tools.replaced(given, self._move_what_is_new)
            before = tools.weights(layer)
            tools.set_weights(layer, [self._moved_weight(array) for array in before])
            try:
                with tools.rounded_inside(self._moving_inside(known)):
                    result = compute(args, kwargs)
            finally:
                tools.set_weights(layer, before)
            known.add([tools.to_numpy(tensor) for tensor in tools.flat(result)])
        else:
            result = None if known.fails else compute(*given)
            if not known.fits:
                return result
        return self._instead(result, [self._moved_array(array) for array in lane])

    def _instead(self, result: "Any", arrays: "Any") -> "Any":
        """What replaces a result; if there is no result, its structure is unknown."""
        if result is None:
            made = [self._tools.tensor(array) for array in arrays]
            for tensor in made:
                self._given_on[id(tensor)] = tensor
            return made[0] if len(made) == 1 else made
        waiting = iter(arrays)

        def put(tensor: "Any") -> "Any":
            made = self._tools.like(tensor, next(waiting))
            self._given_on[id(made)] = made
            return made

        return self._tools.replaced(result, put)

    def _has_code_before(self, given: "Any") -> bool:
        """Whether code between two steps computed an input of this one."""
        return any(
            id(tensor) not in self._given_on and not self._is_input(self._tools.to_numpy(tensor))
            for tensor in self._tools.flat(given)
        )

    def _is_input(self, array: "numpy.ndarray") -> bool:
        return any(numpy.array_equal(array, given) for given in self._inputs)

    def _move_what_is_new(self, tensor: "Any") -> "Any":
        """Results that were passed on are changed already; the model's own inputs are not."""
        array = self._tools.to_numpy(tensor)
        if id(tensor) in self._given_on or array.dtype.kind != "f":
            return tensor
        return self._tools.like(tensor, self._moved_array(array))

    def _moved_array(self, array: "numpy.ndarray") -> "numpy.ndarray":
        if array.dtype.kind != "f":
            return array
        return rounding.moved(array, self._size, self._random)

    def _moving_inside(self, known: "_Known") -> "Callable[[Any, bool], Any]":
        """For what an operation inside of the step makes: changed as a sum, or as one rounding."""

        def move(array: "numpy.ndarray", is_sum: bool) -> "numpy.ndarray":
            size = self._size if is_sum else self._size * known.one_rounding()
            return rounding.moved(array, size, self._random)

        return move

    def _moved_weight(self, array: "numpy.ndarray") -> "numpy.ndarray":
        return array if array.size > LARGEST_MOVED else self._moved_array(array)

    def _is_known(self, each: "Any") -> bool:
        """Whether the passes of the other lane suffice, so that this step needs none of its own."""
        if isinstance(each, _Unknown):
            return True
        each.allowances = self._others(each)
        return each.allowances is not None

    def _others(self, each: "Any") -> "list[rounding.Allowance] | None":
        """What rounding explains in the other lane, if its result is close to this one."""
        if self._before is None:
            return None
        recording, errors = self._before
        step = each.step
        known = errors.read(step.name) if step.name in errors.steps else []
        there = [output in recording.tensors for output in step.outputs]
        if len(known) != len(each.exact) or not all(there):
            return None
        outputs = zip(step.outputs, each.exact)
        close = [_close(widened(recording, output), exact) for output, exact in outputs]
        if errors.steps[step.name]["precision"] != each.precision or not all(close):
            return None
        return [rounding.Allowance(error.own, error.products) for error in known]

    def _write(self, name: str, each: "Any") -> None:
        if isinstance(each, _Unknown):
            self._writer.unknown(name, each.precision, each.reason)
            return
        allowances = each.allowances or each.measured(self._size)
        errors = [
            StepError(_gap(recorded, exact), allowed.own, allowed.products)
            for recorded, exact, allowed in zip(each.lane, each.exact, allowances)
        ]
        # The lane may run code there that this framework does not.
        between = each.between or each.step.code_before
        self._writer.found(name, each.precision, errors, between)


class _Unknown(object):
    """A step that cannot be judged."""

    def __init__(self, step: "Any", reason: str, fails: bool = False, fits: bool = True) -> None:
        """`fits`: the lane's arrays can stand in for what it gives in float64."""
        self.precision = _precision(step)
        self.reason = reason
        self.fails = fails
        self.fits = fits


class _Known(object):
    """A step with its float64 result."""

    def __init__(self, step: "Any", exact: "Any", lane: "Any", facts: "Any", between: bool) -> None:
        self.step = step
        self.precision = _precision(step)
        self.exact = exact
        self.lane = lane
        self.between = between
        self.allowances = None
        self._spreads = [numpy.zeros(array.shape) for array in exact]
        self._products = facts.products or between
        self._reduction = max(facts.reduction, CODE_BETWEEN) if between else facts.reduction

    def add(self, sample: "Any") -> None:
        """Add the result of a pass with changed numbers."""
        for number, (exact, moved) in enumerate(zip(self.exact, sample)):
            if exact.dtype.kind == "f" and exact.shape == moved.shape:
                further = rounding.spread(exact, [moved])
                self._spreads[number] = numpy.maximum(self._spreads[number], further)

    def one_rounding(self) -> float:
        """The rounding of one number, as a part of that of the sums of this step."""
        one, sums = (rounding.amplitude(self.precision, n) for n in (1, self._reduction))
        return one / sums

    def measured(self, size: float) -> "Any":
        """What rounding explains; `size`: by how much numbers were changed."""
        scale = rounding.amplitude(self.precision, self._reduction) / size
        result = []
        for exact, spread in zip(self.exact, self._spreads):
            if exact.dtype.kind != "f":
                # An integer is either right or wrong.
                result.append(rounding.Allowance(numpy.full(exact.shape, 0.5)))
                continue
            result.append(
                rounding.allowance(
                    exact, scale * spread, self.precision, self._reduction, self._products
                )
            )
        return result


def _precision(step: "Any") -> str:
    return step.precision if step.precision in floats.FORMATS else "float32"


def _coarsest(steps: "Iterable[Any]") -> str:
    known = [_precision(step) for step in steps] or ["float32"]
    return max(known, key=lambda name: floats.FORMATS[name].unit)


def widened(recording: "Recording", name: str) -> "numpy.ndarray":
    """A recorded array as float64; unchanged if it does not hold real numbers."""
    array, dtype = recording.array(name), recording.tensors[name].dtype
    return floats.widened(array, dtype) if floats.is_real(dtype) else numpy.array(array)


def _gap(recorded: "numpy.ndarray", exact: "Any") -> "numpy.ndarray":
    """The difference. Infinite where the lane alone is not finite, NaN where float64 alone is not;
    0 where neither is."""
    with numpy.errstate(all="ignore"):
        gap = recorded.astype(numpy.float64) - exact
    here, there = numpy.isfinite(recorded), numpy.isfinite(exact)
    gap = numpy.where(here | ~there, gap, numpy.inf)
    gap = numpy.where(there | ~here, gap, numpy.nan)
    return numpy.where(here | there, gap, 0.0)


def _close(one: "numpy.ndarray", other: "numpy.ndarray") -> bool:
    with numpy.errstate(all="ignore"):
        return (
            one.shape == other.shape
            and one.dtype.kind == "f"
            and _mean_square(one - other) <= CLOSE**2 * _mean_square(other)
        )


def _mean_square(array: "numpy.ndarray") -> float:
    return float((array**2).mean()) if array.size else 0.0
