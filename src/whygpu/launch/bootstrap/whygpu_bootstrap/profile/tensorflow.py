"""Steps of TensorFlow: calls of a tf.function, runs of a session, batches of its own Keras.

A program that computes its gradients without any of these calls GradientTape.gradient().
"""

import functools
import sys
import threading
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import keras, recorder, signatures, tensorflow_profiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

FUNCTION = (
    ("tensorflow.python.eager.polymorphic_function.polymorphic_function", "Function"),
    ("tensorflow.python.eager.def_function", "Function"),
)
TAPE = "tensorflow.python.eager.backprop"
SESSION = ("tensorflow.python.client.session", "tensorflow_core.python.client.session")
PYTHON_CALLS = ("tensorflow.python.ops.script_ops", "tensorflow_core.python.ops.script_ops")
OWN_KERAS = ("tensorflow.python.keras.callbacks", "tensorflow_core.python.keras.callbacks")
"""The Keras of TensorFlow 1; later ones are packages of their own."""


def start(tensorflow: "Any") -> None:
    recorder.prepare("tensorflow", start, tensorflow)
    with process_record.noted("preparing TensorFlow's profiler"):
        recorder.add_profiler("tensorflow", tensorflow_profiler.Profiler(tensorflow))
    if not recorder.is_new("tensorflow"):
        return
    with process_record.noted("marking the calls of functions"):
        _mark_functions()
    with process_record.noted("marking the gradients of tapes"):
        _mark_tapes(tensorflow)
    with process_record.noted("marking the runs of sessions"):
        _mark_sessions()
    with process_record.noted("marking the batches of TensorFlow's Keras"):
        _mark_own_keras()
    with process_record.noted("timing Python functions that TensorFlow calls"):
        _time_python_calls()


def _mark_functions() -> None:
    for name, attribute in FUNCTION:
        kind = getattr(sys.modules.get(name), attribute, None)
        if kind is not None:
            kind.__call__ = _marking_call(kind.__call__)
            return


def _marking_call(call: "Callable[..., Any]") -> "Callable[..., Any]":
    inside = threading.local()

    def __call__(instance: "Any", *arguments: "Any", **named: "Any") -> "Any":  # noqa: N807
        outermost = not getattr(inside, "a_call", False)
        inside.a_call = True
        traced = _traces(instance)
        began = time.perf_counter()
        try:
            return call(instance, *arguments, **named)
        finally:
            if outermost:
                # A function that is called by another one is a part of it.
                inside.a_call = False
                seconds = time.perf_counter() - began
                name = getattr(instance, "__name__", "function")
                if _traces(instance) != traced:
                    _note_trace(name, seconds, instance, arguments, named)
                recorder.mark("tensorflow %s" % name, seconds)

    return __call__


def _mark_tapes(tensorflow: "Any") -> None:
    kind = getattr(sys.modules.get(TAPE), "GradientTape", None)
    eager = getattr(tensorflow, "executing_eagerly", None)
    if kind is None or eager is None:
        return
    gradient = kind.gradient

    # With the name of its module, from which AutoGraph knows that it need not convert it.
    @functools.wraps(gradient)
    def marked(*arguments: "Any", **named: "Any") -> "Any":
        result = gradient(*arguments, **named)
        if eager():
            # Not while a tf.function is traced, which is marked itself.
            recorder.mark("tensorflow GradientTape.gradient")
        return result

    kind.gradient = marked


def _traces(function: "Any") -> int:
    """How often a tf.function has been traced; 0 if this release does not count that."""
    count = getattr(function, "experimental_get_tracing_count", None)
    return count() if count is not None else 0


def _note_trace(
    name: str, seconds: float, function: "Any", arguments: "tuple[Any, ...]", named: "Any"
) -> None:
    why: "dict[str, Any]" = {}
    with process_record.noted("finding out why a tf.function was traced"):
        described = signatures.arguments_of(
            function.python_function, arguments, named, _leaves, lambda where, name: True
        )
        why = dict(signatures.place_of(function), arguments=described)
    recorder.compiled(name, seconds, why)


def _leaves(value: "Any") -> "Iterable[tuple[str, Any]]":
    """An iterator over a data set stands for its elements; fit passes nothing else."""
    return signatures.nested(getattr(value, "element_spec", value))


def _mark_sessions() -> None:
    module = next((sys.modules[name] for name in SESSION if name in sys.modules), None)
    kind = getattr(module, "BaseSession", None)
    if kind is not None:
        kind.run = _marking_run(kind.run)


def _marking_run(run: "Callable[..., Any]") -> "Callable[..., Any]":
    def marked(instance: "Any", fetches: "Any", *arguments: "Any", **named: "Any") -> "Any":
        began = time.perf_counter()
        result = run(instance, fetches, *arguments, **named)
        recorder.mark("session %s" % _kind_of(fetches), time.perf_counter() - began)
        return result

    marked.__name__ = run.__name__
    marked.__doc__ = run.__doc__
    return marked


def _kind_of(fetches: "Any") -> str:
    """What a run fetches, by the names in its graph."""
    parts = fetches if isinstance(fetches, (list, tuple)) else [fetches]
    return ",".join(str(getattr(part, "name", "?")) for part in parts[:5])[:100]


def _time_python_calls() -> None:
    """numpy_function, py_function and the generators of from_generator: one object calls them."""
    module = next((sys.modules[name] for name in PYTHON_CALLS if name in sys.modules), None)
    kind = getattr(module, "FuncRegistry", None)
    if kind is not None:
        kind.__call__ = _timing(kind.__call__)


def _timing(call: "Callable[..., Any]") -> "Callable[..., Any]":
    def __call__(instance: "Any", token: "Any", *arguments: "Any") -> "Any":  # noqa: N807
        began = time.perf_counter()
        try:
            return call(instance, token, *arguments)
        finally:
            recorder.called_python(_name_of(instance, token), time.perf_counter() - began)

    return __call__


def _name_of(registry: "Any", token: "Any") -> str:
    """Of the Python function that TensorFlow knows by this token."""
    function: "Any" = getattr(registry, "_funcs", {}).get(token)
    # py_function wraps it.
    function = getattr(function, "_func", function)
    return str(getattr(function, "__name__", "") or "a Python function")[:200]


def _mark_own_keras() -> None:
    for name in OWN_KERAS:
        module = sys.modules.get(name)
        kind = getattr(module, "CallbackList", None)
        if kind is None:
            continue
        if not hasattr(kind, "_call_batch_hook"):
            keras.watch(module)
            return
        kind._call_batch_hook = _marking_hook(kind._call_batch_hook)
        return


def _marking_hook(hook: "Callable[..., Any]") -> "Callable[..., Any]":
    def _call_batch_hook(
        instance: "Any", mode: "Any", which: "Any", *rest: "Any", **named: "Any"
    ) -> "Any":
        if which == "end" and str(getattr(mode, "value", mode)) == "train":
            recorder.mark("keras fit")
        return hook(instance, mode, which, *rest, **named)

    return _call_batch_hook
