"""The installed Keras does not match the installed TensorFlow.

## Why it happens

Each TensorFlow works with certain releases of Keras: up to 2.15 with the Keras 2 of the same
number, from 2.16 on with Keras 3. `tf-keras` works only with the TensorFlow of the same number.
Installing one without the other, or pinning `keras<3` with a new TensorFlow, breaks the pair.

## What it looks like

Errors that name internals of the other package: `module 'tensorflow._api.v2.compat.v2.__internal__'
has no attribute 'register_load_context_function'`, `cannot import name 'dtensor' from
'tensorflow.compat.v2.experimental'`, or from `tf.keras` a `RecursionError`. TensorFlow alone works.

## Fix

Install the Keras that this TensorFlow requires.

## Fires on (machine)

```toml
[target.frameworks.keras]
version = "2.15.0"
[probes.keras]
ended = "exception"
stage = "import"
how = "AttributeError: module 'tensorflow._api.v2.compat.v2.__internal__' has no attribute 'x'"
traceback = ['  File "~/venv/lib/python3.11/site-packages/keras/src/x.py", line 68, in f']
```

```toml
probes_left_out = "--no-probe"
[[target.conflicts]]
package = "tensorflow"
requirement = "keras>=3.10.0"
found = "2.15.0"
```

## Quiet on (machine)

The import works, so the unmet requirement is only a requirement-conflict.

```toml
start = "no-gpu"
[[target.conflicts]]
package = "tensorflow"
requirement = "keras>=3.10.0"
found = "3.9.2"
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[target.conflicts]
unknown = "site-packages: permission denied"
```

## Fires on (log)

Keras is newer than the installed TensorFlow:

```
  File "/opt/env/lib/python3.8/site-packages/keras/__init__.py", line 21, in <module>
    from keras import models
AttributeError: module 'tensorflow.compat.v2.__internal__' has no attribute 'register_load_context_function'
```

The program was written for another Keras:

```
ImportError: cannot import name 'to_categorical' from 'keras.utils' (/opt/env/lib/python3.9/site-packages/keras/utils/__init__.py)
```

```
ModuleNotFoundError: No module named 'keras.engine'
```

Layers of the two Keras packages are mixed:

```
TypeError: The added layer must be an instance of class Layer. Found: <tensorflow.python.keras.layers.core.Dense object at 0x7f0000000000>
```

A saved model is from the other Keras version:

```
TypeError: Error when deserializing class 'InputLayer' using config={'batch_shape': [None, 28, 28], 'name': 'input'}.
Exception encountered: Unrecognized keyword arguments: ['batch_shape']
```

Keras uses a name that this TensorFlow release does not have:

```
  File "/opt/env/lib/python3.6/site-packages/keras/backend/tensorflow_backend.py", line 2871, in softmax
    return tf.nn.softmax(x, axis=axis)
TypeError: softmax() got an unexpected keyword argument 'axis'
```

Keras passes an object that lacks a method this TensorFlow release needs:

```
  File "/opt/env/lib/python3.6/site-packages/tensorflow/python/framework/ops.py", line 4255, in device
    op._set_device_from_string(device)
AttributeError: '_TfDeviceCaptureOp' object has no attribute '_set_device_from_string'
```

A Python before 3.7 does not name the source:

```
  File "/opt/env/lib/python3.5/site-packages/tensorflow/keras/layers/__init__.py", line 8, in <module>
    from tensorflow.python.keras.engine import Node
ImportError: cannot import name 'Node'
```

The program was written for an earlier Keras:

```
AttributeError: 'Sequential' object has no attribute 'predict_classes'
```

## Quiet on (log)

Keras is not installed at all, or a module is the program's own:

```
ModuleNotFoundError: No module named 'keras'
```

```
ImportError: cannot import name 'build_model' from 'models' (/home/me/project/models.py)
```

An argument that the program passes on is the program's own error:

```
  File "train.py", line 12, in <module>
    model.add(Dense(64, colour="red"))
  File "/opt/env/lib/python3.8/site-packages/keras/layers/core.py", line 880, in __init__
    super(Dense, self).__init__(**kwargs)
TypeError: __init__() got an unexpected keyword argument 'colour'
```

## Sources

- <https://keras.io/getting_started/#tensorflow--keras-2-backwards-compatibility>
- <https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.log_keras_mismatch import MESSAGES as MESSAGES_IN_LOG
from whygpu.causes.evidence.log_keras_mismatch import mismatch_in
from whygpu.causes.evidence.log_subjects import ended_after, excerpt
from whygpu.causes.evidence.packages import (
    conflict_evidence,
    framework_name_of,
    other_version,
    required_name,
    requirement_of,
    tidy,
)
from whygpu.causes.evidence.probe_ends import (
    failure_message,
    imported,
    message_in,
    own_probes,
    quoted,
)
from whygpu.model.cause import cause
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known, Observed, Unknown, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import Install, Pip, SetVariable, Steps
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, RequirementConflict
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG603",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails",),
)

MESSAGES = late(
    r"(?<!partially initialized )module '(?:tensorflow|keras|tf_keras)[\w.]*' has no attribute"
    r"|cannot import name '\w+' from '(?:tensorflow|keras|tf_keras)[\w.]*'"
    r"|No module named '(?:tensorflow|keras|tf_keras)\.[\w.]+'"
    r"|Keras requires TensorFlow [\d.]+ or higher"
    r"|RecursionError: maximum recursion depth exceeded"
)
INSIDE_KERAS = late(r'File "[^"\n]{0,400}[/\\](?:tf_)?keras[/\\]|lazy_loader\.py')
"""The error must come from Keras's code, or from TensorFlow's loader of Keras."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    tensorflow = need(machine.framework("tensorflow"))
    keras = need(machine.framework("keras"))
    proven = False
    for framework, probe in own_probes(machine):
        line = _proof(machine, framework, probe)
        if line is not None:
            proven = True
            yield _finding(machine, framework, keras, tensorflow, line)
    if proven or isinstance(machine.probe("keras"), Known):
        return
    if isinstance(machine.target.conflicts, Unknown):
        reason = machine.target.conflicts.reason
        yield Gap(f"whether {titled(keras)} matches {titled(tensorflow)}: {reason}")
    elif any(_pair_conflicts(machine)):
        yield _finding(machine, keras, keras, tensorflow, None)


def claims(machine: Snapshot, conflict: RequirementConflict) -> bool:
    """Whether this cause reports a conflict between Keras and TensorFlow."""
    if conflict not in _pair_conflicts(machine):
        return False
    if not isinstance(machine.probe("keras"), Known):
        return True
    return any(_proof(machine, *item) is not None for item in own_probes(machine))


def _pair_conflicts(machine: Snapshot) -> list[RequirementConflict]:
    """Unmet requirements of TensorFlow on Keras, or of Keras on TensorFlow."""
    conflicts = machine.target.conflicts
    if not isinstance(conflicts, Known):
        return []
    pair = {"tensorflow", "keras"}
    return [
        conflict
        for conflict in conflicts.value
        if isinstance(conflict.found, Known)
        and {
            framework_name_of(conflict.package),
            framework_name_of(required_name(conflict.requirement)),
        }
        == pair
    ]


def _proof(machine: Snapshot, framework: Framework, probe: Observed[Probe]) -> Evidence | None:
    if framework.name not in ("tensorflow", "keras") or not isinstance(probe, Known):
        return None
    match = failure_message(probe.value, MESSAGES)
    if match is None or message_in(probe.value, INSIDE_KERAS) is None or _fails_alone(machine):
        return None
    return quoted(probe.value, match.string)


def _fails_alone(machine: Snapshot) -> bool:
    """TensorFlow cannot be imported for a reason unrelated to Keras."""
    probe = machine.probe("tensorflow")
    return (
        isinstance(probe, Known)
        and not imported(probe.value)
        and message_in(probe.value, INSIDE_KERAS) is None
    )


def _finding(
    machine: Snapshot,
    broken: Framework,
    keras: Framework,
    tensorflow: Framework,
    line: Evidence | None,
) -> Finding:
    conflicts = _pair_conflicts(machine)
    wanted = _wanted(machine, tensorflow, conflicts)
    evidence = [conflict_evidence(machine, conflict) for conflict in conflicts]
    required = f"; this TensorFlow requires {wanted}" if wanted else ""
    verb = "do not match" if line else "most likely do not match"
    pair = f"{titled(keras)} ({keras.distribution}) and {titled(tensorflow)}"
    return CAUSE.finding(
        subject=broken.name,
        message=f"{pair} {verb}{required}",
        evidence=(*([line] if line else []), *evidence),
        remedies=(
            other_version(
                machine,
                wanted or _by_number(keras, tensorflow),
                "Install the Keras that belongs to this TensorFlow.",
            ),
        ),
        confidence="certain" if line else "likely",
    )


def _wanted(
    machine: Snapshot, tensorflow: Framework, conflicts: list[RequirementConflict]
) -> str | None:
    of_keras = (tidy(c.requirement) for c in conflicts if required_name(c.requirement) == "keras")
    return next(of_keras, None) or requirement_of(machine, tensorflow, "keras")


def _by_number(keras: Framework, tensorflow: Framework) -> str:
    """The version rule of the releases, if no metadata give it."""
    numbers = release_numbers(tensorflow.version)
    number = ".".join(map(str, numbers[:2]))
    if keras.distribution.startswith("tf-keras"):
        return f"tf-keras=={number}.*"
    return "keras>=3" if numbers >= (2, 16) else f"keras=={number}.*"


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = mismatch_in(log)
    if statement is not None and not _backend_is_missing(log):
        yield _in_log(log, statement)


def _backend_is_missing(log: Log) -> bool:
    """A missing backend of Keras 3 has its own cause."""
    return any(
        raised.message.startswith(("No module named 'tensorflow'", "No module named 'jax'"))
        and any("keras" in frame for frame in raised.frames)
        for raised in log.raised
    )


def _in_log(log: Log, statement: Match) -> Finding:
    keras, tensorflow = log.version_of("keras"), log.version_of("tensorflow")
    pair = " and ".join(
        f"{name} {version}" if version else name
        for name, version in (("Keras", keras), ("TensorFlow", tensorflow))
    )
    numbers = release_numbers(tensorflow) if tensorflow else ()
    if numbers and (2, 6) <= numbers < (2, 16):
        fits = f"keras=={numbers[0]}.{numbers[1]}.*"
    elif numbers >= (2, 16):
        fits = "keras>=3"
    else:
        fits = ""
    return CAUSE.finding(
        subject="keras",
        message=f"{pair}, or an add-on for them, do not match each other or the program: "
        f"{excerpt(statement.text)}",
        evidence=log.evidence(
            statement.line,
            *(match.line for match in log.find(MESSAGES_IN_LOG)),
            *ended_after(log, statement.line),
        ),
        remedies=(
            Remedy(
                "Install the Keras that matches this TensorFlow (before 2.16: the same number).",
                Install((fits,)) if fits else Pip(("show", "keras", "tensorflow")),
            ),
            Remedy(
                "Import Keras in the same way everywhere in the program: `from tensorflow import "
                "keras`. Code for Keras 2 needs tf-keras with TensorFlow 2.16 or later.",
                Steps((Install(("tf-keras",)), SetVariable("TF_USE_LEGACY_KERAS", "1"))),
            ),
        ),
        confidence="likely" if "Error when" in statement.text else "certain",
    )
