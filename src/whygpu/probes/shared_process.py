"""Whether Keras can be probed in the process of its backend's probe, which saves an import."""

from __future__ import annotations

from typing import Literal

from whygpu.model.observed import Known
from whygpu.model.probe import Probe, ProbeName
from whygpu.model.snapshot import Snapshot

_HOSTS: tuple[Literal["tensorflow", "jax", "torch"], ...] = ("tensorflow", "jax", "torch")
_ORDER_MATTERS = ("aarch64", "arm64")
"""Here, an import can fail because the libraries of an earlier one took the room for thread-local
storage ("cannot allocate memory in static TLS block"), so the order of imports decides."""


def host_of_keras(machine: Snapshot) -> ProbeName | None:
    """The probe whose process may run Keras's probe as well; None if Keras needs its own.

    The process would import the same packages for Keras alone, but in another order. So they must
    fit together as far as their metadata tell: a pair that does not fit may fail in one order only.
    """
    keras, conflicts = machine.framework("keras"), machine.target.conflicts
    if not isinstance(keras, Known) or not isinstance(conflicts, Known):
        return None
    if keras.value.keras is None or machine.system.cpu.architecture in _ORDER_MATTERS:
        return None
    backend = keras.value.keras.backend
    host = next(
        (name for name in _HOSTS if isinstance(backend, Known) and backend.value == name), None
    )
    if host is None:
        return None
    framework = machine.framework(host)
    if not isinstance(framework, Known):
        return None
    pair = (keras.value.distribution, framework.value.distribution)
    return None if any(each.package in pair for each in conflicts.value) else host


def is_sound(probe: Probe) -> bool:
    """Everything was looked at and every result is right, so that nothing is left to explain."""
    return (
        probe.ended == "finished"
        and isinstance(probe.devices, Known)
        and len(probe.operations) > 0
        and all(isinstance(each.correct, Known) and each.correct.value for each in probe.operations)
    )


def is_sound_guest(probe: Probe, host: ProbeName) -> bool:
    """The same for a probe in another's process, which it shares only with its own backend."""
    return is_sound(probe) and probe.fact("backend") == host
