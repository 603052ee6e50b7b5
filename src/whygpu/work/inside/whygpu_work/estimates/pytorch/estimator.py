"""Estimates the GPU memory of a PyTorch module, or of a Keras model on PyTorch, without a GPU.

The real training step or inference runs on tensors without data, and every allocation is counted
as PyTorch's allocator on a GPU would count it.
"""

import contextlib
import gc

import torch

from ...inputs import parse_shapes
from ...loading import Unusable
from ...work_torch import (
    call,
    example_inputs,
    leaves,
    make_optimizer,
    moved,
    repeated,
    with_rows,
)
from . import allocator
from .meta import on_meta
from .pretend import Endless, Pretence
from .record import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .pretend import Asked

OLDEST = (2, 1)
"""Before this release, Python code cannot see when a storage is freed."""
HALF = torch.bfloat16
PARTS = ("weights", "gradients", "optimizer", "activations", "inputs", "workspace")
MODELLED = ("workspace",)
NOTES = {
    "optimizer": "its state and the working memory of its update",
    "workspace": "the working memory of cuBLAS and cuDNN",
}

OTHER_NUMBERS = (1, 3, -3, 100, 10000)
"""Tried in place of 0, to see whether the memory depends on what the program reads. The small ones
come first: if a loop takes memory, the long ones are not tried."""
_SLIGHT = 0.02
_OF_A_LOOP = (
    "it takes the most in a loop whose variable keeps the output of the batch before (as in "
    "`output = module(batch)`) while the next is computed"
)


class Estimator(object):
    """A step at any batch size; subclasses define the step.

    `gpu` is the compute capability of the GPU that is meant, as a tuple, or None.
    """

    truth = False
    """The value assumed for a condition that depends on data."""

    def __init__(
        self,
        train: bool,
        gpu: "tuple[int, int] | None" = None,
        tell: "Callable[[str], None] | None" = None,
    ) -> None:
        _check_release()
        self.train = train
        self._tell = tell or (lambda text: None)
        self.recorder = Recorder(gpu)
        self.notes: "list[str]" = []
        self._warm = False

    def step(self, batch: int) -> None:
        raise NotImplementedError

    def at(self, batch: int) -> "dict[str, Any]":
        """The peak of one step and its parts, as a dict for JSON."""
        if not self._warm:
            # The first step creates the optimizer's state and the workspaces of libraries.
            self._tell("first step")
            self._run(batch)
            self._warm = True
        self._tell("batch %d" % batch)
        self.recorder.restart()
        asked = self._run(batch)
        events = self.recorder.events()
        peak = allocator.replay(events)
        depends_on = self._depends_on(batch, asked, events, peak)
        return {
            "depends_on": depends_on,
            "parts": self._parts(peak),
            "peak_bytes": peak.allocated,
            "needs_bytes": allocator.least(events, peak),
            "phase": self.recorder.phases[max(peak.live)],
            "notes": list(self.notes),
            "source": "PyTorch %s, its own step on tensors without data" % torch.__version__,
        }

    def _depends_on(self, batch: int, asked: "Asked", events: "Any", peak: "allocator.Peak") -> str:
        """Where the program reads a value with which the step takes other memory; empty if nowhere.

        A condition has two values, and both are tried: what matters is the peak. A number has many:
        if another one changes any allocation, others may change the peak, too. With values that the
        program refuses, it does not go on: they do not matter.
        """
        if asked.numbers and any(
            self._sizes_with(batch, number) not in (None, _sizes(events))
            for number in OTHER_NUMBERS
        ):
            return asked.numbers[0]
        if asked.conditions and self._other_branch_matters(batch, peak):
            return asked.conditions[0]
        return ""

    def _sizes_with(self, batch: int, number: int) -> "list[int] | None":
        self.recorder.restart()
        with contextlib.suppress(Exception):
            self._run(batch, number=number)
            return _sizes(self.recorder.events())
        return None

    def _other_branch_matters(self, batch: int, peak: "allocator.Peak") -> bool:
        self.recorder.restart()
        try:
            self._run(batch, not self.truth)
        except Endless:
            return True
        except Exception:
            return False
        other = allocator.replay(self.recorder.events())
        return abs(other.allocated - peak.allocated) > _SLIGHT * peak.allocated

    def _run(self, batch: int, truth: "bool | None" = None, number: int = 0) -> "Asked":
        """One step; returns where the program read values of tensors."""
        gc.collect()
        pretence = Pretence(self.recorder, self.truth if truth is None else truth, number)
        # Threads of autograd would not be watched.
        with torch.autograd.set_multithreading_enabled(False), pretence, self.recorder:
            self.step(batch)
        for place in pretence.asked.places():
            self._add_note(
                "%s reads the value of a tensor, which has no value in an estimate" % place
            )
        return pretence.asked

    def _add_note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _parts(self, peak: "allocator.Peak") -> "list[dict[str, Any]]":
        sizes = dict.fromkeys(PARTS, 0)
        for key, size in peak.live.items():
            sizes[self.recorder.kinds[key]] += size
        return [
            {
                "name": name,
                "bytes": sizes[name],
                "how": "modelled" if name in MODELLED else "measured",
                "note": NOTES.get(name, ""),
            }
            for name in PARTS
        ]


class ModuleEstimator(Estimator):
    def __init__(
        self,
        module: "Any",
        examples: "Any" = None,
        train: bool = True,
        optimizer: "str | None" = None,
        mixed: bool = False,
        shapes: "str | None" = None,
        gpu: "tuple[int, int] | None" = None,
        tell: "Callable[[str], None] | None" = None,
        options: "dict[str, Any] | None" = None,
    ) -> None:
        """`options` replace the optimizer's defaults."""
        super(ModuleEstimator, self).__init__(train, gpu, tell)
        self.module = module.train(train)
        self._mixed = mixed
        self._optimizer_name = optimizer or "adam"
        self._options = options or {}
        self._optimizer: "Any" = None
        self._is_loop = False
        self._kept: "Any" = None
        """What a variable of the program's loop still holds of the batch before."""
        self._examples = _examples(module, examples, shapes)
        weights = on_meta(module)
        self.recorder.mark(weights, "weights")
        if train and not any(weight.requires_grad for weight in weights):
            raise Unusable("the module has no weights to train: give --infer")

    def at(self, batch: int) -> "dict[str, Any]":
        """Perhaps a range: the loop may keep an output until it has the next one.

        In training that matters if outputs are larger than what only the backward pass needs."""
        found = super().at(batch)
        self._is_loop = True
        self._run(batch)
        most = super().at(batch)["needs_bytes"]
        self._is_loop, self._kept = False, None
        if most - found["needs_bytes"] > _SLIGHT * most:
            found["most_bytes"] = most
            found["notes"].append(_OF_A_LOOP)
        return found

    def step(self, batch: int) -> None:
        inputs = moved(with_rows(self._examples, batch, _without_values), "cuda")
        if not self.train:
            with torch.no_grad(), self._casting():
                self._next_output(inputs)
            return
        if self._optimizer is None:
            parameters = self.module.parameters()
            self._optimizer = make_optimizer(self._optimizer_name, parameters, **self._options)
        self._optimizer.zero_grad()
        with self._casting():
            # The usual loop has a variable for the output, which keeps it during the backward pass.
            output = self._next_output(inputs)
            loss = self._loss(output)
        loss.backward()
        trained = [each for each in self.module.parameters() if each.grad is not None]
        self.recorder.mark([each.grad for each in trained], "gradients")
        self.recorder.phase = "update"
        try:
            self._optimizer.step()
        finally:
            self.recorder.phase = "forward"
        self.recorder.mark(_state(self._optimizer), "optimizer")

    def _next_output(self, inputs: "Any") -> "Any":
        """The output; in a loop, the one before is there until it is computed."""
        output = call(self.module, inputs)
        self._kept = output if self._is_loop else None
        return output

    def _casting(self) -> "Any":
        if not self._mixed:
            return contextlib.nullcontext()
        return torch.autocast("cuda", dtype=HALF)

    def _loss(self, output: "Any") -> "Any":
        """What is differentiated: the module's own loss, or one with the usual memory needs."""
        found = getattr(output, "loss", None)
        if isinstance(found, torch.Tensor):
            return found
        tensors = [each for each in leaves(output) if each.requires_grad]
        if not tensors:
            raise Unusable("the module returns no tensor that depends on its weights")
        if tensors[0].dim() == 0:
            return tensors[0]
        self._add_note(
            "the loss is assumed to be a cross-entropy over the last axis of the first output"
        )
        scores = tensors[0].reshape(-1, tensors[0].shape[-1])
        classes = torch.zeros(scores.shape[:1], dtype=torch.int64).to("cuda")
        return torch.nn.functional.cross_entropy(scores, classes)


def _check_release() -> None:
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release < OLDEST:
        raise Unusable(
            "PyTorch %s does not show when memory is freed; %d.%d is the first that does"
            % ((torch.__version__,) + OLDEST)
        )


def _examples(module: "Any", examples: "Any", shapes: "str | None") -> "Any":
    if shapes:
        sized = parse_shapes(shapes)
        return tuple(torch.empty((1,) + shape, dtype=_dtype(name)) for shape, name in sized)
    examples = example_inputs(module) if examples is None else examples
    if examples is None:
        raise Unusable(
            "a PyTorch module does not say what it takes: give --input, such as 3x224x224, or "
            "return (module, example_inputs)"
        )
    return _in_main_memory(examples)


def _in_main_memory(tree: "Any") -> "Any":
    if isinstance(tree, torch.Tensor):
        return torch.zeros_like(tree, device="cpu") if tree.is_meta else tree.detach().cpu()
    if isinstance(tree, dict):
        return {key: _in_main_memory(each) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return tuple(_in_main_memory(each) for each in tree)
    return tree


def _dtype(name: str) -> "Any":
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise Unusable(
            "--input: PyTorch has no type %r; there are float32, int64 and others" % name
        )
    return found


def _without_values(tensor: "Any", rows: int) -> "Any":
    """So many rows without values, which take no memory here. Whole numbers keep theirs, for they
    may be lengths."""
    if tensor.is_floating_point():
        return tensor[:1].expand((rows,) + tensor.shape[1:])
    return repeated(tensor, rows)


def _sizes(events: "Any") -> "list[int]":
    """What was allocated. What is there before a step has no fixed order."""
    return sorted(size for _, size in events if size is not None)


def _state(optimizer: "Any") -> "list[Any]":
    values = [value for state in optimizer.state.values() for value in state.values()]
    return [each for each in values if isinstance(each, torch.Tensor) and each.is_cuda]
