"""What can be seen of a program that dies because memory ran out: steps, loops, lists.

All of it is read once, at the end, from what the program has anyway. Nothing is counted before.
"""

import ast
import os
import sys

from whygpu_bootstrap import frameworks, process_record
from whygpu_bootstrap.memory import watch
from whygpu_bootstrap.memory.frames import (
    ARRAYS,
    LIBRARIES,
    around,
    belongings,
    frames_of,
    line_of,
    package,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    from whygpu_bootstrap.memory.frames import Frames

LONGEST_ERROR = 4000
MOST_LINKS = 20
FEWEST_KEPT = 8
"""A container with at least so many arrays is reported."""
MOST_KEPT = 3
LOOKED_AT = 32
"""Elements to look at to decide whether a container holds arrays."""
MOST_ELEMENTS = 200000
LONGEST_GRAPH = 100000
ABOUT_MEMORY = ("memory", "alloc", "exhausted", "oom", "dst tensor")
TRAINING = (".fit(", "train_on_batch(", "train_step(", "apply_gradients(", "apply(")
"""Calls in which an optimizer of Keras does its steps."""
BATCH_NAMES = ("batch_size", "batchsize", "BATCH_SIZE", "BATCH")
BY_INITIALISING = 6
"""A parameter may be written so often before the first step: trunc_normal_ writes five times. An
optimizer writes once or twice per step."""


def result(watched: "Any") -> "dict[str, Any]":
    """The result as JSON; {} if the program did not end with an out-of-memory exception.

    `watched` has for each framework the module that asks its allocators, and the framework itself.
    """
    error: "Any" = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    described = _description(error)
    if not described:
        return {}
    found: "dict[str, Any]" = {
        "error": described,
        "steps": None,
        "rounds": [],
        "kept": [],
        "allocators": [],
    }
    for framework, (part, module) in watched.items():
        with process_record.noted("asking %s for its memory" % framework):
            found["allocators"] += part.at_end(module)
    frames = frames_of(error)
    with process_record.noted("the loops of the program"):
        found.update(_loops(frames))
    # Not with the garbage collector: there may be no memory for its list of all objects.
    with process_record.noted("the steps of the program"):
        found["steps"] = _steps(frames)
    with process_record.noted("what the program keeps"):
        found["kept"] = _kept(belongings(frames))
    with process_record.noted("the batch of the program"):
        found["batch"] = _batch(frames)
    with process_record.noted("the work of the program"):
        found["work"] = frameworks.part("memory.work").noted_work(frames, found["batch"])
    with process_record.noted("the limits of the process"):
        found["limit"] = _limit()
    return found


def _description(error: "BaseException | None") -> str:
    """What the exception says, if it may be about memory; whygpu judges it later."""
    texts: "list[str]" = []
    links = [error]
    while links and len(texts) < MOST_LINKS:
        link = links.pop()
        if not isinstance(link, Exception):
            continue
        texts.append("%s: %s" % (type(link).__name__, str(link)[:LONGEST_ERROR]))
        links.append(link.__cause__ or (None if link.__suppress_context__ else link.__context__))
    # The first exception is the result of the others, and comes last, as in a log.
    text = "\n".join(reversed(texts))
    return text if any(word in text.lower() for word in ABOUT_MEMORY) else ""


def _loops(frames: "Frames") -> "dict[str, Any]":
    """The loops that were running, with the number of rounds before the current one.

    Loops in functions that a framework calls back (layers of a model) are no rounds of work.
    """
    found = []
    # Keras removes its own frames, with the loop over batches, from a traceback.
    in_loop = any(name in sys.modules for name in ("keras", "tf_keras"))
    for frame, line in frames:
        of = package(frame)
        if of in LIBRARIES:
            break
        loops = around(frame, line, (ast.For, ast.While))
        in_loop = in_loop or loops is None or bool(loops) or bool(of)
        for loop in loops or () if not of else ():
            begun = _begun(loop, frame.f_locals)
            if begun is not None:
                where = "%s:%d" % (os.path.basename(frame.f_code.co_filename), loop.lineno)
                found.append({"where": where, "begun": begun})
    return {"rounds": found, "in_loop": in_loop}


def _begun(loop: "ast.For", names: "dict[str, Any]") -> "Any":
    """By the counter of a loop: from range() or enumerate(), or a variable that it increments."""
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
        called = getattr(loop.iter.func, "id", getattr(loop.iter.func, "attr", ""))
        target = loop.target
        if called == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[0]
        if called in ("range", "trange", "enumerate") and isinstance(target, ast.Name):
            plain = len(loop.iter.args) == 1 and not loop.iter.keywords
            value = names.get(target.id)
            if plain and type(value) is int:
                return value
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            constant = vars(node.value)
            step = constant.get("value", constant.get("n"))
            value = names.get(getattr(node.target, "id", ""))
            if step == 1 and type(value) is int:
                return value
    return None


def _batch(frames: "Frames") -> "Any":
    """The batch size, if the program has a variable or a data loader that shows it."""
    for frame, _ in reversed(frames):
        if not package(frame):
            for name in BATCH_NAMES:
                if type(frame.f_locals.get(name)) is int:
                    return frame.f_locals[name]
    torch_data = sys.modules.get("torch.utils.data")
    loaders = [
        value.batch_size
        for _, value in belongings(frames)
        if torch_data is not None and isinstance(value, torch_data.DataLoader)
    ]
    return loaders[0] if len(loaders) == 1 else None


def _steps(frames: "Frames") -> "int | None":
    """Completed training steps, from what training leaves in parameters and optimizers.

    None rather than 0 if nothing is there that would train.
    """
    training = any(word in line_of(*frame) for frame in frames for word in TRAINING)
    known = [
        steps
        for _, value in belongings(frames)
        for steps in _steps_of(value, training)
        if steps is not None
    ]
    return max(known) if known else None


def _steps_of(value: "Any", training: bool) -> "list[int | None]":
    if any("keras" in kind.__module__ for kind in type(value).__mro__):
        counts = [_iterations(value), _iterations(getattr(value, "optimizer", None))]
        # A compiled model may be used for predictions only.
        return counts if training else [count or None for count in counts]
    torch: "Any" = sys.modules.get("torch")
    if torch is not None and isinstance(value, _optimizer_type(torch)):
        parameters = [each for group in value.param_groups for each in group["params"][:1]]
        states = [value.state[each] for each in parameters if each in value.state]
        return [_written(parameters)] + [_plain(torch, state.get("step")) for state in states]
    if torch is not None and isinstance(value, torch.nn.Module):
        return [_written(list(value.parameters())[:1]) or None]
    return []


def _optimizer_type(torch: "Any") -> "Any":
    return getattr(torch.optim, "Optimizer", ())


def _written(parameters: "list[Any]") -> "int | None":
    """The least number of times that an optimizer has changed them."""
    counts = [max(0, each._version - BY_INITIALISING) // 2 for each in parameters]
    return max(counts) if counts else None


def _plain(torch: "Any", step: "Any") -> "int | None":
    if isinstance(step, torch.Tensor):
        # A value on the GPU is not read: that would wait for the GPU.
        return int(step) if step.device.type == "cpu" else None
    return step if isinstance(step, int) else None


def _iterations(optimizer: "Any") -> "int | None":
    """The optimizer's own count of steps, as a lower bound.

    With the JAX backend it does not change during training. TensorFlow may have counted the step
    that failed.
    """
    try:
        count = int(optimizer.iterations.numpy())
        backend = type(optimizer.iterations.value).__module__
        if "tensorflow" in backend:
            return max(0, count - 1)
        return count or (None if "jax" in backend else 0)
    except Exception:
        # This is no optimizer, or its counter was donated to a JAX function.
        return None


def _kept(things: "Iterable[tuple[str, Any]]") -> "list[dict[str, Any]]":
    """Containers of the program that hold many arrays, and sums that hold a long graph."""
    found = []
    for name, value in things:
        if type(value) in (list, dict, set) or type(value).__name__ == "deque":
            found.append(_weighed(name, value))
        elif _has_graph(value):
            found.append(_graph(name, value))
    known = [item for item in found if item is not None]
    return sorted(known, key=lambda item: item["bytes"] or 0, reverse=True)[:MOST_KEPT]


def _weighed(name: str, container: "Any") -> "dict[str, Any] | None":
    """A container, if it holds arrays."""
    values = container.values() if type(container) is dict else container
    count = total = graphs = 0
    library = ""
    for number, value in enumerate(values):
        for each in _arrays(value):
            count += 1
            total += _size(each)
            graphs += _has_graph(each)
            library = library or _library(each)
        if number >= MOST_ELEMENTS or (number == LOOKED_AT and not count):
            break
    if count < FEWEST_KEPT:
        return None
    size = None if graphs * 2 > count else total
    return {"name": name, "arrays": count, "bytes": size, "of": library}


def _arrays(value: "Any") -> "list[Any]":
    """An array, or the arrays in a tuple, list or dict of them."""
    if type(value) in (tuple, list):
        inner = value[:LOOKED_AT]
    elif type(value) is dict:
        inner = list(value.values())[:LOOKED_AT]
    else:
        inner = (value,)
    return [each for each in inner if type(each).__name__ in ARRAYS and _size(each)]


def _library(array: "Any") -> str:
    library = type(array).__module__.partition(".")[0]
    return "jax" if library == "jaxlib" else library


def _size(array: "Any") -> int:
    try:
        if _library(array) == "torch":
            return array.element_size() * array.nelement()
        if _library(array) == "tensorflow":
            return array.dtype.size * (array.shape.num_elements() or 0)
        return array.nbytes
    except Exception:
        # An array that was donated, or that is being deleted.
        return 0


def _has_graph(value: "Any") -> bool:
    return type(value).__name__ == "Tensor" and getattr(value, "grad_fn", None) is not None


def _graph(name: str, value: "Any") -> "dict[str, Any] | None":
    """A sum of tensors that were never detached, so that the graph of each is alive."""
    node, count = value.grad_fn, 0
    while node is not None and type(node).__name__ == "AddBackward0" and count < LONGEST_GRAPH:
        count += 1
        node = node.next_functions[0][0] if node.next_functions else None
    if count < FEWEST_KEPT:
        return None
    return {"name": name, "arrays": count, "bytes": None, "of": "torch"}


def _limit() -> "dict[str, Any] | None":
    """The tightest limit that setrlimit sets for this process, and how much of it is in use."""
    import resource

    now = watch.footprint()
    used = {"RLIMIT_AS": now["size"], "RLIMIT_DATA": now["data"]}
    limits: "list[dict[str, Any]]" = [
        {"name": name, "limit": limit, "in_use": used[name]}
        for name in used
        for limit in [resource.getrlimit(getattr(resource, name))[0]]
        if limit != resource.RLIM_INFINITY
    ]
    return min(limits, key=lambda each: each["limit"] - each["in_use"]) if limits else None
