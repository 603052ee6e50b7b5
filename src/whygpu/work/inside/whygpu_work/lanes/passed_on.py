"""Tells whether the user's code computes an input of a step from the results of other steps.

Such code is no step of its own: what it does wrong shows at the step that it is an input of.
"""

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class PassedOn(object):
    """The tensors that steps are given unchanged: inputs of the model, and results of steps."""

    def __init__(self, flat: "Callable[[Any], list[Any]]") -> None:
        """`flat` lists the tensors of a structure."""
        self._flat = flat
        self._inputs: "list[Any]" = []
        self._results: "dict[int, Callable[[], Any]]" = {}
        """By id. They are not kept: a lane would need the memory of training, and may have none."""

    def begin(self, inputs: "Any") -> None:
        self._inputs = self._flat(inputs)
        self._results.clear()

    def note(self, result: "Any") -> None:
        for tensor in self._flat(result):
            self._results[id(tensor)] = _reference(tensor)

    def is_computed(self, given: "Any") -> bool:
        """Whether a tensor in `given` is neither an input of the model nor the result of a step."""
        return not all(
            self._is_result(tensor) or any(self._is_input(tensor, each) for each in self._inputs)
            for tensor in self._flat(given)
        )

    def _is_result(self, tensor: "Any") -> bool:
        reference = self._results.get(id(tensor))
        # Another tensor may have got the id of one that is gone.
        return reference is not None and reference() is tensor

    def _is_input(self, tensor: "Any", one: "Any") -> bool:
        """Also if the model has converted it to the type that it computes in."""
        if tensor is one:
            return True
        return tensor.dtype != one.dtype and tuple(tensor.shape) == tuple(one.shape)


def _reference(tensor: "Any") -> "Callable[[], Any]":
    try:
        return weakref.ref(tensor)
    except TypeError:
        return lambda: tensor
