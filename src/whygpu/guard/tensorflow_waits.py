"""Keeps TensorFlow's allocator from waiting before it refuses memory."""

from __future__ import annotations

import sys
from typing import Any


def refuse_at_once() -> bool:
    """Without this, the allocator waits up to 10 s for each request that it cannot meet, in case
    another operation frees memory. False if it is too late, or this TensorFlow has no such option.

    TensorFlow reads the option when it starts its GPUs, and it has no public function for it.
    """
    eager: Any = sys.modules.get("tensorflow.python.eager.context")
    if eager is None:
        return False
    context = eager.context()
    if context._initialized:
        return False
    config = eager.config_pb2.ConfigProto()
    if context._config is not None:
        config.CopyFrom(context._config)
    experimental = config.gpu_options.experimental
    name = "disallow_retry_on_allocation_failure"
    if not hasattr(experimental, name):
        return False
    setattr(experimental, name, True)
    context._config = config
    return True
