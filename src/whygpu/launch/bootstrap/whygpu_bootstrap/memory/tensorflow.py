"""What TensorFlow 2 reports of the memory of its GPUs, without starting its runtime."""

from whygpu_bootstrap import import_hook, process_record
from whygpu_bootstrap.memory import curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

MIB = 1 << 20
_contexts: "list[Any]" = []


def start(tensorflow: "Any") -> None:
    """Watch as soon as the program starts the devices of TensorFlow."""
    import_hook.after_import("tensorflow.python.eager.context", _follow)


def _follow(module: "Any") -> None:
    context = getattr(module, "_context", None)
    if getattr(context, "_initialized", False):
        _watch(context)
        return
    initialize = getattr(module.Context, "_initialize_logical_devices", None)
    if initialize is None or not hasattr(module.Context, "get_memory_info"):
        return

    def _initialize_logical_devices(self: "Any") -> None:
        initialize(self)
        with process_record.noted("watching the memory of tensorflow"):
            _watch(self)

    _initialize_logical_devices.__doc__ = initialize.__doc__
    module.Context._initialize_logical_devices = _initialize_logical_devices


def _watch(context: "Any") -> None:
    if any(device.device_type == "GPU" for device in context._logical_devices):
        _contexts.append(context)
        curve.watch("tensorflow", in_use)


def _statistics() -> "Iterator[tuple[str, dict[str, Any]]]":
    for context in _contexts:
        # Before that, it would wait for the lock that the program holds while it starts.
        if context._initialized:
            for device in context._logical_devices:
                if device.device_type == "GPU":
                    index = device.name.rpartition(":")[2]
                    yield "gpu:" + index, context.get_memory_info("GPU:" + index)


def in_use() -> "dict[str, int]":
    return {device: stats["current"] for device, stats in _statistics()}


def at_end(tensorflow: "Any") -> "list[dict[str, Any]]":
    """The numbers of its allocators, for every GPU that it has started."""
    limits = {}
    with process_record.noted("the memory limits of tensorflow"):
        limits = _limits(tensorflow)
    return [
        {
            "of": "tensorflow",
            "device": device,
            "live": stats["current"],
            "peak": stats["peak"],
            "limit": limits.get(device),
        }
        for device, stats in _statistics()
    ]


def _limits(tensorflow: "Any") -> "dict[str, int | None]":
    """In bytes, by logical device; None for a device that may have the whole GPU.

    Logical devices are numbered in the order of the GPUs that they divide.
    """
    config = tensorflow.config
    get = getattr(config, "get_logical_device_configuration", None)
    get = get or config.experimental.get_virtual_device_configuration
    given = []
    for gpu in config.experimental.get_visible_devices("GPU"):
        parts = get(gpu)
        given += [part.memory_limit for part in parts] if parts else [None]
    return {
        "gpu:%d" % number: int(limit) * MIB if limit else None for number, limit in enumerate(given)
    }


def after_fork() -> None:
    """What the parent has started hangs in a child, so it is not asked there."""
    del _contexts[:]
