"""Estimates the memory of the user's work on a GPU, and finds the largest batch that would fit."""

import importlib
import sys
import time

from .. import loading
from ..estimates import jit_choice
from ..estimates.largest import largest
from ..loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..main import Channel

SEARCH_SECONDS = 120
"""Seconds after which the largest batch that is known to fit is the answer."""
SLOW = 60
"""Seconds for one estimate; other ways to fit are not tried then."""


def run(request: "dict[str, Any]", channel: "Channel") -> None:
    channel.tell("loading")
    jit_choice.note_from_now_on()
    work = load(request, channel)
    began = time.time()
    first = _told(channel, work, request["batch"])
    seconds = time.time() - began
    if request["rooms"] is None or first.get("depends_on"):
        return
    room = request["rooms"][work.framework]
    fits = first["most_bytes"] <= room
    found = None
    if work.any_batch:
        found = largest(
            lambda batch: _told(channel, work, batch)["most_bytes"],
            room,
            request["batch"],
            request["search_seconds"] or SEARCH_SECONDS,
        )
        channel.send("largest", batch=found.batch, next_batch=found.next_batch)
    if request["ways"] and not fits and seconds < SLOW:
        batch = 1 if found is not None and found.batch == 0 else request["batch"]
        _try_other_ways(request, channel, work, batch)


def _told(channel: "Channel", work: "Any", batch: int) -> "Any":
    if batch not in work.known:
        work.known[batch] = _complete(work.at(batch))
        channel.send(
            "estimate",
            batch=batch,
            framework=work.framework,
            is_function=work.is_function,
            **work.known[batch],
        )
    return work.known[batch]


def _complete(found: "dict[str, Any]") -> "dict[str, Any]":
    """Not every estimator knows a range, a phase, what the allocator adds, what a value changes."""
    for part in found["parts"]:
        part["bytes"] = int(part["bytes"])
    peak = int(found["peak_bytes"])
    needs = max(int(found.get("needs_bytes", peak)), peak)
    least, most = (int(found.get(name, needs)) for name in ("least_bytes", "most_bytes"))
    sizes = {"peak_bytes": peak, "needs_bytes": needs, "least_bytes": least, "most_bytes": most}
    return dict({"phase": "", "depends_on": ""}, **dict(found, **sizes))


def _try_other_ways(request: "dict[str, Any]", channel: "Channel", work: "Any", batch: int) -> None:
    """Estimate the same work with changes that save memory; the model is loaded again for each."""
    for name, changes in ways(request, work):
        channel.tell(name)
        other = load(dict(request, batch=batch, **changes), channel)
        found = _complete(other.at(batch))
        sizes = {key: found[key] for key in ("needs_bytes", "most_bytes")}
        channel.send("way", name=name, batch=batch, **sizes)


def ways(request: "dict[str, Any]", work: "Work") -> "list[tuple[str, dict[str, Any]]]":
    if work.is_function:
        return []
    found: "list[tuple[str, dict[str, Any]]]" = []
    if not request["mixed"]:
        found.append(("mixed precision", {"mixed": True}))
    if request["train"] and not work.optimizer.startswith("sgd"):
        found.append(("SGD instead of %s" % work.optimizer, {"optimizer": "sgd"}))
    if len(found) == 2:
        both = dict(found[0][1], **found[1][1])
        found.append(("both", both))
    return found


class Work(object):
    """Something whose memory can be estimated with `at(batch)`, which returns a dict."""

    def __init__(
        self,
        framework: str,
        at: "Callable[[int], dict[str, Any]]",
        any_batch: bool = True,
        optimizer: str = "",
        is_function: bool = False,
    ) -> None:
        self.framework = framework
        self.at = at
        self.any_batch = any_batch
        """Whether it can be estimated for other batches than the one it was loaded with."""
        self.optimizer = optimizer
        """In lower case; empty if the framework has no optimizer."""
        self.is_function = is_function
        """Whether it is a plain function, which sets its precision and optimizer itself."""
        self.known: "dict[int, dict[str, Any]]" = {}


def load(request: "dict[str, Any]", channel: "Channel") -> "Work":
    """The work. If it needs a GPU that is not there, it is loaded again with a pretended one."""
    if request["what"]["kind"] == "model-file":
        # Check before the file is opened, so that nothing is loaded in vain.
        loading.need_keras_3()
    if request["what"]["kind"] != "function":
        return _as_work(loading.load(request["what"], request["batch"]), request, channel)
    try:
        work = _as_work(loading.load(request["what"], request["batch"]), request, channel)
    except Unusable:
        raise
    except Exception:
        believing = _believing(request, channel)
        if believing is None:
            raise
        return believing
    if work.framework == "torch":
        work.at = _with_second_chance(work.at, request, channel)
    return work


def _with_second_chance(
    at: "Callable[[int], dict[str, Any]]", request: "dict[str, Any]", channel: "Channel"
) -> "Callable[[int], dict[str, Any]]":
    """A program that found no GPU when it was loaded may have put parts of itself on the CPU."""
    chosen = [at]

    def ask(batch: int) -> "dict[str, Any]":
        try:
            return chosen[0](batch)
        except Unusable:
            raise
        except Exception:
            other = _believing(request, channel) if chosen[0] is at else None
            if other is None:
                raise
            chosen[0] = other.at
            return chosen[0](batch)

    return ask


def _believing(request: "dict[str, Any]", channel: "Channel") -> "Work | None":
    """The work of a program for which PyTorch pretends to have a GPU; None if that fails, too."""
    if "torch" not in sys.modules:
        return None
    from ..estimates.pytorch.pretend import Pretence

    _forget(request["what"]["path"])
    try:
        with Pretence():
            value = loading.load(request["what"], request["batch"])
        work = _as_work(value, request, channel)
        work.at(request["batch"])
    except Exception:
        # The error without the pretended GPU is the better message.
        return None
    return work


def _forget(path: str) -> None:
    """Make the next load execute the file again."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == path:
            del sys.modules[name]


def _as_work(value: "Any", request: "dict[str, Any]", channel: "Channel") -> "Work":
    if loading.is_keras_model(value):
        return _keras(value, request, channel)
    if loading.is_torch_module(value):
        return _torch(value, None, request, channel)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        if loading.is_torch_module(value[0]):
            return _torch(value[0], value[1], request, channel)
        if callable(value[0]):
            return _function(value, request, channel)
    raise Unusable(
        "%s is not a model: expected a Keras model, a PyTorch module, (module, example_inputs) or, "
        "for JAX, (function, arguments)" % type(value).__name__
    )


def _torch(module: "Any", examples: "Any", request: "dict[str, Any]", channel: "Channel") -> "Work":
    from ..estimates.pytorch.estimator import ModuleEstimator

    if examples is not None and not isinstance(examples, (tuple, list, dict)):
        examples = (examples,)
    estimator = ModuleEstimator(
        module, examples, options=request["options"], **_wishes(request, channel)
    )
    return Work("torch", estimator.at, optimizer=(request["optimizer"] or "adam").lower())


_KERAS_ESTIMATORS = {
    "torch": "pytorch.with_keras",
    "jax": "with_xla",
    "tensorflow": "with_tensorflow",
}


def _keras(model: "Any", request: "dict[str, Any]", channel: "Channel") -> "Work":
    import keras

    backend = keras.backend.backend()
    if backend not in _KERAS_ESTIMATORS:
        raise Unusable("the Keras backend %s does not compute on NVIDIA GPUs" % backend)
    if request["optimizer"]:
        try:
            keras.optimizers.get(request["optimizer"])
        except ValueError:
            raise Unusable("Keras has no optimiser %r" % request["optimizer"])
    module = importlib.import_module("whygpu_work.estimates." + _KERAS_ESTIMATORS[backend])
    name = request["optimizer"] or getattr(getattr(model, "optimizer", None), "name", "adam")
    wishes = _wishes(request, channel)
    if request["host"] and backend == "jax":
        wishes["host"] = True
    estimator = module.KerasEstimator(model, **wishes)
    return Work(backend, estimator.at, optimizer=name.lower())


def _function(pair: "Any", request: "dict[str, Any]", channel: "Channel") -> "Work":
    from ..estimates.with_xla import FunctionEstimator

    value = loading.attribute(request["what"]["path"], request["what"]["name"])
    any_batch = callable(value) and loading.batch_parameter(value) is not None

    def at(batch: int) -> "dict[str, Any]":
        chosen = pair if batch == request["batch"] else loading.load(request["what"], batch)
        function, arguments = chosen
        estimator = FunctionEstimator(
            function, arguments, gpu=_capability(request), tell=channel.tell
        )
        return estimator.at()

    return Work("jax", at, any_batch, is_function=True)


def _wishes(request: "dict[str, Any]", channel: "Channel") -> "dict[str, Any]":
    """The arguments of every estimator of a model."""
    return {
        "train": request["train"],
        "optimizer": request["optimizer"],
        "mixed": request["mixed"],
        "shapes": request["input"],
        "gpu": _capability(request),
        "tell": channel.tell,
    }


def _capability(request: "dict[str, Any]") -> "tuple[int, int] | None":
    return tuple(request["capability"]) if request["capability"] else None
