"""Where TensorFlow's operations ran: eager, tf.function, Keras fit, and TensorFlow 1 sessions."""

import sys

from whygpu_bootstrap import process_record
from whygpu_bootstrap.trace import results
from whygpu_bootstrap.trace import tensorflow_eager as eager_part
from whygpu_bootstrap.trace import tensorflow_graphs as placed
from whygpu_bootstrap.trace import tensorflow_idle as idle
from whygpu_bootstrap.trace import tensorflow_reasons as why
from whygpu_bootstrap.trace import tensorflow_session as session_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whygpu_bootstrap.trace.results import Reasons, Tally
    from whygpu_bootstrap.trace.tensorflow_eager import Eager
    from whygpu_bootstrap.trace.tensorflow_reasons import Knowledge, Sight
    from whygpu_bootstrap.trace.tensorflow_session import Sessions

_watched: "dict[str, Any]" = {"eager": None, "sessions": None}


def start(tensorflow: "Any", settings: "dict[str, Any]") -> None:
    with process_record.noted("tracing TensorFlow's sessions"):
        _watched["sessions"] = _watch_sessions()
    with process_record.noted("tracing TensorFlow's eager execution"):
        _watched["eager"] = _watch_eager()


def _watch_sessions() -> "Sessions | None":
    module = _module("client.session")
    protos = _core_module("protobuf.config_pb2")
    if module is None or protos is None:
        process_record.note("whygpu does not find the sessions of this TensorFlow release")
        return None
    sessions = session_part.Sessions(module, protos)
    sessions.install()
    return sessions


def _watch_eager() -> "Eager | None":
    context = _module("eager.context")
    extension = eager_part.extension_module(context)
    if context is None or extension is None:
        process_record.note("whygpu does not find the eager execution of this TensorFlow release")
        return None
    eager = eager_part.Eager(context, extension)
    eager.install()
    return eager


def _module(name: str) -> "Any":
    return sys.modules.get("tensorflow.python." + name) or sys.modules.get(
        "tensorflow_core.python." + name
    )


def _core_module(name: str) -> "Any":
    return sys.modules.get("tensorflow.core." + name) or sys.modules.get(
        "tensorflow_core.core." + name
    )


def after_fork() -> None:
    """What the parent has counted does not count for the child."""
    for part in _watched.values():
        if part is not None:
            part.clear()


def result() -> "dict[str, Any]":
    tally, reasons = results.Tally(), results.Reasons()
    notes: "list[str]" = []
    sights: "dict[Any, Any]" = {}
    folded: "dict[Any, int]" = {}
    transfers = results.Transfers()
    eager, sessions = _watched["eager"], _watched["sessions"]
    if eager is not None:
        with process_record.noted("the last graphs of TensorFlow"):
            eager.take_remaining()
        _count_eager(eager, tally, sights, notes)
        for function in _placed_functions(eager):
            _add_folded(function.placement, folded)
            for each in function.placement.transfers:
                transfers.add(each.source, each.target, function.calls, None)
    if sessions is not None:
        _count_sessions(sessions, tally, sights, notes)
        for step in list(sessions.steps):
            _add_folded(step.placement, folded)
            for (source, target), (count, size) in step.moved().items():
                transfers.add(source, target, count, size)
    with process_record.noted("the reasons for the CPU"):
        gpus = _gpus(eager, sessions)
        _explain(sights, gpus, reasons)
        if gpus == [] and folded and not sights:
            reasons.add(results.EVERYTHING, results.NO_GPU, "TensorFlow has no GPU")
    nothing = ""
    with process_record.noted("why TensorFlow executed nothing"):
        nothing = idle.why_nothing(eager, sessions, _module("framework.ops"))
    return results.outcome(tally, reasons, notes, folded, transfers, nothing)


def _add_folded(placement: "placed.Placement", folded: "dict[Any, int]") -> None:
    for key, count in placement.folded.items():
        folded[key] = folded.get(key, 0) + count


def _placed_functions(eager: "Eager") -> "list[Any]":
    return [found for found in list(eager.functions.values()) if found.placement]


def _count_eager(
    eager: "Eager", tally: "Tally", sights: "dict[Any, Sight]", notes: "list[str]"
) -> None:
    devices: "dict[Any, Any]" = {}
    for op, device in eager.single.counts:
        devices.setdefault(op, device)
    scopes: "dict[Any, Any]" = {}
    for (op, device, scope), (count, seconds) in list(eager.operations.items()):
        where = placed.label(device) if device else devices.get(op, "cpu")
        # When the call returns, an operation on a GPU has only been started.
        tally.add(op, where, count, seconds if where == "cpu" else None)
        if where == "cpu":
            scopes.setdefault(op, set()).add(scope or "")
    _see_single(eager.single.sights.values(), scopes, sights)
    functions = _placed_functions(eager)
    for function in functions:
        for (op, device), count in function.placement.counts.items():
            tally.add(op, device, count * function.calls)
        if function.placement.only_on_cpu():
            name = "tf.function " + _given_name(function.name)
            tally.add(name, "cpu", function.calls, function.seconds)
    sights.update(eager.sights)
    _say_how_functions_count(functions, eager, notes)


def _see_single(found: "Any", scopes: "Any", sights: "dict[Any, Sight]") -> None:
    """Older releases collect no graphs of single operations: then their types are not known."""
    collected = {placed.plain(sight.op) for sight in found}
    bare = [why.Sight(op, None, "", ()) for op in scopes if op not in collected]
    for sight in list(found) + bare:
        for scope in scopes.get(placed.plain(sight.op), ("",)):
            # The graph of a single operation has the device that was chosen, not asked for.
            asked = why.Sight(sight.op, sight.types, scope, sight.colocated)
            sights.setdefault(asked.key(), asked)


def _given_name(name: str) -> str:
    """The Python function's name in __inference_train_step_1234."""
    words = name.strip("_").split("_")
    if words[0] in ("inference", "forward", "backward"):
        words = words[1:]
    return "_".join(words[:-1] if len(words) > 1 and words[-1].isdecimal() else words)


def _say_how_functions_count(functions: "Any", eager: "Eager", notes: "list[str]") -> None:
    if functions:
        notes.append(
            "the operations of a tf.function are those of its placed graph, times its calls; "
            "their time is that of the function as a whole"
        )
    if any("Dataset" in op for op, _, _ in list(eager.operations)):
        notes.append("operations inside tf.data, which always run on the CPU, are not counted")
    if any(function.placement.has_loop for function in functions):
        notes.append("operations in a loop inside a tf.function are counted once per call")
    if any(function.placement.has_xla for function in functions):
        notes.append("functions that XLA compiles are counted as they were before compilation")
    if eager.lent_once:
        notes.append("graphs that the program collected itself were not examined")
    if len(eager.functions) >= eager_part.MOST_FUNCTIONS:
        notes.append(
            "more than %d tf.functions: the later ones were not examined"
            % eager_part.MOST_FUNCTIONS
        )


def _count_sessions(
    sessions: "Sessions", tally: "Tally", sights: "dict[Any, Sight]", notes: "list[str]"
) -> None:
    sampled = runs = 0
    for step in list(sessions.steps):
        sampled += step.sampled
        runs += step.runs
        for (op, device), (count, seconds) in step.totals().items():
            tally.add(op, device, count, seconds if device == "cpu" else None)
        sights.update(step.placement.sights)
    if 0 < sampled < runs:
        notes.append(
            "counts and times in sessions are estimates from %d of %d runs" % (sampled, runs)
        )
    if sessions.uncounted:
        notes.append("%d runs of sessions could not be examined" % sessions.uncounted)


def _gpus(eager: "Eager | None", sessions: "Sessions | None") -> "list[str] | None":
    """Labels of the GPUs that TensorFlow has; None if it never started."""
    found = [part.gpus() for part in (eager, sessions) if part is not None]
    started = [gpus for gpus in found if gpus is not None]
    return sorted(set().union(*started)) if started else None


def _explain(sights: "dict[Any, Sight]", gpus: "list[str] | None", reasons: "Reasons") -> None:
    if gpus is None or not sights:
        return
    if not gpus:
        asked = sorted({s.requested for s in sights.values() if why.kind(s.requested) == "gpu"})
        text = "TensorFlow has no GPU, so everything ran on the CPU"
        if asked:
            text += ", even operations that asked for %s" % ", ".join(asked)
        reasons.add(results.EVERYTHING, results.NO_GPU, text)
        return
    for sight in sights.values():
        with process_record.noted("the reason for %s" % sight.op):
            found = why.explain(sight, _knowledge(sight.op), gpus)
            if found is not None:
                reasons.add(placed.plain(sight.op), *found)


def _knowledge(op: str) -> "Knowledge":
    # Kernels of the original operation: those rewritten by oneDNN exist for the CPU only.
    name = placed.plain(op)
    dtypes = _module("framework.dtypes")
    return why.Knowledge(
        _module("framework.kernels").get_registered_kernels_for_op(name).kernel,
        _definition(name),
        lambda number: dtypes.as_dtype(number).name,
    )


def _definition(op: str) -> "Any":
    registry = _module("framework.op_def_registry")
    get = getattr(registry, "get", None)
    return get(op) if get else registry.get_registered_ops().get(op)
