"""Makes a PyTorch program believe that its tensors are on a GPU; they have no data at all.

They really are on the `meta` device. The program asks for "cuda" and gets `meta`; a tensor reports
its device as "cuda:0". No GPU is used, and none has to be there.
"""

import contextlib
import os
import sys

import torch
from torch.overrides import TorchFunctionMode

from ...loading import CannotTell
from . import autocast, functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Callable, Iterable, Iterator

    from .record import Recorder

GPU = torch.device("cuda", 0)
META = torch.device("meta")


MOST_QUESTIONS = 20000
"""In one step. A loop that goes on until its data have some value would never end."""


class Endless(CannotTell):
    """A step that does not end with the values that were assumed."""


class Asked(object):
    """Where the program read values of tensors, as file:line, outside of PyTorch and Keras."""

    def __init__(self) -> None:
        self.conditions: "list[str]" = []
        self.numbers: "list[str]" = []
        self.count = 0

    def places(self) -> "list[str]":
        return self.conditions + self.numbers


class Pretence(TorchFunctionMode):
    """A condition that depends on data is assumed to be `truth`, a value to be `number`."""

    def __init__(
        self, recorder: "Recorder | None" = None, truth: bool = False, number: int = 0
    ) -> None:
        super().__init__()
        self._recorder = recorder
        self._truth = truth
        self._number = number
        self._casts = autocast.Casts()
        self._patches = contextlib.ExitStack()
        self.asked = Asked()

    def __enter__(self) -> "Any":
        for owner, name, value in self._replacements():
            self._patches.enter_context(_replaced(owner, name, value))
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._patches.close()
        self._casts.forget()

    def __torch_function__(
        self,
        function: "Callable[..., Any]",
        types: "Any",
        arguments: "Any" = (),
        options: "Any" = None,
    ) -> "Any":
        options = options or {}
        answer = _ANSWERS.get(function)
        if answer is not None:
            return answer(self, function, arguments, options)
        arguments, options = _on_meta(arguments, options)
        arguments, options = self._casts.apply(function, arguments, options)
        replacement = functions.ON_CUDA.get(function)
        if replacement is not None:
            # Its own steps are the program's as well.
            return replacement(*arguments, **options)
        return function(*arguments, **options)

    def _replacements(self) -> "Iterator[tuple[Any, str, Any]]":
        """What would otherwise ask the real machine, or hide calls from this mode."""
        cuda = torch.cuda
        yield cuda, "is_available", lambda: True
        yield cuda, "device_count", lambda: 1
        yield cuda, "current_device", lambda: 0
        yield cuda, "synchronize", lambda device=None: None
        yield cuda, "empty_cache", lambda: None
        yield cuda, "is_bf16_supported", lambda *_, **__: True
        yield cuda, "is_current_stream_capturing", lambda: False
        yield cuda, "set_device", lambda device: None
        yield cuda, "device", contextlib.nullcontext
        yield torch.nn.RNNBase, "flatten_parameters", lambda layer: None
        yield torch.backends.cudnn, "is_available", lambda: True
        autograd = torch.autograd
        yield autograd, "backward", self._backward(autograd.backward)
        yield autograd, "grad", self._backward(autograd.grad)
        own_step = autograd.function.BackwardCFunction
        yield own_step, "apply", self._within(own_step.apply)
        hooks = autograd.graph.saved_tensors_hooks
        yield hooks, "__init__", self._hooks_within(hooks.__init__)
        yield torch, "Generator", _Generator
        yield torch, "clear_autocast_cache", self._casts.forget
        # A function of this module that dispatches to a mode would run without the mode.
        functional = torch.nn.functional
        yield torch.overrides, "has_torch_function", _has_others
        yield functional, "has_torch_function", _has_others
        yield functional, "has_torch_function_unary", lambda value: _has_others((value,))
        yield functional, "has_torch_function_variadic", lambda *values: _has_others(values)

    def _device(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> "Any":
        device = function(*arguments, **options)
        return GPU if device == META else device

    def _is_cuda(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> bool:
        return _is_ours(arguments[0])

    def _is_meta(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> bool:
        return False

    def _device_index(
        self, function: "Callable[..., Any]", arguments: "Any", options: "Any"
    ) -> "Any":
        return 0 if _is_ours(arguments[0]) else function(*arguments, **options)

    def _to_gpu(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> "Any":
        return self._moved(torch.Tensor.to, (arguments[0], META), {})

    def _as_asked(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> "Any":
        return function(*arguments, **options)

    def _unchanged(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> "Any":
        return arguments[0]

    def _value(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> "Any":
        tensor = arguments[0]
        if not _is_ours(tensor):
            return function(*arguments, **options)
        if function is torch.Tensor.__bool__:
            self._note_question(self.asked.conditions)
            return self._truth
        self._note_question(self.asked.numbers)
        return function(_on_cpu(tensor, self._number), *arguments[1:], **options)

    def _to_cpu(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> "Any":
        return _on_cpu(arguments[0]) if _is_ours(arguments[0]) else arguments[0]

    def _moved(self, function: "Callable[..., Any]", arguments: "Any", options: "Any") -> "Any":
        """Tensor.to: to the GPU that is none, or away from it."""
        tensor = arguments[0]
        target = options.get("device", arguments[1] if len(arguments) > 1 else None)
        if _is_ours(tensor) and _is_cpu(target):
            tensor = _on_cpu(tensor)
        arguments, options = _on_meta(arguments[1:], options)
        result = function(tensor, *arguments, **options)
        if _is_ours(result) and not _is_ours(tensor) and not tensor.is_floating_point():
            # The program may read lengths and indices again.
            result.whygpu_original = tensor
        return result

    def _backward(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """The entry points of autograd, which set the recorder's phase while they run."""

        recorder = self._recorder
        if recorder is None:
            return function

        def run(*arguments: "Any", **options: "Any") -> "Any":
            before, recorder.phase = recorder.phase, "backward"
            try:
                return function(*arguments, **options)
            finally:
                recorder.phase = before

        return run

    def _within(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """A function that the backward pass calls: autograd does not keep this mode active."""

        def call(*arguments: "Any", **options: "Any") -> "Any":
            if torch.overrides._get_current_function_mode() is not None:
                return function(*arguments, **options)
            TorchFunctionMode.__enter__(self)
            try:
                return function(*arguments, **options)
            finally:
                TorchFunctionMode.__exit__(self, None, None, None)

        return call

    def _hooks_within(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """Checkpointed parts are computed again when their saved tensors are unpacked."""

        def make(hooks: "Any", pack_hook: "Any", unpack_hook: "Any") -> "Any":
            return function(hooks, self._within(pack_hook), self._within(unpack_hook))

        return make

    def _note_question(self, places: "list[str]") -> None:
        self.asked.count += 1
        if self.asked.count > MOST_QUESTIONS:
            raise Endless(
                "it reads values of tensors again and again%s: how often depends on the data"
                % "".join(" at %s" % place for place in places[-1:])
            )
        frame: "types.FrameType | None" = sys._getframe(2)
        while frame is not None:
            path = frame.f_code.co_filename
            if not any(part in path for part in _LIBRARIES):
                places.append("%s:%d" % (os.path.basename(path), frame.f_lineno))
                return
            if "%skeras%s" % (os.sep, os.sep) in path:
                return
            frame = frame.f_back


_LIBRARIES = tuple("%s%s%s" % (os.sep, name, os.sep) for name in ("torch", "keras", "whygpu_work"))


class _Generator(torch._C.Generator):
    """Random numbers are never drawn; a CPU build has no other generator."""

    def __new__(cls, device: "Any" = "cpu") -> "Any":
        return super().__new__(cls, "cpu")


def _has_others(values: "Iterable[Any]") -> bool:
    """Whether one of the values is not a tensor and overrides PyTorch's functions."""
    return any(
        hasattr(type(value), "__torch_function__") and not isinstance(value, torch.Tensor)
        for value in values
    )


def _is_ours(tensor: "Any") -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.device == META


def _is_cpu(device: "Any") -> bool:
    return isinstance(device, (str, torch.device)) and torch.device(device).type == "cpu"


def _on_cpu(tensor: "Any", number: int = 0) -> "Any":
    """What the tensor was before it was moved here, if it is known, or one number everywhere."""
    original = getattr(tensor, "whygpu_original", None)
    if original is not None:
        return original
    return torch.full(tuple(tensor.shape), _near(number, tensor.dtype), dtype=tensor.dtype)


def _near(number: int, dtype: "Any") -> int:
    """The number, or the nearest one of this type."""
    if dtype is torch.bool or dtype.is_complex:
        return number
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return max(min(number, int(limits.max)), int(limits.min))


def _on_meta(arguments: "Any", options: "Any") -> "tuple[Any, dict[str, Any]]":
    if any(isinstance(each, (str, torch.device)) for each in arguments):
        arguments = tuple(_device_for(each) for each in arguments)
    if "device" in options:
        options = dict(options, device=_device_for(options["device"]))
    if options.get("generator") is not None:
        options = dict(options, generator=None)
    if options.get("pin_memory"):
        options = dict(options, pin_memory=False)
    for name in _NUMBERS:
        if _is_ours(options.get(name)):
            options = dict(options, **{name: 1})
    return arguments, options


_NUMBERS = ("alpha", "beta", "value")
"""Options that are numbers; PyTorch reads them from a tensor if one is given."""


def _device_for(value: "Any") -> "Any":
    if isinstance(value, torch.device):
        return META if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return META
    return value


@contextlib.contextmanager
def _replaced(owner: "Any", name: str, value: "Any") -> "Iterator[None]":
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _answers() -> "dict[Any, Any]":
    tensor = torch.Tensor
    answers = {
        tensor.device.__get__: Pretence._device,
        tensor.is_cuda.__get__: Pretence._is_cuda,
        tensor.is_meta.__get__: Pretence._is_meta,
        tensor.get_device: Pretence._device_index,
        tensor.cuda: Pretence._to_gpu,
        tensor.cpu: Pretence._to_cpu,
        tensor.to: Pretence._moved,
        tensor.pin_memory: Pretence._unchanged,
        tensor.record_stream: Pretence._unchanged,
        torch.device: Pretence._as_asked,
    }
    values = ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__")
    answers.update((getattr(tensor, name), Pretence._value) for name in (*values, "__array__"))
    return answers


_ANSWERS = _answers()
