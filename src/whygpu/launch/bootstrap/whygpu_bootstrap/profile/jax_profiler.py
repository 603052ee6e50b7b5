"""JAX's profiler: what the GPU did, as an XSpace message."""

import sys

from whygpu_bootstrap.profile import recorder
from whygpu_bootstrap.profile.device_window import giving_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "whygpu mark"


class Profiler:
    name = "JAX's profiler"
    kind = "xplane"
    saves_quickly = True

    def __init__(self, jax: "Any") -> None:
        self._jax = jax
        self._session: "Any" = None
        self._found = b""
        inside = sys.modules.get("jax._src.profiler")
        if not recorder.is_new("jax profiler"):
            return
        for module in (inside, sys.modules.get("jax.profiler")):
            original = getattr(module, "start_trace", None)
            if original is not None:
                module.start_trace = giving_way(original, recorder.window, self.name)  # type: ignore[union-attr]

    def ready(self) -> bool:
        bridge = sys.modules.get("jax._src.xla_bridge")
        return any(name != "cpu" for name in getattr(bridge, "_backends", ()))

    def safe(self) -> bool:
        return True

    def wait(self) -> None:
        """The results of what was launched last are among the arrays that exist."""
        for array in self._jax.live_arrays():
            array.block_until_ready()

    def start(self) -> None:
        native = _native()
        options = native.ProfileOptions()
        options.python_tracer_level = 0
        options.host_tracer_level = 1
        options.enable_hlo_proto = False
        self._session = native.ProfilerSession(options)

    def mark(self) -> None:
        with self._jax.profiler.TraceAnnotation(MARK):
            pass

    def stop(self) -> None:
        self._found = self._session.stop()
        self._session = None

    def files(self) -> "list[str]":
        path = recorder.file_beside_record("xplane.pb")
        with open(path, "wb") as file:
            file.write(self._found)
        return [path]


def _native() -> "Any":
    """The profiler in jaxlib; older releases have it elsewhere."""
    module: "Any" = sys.modules["jax._src.profiler"]
    found = getattr(module, "_profiler", None)
    return found if found is not None else module.xla_client.profiler
