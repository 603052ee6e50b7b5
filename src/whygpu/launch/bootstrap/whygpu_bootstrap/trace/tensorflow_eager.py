"""Counts what TensorFlow executes eagerly: single operations, and calls of tf.functions.

Each execution calls one of three functions of the C extension, which the generated Python code
looks up at each call. The placed graph of a tf.function is collected by TensorFlow itself
when the function first runs; TensorFlow is asked for it once per function.
"""

import threading
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.trace import tensorflow_graphs as placed
from whygpu_bootstrap.trace import tensorflow_reasons as why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


MOST_FUNCTIONS = 2000
"""The most functions whose operations are counted; a program with more creates them repeatedly."""

OTHER_FUNCTIONS = "tf.function of others"


class Function:
    """Calls of one function on one device, and what one call runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.seconds = 0.0
        self.placement: "placed.Placement | None" = None


class Eager:
    """Watches the functions of the C extension. One per process."""

    def __init__(self, context_module: "Any", extension: "Any") -> None:
        self._contexts = context_module
        self._extension = extension
        self._collecting = threading.Lock()
        self._lent = False
        self._export = context_module.Context.export_run_metadata
        self.clear()

    def clear(self) -> None:
        self.operations: "dict[Any, Any]" = {}
        self.functions: "dict[Any, Any]" = {}
        self.sights: "dict[Any, Any]" = {}
        self.single = placed.Placement()
        self.lent_once = False

    def install(self) -> None:
        extension = self._extension
        extension.TFE_Py_FastPathExecute = self._counting_operations(
            extension.TFE_Py_FastPathExecute
        )
        for name in ("TFE_Py_Execute", "TFE_Py_ExecuteCancelable"):
            if hasattr(extension, name):
                setattr(extension, name, self._counting_calls(getattr(extension, name)))
        if not hasattr(extension, "TFE_ContextEnableGraphCollection"):
            process_record.note(
                "this TensorFlow cannot say where the operations of a tf.function ran"
            )
            return
        extension.TFE_NewContext = self._collecting_from_the_start(extension.TFE_NewContext)
        context: "Any" = getattr(self._contexts, "_context", None)
        if getattr(context, "_context_handle", None):
            extension.TFE_ContextEnableGraphCollection(context._context_handle)
        self._share_collection()

    def _collecting_from_the_start(self, new_context: "Callable[..., Any]") -> "Callable[..., Any]":
        """Collection needs a context, and creating one earlier would start the devices earlier."""

        def TFE_NewContext(*arguments: "Any") -> "Any":  # noqa: N802
            handle = new_context(*arguments)
            with process_record.noted("collecting TensorFlow's graphs"):
                self._extension.TFE_ContextEnableGraphCollection(handle)
            return handle

        return TFE_NewContext

    def _share_collection(self) -> None:
        """While the program collects graphs itself (tf.summary.trace_on), they are its own."""
        context = self._contexts.Context
        for name in ("enable_run_metadata", "enable_graph_collection"):
            setattr(context, name, self._lending(getattr(context, name)))
        for name in ("disable_run_metadata", "disable_graph_collection"):
            setattr(context, name, self._taking_back(getattr(context, name)))

    def _lending(self, enable: "Callable[..., Any]") -> "Callable[..., Any]":
        def method(context: "Any") -> "Any":
            if context._context_handle and not self._lent:
                self._drain(context)
            self._lent = self.lent_once = True
            return enable(context)

        return _named_like(enable, method)

    def _taking_back(self, disable: "Callable[..., Any]") -> "Callable[..., Any]":
        def method(context: "Any") -> None:
            disable(context)
            self._lent = False
            if context._context_handle:
                self._extension.TFE_ContextEnableGraphCollection(context._context_handle)

        return _named_like(disable, method)

    def _counting_operations(self, execute: "Callable[..., Any]") -> "Callable[..., Any]":
        clock = time.perf_counter
        context_type = self._contexts.Context

        def TFE_Py_FastPathExecute(*arguments: "Any") -> "Any":  # noqa: N802
            began = clock()
            result = execute(*arguments)
            took = clock() - began
            try:
                now = isinstance(arguments[0], context_type)
                op, scope = (
                    (arguments[1], arguments[0].device_name)
                    if now
                    else (arguments[2], arguments[1])
                )
                self._count_operation(op, scope, result, arguments, took)
            except Exception as error:
                process_record.note("counting a TensorFlow operation failed: %r" % error)
            return result

        return _named_like(execute, TFE_Py_FastPathExecute)

    def _count_operation(
        self, op: "Any", scope: "Any", result: "Any", inputs: "Any", took: float
    ) -> None:
        device = getattr(result, "device", None) or _first_device(result) or _first_device(inputs)
        key = (op, device, scope)
        cell = self.operations.get(key)
        if cell is None:
            cell = self.operations.setdefault(key, [0, 0.0])
        cell[0] += 1
        cell[1] += took

    def _counting_calls(self, execute: "Callable[..., Any]") -> "Callable[..., Any]":
        clock = time.perf_counter

        def counting(handle: "Any", device: "Any", op: "Any", *rest: "Any") -> "Any":
            function = self.functions.get((op, device))
            if function is None:
                function = self._first_sight(op, device)
            if function is None or function.placement is None:
                return self._first_call(function, execute, handle, device, op, rest)
            began = clock()
            result = execute(handle, device, op, *rest)
            function.calls += 1
            function.seconds += clock() - began
            return result

        return _named_like(execute, counting)

    def _first_sight(self, op: "Any", device: "Any") -> "Function | None":
        """A new entry for a function; None for an operation, or if there are too many."""
        with process_record.noted("watching a TensorFlow function"):
            name = op.decode() if isinstance(op, bytes) else op
            context = self._contexts.context()
            if len(self.functions) >= MOST_FUNCTIONS or not _is_function(context, name):
                return None
            return self.functions.setdefault((op, device), Function(name))
        return None

    def _first_call(
        self,
        function: "Function | None",
        execute: "Callable[..., Any]",
        handle: "Any",
        device: "Any",
        op: "Any",
        rest: "Any",
    ) -> "Any":
        if function is not None:
            with self._collecting:
                self._leave_out_earlier_graphs()
        began = time.perf_counter()
        result = execute(handle, device, op, *rest)
        took = time.perf_counter() - began
        with process_record.noted("counting a TensorFlow execution"):
            if function is None:
                name = op.decode() if isinstance(op, bytes) else op
                name = OTHER_FUNCTIONS if name.startswith("__") else name
                self._count_operation(name, device, result, rest[:1], took)
                return result
            function.calls += 1
            function.seconds += took
            with self._collecting:
                placement = function.placement = self._place(function, result)
                # Most functions share these: keep them once.
                self.sights.update(placement.sights)
                placement.sights = {}
        return result

    def _leave_out_earlier_graphs(self) -> None:
        with process_record.noted("reading TensorFlow's graphs"):
            if not self._lent:
                self._drain(self._contexts.context())

    def _drain(self, context: "Any") -> None:
        """Graphs that belong to no function call are those of single operations."""
        self._see_single(_function_graphs(self._export(context)))

    def _see_single(self, graphs: "Any") -> None:
        seen = placed.of_function(graphs)
        self.single.sights.update(seen.sights)
        self.single.counts.update(seen.counts)

    def _place(self, function: "Function", result: "Any") -> "placed.Placement":
        context = self._contexts.context()
        graphs = [] if self._lent else _function_graphs(self._export(context))
        if graphs:
            return placed.of_function(graphs)
        body, bodies = _definition(context, function.name)
        if body is None:
            return placed.Placement()
        return placed.of_definition(body, placed.label(_first_device(result) or ""), bodies)

    def take_remaining(self) -> None:
        """At the end: the graphs of single operations that no function call has asked for."""
        context = getattr(self._contexts, "_context", None)
        if self._lent or getattr(context, "_context_handle", None) is None:
            return
        if hasattr(self._extension, "TFE_ContextEnableGraphCollection"):
            with self._collecting:
                self._drain(context)

    def gpus(self) -> "list[str] | None":
        """Labels of the GPUs of eager execution; None if it never started."""
        context = getattr(self._contexts, "_context", None)
        devices = getattr(context, "_logical_devices", None)
        if devices is None:
            return self._gpus_of_old_context(context)
        labels = [placed.label(device.name) for device in devices]
        return [name for name in labels if name.startswith("gpu")]

    def _gpus_of_old_context(self, context: "Any") -> "list[str] | None":
        names = getattr(context, "_context_devices", None)
        if names is None:
            return None
        return [placed.label(name) for name in names if why.kind(name) == "gpu"]


def _named_like(original: "Any", replacement: "Any") -> "Any":
    replacement.__name__ = getattr(original, "__name__", replacement.__name__)
    replacement.__doc__ = getattr(original, "__doc__", None)
    return replacement


def _first_device(values: "Any") -> "Any":
    if not isinstance(values, (list, tuple)):
        return getattr(values, "device", None)
    for value in values:
        device = getattr(value, "device", None)
        if device is None and isinstance(value, (list, tuple)):
            device = _first_device(value)
        # An array of NumPy has a device, too, whose name is no path.
        if isinstance(device, str) and "/" in device:
            return device
    return None


def _is_function(context: "Any", name: str) -> bool:
    has_function = getattr(context, "has_function", None)
    return has_function(name) if has_function else name.startswith("__")


def _function_graphs(metadata: "Any") -> "list[Any]":
    if metadata is None:
        return []
    return list(getattr(metadata, "function_graphs", ()))


def _definition(context: "Any", name: str) -> "tuple[Any, dict[str, Any]]":
    """A function's body and those it calls, as they were before placement."""
    get = getattr(context, "get_function_def", None)
    if get is None:
        return None, {}
    bodies = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in bodies or not context.has_function(current):
            continue
        body = bodies[current] = get(current)
        for node in body.node_def:
            waiting += [value.func.name for value in node.attr.values() if value.func.name]
    return bodies.get(name), bodies


def extension_module(context_module: "Any") -> "Any":
    """The module in which TensorFlow's Python looks up the C functions, by its generation.

    Taken from where it is used: TensorFlow 1.15 has two modules of the name.
    """
    for name in ("pywrap_tfe", "pywrap_tensorflow"):
        module = getattr(context_module, name, None)
        if hasattr(module, "TFE_Py_FastPathExecute"):
            return module
    return None
