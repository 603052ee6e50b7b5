"""Which API of TensorFlow the program of a log uses, sessions or tf.config, and remedies in it."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import SetVariable

_SESSIONS = late(
    r"python[/\\]client[/\\]session\.py|\b(?:sess|session)\.run\("
    r"|\b(?:ConfigProto|GPUOptions|InteractiveSession)\(|\btf\.(?:compat\.v1\.)?Session\("
    r"|[Ff]ailed to create session\b|\b_api[./\\]v1\b"
)
_EAGER = late(
    r"python[/\\]eager[/\\]|enable_soft_placement=|\[Op:\w|\btf\.config\.|\b_api[./\\]v2\b"
    r"|/physical_device:"
)


@lru_cache(maxsize=1)
def api_of(log: Log) -> Literal["sessions", "eager"] | None:
    """None if the log does not show it.

    TensorFlow 2 also has sessions, and a program that uses them needs the remedies for sessions.
    """
    if log.says(_EAGER):
        return "eager"
    return "sessions" if log.says(_SESSIONS) else None


def soft_placement(log: Log, purpose: str) -> Remedy:
    calls = {
        "sessions": "give the Session a ConfigProto(allow_soft_placement=True).",
        "eager": "call tf.config.set_soft_device_placement(True).",
        None: "call tf.config.set_soft_device_placement(True), or in TensorFlow 1 give the Session "
        "a ConfigProto(allow_soft_placement=True).",
    }
    return Remedy(f"{purpose}: {calls[api_of(log)]}")


def grow_as_needed(log: Log, purpose: str) -> Remedy:
    if api_of(log) == "sessions":
        # TensorFlow reads the variable only since 1.12.
        return Remedy(
            f"{purpose}: give the Session a ConfigProto(gpu_options=GPUOptions(allow_growth=True))."
        )
    return Remedy(f"{purpose}.", SetVariable("TF_FORCE_GPU_ALLOW_GROWTH", "true"))
