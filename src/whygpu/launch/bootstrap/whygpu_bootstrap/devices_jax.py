"""Which devices JAX used, asked without starting a backend."""

import sys


def started(jax):
    bridge = sys.modules.get("jax._src.xla_bridge") or sys.modules.get("jax.lib.xla_bridge")
    return bool(getattr(bridge, "_backends", None))


def used(jax):
    found = []
    peak = 0
    for device in jax.local_devices():
        kind = "cpu" if device.platform == "cpu" else "gpu:%d" % device.local_hardware_id
        found.append({"device": kind, "name": str(device.device_kind)})
        stats = device.memory_stats() if device.platform != "cpu" else None
        peak += (stats or {}).get("peak_bytes_in_use", 0)
    return {"used": found, "peak_memory_bytes": peak or None}
