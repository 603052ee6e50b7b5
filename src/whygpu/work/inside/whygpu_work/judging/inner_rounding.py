"""Changes what a framework computes inside of a layer by what rounding may change it.

A result of the layer can depend on digits that an intermediate number loses, as in
(x + 1e6) - 1e6. Changed inputs do not show that: float64 keeps these digits. So the result of each
operation is changed as well, as one rounding or as the rounding of a sum. Each framework has a
module that knows its operations.
"""

import contextlib
import sys

from . import inner_rounding_jax, inner_rounding_tensorflow, inner_rounding_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator

FRAMEWORKS = {
    "torch": inner_rounding_torch.context,
    "tensorflow": inner_rounding_tensorflow.context,
    "jax": inner_rounding_jax.context,
}


def loaded() -> "list[str]":
    """The frameworks that the program has imported."""
    return [name for name in FRAMEWORKS if name in sys.modules]


_active: "list[Any]" = []


@contextlib.contextmanager
def changed(frameworks: "Iterable[str]", move: "Callable[[Any, bool], Any]") -> "Iterator[None]":
    """A context in which `move(array, is_sum)` changes the result of each operation.

    For the outermost one only: steps inside of a container are changed once. A framework whose
    operations cannot be seen computes as usual.
    """
    if _active:
        yield
        return
    _active.append(move)
    try:
        with contextlib.ExitStack() as stack:
            for name in frameworks:
                made = FRAMEWORKS[name](move) if name in FRAMEWORKS else None
                if made is not None:
                    stack.enter_context(made)
            yield
    finally:
        _active.remove(move)
