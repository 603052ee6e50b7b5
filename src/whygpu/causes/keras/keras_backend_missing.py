"""Keras is configured for a backend that is not installed, or that does not exist.

## Why it happens

Keras 3 does not contain a backend. It uses the one that `KERAS_BACKEND` names, else the one in
`~/.keras/keras.json`, else TensorFlow, whether that is installed or not. The first Keras that ran
on the machine wrote this file, and the file remains when that environment is deleted.

## What it looks like

`No module named 'tensorflow'` (or jax, or torch) from `import keras`. The message of `tf.keras` is
misleading: `Keras cannot be imported. Check that it is installed.`, although Keras is installed.
The missing backend is named only further up in the traceback. A name that is not a backend gives
`Unable to import backend : name`.

## Fix

Select a backend that is installed, or install the selected one.

## Fires on (machine)

```toml
only = ["keras", "tensorflow"]
[environment.variables.KERAS_BACKEND]
value = "jax"
[target.frameworks.keras.keras]
backend = "jax"
[probes.keras]
ended = "exception"
stage = "import"
how = "ModuleNotFoundError: No module named 'jax'"
facts = []
```

```toml
probes_left_out = "--no-probe"
[target.frameworks.keras.keras]
backend = "theano"
```

## Quiet on (machine)

```toml
start = "no-gpu"
[target.frameworks.keras.keras]
backend = "torch"
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[target.frameworks.keras.keras]
backend = {unknown = "~/.keras/keras.json: permission denied"}
```

## Fires on (log)

```
  File "/opt/env/lib/python3.11/site-packages/keras/src/backend/common/global_state.py", line 3, in <module>
    from keras.src.backend import config
  File "/opt/env/lib/python3.11/site-packages/keras/src/backend/__init__.py", line 9, in <module>
    import tensorflow as tf
ModuleNotFoundError: No module named 'tensorflow'
```

## Quiet on (log)

The program imports it, not Keras:

```
  File "train.py", line 1, in <module>
    import tensorflow as tf
ModuleNotFoundError: No module named 'tensorflow'
```

## Sources

- <https://keras.io/getting_started/#configuring-your-backend>
- <https://github.com/keras-team/keras/blob/master/keras/src/backend/config.py>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import gpu_build
from whygpu.causes.evidence.keras_backend import BACKENDS, Choice, choice_of
from whygpu.causes.evidence.log_subjects import ended_after
from whygpu.causes.evidence.packages import package_named
from whygpu.causes.evidence.probe_ends import imported, message_in, quoted
from whygpu.model.cause import cause
from whygpu.model.derived import and_list, display_name, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, Observed, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import Install, SetVariable
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG602",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails", "keras-generations-mixed"),
)

MESSAGES = late(
    r"No module named '(?:tensorflow|jax|torch|openvino)'|Unable to import backend ?: ?\S+"
)

_PACKAGES = ("tensorflow", "jax", "torch", "openvino")
"""Backends of Keras that are separate packages."""

_NEEDS_NOTHING = "numpy"
"""Keras requires NumPy itself."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    keras = need(machine.framework("keras"))
    if keras.keras is None or keras.keras.generation != "keras-3":
        return
    probe = machine.probe("keras")
    if isinstance(probe, Known) and imported(probe.value):
        return
    backend = need(keras.keras.backend)
    installed = _installed(machine)
    if backend in installed or backend == _NEEDS_NOTHING:
        return
    choice = choice_of(machine, keras, backend)
    with_gpu = not isinstance(nvidia_gpu(machine), Absent)
    exists = backend in _PACKAGES
    setting = (
        f"backend is {backend}, {choice.sentence}, which is "
        f"{'not installed' if exists else 'not a backend of Keras'} (installed: "
        f"{and_list([display_name(name) for name in installed]) if installed else 'none'})"
    )
    remedies = tuple(_remedies(choice, installed, with_gpu=with_gpu))
    yield CAUSE.finding(
        subject="keras",
        message=f"{titled(keras)} cannot be imported: its {setting}",
        evidence=(*_line(probe), choice.evidence),
        remedies=remedies,
    )
    # TensorFlow imports Keras, and fails with it.
    tensorflow, its_probe = machine.framework("tensorflow"), machine.probe("tensorflow")
    evidence = _line(its_probe)
    if evidence and isinstance(tensorflow, Known):
        yield CAUSE.finding(
            subject="tensorflow",
            message=f"{titled(tensorflow.value)} cannot be imported: it imports Keras, whose {setting}",
            evidence=(*evidence, choice.evidence),
            remedies=remedies,
        )


def _installed(machine: Snapshot) -> list[str]:
    """The backends that are installed."""
    frameworks = {framework.name for framework in need(machine.target.frameworks)}
    found: list[str] = [name for name in BACKENDS if name in frameworks]
    need(machine.target.packages)
    return [*found, "openvino"] if package_named(machine, "openvino") else found


def _line(probe: Observed[Probe]) -> tuple[Evidence, ...]:
    match = message_in(probe.value, MESSAGES) if isinstance(probe, Known) else None
    return (quoted(probe.value, match.string),) if isinstance(probe, Known) and match else ()


def _remedies(choice: Choice, installed: list[str], *, with_gpu: bool) -> Iterator[Remedy]:
    for name in installed:
        yield from choice.switch_to(name)
    if choice.backend in _PACKAGES or not installed:
        name = choice.backend if choice.backend in _PACKAGES else "tensorflow"
        if name != choice.backend:
            # Whatever is installed, Keras still looks for a backend that does not exist.
            yield from choice.switch_to(name)
        action = gpu_build(name) if with_gpu and name in BACKENDS else Install((name,))
        yield Remedy(f"Install {display_name(name)}.", action)


_INSIDE_KERAS = late(r"[/\\]keras[/\\]src[/\\]")
_MODULE = late(r"No module named '(?P<name>tensorflow|jax|torch|openvino)'")
_NO_BACKEND = late(r"(?:Unable to import backend|Unknown backend) ?: ?(?P<name>\w{1,40})")
_OF_KERAS = late(r"[/\\]keras[/\\](?:src[/\\])?backend[/\\]")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    for raised in log.raised:
        unknown = _NO_BACKEND.match(raised.message)
        if unknown is not None and raised.frames and _OF_KERAS.search(raised.frames[-1]):
            yield CAUSE.finding(
                subject="keras",
                message=f"Keras is set to use the backend {unknown['name']}, which this Keras does "
                "not have",
                evidence=log.evidence(raised.line, *ended_after(log, raised.line)),
                remedies=(_switch(unknown["name"]),),
            )
            return
        match = _MODULE.match(raised.message)
        if match is None or not raised.frames or not _INSIDE_KERAS.search(raised.frames[-1]):
            continue
        name = match["name"]
        yield CAUSE.finding(
            subject="keras",
            message=f"Keras 3 is set to use the backend {name}, which is not installed",
            evidence=log.evidence(raised.line, *ended_after(log, raised.line)),
            remedies=(
                Remedy(
                    f"Install {name}.", gpu_build(name) if name in BACKENDS else Install((name,))
                ),
                _switch(name, "Or choose"),
            ),
        )
        return


def _switch(refused: str, verb: str = "Choose") -> Remedy:
    other = "torch" if refused == "tensorflow" else "tensorflow"
    return Remedy(f"{verb} a backend that is installed.", SetVariable("KERAS_BACKEND", other))
