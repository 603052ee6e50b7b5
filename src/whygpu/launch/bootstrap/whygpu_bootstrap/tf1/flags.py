"""tf.flags as it was before release 1.5: a default may be a number of NumPy."""

from tensorflow.python.platform import flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A flag belongs to the module that defines it: to the program, not to this file.
flags.disclaim_key_flags()


def __getattr__(name: str) -> "Any":
    return getattr(flags, name)


def __dir__() -> "list[str]":
    return dir(flags)


def DEFINE_integer(  # noqa: N802
    name: "Any", default: "Any", *args: "Any", **kwargs: "Any"
) -> "Any":
    return flags.DEFINE_integer(name, _plain(default), *args, **kwargs)


def DEFINE_float(  # noqa: N802
    name: "Any", default: "Any", *args: "Any", **kwargs: "Any"
) -> "Any":
    return flags.DEFINE_float(name, _plain(default), *args, **kwargs)


def _plain(default: "Any") -> "Any":
    return default.item() if hasattr(default, "item") else default
