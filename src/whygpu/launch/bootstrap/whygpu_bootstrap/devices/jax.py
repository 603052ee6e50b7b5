"""Which devices JAX used, asked without starting a backend."""

import os
import sys

from whygpu_bootstrap import import_hook, process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

variables_at_start: "dict[str, str]" = {}
"""The environment variables when JAX started a backend other than the CPU; empty before that."""
_inherited: "list[bool]" = []


def watch_start(jax: "Any") -> None:
    import_hook.after_import("jax._src.xla_bridge", _watch)


def _watch(bridge: "Any") -> None:
    create = getattr(bridge, "_init_backend", None)
    if create is None:
        return

    def _init_backend(*arguments: "Any", **options: "Any") -> "Any":
        before = dict(os.environ)
        client = create(*arguments, **options)
        if getattr(client, "platform", "cpu") not in ("cpu", "interpreter"):
            variables_at_start.update(before)
            process_record.used_so_far("jax", {"used": []})
        elif not variables_at_start:
            # JAX itself cannot be asked before its backends are complete.
            process_record.used_so_far("jax", {"used": [{"device": "cpu", "name": ""}]})
        return client

    _init_backend.__doc__ = create.__doc__
    bridge._init_backend = _init_backend


def _backends() -> "Any":
    bridge = sys.modules.get("jax._src.xla_bridge") or sys.modules.get("jax.lib.xla_bridge")
    return getattr(bridge, "_backends", None)


def gpu_started(jax: "Any") -> bool:
    return bool(variables_at_start)


def started() -> bool:
    """Whether JAX has started a backend in this process."""
    return bool(_backends()) and not _inherited


def used(jax: "Any") -> "dict[str, Any]":
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


def after_fork(jax: "Any") -> None:
    """A backend that the parent has started hangs in a child, so it is not asked there."""
    if _backends():
        _inherited.append(True)
    variables_at_start.clear()
