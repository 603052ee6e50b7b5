"""The calls for Keras: the layers and the compilation that it has a choice about."""

import sys

from whygpu_bootstrap.policy.attempts import CannotCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

uses_of_cudnn: "list[bool | None]" = []
"""`use_cudnn` of each LSTM and GRU layer that was made, as the layer has it."""
answers_on_jit: "list[bool]" = []
"""What Keras was told each time it asked whether a model can be compiled."""


def disable_cudnn(keras: "Any") -> None:
    layers = [getattr(keras.layers, name, None) for name in ("LSTM", "GRU")]
    for layer in layers:
        if layer is not None:
            _without_cudnn(layer)


def _without_cudnn(layer: "Any") -> None:
    create = layer.__init__

    def __init__(self: "Any", *arguments: "Any", **options: "Any") -> None:  # noqa: N807
        if "use_cudnn" in create.__code__.co_varnames:
            options["use_cudnn"] = False
        create(self, *arguments, **options)
        if hasattr(self, "_could_use_gpu_kernel"):
            # Keras 2 decides by this, when the layer is called.
            self._could_use_gpu_kernel = False
        used = getattr(self, "_could_use_gpu_kernel", getattr(self, "use_cudnn", None))
        uses_of_cudnn.append(used)

    __init__.__doc__ = create.__doc__
    layer.__init__ = __init__


def disable_jit(keras: "Any") -> None:
    """jit_compile="auto" then means no. An explicit True stays: the program asks for it."""
    if keras.backend.backend() != "tensorflow":
        raise CannotCall("Keras runs on %s" % keras.backend.backend())
    trainer: "Any" = sys.modules.get("keras.src.trainers.trainer")
    if trainer is None or not hasattr(trainer, "model_supports_jit"):
        raise CannotCall("this Keras compiles a model only if the program asks for it")

    def model_supports_jit(model: "Any") -> bool:
        answers_on_jit.append(False)
        return False

    trainer.model_supports_jit = model_supports_jit


def set_seed(keras: "Any", seed: int) -> None:
    set_random_seed = getattr(keras.utils, "set_random_seed", None)
    if set_random_seed is None:
        raise CannotCall("this Keras has no keras.utils.set_random_seed")
    set_random_seed(seed)
