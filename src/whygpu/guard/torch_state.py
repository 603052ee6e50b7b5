"""What a PyTorch step changes besides gradients: buffers of modules and random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class _Buffer:
    """A buffer of a module, and its value from before the step."""

    def __init__(self, path: str, module: Any, name: str, tensor: Any) -> None:
        self.path = path
        self.module = module
        self.name = name
        self.tensor = tensor
        self.value = tensor.detach().clone()

    def has_changed(self) -> bool:
        # PyTorch's count of changes to a tensor is no help: batch normalisation is not counted.
        now = self.module._buffers.get(self.name)
        return now is not self.tensor or not bool((now == self.value).all())

    def put(self, value: Any) -> None:
        self.tensor.copy_(value)
        self.module._buffers[self.name] = self.tensor

    def put_back(self) -> None:
        self.put(self.value)


class ModuleState:
    """The buffers of modules as they are now, to be restored later.

    In a step of several parts, the running statistics of normalisation layers start each part from
    the same values, and the mean of the results is kept. So they are updated once per step. Any
    other buffer is updated by one part after the other.
    """

    def __init__(self, torch: Any, modules: Sequence[Any]) -> None:
        self._torch = torch
        self._buffers = list(_buffers(modules))
        norm: Any = torch.nn.modules.batchnorm._NormBase
        self._of_norms = [buffer for buffer in self._buffers if isinstance(buffer.module, norm)]
        self._made: dict[str, Any] = {}
        """The buffers of normalisation layers after each of the parts so far."""

    def restore(self) -> None:
        with self._torch.no_grad():
            for buffer in self._buffers:
                buffer.put_back()
        self._made = {}

    def end_of_part(self, share: float) -> None:
        with self._torch.no_grad():
            for buffer in self._of_norms:
                value = buffer.tensor.clone()
                if value.is_floating_point():
                    change = (value - buffer.value) * share
                    value = self._made.get(buffer.path, buffer.value) + change
                self._made[buffer.path] = value
                buffer.put_back()

    def end_of_parts(self) -> None:
        with self._torch.no_grad():
            for buffer in self._of_norms:
                buffer.put(self._made[buffer.path])
        self._made = {}

    def changed_by_part(self) -> list[str]:
        """State of an unknown kind, which was updated by one part after the other."""
        rest = [buffer for buffer in self._buffers if buffer not in self._of_norms]
        return [buffer.path for buffer in rest if buffer.has_changed()]


class RandomState:
    """The states of PyTorch's random number generators, to be restored later."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._cpu = torch.get_rng_state()
        self._gpus = self._gpu_states()

    def restore(self) -> None:
        self._torch.set_rng_state(self._cpu)
        for index, state in enumerate(self._gpus):
            self._torch.cuda.set_rng_state(state, index)

    def has_moved(self) -> bool:
        equal = self._torch.equal
        now = self._gpu_states()
        if not equal(self._cpu, self._torch.get_rng_state()) or len(now) != len(self._gpus):
            return True
        return not all(equal(a, b) for a, b in zip(self._gpus, now, strict=True))

    def _gpu_states(self) -> list[Any]:
        if not self._torch.cuda.is_initialized():
            return []
        return list(self._torch.cuda.get_rng_state_all())


def batch_norms(torch: Any, modules: Sequence[Any]) -> list[str]:
    """Layers whose output for a sample depends on the others of its batch."""
    kind: Any = torch.nn.modules.batchnorm._BatchNorm
    return [
        path or type(module).__name__
        for root in modules
        for path, module in root.named_modules()
        if isinstance(module, kind) and (module.training or module.running_mean is None)
    ]


def _buffers(modules: Sequence[Any]) -> Iterator[_Buffer]:
    seen: set[int] = set()
    for root in modules:
        for path, module in root.named_modules():
            for name, tensor in module._buffers.items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield _Buffer(f"{path}.{name}" if path else name, module, name, tensor)
