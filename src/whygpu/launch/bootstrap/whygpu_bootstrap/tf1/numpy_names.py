"""Names that numpy had at the time of TensorFlow 1 and has removed since."""

import functools
import sys

from whygpu_bootstrap import process_record
from whygpu_bootstrap.tf1 import imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# From the messages of numpy at their removal: each was an alias of the name beside it.
PYTHON_TYPES = {"int": int, "float": float, "complex": complex, "object": object, "str": str}
ALIASES = {
    "bool": "bool_",
    "long": "int_",
    "unicode": "str_",
    "float_": "float64",
    "complex_": "complex128",
    "string_": "bytes_",
    "unicode_": "str_",
    "Inf": "inf",
    "Infinity": "inf",
    "infty": "inf",
    "NaN": "nan",
    "NAN": "nan",
    "product": "prod",
    "cumproduct": "cumprod",
    "alltrue": "all",
    "sometrue": "any",
    "round_": "round",
    "in1d": "isin",
    "row_stack": "vstack",
    "trapz": "trapezoid",
}


def restore() -> None:
    """Restore the removed names; TensorFlow has imported numpy already."""
    numpy: "Any" = sys.modules.get("numpy")
    if numpy is None:
        return
    before = vars(numpy).get("__getattr__")

    def __getattr__(name: "Any") -> "Any":  # noqa: N807
        if name in PYTHON_TYPES:
            return _given(name, PYTHON_TYPES[name], "Python's " + name)
        if name in ALIASES and ALIASES[name] in vars(numpy):
            return _given(name, getattr(numpy, ALIASES[name]), "numpy." + ALIASES[name])
        if before is not None:
            return before(name)
        raise AttributeError("module 'numpy' has no attribute '%s'" % name)

    numpy.__getattr__ = __getattr__
    numpy.reshape = _taking_newshape(numpy.reshape)
    for name in ("array", "asarray"):
        setattr(numpy, name, _taking_ragged_rows(name, getattr(numpy, name)))


def _taking_newshape(reshape: "Any") -> "Any":
    """The keyword of numpy.reshape had that name until numpy 2.1."""

    @functools.wraps(reshape)
    def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
        if "newshape" in kwargs:
            process_record.note("--tf1: numpy.reshape(newshape=) -> numpy.reshape(shape)")
            shape = kwargs.pop("newshape")
            if not args:
                args = (kwargs.pop("a"),)
            args += (shape,)
        return reshape(*args, **kwargs)

    return wrapper


def _taking_ragged_rows(name: "Any", make: "Any") -> "Any":
    """Rows of different lengths made an array of objects until numpy 1.24."""

    @functools.wraps(make)
    def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
        try:
            return make(*args, **kwargs)
        except ValueError as error:
            caller = sys._getframe(1).f_globals
            given = len(args) > 1 or kwargs.get("dtype") is not None
            if given or "inhomogeneous" not in str(error) or not imports.is_program(caller):
                raise
        process_record.note("--tf1: numpy.%s of ragged rows -> an array of objects" % name)
        return make(*args, **dict(kwargs, dtype=object))

    return wrapper


def _given(name: "Any", value: "Any", target: "Any") -> "Any":
    process_record.note("--tf1: numpy.%s -> %s" % (name, target))
    return value
