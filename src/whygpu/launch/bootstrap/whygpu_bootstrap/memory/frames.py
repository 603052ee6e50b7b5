"""Reads the frames of a program that has died, and what they refer to. Runs none of its code."""

import ast
import inspect
import linecache
import os
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Iterable, Iterator

    Frames = list[tuple[types.FrameType, int]]

MOST_FRAMES = 60
LARGEST_SOURCE = 1 << 20
DEEPEST = 3
"""From a variable through attributes of the program's own objects: self.trainer.optimizer."""
MOST_BELONGINGS = 20000
LIBRARIES = ("torch", "jax", "jaxlib", "tensorflow", "keras", "tf_keras", "numpy", "builtins")
UNKNOWN = object()
"""The value of an expression that cannot be known without running it."""
ARRAYS = ("Tensor", "Parameter", "EagerTensor", "ArrayImpl", "ndarray")
CONSTANTS = ("Constant", "Num", "Str", "NameConstant")
"""Before Python 3.8, constants are of the latter three types."""
SAME_SHAPE = ("to", "cuda", "cpu", "contiguous", "pin_memory", "detach")
"""Methods of a tensor that return one of the same shape."""


def frames_of(error: "BaseException") -> "Frames":
    """[(frame, line)] of an exception, from the program's first to where it failed."""
    found: "Frames" = []
    trace = getattr(error, "__traceback__", None)
    while trace is not None and len(found) < MOST_FRAMES:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found


def package(frame: "types.FrameType") -> str:
    """The installed package that the code of a frame belongs to; empty for the program."""
    path = frame.f_code.co_filename.replace(os.sep, "/")
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rpartition(folder)[2].partition("/")[0]
    return ""


def line_of(frame: "types.FrameType", number: int) -> str:
    return linecache.getline(frame.f_code.co_filename, number, frame.f_globals)


def statements(frame: "types.FrameType") -> "list[Any] | None":
    """All nodes of the source of a frame's code; None if there is no source."""
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    if not source or len(source) > LARGEST_SOURCE:
        return None
    try:
        with warnings.catch_warnings():
            # These warnings were shown when the program was compiled.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError:
        # A notebook's cell with a magic command, or a file that has changed since.
        return None
    first = frame.f_code.co_firstlineno
    return [node for node in ast.walk(tree) if getattr(node, "lineno", 0) >= first]


def around(frame: "types.FrameType", line: int, kinds: "Any") -> "list[Any] | None":
    """The compound statements whose body a frame was in; None if there is no source."""
    nodes = statements(frame)
    if nodes is None:
        return None
    return [
        node
        for node in nodes
        if isinstance(node, kinds) and node.body[0].lineno <= line <= _last_of(node.body)
    ]


def calls_at(frame: "types.FrameType", line: int) -> "list[ast.Call]":
    """The calls that a line is part of."""
    return [
        node
        for node in statements(frame) or ()
        if isinstance(node, ast.Call) and node.lineno <= line <= _last_of([node])
    ]


def _last_of(nodes: "Iterable[ast.AST]") -> int:
    return max(getattr(each, "lineno", 0) for node in nodes for each in ast.walk(node))


def belongings(frames: "Frames") -> "Iterator[tuple[str, Any]]":
    """The variables of the program and the attributes of its own objects, by name."""
    waiting = list(_variables(frames))
    met: "set[Any]" = set()
    while waiting and len(met) < MOST_BELONGINGS:
        depth, name, value = waiting.pop(0)
        if id(value) in met:
            continue
        met.add(id(value))
        yield name, value
        if depth < DEEPEST and _is_programs_own(value):
            attributes = getattr(value, "__dict__", {})
            waiting += [(depth + 1, "%s.%s" % (name, key), attributes[key]) for key in attributes]


def _variables(frames: "Frames") -> "Iterator[tuple[int, str, Any]]":
    for frame, _ in reversed(frames):
        if not package(frame):
            for name, value in frame.f_locals.items():
                yield 1, name, value
    for name, value in vars(sys.modules["__main__"]).items():
        yield 1, name, value


def _is_programs_own(value: "Any") -> bool:
    return type(value).__module__.partition(".")[0] not in LIBRARIES


def value_of(node: "Any", frame: "types.FrameType") -> "Any":
    """The value of an expression in a frame, if no code has to run for it."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id, UNKNOWN))
    if isinstance(node, ast.Attribute):
        return _attribute(value_of(node.value, frame), node.attr)
    if isinstance(node, ast.Subscript):
        return _element(value_of(node.value, frame), value_of(_index(node), frame))
    if isinstance(node, ast.BinOp):
        return _computed(node.op, value_of(node.left, frame), value_of(node.right, frame))
    if isinstance(node, ast.Call):
        return _called(node, frame)
    if isinstance(node, (ast.Tuple, ast.List)):
        values = [value_of(each, frame) for each in node.elts]
        return UNKNOWN if any(each is UNKNOWN for each in values) else values
    kept = vars(node) if type(node).__name__ in CONSTANTS else {}
    return kept.get("value", kept.get("n", kept.get("s", UNKNOWN)))


def _called(node: "Any", frame: "types.FrameType") -> "Any":
    """The result of calls that need not be made to know it: len(x), x.to(device)."""
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr in SAME_SHAPE:
        return value_of(called.value, frame)
    is_length = getattr(called, "id", "") == "len" and len(node.args) == 1
    measured: "Any" = value_of(node.args[0], frame) if is_length else UNKNOWN
    if type(measured) in (list, tuple, dict):
        return len(measured)
    shape = _attribute(measured, "shape")
    return shape[0] if isinstance(shape, tuple) and shape else UNKNOWN


def _index(node: "Any") -> "Any":
    # Before Python 3.9, a plain index is wrapped.
    return node.slice.value if type(node.slice).__name__ == "Index" else node.slice


def _attribute(owner: "Any", name: str) -> "Any":
    if owner is UNKNOWN:
        return UNKNOWN
    if name == "shape" and type(owner).__name__ in ARRAYS:
        return tuple(owner.shape)
    modules = vars(owner).get("_modules") if hasattr(owner, "__dict__") else None
    if isinstance(modules, dict) and name in modules:
        return modules[name]
    found = inspect.getattr_static(owner, name, UNKNOWN)
    return UNKNOWN if hasattr(type(found), "__get__") else found


def _element(owner: "Any", key: "Any") -> "Any":
    plain = type(owner) in (dict, list, tuple) and type(key) in (int, str)
    if not plain:
        return UNKNOWN
    try:
        return owner[key]
    except (LookupError, TypeError):
        return UNKNOWN


def _computed(operation: "Any", left: "Any", right: "Any") -> "Any":
    if type(left) is not int or type(right) is not int:
        return UNKNOWN
    if isinstance(operation, ast.Mult):
        return left * right
    if isinstance(operation, ast.FloorDiv) and right:
        return left // right
    if isinstance(operation, ast.Add):
        return left + right
    return left - right if isinstance(operation, ast.Sub) else UNKNOWN
