"""A device policy for Keras: the layers and the compilation that it has a choice about."""

import sys

from whygpu_bootstrap import process_record


def apply(keras, settings):
    policy = settings["policy"]
    if policy["cudnn_off"]:
        for name in ("LSTM", "GRU"):
            layer = getattr(keras.layers, name, None)
            if layer is not None:
                _without_cudnn(layer)
        process_record.applied("keras", "LSTM and GRU with use_cudnn=False")
    if policy["xla_off"]:
        trainer = sys.modules.get("keras.src.trainers.trainer")
        if trainer is not None and keras.backend.backend() == "tensorflow":
            trainer.model_supports_jit = lambda model: False
            process_record.applied("keras", "no compilation with XLA")
    if policy["deterministic"]:
        seed = getattr(keras.utils, "set_random_seed", None)
        if seed is not None:
            seed(policy["seed"])
            process_record.applied("keras", "the seed %d" % policy["seed"])


def _without_cudnn(layer):
    create = layer.__init__

    def __init__(self, *arguments, **options):  # noqa: N807
        if "use_cudnn" in create.__code__.co_varnames:
            options["use_cudnn"] = False
        create(self, *arguments, **options)
        if hasattr(self, "_could_use_gpu_kernel"):
            # Keras 2 decides by this, when the layer is called.
            self._could_use_gpu_kernel = False

    __init__.__doc__ = create.__doc__
    layer.__init__ = __init__
