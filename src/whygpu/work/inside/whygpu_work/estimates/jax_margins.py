"""How far the memory that JAX takes on a GPU is from what is estimated.

Measured on an NVIDIA H200, driver 580.159.04, with JAX 0.11; docs/measured/memory-estimate.md has
the models.
"""

from .margins import Margins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

COMPILED = Margins(0.95, 1.1)
"""Measured, in 51 steps of 27 models: at most 1 % less than XLA's compiler reports, and, apart from
one block and the outputs that `predict` keeps, up to 7 % more."""
MODELLED_TRAINING = Margins(0.8, 1.2)
"""Measured: up to 15 % less, and up to 13 % more apart from one block."""
MODELLED = Margins(0.8, 1.45)
"""Inference and functions. Measured: up to 7 % less, and up to 33 % more apart from one block. The
rules were changed after some of these models, so others may differ more."""
KEPT_OUTPUTS = 100
"""Batches of outputs that the upper end of the range has room for: Keras's `predict` keeps the
outputs of all batches on the GPU until its end."""


def around(sizes: "Mapping[str, int]", how: str, train: bool) -> "tuple[float, float]":
    """Between which sizes the need for one batch lies, in bytes."""
    if how == "compiled":
        return COMPILED.around(sizes)
    return (MODELLED_TRAINING if train else MODELLED).around(sizes)
