"""The calls for PyTorch. None of them starts CUDA."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whygpu_bootstrap.policy.attempts import Attempt


def disable_cudnn(torch: "Any") -> None:
    torch.backends.cudnn.enabled = False


def disable_tf32(torch: "Any") -> None:
    import warnings

    # Newer releases have other names for these, and warn about the old ones.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False


def use_deterministic_algorithms(torch: "Any") -> None:
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True)


def set_seed(torch: "Any", seed: int) -> None:
    # Before CUDA has started, PyTorch remembers the seed for it.
    torch.manual_seed(seed)


def set_memory_limit(
    torch: "Any", attempt: "Attempt", bytes: "int | None", fraction: "float | None"
) -> None:
    """Limit each GPU, by bytes or by a fraction of its memory, when the program starts CUDA."""

    def limit() -> None:
        with attempt:
            for index in range(torch.cuda.device_count()):
                part = fraction
                if bytes is not None:
                    total = torch.cuda.get_device_properties(index).total_memory
                    part = min(bytes / total, 1.0)
                torch.cuda.set_per_process_memory_fraction(part, index)

    # Called when the program starts CUDA, or now if it has.
    torch.cuda._lazy_call(limit)
