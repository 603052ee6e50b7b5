"""Shared by code detectors: names of frameworks, lists of devices, and exception handlers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.model.events import Call, Event
from whygpu.model.program import handlers_around
from whygpu.model.values import Constant, Filtered, Item, Name, Result, Value

_LISTS = {
    "config.list_physical_devices": "",
    "config.list_logical_devices": "",
    "config.get_visible_devices": "",
}
DEVICE_SETTERS = frozenset(
    {
        "config.set_memory_growth",
        "config.set_visible_devices",
        "config.set_logical_device_configuration",
        "config.set_virtual_device_configuration",
    }
)
"""Calls, as tf_name gives them, that must come before TensorFlow creates its devices."""


def tf_name(path: str) -> str:
    """For example config.set_visible_devices, for every spelling in TensorFlow; else empty."""
    top, _, rest = path.partition(".")
    if top != "tensorflow":
        return ""
    for prefix in ("compat.v1.", "compat.v2."):
        rest = rest.removeprefix(prefix)
    if rest.startswith("config.experimental."):
        return "config." + rest.removeprefix("config.experimental.")
    return rest


def keras_name(path: str) -> str:
    """For example backend.set_session, for keras, tf.keras and tf_keras; else empty."""
    for prefix in ("keras.", "tf_keras.", "tensorflow.keras.", "tensorflow.compat.v1.keras."):
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    return ""


def text_of(value: Value) -> str | None:
    """The value of a string constant."""
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else None


def devices_listed(value: Value) -> tuple[Call, str] | None:
    """For a list of devices: the call that created it, and the device type, in capitals.

    The type is empty if all devices are listed, and "?" if the source does not show it.
    """
    if isinstance(value, Filtered):
        inner = devices_listed(value.of)
        return (inner[0], value.device_type.upper()) if inner else None
    if not isinstance(value, Result) or tf_name(value.call.path) not in _LISTS:
        return None
    asked = value.call.argument(0, "device_type")
    if asked is None and not value.call.node.args and not value.call.node.keywords:
        return value.call, ""
    word = text_of(asked)
    return value.call, word.upper() if word is not None else "?"


def gpus_listed(value: Value) -> bool:
    found = devices_listed(value)
    return found is not None and found[1] == "GPU"


def caught(handler: ast.ExceptHandler) -> tuple[str, ...]:
    """The last parts of the names that an except clause catches; bare: BaseException."""
    if handler.type is None:
        return ("BaseException",)
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return tuple(
        node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "?") for node in types
    )


def catches(handler: ast.ExceptHandler, *names: str) -> bool:
    return any(name in (*names, "Exception", "BaseException") for name in caught(handler))


def guarded_by_attribute_error(event: Event) -> bool:
    """The author expects a missing name, and tries one API and then another."""
    return any(
        name in ("AttributeError", "ImportError", "ModuleNotFoundError")
        for handler in handlers_around(event)
        for name in caught(handler)
    ) or any(frame.kind == "handler" for frame in event.context)


def is_broad(handler: ast.ExceptHandler) -> bool:
    return any(name in ("Exception", "BaseException") for name in caught(handler))


_REPORTING = ("print", "warn", "warning", "error", "exception", "info", "debug", "log", "print_exc")


def only_reports(handler: ast.ExceptHandler) -> bool:
    """The clause only prints, logs or passes, and the program continues."""
    for statement in handler.body:
        if isinstance(statement, (ast.Pass, ast.Continue)):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return False
        name = call.func
        word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
        if word not in _REPORTING:
            return False
    return True


def origin(value: Value) -> Value:
    """The list that an item was taken from; otherwise the value itself."""
    while isinstance(value, Item):
        value = value.of
    return value


def path_of(value: Value) -> str:
    """The full name of an imported object, or of the call that created this value."""
    if isinstance(value, Name):
        return value.path
    return value.call.path if isinstance(value, Result) else ""


def device_scopes(event: Event) -> Iterator[tuple[ast.AST, Call]]:
    """The `with tf.device(...)` statements around it, innermost first."""
    for frame in reversed(event.context):
        if frame.kind == "with":
            for value in frame.values:
                if isinstance(value, Result) and tf_name(value.call.path) == "device":
                    yield frame.node, value.call


def takes_current_gpu(call: Call) -> bool:
    """x.cuda() and x.to("cuda") name no number: they use the first GPU, or that of set_device."""
    if call.path or not isinstance(call.node.func, ast.Attribute):
        return False
    if call.method == "cuda":
        return not call.node.args and not call.node.keywords
    return call.method == "to" and text_of(call.argument(0, "device")) == "cuda"
