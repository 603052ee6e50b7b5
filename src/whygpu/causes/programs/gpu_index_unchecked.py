"""The program takes a GPU from the list by its number, but does not check the length of the list.

## Why it happens

The list of devices has one item per GPU. It is empty if there is no GPU or TensorFlow does not find
it. `if gpus:` shows that there is at least one, which is enough for gpus[0] but not for gpus[1].

## What it looks like

`IndexError: list index out of range` on every machine with fewer GPUs. It is not a RuntimeError, so
the usual `except RuntimeError` does not catch it.

## Fix

Check the length first: `if len(gpus) > 1:`; or loop over the list.

## Fires on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    try:
        tf.config.set_visible_devices(gpus[1], "GPU")
    except RuntimeError as error:
        print(error)
```

```python
import tensorflow as tf

gpus = tf.config.experimental.list_physical_devices("GPU")
tf.config.experimental.set_virtual_device_configuration(gpus[0], [])
```

```python
import jax

second = jax.devices()[1]
```

## Fires on (log)

```
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    tf.config.experimental.set_memory_growth(physical_devices[0], True)
IndexError: list index out of range
```

```
Traceback (most recent call last):
  File "train.py", line 4, in <module>
    (gpu,) = tf.config.list_physical_devices("GPU")
ValueError: not enough values to unpack (expected 1, got 0)
```

## Quiet on (log)

A list of other items.

```
Traceback (most recent call last):
  File "train.py", line 31, in <module>
    first = rows[0]
IndexError: list index out of range
```

## Quiet on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if len(gpus) > 1:
    tf.config.set_visible_devices(gpus[1], "GPU")
```

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if not gpus:
    raise SystemExit("no GPU")
print(gpus[0])
```

```python
import tensorflow as tf

try:
    first = tf.config.list_physical_devices("GPU")[0]
except IndexError:
    first = None
```

The program creates the devices itself.

```python
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax

second = jax.devices()[1]
```

There is always a CPU.

```python
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
```

## Sources

- <https://www.tensorflow.org/guide/gpu>
- <https://docs.jax.dev/en/latest/_autosummary/jax.devices.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.device_selection import partial_growth, unchecked_items
from whygpu.causes.evidence.missing_gpu_statements import NVIDIA_SMI, MissingGpu, missing_gpus
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.derived import display_name
from whygpu.model.finding import Finding, Remedy
from whygpu.model.log import Log
from whygpu.model.program import Program
from whygpu.model.remedy import command_line

CAUSE = cause("WG719", __name__, __doc__, severity="error", effect="broken")


@CAUSE.on_code("_devices", "jax.devices")
def detect(program: Program) -> Iterator[CodeFinding]:
    partial = partial_growth(program)
    growth_of = () if partial is None else partial.call.node.args[:1]
    for taken in unchecked_items(program):
        if taken.node in growth_of:
            # gpu-config-misuse reports this call, and its loop over all GPUs needs no check.
            continue
        number = taken.number
        needed = number + 1 if number >= 0 else -number
        name = program.source(taken.node.value)
        has = f"at least {taken.known}" if taken.known else "none at all"
        thing = "GPU" if taken.framework == "tensorflow" else "device"
        yield CAUSE.in_code(
            program,
            taken.node,
            subject=taken.framework,
            message=f"{program.source(taken.node)} needs {needed} "
            f"{thing if needed == 1 else thing + 's'}, but nothing checks that there "
            f"{'is one' if needed == 1 else 'are that many'}: "
            + (
                "on a machine without a GPU"
                if needed == 1
                else f"on a machine with {needed - 1 if needed > 1 else 'no'} or fewer"
            )
            + " this raises IndexError",
            # Without any GPU, the error itself says so, and the program may be for machines with one.
            severity="info" if needed == 1 else None,
            fix=f"Check first: if len({name}) > {needed - 1}:"
            if "(" not in name
            else f"Keep the list and check its length: it may have {has}.",
        )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    for missing in missing_gpus(log)[:1]:
        if missing.framework == NVIDIA_SMI:
            # Only the driver is involved, and its causes report it.
            return
        name = display_name(missing.framework)
        devices = missing.taken.rpartition("[")[0] or missing.taken
        yield CAUSE.finding(
            subject=missing.framework,
            message=f"{name} saw {_how_many(missing)}, but the program uses {missing.taken} "
            "without a check; this log does not show the reason",
            evidence=log.evidence(missing.line),
            remedies=(
                Remedy(
                    f"Find out why {name} does not see the GPU, in the same environment.",
                    command_line("whygpu check"),
                ),
                Remedy(f"To run the program without it as well, check len({devices}) first."),
            ),
        )


def _how_many(missing: MissingGpu) -> str:
    thing = "GPU" if missing.framework == "tensorflow" else "device"
    if missing.number is None:
        return f"fewer {thing}s than the program expects"
    needed = missing.number + 1 if missing.number >= 0 else -missing.number
    return f"no {thing}" if needed == 1 else f"fewer than {needed} {thing}s"
