"""Which devices TensorFlow used, asked without starting its runtime."""

import os
import sys

from whygpu_bootstrap import import_hook, process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

variables_at_start: "dict[str, str]" = {}
"""The environment variables when TensorFlow started its devices; empty before that."""
session_fractions: "set[float]" = set()
"""per_process_gpu_memory_fraction of each session that had a GPU; 0.0 means no limit."""
_sessions: "set[str]" = set()
_inherited: "list[bool]" = []


def watch_start(tensorflow: "Any") -> None:
    """Remember the variables at the start, and the devices of every TensorFlow 1 session.

    The devices of a session are not those of eager mode.
    """
    import_hook.after_import("tensorflow.python.eager.context", _watch_context)
    import_hook.after_import("tensorflow.python.client.session", _watch_sessions)


def _watch_context(module: "Any") -> None:
    initialize = module.Context.ensure_initialized

    def ensure_initialized(self: "Any") -> "Any":
        if self._initialized:
            return initialize(self)
        _remember_variables()
        result = initialize(self)
        process_record.ask_so_far()
        return result

    ensure_initialized.__doc__ = initialize.__doc__
    module.Context.ensure_initialized = ensure_initialized


def _remember_variables() -> None:
    if not variables_at_start:
        variables_at_start.update(os.environ)


def _watch_sessions(module: "Any") -> None:
    create = module.BaseSession.__init__

    def __init__(self: "Any", *arguments: "Any", **options: "Any") -> None:  # noqa: N807
        _remember_variables()
        create(self, *arguments, **options)
        try:
            names = [device.name for device in self.list_devices()]
            new = not _sessions.issuperset(names)
            _sessions.update(names)
            if any(":GPU:" in name for name in names):
                config = self._config
                fraction = 0.0
                if config is not None:
                    fraction = config.gpu_options.per_process_gpu_memory_fraction
                session_fractions.add(fraction)
            if new:
                process_record.ask_so_far()
        except Exception:
            # A remote session that is not connected yet; it will say so itself when it runs.
            pass

    __init__.__doc__ = create.__doc__
    module.BaseSession.__init__ = __init__


def started() -> "Any":
    """Whether TensorFlow has started its devices, in this process."""
    return bool(_sessions) or _eager_started()


def started_gpu() -> "Any":
    """Whether one of the devices that it has started is a GPU."""
    return any(":GPU:" in name for name in _sessions) or started_eager_gpu()


def gpu_started(tensorflow: "Any") -> bool:
    return bool(started_gpu())


def started_eager_gpu() -> bool:
    devices = getattr(_context(), "_logical_devices", None) if _eager_started() else None
    return any(device.device_type == "GPU" for device in devices or ())


def _context() -> "Any":
    return getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)


def _eager_started() -> bool:
    return bool(getattr(_context(), "_initialized", False)) and not _inherited


def after_fork(tensorflow: "Any") -> None:
    """A runtime that the parent has started hangs in a child, so it is not asked there."""
    if _eager_started():
        _inherited.append(True)
    _sessions.clear()
    session_fractions.clear()
    variables_at_start.clear()


def used(tensorflow: "Any") -> "dict[str, Any]":
    """The GPUs of every session, and those of eager mode on which memory was taken."""
    if not started():
        return {}
    peaks = _eager_peaks(tensorflow) if _eager_started() else {}
    gpus = {_index(name) for name in _sessions if ":GPU:" in name}
    gpus.update(index for index, peak in peaks.items() if peak != 0)
    devices = ["gpu:" + index for index in sorted(gpus)] or ["cpu"]
    return {
        "used": [{"device": device, "name": ""} for device in devices],
        "peak_memory_bytes": sum(peak or 0 for peak in peaks.values()) or None,
    }


def _eager_peaks(tensorflow: "Any") -> "dict[str, int | None]":
    """By GPU the most memory it had in use; None where TensorFlow does not report it."""
    names = [device.name for device in tensorflow.config.list_logical_devices("GPU")]
    get_memory_info = getattr(tensorflow.config.experimental, "get_memory_info", None)
    return {
        _index(name): get_memory_info("GPU:" + _index(name))["peak"] if get_memory_info else None
        for name in names
    }


def _index(name: str) -> str:
    return name.rpartition(":")[2]
