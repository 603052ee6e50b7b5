"""What the estimates for Keras models have in common, whatever the backend."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HALF_POLICY = "mixed_bfloat16"


def in_half_precision(model: "Any") -> None:
    """Let the model compute in 16 bits and keep its weights in 32, as under a mixed policy.

    Layers that were given a policy of their own, such as a last layer in float32, keep it only
    where it is not the plain default, which a saved model cannot be told apart from.
    """
    import keras

    policy = keras.dtype_policies.get(HALF_POLICY)
    for layer in [model, *model._flatten_layers(include_self=False)]:
        if layer.dtype_policy.name == "float32":
            layer.dtype_policy = policy
