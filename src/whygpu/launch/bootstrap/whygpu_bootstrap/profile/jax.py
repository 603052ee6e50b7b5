"""Steps of JAX: executions of compiled functions, by their names; and what JAX compiles.

JAX compiles each of its own operations, too, if the program calls it outside a jitted function.
Executions of those are counted, but they are no steps.
"""

import os
import sys

from whygpu_bootstrap import jax_results, process_record
from whygpu_bootstrap.profile import jax_profiler, recorder, signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

OPERATION = "jax-operation"
OWN_MODULES = ("jax.", "jaxlib.")
OWN_FOLDER = "/jax/_src/"
COMPILED = "/jax/core/compile/backend_compile_duration"


def start(jax: "Any") -> None:
    recorder.prepare("jax", start, jax)
    with process_record.noted("preparing JAX's profiler"):
        recorder.add_profiler("jax", jax_profiler.Profiler(jax))
    if not recorder.is_new("jax"):
        return
    with process_record.noted("marking the executions of JAX"):
        jax_results.after_each(_executed)
    with process_record.noted("timing the compilations of JAX"):
        jax.monitoring.register_event_duration_secs_listener(_took)


def _executed(function: "Any") -> None:
    module = getattr(getattr(function, "__wrapped__", None), "__module__", None) or ""
    _mark(getattr(function, "__name__", ""), module.startswith(OWN_MODULES))


def _mark(name: str, is_operation: bool) -> None:
    recorder.mark(OPERATION if is_operation else "jax %s" % (name or "?"))


def _took(event: str, seconds: float, **named: "Any") -> None:
    if event == COMPILED:
        name = str(named.get("fun_name", ""))
        if name.startswith("jit(") and name.endswith(")"):
            name = name[len("jit(") : -1]
        why: "dict[str, Any]" = {}
        with process_record.noted("finding out what JAX compiled for"):
            why = _why()
        recorder.compiled(name, seconds, why)
        # The first execution after a compilation does not reach the hook.
        _mark(name, not name or OWN_FOLDER in why.get("file", "").replace(os.sep, "/"))


def _why() -> "dict[str, Any]":
    """The function that is being compiled, and its arguments, from the stack of the compilation.

    jit calls its Python function `cache_miss` for arguments that it has nothing compiled for.
    """
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "cache_miss":
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return {}
    names = frame.f_locals
    if not {"fun", "args", "kwargs"} <= set(names):
        return {}
    static = _static(names.get("jit_info"))

    def by_value(where: "Any", name: str) -> bool:
        return where in static or name in static

    arguments = signatures.arguments_of(
        names["fun"], names["args"], names["kwargs"], _leaves, by_value
    )
    return dict(signatures.place_of(names["fun"]), arguments=arguments)


def _static(options: "Any") -> "set[Any]":
    """The positions and names of the arguments that jit compiles as constants."""
    numbers = getattr(options, "static_argnums", None) or ()
    names = getattr(options, "static_argnames", None) or ()
    return set(numbers) | set(names)


def _leaves(value: "Any") -> "Iterable[tuple[str, Any]]":
    """Also of the program's own containers, which JAX knows."""
    tree = sys.modules["jax"].tree_util
    for path, leaf in tree.tree_flatten_with_path(value)[0]:
        yield "".join(str(key) for key in path), leaf
