"""What a function was compiled for: the shapes, types and values of its arguments.

Recorded when a framework compiles, so that two compilations of one function can be compared
afterwards. Nothing here keeps an argument alive.
"""

import inspect
import weakref

from whygpu_bootstrap.profile import code_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    Leaves = Callable[[Any], Iterable[tuple[str, Any]]]
    """The parts of a value, each with its path below the value: (".x[0]", array)."""

MOST_ARGUMENTS = 200
MOST_FUNCTIONS = 1000
LONGEST_VALUE = 40
LONGEST_NAME = 100
DEEPEST = 6
PLAIN = (bool, int, float, complex, str, bytes, type(None))

_made: "dict[Any, Any]" = {}


def place_of(function: "Any") -> "dict[str, Any]":
    """Where a function is defined, and how many functions were made there so far.

    A function that is defined in a loop is a new one each time: nothing compiled is used again.
    """
    code = getattr(inspect.unwrap(_plain(function)), "__code__", None)
    if code is None:
        return {}
    key = (code.co_filename, code.co_firstlineno, code.co_name)
    known, number = _made.get(key, (None, 0))
    if known is None or known() is not function:
        if len(_made) >= MOST_FUNCTIONS:
            return {}
        number += 1
        try:
            _made[key] = (weakref.ref(function), number)
        except TypeError:
            number = 0
    file = code_places.notebook_cell(code.co_filename) or code.co_filename
    return {"file": file, "line": code.co_firstlineno, "made": number}


def _plain(function: "Any") -> "Any":
    """The function below functools.partial, a bound method or an object that wraps it."""
    for _ in range(DEEPEST):
        inner = getattr(function, "func", None) or getattr(function, "__func__", None)
        inner = inner or getattr(function, "python_function", None)
        if not callable(inner):
            return function
        function = inner
    return function


def arguments_of(
    function: "Any",
    arguments: "tuple[Any, ...]",
    named: "dict[str, Any]",
    leaves: "Leaves",
    by_value: "Callable[[Any, str], bool]",
) -> "list[dict[str, Any]]":
    """Each part of each argument.

    by_value(position or name, name) says whether a plain Python value of this argument is a part
    of what was compiled.
    """
    found: "list[dict[str, Any]]" = []
    for where, name, value in _bound(function, arguments, named):
        counts = by_value(where, name)
        for path, leaf in leaves(value):
            if len(found) >= MOST_ARGUMENTS:
                return found
            found.append(_described((name + path)[:LONGEST_NAME], leaf, counts))
    return found


def _bound(
    function: "Any", arguments: "tuple[Any, ...]", named: "dict[str, Any]"
) -> "list[tuple[Any, str, Any]]":
    """(position or name, name, value) of each argument."""
    names: "list[str]" = []
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        pass
    bound: "list[tuple[Any, str, Any]]" = []
    for number, value in enumerate(arguments):
        name = names[number] if number < len(names) else "argument %d" % (number + 1)
        bound.append((number, name, value))
    return bound + [(name, name, value) for name, value in sorted(named.items())]


def _described(name: str, value: "Any", by_value: bool) -> "dict[str, Any]":
    kind = type(value)
    found: "dict[str, Any]" = {"name": name, "type": kind.__name__}
    shape = _shape(value)
    if shape is not None:
        found["shape"] = shape
        found["type"] = _element_type(value)
        if getattr(getattr(value, "aval", None), "weak_type", False):
            found["type"] += ", weakly typed"
    elif not by_value:
        pass
    elif kind in PLAIN:
        found["value"] = repr(value)[:LONGEST_VALUE]
    else:
        found["identity"] = id(value)
    return found


def _shape(value: "Any") -> "list[int] | None":
    """The lengths of an array's axes, -1 for one that is not known; None if it is no array."""
    if inspect.getattr_static(type(value), "dtype", None) is None:
        # Asked of the type: an object of the program might compute its attributes.
        return None
    try:
        return [-1 if length is None else int(length) for length in value.shape]
    except (AttributeError, TypeError, ValueError):
        return None


def _element_type(value: "Any") -> str:
    dtype = value.dtype
    return str(getattr(dtype, "name", dtype))


def nested(value: "Any", path: str = "", depth: int = 0) -> "Iterable[tuple[str, Any]]":
    """The parts of dictionaries, lists and tuples."""
    if depth >= DEEPEST:
        yield path, value
    elif isinstance(value, dict):
        for key in list(value):
            for part in nested(value[key], "%s[%.30r]" % (path, key), depth + 1):
                yield part
    elif isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            for part in nested(each, "%s[%d]" % (path, number), depth + 1):
                yield part
    else:
        yield path, value
