"""What every framework has to offer to put a GPU under load."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Missing(Exception):
    """This GPU or this framework has no such operation."""


class Load(object):
    """One kind of work that can be repeated.

    `step` starts it once, without waiting for its end, and returns what `wait` waits for. `wrong`
    returns how many numbers of the last result are wrong. `amount` is what one step does, in bytes
    or operations.
    """

    def __init__(
        self,
        amount: float,
        step: "Callable[[], Any]",
        wrong: "Callable[[], int]",
        count: int,
    ) -> None:
        self.amount = amount
        self.step = step
        self.wrong = wrong
        self.count = count
        """How many numbers the result has."""


class Engine(object):
    """A framework on one GPU."""

    version = ""

    def wait(self, value: "Any") -> None:
        """Wait for everything that was started."""
        raise NotImplementedError

    def put(self, numbers: "Any") -> "Any":
        """An array of NumPy, on the GPU."""
        raise NotImplementedError

    def fetch(self, value: "Any") -> "Any":
        """The same as an array of float32 of NumPy."""
        raise NotImplementedError

    def cast(self, value: "Any", form: str) -> "Any":
        """In the format that products of this name take."""
        raise NotImplementedError

    def differing(self, one: "Any", other: "Any") -> int:
        """How many numbers differ between two arrays on the GPU."""
        raise NotImplementedError

    def product(self, left: "Any", right: "Any", form: str) -> "Callable[[], Any]":
        """Starts the product of two matrices once, and returns it."""
        raise NotImplementedError

    def copies(self, pattern: "Any") -> "Load":
        """Copies within the memory of the GPU, of an array that is on it."""
        raise NotImplementedError

    def transfers(self, numbers: "Any") -> "tuple[Load, Load]":
        """Copies of an array of NumPy from pinned main memory to the GPU, and back."""
        raise NotImplementedError
