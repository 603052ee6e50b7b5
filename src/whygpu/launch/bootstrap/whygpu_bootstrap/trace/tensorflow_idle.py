"""Why no operation of TensorFlow was seen, if none was."""

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whygpu_bootstrap.trace.tensorflow_eager import Eager
    from whygpu_bootstrap.trace.tensorflow_session import Sessions


def why_nothing(eager: "Eager | None", sessions: "Sessions | None", ops: "Any") -> str:
    """Empty if operations may have run unseen. `ops` is the module that has Graph."""
    if eager is None or sessions is None or sessions.uncounted:
        return ""
    if any(function.calls for function in list(eager.functions.values())):
        return ""
    steps = [step for step in list(sessions.steps) if step.runs]
    if any(not step.sampled for step in steps):
        return _failed(steps)
    if any(step.placement.folded for step in steps):
        return "what the sessions of TensorFlow fetched depends on constants alone"
    if steps:
        return "the sessions of TensorFlow fetched only constants and what was fed"
    built = _operations_built(ops)
    if built:
        return "a graph of %d operations was built, and no session has run any of it" % built
    return "TensorFlow executed nothing, neither in a session nor eagerly"


def _failed(steps: "Any") -> str:
    runs = sum(step.runs for step in steps if not step.sampled)
    some = "1 run of a session" if runs == 1 else "%d runs of sessions" % runs
    return some + " failed, and TensorFlow does not report what had run before the failure"


def _operations_built(ops: "Any") -> int:
    """How many operations the graphs have that still exist, without the bodies of functions."""
    kind = getattr(ops, "Graph", None)
    # Not isinstance, which asks lazy modules and proxies for an attribute.
    graphs = [each for each in gc.get_objects() if type(each) is kind]
    return sum(len(graph.get_operations()) for graph in graphs)
