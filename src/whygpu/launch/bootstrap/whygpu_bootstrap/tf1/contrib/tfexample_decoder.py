"""slim.tfexample_decoder: the tensors of a tf.train.Example, one handler for each item."""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.contrib.slim_data import DataDecoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BackupHandler", "BoundingBox", "Image", "ItemHandler", "ItemHandlerCallback"]
__all__ += ["LookupTensor", "SparseTensor", "TFExampleDecoder", "Tensor"]


class ItemHandler:
    """Makes one item of the features that it names."""

    def __init__(self, keys: "Any") -> None:
        self._keys = keys if isinstance(keys, (list, tuple)) else [keys]

    keys = property(lambda self: self._keys)

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        raise NotImplementedError


class ItemHandlerCallback(ItemHandler):
    def __init__(self, keys: "Any", func: "Any") -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """One row for each box: ymin, xmin, ymax, xmax."""

    def __init__(self, keys: "Any" = None, prefix: str = "") -> None:
        names = ["ymin", "xmin", "ymax", "xmax"] if keys is None else keys
        if len(names) != 4:
            raise ValueError("BoundingBox expects 4 keys but got %d" % len(names))
        super().__init__([prefix + name for name in names])

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        sides = [keys_to_tensors[key] for key in self._keys]
        sides = [side.values if isinstance(side, tf.SparseTensor) else side for side in sides]
        return tf.stack(sides, axis=1)


class Tensor(ItemHandler):
    """A feature, in a shape that is fixed or that other features hold."""

    def __init__(
        self,
        tensor_key: "Any",
        shape_keys: "Any" = None,
        shape: "Any" = None,
        default_value: "Any" = 0,
    ) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        shape_keys = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or ())
        super().__init__([tensor_key] + shape_keys)
        self._shape_keys = shape_keys
        self._shape = shape
        self._default_value = default_value

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        tensor = keys_to_tensors[self._keys[0]]
        shape = self._shape
        if self._shape_keys:
            sizes = [_dense(keys_to_tensors[key]) for key in self._shape_keys]
            shape = tf.reshape(tf.stack(sizes), [-1])
        if not isinstance(tensor, tf.SparseTensor):
            return tensor if shape is None else tf.reshape(tensor, shape)
        if shape is not None:
            tensor = tf.sparse_reshape(tensor, shape)
        return _dense(tensor, self._default_value)


class LookupTensor(Tensor):
    def __init__(
        self,
        tensor_key: "Any",
        table: "Any",
        shape_keys: "Any" = None,
        shape: "Any" = None,
        default_value: "Any" = "",
    ) -> None:
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """A second handler for examples in which the first one finds nothing."""

    def __init__(self, handler: "Any", backup: "Any") -> None:
        for each in (handler, backup):
            if not isinstance(each, ItemHandler):
                raise ValueError("%r is not an ItemHandler" % (each,))
        super().__init__(list(handler.keys) + list(backup.keys))
        self._handler = handler
        self._backup = backup

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        item = self._handler.tensors_to_item(keys_to_tensors)
        return tf.cond(
            tf.equal(tf.size(item), 0),
            lambda: self._backup.tensors_to_item(keys_to_tensors),
            lambda: item,
        )


class SparseTensor(ItemHandler):
    """A sparse tensor whose last index and whose values are two features."""

    def __init__(
        self,
        indices_key: "Any" = None,
        values_key: "Any" = None,
        shape_key: "Any" = None,
        shape: "Any" = None,
        densify: bool = False,
        default_value: "Any" = 0,
    ) -> None:
        keys = [indices_key or "indices", values_key or "values"]
        super().__init__(keys + ([shape_key] if shape_key else []))
        self._shape_key = shape_key
        self._shape = shape
        self._densify = densify
        self._default_value = default_value

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        last, values = (keys_to_tensors[key] for key in self._keys[:2])
        shape = self._shape or last.dense_shape
        if self._shape_key:
            shape = _dense(keys_to_tensors[self._shape_key])
        column = tf.reshape(tf.cast(last.values, tf.int64), [-1, 1])
        indices = tf.concat([last.indices[:, :-1], column], 1)
        tensor = tf.SparseTensor(indices, values.values, shape)
        return _dense(tensor, self._default_value) if self._densify else tensor


class Image(ItemHandler):
    """An image that is encoded (JPEG, PNG, GIF, BMP) or raw."""

    def __init__(
        self,
        image_key: "Any" = None,
        format_key: "Any" = None,
        shape: "Any" = None,
        channels: int = 3,
        dtype: "Any" = tf.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        super().__init__([image_key or "image/encoded", format_key or "image/format"])
        self._shape = shape
        self._channels = channels
        self._dtype = dtype
        self._repeated = repeated
        self._dct_method = dct_method

    def tensors_to_item(self, keys_to_tensors: "Any") -> "Any":
        encoded, kind = (keys_to_tensors[key] for key in self._keys)
        if self._repeated:
            return tf.map_fn(lambda each: self._decode(each, kind), encoded, dtype=self._dtype)
        return self._decode(encoded, kind)

    def _decode(self, encoded: "Any", kind: "Any") -> "Any":
        def any_format() -> "Any":
            image = tf.image.decode_image(encoded, channels=self._channels)
            return tf.cast(image, self._dtype)

        def jpeg() -> "Any":
            image = tf.image.decode_jpeg(
                encoded, channels=self._channels, dct_method=self._dct_method
            )
            return tf.cast(image, self._dtype)

        def raw() -> "Any":
            return tf.decode_raw(encoded, self._dtype)

        image = tf.cond(
            tf.logical_or(tf.equal(kind, "raw"), tf.equal(kind, "RAW")),
            raw,
            lambda: tf.cond(tf.image.is_jpeg(encoded), jpeg, any_format),
        )
        image.set_shape([None, None, self._channels])
        return image if self._shape is None else tf.reshape(image, self._shape)


class TFExampleDecoder(DataDecoder):
    """Parses an example and hands each item's features to its handler."""

    def __init__(self, keys_to_features: "Any", items_to_handlers: "Any") -> None:
        self._keys_to_features = keys_to_features
        self._items_to_handlers = items_to_handlers

    def list_items(self) -> "list[Any]":
        return list(self._items_to_handlers)

    def decode(self, serialized_example: "Any", items: "Any" = None) -> "list[Any]":
        example = tf.parse_single_example(serialized_example, self._keys_to_features)
        for key, feature in self._keys_to_features.items():
            if isinstance(feature, tf.FixedLenFeature):
                example[key] = tf.reshape(example[key], feature.shape)
        outputs = []
        for item in items or self.list_items():
            handler = self._items_to_handlers[item]
            outputs.append(handler.tensors_to_item({key: example[key] for key in handler.keys}))
        return outputs


def _dense(tensor: "Any", default_value: "Any" = 0) -> "Any":
    if isinstance(tensor, tf.SparseTensor):
        return tf.sparse_tensor_to_dense(tensor, default_value)
    return tensor
