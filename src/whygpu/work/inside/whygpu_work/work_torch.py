"""Runs a PyTorch module: inputs of a batch size, one training step, one inference."""

import difflib
import inspect

from .inputs import parse_shapes, random_array
from .loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class TorchWork(object):
    framework = backend = "torch"

    def __init__(
        self,
        module: "Any",
        examples: "Any" = None,
        optimizer: "str | None" = None,
        shapes: "str | None" = None,
        device: "str | None" = None,
        seed: int = 0,
    ) -> None:
        import torch

        self.module = module
        self.seed = seed
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._shapes = parse_shapes(shapes) if shapes else None
        self._examples = examples if examples is not None else example_inputs(module)
        if self._shapes is None and self._examples is None:
            raise Unusable(
                "a PyTorch module does not say what it takes: give --input, such as 3x224x224, or "
                "return (module, example_inputs)"
            )
        self._optimizer_name = optimizer or "adam"
        self._optimizer: "Any" = None
        self._output: "Any" = None

    def inputs(self, batch: int) -> "Any":
        """A tuple of arguments on the device."""
        import torch

        if self._shapes is None:
            return moved(with_rows(self._examples, batch), self.device)
        below = smallest_vocabulary(self.module)
        arrays = [
            random_array((batch,) + shape, dtype, self.seed + i, below)
            for i, (shape, dtype) in enumerate(self._shapes)
        ]
        return tuple(torch.as_tensor(array).to(self.device) for array in arrays)

    def prepare_training(self) -> None:
        self.module.to(self.device).train()
        self._optimizer = make_optimizer(self._optimizer_name, self.module.parameters())

    def prepare_inference(self) -> None:
        self.module.to(self.device).eval()

    def train_step(self, inputs: "Any") -> float:
        """One optimizer step. The loss is the mean of what the module returns.

        As in `output = module(batch)` of a usual loop, the output of the step before is kept while
        the next one is computed.
        """
        self._optimizer.zero_grad()
        self._output = call(self.module, inputs)
        loss = mean_of(self._output)
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    def infer(self, inputs: "Any") -> "Any":
        import torch

        with torch.no_grad():
            return call(self.module, inputs)


def call(module: "Any", inputs: "Any") -> "Any":
    if isinstance(inputs, dict):
        return module(**inputs) if _takes_by_name(module, inputs) else module(inputs)
    return module(*inputs) if isinstance(inputs, (tuple, list)) else module(inputs)


def _takes_by_name(module: "Any", inputs: "dict[str, Any]") -> bool:
    """Whether a dictionary holds the module's arguments, or is itself its argument."""
    try:
        signature = inspect.signature(module.forward)
        signature.bind(inputs)
    except (TypeError, ValueError):
        return True
    kinds = {each.kind for each in signature.parameters.values()}
    return inspect.Parameter.VAR_KEYWORD in kinds or any(
        name in signature.parameters for name in inputs
    )


def mean_of(output: "Any") -> "Any":
    """The mean over the floating-point tensors of any structure, as one number to differentiate."""
    tensors = [leaf for leaf in leaves(output) if leaf.is_floating_point() and leaf.requires_grad]
    if not tensors:
        raise Unusable("the module returns no tensor that depends on its weights")
    return sum(tensor.float().mean() for tensor in tensors)


def leaves(tree: "Any") -> "list[Any]":
    """All tensors of nested lists, tuples, dicts and objects with fields."""
    import torch

    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        return [leaf for each in tree.values() for leaf in leaves(each)]
    if isinstance(tree, (list, tuple)):
        return [leaf for each in tree for leaf in leaves(each)]
    fields = getattr(tree, "__dict__", None)
    return [leaf for each in fields.values() for leaf in leaves(each)] if fields else []


def example_inputs(module: "Any") -> "Any":
    given = getattr(module, "example_inputs", None)
    if given is None:
        given = getattr(module, "example_input_array", None)
    given = given() if callable(given) else given
    if given is None or isinstance(given, (tuple, list, dict)):
        return given
    return (given,)


def repeated(tensor: "Any", rows: int) -> "Any":
    """So many rows: the ones that are there, over and over."""
    import torch

    return tensor[torch.arange(rows, device=tensor.device) % tensor.shape[0]]


def with_rows(tree: "Any", count: int, fill: "Callable[[Any, int], Any]" = repeated) -> "Any":
    """The examples for so many samples; `fill` makes so many rows of a tensor.

    The first tensor has a row for each sample. Others may have several, as a graph has edges for
    each node, or rows that do not depend on the samples.
    """
    shapes = [tensor.shape for tensor in leaves(tree) if tensor.dim()]
    samples = shapes[0][0] if shapes else 1

    def resized(tensor: "Any") -> "Any":
        if tensor.dim() == 0:
            return tensor
        rows = tensor.shape[0]
        if rows == samples:
            return fill(tensor, count)
        by_sample = samples > 1 and rows % samples == 0
        return fill(tensor, rows // samples * count if by_sample else rows)

    return each_tensor(tree, resized)


def each_tensor(tree: "Any", change: "Callable[[Any], Any]") -> "Any":
    """The tree with each of its tensors changed."""
    import torch

    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, dict):
        return {key: each_tensor(each, change) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return tuple(each_tensor(each, change) for each in tree)
    return tree


def moved(tree: "Any", device: "Any") -> "Any":
    return each_tensor(tree, lambda tensor: tensor.to(device))


def smallest_vocabulary(module: "Any") -> "Any":
    import torch

    sizes = [
        each.num_embeddings for each in module.modules() if isinstance(each, torch.nn.Embedding)
    ]
    return min(sizes or [2])


def make_optimizer(name: str, parameters: "Any", **options: "dict[str, Any]") -> "Any":
    """By its name in torch.optim, whatever the case."""
    import torch

    known = {
        key.lower(): value
        for key, value in vars(torch.optim).items()
        if isinstance(value, type)
        and issubclass(value, torch.optim.Optimizer)
        and value is not torch.optim.Optimizer
    }
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, 1)
        hint = " (did you mean %s?)" % near[0] if near else ""
        raise Unusable(
            "no optimiser %r in torch.optim%s; there are %s"
            % (name, hint, ", ".join(sorted(known)))
        )
    return known[name.lower()](parameters, lr=1e-3, **options)
