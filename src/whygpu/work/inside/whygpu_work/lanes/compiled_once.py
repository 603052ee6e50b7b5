"""Caches what JAX compiles while a Keras model is built, for the next process of the lane.

The code that initializes a weight is compiled for every shape: half of the time of a lane. Only
that is cached. The work itself is compiled in each run: a GPU may get other kernels each time, and
whether a lane agrees with itself is part of the question.
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
    """Use the cache in this context; nothing is cached if `folder` is None."""
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
    """The previous settings; empty if nothing was changed."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(keras, "config") or keras.config.backend() != "jax":
        return {}
    names = list(_SETTINGS) + [_FOLDER]
    before = {name: getattr(jax.config, name, _UNKNOWN) for name in names}
    if before[_FOLDER] or _UNKNOWN in before.values():
        # The user has a cache already, or this release names the settings differently.
        return {}
    _set(jax, dict(_SETTINGS, **{_FOLDER: folder}))
    return before


_UNKNOWN = object()


def _set(jax: "Any", settings: "dict[str, Any]") -> None:
    from jax.experimental.compilation_cache import compilation_cache

    for name, value in settings.items():
        jax.config.update(name, value)
    # JAX reads them once, when it compiles for the first time.
    compilation_cache.reset_cache()
