"""Calls a function after each execution of a function that JAX has compiled.

Executions stay in C++, except the first. JAX has a hook for checking results there (jax_debug_nans
uses it). In newer releases the hook is a separate state. The program's own hook is still called.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def after_each(call: "Callable[[Any], None]") -> "Callable[[], bool]":
    """Call call(function) after each execution. Returns a function: is the hook still there?

    Raises LookupError or AttributeError if this release of JAX has no such hook.
    """
    api = sys.modules["jax._src.api"]
    state = getattr(api, "_post_hook_state", None)
    if state is not None:
        earlier = _state["set"]
        theirs = (lambda: earlier.value) if earlier is not None else (lambda: state.value)
        ours = api.config_ext.Config(
            "whygpu_post_hook_%d" % _state["count"],
            _chained(call, theirs),
            include_in_jit_key=False,
        )
        _state["set"] = ours
        _state["count"] += 1
        api.jax_jit.set_post_hook_state(ours)
        return lambda: True
    jit_state = sys.modules["jax._src.lib"].jax_jit.global_state()
    before = jit_state.post_hook
    hook = jit_state.post_hook = _chained(call, lambda: before)
    return lambda: jit_state.post_hook is hook


_state: "dict[str, Any]" = {"set": None, "count": 0}


def _chained(call: "Callable[[Any], None]", theirs: "Any") -> "Callable[..., None]":
    def after_execution(function: "Any", arguments: "Any", options: "Any", result: "Any") -> None:
        call(function)
        hook = theirs()
        if hook is not None:
            hook(function, arguments, options, result)

    return after_execution
