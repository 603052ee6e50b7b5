"""TF_USE_LEGACY_KERAS selects the package tf-keras, which is not installed.

## Why it happens

With `TF_USE_LEGACY_KERAS=1`, TensorFlow takes `tf.keras` only from the package `tf-keras`, the
continuation of Keras 2. TensorFlow does not require this package, so pip does not install it.

## What it looks like

`import tensorflow` and `import keras` work. The first use of `tf.keras` raises `Keras cannot be
imported. Check that it is installed.`, although Keras is installed. A warning before it names
`tf_keras`.

## Fix

Install the `tf-keras` with the same version number as TensorFlow, or unset the variable.

## Fires on (machine)

```toml
probes_left_out = "--no-probe"
[environment.variables.TF_USE_LEGACY_KERAS]
value = "1"
```

## Quiet on (machine)

```toml
[environment.variables.TF_USE_LEGACY_KERAS]
value = "1"
[target.packages.tf-keras]
version = "2.20.1"
```

## Cannot tell on (machine)

```toml
[environment.variables.TF_USE_LEGACY_KERAS]
value = "1"
[target.packages]
unknown = "site-packages: permission denied"
```

## Fires on (log)

```
$ export TF_USE_LEGACY_KERAS=1
  File "/opt/env/lib/python3.11/site-packages/tensorflow/python/util/lazy_loader.py", line 182, in _load
    raise ImportError(
ImportError: `keras` optional dependency (tf_keras) is not installed
ModuleNotFoundError: No module named 'tf_keras'
```

## Quiet on (log)

```
ModuleNotFoundError: No module named 'keras'
```

## Sources

- <https://keras.io/getting_started/#tensorflow--keras-2-backwards-compatibility>
- <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/util/lazy_loader.py>
- <https://github.com/huggingface/transformers/pull/40391>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.keras_backend import LEGACY_SWITCH, uses_legacy_keras
from whygpu.causes.evidence.log_subjects import ended_after
from whygpu.causes.evidence.probe_ends import imported, quoted
from whygpu.model.cause import cause
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, Observed, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import Install, UnsetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import active
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG604",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails", "keras-tf-version-mismatch"),
)

_FIRST_WITH_SWITCH = (2, 15)
_PACKAGES = ("tf-keras", "tf-keras-nightly")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    if not uses_legacy_keras(machine):
        return
    tensorflow = need(machine.framework("tensorflow"))
    packages = need(machine.target.packages)
    numbers = release_numbers(tensorflow.version)
    if numbers < _FIRST_WITH_SWITCH or any(p.name in _PACKAGES for p in active(packages)):
        return
    switch, probe = machine.environment.get(LEGACY_SWITCH), machine.probe("keras")
    value = switch.value if isinstance(switch, Known) else ""
    number = ".".join(map(str, numbers[:2]))
    yield CAUSE.finding(
        subject="keras",
        message=(
            f"tf.keras of {titled(tensorflow)} cannot be imported: {LEGACY_SWITCH}={value} selects "
            "the package tf-keras, which is not installed (`import keras` is not affected)"
        ),
        evidence=(
            seen(switch),
            seen(machine.target.packages, "no tf-keras among the packages"),
            *_line(probe),
        ),
        remedies=(
            Remedy(
                "Install the tf-keras of TensorFlow's version.",
                Install((f"tf-keras=={number}.*",)),
            ),
            Remedy("Or use Keras 3.", UnsetVariable((LEGACY_SWITCH,))),
        ),
        # `import keras` has its own verdict if it worked.
        effect="none" if isinstance(probe, Known) and imported(probe.value) else None,
    )


def _line(probe: Observed[Probe]) -> tuple[Evidence, ...]:
    """What the probe recorded about tf.keras."""
    text = probe.value.fact("tf.keras") if isinstance(probe, Known) else None
    if not isinstance(probe, Known) or text is None:
        return ()
    return (quoted(probe.value, f"tf.keras: {text}"),)


_STATEMENT = late(r"TF_USE_LEGACY_KERAS set to True, but you do not have the tf_keras package")
_SWITCH = late(r"TF_USE_LEGACY_KERAS\b")
_MISSING = late(
    r"No module named '?tf_keras'?|Keras cannot be imported\. Check that it is installed"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    switch, missing = log.first(_SWITCH), log.first(_STATEMENT) or log.first(_MISSING)
    if switch is None or missing is None:
        return
    yield CAUSE.finding(
        subject="keras",
        message=f"{LEGACY_SWITCH} selects the package tf-keras, which is not installed",
        evidence=log.evidence(switch.line, missing.line, *ended_after(log, missing.line)),
        remedies=(
            Remedy("Install the tf-keras of TensorFlow's version.", Install((_package(log),))),
            Remedy("Or use Keras 3.", UnsetVariable((LEGACY_SWITCH,))),
        ),
    )


def _package(log: Log) -> str:
    numbers = release_numbers(log.version_of("tensorflow") or "")[:2]
    return f"tf-keras=={numbers[0]}.{numbers[1]}.*" if len(numbers) == 2 else "tf-keras"
