"""tf.contrib.image.rotate and tf.contrib.training.HParams."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["HParams", "rotate"]


def rotate(
    images: "Any", angles: "Any", interpolation: str = "NEAREST", name: "Any" = None
) -> "Any":
    """Images turned against the clock by angles in radians, about their middle."""
    with tf.name_scope(name, "rotate", [images]):
        images = tf.convert_to_tensor(images)
        rank = images.shape.ndims
        batch = images if rank == 4 else images[None] if rank == 3 else images[None, :, :, None]
        height, width = (tf.cast(tf.shape(batch)[axis], tf.float32) for axis in (1, 2))
        angles = tf.reshape(tf.cast(angles, tf.float32), [-1])
        angles += tf.zeros([tf.shape(batch)[0]])
        cosine, sine = tf.cos(angles), tf.sin(angles)
        zeros = tf.zeros_like(angles)
        x = ((width - 1) - (cosine * (width - 1) - sine * (height - 1))) / 2.0
        y = ((height - 1) - (sine * (width - 1) + cosine * (height - 1))) / 2.0
        turn = tf.stack([cosine, -sine, x, sine, cosine, y, zeros, zeros], axis=1)
        turned = tf.raw_ops.ImageProjectiveTransformV3(
            images=batch,
            transforms=turn,
            output_shape=tf.shape(batch)[1:3],
            fill_value=0.0,
            interpolation=interpolation.upper(),
            fill_mode="CONSTANT",
        )
        return tf.reshape(turned, tf.shape(images))


class HParams:
    """Named values, read and set as attributes."""

    def __init__(self, **kwargs: "Any") -> None:
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: "Any", value: "Any") -> None:
        if hasattr(self, name):
            raise ValueError("Hyperparameter name is reserved: %s" % name)
        setattr(self, name, value)

    def set_hparam(self, name: "Any", value: "Any") -> None:
        if name not in vars(self):
            raise KeyError("Hyperparameter '%s' does not exist." % name)
        setattr(self, name, value)

    def get(self, key: "Any", default: "Any" = None) -> "Any":
        return vars(self).get(key, default)

    def override_from_dict(self, values_dict: "Any") -> "Any":
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, values: "Any") -> "Any":
        """name=value,name=value: each of the type that the value has now."""
        for item in filter(None, values.split(",")):
            name, separator, text = item.partition("=")
            if not separator:
                raise ValueError("Could not parse hyperparameter value: %r" % item)
            name = name.strip()
            self.set_hparam(name, _of_kind(getattr(self, name, None), text.strip()))
        return self

    def values(self) -> "dict[str, Any]":
        return dict(vars(self))

    def to_json(
        self, indent: "Any" = None, separators: "Any" = None, sort_keys: bool = False
    ) -> "Any":
        import json

        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: "Any") -> "Any":
        import json

        return self.override_from_dict(json.loads(values_json))

    def __contains__(self, key: "Any") -> bool:
        return key in vars(self)

    def __repr__(self) -> str:
        items = ", ".join("%s=%r" % item for item in sorted(vars(self).items()))
        return "HParams(%s)" % items


def _of_kind(now: "Any", text: str) -> "Any":
    if isinstance(now, bool):
        return text.lower() in ("1", "true")
    return type(now)(text) if isinstance(now, (int, float)) else text
