"""What every kind of work in a lane has, whatever the user named."""

from . import host_arrays


class LaneWork(object):
    kind = ""
    """keras, torch, pair, call or script."""
    backend = None
    model = None
    items = None
    """How many examples one call works on."""
    rows = None
    """For how many of them every step is recorded."""
    first_seconds = None
    """Of the first call, where it was done before anybody could measure it."""
    weights_set = False
    """Whether the model has got the weights of another lane."""
    make_input = None
    """Makes what one call takes, where the program has given a function for that."""
    build_again = None
    """Calls the program for another such model, where it came from a function."""


class ProgramWork(LaneWork):
    """Work that is done by the program itself, and not looked into."""

    def __init__(self):
        self._on = set()

    def note_devices(self, result):
        leaves = [leaf for _, leaf in host_arrays.named(result, "")]
        self._on.update(host_arrays.device_of(leaf) for leaf in leaves)

    def outputs(self, result):
        return result

    def computed_on(self):
        return sorted(each for each in self._on if each is not None)

    def on_device(self):
        """None: moving and computing cannot be told apart."""
