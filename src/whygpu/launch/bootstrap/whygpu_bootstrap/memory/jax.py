"""What JAX reports of the memory of its GPUs, without starting a backend."""

from whygpu_bootstrap import import_hook, process_record
from whygpu_bootstrap.memory import curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

_clients: "list[Any]" = []


def start(jax: "Any") -> None:
    """Watch as soon as the program starts a backend other than the CPU."""
    import_hook.after_import("jax._src.xla_bridge", _follow)


def _follow(bridge: "Any") -> None:
    for client in getattr(bridge, "_backends", {}).values():
        _watch(client)
    create = getattr(bridge, "_init_backend", None)
    if create is None:
        return

    def _init_backend(*arguments: "Any", **options: "Any") -> "Any":
        client = create(*arguments, **options)
        with process_record.noted("watching the memory of jax"):
            _watch(client)
        return client

    _init_backend.__doc__ = create.__doc__
    bridge._init_backend = _init_backend


def _watch(client: "Any") -> None:
    if getattr(client, "platform", "cpu") not in ("cpu", "interpreter"):
        _clients.append(client)
        curve.watch("jax", in_use)


def _statistics() -> "Iterator[tuple[str, dict[str, Any]]]":
    for client in _clients:
        for device in client.local_devices():
            stats = device.memory_stats()
            if stats and "bytes_in_use" in stats:
                yield "gpu:%d" % device.local_hardware_id, stats


def in_use() -> "dict[str, int]":
    return {device: stats["bytes_in_use"] for device, stats in _statistics()}


def at_end(jax: "Any") -> "list[dict[str, Any]]":
    """The numbers of its allocators, for every GPU that it has started."""
    live_arrays = getattr(jax, "live_arrays", None)
    return [
        {
            "of": "jax",
            "device": device,
            "live": stats["bytes_in_use"],
            "peak": stats.get("peak_bytes_in_use"),
            "reserved": stats.get("pool_bytes"),
            "limit": stats.get("bytes_limit"),
            # Some releases leave it at 0.
            "largest_free": stats.get("largest_free_block_bytes") or None,
            "pieces": len(live_arrays()) if live_arrays is not None else None,
            "pieces_ever": stats.get("num_allocs"),
        }
        for device, stats in _statistics()
    ]


def after_fork() -> None:
    """What the parent has started hangs in a child, so it is not asked there."""
    del _clients[:]
