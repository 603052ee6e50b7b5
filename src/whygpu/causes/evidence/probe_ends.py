"""What the frameworks' probes show about a failure, for the causes that use it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from whygpu.model.derived import keras_backend
from whygpu.model.finding import Evidence, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known, Observed, Unknown, need
from whygpu.model.outside_text import excerpt
from whygpu.model.probe import Probe, ProbeName, ProbeOperation
from whygpu.model.remedy import shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, FrameworkName

_PROBES: Mapping[FrameworkName, ProbeName] = {
    "tensorflow": "tensorflow",
    "keras": "keras",
    "jax": "jax",
    "torch": "torch",
}


GPU_USERS: tuple[Literal["tensorflow", "jax", "torch"], ...] = ("tensorflow", "jax", "torch")
"""Frameworks with their own devices. Keras has none: it is judged by its backend."""


def framework_probes(machine: Snapshot) -> Iterator[tuple[Framework, Observed[Probe]]]:
    """Each installed framework that can be run, with the result of its probe."""
    for framework in need(machine.target.frameworks):
        name = _PROBES.get(framework.name)
        if name is not None:
            yield framework, machine.probe(name)


def own_probes(machine: Snapshot) -> Iterator[tuple[Framework, Observed[Probe]]]:
    """Like framework_probes, without a Keras that fails only because its backend does."""
    for framework, probe in framework_probes(machine):
        if not (isinstance(probe, Known) and fails_like_its_backend(machine, framework)):
            yield framework, probe


def fails_like_its_backend(machine: Snapshot, framework: Framework) -> bool:
    """Whether this is Keras and its backend's probe ended in the same way, or for that reason."""
    if framework.name != "keras":
        return False
    backend = keras_backend(machine, framework)
    probe = machine.probe("keras")
    below = next(
        (
            machine.probe(name)
            for name in _PROBES.values()
            if isinstance(backend, Known) and backend.value == name
        ),
        None,
    )
    if not isinstance(probe, Known) or not isinstance(below, Known):
        return False
    if failed_on_cpu(probe.value) and failed_on_cpu(below.value):
        return True
    return (
        probe.value.ended not in ("finished", "not-started")
        and probe.value.ended == below.value.ended
        and (
            first_error(probe.value) == first_error(below.value)
            or _misses_a_part_of(below.value, first_error(probe.value))
        )
    )


def _misses_a_part_of(backend: Probe, error: str) -> bool:
    """The error names a part of a backend that cannot be imported itself."""
    return not imported(backend) and f"'{backend.name}." in error


def imported(probe: Probe) -> bool:
    """The probe got past the import."""
    return probe.stage not in ("start", "import")


def first_error(probe: Probe) -> str:
    """The first error of the chain, which later errors often hide."""
    return probe.fact("first exception") or probe.how


def failed_on_cpu(probe: Probe) -> ProbeOperation | None:
    """An operation on the CPU that raised an error, in a framework that was imported."""
    return next(
        (
            operation
            for operation in probe.operations
            if operation.kind == "cpu" and isinstance(operation.ran_on, Unknown)
        ),
        None,
    )


_NO_MEMORY = late(
    r"bad_alloc|[Cc](?:annot|an't) allocate memory(?! in static TLS)|failed to allocate memory"
    r"|not enough memory|^MemoryError",
    re.MULTILINE,
)


def for_refused_memory(text: str) -> tuple[Remedy, ...]:
    """What to look at if an error or a log says that there was no memory."""
    if not _NO_MEMORY.search(text):
        return ()
    return (
        Remedy(
            "The system gave it no more memory. Check whether a limit is set (ulimit -v prints "
            "kilobytes, or unlimited), and how much memory is free.",
            shell_script("ulimit -v; free -h"),
        ),
    )


def message_in(probe: Probe, message: re.Pattern[str]) -> re.Match[str] | None:
    """A message in a probe: in its error first, then in its facts and log."""
    facts = (text for _, text in probe.facts)
    return _find(message, (*_error_lines(probe), *facts, *probe.log))


def failure_message(probe: Probe, message: re.Pattern[str]) -> re.Match[str] | None:
    """The message with which an import, or then an operation on the CPU, failed.

    If an exception ended it, only the exception counts: a message that the framework printed
    before is not the reason. If native code ended it, only its log is available.
    """
    operation = failed_on_cpu(probe)
    if operation is not None and isinstance(operation.ran_on, Unknown):
        return message.search(operation.ran_on.reason)
    if probe.ended == "finished" or imported(probe):
        return None
    return _find(message, _error_lines(probe) if probe.ended == "exception" else probe.log)


def _error_lines(probe: Probe) -> tuple[str, ...]:
    return (first_error(probe), probe.how, *reversed(probe.traceback))


def _find(message: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    return next((match for line in lines if (match := message.search(line))), None)


def quoted(probe: Probe, text: str) -> Evidence:
    """A line of the probe as evidence."""
    return Evidence("probe", f"{probe.name} probe, stage {probe.stage}", excerpt(text.strip()))
