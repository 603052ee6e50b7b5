"""What every kind of work in a lane has in common."""

from . import host_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class LaneWork(object):
    kind = ""
    """keras, torch, pair, call or script."""
    backend: "str | None" = None
    model: "Any" = None
    items: "Any" = None
    """The number of examples in one call."""
    rows: "Any" = None
    """The number of them for which every step is recorded."""
    first_seconds: "float | None" = None
    """The time of the first call, if it happened while the work was loaded."""
    weights_set = False
    """Whether the model got the weights of another lane."""
    make_input: "Callable[[], Any] | None" = None
    """Makes the input of one call, if the program has a function for that."""
    build_again: "Callable[[], Any] | None" = None
    """Makes another such model, if the model came from a function."""


class ProgramWork(LaneWork):
    """Work of the program itself, without steps that could be recorded."""

    def __init__(self) -> None:
        self._on: "set[str | None]" = set()

    def note_devices(self, result: "Any") -> None:
        leaves = [leaf for _, leaf in host_arrays.named(result, "")]
        self._on.update(host_arrays.device_of(leaf) for leaf in leaves)

    def outputs(self, result: "Any") -> "Any":
        return result

    def computed_on(self) -> "list[str]":
        return sorted(each for each in self._on if each is not None)

    def on_device(self) -> "Any":
        """None: copying and computing cannot be separated."""
