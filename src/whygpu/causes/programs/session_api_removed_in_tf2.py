"""Names of TensorFlow 1 are used, which TensorFlow 2 does not have.

## Why it happens

TensorFlow 2 moved sessions, placeholders and ConfigProto to tf.compat.v1 and dropped tf.contrib.
Books, answers and old repositories still write tf.Session and tf.ConfigProto, and what pip installs
today is TensorFlow 2. Where such code stands inside a try with a broad except, the AttributeError
is printed as if it were a fault of the GPU.

## What it looks like

`AttributeError: module 'tensorflow' has no attribute 'ConfigProto'`, before any GPU is touched.

## Fix

Write `import tensorflow.compat.v1 as tf` and call `tf.disable_v2_behavior()`, or use TensorFlow 2's
own interface: no session, `tf.config.set_visible_devices`,
`tf.config.experimental.set_memory_growth`. Code that is meant for TensorFlow 1 can say so, and is
then left alone: `tensorflow = "1.15"` under `[tool.whygpu.lint]` in pyproject.toml, or a comment
at its top that names TensorFlow 1.

## Fires on (code)

```python
import tensorflow as tf

config = tf.ConfigProto()
config.gpu_options.allow_growth = True
with tf.Session(config=config) as sess:
    print(sess.run(tf.constant(1.0)))
```

Beside names that only TensorFlow 2 has, no release runs it.

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
sess = tf.Session()
```

## Quiet on (code)

```python
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
with tf.Session(config=tf.ConfigProto()) as sess:
    print(sess.run(tf.constant(1.0)))
```

A file that looks at the version serves both.

```python
import tensorflow as tf

if tf.__version__.startswith("2"):
    tf = tf.compat.v1
sess = tf.Session()
```

A file that says which TensorFlow it is for.

```python
# Needs TensorFlow 1.15.
import tensorflow as tf

sess = tf.Session()
```

## Sources

- <https://www.tensorflow.org/guide/migrate>
- <https://github.com/tensorflow/tensorflow/blob/master/RELEASE.md>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_code import exists_only_in, guarded_by_attribute_error
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Import
from whygpu.model.program import Program
from whygpu.tables.tensorflow_names import REMOVED, REMOVED_TRAIN, SESSION_API, SINCE_2

CAUSE = cause("WG704", __name__, __doc__, severity="error", effect="broken")

_WORDS = (
    *sorted(SESSION_API - {"contrib", "Session"}),
    *sorted({name.rpartition(".")[2] for name in SINCE_2} - {"legacy"}),
    # Every licence speaks of contributors.
    ".contrib",
    "Session(",
    "set_session",
    "get_session",
)
_KERAS_SESSION = frozenset(
    f"tensorflow.keras.backend.{name}" for name in ("get_session", "set_session")
)


@CAUSE.on_code(*_WORDS)
def detect(program: Program) -> Iterator[CodeFinding]:
    if program.tensorflow in ("1", "either"):
        return
    without_contrib = _does_without_contrib(program)
    removed = [
        event
        for event in program.named()
        if _removed(event.path) and not (without_contrib and ".contrib." in event.path)
    ]
    newer = exists_only_in(program, "2")
    # Beside names of TensorFlow 2, each name of TensorFlow 1 is one too many.
    chosen = [event for event in removed if newer or _is_session_api(event.path)]
    if not chosen or any(guarded_by_attribute_error(event) for event in removed):
        return
    first = min(chosen, key=lambda event: program.place(event.node).start)
    name = _short(first.path)
    others = len({program.place(event.node).start for event in removed}) - 1
    more = f" ({others} more such {'name' if others == 1 else 'names'} in this file)"
    yield CAUSE.in_code(
        program,
        first.node,
        subject="tensorflow",
        message=f"tf.{name} is TensorFlow 1: under TensorFlow 2 this raises AttributeError"
        + (more if others else "")
        + (f"; yet tf.{newer} is TensorFlow 2, so that no release runs this file" if newer else ""),
        fix="tf.contrib has no successor in TensorFlow; port what uses it"
        if name.startswith("contrib")
        else "import tensorflow.compat.v1 as tf and call tf.disable_v2_behavior(); "
        "if the file is for TensorFlow 1, say so in a comment or in pyproject.toml",
        severity="error" if newer else "warning",
    )


def _does_without_contrib(program: Program) -> bool:
    """The author knows that tf.contrib may not be there, and imports it if it is."""
    return any(
        type(event) is Import
        and event.path.startswith("tensorflow.contrib")
        and guarded_by_attribute_error(event)
        for event in program.events
    )


def _short(path: str) -> str:
    """Session, train.AdamOptimizer, contrib.layers, keras.backend.set_session."""
    words = path.removeprefix("tensorflow.").split(".")
    if words[0] == "keras":
        return ".".join(words)
    return ".".join(words[: 2 if words[0] in ("contrib", "train") else 1])


def _removed(path: str) -> bool:
    if path in _KERAS_SESSION:
        return True
    top, _, rest = path.partition(".")
    if top != "tensorflow":
        return False
    first, _, second = rest.partition(".")
    return first in REMOVED or (first == "train" and second.partition(".")[0] in REMOVED_TRAIN)


def _is_session_api(path: str) -> bool:
    if path in _KERAS_SESSION:
        return True
    first = path.split(".")[1]
    return first in SESSION_API or (first == "train" and "Session" in path)
