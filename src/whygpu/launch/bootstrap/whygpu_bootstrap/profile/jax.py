"""Steps of JAX: executions of compiled functions, by their names; and what JAX compiles."""

from whygpu_bootstrap import jax_results, process_record
from whygpu_bootstrap.profile import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMPILED = "/jax/core/compile/backend_compile_duration"


def start(jax: "Any") -> None:
    recorder.begin()
    if not recorder.is_new("jax"):
        return
    with process_record.noted("marking the executions of JAX"):
        jax_results.after_each(_executed)
    with process_record.noted("timing the compilations of JAX"):
        jax.monitoring.register_event_duration_secs_listener(_took)


def _executed(function: "Any") -> None:
    recorder.mark("jax %s" % getattr(function, "__name__", "?"))


def _took(event: str, seconds: float, **named: "Any") -> None:
    if event == COMPILED:
        name = str(named.get("fun_name", ""))
        if name.startswith("jit(") and name.endswith(")"):
            name = name[len("jit(") : -1]
        recorder.compiled(name, seconds)
        # The first execution after a compilation does not reach the hook.
        recorder.mark("jax %s" % (name or "?"))
