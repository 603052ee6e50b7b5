"""A session of TensorFlow 1 has operations fixed to a GPU, and may not place them elsewhere.

## Why it happens

`tf.device("/gpu:0")` is an order in a session: every operation inside must run on that GPU. Soft
placement, which lets TensorFlow choose another device, is off in sessions unless the ConfigProto
turns it on. TensorFlow 2 turns it on by default, but only outside of sessions.

## What it looks like

`InvalidArgumentError: Cannot assign a device for operation ...`, on a machine where TensorFlow
finds no GPU, and for operations that have no code for GPUs.

## Fix

`tf.Session(config=tf.ConfigProto(allow_soft_placement=True))`. TensorFlow uses the first GPU
without `tf.device`, too. Leave it as it is if the program must not run without a GPU.

## Fires on (code)

```python
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
with tf.device("/gpu:0"):
    total = tf.constant([1, 2]) + 1
with tf.Session() as session:
    session.run(total)
```

## Quiet on (code)

```python
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
with tf.device("/gpu:0"):
    total = tf.constant([1, 2]) + 1
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    session.run(total)
```

What the configuration says is not known.

```python
import tensorflow.compat.v1 as tf
from options import config

tf.disable_v2_behavior()
with tf.device("/gpu:0"):
    total = tf.constant([1, 2]) + 1
with tf.Session(config=config) as session:
    session.run(total)
```

TensorFlow 2 places it softly.

```python
import tensorflow as tf

with tf.device("/gpu:0"):
    total = tf.constant([1, 2]) + 1
```

## Sources

- <https://www.tensorflow.org/guide/gpu#manual_device_placement>
- <https://www.tensorflow.org/api_docs/python/tf/compat/v1/ConfigProto>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import text_of, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

CAUSE = cause("WG738", __name__, __doc__, severity="info", effect="none")

_SESSIONS = frozenset({"Session", "InteractiveSession"})
_GPU_NAME = late(r"/?(?:device:)?gpu:\d{1,2}", re.IGNORECASE)
_DECIDED = late(r"soft_(?:device_)?placement|is_gpu_available|is_built_with_cuda")
"""The program has thought of machines without a GPU."""


@CAUSE.on_code("device(", needs=("Session",))
def detect(program: Program) -> Iterator[CodeFinding]:
    if _DECIDED.search(program.text):
        return
    sessions = [call for call in program.calls() if tf_name(call.path) in _SESSIONS]
    if not sessions or any(map(_is_configured, sessions)):
        return
    fixed = next((call for call in program.calls() if _fixes_gpu(call)), None)
    if fixed is not None:
        yield CAUSE.in_code(
            program,
            fixed.node,
            subject="tensorflow",
            message=f"the session in {program.line_name(sessions[0].node)} must run this on "
            f"{text_of(fixed.argument(0))}: without a GPU, and for operations that GPUs cannot "
            "run, it raises InvalidArgumentError: Cannot assign a device",
            fix="Create it with config=tf.ConfigProto(allow_soft_placement=True), unless the "
            "program must not run without a GPU.",
        )


def _is_configured(session: Call) -> bool:
    given = session.node
    return len(given.args) > 2 or any(keyword.arg in (None, "config") for keyword in given.keywords)


def _fixes_gpu(call: Call) -> bool:
    name = text_of(call.argument(0)) if tf_name(call.path) == "device" else None
    return name is not None and _GPU_NAME.fullmatch(name) is not None
