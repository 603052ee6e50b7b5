"""Loads what the user named for a lane, with the weights and inputs that all lanes share."""

import time

from .. import loading
from ..work_jax import is_pair
from . import call_lane
from .script import ScriptLane
from .sharing import Shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load(request: "dict[str, Any]") -> "Any":
    """A KerasLane, TorchLane, CallLane or ScriptLane.

    The request is a Subject of whygpu.model.task_wire.
    """
    if request["what"]["kind"] == "script":
        return ScriptLane(request)
    shared = Shared(request["shared"], request["lane"])
    if request["what"]["kind"] == "model-file":
        return _of(loading.load_model(request["what"]["path"]), request, shared)
    value = loading.attribute(request["what"]["path"], request["what"]["name"])
    if loading.is_model(value) or is_pair(value):
        return _of(value, request, shared)
    if not callable(value):
        call_lane.check(value, request["what"]["name"])
        return call_lane.CallLane(lambda: value, request)
    function = call_lane.caller(value, request)
    began = time.perf_counter()
    result = function()
    seconds = time.perf_counter() - began
    made = _of(result, request, shared)
    if made is not None:
        made.build_again = lambda: _model_of(function())
        return made
    call_lane.check(result, request["what"]["name"])
    return call_lane.CallLane(function, request, result, seconds)


def _model_of(value: "Any") -> "Any":
    return value[0] if is_pair(value) and loading.is_model(value[0]) else value


def _of(value: "Any", request: "dict[str, Any]", shared: "Shared") -> "Any":
    """None if it is neither a model nor a pair of something and its inputs."""
    make_input = None
    if is_pair(value) and callable(value[1]):
        value, make_input = (value[0], value[1]()), value[1]
    made = _with_inputs(value, request, shared)
    if make_input is not None:
        made.make_input = make_input
    return made


def _with_inputs(value: "Any", request: "dict[str, Any]", shared: "Shared") -> "Any":
    examples = None
    if is_pair(value):
        if not loading.is_model(value[0]):
            return call_lane.of_pair(value, request, shared)
        value, examples = value
    if loading.is_keras_model(value):
        from .keras_lane import KerasLane

        return KerasLane(value, request, shared, examples)
    if loading.is_torch_module(value):
        from .torch_lane import TorchLane

        return TorchLane(value, request, shared, examples)
    return None
