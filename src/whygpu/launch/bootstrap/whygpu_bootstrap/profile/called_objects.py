"""Which expression of a line is executing, and what it calls. Runs none of the program's code.

A function of C has no frame: while `loss.item()` waits, the innermost frame is the program's own,
and only its position shows what is running.
"""

import ast
import dis
import inspect
import linecache
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_TEXT = 200
UNKNOWN = object()
READS_LOCALS = frozenset(("locals", "vars", "exec", "eval"))
"""Functions whose users could notice that the snapshot of the local variables was emptied."""
COMPOUND = ("for ", "async for ", "with ", "while ")
NUMBERS = ("builtins.float", "builtins.int")
FRAMEWORKS = ("torch", "jax", "jaxlib", "tensorflow", "keras")
"""What their functions and models return is theirs, too."""
CALLS = ("CALL", "PRECALL", "FOR_ITER", "BINARY", "COMPARE", "UNARY", "STORE_SUBSCR")
"""How the names of those instructions begin that can spend time without a frame."""


def expression(code: "types.CodeType", at: int, line: int, names: "dict[str, Any]") -> str:
    """The source of the expression at an instruction; before Python 3.11, of its whole line."""
    first = linecache.getline(code.co_filename, line, names)
    whole = first.strip()
    span = _span(code, at)
    if span is None:
        return whole[:LONGEST_TEXT]
    line, last_line, column, end = span
    lines = [linecache.getline(code.co_filename, n, names) for n in range(line, last_line + 1)]
    heads = whole.startswith(COMPOUND) and not _instruction(code, at).startswith("CALL")
    if not lines or len(lines) > 30 or heads:
        # The instruction of a loop covers its body as well. A call is exact: it may be one of the
        # body, on the same line.
        return whole[:LONGEST_TEXT]
    # Columns count bytes.
    parts = [each.encode("utf-8", "replace") for each in lines]
    parts[-1] = parts[-1][:end]
    parts[0] = parts[0][column:]
    text = b"".join(parts).decode("utf-8", "replace")
    return " ".join(text.split())[:LONGEST_TEXT] or whole[:LONGEST_TEXT]


def _span(code: "types.CodeType", at: int) -> "tuple[int, int, int, int] | None":
    positions = getattr(code, "co_positions", None)
    if positions is None or at < 0:
        return None
    for number, found in enumerate(positions()):
        if number == at // 2:
            return found if None not in found else None
    return None


def called(frame: "types.FrameType", code: "types.CodeType", at: int, text: str) -> str:
    """What the instruction calls: "torch.Tensor.item", "time.sleep"; empty for Python's own work.

    Such a name starts with the module in which the called object, or the object whose method it
    is, was defined. "?" if something is called and nothing shows what.
    """
    instruction = _instruction(code, at)
    if not instruction.startswith(CALLS):
        return ""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        node = _statement(text, instruction.startswith("FOR_ITER"))
    return _described(node, frame) if node is not None else "?"


def _instruction(code: "types.CodeType", at: int) -> str:
    codes = code.co_code
    # While a function of Python is called, the caller is at the end of the call's cache.
    while 2 <= at < len(codes) and dis.opname[codes[at]] == "CACHE":
        at -= 2
    return dis.opname[codes[at]] if 0 <= at < len(codes) else ""


def _statement(text: str, iterates: bool) -> "Any":
    """The outermost call of a line, where Python does not say which expression it is at.

    None for a loop with its body on the same line, unless it is known to be at the next element.
    """
    try:
        if text.endswith(":"):
            text += " pass"
        elif text.startswith(COMPOUND) and not iterates:
            return None
        found = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(found):
        if isinstance(node, ast.For):
            return node.iter
        if isinstance(node, (ast.Call, ast.BinOp)):
            return node
    return None


def _described(node: "Any", frame: "types.FrameType") -> str:
    if isinstance(node, ast.Call):
        name = _named(node.func, frame)
        return _converted(node.args[0], name, frame) if name in NUMBERS and node.args else name
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        return _of_operands(node, frame, "operator", "")
    if isinstance(node, ast.Subscript):
        value = _value(node.value, frame)
        return "?" if value is UNKNOWN else _type_name(value) + ".operator"
    value = _value(node, frame)
    return "?" if value is UNKNOWN else _type_name(value)


def _converted(node: "Any", name: str, frame: "types.FrameType") -> str:
    """float(loss) waits for a tensor as loss.item() does; float(text) does not."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return _of_operands(node, frame, "item", name)


def _of_operands(node: "Any", frame: "types.FrameType", method: str, plain: str) -> str:
    """A method of the operand that is not of Python itself; `plain` if all of them are."""
    kinds = [_kind(each, frame) for each in _operands(node)]
    for kind in kinds:
        if kind and not kind.startswith("builtins."):
            return "%s.%s" % (kind, method)
    return plain if all(kinds) else "?"


def _operands(node: "Any") -> "list[Any]":
    """What an expression such as (a * b) % 7 == c is computed from."""
    if isinstance(node, ast.BinOp):
        return _operands(node.left) + _operands(node.right)
    if isinstance(node, ast.Compare):
        parts = [_operands(each) for each in [node.left, *node.comparators]]
        return [operand for part in parts for operand in part]
    if isinstance(node, ast.UnaryOp):
        return _operands(node.operand)
    return [node]


def _kind(node: "Any", frame: "types.FrameType") -> str:
    """The type of an expression's value. Of what a framework returns only the framework is known,
    as "torch.?". Empty if nothing shows it."""
    if isinstance(node, ast.Constant):
        return _type_name(node.value)
    value = _value(node, frame)
    if value is not UNKNOWN:
        return _type_name(value)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _framework_of(_kind(node.value, frame))
    if isinstance(node, ast.Call):
        return _framework_of(_of_model(node.func, frame) or _named(node.func, frame))
    if isinstance(node, ast.BinOp):
        kinds = [_framework_of(_kind(each, frame)) for each in _operands(node)]
        return next((kind for kind in kinds if kind), "")
    return ""


def _framework_of(name: str) -> str:
    first = name.partition(".")[0]
    return first + ".?" if first in FRAMEWORKS else ""


def _of_model(node: "Any", frame: "types.FrameType") -> str:
    """For a model of the program, or a method of one: the class of a framework that it extends."""
    owners = [node, node.value] if isinstance(node, ast.Attribute) else [node]
    for owner in owners:
        for base in type(_value(owner, frame)).__mro__:
            if _framework_of(base.__module__):
                return "%s.%s" % (base.__module__, base.__name__)
    return ""


def _named(node: "Any", frame: "types.FrameType") -> str:
    """The name of what is called."""
    value = _value(node, frame)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        if isinstance(owner, types.ModuleType):
            return "%s.%s" % (owner.__name__, node.attr)
        if owner is not UNKNOWN and not isinstance(owner, type):
            return "%s.%s" % (_type_name(owner), node.attr)
        if value is UNKNOWN:
            return "%s.%s" % (_kind(node.value, frame) or "?", node.attr)
    if value is UNKNOWN:
        return "?"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        module = getattr(value, "__module__", None) or type(value).__module__
        return "%s.%s" % (module, value.__name__)
    return _type_name(value)


def _type_name(value: "Any") -> str:
    kind = type(value)
    return "%s.%s" % (kind.__module__, kind.__name__)


def _value(node: "Any", frame: "types.FrameType") -> "Any":
    if isinstance(node, ast.Name):
        return _variable(node.id, frame)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        if owner is UNKNOWN:
            return UNKNOWN
        if isinstance(owner, types.ModuleType):
            return vars(owner).get(node.attr, UNKNOWN)
        return inspect.getattr_static(owner, node.attr, UNKNOWN)
    return UNKNOWN


def _variable(name: str, frame: "types.FrameType") -> "Any":
    code = frame.f_code
    if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
        return local_variable(name, frame)
    if name in frame.f_globals:
        return frame.f_globals[name]
    return frame.f_builtins.get(name, UNKNOWN) if hasattr(frame, "f_builtins") else UNKNOWN


def local_variable(name: str, frame: "types.FrameType") -> "Any":
    """A local variable of a running function.

    Until Python 3.12, asking a frame for its variables leaves a copy of all of them in the frame,
    which would keep tensors alive. So the copy is emptied, unless the function could see that.
    """
    code = frame.f_code
    if READS_LOCALS & set(code.co_names) or not code.co_flags & inspect.CO_OPTIMIZED:
        return UNKNOWN
    variables = frame.f_locals
    value = variables.get(name, UNKNOWN)
    if type(variables) is dict:
        variables.clear()
    return value
