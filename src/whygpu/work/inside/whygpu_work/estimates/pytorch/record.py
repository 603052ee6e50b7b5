"""A PyTorch program's allocations, recorded while it runs on tensors without data.

Tensors on the `meta` device have shapes, strides and lifetimes like any other, and autograd treats
them like any other: PyTorch itself decides what is saved for the backward pass, and for how long.
Only their numbers are missing, so a training step takes no memory and hardly any time.
"""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from . import kernels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

_ACTIVE: "list[Recorder]" = []
_KIND_IN = {"forward": "activations", "backward": "activations", "update": "optimizer"}
"""The kind of an allocation that was not marked, by phase."""


def working(size: int) -> None:
    """Record that a kernel needs so many bytes of workspace at this moment."""
    for recorder in _ACTIVE:
        recorder.pass_through((size,))


class Recorder(TorchDispatchMode):
    """Records when each storage is created and freed, and the workspace of kernels."""

    def __init__(self, gpu: "tuple[int, int] | None") -> None:
        super().__init__()
        self._gpu = gpu
        """The GPU's compute capability as a tuple, or None."""
        self._live: "dict[Any, tuple[int, int]]" = {}
        """Keys and sizes, by the storage's address or the library's name."""
        self._references: "dict[int, Any]" = {}
        self._next_key = 0
        self._events: "list[tuple[int, int | None]]" = []
        self.kinds: "dict[int, str]" = {}
        """What each allocation is for, by its key."""
        self.phases: "dict[int, str]" = {}
        """When each allocation was made, by its key."""
        self.phase = "forward"

    def __enter__(self) -> "Any":
        _ACTIVE.append(self)
        return super().__enter__()

    def __exit__(self, *error: object) -> "Any":
        _ACTIVE.remove(self)
        return super().__exit__(*error)

    def __torch_dispatch__(
        self,
        function: "Callable[..., Any]",
        types: "Any",
        arguments: "Any" = (),
        options: "Any" = None,
    ) -> "Any":
        if function in kernels.CUBLAS:
            self._start_library("cublas", kernels.cublas_workspace(self._gpu))
        if function in kernels.CUBLAS_LT:
            self._start_library("cublasLt", kernels.CUBLAS_LT_WORKSPACE)
        kernel = kernels.BY_FUNCTION.get(function)
        if kernel is None:
            result = function(*arguments, **(options or {}))
            passing: "list[int]" = []
        else:
            result, passing = kernel(function, arguments, options or {}, self._gpu)
        kind = "inputs" if _comes_from_cpu(function, arguments) else None
        for leaf in (result,) if isinstance(result, torch.Tensor) else tree_flatten(result)[0]:
            if isinstance(leaf, torch.Tensor) and leaf.device.type == "meta":
                self._note(leaf.untyped_storage(), kind)
        if passing:
            self.pass_through(passing)
        return result

    def mark(self, tensors: "Iterable[Any]", kind: str) -> None:
        """Set the kind of tensors, and record those that are new."""
        for tensor in tensors:
            self.kinds[self._note(tensor.untyped_storage(), kind)] = kind

    def restart(self) -> None:
        """Begin a new list of events with everything that is allocated now."""
        self._events = [(key, size) for key, size in self._live.values() if size]

    def events(self) -> "list[tuple[int, int | None]]":
        """(key, bytes) for an allocation, (key, None) when it ends."""
        return list(self._events)

    def pass_through(self, sizes: "Iterable[int]") -> None:
        """Record memory that one operation allocates and frees."""
        keys = [self._open(size, "workspace") for size in sizes if size]
        self._events += [(key, None) for key in keys]

    def _note(self, storage: "Any", kind: "str | None") -> int:
        identity = storage._cdata
        known = self._live.get(identity)
        if known is not None:
            return known[0]
        size = storage.nbytes()
        key = self._open(size, kind)
        self._live[identity] = (key, size)
        self._references[identity] = weakref.ref(storage, lambda _: self._close(identity))
        return key

    def _open(self, size: int, kind: "str | None") -> int:
        self._next_key += 1
        key = self._next_key
        self.kinds[key] = kind or _KIND_IN[self.phase]
        self.phases[key] = self.phase
        if size:
            self._events.append((key, size))
        return key

    def _close(self, identity: "Any") -> None:
        key, size = self._live.pop(identity)
        del self._references[identity]
        if size:
            self._events.append((key, None))

    def _start_library(self, name: str, size: int) -> None:
        """A thread's first use of a library makes a workspace that stays.

        The backward pass has a thread of its own for each GPU.
        """
        use = (name, self.phase == "backward")
        if use not in self._live:
            self._live[use] = (self._open(size, "workspace"), size)


def _comes_from_cpu(function: "Callable[..., Any]", arguments: "Any") -> bool:
    if function is not torch.ops.aten._to_copy.default:
        return False
    return arguments[0].device.type == "cpu" and arguments[0].dim() > 0
