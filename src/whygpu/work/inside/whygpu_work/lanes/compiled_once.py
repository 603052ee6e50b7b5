"""What JAX compiles while a Keras model is built, kept for the same lane's next process.

The code that draws a weight is compiled for every shape of weight: half of the time that a lane
takes. Only that is kept. The work itself is compiled anew in each run: a GPU may get other kernels
each time, which belongs to the question whether a lane agrees with itself.
"""

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
_FOLDER = "jax_compilation_cache_dir"


@contextlib.contextmanager
def kept_in(folder: "str | None") -> "Iterator[None]":
    """While this holds; where `folder` is None nothing is kept or taken."""
    hook = sys.modules.get("whygpu_bootstrap.import_hook")
    if folder is None or hook is None:
        yield
        return
    keeping, before = [True], {}

    def begin(keras: "Any") -> None:
        # A script imports Keras when it runs: that is its work.
        if keeping:
            before.update(_begin(keras, folder))

    hook.after_import("keras", begin)
    try:
        yield
    finally:
        keeping.clear()
        if before:
            _set(sys.modules["jax"], before)


def _begin(keras: "Any", folder: str) -> "dict[str, Any]":
    """The settings that were there before; none where all was left as it is."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(keras, "config") or keras.config.backend() != "jax":
        return {}
    names = list(_SETTINGS) + [_FOLDER]
    before = {name: getattr(jax.config, name, _UNKNOWN) for name in names}
    if before[_FOLDER] or _UNKNOWN in before.values():
        # The user keeps compiled code himself, or this release has other names for it.
        return {}
    _set(jax, dict(_SETTINGS, **{_FOLDER: folder}))
    return before


_UNKNOWN = object()


def _set(jax: "Any", settings: "dict[str, Any]") -> None:
    from jax.experimental.compilation_cache import compilation_cache

    for name, value in settings.items():
        jax.config.update(name, value)
    # It looks at them once, when something is compiled for the first time.
    compilation_cache.reset_cache()
