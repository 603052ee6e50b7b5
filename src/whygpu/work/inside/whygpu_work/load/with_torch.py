"""PyTorch as the engine of a load."""

from functools import partial

from .engine import Engine, Load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class TorchEngine(Engine):
    def __init__(self, ordinal: int) -> None:
        import torch

        self._torch = torch
        self._device = torch.device("cuda", ordinal)
        self.version = str(torch.__version__)
        torch.cuda.set_device(self._device)
        matmul = torch.backends.cuda.matmul
        # Sums in float32 only, so that products of whole numbers are exact in every format.
        for name in ("fp16", "bf16"):
            option = "allow_%s_reduced_precision_reduction" % name
            if hasattr(matmul, option):
                setattr(matmul, option, False)

    def wait(self, value: "Any") -> None:
        self._torch.cuda.synchronize(self._device)

    def put(self, numbers: "Any") -> "Any":
        return self._torch.from_numpy(numbers).to(self._device)

    def fetch(self, value: "Any") -> "Any":
        return value.float().cpu().numpy()

    def cast(self, value: "Any", form: str) -> "Any":
        return value.to(getattr(self._torch, "float32" if form == "tf32" else form))

    def differing(self, one: "Any", other: "Any") -> int:
        return int((one != other).sum().item())

    def product(self, left: "Any", right: "Any", form: str) -> "Callable[[], Any]":
        torch = self._torch
        if hasattr(torch.backends.cuda.matmul, "allow_tf32"):
            torch.backends.cuda.matmul.allow_tf32 = form == "tf32"
        return lambda: torch.matmul(left, right)

    def copies(self, pattern: "Any") -> "Load":
        copy = self._torch.zeros_like(pattern)
        return Load(
            2.0 * pattern.numel() * pattern.element_size(),
            lambda: copy.copy_(pattern),
            lambda: self.differing(copy, pattern),
            pattern.numel(),
        )

    def transfers(self, numbers: "Any") -> "tuple[Load, Load]":
        torch = self._torch
        source = torch.from_numpy(numbers).pin_memory()
        back = torch.zeros_like(source).pin_memory()
        there = torch.zeros_like(source, device=self._device)
        amount = float(source.numel() * source.element_size())
        to_gpu = Load(
            amount,
            lambda: there.copy_(source, non_blocking=True),
            lambda: int((there.cpu() != source).sum().item()),
            source.numel(),
        )
        from_gpu = Load(
            amount,
            lambda: back.copy_(there, non_blocking=True),
            lambda: int((back != source).sum().item()),
            source.numel(),
        )
        return to_gpu, from_gpu


def engines() -> "dict[str, Callable[[], Engine]]":
    """Every GPU that the framework sees, by its PCI address."""
    import torch

    from .cuda_devices import addresses

    return {
        address: partial(TorchEngine, ordinal)
        for ordinal, address in enumerate(addresses()[: torch.cuda.device_count()])
    }
