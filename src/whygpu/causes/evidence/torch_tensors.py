"""PyTorch's tensors and modules in a program, and the devices that they are known to be on."""

from __future__ import annotations

import ast
from typing import Literal

from whygpu.causes.evidence.runtime_starts import is_cuda, may_be_cuda
from whygpu.model.events import Call, Event
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.values import (
    Constant,
    Defined,
    Definition,
    Instance,
    Item,
    Result,
    Several,
    Value,
)

_MAKERS = frozenset(
    f"torch.{name}"
    for name in [
        "tensor",
        "rand",
        "randn",
        "randint",
        "randperm",
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "linspace",
        "eye",
        "from_numpy",
        "as_tensor",
        "cat",
        "stack",
        "zeros_like",
        "ones_like",
        "rand_like",
        "randn_like",
        "FloatTensor",
        "LongTensor",
    ]
)
_SIZED = frozenset(f"torch.{name}" for name in ["rand", "randn", "zeros", "ones", "empty", "eye"])
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")

_HAS_PARAMETERS = late(
    r"(?:Bil|L)inear|Lazy\w+|Conv\w+|Embedding\w*|LSTM|GRU|RNN|Transformer\w*|BatchNorm\w*"
    r"|LayerNorm|GroupNorm|MultiheadAttention"
)

Device = Literal["cuda", "cpu"]


def is_tensor(value: Value) -> bool:
    """Created by torch, or returned by a DataLoader."""
    if isinstance(value, Result):
        call = value.call
        if call.path in _MAKERS:
            return True
        return call.method in ("to", "cuda", "cpu", "float", "long") and is_tensor(call.receiver)
    if isinstance(value, Item):
        of, depth = value.of, 1
        while isinstance(of, Item):
            of, depth = of.of, depth + 1
        # `for batch in loader` may give a dictionary or an object; `for x, y in loader` does not.
        return depth >= 2 and isinstance(of, Result) and of.call.path in _LOADERS
    return False


def is_module(value: Value) -> bool:
    """A module of torch.nn that has parameters, which are on some device."""
    if isinstance(value, Instance):
        return _is_own_module(value.definition)
    if not isinstance(value, Result):
        return False
    call = value.call
    if call.method in ("to", "cuda", "cpu", "eval", "train") and not call.path:
        return is_module(call.receiver)
    if call.path == "torch.nn.Sequential":
        return any(map(is_module, call.arguments))
    return call.path.startswith("torch.nn.") and bool(_HAS_PARAMETERS.fullmatch(call.method))


def _is_own_module(definition: Definition) -> bool:
    """A module class of this file that creates a module with parameters."""
    if not any(getattr(base, "path", "") == "torch.nn.Module" for base in definition.bases):
        return False
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and _HAS_PARAMETERS.fullmatch(node.func.attr)
        for node in ast.walk(definition.node)
    )


def plain(program: Program) -> bool:
    """The default device is not changed, so torch.ones without a device is on the CPU."""
    return not any(
        call.path in ("torch.set_default_device", "torch.set_default_tensor_type")
        for call in program.calls()
    )


def tensor_device(value: Value) -> Device | None:
    """The device of a tensor with at least one axis; None if the source does not show it."""
    if isinstance(value, Item):
        # A loader's batches are on the CPU, unless its data set is on another device.
        return "cpu" if is_tensor(value) and _plain_loader(value) else None
    if not isinstance(value, Result):
        return None
    call = value.call
    if call.path in _SIZED:
        if any(frame.kind == "with" for frame in call.context) or not _has_axis(call):
            return None
        if "device" in call.keywords:
            return _device(call.keywords["device"])
        return "cpu" if not _spreads(call) else None
    if is_computed(value):
        return "cuda"
    if call.path or tensor_device(call.receiver) is None:
        return None
    if call.method == "cuda":
        return "cuda"
    if call.method == "cpu":
        return "cpu"
    if call.method == "to" and len(call.node.args) == 1:
        return _device(call.arguments[0])
    return None


_KEEPS_DEVICE = frozenset(
    {"detach", "clone", "float", "half", "double", "squeeze", "unsqueeze", "view", "reshape"}
)


def may_be_on_cuda(value: Value) -> bool:
    """Moved to CUDA, or to the device that the program chooses: x.to(device).detach()."""
    while isinstance(value, Result) and not value.call.path:
        call = value.call
        if call.method == "cuda":
            return True
        if call.method == "to":
            return may_be_cuda(call.argument(0, "device"))
        if _is_moved_module(call.target):
            return any(map(may_be_on_cuda, call.arguments))
        if call.method not in _KEEPS_DEVICE:
            return False
        value = call.receiver
    return (
        isinstance(value, Result)
        and value.call.path in _MAKERS
        and may_be_cuda(value.call.keywords.get("device"))
    )


def is_computed(value: Value) -> bool:
    """What a moved module computes from a moved tensor. Its forward method may copy it back."""
    call = value.call if isinstance(value, Result) else None
    return (
        call is not None
        and not call.path
        and bool(call.arguments)
        and _moved_to(call.target) == _moved_to(call.arguments[0]) == "cuda"
    )


def _moved_to(value: Value) -> Device | None:
    """The device of the `x` of x = x.to("cuda"), whatever it was before."""
    call = value.call if isinstance(value, Result) else None
    if call is None or call.path or call.method not in ("to", "cuda"):
        return None
    return "cuda" if call.method == "cuda" else _device(call.argument(0, "device"))


def _is_moved_module(target: Value) -> bool:
    """The model of `model = model.to(device)`, which is called as a function."""
    call = target.call if isinstance(target, Result) else None
    if call is None or call.path or call.method not in ("to", "cuda"):
        return False
    return call.method == "cuda" or may_be_cuda(call.argument(0, "device"))


def _plain_loader(value: Value) -> bool:
    """A loader of a library's data set, such as torchvision's."""
    while isinstance(value, Item):
        value = value.of
    if not isinstance(value, Result):
        return False
    dataset = value.call.argument(0, "dataset")
    return isinstance(dataset, Result) and dataset.call.path.startswith("torchvision.")


def _spreads(call: Call) -> bool:
    """torch.ones(3, **options) can have any option."""
    return any(keyword.arg is None for keyword in call.node.keywords)


_RANGES = frozenset(f"torch.{name}" for name in ["arange", "linspace", "from_numpy"])


def makes_axes(call: Call) -> bool:
    """It makes a tensor on the CPU that is no single number, which every device accepts."""
    if {"device", None} & {keyword.arg for keyword in call.node.keywords}:
        return False
    first = call.node.args[0] if call.node.args else None
    if isinstance(first, ast.List | ast.Tuple):
        return bool(first.elts) and (call.path == "torch.tensor" or call.path in _SIZED)
    return call.path in _RANGES or (call.path in _SIZED and first is not None)


def _has_axis(call: Call) -> bool:
    if len(call.node.args) > 1:
        return True
    sizes = call.arguments[0] if call.arguments else call.keywords.get("size")
    if isinstance(sizes, Several):
        return True
    return isinstance(sizes, Constant) and isinstance(sizes.value, int) and bool(call.arguments)


def _device(value: Value) -> Device | None:
    if is_cuda(value):
        return "cuda"
    if isinstance(value, Result) and value.call.path == "torch.device":
        value = value.call.argument(0, "type")
    return "cpu" if value == Constant("cpu") else None


def module_device(program: Program, value: Value, event: Event) -> Device | None:
    """The device of a torch.nn module at an event; modules are moved in place."""
    if not is_module(value):
        return None
    made = _maker(value)
    if isinstance(made, Definition) and _made_twice(program, made):
        return None
    if isinstance(made, Call) and ("device" in made.keywords or _spreads(made)):
        # Linear(2, 2, device=device), which may be moved later.
        return None
    moves = [
        call
        for call in program.calls()
        if call.method in ("to", "cuda", "cpu")
        and not call.path
        and _maker(call.receiver) is made
        and call.index < event.index
    ]
    if not moves:
        return "cpu"
    last = moves[-1]
    if not program.surely_before(last, event):
        return None
    if last.method == "to":
        return _device(last.argument(0, "device"))
    return "cuda" if last.method == "cuda" else "cpu"


def _made_twice(program: Program, definition: Definition) -> bool:
    """Two objects of one class cannot be distinguished."""
    made = {
        call.node
        for call in program.calls()
        if isinstance(call.target, Defined) and call.target.definition is definition
    }
    return len(made) != 1


def _maker(value: Value) -> object:
    """The constructor call, or the class of an object defined in this file."""
    while isinstance(value, Result):
        if value.call.path:
            return value.call
        value = value.call.receiver
    return value.definition if isinstance(value, Instance) else None
