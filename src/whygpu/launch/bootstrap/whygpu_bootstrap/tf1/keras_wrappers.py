"""The layers of tf.keras that wrap another layer: TimeDistributed and Bidirectional."""

import tensorflow.compat.v1 as tf
from tensorflow.python.keras import backend
from tensorflow.python.keras.engine import base_layer
from tensorflow.python.keras.utils import generic_utils

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Bidirectional", "TimeDistributed", "Wrapper"]


class Wrapper(base_layer.Layer):
    """A layer around a layer, whose weights are its own."""

    def __init__(self, layer: "Any", **kwargs: "Any") -> None:
        self.layer = layer
        super().__init__(**kwargs)

    def get_config(self) -> "dict[str, Any]":
        inner = generic_utils.serialize_keras_object(self.layer)
        return dict(super().get_config(), layer=inner)

    @classmethod
    def from_config(cls, config: "Any", custom_objects: "Any" = None) -> "Any":
        from tensorflow.python.keras.layers import deserialize

        config = dict(config)
        layer = deserialize(config.pop("layer"), custom_objects=custom_objects)
        return cls(layer, **config)


class TimeDistributed(Wrapper):
    """The layer applied to every time step by itself."""

    def build(self, input_shape: "Any") -> None:
        shape = tf.TensorShape(input_shape).as_list()
        if not self.layer.built:
            with backend.name_scope(self.layer._name):
                self.layer.build(tuple([shape[0]] + shape[2:]))
                self.layer.built = True
        super().build(input_shape)

    def compute_output_shape(self, input_shape: "Any") -> "Any":
        shape = tf.TensorShape(input_shape).as_list()
        inner = self.layer.compute_output_shape(tuple([shape[0]] + shape[2:]))
        inner = tf.TensorShape(inner).as_list()
        return tf.TensorShape([inner[0], shape[1]] + inner[1:])

    def call(self, inputs: "Any", training: "Any" = None) -> "Any":
        sizes = inputs.shape.as_list()
        options = {}
        if generic_utils.has_arg(self.layer.call, "training"):
            options["training"] = training
        # Batch and time as one: each step is an example to the layer.
        flat = tf.reshape(inputs, tf.concat([[-1], tf.shape(inputs)[2:]], 0))
        flat.set_shape([None] + sizes[2:])
        outputs = self.layer(flat, **options)
        whole = tf.concat([tf.shape(inputs)[:2], tf.shape(outputs)[1:]], 0)
        result = tf.reshape(outputs, whole)
        result.set_shape(sizes[:2] + outputs.shape.as_list()[1:])
        return result


class Bidirectional(Wrapper):
    """A recurrent layer and its mirror image, whose outputs are joined."""

    def __init__(
        self,
        layer: "Any",
        merge_mode: str = "concat",
        weights: "Any" = None,
        backward_layer: "Any" = None,
        **kwargs: "Any",
    ) -> None:
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise ValueError(
                "Invalid merge mode. Merge mode should be one of "
                "{'sum', 'mul', 'ave', 'concat', None}"
            )
        kwargs.setdefault("name", "bidirectional_" + layer.name)
        super().__init__(layer, **kwargs)
        config = layer.get_config()
        self.forward_layer = type(layer).from_config(dict(config, name="forward_" + layer.name))
        turned = dict(config, name="backward_" + layer.name, go_backwards=not layer.go_backwards)
        self.backward_layer = backward_layer or type(layer).from_config(turned)
        self.layer = self.forward_layer
        self.merge_mode = merge_mode
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self.supports_masking = True
        self._initial = weights

    def build(self, input_shape: "Any") -> None:
        with backend.name_scope(self.forward_layer.name):
            self.forward_layer.build(input_shape)
        with backend.name_scope(self.backward_layer.name):
            self.backward_layer.build(input_shape)
        if self._initial:
            self.set_weights(self._initial)
        super().build(input_shape)

    def call(self, inputs: "Any", training: "Any" = None, mask: "Any" = None) -> "Any":
        options = {"training": training, "mask": mask}
        forward, *states = _parts(self.forward_layer(inputs, **options), self.return_state)
        backward, *more = _parts(self.backward_layer(inputs, **options), self.return_state)
        if self.return_sequences:
            backward = backend.reverse(backward, 1)
        joined = _joined(forward, backward, self.merge_mode)
        if not self.return_state:
            return joined
        return (joined if isinstance(joined, list) else [joined]) + states + more

    def compute_mask(self, inputs: "Any", mask: "Any") -> "Any":
        return mask if self.return_sequences else None

    def compute_output_shape(self, input_shape: "Any") -> "Any":
        shape = self.forward_layer.compute_output_shape(input_shape)
        shape = shape[0] if self.return_state else shape
        shape = tf.TensorShape(shape).as_list()
        if self.merge_mode == "concat":
            shape[-1] *= 2
        shape = tf.TensorShape(shape)
        return [shape, shape] if self.merge_mode is None else shape

    def get_config(self) -> "dict[str, Any]":
        return dict(super().get_config(), merge_mode=self.merge_mode)


def _parts(outputs: "Any", with_states: "Any") -> "list[Any]":
    return list(outputs) if with_states else [outputs]


def _joined(forward: "Any", backward: "Any", mode: "Any") -> "Any":
    if mode == "concat":
        return backend.concatenate([forward, backward])
    if mode == "sum":
        return forward + backward
    if mode == "ave":
        return (forward + backward) / 2
    return forward * backward if mode == "mul" else [forward, backward]
