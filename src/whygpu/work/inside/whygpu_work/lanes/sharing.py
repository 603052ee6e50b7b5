"""What all lanes have in common: the first lane leaves its weights and inputs for the others."""

import json
import os
import shutil

import numpy

from ..loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class Shared(object):
    """A folder with bundles of arrays, each written once and whole."""

    def __init__(self, folder: str, lane: str) -> None:
        self._folder = folder
        self._lane = lane

    def bundle(self, name: str) -> "tuple[list[numpy.ndarray], dict[str, Any]] | None":
        """(arrays, facts) that an earlier lane left; None where none did."""
        folder = os.path.join(self._folder, name)
        if not os.path.isdir(folder):
            return None
        with open(os.path.join(folder, "facts.json")) as stream:
            facts = json.load(stream)
        arrays = [
            numpy.load(os.path.join(folder, "%05d.npy" % i), allow_pickle=False)
            for i in range(facts["count"])
        ]
        return arrays, facts

    def leave(self, name: str, arrays: "Sequence[numpy.ndarray]", **facts: "Any") -> None:
        folder = os.path.join(self._folder, name)
        unfinished = folder + ".part"
        shutil.rmtree(unfinished, ignore_errors=True)
        os.makedirs(unfinished)
        for i, array in enumerate(arrays):
            numpy.save(os.path.join(unfinished, "%05d.npy" % i), array, allow_pickle=False)
        facts.update(count=len(arrays), lane=self._lane)
        with open(os.path.join(unfinished, "facts.json"), "w") as stream:
            json.dump(facts, stream)
        os.rename(unfinished, folder)


def weights_for(
    shared: "Shared",
    names: "Sequence[str]",
    own: "Any",
    trainable: "Sequence[bool]",
    take_weights: bool,
) -> "Any":
    """The weights that a lane is to be given; None where it goes on with its own.

    `take_weights`: those of the first lane, whatever this one has.
    """
    left = shared.bundle("weights")
    if left is None:
        shared.leave("weights", own)
        return None
    theirs, facts = left
    check_shapes(names, own, theirs, facts["lane"])
    if take_weights:
        return theirs
    chosen, changed = settled(own, theirs, trainable)
    return chosen if changed else None


def settled(own: "Any", theirs: "Any", trainable: "Sequence[bool]") -> "tuple[Any, bool]":
    """(the arrays that a lane goes on with, whether some of them are not its own).

    A program that draws its weights at random draws other ones on other devices and backends, and
    is given those of the first lane. One that has most of its trained weights in common with the
    first lane keeps its own: what is not in common then is a difference of the program's, which is
    to be found. The same numbers in another order, such as a transposed matrix, are no accident
    either.
    """
    telling = [i for i, flag in enumerate(trainable) if flag and not _constant(own[i], theirs[i])]
    same = [i for i in telling if numpy.array_equal(own[i], theirs[i])]
    if not telling or 2 * len(same) > len(telling):
        return own, False
    return [mine if _reordered(mine, his) else his for mine, his in zip(own, theirs)], True


def check_shapes(names: "Sequence[str]", own: "Any", theirs: "Any", lane: str) -> None:
    """The same weights can only be set where there are the same to be set."""
    if len(own) != len(theirs):
        raise Unusable("it has %d weights here and %d in lane %s" % (len(own), len(theirs), lane))
    for name, mine, his in zip(names, own, theirs):
        if mine.shape != his.shape:
            raise Unusable(
                "the weight %s is of shape %s here and %s in lane %s"
                % (name, mine.shape, his.shape, lane)
            )


def _constant(*arrays: "numpy.ndarray") -> bool:
    """Such as biases of zeros: the same everywhere without saying anything."""
    return all(array.size == 0 or (array == array.flat[0]).all() for array in arrays)


def _reordered(one: "numpy.ndarray", other: "numpy.ndarray") -> bool:
    if _constant(one) or numpy.array_equal(one, other):
        return False
    return bool((numpy.sort(one, axis=None) == numpy.sort(other, axis=None)).all())
