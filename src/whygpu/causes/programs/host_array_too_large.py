"""The program creates an array in main memory that is far larger than the memory of any GPU.

## Why it happens

To fill the GPU, or to test what happens when it is full, the program first creates an array with
NumPy. NumPy creates it in main memory, as float64, before the framework or the GPU is involved.

## What it looks like

`MemoryError: Unable to allocate 931. GiB for an array with shape (5000, 5000, 5000) and data type
float64`, or the process is killed. It is not a ResourceExhaustedError, and shows nothing about the
GPU.

## Fix

Create it on the device: `tf.zeros((5000, 5000, 5000))` fails with tf.errors.ResourceExhaustedError
if the memory of the device is too small. Also check the shape, which is rarely intended.

## Fires on (code)

```python
import numpy as np
import tensorflow as tf

a = tf.Variable(np.random.rand(5000, 5000, 5000), dtype=tf.float32)
```

## Quiet on (code)

```python
import numpy as np
import tensorflow as tf

a = tf.Variable(np.random.rand(5000, 5000), dtype=tf.float32)
```

## Sources

- <https://numpy.org/doc/stable/reference/random/generated/numpy.random.rand.html>
- <https://www.tensorflow.org/api_docs/python/tf/errors/ResourceExhaustedError>
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.text_lines import has_line
from whygpu.model.units import size_text
from whygpu.model.values import Constant, Several, Value

CAUSE = cause("WG728", __name__, __doc__, severity="error", effect="broken")

_BY_ARGUMENTS = ("numpy.random.rand", "numpy.random.randn")
_BY_SHAPE = ("numpy.ones", "numpy.full", "numpy.random.random", "numpy.random.random_sample")
_ITEM_BYTES = 8
_TOO_LARGE = 256 << 30
"""More than the memory of any GPU, and of nearly any computer."""


_WORDS = (
    *("np.ones(", "numpy.ones(", "np.full(", "numpy.full("),
    *("random.rand(", "random.randn(", "random.random(", "random_sample("),
)
_NOT_SMALL = late(
    r"(?:ones|full|rand|randn|random|random_sample)\("
    r"(?!\s{0,9}\(?\s{0,9}(?:\d{1,3}(?!\d)\s{0,9},?\s{0,9}){0,3}\))"
)
"""Not up to three numbers of three digits, and nothing after them."""


_FRAMEWORKS = ("tensorflow", "torch", "jax", "keras")
_has_array = has_line(_WORDS, _NOT_SMALL)


def _possible(text: str) -> bool:
    return "numpy" in text and _has_array(text)


@CAUSE.on_code(*_WORDS, needs=_FRAMEWORKS, possible=_possible)
def detect(program: Program) -> Iterator[CodeFinding]:
    if program.imports.isdisjoint(_FRAMEWORKS):
        return
    for call in program.calls(*_BY_ARGUMENTS, *_BY_SHAPE):
        if "dtype" in call.keywords:
            continue
        size = _items(call) * _ITEM_BYTES
        if size > _TOO_LARGE:
            yield CAUSE.in_code(
                program,
                call.node,
                subject="numpy",
                message=f"this creates an array of {size_text(size)} in main memory, before "
                "any GPU is used: NumPy raises MemoryError here",
                fix="Create it on the device instead, and check the shape.",
            )


def _items(call: Call) -> int:
    values: tuple[Value, ...] = call.arguments
    if call.path in _BY_SHAPE:
        shape = call.argument(0, "shape") or call.argument(None, "size")
        values = shape.items if isinstance(shape, Several) else (shape,)
    sizes = [v.value for v in values if isinstance(v, Constant) and type(v.value) is int]
    return math.prod(sizes) if sizes and len(sizes) == len(values) else 0
