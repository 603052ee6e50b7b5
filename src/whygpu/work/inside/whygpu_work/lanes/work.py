"""What every kind of work in a lane has, whatever the user named."""

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
    """How many examples one call works on."""
    rows: "Any" = None
    """For how many of them every step is recorded."""
    first_seconds: "float | None" = None
    """Of the first call, where it was done before anybody could measure it."""
    weights_set = False
    """Whether the model has got the weights of another lane."""
    make_input: "Callable[[], Any] | None" = None
    """Makes what one call takes, where the program has given a function for that."""
    build_again: "Callable[[], Any] | None" = None
    """Calls the program for another such model, where it came from a function."""


class ProgramWork(LaneWork):
    """Work that is done by the program itself, and not looked into."""

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
        """None: moving and computing cannot be told apart."""
