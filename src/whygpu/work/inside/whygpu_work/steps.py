"""Turns what the user named into a step with a given batch size, which can be repeated.

The rule, in this order. A function that has a parameter `batch_size`, or one required parameter,
is called with the batch; any other with nothing. What it returns decides: a Keras model or a
PyTorch module is trained (or asked); (module, example_inputs) likewise; (function, arguments) is
called; a function is the step, called with the batch if it takes one. A function that was given
the batch and returns anything else has done the step itself.
"""

import sys

from . import loading
from .gauges import tensorflow_gpus
from .inputs import rows_of
from .loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


EXPECTED = (
    "expected a Keras model, a PyTorch module, (module, example_inputs), (function, arguments) or "
    "a function step(batch_size); a function that takes batch_size may also do the step itself"
)
_EXAMPLES = 16
"""Rows that are generated; further rows repeat them, because generating rows must not take memory
that the step itself does not need."""


class Step(object):
    """Work on one batch: run() does it once."""

    def __init__(
        self, run: "Callable[[], Any]", done: bool = False, one_program: bool = False
    ) -> None:
        self.run = run
        self.done = done
        """Whether it already ran once, to find out what it is."""
        self.one_program = one_program
        """Whether it is compiled as one program, so that the compiler knows what it needs."""


def add_search_path(request: "dict[str, Any]") -> None:
    """Let imports find what they find in the user's program."""
    for folder in request.get("search_path", ()):
        if folder not in sys.path:
            sys.path.append(folder)
    what = request.get("what")
    if what is not None and what["kind"] == "function":
        folder, _ = loading.place_of(what["path"])
        if folder not in sys.path:
            sys.path.insert(0, folder)


def named(request: "dict[str, Any]") -> "Any":
    """What the request names, by `what` or `pickled`; it is not called yet."""
    add_search_path(request)
    if request.get("pickled"):
        import pickle

        with open(request["pickled"], "rb") as stream:
            return pickle.load(stream)
    if request["what"]["kind"] == "model-file":
        return loading.load_model(request["what"]["path"])
    return loading.attribute(request["what"]["path"], request["what"]["name"])


def of(value: "Any", request: "dict[str, Any]") -> "Step":
    """The step for a value, with the options of the request."""
    batch = request["batch"]
    name = str((request.get("what") or {}).get("name") or getattr(value, "__name__", "it"))
    if loading.is_model(value) or _is_pair(value) or _is_old_keras_model(value):
        step = _of_result(value, name, request)
        assert step is not None
        return step
    if not callable(value):
        raise Unusable("%s is %s; %s" % (name, _described(value), EXPECTED))
    takes_batch = loading.batch_parameter(value) is not None
    result = loading.call(value, batch)
    step = _of_result(result, name, request)
    if step is not None:
        return step
    if not takes_batch:
        raise Unusable("%s() returned %s; %s" % (name, _described(result), EXPECTED))
    settle(result)
    return Step(lambda: loading.call(value, batch), done=True)


def _of_result(result: "Any", name: str, request: "dict[str, Any]") -> "Step | None":
    """None if it is nothing that can be run."""
    if loading.is_keras_model(result):
        return _keras(result, request)
    if loading.is_torch_module(result):
        return _torch(result, None, request)
    if _is_pair(result):
        if loading.is_torch_module(result[0]):
            return _torch(result[0], result[1], request)
        return _pair(result)
    if _is_old_keras_model(result):
        raise Unusable(
            "%s is a model of the Keras inside TensorFlow, which is not trained here by itself: "
            "give a function step(batch_size) that does a training step" % name
        )
    if callable(result):
        batch = request["batch"]
        # Raises the usual error if its parameters are not supported.
        loading.batch_parameter(result)
        return Step(lambda: loading.call(result, batch))
    return None


def _is_old_keras_model(value: "Any") -> bool:
    """A model of TensorFlow 1 and 2.0 to 2.5, before Keras was a separate package again."""
    return any(
        base.__name__ == "Model" and base.__module__.startswith("tensorflow.python.keras")
        for base in type(value).__mro__
    )


def _is_pair(value: "Any") -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and callable(value[0])


def _described(value: "Any") -> str:
    return "None" if value is None else "a %s" % type(value).__name__


def _keras(model: "Any", request: "dict[str, Any]") -> "Step":
    from .work_keras import KerasWork

    work = KerasWork(model, request.get("optimizer"), request.get("input"))
    few = work.inputs(min(request["batch"], _EXAMPLES))
    inputs = _repeated(few, request["batch"])
    if request["infer"]:
        return Step(lambda: work.infer(inputs), one_program=True)
    work.prepare_training()
    targets = _repeated(work.targets(few), request["batch"])
    return Step(lambda: work.train_step(inputs, targets), one_program=True)


def _torch(module: "Any", examples: "Any", request: "dict[str, Any]") -> "Step":
    from .work_torch import TorchWork, with_rows

    if examples is not None and not isinstance(examples, (tuple, list, dict)):
        examples = (examples,)
    work = TorchWork(module, examples, request.get("optimizer"), request.get("input"))
    few = work.inputs(min(request["batch"], _EXAMPLES))
    if request["infer"]:
        work.prepare_inference()
    else:
        work.prepare_training()
    inputs = with_rows(few, request["batch"])
    if not request["infer"]:
        return Step(lambda: work.train_step(inputs))
    kept = []  # type: list[Any]

    def infer() -> "Any":
        # As in a usual loop, the output before is kept while the next one is computed.
        kept[:] = [work.infer(inputs)]
        return kept[0]

    return Step(infer)


def _pair(pair: "Any") -> "Step":
    function, arguments = pair
    if "jax" in sys.modules:
        from .work_jax import JaxWork

        return Step(JaxWork(function, arguments).step, one_program=True)
    arguments = tuple(arguments) if isinstance(arguments, (tuple, list)) else (arguments,)
    return Step(lambda: function(*arguments))


def _repeated(tree: "Any", count: int) -> "Any":
    if isinstance(tree, dict):
        return {key: _repeated(each, count) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_repeated(each, count) for each in tree]
    return rows_of(tree, count)


def settle(result: "Any") -> None:
    """Wait for work that was only started: GPUs, and JAX on any device, work asynchronously."""
    jax = sys.modules.get("jax")
    if jax is not None and hasattr(jax, "live_arrays"):
        jax.block_until_ready((result, [each for each in jax.live_arrays() if _is_there(each)]))
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and tensorflow_gpus(tensorflow):
        sync = getattr(getattr(tensorflow.test, "experimental", None), "sync_devices", None)
        if sync is not None and tensorflow.executing_eagerly():
            sync()


def _is_there(array: "Any") -> bool:
    return not array.is_deleted()
