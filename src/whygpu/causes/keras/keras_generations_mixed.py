"""tf.keras or keras is not the Keras version, or not on the backend, that a program expects.

## Why it happens

Two settings change `tf.keras` without a message. `TF_USE_LEGACY_KERAS=1` makes it the package
`tf-keras` (Keras 2), while `import keras` remains Keras 3. And the `backend` in
`~/.keras/keras.json`, perhaps written years ago for another project, makes `tf.keras` itself
compute with JAX or PyTorch instead of TensorFlow.

## What it looks like

Models of one version refuse layers of the other. Saved models do not load. Weights are JAX arrays
in a program that imports only TensorFlow.

## Fix

Use only one of the two in a program, and set the backend where the program starts.

## Fires on (machine)

```toml
[environment.variables.TF_USE_LEGACY_KERAS]
value = "1"
[target.packages.tf-keras]
version = "2.20.1"
```

## Quiet on (machine)

A variable that names the backend is an explicit choice for this run.

```toml
[environment.variables.KERAS_BACKEND]
value = "jax"
[target.frameworks.keras.keras]
backend = "jax"
```

## Cannot tell on (machine)

```toml
[target.frameworks.keras.keras]
backend = {unknown = "~/.keras/keras.json: permission denied"}
```

## Sources

- <https://keras.io/getting_started/#tensorflow--keras-2-backwards-compatibility>
- <https://keras.io/getting_started/#configuring-your-backend>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.keras_backend import LEGACY_SWITCH, Choice, choice_of, uses_legacy_keras
from whygpu.causes.evidence.packages import package_named
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.observed import Unknown, need
from whygpu.model.remedy import UnsetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, Package
from whygpu.tables.versions import release_numbers

CAUSE = cause("WG605", __name__, __doc__, severity="warning", effect="none")

_KERAS_3_INSIDE = (2, 16)
"""From this TensorFlow release on, tf.keras is Keras 3 and uses its choice of backend."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    tensorflow = need(machine.framework("tensorflow"))
    need(machine.target.packages)
    keras, legacy = package_named(machine, "keras"), package_named(machine, "tf-keras")
    if uses_legacy_keras(machine):
        if keras is not None and legacy is not None and release_numbers(keras.version) >= (3,):
            yield _two_generations(machine, keras, legacy)
        return
    framework = need(machine.framework("keras"))
    setup = framework.keras
    if setup is None or setup.generation != "keras-3":
        return
    if isinstance(setup.backend, Unknown):
        yield Gap(f"which backend Keras is configured for: {setup.backend.reason}")
        return
    choice = choice_of(machine, framework, need(setup.backend))
    moved = choice.by == "file" and choice.backend != "tensorflow"
    if moved and release_numbers(tensorflow.version) >= _KERAS_3_INSIDE:
        yield _moved(tensorflow, choice)


def _two_generations(machine: Snapshot, keras: Package, legacy: Package) -> Finding:
    switch = machine.environment.get(LEGACY_SWITCH)
    return CAUSE.finding(
        subject="keras",
        # Code for Keras 2 needs both packages; only a program that mixes them fails.
        severity="info",
        message=(
            f"tf.keras is tf-keras {legacy.version} because {LEGACY_SWITCH} is set, but `import "
            f"keras` is Keras {keras.version}: their layers and models cannot be mixed"
        ),
        evidence=(
            seen(switch),
            seen(machine.target.packages, f"keras {keras.version}, tf-keras {legacy.version}"),
        ),
        remedies=(
            Remedy("Import Keras in one way only: `from tensorflow import keras`."),
            Remedy("Or use Keras 3 in both.", UnsetVariable((LEGACY_SWITCH,))),
        ),
    )


def _moved(tensorflow: Framework, choice: Choice) -> Finding:
    name = display_name(choice.backend)
    return CAUSE.finding(
        subject="keras",
        message=(
            f"tf.keras of {titled(tensorflow)} computes with {name} and not with TensorFlow, "
            f'because of "backend" in {choice.where}'
        ),
        evidence=(choice.evidence,),
        remedies=choice.switch_to("tensorflow"),
    )
