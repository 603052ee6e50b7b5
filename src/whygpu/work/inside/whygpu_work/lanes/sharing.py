"""What all lanes share: the first lane saves its weights and inputs for the others."""

import json
import os
import shutil

import numpy

from ..loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class Shared(object):
    """A folder with bundles of arrays, each of which is written once and atomically."""

    def __init__(self, folder: str, lane: str) -> None:
        self._folder = folder
        self._lane = lane

    def bundle(self, name: str) -> "tuple[list[numpy.ndarray], dict[str, Any]] | None":
        """(arrays, facts) that an earlier lane saved; None if there are none."""
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
    """The weights that a lane has to be given; None if it keeps its own.

    `take_weights`: use those of the first lane in any case.
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
    """(the arrays that a lane uses, whether some of them are not its own).

    A program that initializes its weights at random gets other weights on other devices and
    backends, so it is given those of the first lane. One that shares most of its trained weights
    with the first lane keeps its own: the rest is a difference in the program, which must be found.
    The same numbers in another order, such as a transposed matrix, are not a coincidence either.
    """
    telling = [i for i, flag in enumerate(trainable) if flag and not _constant(own[i], theirs[i])]
    same = [i for i in telling if numpy.array_equal(own[i], theirs[i])]
    if not telling or 2 * len(same) > len(telling):
        return own, False
    return [mine if _reordered(mine, first) else first for mine, first in zip(own, theirs)], True


def check_shapes(names: "Sequence[str]", own: "Any", theirs: "Any", lane: str) -> None:
    """Raise Unusable unless both lanes have weights of the same shapes."""
    if len(own) != len(theirs):
        raise Unusable("it has %d weights here and %d in lane %s" % (len(own), len(theirs), lane))
    for name, mine, his in zip(names, own, theirs):
        if mine.shape != his.shape:
            raise Unusable(
                "the weight %s is of shape %s here and %s in lane %s"
                % (name, mine.shape, his.shape, lane)
            )


def _constant(*arrays: "numpy.ndarray") -> bool:
    """Whether each array is constant, such as a bias of zeros: then being equal means nothing."""
    return all(array.size == 0 or (array == array.flat[0]).all() for array in arrays)


def _reordered(one: "numpy.ndarray", other: "numpy.ndarray") -> bool:
    if _constant(one) or numpy.array_equal(one, other):
        return False
    return bool((numpy.sort(one, axis=None) == numpy.sort(other, axis=None)).all())
