"""What a program was doing when its stack looked like this: a category for each sampled stack.

Rules are tried in order, from what encloses the most (an evaluation loads data and computes, too)
to what is left. Nothing is guessed: if the innermost call is of unknown kind, so is the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.profile import Category, CodePlace

Stack = Sequence[CodePlace]
"""The innermost frame first."""

_WORDS = late(r"[a-z]+")
_EVALUATING = frozenset(
    (
        "eval",
        "evaluate",
        "evaluation",
        "evaluating",
        "validate",
        "validation",
        "validating",
        "val",
        "test",
        "testing",
    )
)
_AMBIGUOUS = frozenset(("eval", "evaluate", "evaluation", "evaluating"))
"""In reinforcement learning, evaluate() computes what the loss is made of, in each step."""
_ESTIMATING = frozenset(("estimate", "loss"))
"""All of these words together: estimate_loss(model, split)."""
_DEVELOPMENT = "dev"
"""Of a development set, or of a device: dev_step() and copy_to_dev() are different things."""
_PASSES = frozenset(("step", "epoch", "loop", "pass", "run", "score"))
_SAVING = frozenset(
    (
        "checkpoint",
        "ckpt",
        "checkpoints",
    )
)
_LOADING = frozenset(
    (
        "load",
        "loader",
        "loading",
        "batch",
        "batches",
        "dataset",
        "data",
        "augment",
        "augmentation",
        "preprocess",
        "transform",
        "collate",
        "decode",
        "getitem",
        "read",
        "fetch",
    )
)
_RESULTS = frozenset(
    (
        "prediction",
        "predictions",
        "pred",
        "preds",
        "output",
        "outputs",
        "result",
        "results",
        "logits",
        "loss",
        "losses",
        "metric",
        "metrics",
        "statistics",
        "stats",
        "reward",
        "rewards",
        "gradient",
        "gradients",
        "weights",
    )
)
"""Words for what a step computes: a function with one of them in its name does not load data."""
_GIVING_AWAY = frozenset(
    ("log", "plot", "draw", "show", "display", "print", "report", "save", "write", "send", "dump")
)
"""Nor does one whose name begins with one of these: save_data, plot_batch."""
_HOOKS = frozenset(("on", "after", "before"))
"""Nor does a hook of a trainer: on_train_batch_end."""
_EXPRESSION = "<genexpr>"
_ITERATES = ("for ", "async for ")
_DATA_FUNCTIONS = frozenset({"__getitem__", "__next__", "__iter__"})

_COMPILING = (
    ("torch/_dynamo/convert_frame.py", ""),
    ("torch/_inductor/compile_fx.py", "compile"),
    ("tensorflow/python/framework/func_graph.py", "func_graph_from_py_func"),
    ("tensorflow_core/python/framework/func_graph.py", "func_graph_from_py_func"),
    ("tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "_create_concrete"),
    ("tensorflow/python/eager/polymorphic_function/polymorphic_function.py", "_initialize"),
    ("jax/_src/compiler.py", ""),
    ("jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr"),
    ("jax/_src/interpreters/mlir.py", ""),
    ("keras/src/trainers/trainer.py", "_symbolic_build"),
)
"""(file, the beginning of the function's name)

Not trace_function of TensorFlow: each call of a tf.function looks there for what was traced."""
_COMPILING_FILES = tuple({file for file, _ in _COMPILING})
_SAVING_FILES = (
    "torch/serialization.py",
    "keras/src/saving/",
    "keras/src/callbacks/model_checkpoint.py",
    "tensorflow/python/checkpoint/",
    "tensorflow/python/training/saver.py",
    "tensorflow_core/python/training/saver.py",
    "tensorflow/python/saved_model/",
    "orbax/",
    "safetensors/",
    "flax/training/checkpoints.py",
)
_SAVING_CALLS = ("torch.save", "pickle.dump", "numpy.save", "joblib.dump")
_LOGGING = "logging/__init__.py"
_LOGGING_FILES = (
    "torch/utils/tensorboard/",
    "tensorboard/",
    "tensorboardX/",
    "tqdm/",
    "wandb/",
    "mlflow/",
    "matplotlib/",
    "keras/src/callbacks/",
    "keras/src/utils/progbar.py",
    _LOGGING,
)
_TELLS_CALLBACKS = (
    "keras/src/callbacks/callback_list.py",
    "keras/src/callbacks/callback.py",
    "keras/src/callbacks/history.py",
)
"""A part of every fit, whether or not it has callbacks."""
_ITERATING = ("__iter__", "__next__")
_LOCKS_OF_LOGGING = ("_acquireLock", "_releaseLock", "_after_at_fork_child_reinit_locks")
"""A fork takes the locks of logging and gives them back, and calls these for that."""
_EVENT_LOOP = ("asyncio/base_events.py", "uvloop/")
_METRIC_FUNCTIONS = ("pythonify_logs", "_flush_futures")
_LOGGING_CALLS = (
    "builtins.print",
    "_io.TextIOWrapper.write",
    "_io.TextIOWrapper.flush",
    "os.fsync",
    "os.fdatasync",
)
_DATA_FILES = (
    "torch/utils/data/",
    "tensorflow/python/data/",
    "tensorflow_core/python/data/",
    "keras/src/trainers/data_adapters/",
    "keras/src/trainers/epoch_iterator.py",
    "keras/src/legacy/preprocessing/",
    "tensorflow_datasets/",
    "datasets/",
    "grain/",
    "webdataset/",
)
KERAS_ARRAYS = (
    "keras/src/trainers/data_adapters/array_data_adapter.py",
    "keras/src/trainers/data_adapters/array_slicing.py",
)
"""How fit takes batches from arrays that the program gave to it."""
_TAKES_FROM_OTHERS = (
    ("queue.py", ("get",)),
    ("concurrent/futures/_base.py", ("result", "result_iterator", "as_completed", "wait")),
    ("multiprocessing/pool.py", ("get", "next")),
    ("multiprocessing/queues.py", ("get",)),
    ("multiprocessing/connection.py", ("recv", "recv_bytes", "poll", "wait")),
)
"""(file, functions) that return what another thread or process of the program has prepared."""
_TAKING_CALLS = ("_queue.SimpleQueue.get",)
_WAITS_FOR_OTHERS = ("threading.py", "queue.py", "multiprocessing/")
_WAITING_FOR_OTHERS = ("join", "wait", "acquire", "put", "_wait_for_tstate_lock", "poll")
"""Functions of those files that wait until a thread or process has ended, or gives way."""
_LOCK_CALLS = ("_thread.",)
_COPIES_OBJECTS = "copy.py"
"""Of the standard library: copy.deepcopy(model) calls each tensor to copy itself."""
_EVALUATION_FUNCTIONS = (
    ("keras/src/backend/", "evaluate"),
    ("keras/src/backend/", "predict"),
    ("keras/src/engine/training.py", "evaluate"),
    ("keras/src/engine/training.py", "predict"),
    ("lightning/pytorch/loops/evaluation_loop.py", "run"),
    ("pytorch_lightning/loops/evaluation_loop.py", "run"),
    ("transformers/trainer.py", "evaluate"),
    ("transformers/trainer.py", "predict"),
)
_EVALUATION_NAMES = frozenset(function for _, function in _EVALUATION_FUNCTIONS)
_KERAS_WRAPPER = "keras/src/utils/traceback_utils.py"
_MODELS = ("torch/nn/modules/module.py", "keras/src/layers/", "flax/linen/", "flax/nnx/")
"""What these call belongs to a model: a part of it may be called checkpoint or val_embedding."""
_TRAINING_FILES = ("torch/optim/", "torch/autograd/__init__.py", "optax/")
_DRIVERS = (
    _KERAS_WRAPPER,
    "keras/src/trainers/trainer.py",
    "tensorflow/python/util/traceback_utils.py",
)
_DRIVER_FUNCTIONS = ("fit", "error_handler", "decorate_context", "_context_manager_wrapper")
"""Frames of frameworks that are there all the time, whatever the program does."""
_FRAMEWORKS = frozenset(
    (
        "torch",
        "tensorflow",
        "tensorflow_core",
        "jax",
        "jaxlib",
        "keras",
        "tf_keras",
        "flax",
        "optax",
        "haiku",
        "equinox",
        "generated",
        "torchvision",
        "torchaudio",
        "tensorflow_probability",
        "triton",
    )
)
_WAITING_CALLS = frozenset(
    (
        "item",
        "tolist",
        "cpu",
        "numpy",
        "block_until_ready",
        "synchronize",
    )
)
"""Methods that return when the device has computed the value."""
_COMPUTES_AT_ONCE = "torch."
"""On a CPU, the operations of PyTorch return when they have computed: reading a value waits for
nothing. What takes time is a loop of the program that reads many."""
_WAITING_FUNCTIONS = (
    ("jax/_src/array.py", ("_value", "block_until_ready", "item", "tolist", "__array__")),
    ("jax/_src/api.py", ("block_until_ready",)),
    ("torch/cuda/", ("synchronize",)),
    ("torch/_tensor.py", ("__array__",)),
    ("tensorflow/python/framework/ops.py", ("numpy", "_numpy", "__array__")),
    ("tensorflow/python/framework/tensor.py", ("numpy", "_numpy", "__array__")),
)
"""(file, functions) of frameworks that do the same in Python."""
_COPYING_CALLS = frozenset(
    (
        "cuda",
        "to",
        "device_put",
        "from_numpy",
        "as_tensor",
        "tensor",
    )
)
_FRAMEWORK_MODULES = ("torch", "jax", "jaxlib", "tensorflow", "keras", "_pywrap_tensorflow")


OF_EVALUATION = "evaluation"


class StackKind(NamedTuple):
    category: Category
    where: CodePlace | None
    """The program's frame in which the training loop is, or the outermost one of what it calls."""
    inside: CodePlace | None
    """The program's innermost frame."""
    source: str = ""
    """For input: which kind of pipeline it is. For compilation: OF_EVALUATION, if it is."""
    called: CodePlace | None = None
    """The outermost of the program's functions that the training loop calls, if it is in one."""


def words_of(name: str) -> list[str]:
    """The words of a function's name: train_one_epoch, TrainOneEpoch."""
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return _WORDS.findall(spaced)


def training_frame(stack: Stack, family: str, step_name: str) -> int | None:
    """The number of the outermost frame that shows that a training step is being made."""
    found = None
    for number, frame in enumerate(stack):
        if frame.origin == "library":
            shown = frame.file.startswith(_TRAINING_FILES) or frame.function in ("backward", "fit")
            if family == "session":
                shown = shown or frame.file.endswith("client/session.py")
        else:
            # The call of a jitted function has no frame of its own.
            shown = bool(step_name) and f"{step_name}(" in frame.text
        if shown:
            found = number
    if found is None or family == "torch":
        return found
    outside = [frame for frame in stack[found:] if frame.origin == "program"]
    evaluates = any(names_evaluation(frame.function) for frame in outside)
    return None if evaluates else found


def kind_of(stack: Stack, enclosing: Collection[tuple[str, str]], on_gpu: bool) -> StackKind:
    """`enclosing` has (file, function) of the program's functions that enclose training steps."""
    own = [frame for frame in stack if frame.origin == "program"]
    around = [frame for frame in own if (frame.file, frame.function) in enclosing]
    called = [frame for frame in own if (frame.file, frame.function) not in enclosing]
    where = around[0] if around else (own[-1] if own else None)
    inside = own[0] if own else None

    def found(category: Category, source: str = "") -> StackKind:
        return StackKind(category, where, inside, source, called[-1] if called else None)

    if not stack or stack[0].origin == "whygpu":
        return found("unknown")
    named = _outside_of_models(stack, called)
    for category, applies in _ENCLOSING:
        if applies(stack, named):
            inner = category == "compilation" and _evaluates(stack, named)
            return found(category, OF_EVALUATION if inner else "")
    source = _data_source(stack, called)
    if source:
        return found("input", source)
    leaf = stack[0]
    if leaf.origin == "program":
        return found(_of_call(leaf, stack, on_gpu))
    if _in(leaf, ("selectors.py", *_EVENT_LOOP)) and any(_in(each, _EVENT_LOOP) for each in stack):
        # What the event loop waits for is not on the stack.
        return found("unknown")
    if _waits_for_others(stack):
        # It is not known what the other thread does meanwhile.
        return found("unknown")
    if _copies_objects(stack):
        return found("program")
    if any(_computes(frame) for frame in stack):
        waits = _waits_for_metrics(stack) or _waits_for_value(stack)
        return found(_waiting(on_gpu) if waits else "computing")
    if leaf.file.partition("/")[0] in _FRAMEWORKS:
        return found("computing")
    return found("program") if own else found("unknown")


def _outside_of_models(stack: Stack, called: Stack) -> Stack:
    """The program's functions that no model calls."""
    models = (number for number, frame in enumerate(stack) if _in(frame, _MODELS))
    outermost = max(models, default=-1)
    outside = {id(frame) for frame in stack[outermost + 1 :]}
    return [frame for frame in called if id(frame) in outside]


def _waits_for_others(stack: Stack) -> bool:
    leaf = stack[0]
    if leaf.origin == "program":
        return leaf.calls.startswith(_LOCK_CALLS)
    return _in(leaf, _WAITS_FOR_OTHERS) and leaf.function in _WAITING_FOR_OTHERS


def _takes_from_others(stack: Stack) -> bool:
    return stack[0].calls in _TAKING_CALLS or any(
        _in(frame, (file,)) and frame.function in functions
        for frame in stack
        for file, functions in _TAKES_FROM_OTHERS
    )


def _copies_objects(stack: Stack) -> bool:
    """Whether the program makes copies of Python objects, of whatever they consist."""
    copying = (at for at, frame in enumerate(stack) if _is_of_copy(frame))
    outermost = max(copying, default=len(stack))
    return outermost + 1 < len(stack) and stack[outermost + 1].origin == "program"


def _is_of_copy(frame: CodePlace) -> bool:
    return frame.origin == "standard" and frame.file == _COPIES_OBJECTS


def _in(frame: CodePlace, files: tuple[str, ...]) -> bool:
    return frame.origin != "program" and frame.file.startswith(files)


def _compiles(stack: Stack, called: Stack) -> bool:
    return any(
        _in(frame, (file,)) and frame.function.startswith(function)
        for frame in stack
        if _in(frame, _COMPILING_FILES)
        for file, function in _COMPILING
    )


def _evaluates(stack: Stack, called: Stack) -> bool:
    if any(names_evaluation(frame.function) for frame in called):
        return True
    if any(_wraps_evaluation(stack, number) for number in range(1, len(stack))):
        return True
    return any(
        _in(frame, (file,))
        for frame in stack
        if frame.function in _EVALUATION_NAMES
        for file, function in _EVALUATION_FUNCTIONS
        if frame.function == function
    )


def _wraps_evaluation(stack: Stack, number: int) -> bool:
    """Whether the program calls predict() or evaluate() of Keras here.

    What they have made, as a pipeline of TensorFlow, is taken down after their own frame is gone.
    """
    caller, wrapper = stack[number], stack[number - 1]
    if caller.origin != "program" or not _in(wrapper, (_KERAS_WRAPPER,)):
        return False
    return caller.text.partition("(")[0].rpartition(".")[2] in _EVALUATION_NAMES


def names_evaluation(function: str) -> bool:
    words = frozenset(words_of(function))
    if _DEVELOPMENT in words and words & _PASSES:
        return True
    return bool(words & _EVALUATING) or words >= _ESTIMATING


def may_be_of_the_step(function: str) -> bool:
    """Whether a function with such a name may evaluate a model, or be a part of a training step."""
    named = _EVALUATING.intersection(words_of(function))
    return bool(named) and named <= _AMBIGUOUS


def _saves(stack: Stack, called: Stack) -> bool:
    return (
        any(_in(frame, _SAVING_FILES) for frame in stack)
        or any(_SAVING.intersection(words_of(frame.function)) for frame in called)
        or stack[0].calls.startswith(_SAVING_CALLS)
    )


def _logs(stack: Stack, called: Stack) -> bool:
    if _waits_for_metrics(stack) or _forks(stack):
        return False
    # What encloses a frame comes after it: Keras tells its callbacks, which do something.
    outside = next((at for at, frame in enumerate(stack) if _in(frame, _TELLS_CALLBACKS)), 0)
    if any(frame.origin == "program" for frame in stack[:outside]):
        return True
    return any(
        _in(frame, _LOGGING_FILES)
        and not _in(frame, _TELLS_CALLBACKS)
        and not _hands_on(stack, number)
        for number, frame in enumerate(stack)
    ) or stack[0].calls.startswith(_LOGGING_CALLS)


def _hands_on(stack: Stack, number: int) -> bool:
    """Whether a progress bar takes the next element of what it was made for: tqdm(loader)."""
    inner = stack[number - 1] if number else None
    return (
        inner is not None
        and stack[number].function in _ITERATING
        and not _in(inner, _LOGGING_FILES)
        and inner.origin != "standard"
    )


def _forks(stack: Stack) -> bool:
    """Whether logging was not called by logging: nothing but a fork calls only for its locks."""
    calls = next((at for at, frame in enumerate(stack) if not _in(frame, (_LOGGING,))), 0)
    return calls > 0 and stack[calls - 1].function in _LOCKS_OF_LOGGING


def _waits_for_metrics(stack: Stack) -> bool:
    """Keras turns the metrics of a batch into numbers, and so waits for the batch.

    For some backends a thread does that, and the main one waits for it at the end of the epoch.
    """
    return any(frame.function in _METRIC_FUNCTIONS for frame in stack)


def _waits_for_value(stack: Stack) -> bool:
    return any(
        _in(frame, (file,)) and frame.function in functions
        for frame in stack
        for file, functions in _WAITING_FUNCTIONS
    )


_ENCLOSING: tuple[tuple[Category, Callable[[Stack, Stack], bool]], ...] = (
    ("compilation", _compiles),
    ("evaluation", _evaluates),
    ("checkpointing", _saves),
    ("logging", _logs),
)


def _data_source(stack: Stack, called: Stack) -> str:
    """Which kind of input pipeline is at work; empty for none."""
    if any(_in(frame, KERAS_ARRAYS) for frame in stack):
        # Keras may pass them through a DataLoader.
        return "keras arrays"
    for frame in stack:
        if _in(frame, ("torch/utils/data/",)):
            return _of_dataloader(stack)
        if _in(frame, ("tensorflow/python/data/", "tensorflow_core/python/data/")):
            return "tf.data"
        if _in(frame, _DATA_FILES):
            return "keras data" if frame.file.startswith("keras") else "a library"
    if any(_computes(frame) for frame in stack):
        # A function of the model may have such a name, too: load_state, transform.
        return ""
    if _takes_from_others(stack):
        return "another thread"
    for number, frame in enumerate(called):
        if frame.generator and _gives_to_the_loop(called, number, stack):
            return "a generator"
        if frame.function in _DATA_FUNCTIONS or _names_loading(frame.function):
            return "a function"
    return ""


def _gives_to_the_loop(called: Stack, number: int, stack: Stack) -> bool:
    """Whether the training loop takes what this generator makes, perhaps through others.

    sum(cost(x) for x in found) is a part of the function, or of the line, in which it stands.
    """
    outside = called[number:]
    if not all(frame.generator for frame in outside):
        return False
    outermost = outside[-1]
    if outermost.function != _EXPRESSION:
        return True
    place = next(at for at, frame in enumerate(stack) if frame is outermost)
    taking = next((frame for frame in stack[place + 1 :] if frame.origin == "program"), None)
    return taking is None or taking.text.startswith(_ITERATES) or "next(" in taking.text


def _names_loading(function: str) -> bool:
    words = words_of(function)
    if not words or words[0] in _GIVING_AWAY | _HOOKS:
        return False
    return not _LOADING.isdisjoint(words) and _RESULTS.isdisjoint(words)


def _of_dataloader(stack: Stack) -> str:
    functions = {frame.function for frame in stack if _in(frame, ("torch/utils/data/",))}
    standard = {frame.file.partition("/")[0] for frame in stack if frame.origin == "standard"}
    if "__init__" in functions and "multiprocessing" in standard:
        return "starting workers"
    if functions & {"_shutdown_workers", "__del__"}:
        return "starting workers"
    if functions & {"_get_data", "_try_get_data"}:
        return "workers"
    return "one process"


def _computes(frame: CodePlace) -> bool:
    if frame.origin != "library" or frame.file.partition("/")[0] not in _FRAMEWORKS:
        return False
    return not (
        frame.function in _DRIVER_FUNCTIONS
        or (frame.file.startswith(_DRIVERS) and frame.function != "train_step")
    )


def _of_call(leaf: CodePlace, stack: Stack, on_gpu: bool) -> Category:
    """The innermost frame is the program's: either Python itself works, or a function of C."""
    method = leaf.calls.rpartition(".")[2]
    of_framework = leaf.calls.partition(".")[0] in _FRAMEWORK_MODULES
    if of_framework or leaf.calls.startswith("?."):
        if method in _WAITING_CALLS:
            at_once = not on_gpu and leaf.calls.startswith(_COMPUTES_AT_ONCE)
            return "program" if at_once else _waiting(on_gpu)
        if method in _COPYING_CALLS:
            return "copies"
        if method == "backward":
            return "computing"
    if of_framework:
        return "computing"
    if any(_computes(frame) for frame in stack):
        return "computing"
    if leaf.calls.startswith("?"):
        return "unknown"
    return "program"


def _waiting(on_gpu: bool) -> Category:
    """Without a GPU, waiting for a value is waiting until the CPU has computed it."""
    return "synchronisation" if on_gpu else "computing"
