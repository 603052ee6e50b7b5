"""The same seed in every lane, for generators that the program does not seed itself."""

import random
import sys

from . import unused_tensorflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

SEEDED_MODULES = ("numpy.random", "torch", "tensorflow", "keras")


def sow_now_and_later(seed: int) -> None:
    """Seed what is imported now, and each framework when the program imports it."""
    random.seed(seed)
    hook = sys.modules.get("whygpu_bootstrap.import_hook")
    for name in SEEDED_MODULES:
        if hook is not None:
            hook.after_import(name, _sower(name, seed))
        elif name in sys.modules:
            _sower(name, seed)(sys.modules[name])


def _sower(name: str, seed: int) -> "Callable[[Any], None]":
    def sow(module: "Any") -> None:
        if name == "numpy.random":
            module.seed(seed % 2**32)
        elif name == "torch":
            module.manual_seed(seed)
        elif name == "tensorflow" and hasattr(module.random, "set_seed"):
            module.random.set_seed(seed)
        elif name == "keras" and hasattr(module.utils, "set_random_seed"):
            # TensorFlow is seeded separately, if the program imports it.
            with unused_tensorflow.left_alone():
                module.utils.set_random_seed(seed)

    return sow
