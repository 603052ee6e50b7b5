"""The frameworks of the target, from their files alone."""

from __future__ import annotations

from collections.abc import Callable

from whygpu.collectors.frameworks import bare, jax, keras, others, tensorflow, torch
from whygpu.collectors.frameworks.amd_code import with_amd_targets
from whygpu.collectors.frameworks.shared import Loader, Scene
from whygpu.host.base import Host
from whygpu.model.observed import Known, Observed, Undetermined, Unknown
from whygpu.model.target import Framework, Interpreter, Package


def collect(
    host: Host,
    interpreter: Observed[Interpreter],
    packages: Observed[tuple[Package, ...]],
    make_loader: Callable[[], Loader],
) -> Observed[tuple[Framework, ...]]:
    """Every installed framework, TensorFlow first. Each of them gets its own loader."""
    if not isinstance(interpreter, Known):
        return interpreter
    if not isinstance(packages, Known):
        return packages
    scene = Scene(host, interpreter.value, packages.value, make_loader)
    found: list[Framework] = []
    for collector in (tensorflow, keras, jax, torch, others):
        found += (with_amd_targets(host, framework) for framework in collector.collect(scene))
    try:
        return Known(tuple(bare.as_imported(scene, found)), packages.source)
    except Undetermined as error:
        return Unknown(error.reason)
