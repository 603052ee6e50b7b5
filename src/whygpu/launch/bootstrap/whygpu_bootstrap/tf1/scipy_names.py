"""Names that scipy had at the time of TensorFlow 1 and has removed since.

Programs read, write and resize pictures with scipy.misc, which did that with Pillow.
"""

import importlib
import sys
import types

from whygpu_bootstrap import process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOVED = {
    "comb": "scipy.special",
    "factorial": "scipy.special",
    "factorial2": "scipy.special",
    "factorialk": "scipy.special",
    "logsumexp": "scipy.special",
}
"""Names of scipy.misc that are elsewhere now."""

OLD_MODULES = {"scipy.sparse.linalg.eigen.arpack": "scipy.sparse.linalg"}
"""Modules that are gone, and where their functions are."""

_INTERPOLATIONS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}
"""By the numbers that Pillow has for them."""

_restored: "set[str]" = set()


def restore(name: str) -> None:
    """Called before the program imports scipy, or a module of it."""
    if "misc" not in _restored:
        _restored.add("misc")
        _restore_misc()
    home = OLD_MODULES.get(name)
    if home is not None and name not in _restored:
        _restored.add(name)
        _restore_module(name, home)


def _found(name: str) -> "Any":
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _restore_misc() -> None:
    scipy = _found("scipy")
    if scipy is None:
        return
    module = _found("scipy.misc")
    if module is None:
        module = types.ModuleType("scipy.misc")
        sys.modules["scipy.misc"] = scipy.misc = module
    before = vars(module).get("__getattr__")

    def __getattr__(name: "Any") -> "Any":  # noqa: N807
        if name in PICTURES:
            return _given("scipy.misc." + name, PICTURES[name], "Pillow")
        if name in MOVED:
            home = MOVED[name]
            value = getattr(importlib.import_module(home), name)
            return _given("scipy.misc." + name, value, home + "." + name)
        if before is not None:
            return before(name)
        raise AttributeError("module 'scipy.misc' has no attribute '%s'" % name)

    vars(module)["__getattr__"] = __getattr__


def _restore_module(name: str, home: str) -> None:
    if _found(name) is not None:
        return
    parent, _, last = name.rpartition(".")
    above, module = _found(parent), _found(home)
    if above is None or module is None:
        return
    process_record.note("--tf1: %s -> %s" % (name, home))
    sys.modules[name] = module
    setattr(above, last, module)


def _given(name: str, value: "Any", target: str) -> "Any":
    process_record.note("--tf1: %s -> %s" % (name, target))
    return value


def bytescale(
    data: "Any", cmin: "Any" = None, cmax: "Any" = None, high: int = 255, low: int = 0
) -> "Any":
    """The numbers scaled to bytes, from `low` to `high`; bytes are returned as they are."""
    import numpy

    if data.dtype == numpy.uint8:
        return data
    if not 0 <= low <= high <= 255:
        raise ValueError("`low` and `high` should be from 0 to 255, `low` first.")
    least = data.min() if cmin is None else cmin
    most = data.max() if cmax is None else cmax
    if most < least:
        raise ValueError("`cmax` should be larger than `cmin`.")
    scaled = (data - least) * (float(high - low) / ((most - least) or 1)) + low
    return (scaled.clip(low, high) + 0.5).astype(numpy.uint8)


def toimage(
    arr: "Any",
    high: int = 255,
    low: int = 0,
    cmin: "Any" = None,
    cmax: "Any" = None,
    pal: "Any" = None,
    mode: "Any" = None,
    channel_axis: "Any" = None,
) -> "Any":
    """A Pillow image of rows, or of rows with three or four channels on any axis."""
    import numpy
    from PIL import Image

    if pal is not None:
        raise NotImplementedError("scipy.misc.toimage under --tf1 has no pal")
    data = numpy.asarray(arr)
    if data.ndim == 2 and mode in (None, "L"):
        return Image.fromarray(bytescale(data, cmin, cmax, high, low))
    if data.ndim == 2 and mode == "F":
        return Image.fromarray(data.astype(numpy.float32))
    if data.ndim == 2 and mode == "I":
        least = data.min() if cmin is None else cmin
        most = data.max() if cmax is None else cmax
        scaled = (data * 1.0 - least) * (high - low) / (most - least) + low
        return Image.fromarray(scaled.astype(numpy.int32))
    if data.ndim == 2 and mode == "1":
        return Image.fromarray(data > high)
    wanted = {None: (3, 4), "RGB": (3,), "YCbCr": (3,), "RGBA": (4,), "CMYK": (4,)}.get(mode, ())
    axes = range(data.ndim) if channel_axis is None else [channel_axis]
    channels = [axis for count in wanted for axis in axes if data.shape[axis:][:1] == (count,)]
    if data.ndim != 3 or not channels:
        raise ValueError("'arr' does not have a suitable array shape for any mode.")
    last = numpy.moveaxis(bytescale(data, cmin, cmax, high, low), channels[0], -1)
    kind = mode or ("RGB" if last.shape[-1] == 3 else "RGBA")
    return Image.frombytes(kind, last.shape[1::-1], numpy.ascontiguousarray(last).tobytes())


def fromimage(im: "Any", flatten: bool = False, mode: "Any" = None) -> "Any":
    """The array of a Pillow image; one channel of float32 if it is flattened."""
    import numpy

    if mode is not None:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")
    return numpy.array(im)


def imread(name: "Any", flatten: bool = False, mode: "Any" = None) -> "Any":
    from PIL import Image

    with Image.open(name) as image:
        return fromimage(image, flatten, mode)


def imsave(name: "Any", arr: "Any", format: "Any" = None) -> None:
    image = toimage(arr, channel_axis=2)
    image.save(name) if format is None else image.save(name, format)


def imresize(arr: "Any", size: "Any", interp: str = "bilinear", mode: "Any" = None) -> "Any":
    """`size` is a percentage, a fraction, or (height, width)."""
    import numpy

    image = toimage(arr, mode=mode)
    if numpy.ndim(size):
        wanted = [int(size[1]), int(size[0])]
    else:
        share = size / 100.0 if isinstance(size, (int, numpy.integer)) else size
        wanted = [int(length * share) for length in image.size]
    return fromimage(image.resize(wanted, resample=_INTERPOLATIONS[interp]))


def imrotate(arr: "Any", angle: "Any", interp: str = "bilinear") -> "Any":
    return fromimage(toimage(arr).rotate(angle, resample=_INTERPOLATIONS[interp]))


PICTURES = {
    "bytescale": bytescale,
    "fromimage": fromimage,
    "imread": imread,
    "imresize": imresize,
    "imrotate": imrotate,
    "imsave": imsave,
    "toimage": toimage,
}
