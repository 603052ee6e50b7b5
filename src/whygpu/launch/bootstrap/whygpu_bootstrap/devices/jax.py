"""Which devices JAX used, asked without starting a backend."""

import sys

_inherited = []


def _backends():
    bridge = sys.modules.get("jax._src.xla_bridge") or sys.modules.get("jax.lib.xla_bridge")
    return getattr(bridge, "_backends", None)


def started():
    """Whether JAX has started a backend, in this process."""
    return bool(_backends()) and not _inherited


def used(jax):
    """The GPUs on which memory was taken; else the CPU."""
    if not started():
        return {}
    found = []
    peak = 0
    for device in jax.local_devices():
        stats = None if device.platform == "cpu" else device.memory_stats()
        taken = (stats or {}).get("peak_bytes_in_use")
        if device.platform != "cpu" and taken != 0:
            name = "gpu:%d" % device.local_hardware_id
            found.append({"device": name, "name": str(device.device_kind)})
            peak += taken or 0
    return {"used": found or [{"device": "cpu", "name": ""}], "peak_memory_bytes": peak or None}


def after_fork(jax):
    """What the parent had started hangs in a child, and is not asked there."""
    if _backends():
        _inherited.append(True)
