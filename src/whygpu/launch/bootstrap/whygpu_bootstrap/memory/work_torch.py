"""The PyTorch module that a program had called: its structure and its arguments, without data."""

import ast
import base64
import io
import pickle
import sys
import time

from whygpu_bootstrap.memory.frames import (
    UNKNOWN,
    around,
    belongings,
    package,
    statements,
    value_of,
)
from whygpu_bootstrap.memory.work import LARGEST, PLAIN, CannotNote, plain_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any

    from whygpu_bootstrap.memory.frames import Frames

CALLS = ("_wrapped_call_impl", "_call_impl", "__call__")
WITHOUT_GRADIENTS = ("no_grad", "inference_mode")
CASTING = ("autocast", "decorate_autocast")
OVER_GPUS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
OPTIONS = ("momentum", "betas", "amsgrad", "nesterov", "centered", "weight_decay", "foreach")
"""Of an optimizer: those that its memory depends on."""
MAKERS = ("empty", "ones", "rand", "randn", "zeros")
"""Functions of PyTorch that take the sizes of an array."""
LONGEST_LIST = 65536
"""Integers that are noted with their values, because they may be lengths."""
LONGEST = 2.0
"""Seconds to spend on it."""


class Call(object):
    """A module, its arguments, and the frames that were running inside it.

    `unplaced` are tensors among the arguments whose device at the call is not known.
    """

    def __init__(
        self, module: "Any", args: "Any", kwargs: "Any", inner: "Any", unplaced: "Any" = ()
    ) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.inner = inner
        self.unplaced = unplaced


def noted(frames: "Frames", batch: "Any") -> "dict[str, Any] | None":
    """None if no module can be seen."""
    torch = sys.modules["torch"]
    call = _under_way(torch, frames) or _in_source(torch, frames)
    if call is None:
        if any(isinstance(value, torch.nn.Module) for _, value in belongings(frames)):
            raise CannotNote("nothing shows which PyTorch module was called, or with which inputs")
        return None
    module = getattr(call.module, "_orig_mod", call.module)
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(module, getattr(keras, "Model", ())):
        raise CannotNote("the program calls its Keras model in its own loop")
    if type(module).__name__ in OVER_GPUS:
        raise CannotNote("%s spreads the work over GPUs" % type(module).__name__)
    train = _trains(torch, frames, call)
    optimizer = _optimizer(torch, frames, module) if train else None
    return {
        "of": "torch",
        "name": type(module).__name__,
        "mode": "train" if train else "infer",
        "batch": _rows(torch, call, batch),
        "optimizer": _name_of(optimizer),
        "options": _options(optimizer) if optimizer is not None else {},
        "mixed": bool(_contexts(frames) & set(CASTING)),
        "data": _saved(torch, module, call),
    }


def _is_model(torch: "Any", value: "Any") -> bool:
    """A module that is more than a function: losses are modules as well."""
    return isinstance(value, torch.nn.Module) and next(value.parameters(), None) is not None


def _under_way(torch: "Any", frames: "Frames") -> "Call | None":
    for number, (frame, _) in enumerate(frames):
        names = frame.f_locals
        is_call = frame.f_code.co_name in CALLS and package(frame) == "torch" and "kwargs" in names
        if is_call and _is_model(torch, names.get("self")):
            # Until 1.13 the arguments are called `input`.
            args = names.get("args", names.get("input", ()))
            return Call(names["self"], tuple(args), dict(names["kwargs"]), frames[number:])
    return None


def _in_source(torch: "Any", frames: "Frames") -> "Call | None":
    """The forward pass is over, and the program's own code went on with it: the last call of a
    module before the line that failed, in the same round of the same function."""
    own = [number for number, (frame, _) in enumerate(frames) if package(frame) != "torch"]
    if not own or package(frames[own[-1]][0]):
        return None
    frame, line = frames[own[-1]]
    loops = [node.lineno for node in around(frame, line, (ast.For, ast.While)) or ()]
    first = max(loops) if loops else 0
    calls = [
        node
        for node in statements(frame) or ()
        if isinstance(node, ast.Call)
        and first <= node.lineno <= line
        and _is_model(torch, value_of(node.func, frame))
    ]
    if not calls:
        return None
    call = max(calls, key=lambda each: each.lineno)
    args = [_given(torch, each, frame) for each in call.args]
    kwargs = {each.arg: _given(torch, each.value, frame) for each in call.keywords}
    if None in kwargs or any(each is UNKNOWN for each in [*args, *kwargs.values()]):
        raise CannotNote("nothing shows the inputs of the module")
    written = [(each, found) for each, found in zip(call.args, args)]
    written += [(each.value, kwargs[each.arg]) for each in call.keywords]
    # x.to(device) has the shape of x, but need not be on its device; neither need what was made
    # without data in the place of a tensor that is gone.
    unplaced = [found for node, found in written if _has_call(node)]
    return Call(value_of(call.func, frame), tuple(args), kwargs, None, _tensors(torch, unplaced))


def _has_call(node: "Any") -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))


def _given(torch: "Any", node: "Any", frame: "types.FrameType") -> "Any":
    """An argument, or its like without data where it was made on the spot."""
    found = value_of(node, frame)
    made = found is UNKNOWN and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not made or node.func.attr not in MAKERS or value_of(node.func.value, frame) is not torch:
        return found
    sizes: "Any" = [value_of(each, frame) for each in node.args]
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    kinds = [value_of(each.value, frame) for each in node.keywords if each.arg == "dtype"]
    kind = kinds[0] if kinds else torch.get_default_dtype()
    if not sizes or any(type(each) is not int for each in sizes) or kind is UNKNOWN:
        return UNKNOWN
    return torch.empty(*sizes, dtype=kind, device="meta")


def _trains(torch: "Any", frames: "Frames", call: "Call") -> bool:
    """Whether the results of the module are kept for a backward pass."""
    if call.inner is None:
        return True
    for frame, _ in call.inner:
        for value in frame.f_locals.values():
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                return True
    return call.module.training and not _contexts(frames) & set(WITHOUT_GRADIENTS)


def _contexts(frames: "Frames") -> "set[str]":
    """Names in the `with` statements and decorators that were in effect."""
    found: "set[Any]" = set()
    for frame, line in frames:
        if frame.f_code.co_name == "decorate_context":
            made_by = getattr(frame.f_locals.get("ctx_factory"), "__self__", None)
            found.add(type(made_by).__name__)
        found.add(frame.f_code.co_name)
        if package(frame) == "torch":
            continue
        for statement in around(frame, line, (ast.With,)) or ():
            for item in statement.items:
                for node in ast.walk(item.context_expr):
                    found.add(getattr(node, "id", getattr(node, "attr", None)))
    return found


def _optimizer(torch: "Any", frames: "Frames", module: "Any") -> "Any":
    wanted = {id(each) for each in module.parameters()}
    for _, value in belongings(frames):
        groups = value.param_groups if isinstance(value, torch.optim.Optimizer) else ()
        if any(id(each) in wanted for group in groups for each in group["params"]):
            # Accelerate wraps the real optimizer.
            return getattr(value, "optimizer", value)
    return None


def _name_of(optimizer: "Any") -> "str | None":
    """As torch.optim has it, also for one that was made from it; None for others."""
    for kind in type(optimizer).__mro__:
        if kind.__module__.startswith("torch.optim") and kind.__name__ != "Optimizer":
            return kind.__name__.lower()
    return None


def _options(optimizer: "Any") -> "dict[str, Any]":
    found = {name: optimizer.defaults[name] for name in OPTIONS if name in optimizer.defaults}
    if optimizer.defaults.get("fused"):
        found["foreach"] = False
    kinds = PLAIN + (tuple, list)
    return {name: value for name, value in found.items() if type(value) in kinds}


def _tensors(torch: "Any", value: "Any") -> "list[Any]":
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [found for each in value.values() for found in _tensors(torch, each)]
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in _tensors(torch, each)]
    return []


def _rows(torch: "Any", call: "Call", by_name: "Any") -> "int | None":
    """The size of the first axis, unless the program has a variable that says otherwise."""
    given = [each for each in _tensors(torch, [call.args, call.kwargs]) if each.dim()]
    if not given:
        raise CannotNote("the module has no arrays as inputs")
    rows = given[0].shape[0]
    if by_name is not None and by_name != rows and by_name in given[0].shape[1:]:
        raise CannotNote("the batch is not the first axis of the module's inputs")
    return rows


class _Writer(io.BytesIO):
    def write(self, data: "Any") -> int:
        if self.tell() + len(data) > LARGEST:
            raise CannotNote("the module holds more than %d MiB of data" % (LARGEST >> 20))
        return io.BytesIO.write(self, data)


class _Pickler(pickle.Pickler):
    """Tensors are described, not written."""

    def __init__(self, torch: "Any", file: "Any", unplaced: "Any") -> None:
        pickle.Pickler.__init__(self, file, 4)
        self._torch = torch
        self._unplaced = {id(each) for each in unplaced}
        self._until = time.time() + LONGEST
        self._numbers: "dict[Any, Any]" = {}
        self._kept: "list[Any]" = []
        """Keeps tensors that were made for the pickle, so that no other tensor gets their id."""
        self.described: "list[Any]" = []

    def persistent_id(self, value: "Any") -> "int | None":
        if isinstance(value, self._torch.Tensor):
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self.described)
                self._kept.append(value)
                placed = id(value) not in self._unplaced
                self.described.append(_described(self._torch, value, placed))
            return self._numbers[id(value)]
        if type(value).__name__ == "ndarray" and value.nbytes > LARGEST:
            raise CannotNote("the module holds an array of %d MiB" % (value.nbytes >> 20))
        if time.time() > self._until:
            raise CannotNote("recording the module took more than %g s" % LONGEST)
        return None


def _described(torch: "Any", tensor: "Any", placed: "Any") -> "dict[str, Any]":
    if tensor.layout is not torch.strided:
        raise CannotNote("the module has a sparse tensor")
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    there = tensor.device.type == "cpu" and tensor.numel() <= LONGEST_LIST
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "device": tensor.device.type if placed else None,
        "trained": tensor.requires_grad,
        "is_parameter": isinstance(tensor, torch.nn.Parameter),
        "values": tensor.reshape(-1).tolist() if whole and there else None,
    }


def _saved(torch: "Any", module: "Any", call: "Call") -> str:
    file = _Writer()
    pickler = _Pickler(torch, file, call.unplaced)
    kinds = PLAIN + (torch.device, torch.dtype)
    try:
        # First what the classes of the program may refer to when they are created again.
        pickler.dump(plain_names(kinds))
        pickler.dump((module, call.args, call.kwargs))
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise CannotNote("the module cannot be sent to another process: %s" % error)
    content = {"tensors": pickler.described, "pickle": base64.b64encode(file.getvalue()).decode()}
    import json

    return json.dumps(content)
