"""Which devices PyTorch used, asked without starting CUDA."""

from whygpu_bootstrap import process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def watch_start(torch: "Any") -> None:
    """No variable of the policy is read when CUDA starts; until then, PyTorch uses the CPU."""
    process_record.used_so_far("torch", used(torch))


def gpu_started(torch: "Any") -> bool:
    return bool(torch.cuda.is_initialized())


def used(torch: "Any") -> "dict[str, Any]":
    """GPUs on which memory was taken; else the CPU: work on it cannot be told from none."""
    # False in a forked child whose parent had started CUDA: such a child cannot use it.
    if not torch.cuda.is_initialized():
        return {"used": [{"device": "cpu", "name": ""}], "peak_memory_bytes": None}
    gpus = []
    peak = 0
    for index in range(torch.cuda.device_count()):
        reserved = torch.cuda.max_memory_reserved(index)
        if reserved:
            gpus.append({"device": "gpu:%d" % index, "name": torch.cuda.get_device_name(index)})
            peak += reserved
    return {"used": gpus or [{"device": "cpu", "name": ""}], "peak_memory_bytes": peak or None}


def after_fork(torch: "Any") -> None:
    """Nothing to do: PyTorch notices forks itself."""
