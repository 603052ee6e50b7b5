"""Names that numpy had in the days of TensorFlow 1 and has taken away since."""

import sys

from whygpu_bootstrap import record

# numpy's own words at their removal: each was another name for what stands beside it.
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


def restore():
    """Give numpy back the names that it lacks; TensorFlow has imported it already."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    restored = []
    for name, value in PYTHON_TYPES.items():
        if name not in vars(numpy):
            setattr(numpy, name, value)
            restored.append(name)
    for name, target in ALIASES.items():
        if name not in vars(numpy) and target in vars(numpy):
            setattr(numpy, name, getattr(numpy, target))
            restored.append(name)
    if restored:
        record.note("--tf1: old names given back to numpy: %s" % ", ".join(restored))
