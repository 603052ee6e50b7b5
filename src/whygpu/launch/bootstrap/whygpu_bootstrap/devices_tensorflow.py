"""Which devices TensorFlow used, asked without starting its runtime."""

import sys

from whygpu_bootstrap import hook

_sessions = set()
_inherited = []


def watch_sessions():
    """Remember the devices of every TensorFlow 1 session: they are not those of eager mode."""
    hook.after_import("tensorflow.python.client.session", _watch)


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
    names = set(_sessions)
    if not started():
        return {}
    if _eager_started():
        names.update(device.name for device in tensorflow.config.list_logical_devices())
    gpus = sorted({name.rpartition(":")[2] for name in names if ":GPU:" in name})
    return {
        "used": [{"device": "gpu:" + index, "name": ""} for index in gpus]
        or [{"device": "cpu", "name": ""}],
        "peak_memory_bytes": _peak(tensorflow, gpus) if gpus and _eager_started() else None,
    }


def _peak(tensorflow, gpus):
    get_memory_info = getattr(tensorflow.config.experimental, "get_memory_info", None)
    if get_memory_info is None:
        return None
    return sum(get_memory_info("GPU:" + index)["peak"] for index in gpus) or None
