"""Each step of a lane by itself: what float64 makes of the very input that the lane gave it.

The float64 model is run with every step's result replaced by what the lane has recorded for that
step. So each step gets the lane's own numbers, whatever went wrong before it, and what it makes of
them in float64 is what the lane's record is held against. A fault shows at the step that has it and
at no other, and a deep network's habit of amplifying rounding shows nowhere.

`tools` knows the framework; see tools_keras.py for what is asked of it.
"""

import collections
import json
import os
import zlib

import numpy

from . import floats, rounding

LARGEST_MOVED = 1 << 20
"""Weights of more numbers are not moved: what is multiplied with them is, and that moves products
as much."""
CLOSE = 0.05
"""Two results that differ by less than this part of their size answer to rounding alike."""
INDEX = "steps.json"

StepError = collections.namedtuple("StepError", "gap own products")
"""What a lane has less what float64 has, see _gap; what rounding explains, see Allowance."""


class ErrorWriter(object):
    """What was found of one lane, on disk: all of it would be too much to hold."""

    def __init__(self, folder):
        self._folder = folder
        self._steps = []
        os.makedirs(folder, exist_ok=True)

    def found(self, name, precision, errors):
        file = "{:05d}.npz".format(len(self._steps))
        arrays = {}
        for number, error in enumerate(errors):
            for field, array in zip(StepError._fields, error):
                if array is not None:
                    arrays["{}{}".format(field, number)] = _single(array)
        numpy.savez(os.path.join(self._folder, file), **arrays)
        entry = {"name": name, "precision": precision, "file": file, "outputs": len(errors)}
        self._steps.append(dict(entry, unknown=""))

    def unknown(self, name, precision, reason):
        entry = {"name": name, "precision": precision, "file": None, "outputs": 0}
        self._steps.append(dict(entry, unknown=reason))

    def close(self):
        with open(os.path.join(self._folder, INDEX), "w") as stream:
            json.dump(self._steps, stream)


def _single(array):
    """In float32, which is enough to tell an error from its allowance."""
    largest = numpy.finfo(numpy.float32).max
    with numpy.errstate(all="ignore"):
        finite = numpy.isfinite(array)
        return numpy.where(finite, numpy.clip(array, -largest, largest), array).astype("float32")


class Errors(object):
    """What an ErrorWriter wrote."""

    def __init__(self, folder):
        self._folder = folder
        with open(os.path.join(folder, INDEX)) as stream:
            self.steps = collections.OrderedDict((step["name"], step) for step in json.load(stream))

    def read(self, name):
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
    """Does the steps of a float64 model for a lane: with its numbers, and noting its errors."""

    def __init__(self, tools, lane, writer, before=None):
        """`lane` is the Recording of it. `before` is (Recording, Errors) of another lane: what
        rounding explains there it explains here, where the two are close."""
        self._tools = tools
        self._lane = lane
        self._steps = {step.name: step for step in lane.steps}
        self._writer = writer
        self._before = before

    def __call__(self, name, layer, compute, args, kwargs):
        step = self._steps.get(name)
        if step is None:
            # The lane took another way; what it did instead is compared by name.
            return compute(args, kwargs)
        lane = [widened(self._lane, output) for output in step.outputs]
        try:
            result = compute(args, kwargs)
            exact = [self._tools.to_numpy(tensor) for tensor in self._tools.flat(result)]
        except Exception as error:  # whatever a layer may raise that does not know float64
            words = "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0][:200])
            self._writer.unknown(name, step.precision, "float64 does not work in it: " + words)
            made = [self._tools.tensor(array) for array in lane]
            return made[0] if len(made) == 1 else made
        if [array.shape for array in exact] != [array.shape for array in lane]:
            self._writer.unknown(name, step.precision, "its outputs have other shapes in float64")
            return result
        self._note(step, layer, compute, (args, kwargs), exact, lane)
        waiting = iter(lane)
        return self._tools.replaced(result, lambda tensor: self._tools.like(tensor, next(waiting)))

    def _note(self, step, layer, compute, given, exact, lane):
        precision = step.precision if step.precision in floats.FORMATS else "float32"
        if self._tools.keeps_state(layer):
            self._writer.unknown(step.name, precision, "it keeps a state from call to call")
            return
        allowances = self._known_allowances(step, exact)
        if allowances is None:
            allowances = self._allowances(step.name, layer, compute, given, exact, precision)
        errors = []
        for values, recorded, allowed in zip(exact, lane, allowances):
            errors.append(StepError(_gap(recorded, values), allowed.own, allowed.products))
        self._writer.found(step.name, precision, errors)

    def _known_allowances(self, step, exact):
        """The other lane's, if it is about where this one is."""
        if self._before is None:
            return None
        recording, errors = self._before
        known = errors.read(step.name) if step.name in errors.steps else []
        there = [output in recording.tensors for output in step.outputs]
        if len(known) != len(exact) or not all(there):
            return None
        same_kind = errors.steps[step.name]["precision"] == step.precision
        close = [_close(widened(recording, out), here) for out, here in zip(step.outputs, exact)]
        if not same_kind or not all(close):
            return None
        return [rounding.Allowance(error.own, error.products) for error in known]

    def _allowances(self, name, layer, compute, given, exact, precision):
        facts = self._tools.facts(layer, given, exact)
        size = rounding.amplitude(precision, facts.reduction)
        # The same numbers in every run, whatever the order of the steps.
        random = numpy.random.RandomState(zlib.crc32(name.encode("utf-8")))
        samples = [
            self._moved_result(layer, compute, given, size, random) for _ in range(rounding.SAMPLES)
        ]
        result = []
        for number, values in enumerate(exact):
            if values.dtype.kind != "f":
                # A whole number is right or it is not.
                result.append(rounding.Allowance(numpy.full(values.shape, 0.5)))
                continue
            spread = rounding.spread(values, [sample[number] for sample in samples])
            result.append(
                rounding.allowance(values, spread, precision, facts.reduction, facts.products)
            )
        return result

    def _moved_result(self, layer, compute, given, size, random):
        tools = self._tools

        def move(tensor):
            array = tools.to_numpy(tensor)
            if array.dtype.kind != "f":
                return tensor
            return tools.like(tensor, rounding.moved(array, size, random))

        args, kwargs = tools.replaced(given, move)
        before = tools.weights(layer)
        tools.set_weights(layer, [_moved_weight(array, size, random) for array in before])
        try:
            return [tools.to_numpy(tensor) for tensor in tools.flat(compute(args, kwargs))]
        finally:
            tools.set_weights(layer, before)


def widened(recording, name):
    """A recorded array as float64, or as it is where it holds no real numbers."""
    array, dtype = recording.array(name), recording.tensors[name].dtype
    return floats.widened(array, dtype) if floats.is_real(dtype) else numpy.array(array)


def _gap(recorded, exact):
    """The difference. Infinite where the lane alone is not finite, NaN where float64 alone is not;
    0 where neither is."""
    with numpy.errstate(all="ignore"):
        gap = recorded.astype(numpy.float64) - exact
    here, there = numpy.isfinite(recorded), numpy.isfinite(exact)
    gap = numpy.where(here | ~there, gap, numpy.inf)
    gap = numpy.where(there | ~here, gap, numpy.nan)
    return numpy.where(here | there, gap, 0.0)


def _close(one, other):
    if one.shape != other.shape or one.dtype.kind != "f":
        return False
    with numpy.errstate(all="ignore"):
        distance = float(((one - other) ** 2).mean()) if one.size else 0.0
        size = float((other**2).mean()) if other.size else 0.0
    return distance <= CLOSE**2 * size


def _moved_weight(array, size, random):
    if array.dtype.kind != "f" or array.size > LARGEST_MOVED:
        return array
    return rounding.moved(array, size, random)
