"""Which devices TensorFlow used, asked without starting its runtime."""

import sys

from whygpu_bootstrap import import_hook

_sessions = set()
_inherited = []


def watch_sessions():
    """Remember the devices of every TensorFlow 1 session: they are not those of eager mode."""
    import_hook.after_import("tensorflow.python.client.session", _watch)


def _watch(module):
    create = module.BaseSession.__init__

    def __init__(self, *arguments, **options):  # noqa: N807
        create(self, *arguments, **options)
        try:
            _sessions.update(device.name for device in self.list_devices())
        except Exception:
            # A remote session that is not connected yet; it will say so itself when it runs.
            pass

    __init__.__doc__ = create.__doc__
    module.BaseSession.__init__ = __init__


def started():
    """Whether TensorFlow has started its devices, in this process."""
    return bool(_sessions) or _eager_started()


def _eager_started():
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    return bool(getattr(context, "_initialized", False)) and not _inherited


def after_fork(tensorflow):
    """What the parent had started hangs in a child, and is not asked there."""
    if _eager_started():
        _inherited.append(True)
    _sessions.clear()


def used(tensorflow):
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


def _eager_peaks(tensorflow):
    """By GPU the most memory it had in use; None where TensorFlow does not tell."""
    names = [device.name for device in tensorflow.config.list_logical_devices("GPU")]
    get_memory_info = getattr(tensorflow.config.experimental, "get_memory_info", None)
    return {
        _index(name): get_memory_info("GPU:" + _index(name))["peak"] if get_memory_info else None
        for name in names
    }


def _index(name):
    return name.rpartition(":")[2]
