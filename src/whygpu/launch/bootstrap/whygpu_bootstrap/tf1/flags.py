"""tf.flags as it was before release 1.5.

A default may be a number of NumPy, a program may have flags with the names of absl's own (log_dir),
and it may set names that are no flags.
"""

import functools
import sys

import absl.flags
import numpy
from tensorflow.python.platform import flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A flag belongs to the module that defines it: to the program, not to this file.
flags.disclaim_key_flags()


def __getattr__(name: str) -> "Any":
    found = getattr(flags, name)
    return _define(found) if name.startswith("DEFINE_") else found


def __dir__() -> "list[str]":
    return dir(flags)


def _parse(args: "Any" = None) -> None:
    """Programs call it before they list the flags."""
    wrapped = absl.flags.FLAGS
    if not wrapped.is_parsed():
        wrapped(sys.argv if args is None else sys.argv[:1] + list(args))


class _Flags(flags._FlagValuesWrapper):
    def __setattr__(self, name: str, value: "Any") -> None:
        try:
            super().__setattr__(name, value)
        except absl.flags.UnrecognizedFlagError:
            self.__dict__[name] = value

    def __getattr__(self, name: str) -> "Any":
        if name == "_parse_flags":
            return _parse
        return self.__dict__[name] if name in self.__dict__ else super().__getattr__(name)


FLAGS = _Flags(absl.flags.FLAGS)


def _define(original: "Any") -> "Any":
    @functools.wraps(original)
    def define(*args: "Any", **kwargs: "Any") -> "Any":
        name = args[0] if args else kwargs.get("name", kwargs.get("flag_name"))
        if _is_absls(name):
            kwargs.setdefault("allow_override", True)
        plain = {key: _plain(value) for key, value in kwargs.items()}
        return original(*map(_plain, args), **plain)

    return define


def _plain(value: "Any") -> "Any":
    return value.item() if isinstance(value, numpy.generic) else value


def _is_absls(name: "Any") -> bool:
    """Whether absl has such a flag, and does without its own."""
    if name == "verbosity":
        return False
    owner = flags.FLAGS.find_module_defining_flag(name)
    return owner is not None and owner.split(".")[0] == "absl"
