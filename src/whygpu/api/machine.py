"""Verbs about the machine and one environment: check, snapshot, diagnose, load_snapshot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from whygpu.api.arguments import THIS_PYTHON, checked
from whygpu.api.releases import place_of_machine, with_releases
from whygpu.causes import machine_catalogue
from whygpu.diagnosis.engine import diagnose as _diagnose
from whygpu.errors import Option, UsageError
from whygpu.host.files import read_given
from whygpu.host.local import LocalHost
from whygpu.model.derived import nvidia_gpu
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.units import size_text
from whygpu.privacy import Redactor
from whygpu.probes import DEFAULT_TIMEOUT
from whygpu.readers import limits
from whygpu.readers.saved_snapshot import not_a_snapshot, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whygpu.probes.runner import Progress

LONGEST_TIMEOUT = 86400.0
LONGEST_STRESS = 600.0
"""Seconds for one GPU. What shows only after hours is the business of other tools."""
STRESS_ON_LINUX = "whygpu puts GPUs under load on Linux only"
NOT_RUN_ON_WINDOWS = "whygpu runs frameworks on Linux and macOS only; this is Windows"


@checked
def check(
    python: str | None = THIS_PYTHON,
    *,
    probe: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    stress: float | None = None,
    stress_busy: bool = False,
    on_progress: Progress | None = None,
) -> Report:
    """Does each framework of one environment use the GPU, and if not, why not?

    `python` is an interpreter or a virtual environment: the one of this program, unless another
    is given. None means the active environment of the shell, as on the command line.
    With `probe=False`, files are read and no framework is run. `timeout` is in seconds, for each
    framework. With `stress`, each GPU that nobody uses is then put under load for so many seconds:
    how fast it copies and multiplies, and whether its results are right. `stress_busy=True` also
    tests GPUs that are in use.

    Example:
        report = whygpu.check()
        report.verdict            # "gpu", "cpu", "broken", "no-gpu" or "unknown"
        report.root_causes        # what is wrong, each with evidence and remedies
    """
    taken = snapshot(
        python,
        probe=probe,
        timeout=timeout,
        stress=stress,
        stress_busy=stress_busy,
        on_progress=on_progress,
        to_post=False,
    )
    return diagnose(taken)


@checked
def snapshot(
    python: str | None = THIS_PYTHON,
    *,
    probe: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    stress: float | None = None,
    stress_busy: bool = False,
    on_progress: Progress | None = None,
    try_instructions: bool = False,
    to_post: bool = True,
) -> Snapshot:
    """Everything whygpu sees of this machine and one environment, with private data removed.

    `python`, `probe`, `timeout`, `stress` and `stress_busy` are those of `check`.
    `try_instructions`: test which instructions of the processor work here; that also happens
    whenever there is reason to.
    `to_post=False` keeps paths in other users' homes, for commands that must work on this machine.

    Example:
        here = whygpu.snapshot(probe=False)
        whygpu.diagnose(here)
    """
    if stress is not None and not 0 < stress <= LONGEST_STRESS:
        raise UsageError(
            f"expected a number of seconds up to {LONGEST_STRESS:.0f}",
            option="stress",
            value=stress,
        )
    if stress_busy and stress is None:
        raise UsageError("it needs ", Option("stress"), option="stress_busy")
    host = LocalHost()
    taken = _taken(host, python, probe, timeout, on_progress, try_instructions)
    if stress is not None:
        taken = _stressed(host, taken, timeout, stress, stress_busy, on_progress)
    return Redactor(host.platform, keeps_other_homes=not to_post).value(taken)


def examine(
    python: str | None,
    environ: Mapping[str, str],
    *,
    timeout: float = DEFAULT_TIMEOUT,
    on_progress: Progress | None = None,
) -> Report:
    """A check as a program with these variables would see it, with all paths as they are."""
    return diagnose(_taken(LocalHost(environ), python, True, timeout, on_progress, False))


def _taken(
    host: LocalHost,
    python: str | None,
    probe: bool,
    timeout: float,
    on_progress: Progress | None,
    try_instructions: bool,
) -> Snapshot:
    from whygpu.collectors.collect import collect

    if not 0 < timeout <= LONGEST_TIMEOUT:
        raise UsageError(
            "expected a number of seconds between 0 and a day", option="timeout", value=timeout
        )
    # Importing fifty causes takes about as long as the target takes to answer.
    taken = collect(host, python, meanwhile=machine_catalogue)
    if probe and host.platform.system == "Windows":
        taken = taken._replace(probes_left_out=NOT_RUN_ON_WINDOWS)
    elif probe:
        taken = _probed(host, taken, timeout, on_progress)
    if try_instructions or any(probe.illegal_instruction for probe in taken.probes):
        from whygpu.collectors.instructions import with_trials

        taken = with_trials(host, taken)
    return taken


def _probed(
    host: LocalHost, taken: Snapshot, timeout: float, on_progress: Progress | None
) -> Snapshot:
    from whygpu.probes.runner import probes_for, run_probes
    from whygpu.probes.shared_process import host_of_keras

    interpreter, frameworks = taken.target.interpreter, taken.target.frameworks
    if not isinstance(interpreter, Known) or not isinstance(frameworks, Known):
        return taken
    memory = taken.system.memory.available_bytes
    # Ask the driver wherever there may be one; without one, nothing can answer.
    cuda = not isinstance(nvidia_gpu(taken), Absent) or isinstance(taken.driver.cuda_library, Known)
    probes = run_probes(
        interpreter.value.path,
        probes_for([framework.name for framework in frameworks.value], cuda=cuda),
        timeout=timeout,
        environ=host.environ,
        memory_available=memory.value if isinstance(memory, Known) else None,
        on_progress=on_progress,
        keras_host=host_of_keras(taken),
    )
    return taken.with_probes(probes)


def _stressed(
    host: LocalHost,
    taken: Snapshot,
    timeout: float,
    seconds: float,
    even_if_busy: bool,
    on_progress: Progress | None,
) -> Snapshot:
    from whygpu.probes.runner import ProgressEvent
    from whygpu.stress.testing import with_stress

    if host.platform.system != "Linux":
        return taken._replace(stress=Unknown(STRESS_ON_LINUX))

    def tell(text: str) -> None:
        if on_progress is not None:
            on_progress(ProgressEvent("stress", "stage", text))

    return with_stress(
        taken,
        host.environ,
        start_seconds=timeout,
        gpu_seconds=seconds,
        even_if_busy=even_if_busy,
        on_progress=tell,
    )


@checked
def diagnose(snapshot: Snapshot) -> Report:
    """Judge a snapshot, of this machine or of another one.

    Example:
        whygpu.diagnose(whygpu.load_snapshot("machine.json"))
    """
    report = _diagnose(snapshot, machine_catalogue())
    findings = with_releases(report.findings, lambda: place_of_machine(snapshot))
    return report._replace(findings=findings)


@checked
def load_snapshot(path: str) -> Snapshot:
    """Read a snapshot from a file, or from standard input for "-".

    `whygpu snapshot -o machine.json` writes such a file; the output of `whygpu check --json`
    holds one as well.

    Example:
        whygpu.load_snapshot("machine.json")
    """
    try:
        if path == "-":
            content = sys.stdin.buffer.read(limits.SNAPSHOT + 1)
            if len(content) > limits.SNAPSHOT:
                raise not_a_snapshot(path, f"it is larger than {size_text(limits.SNAPSHOT)}")
        else:
            content = read_given(path, limits.SNAPSHOT)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return read_snapshot(content, path)
