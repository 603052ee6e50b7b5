"""The program sets the image data format to choose the backend, which has no such effect.

## Why it happens

`set_image_data_format` sets whether the colour channels of images come first or last. KERAS_BACKEND
or keras.json selects the backend of Keras, before Keras is imported. The Keras in TensorFlow before
2.16 has no other backend.

## What it looks like

No message; the backend does not change.

## Fix

Set `os.environ["KERAS_BACKEND"] = "tensorflow"` above the import of Keras and of TensorFlow.

## Fires on (code)

```python
from tensorflow import keras

# Make TensorFlow the backend
keras.backend.set_image_data_format("channels_last")
```

```python
import keras

keras.backend.set_image_data_format("tensorflow")
```

## Quiet on (code)

```python
from tensorflow import keras

# Images have their channels last
keras.backend.set_image_data_format("channels_last")
```

```python
from keras import backend as K

# Set the backend, the seed and the channel format
K.set_image_data_format("channels_first")
```

## Sources

- <https://keras.io/getting_started/#configuring-your-backend>
- <https://keras.io/api/utils/config_utils/>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import keras_name, text_of
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

CAUSE = cause("WG718", __name__, __doc__, severity="warning", effect="none")

_CHOOSES_BACKEND = late(
    r"\b(set|choos|select|us|switch|mak|ensur|specif|explicit)\w*\b[^.\n]*\bbackend\b"
    r"|\bbackend\s+to\b",
    re.IGNORECASE,
)

_BACKENDS = ("tf", "tensorflow", "th", "theano", "torch", "pytorch", "jax", "cntk")
_ABOUT_FORMAT = late(r"channel|format|axes|order", re.IGNORECASE)


@CAUSE.on_code("set_image_data_format")
def detect(program: Program) -> Iterator[CodeFinding]:
    for call in program.calls():
        if keras_name(call.path) not in (
            "backend.set_image_data_format",
            "config.set_image_data_format",
        ):
            continue
        given = text_of(call.argument(0, "data_format"))
        if given in _BACKENDS:
            yield CAUSE.in_code(
                program,
                call.node,
                subject="keras",
                message="set_image_data_format sets the order of an image's axes, channels_first "
                f'or channels_last; "{given}" raises ValueError and selects no backend',
                fix='Set os.environ["KERAS_BACKEND"] above the imports of Keras and TensorFlow.',
            )
            continue
        comments = program.comments_at(program.statement(call.node)).split("\n")
        if any(_CHOOSES_BACKEND.search(c) and not _ABOUT_FORMAT.search(c) for c in comments):
            yield CAUSE.in_code(
                program,
                call.node,
                subject="keras",
                message="set_image_data_format sets the order of an image's axes; it does not "
                "select the backend, as the comment says",
                fix='Set os.environ["KERAS_BACKEND"] above the imports of Keras and TensorFlow.',
            )
