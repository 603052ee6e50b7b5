"""Why does this program use (or not use) the GPU?"""

from whygpu import version as _version

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a quarter of its time
if TYPE_CHECKING:
    from typing import Any

    from whygpu.api import check as check
    from whygpu.api import diagnose as diagnose
    from whygpu.api import estimate_memory as estimate_memory
    from whygpu.api import explain as explain
    from whygpu.api import install as install
    from whygpu.api import lint as lint
    from whygpu.api import load_snapshot as load_snapshot
    from whygpu.api import plan as plan
    from whygpu.api import snapshot as snapshot
    from whygpu.comparer.compare import compare as compare
    from whygpu.errors import PolicyError as PolicyError
    from whygpu.guard.guard import OomGuard as OomGuard
    from whygpu.guard.guard import oom_guard as oom_guard
    from whygpu.host.replay import ReplayHost as ReplayHost
    from whygpu.launch.inprocess import apply as apply
    from whygpu.launch.inprocess import device as device
    from whygpu.launch.inprocess import require_gpu as require_gpu
    from whygpu.memory.from_program import find_batch_size as find_batch_size

__version__ = _version.VERSION

_LAZY = {
    "apply": "whygpu.launch.inprocess",
    "check": "whygpu.api",
    "compare": "whygpu.comparer.compare",
    "device": "whygpu.launch.inprocess",
    "diagnose": "whygpu.api",
    "estimate_memory": "whygpu.api",
    "explain": "whygpu.api",
    "find_batch_size": "whygpu.memory.from_program",
    "install": "whygpu.api",
    "lint": "whygpu.api",
    "load_snapshot": "whygpu.api",
    "oom_guard": "whygpu.guard.guard",
    "OomGuard": "whygpu.guard.guard",
    "plan": "whygpu.api",
    "PolicyError": "whygpu.errors",
    "require_gpu": "whygpu.launch.inprocess",
    "snapshot": "whygpu.api",
    "ReplayHost": "whygpu.host.replay",
}
__all__ = [
    "OomGuard",
    "PolicyError",
    "ReplayHost",
    "__version__",
    "apply",
    "check",
    "compare",
    "device",
    "diagnose",
    "estimate_memory",
    "explain",
    "find_batch_size",
    "install",
    "lint",
    "load_snapshot",
    "oom_guard",
    "plan",
    "record",
    "require_gpu",
    "snapshot",
]


def __getattr__(name: str) -> "Any":
    """Import a public name when it is first used, so that `import whygpu` costs nothing."""
    if name not in _LAZY:
        raise AttributeError(f"module 'whygpu' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def record(name: str, array: "Any") -> None:
    """Note an array, or a structure of them, for `whygpu compare`; otherwise this does nothing."""
