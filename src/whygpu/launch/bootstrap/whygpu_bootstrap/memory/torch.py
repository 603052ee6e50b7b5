"""What PyTorch reports of the memory of its GPUs, without starting CUDA."""

from whygpu_bootstrap.memory import curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start(torch: "Any") -> None:
    """Watch as soon as the program starts CUDA, or now if it has."""
    if hasattr(torch._C, "_cuda_memoryStats"):
        torch.cuda._lazy_call(lambda: curve.watch("torch", lambda: in_use(torch)))


def in_use(torch: "Any") -> "dict[str, int]":
    found = {}
    for index in range(torch.cuda.device_count()):
        stats = _stats(torch, index)
        if stats["allocated_bytes"]["all"]["peak"]:
            found["gpu:%d" % index] = stats["allocated_bytes"]["all"]["current"]
    return found


def _stats(torch: "Any", index: int) -> "dict[str, Any]":
    # torch.cuda.memory_stats() asks the same, and sorts and renames a hundred numbers.
    return torch._C._cuda_memoryStats(index)


def at_end(torch: "Any") -> "list[dict[str, Any]]":
    """The numbers of its allocators, for every GPU on which it took memory."""
    if not torch.cuda.is_initialized() or not hasattr(torch._C, "_cuda_memoryStats"):
        return []
    found = []
    for index in range(torch.cuda.device_count()):
        stats = _stats(torch, index)
        live, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
        if reserved["peak"]:
            free, total = torch.cuda.mem_get_info(index)
            found.append(
                {
                    "of": "torch",
                    "device": "gpu:%d" % index,
                    "live": live["current"],
                    "peak": live["peak"],
                    "reserved": reserved["current"],
                    "limit": _allowed(torch, index, total),
                    "pieces": stats["allocation"]["all"]["current"],
                    "pieces_ever": stats["allocation"]["all"]["allocated"],
                    "free": free,
                    "total": total,
                }
            )
    return found


def _allowed(torch: "Any", index: int, total: int) -> "int | None":
    """The limit of set_per_process_memory_fraction, which PyTorch reports since 2.5."""
    fraction = getattr(torch.cuda, "get_per_process_memory_fraction", lambda index: 1.0)(index)
    return int(total * fraction) if fraction < 1.0 else None


def after_fork() -> None:
    """Nothing to do: what waits for the start of CUDA waits in a child as well."""
