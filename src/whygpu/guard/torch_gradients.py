"""Gradients of a PyTorch program: computed for rows of a batch, taken out of `.grad`, put back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from whygpu.errors import UsageError
from whygpu.guard.batches import leaves, mapped, samples_in
from whygpu.guard.sameness import grain_of, quotient
from whygpu.guard.splitting import CannotSplit

_PIECE = 1 << 20
"""Numbers that are compared at a time."""

Gradient = list[Any]
"""One tensor for each parameter, None where it has no part in the loss."""


class Work(NamedTuple):
    """A loss, and the batch or the part of one that it is computed for."""

    loss_fn: Callable[..., Any]
    batch: tuple[Any, ...]
    weight: Callable[..., Any] | None
    """The weight of a part, if that is not its number of samples."""

    @property
    def samples(self) -> int:
        return samples_in(leaves(self.batch))

    def rows(self, start: int, stop: int) -> Work:
        return self._replace(batch=mapped(self.batch, lambda tensor: tensor[start:stop]))

    def reversed(self) -> Work:
        return self._replace(batch=mapped(self.batch, lambda tensor: tensor.flip(0)))

    def share_of(self, whole: Work, of_samples: float) -> float:
        if self.weight is None:
            return of_samples
        return quotient(float(self.weight(*self.batch)), float(self.weight(*whole.batch)))


class Gradients:
    """What `.grad` of all trained parameters contains."""

    def __init__(self, torch: Any, objects: Sequence[Any]) -> None:
        self._torch = torch
        found = {id(p): p for item in objects for p in _parameters_of(torch, item)}
        self._parameters = list(found.values())

    def refuse_hooks(self) -> None:
        """Such hooks would run for each part, and after a failure."""
        if any(getattr(p, "_post_accumulate_grad_hooks", None) for p in self._parameters):
            raise UsageError(
                "parameters have hooks that run as soon as their gradient is ready "
                "(register_post_accumulate_grad_hook), as in an optimizer that steps within "
                "backward: a step that fails halfway could not be undone. Let the optimizer step "
                "after guard.backward()"
            )

    def taken(self) -> Gradient:
        """The gradients, which are not in `.grad` any longer."""
        gradient = [parameter.grad for parameter in self._parameters]
        self.drop()
        return gradient

    def drop(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def put(self, gradient: Gradient) -> None:
        for parameter, tensor in zip(self._parameters, gradient, strict=True):
            parameter.grad = tensor

    def join(self, earlier: Gradient) -> None:
        """Add what is in `.grad` to earlier gradients, and leave their tensors there."""
        with self._torch.no_grad():
            for parameter, before in zip(self._parameters, earlier, strict=True):
                if before is None:
                    continue
                if parameter.grad is not None:
                    before.add_(parameter.grad)
                parameter.grad = before

    def of(self, work: Work) -> Gradient:
        self.drop()
        self.add(work, 1.0)
        return self.taken()

    def gap(self, gradient: Gradient, *parts: tuple[Work, float]) -> float:
        """The distance from a gradient to the sum of those of the parts, each times its share.

        The sum is made in `.grad`: no third gradient is in memory.
        """
        self.drop()
        for work, share in parts:
            self.add(work, share)
        return distance(gradient, self.taken())

    def add(self, work: Work, share: float) -> Any:
        """Add the gradient times the share; return the loss."""
        loss = work.loss_fn(*work.batch)
        if not isinstance(loss, self._torch.Tensor) or loss.numel() != 1:
            shape = getattr(loss, "shape", None)
            seen = type(loss).__name__ if shape is None else f"a tensor of shape {tuple(shape)}"
            raise UsageError(f"the loss function returned {seen}: expected a tensor with one value")
        try:
            (loss if share == 1.0 else loss * share).backward()
        except Exception:
            self._refuse_strangers(loss)
            raise
        return loss.detach()

    def _refuse_strangers(self, loss: Any) -> None:
        """A failed attempt left gradients in tensors that the guard does not know: do not retry."""
        known = {id(parameter) for parameter in self._parameters}
        strangers = [leaf for leaf in _leaves_of(loss) if id(leaf) not in known]
        if strangers:
            shapes = ", ".join(str(tuple(leaf.shape)) for leaf in strangers[:5])
            raise CannotSplit(
                f"the loss also trains {len(strangers)} tensors that the guard does not know "
                f"(shapes {shapes}); pass everything that you train: "
                "whygpu.oom_guard(model, optimizer)"
            )


def distance(first: Gradient, second: Gradient) -> float:
    pairs = [(x, y) for x, y in zip(first, second, strict=True) if x is not None or y is not None]
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    alone = [y if x is None else x for x, y in pairs if x is None or y is None]
    gaps = (a - b for x, y in both for a, b in zip(_pieces(x), _pieces(y), strict=True))
    return math.hypot(_length(gaps), norm(alone))


def norm(gradient: Gradient) -> float:
    return _length(piece for g in gradient if g is not None for piece in _pieces(g))


def _length(pieces: Iterable[Any]) -> float:
    return math.sqrt(sum(float(piece.abs().double().norm()) ** 2 for piece in pieces))


def grain(torch: Any, gradient: Gradient) -> float:
    tensors = [g for g in gradient if g is not None]

    def total(count: Callable[[Any], Any]) -> int:
        return sum(int(count(piece).sum()) for g in tensors for piece in _pieces(g))

    def on_grid(name: str) -> int:
        coarser = getattr(torch, name)
        return total(lambda piece: (piece != 0) & (piece == piece.to(coarser).to(piece.dtype)))

    return grain_of(on_grid, total(lambda piece: piece != 0))


def _pieces(tensor: Any) -> Iterable[Any]:
    """Views of a tensor, each small: what is computed from one needs little memory."""
    if not tensor.dim() or tensor.is_sparse:
        return (tensor,)
    rows = tensor.shape[0]
    return tensor.split(max(1, _PIECE * rows // max(1, tensor.numel()))) if rows else ()


def _parameters_of(torch: Any, item: Any) -> Iterator[Any]:
    if isinstance(item, torch.nn.Module):
        yield from item.parameters()
    elif isinstance(item, torch.optim.Optimizer):
        for group in item.param_groups:
            yield from group["params"]
    elif isinstance(item, torch.Tensor) and item.is_leaf:
        yield item
    else:
        raise UsageError(
            f"a {type(item).__name__} cannot be guarded: expected a Keras model, or PyTorch "
            "modules, optimizers and parameters"
        )


def _leaves_of(loss: Any) -> Iterator[Any]:
    """The tensors in which gradients are accumulated, from the graph of a loss."""
    waiting, seen = [loss.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        waiting += [following for following, _ in node.next_functions]
