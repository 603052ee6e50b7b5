"""The program is written for TensorFlow 1 but runs with TensorFlow 2.

## Why it happens

TensorFlow 2 runs operations immediately and has no sessions. The names for graphs and sessions were
removed from the main namespace: `tf.Session`, `tf.ConfigProto`, `tf.placeholder`,
`tf.get_default_graph`, `tf.contrib`. Most of them still exist in `tf.compat.v1`, but contrib does
not.

## What it looks like

`AttributeError: module 'tensorflow' has no attribute 'Session'` (or ConfigProto, GPUOptions,
placeholder, ...), `No module named 'tensorflow.contrib'`, or, if the names were replaced but eager
execution is still on, `The Session graph is empty` and `tf.gradients is not supported when eager
execution is enabled`. None of these errors is about the GPU.

## Fix

For most programs two lines are enough: `import tensorflow.compat.v1 as tf` and
`tf.disable_v2_behavior()`. Otherwise convert the program with `tf_upgrade_v2`, or install a release
of it for TensorFlow 2. Programs that use contrib need TensorFlow 1.15, on Python 3.7.

## Fires on (log)

```
    config = tf.ConfigProto()
AttributeError: module 'tensorflow' has no attribute 'ConfigProto'
```

```
ModuleNotFoundError: No module named 'tensorflow.contrib'
```

```
RuntimeError: tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.
```

## Quiet on (log)

An old Keras calls it, not the program: keras-tf-version-mismatch reports that.

```
  File "model.py", line 3, in <module>
    model = Sequential()
  File "/opt/conda/lib/python3.7/site-packages/keras/backend/tensorflow_backend.py", line 74, in get_uid
    graph = tf.get_default_graph()
AttributeError: module 'tensorflow' has no attribute 'get_default_graph'
```

## Fires on (code)

```python
import tensorflow as tf

config = tf.ConfigProto()
config.gpu_options.allow_growth = True
with tf.Session(config=config) as sess:
    print(sess.run(tf.constant(1.0)))
```

The file also uses names that only TensorFlow 2 has, so no release can run it.

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

A file that checks the version works with both.

```python
import tensorflow as tf

if tf.__version__.startswith("2"):
    tf = tf.compat.v1
sess = tf.Session()
```

A function checks the TensorFlow version.

```python
import tensorflow as tf
from helpers import is_v2_0

if not is_v2_0():
    sess = tf.Session()
```

Also written for Python 2, and so for TensorFlow 1.

```python
from __future__ import print_function

import tensorflow as tf

print(tf.Session().run(tf.constant(1.0)))
```

The file states which TensorFlow it is for; a requirement or the project's README can also do this.

```python
# Needs TensorFlow 1.15.
import tensorflow as tf

sess = tf.Session()
```

## Sources

- <https://www.tensorflow.org/guide/migrate>
- <https://www.tensorflow.org/guide/migrate/upgrade>
- <https://github.com/tensorflow/tensorflow/blob/master/RELEASE.md>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import guarded_by_attribute_error
from whygpu.causes.evidence.log_exceptions import internal_import
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.run_advice import RUN_AS_TENSORFLOW_1
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Event, Import
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.program import Program, in_one_run
from whygpu.model.remedy import Install, command_line
from whygpu.tables import tensorflow_1_names
from whygpu.tables.tensorflow_names import KERAS_SESSION, SESSION_API, SINCE_2, is_removed

CAUSE = cause("WG704", __name__, __doc__, severity="error", effect="broken")

_REMOVED = late(
    r"module ['\"](?P<module>tensorflow[\w.]{0,80})['\"] has no attribute ['\"](?P<name>\w{1,60})['\"]"
)
_NO_MODULE = late(
    r"No module named ['\"]?tensorflow(?:_core)?\.(?P<name>contrib|examples|models\.rnn"
    r"|python\.ops\.rnn_cell)[\w.]{0,60}['\"]?"
    r"|cannot import name ['\"]?(?P<imported>contrib|rnn_cell|Session|ConfigProto|placeholder"
    r"|InteractiveSession|set_session|get_session)['\"]? from "
    r"(?:partially initialized module )?['\"]tensorflow"
)
_EAGER = late(
    r"The Session graph is empty"
    r"|(?:is|are) not (?:supported|compatible) (?:when|with) eager execution"
    r"|should be a function when eager execution is enabled"
    r"|(?:Tensor|Operation|Variable)\.(?:graph|op|name) is "
    r"(?:undefined|meaningless|not supported) when eager"
    r"|[gs]et_session`? is not available (?:when|in|with)"
    r"|Attempting to capture an EagerTensor[^\n]{0,80}building a function"
    r"|tf\.Session is not (?:supported|available)"
)
_TENSORFLOW_1 = late(r"^[01]\.")
_KERAS_ITSELF = late(r"site-packages[/\\]keras[/\\]|dist-packages[/\\]keras[/\\]")
_VERSION_TEST = late(
    r"version|(?:tf|tensorflow|is|has)_?v?[12](?:_0|x)?(?![0-9a-z])|executing_eagerly|tf2\.enabled",
    re.IGNORECASE,
)
_GONE = ("contrib", "examples")
_MOST_LINES = 4


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    match = next(
        (
            found
            for pattern in (_REMOVED, _NO_MODULE, _EAGER)
            for found in log.find(pattern)
            if _was_there(found) and not _called_by_keras(log, found)
        ),
        None,
    )
    version = log.version_of("tensorflow")
    if match is None:
        yield from _internal(log, version)
        return
    if version is not None and _TENSORFLOW_1.match(version):
        return
    name = match.groups.get("name") or match.groups.get("imported")
    has = f"TensorFlow {version}" if version else "TensorFlow 2"
    what = (
        f"uses {_spelled(match.groups.get('module'))}.{name} of TensorFlow 1, which {has} no longer has"
        if name
        else f"uses sessions or graphs of TensorFlow 1 beside eager execution, with which {has} starts"
    )
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the program {what}; this is unrelated to the GPU",
        evidence=log.evidence(match.line, *_same_end(log, match)),
        remedies=tuple(_remedies(name)),
    )


def _internal(log: Log, version: str | None) -> Iterator[Finding]:
    """Code for TensorFlow 1 often imports from inside TensorFlow, where each release may differ."""
    for raised in log.raised:
        path = internal_import(raised)
        if not path:
            continue
        public = Remedy(
            "Use the public name instead, if there is one: tf.compat.v1 has most names of TensorFlow "
            "1. Or copy the missing code from the release that has it into the program."
        )
        older = Remedy("Or install the release of TensorFlow that the program was written for.")
        # Only the replacement of the import system under --tf1 writes it like this.
        under_tf1 = ": module '" in raised.message
        yield CAUSE.finding(
            subject="tensorflow",
            message=f"the program imports {path} from inside TensorFlow, which "
            f"{f'TensorFlow {version}' if version else 'the installed release'} does not have; this "
            "is unrelated to the GPU",
            evidence=log.evidence(raised.line),
            remedies=(public, older) if under_tf1 else (RUN_AS_TENSORFLOW_1, public, older),
            confidence="likely",
            ask="For which release of TensorFlow was the program written?",
        )
        return


def _spelled(module: str | None) -> str:
    """tf.train for tensorflow._api.v2.train."""
    last = (module or "").rpartition(".")[2]
    by_module = tensorflow_1_names.REMOVED
    return f"tf.{last}" if last in by_module and last != "tensorflow" else "tf"


def _was_there(match: Match) -> bool:
    """Only names that TensorFlow 1 had; others may be missing for many reasons."""
    module, name = match.groups.get("module"), match.groups.get("name")
    return not module or not name or tensorflow_1_names.is_removed(module, name)


def _called_by_keras(log: Log, match: Match) -> bool:
    """A Keras older than TensorFlow 2 uses the same names internally."""
    for raised in log.raised:
        if raised.line == match.line and raised.frames:
            return bool(_KERAS_ITSELF.search(raised.frames[-1]))
    return False


def _same_end(log: Log, match: Match) -> list[int]:
    """Also if the match is the statement that raises, which a traceback shows with its message."""
    text = match.text.strip()[-80:]
    return [
        failure.line
        for failure in log.failures
        if (text and text in failure.text) or _EAGER.search(failure.text)
    ][:_MOST_LINES]


def _remedies(name: str | None) -> Iterator[Remedy]:
    yield RUN_AS_TENSORFLOW_1
    if name in _GONE:
        yield Remedy(
            "Look for a release of the program for TensorFlow 2: tf.contrib has no successor "
            "there. Some of it is in the packages tf-slim and tensorflow-addons."
        )
        yield Remedy(
            "Or run it with TensorFlow 1.15, in an environment with Python 3.7 (uv venv --python 3.7 "
            "--seed).",
            Install(("tensorflow==1.15.*", "protobuf<3.21")),
        )
        return
    if name is None:
        yield Remedy(
            "Turn eager execution off right after the import: "
            "`tf.compat.v1.disable_eager_execution()`."
        )
    yield Remedy(
        "Use the old API: `import tensorflow.compat.v1 as tf`, then `tf.disable_v2_behavior()`."
    )
    yield Remedy(
        "Or convert the program.",
        command_line("tf_upgrade_v2 --intree my_project --outtree my_project_v2"),
    )
    yield Remedy("If a library uses it, look for a newer release of that library.")


_WORDS = (
    *sorted(SESSION_API - {"contrib", "Session"}),
    *sorted({name.rpartition(".")[2] for name in SINCE_2} - {"legacy"}),
    # The word "contrib" alone is in the text of every licence.
    ".contrib",
    "Session(",
    "set_session",
    "get_session",
)


@CAUSE.on_code(*_WORDS, needs=("tensorflow",))
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    if program.tensorflow in ("1", "either"):
        return
    without_contrib = _does_without_contrib(program)
    removed = [
        event
        for event in program.named()
        if is_removed(event.path)
        and not (without_contrib and ".contrib." in event.path)
        and not _asks_for_version(program, event)
    ]
    new = [event for event in program.named() if _is_new(event)]
    # Names of both, in one run: no release has them all.
    mixed = [event for event in removed if any(in_one_run(event, other) for other in new)]
    chosen = mixed or [event for event in removed if _is_session_api(event.path)]
    if not chosen or any(guarded_by_attribute_error(event) for event in removed):
        return
    first = min(chosen, key=lambda event: program.place(event.node).start)
    newer = next((_name(other) for other in new if in_one_run(first, other)), "")
    name = _short(first.path)
    others = len({program.place(event.node).start for event in removed}) - 1
    more = f" ({others} more such {'name' if others == 1 else 'names'} in this file)"
    yield CAUSE.in_code(
        program,
        first.node,
        subject="tensorflow",
        message=f"tf.{name} is TensorFlow 1: under TensorFlow 2 this raises AttributeError"
        + (more if others else "")
        + (
            f"; but tf.{newer} is TensorFlow 2, so no release can run this file"
            if newer
            else "; this file does not say which of the two it is for"
            if program.tensorflow == "unknown" or new
            else ""
        ),
        fix="tf.contrib has no successor in TensorFlow; rewrite the code that uses it, or start "
        "it with whygpu run --tf1 -- python FILE, which replaces parts of it"
        if name.startswith("contrib")
        else "run it as it is with whygpu run --tf1 -- python FILE; or import "
        "tensorflow.compat.v1 as tf and call tf.disable_v2_behavior(); "
        "if the file is for TensorFlow 1, say so in a comment or in pyproject.toml",
        severity="error"
        if newer
        # A program for TensorFlow 1 that says nothing about its release is not wrong.
        else "info"
        if program.tensorflow == "unknown" or new
        else "warning",
    )


def _asks_for_version(program: Program, event: Event) -> bool:
    """A condition around it separates TensorFlow 1 from 2: if is_tf2(): ... else: ..."""
    return any(
        frame.test is not None and _VERSION_TEST.search(program.source(frame.test))
        for frame in event.context
    )


def _does_without_contrib(program: Program) -> bool:
    """The author knows that tf.contrib may be missing, and imports it only if it exists."""
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


def _is_new(event: Event) -> bool:
    """Only TensorFlow 2 has it."""
    return event.path.startswith("tensorflow.") and _name(event) in SINCE_2


def _name(event: Event) -> str:
    return event.path.removeprefix("tensorflow.")


def _is_session_api(path: str) -> bool:
    if path in KERAS_SESSION:
        return True
    first = path.split(".")[1]
    return first in SESSION_API or (first == "train" and "Session" in path)
