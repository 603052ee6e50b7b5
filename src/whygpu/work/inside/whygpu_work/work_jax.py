"""Runs a JAX function with the arguments that the user's code made for a batch size."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class JaxWork(object):
    framework = backend = "jax"

    def __init__(self, function: "Callable[..., Any]", arguments: "Any") -> None:
        self.function = function
        self.arguments = tuple(arguments) if isinstance(arguments, (tuple, list)) else (arguments,)
        self._compiled: "Any" = None

    def step(self) -> "Any":
        """Call it once and wait for the result. A jitted function is used as it is."""
        import jax

        if self._compiled is None:
            lowers = hasattr(self.function, "lower")
            self._compiled = self.function if lowers else jax.jit(self.function)
        return jax.block_until_ready(self._compiled(*self.arguments))


def is_pair(value: "Any") -> bool:
    """Whether the user gave (function, arguments)."""
    return isinstance(value, (tuple, list)) and len(value) == 2 and callable(value[0])
