"""Half precision for Keras models, for the estimates of every backend."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HALF_POLICY = "mixed_bfloat16"


def in_half_precision(model: "Any") -> None:
    """Make the model compute in 16 bits with weights in 32 bits, as under a mixed policy.

    A layer with its own policy, such as a last layer in float32, keeps it only if it differs from
    the default: in a saved model, an explicit default looks like none.
    """
    import keras

    policy = keras.dtype_policies.get(HALF_POLICY)
    for layer in [model, *model._flatten_layers(include_self=False)]:
        if layer.dtype_policy.name == "float32":
            layer.dtype_policy = policy
