"""Keras: which generation an import loads, and the configured backend."""

from __future__ import annotations

import json
import os.path
from collections.abc import Iterator
from typing import Literal

from whygpu.collectors.frameworks.shared import Scene, module_folder
from whygpu.host.base import Host
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.target import Build, Framework, KerasSetup, Package
from whygpu.tables.versions import release_numbers

_DEFAULT = "tensorflow"
_LEGACY_SWITCH = "TF_USE_LEGACY_KERAS"


def collect(scene: Scene) -> Iterator[Framework]:
    package = _package(scene)
    if package is None:
        return
    module = "tf_keras" if package.name.startswith("tf-keras") else "keras"
    pure = Absent(f"{package.name} {package.version} is Python code; its backend has the binaries")
    yield Framework(
        name="keras",
        distribution=package.name,
        version=package.version,
        location=module_folder(scene.host, package, module) or package.location,
        build=Build(pure, pure, pure, pure, pure),
        libraries=pure,
        keras=_setup(scene.host, package),
    )


def _package(scene: Scene) -> Package | None:
    """The package behind tf.keras, which is also `import keras` unless the switch is set."""
    standard = scene.provider("keras", "keras")
    legacy = scene.provider("keras", "tf_keras")
    # The values that TensorFlow accepts; any other value leaves the switch off.
    if scene.host.environ.get(_LEGACY_SWITCH) in ("1", "true", "True"):
        return legacy or standard
    return standard or legacy


def _setup(host: Host, package: Package) -> KerasSetup:
    version = release_numbers(package.version)
    generation: Literal["keras-2", "keras-3", "tf-keras"] = (
        "keras-3" if version >= (3,) else "keras-2"
    )
    if package.name.startswith("tf-keras"):
        generation = "tf-keras"
    # Between 2.4 and 3.0, and in tf-keras, TensorFlow is the only backend.
    if generation == "tf-keras" or (2, 4) <= version < (3,):
        source = f"{package.name} {package.version}, which has no other backend"
        return KerasSetup(Known(_DEFAULT, source), generation)
    return KerasSetup(_backend(host), generation)


def _backend(host: Host) -> Observed[str]:
    chosen = host.environ.get("KERAS_BACKEND")
    if chosen:
        return Known(chosen, "environment variable KERAS_BACKEND")
    path = os.path.join(_home(host), "keras.json")
    text = host.read(path)
    if isinstance(text, Absent):
        return Known(_DEFAULT, f"Keras's default; there is no {path}")
    if isinstance(text, Unknown):
        return text
    try:
        settings = json.loads(text.value)
    except RecursionError:
        return Unknown(f"{path} is nested too deeply to be read")
    except ValueError:
        return Known(_DEFAULT, f"Keras's default; {path} is not valid JSON and Keras ignores it")
    if not isinstance(settings, dict):
        return Unknown(f"{path} is not a JSON object, so Keras cannot be imported")
    backend = settings.get("backend", _DEFAULT)
    if not isinstance(backend, str):
        return Unknown(f"the backend in {path} is {json.dumps(backend)}, which is not a string")
    return Known(backend, path)


def _home(host: Host) -> str:
    """The folder of keras.json, by the same rule as in Keras."""
    named = host.environ.get("KERAS_HOME")
    home = host.platform.home
    if named is not None:
        return home + named[1:] if named == "~" or named.startswith("~/") else named
    facts = host.stat(home)
    base = home if isinstance(facts, Known) and facts.value.usable else "/tmp"
    return os.path.join(base, ".keras")
