"""Where PyTorch's operations ran, seen by a dispatch mode in samples of some thousands."""

import sys
import threading
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.trace import results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whygpu_bootstrap.trace.results import Reasons

FIRST_OPERATIONS = 20000
"""Operations counted exactly from the start, so that a short program is exact."""
LATER_OPERATIONS = 2000
"""Operations in each later sample."""
clock = time.thread_time
"""Time that other processes take would be multiplied with a sample."""
IGNORED_NAMESPACES = ("profiler", "prim")
CALIBRATION_ROUNDS = 40


class Spent:
    """Seconds of the main thread at work, and nodes of autograd's graph that it made in them.

    Both are counted without watching.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.nodes = 0

    def copy(self) -> "Spent":
        same = Spent()
        same.seconds, same.nodes = self.seconds, self.nodes
        return same

    def add(self, since: "Any", until: "Any") -> None:
        # The end may be in another thread, which has other counters.
        self.seconds += max(until[0] - since[0], 0.0)
        self.nodes += max(until[1] - since[1], 0)


class Watch:
    """What was seen from the start on, and in the samples after that."""

    def __init__(self, torch: "Any") -> None:
        self._torch = torch
        self._names: "dict[Any, Any]" = {}
        self._nodes = getattr(torch.autograd, "_get_sequence_nr", int)
        self._can_copy_from_gpu = _built_for_gpus(torch)
        self.cost = 0.0
        self.clear()

    def clear(self, resting: bool = False) -> None:
        self.first: "dict[Any, Any]" = {}
        self.later: "dict[Any, Any]" = {}
        self.watched, self.rested = Spent(), Spent()
        self.samples = self.seen = 0
        self.current = self.first
        self.left = FIRST_OPERATIONS
        self.resting = resting
        self._from_the_start = not resting
        self._changed = self._now()

    def _now(self) -> "tuple[float, int]":
        return clock(), self._nodes()

    def opened(self) -> None:
        now = self._now()
        if self.samples:
            self.rested.add(self._changed, now)
            self.current = self.later
            self.watched = Spent() if self.samples == 1 else self.watched
            self.left = LATER_OPERATIONS
        self.samples += 1
        self.resting = False
        self._changed = now

    def closed(self) -> None:
        now = self._now()
        if not self.resting:
            self.watched.add(self._changed, now)
        self.resting = True
        self._changed = now

    def count(self, function: "Any", arguments: "Any", result: "Any", took: float) -> bool:
        """Whether that was enough for now."""
        device = _device(self._torch, result) or _device(self._torch, arguments)
        if self._can_copy_from_gpu and getattr(device, "type", "") == "cpu":
            device = _gpu_among(self._torch, arguments) or device
        key = (function, device)
        cell = self.current.get(key)
        if cell is None:
            cell = self.current.setdefault(key, [0, 0.0])
        cell[0] += 1
        cell[1] += took
        self.seen += 1
        self.left -= 1
        return self.left <= 0

    def saw_all(self) -> bool:
        """Whether the main thread was watched from the start until now."""
        watched = self._from_the_start and not self.resting
        return watched and self.samples > 0 and self.current is self.first

    def totals(self) -> "tuple[dict[tuple[str, str], list[Any]], bool]":
        """{(op, label): [count, seconds]} of the whole run, and whether nothing was missed."""
        found: "dict[Any, Any]" = {}
        exact = self.saw_all()
        # The latest samples stand for what was not seen after the start.
        weight = 1.0 if exact else self._weight()
        for cells in (self.first, self.later):
            for (function, device), (count, seconds) in list(cells.items()):
                op, label = self.name(function), _label(device)
                if op is not None and label is not None:
                    cell = found.setdefault((op, label), [0.0, 0.0])
                    cell[0] += count * (weight if cells is self.current else 1.0)
                    cell[1] += seconds * (weight if cells is self.current else 1.0)
        return found, exact

    def _weight(self) -> float:
        """By how much to scale the samples, by autograd's nodes, else by time."""
        watched, rested = self.watched.copy(), self.rested.copy()
        (rested if self.resting else watched).add(self._changed, self._now())
        if watched.nodes > 0:
            return 1.0 + float(rested.nodes) / watched.nodes
        seen = sum(count for count, _ in self.current.values())
        at_work = sum(seconds for _, seconds in self.current.values())
        # The cost is an estimate; the operations took at least their own time.
        seconds = max(watched.seconds - seen * self.cost, at_work)
        return 1.0 + (rested.seconds / seconds if seconds > 0 else 0.0)

    def name(self, function: "Any") -> "str | None":
        """aten::add; None for bookkeeping and for other views of the same memory."""
        if function not in self._names:
            schema = getattr(function, "_schema", None)
            name = schema.name if schema is not None else str(function)
            skip = name.split("::")[0] in IGNORED_NAMESPACES or getattr(function, "is_view", False)
            self._names[function] = None if skip else name
        return self._names[function]


def _device(torch: "Any", values: "Any") -> "Any":
    """The device of the first tensor in values."""
    if type(values) is torch.Tensor:
        return values.device
    if isinstance(values, torch.Tensor):
        return _device_of_subclass(torch, values)
    if isinstance(values, (list, tuple)):
        for value in values:
            found = _device(torch, value)
            if found is not None:
                return found
    return None


def _gpu_among(torch: "Any", arguments: "Any") -> "Any":
    """Of an operation with its result on the CPU: the GPU that it copies from, if it does."""
    for argument in arguments:
        device = _device(torch, argument)
        if getattr(device, "type", "cpu") not in ("cpu", "meta"):
            return device
    return None


def _built_for_gpus(torch: "Any") -> bool:
    return torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None


def _device_of_subclass(torch: "Any", tensor: "Any") -> "Any":
    """Without the subclass's own __torch_function__. A fake tensor's work is not done."""
    if type(tensor).__name__ in ("FakeTensor", "FunctionalTensor"):
        return "fake"
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.device


def _label(device: "Any") -> "str | None":
    kind = getattr(device, "type", device)
    if kind in ("meta", "fake"):
        return None
    if kind in (None, "cpu"):
        return "cpu"
    kind = "gpu" if kind == "cuda" else kind
    return "%s:%d" % (kind, device.index or 0)


_tracers: "list[Any]" = []


def start(torch: "Any", settings: "dict[str, Any]") -> None:
    if not hasattr(torch._C, "_push_on_torch_dispatch_stack"):
        process_record.note(
            "operations of PyTorch %s cannot be traced: PyTorch 2.0 or newer is needed"
            % torch.__version__
        )
        return
    from whygpu_bootstrap.trace import torch_window as windows

    watch = Watch(torch)
    mode = _mode_type(torch, watch)()
    window = mode.window = windows.Window(torch, mode)
    watch.cost = _cost_of_watching(torch, mode)
    watch.clear()
    _step_aside_for_higher_order_operators(torch, mode)
    window.open()
    _tracers.append((torch, watch, window))


def _mode_type(torch: "Any", watch: "Watch") -> "Any":
    from torch.utils._python_dispatch import TorchDispatchMode

    get_ident = threading.get_ident

    class WhygpuMode(TorchDispatchMode):
        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # True would import torch._dynamo, which the program may never import.
            return False

        def opened(self) -> None:
            watch.opened()

        def closed(self) -> None:
            watch.closed()

        def __torch_dispatch__(
            self, function: "Any", types: "Any", arguments: "Any" = (), options: "Any" = None
        ) -> "Any":
            window = self.window
            in_main = get_ident() == window.main
            if in_main:
                window.inside += 1
            try:
                began = clock()
                result = function(*arguments, **(options or {}))
                took = clock() - began
                try:
                    if watch.count(function, arguments, result, took) and in_main:
                        window.close()
                except Exception as error:
                    process_record.note("counting an operation of PyTorch failed: %r" % error)
                return result
            finally:
                if in_main:
                    window.inside -= 1

    WhygpuMode.code = WhygpuMode.__torch_dispatch__.__code__
    return WhygpuMode


def _cost_of_watching(torch: "Any", mode: "Any") -> float:
    """Additional seconds for one watched operation, on a small tensor.

    Operations on elements alone: others may start thread pools before the program sizes them.
    """
    stack = torch._C
    if stack._len_torch_dispatch_stack():
        return 0.0
    tensor = torch.ones(2, 2, dtype=torch.float32, device="cpu")
    plain = _shortest(tensor)
    stack._push_on_torch_dispatch_stack(mode)
    try:
        watched = _shortest(tensor)
    finally:
        stack._pop_torch_dispatch_stack(None)
    return max(watched - plain, 0.0)


def _shortest(tensor: "Any") -> float:
    """The mean time of operations as they are in a training step, in the best of some rounds."""
    times = []
    for _ in range(CALIBRATION_ROUNDS):
        began = clock()
        tensor + tensor
        tensor.add_(1.0)
        tensor.mul_(0.5)
        tensor.lerp_(tensor, 0.5)
        tensor.addcdiv_(tensor, tensor, value=-0.1)
        times.append((clock() - began) / 5)
    return sorted(times)[CALIBRATION_ROUNDS // 2]


def _step_aside_for_higher_order_operators(torch: "Any", mode: "Any") -> None:
    """In older releases, an unknown mode was an error for higher-order operators."""
    from torch.utils._python_dispatch import TorchDispatchMode

    operator = getattr(torch._ops, "HigherOrderOperator", None)
    if operator is None or hasattr(TorchDispatchMode, "supports_higher_order_operators"):
        return
    call, stack = operator.__call__, torch._C

    def __call__(self: "Any", *arguments: "Any", **options: "Any") -> "Any":  # noqa: N807
        depth = stack._len_torch_dispatch_stack()
        if not depth or stack._get_dispatch_stack_at(depth - 1) is not mode:
            return call(self, *arguments, **options)
        stack._pop_torch_dispatch_stack(None)
        try:
            return call(self, *arguments, **options)
        finally:
            stack._push_on_torch_dispatch_stack(mode)

    operator.__call__ = __call__


def after_fork() -> None:
    for _, watch, window in _tracers:
        # A child that is forked during a pause begins with the rest of the pause.
        watch.clear(watch.resting)
        window.after_fork()


def result() -> "dict[str, Any]":
    tally, reasons = results.Tally(), results.Reasons()
    notes: "list[str]" = []
    for torch, watch, _ in _tracers:
        totals, exact = watch.totals()
        for (op, device), (count, seconds) in totals.items():
            # When the call returns, an operation on a GPU has only been started.
            tally.add(op, device, count, seconds if device == "cpu" else None)
        if totals:
            _explain(torch, totals, reasons)
            _say_how_counted(watch, exact, notes)
    return results.outcome(tally, reasons, notes, nothing_because=_why_nothing())


def _why_nothing() -> str:
    """Empty if operations may have run unseen: compiled ones, or those of a pause."""
    watches = [watch for _, watch, _ in _tracers]
    if not watches or _has_compiled() or not all(watch.saw_all() for watch in watches):
        return ""
    return (
        "PyTorch executed none in the main thread (operations in other threads are not traced, "
        "except backward passes)"
    )


def _say_how_counted(watch: "Watch", exact: bool, notes: "list[str]") -> None:
    notes.append("PyTorch's operations are those of the main thread and of its backward passes")
    if not exact:
        notes.append(
            "PyTorch's counts and times are estimates from %d operations seen in %d samples"
            % (watch.seen, watch.samples)
        )
    if _has_compiled():
        notes.append("operations that torch.compile has fused are not counted")


def _has_compiled() -> bool:
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return bool(counters and counters["frames"]["ok"])


def _explain(torch: "Any", totals: "Any", reasons: "Reasons") -> None:
    on_cpu = sorted(op for op, device in totals if device == "cpu")
    if not on_cpu:
        return
    if any(device != "cpu" for _, device in totals):
        on_gpu = {op for op, device in totals if device != "cpu"}
        for op in on_cpu:
            also = ", while others of the kind ran on a GPU" if op in on_gpu else ""
            reasons.add(op, results.CPU_INPUTS, "its tensors were on the CPU" + also)
        return
    reasons.add(results.EVERYTHING, *_why_everything(torch))


def _why_everything(torch: "Any") -> "tuple[str, str]":
    if not _built_for_gpus(torch):
        return results.NO_GPU, "this build of PyTorch (%s) has no CUDA" % torch.__version__
    if not torch.cuda.is_initialized():
        return results.CPU_INPUTS, "the program never put anything on a GPU: CUDA was not started"
    return results.CPU_INPUTS, "CUDA was started, and every tensor seen was on the CPU"
