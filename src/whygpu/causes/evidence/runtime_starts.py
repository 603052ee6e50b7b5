"""Where a program starts a framework's runtime, which then fixes its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from whygpu.causes.evidence.device_code import keras_name, path_of, text_of, tf_name
from whygpu.model.events import Call, Event, Import
from whygpu.model.program import Program
from whygpu.model.values import Either, Result, Several, Value
from whygpu.tables.runtime_starts import (
    JAX_STARTS,
    KERAS_INPUT_ARGUMENTS,
    KERAS_INPUTS,
    KERAS_LAYERS_WITH_VARIABLES,
    KERAS_METHODS,
    KERAS_STARTS,
    TENSORFLOW_LOOKS,
    TENSORFLOW_STARTS,
    TORCH_LOOKS,
)
from whygpu.tables.variable_moments import Moment


def eager(program: Program) -> bool:
    """Operations run immediately, as in TensorFlow 2 unless the program changes it."""
    return program.tensorflow == "2" and not any(
        tf_name(event.path) in ("disable_eager_execution", "disable_v2_behavior", "Graph")
        for event in program.named()
    )


def tensorflow_starts(program: Program) -> Iterator[Call]:
    """Calls that initialise TensorFlow's runtime."""
    if "tensorflow" not in program.imports or not eager(program):
        return
    for call in program.calls():
        if tf_name(call.path) in TENSORFLOW_STARTS or _keras_starts(call):
            yield call


def _keras_starts(call: Call) -> bool:
    name = keras_name(call.path)
    if name and call.path.startswith("tensorflow."):
        return bool(KERAS_STARTS.fullmatch(name)) or _builds_layers(name, call)
    if call.method == "add" and is_keras_model(call.receiver):
        return _has_input_argument(call.argument(0))
    # Dense(2)(inputs)
    return (call.method in KERAS_METHODS and is_keras_model(call.receiver)) or (
        bool(call.arguments) and _has_variables(call.target)
    )


def _builds_layers(name: str, call: Call) -> bool:
    """A Sequential model whose layers know the shape of their input, and so create variables."""
    layers = call.argument(0, "layers")
    if name not in ("Sequential", "models.Sequential") or not isinstance(layers, Several):
        return False
    given = any(keras_name(path_of(layer)) in KERAS_INPUTS for layer in layers.items)
    return any(
        _has_input_argument(layer) or (given and _has_variables(layer)) for layer in layers.items
    )


def _has_variables(layer: Value) -> bool:
    if not isinstance(layer, Result) or not layer.call.path.startswith("tensorflow."):
        return False
    return bool(KERAS_LAYERS_WITH_VARIABLES.fullmatch(keras_name(layer.call.path)))


def _has_input_argument(layer: Value) -> bool:
    return (
        isinstance(layer, Result)
        and _has_variables(layer)
        and bool(KERAS_INPUT_ARGUMENTS & layer.call.keywords.keys())
    )


def is_keras_model(value: Value) -> bool:
    path = path_of(value) if isinstance(value, Result) else ""
    name = keras_name(path)
    return name in (
        "Sequential",
        "Model",
        "models.Sequential",
        "models.Model",
        "models.load_model",
    ) or name.startswith("applications.")


def tensorflow_looks(program: Program) -> Iterator[Call]:
    """Calls that make TensorFlow list devices; CUDA then reads its variables."""
    if "tensorflow" not in program.imports:
        return
    for call in program.calls():
        if tf_name(call.path) in TENSORFLOW_LOOKS:
            yield call
    yield from tensorflow_starts(program)


def jax_starts(program: Program) -> Iterator[Call]:
    for call in program.calls():
        if call.path.startswith("jax.") and JAX_STARTS.fullmatch(call.path):
            yield call


def is_cuda(value: Value) -> bool:
    """A CUDA device that is written out: "cuda:0", torch.device("cuda")."""
    if isinstance(value, Result) and value.call.path == "torch.device":
        value = value.call.argument(0, "type")
    word = text_of(value)
    return word is not None and (word == "cuda" or word.startswith("cuda:"))


def may_be_cuda(value: Value) -> bool:
    """The same, or a choice between CUDA and the CPU."""
    if isinstance(value, Result) and value.call.path == "torch.device":
        value = value.call.argument(0, "type")
    if isinstance(value, Either):
        return any(map(may_be_cuda, value.values))
    return is_cuda(value)


def puts_on_cuda(call: Call) -> bool:
    """x.cuda(), x.to("cuda"), torch.ones(3, device="cuda")."""
    if call.path.startswith("torch.") and "device" in call.keywords:
        return call.path != "torch.device" and is_cuda(call.keywords["device"])
    if call.path:
        return False
    if call.method == "cuda":
        return True
    return call.method == "to" and is_cuda(call.argument(0, "device"))


def torch_tensors(program: Program) -> Iterator[Call]:
    """Calls that put something on the GPU, which starts CUDA."""
    if "torch" in program.imports:
        yield from (call for call in program.calls() if puts_on_cuda(call) or _is_spread(call))


def _is_spread(call: Call) -> bool:
    """Model.from_pretrained(name, device_map="auto") puts the model on the GPUs, if there are some."""
    given = text_of(call.keywords.get("device_map")) or ""
    return call.method == "from_pretrained" and (
        given in ("auto", "balanced", "sequential") or given.startswith("cuda")
    )


def torch_looks(program: Program) -> Iterator[Call]:
    yield from program.calls(*TORCH_LOOKS)
    yield from torch_tensors(program)


def _imports(*modules: str) -> Callable[[Program], Iterator[Event]]:
    def find(program: Program) -> Iterator[Event]:
        for event in program.events:
            if type(event) is Import and event.path.partition(".")[0] in modules:
                yield event

    return find


def _keras_uses(program: Program) -> Iterator[Event]:
    for event in program.events:
        if event.path.startswith("tensorflow.keras.") or (
            type(event) is Import and event.path.startswith("tensorflow.keras")
        ):
            yield event


def _keras_imports(program: Program) -> Iterator[Event]:
    for event in program.events:
        if type(event) is Import and event.path.partition(".")[0] == "keras":
            yield event


MOMENTS: dict[Moment, Callable[[Program], Iterator[Event]]] = {
    "import tensorflow": _imports("tensorflow"),
    "import keras": _keras_imports,
    "import jax": _imports("jax"),
    "first use of tf.keras": _keras_uses,
    "TensorFlow's first look at devices": tensorflow_looks,
    "TensorFlow's first operation": tensorflow_starts,
    "JAX's first use of a device": jax_starts,
    "PyTorch's first use of CUDA": torch_looks,
    "PyTorch's first tensor on the GPU": torch_tensors,
}
