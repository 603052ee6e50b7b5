"""What the verbs do, as functions: `import whygpu; whygpu.check()`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from whygpu.causes import catalogue, machine_catalogue
from whygpu.diagnosis.engine import diagnose as _diagnose
from whygpu.errors import UsageError
from whygpu.host.files import read_given
from whygpu.host.local import LocalHost
from whygpu.model.codec import DecodeError, decode
from whygpu.model.derived import installer_of, nvidia_gpu
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.report import Report
from whygpu.model.snapshot import SCHEMA, Snapshot
from whygpu.model.target import PLAIN_PIP
from whygpu.privacy import Redactor
from whygpu.probes import DEFAULT_TIMEOUT
from whygpu.readers import bounded_json

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from whygpu.model.code_finding import LintReport
    from whygpu.model.estimate import MemoryEstimate, MemoryRoom
    from whygpu.model.explanation import Explanation
    from whygpu.model.finding import Finding
    from whygpu.model.log import Log
    from whygpu.model.memory_use import MemoryEnd
    from whygpu.planner.planning import Answer
    from whygpu.planner.remedies import Place
    from whygpu.probes.runner import Progress

LARGEST_SNAPSHOT = 1 << 24
"""Bytes. With all probes and what they printed, a snapshot has less than 1 MiB."""


def check(
    python: str | None = None,
    *,
    probe: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    on_progress: Progress | None = None,
) -> Report:
    """Does each framework of the interpreter `python` use the GPU, and if not, why not?

    `python` is an interpreter, a virtual environment, or None for the active environment.
    """
    taken = snapshot(python, probe=probe, timeout=timeout, on_progress=on_progress, to_post=False)
    return diagnose(taken)


def snapshot(
    python: str | None = None,
    *,
    probe: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    on_progress: Progress | None = None,
    try_instructions: bool = False,
    to_post: bool = True,
) -> Snapshot:
    """Everything whygpu sees of this machine and one environment, with private data removed.

    `try_instructions`: see which instructions of the processor work here. That is done anyway
    where there is reason to. `to_post`: without it, the homes of other users stay, for commands
    that have to work here.
    """
    from whygpu.collectors.collect import collect

    host = LocalHost()
    # Importing fifty causes takes about as long as the target takes to answer.
    taken = collect(host, python, meanwhile=machine_catalogue)
    if probe:
        taken = _probed(host, taken, timeout, on_progress)
    if try_instructions or any(probe.illegal_instruction for probe in taken.probes):
        from whygpu.collectors.instructions import with_trials

        taken = with_trials(host, taken)
    return Redactor(host.platform, keeps_other_homes=not to_post).value(taken)


def _probed(
    host: LocalHost, taken: Snapshot, timeout: float, on_progress: Progress | None
) -> Snapshot:
    from whygpu.probes.runner import probes_for, run_probes

    interpreter, frameworks = taken.target.interpreter, taken.target.frameworks
    if not isinstance(interpreter, Known) or not isinstance(frameworks, Known):
        return taken
    memory = taken.system.memory.available_bytes
    # The driver is asked wherever there may be one; where there is none, nothing can answer.
    cuda = not isinstance(nvidia_gpu(taken), Absent) or isinstance(taken.driver.cuda_library, Known)
    probes = run_probes(
        interpreter.value.path,
        probes_for([framework.name for framework in frameworks.value], cuda=cuda),
        timeout=timeout,
        environ=host.environ,
        memory_available=memory.value if isinstance(memory, Known) else None,
        on_progress=on_progress,
    )
    return taken.with_probes(probes)


def diagnose(snapshot: Snapshot) -> Report:
    """Judge a snapshot, of this machine or of another."""
    report = _diagnose(snapshot, machine_catalogue())
    return report._replace(findings=_with_releases(report.findings, lambda: _place_of(snapshot)))


def explain(
    log: str | bytes | BaseException,
    *,
    here: Snapshot | None = None,
    memory: MemoryEnd | None = None,
) -> Explanation:
    """What a log, a traceback or an exception means.

    `here` is a snapshot of the machine that wrote it, whose facts confirm or refute; `memory` what
    watching the run has shown.
    """
    if isinstance(log, BaseException):
        import traceback

        log = "".join(traceback.format_exception(type(log), log, log.__traceback__))
    piece = log.encode("utf-8", "surrogateescape") if isinstance(log, str) else log
    return explain_pieces([piece], here=here, memory=memory)


def explain_pieces(
    pieces: Iterable[bytes],
    name: str = "",
    *,
    here: Snapshot | None = None,
    memory: MemoryEnd | None = None,
) -> Explanation:
    """The same for a log of any size, as it comes."""
    from whygpu.diagnosis.explainer import explain as _explain
    from whygpu.readers.log import read_pieces

    processor = here.system.cpu if here is not None else None
    log = read_pieces(pieces, name)._replace(memory=memory, processor=processor)
    explanation = _explain(log, catalogue())
    if here is not None:
        from whygpu.diagnosis.corroboration import corroborate

        explanation = corroborate(explanation, log, diagnose(here), catalogue())
    explanation = _ready(explanation, log, here)
    # Answers get posted, and logs are full of home folders and now and then hold a key.
    platform = LocalHost().platform
    installer = Redactor(platform, keeps_other_homes=True).value(explanation.installer)
    cleaned = Redactor(platform).value(explanation, context=log.text)
    return cleaned._replace(installer=installer)


def _ready(explanation: Explanation, log: Log, here: Snapshot | None) -> Explanation:
    """With the releases to install, for the machine that was looked at or the one in the log."""

    def place() -> Place:
        from whygpu.planner.remedies import place_of_log

        return place_of_log(log) if here is None else _place_of(here)

    return explanation._replace(
        root_causes=_with_releases(explanation.root_causes, place),
        symptoms=_with_releases(explanation.symptoms, place),
        installer=PLAIN_PIP if here is None else installer_of(here),
    )


def _with_releases(
    findings: tuple[Finding, ...], place: Callable[[], Place]
) -> tuple[Finding, ...]:
    """What remedies wish to install, chosen by the planner, which is imported only for that."""
    if not any(remedy.wishes for finding in findings for remedy in finding.remedies):
        return findings
    from whygpu.planner.remedies import fulfilled

    return fulfilled(findings, place)


def _place_of(machine: Snapshot) -> Place:
    from whygpu.planner.remedies import place_of

    return place_of(machine)


def install() -> None:
    """Explain exceptions that have to do with the GPU, below their traceback.

    For what ends the program, for threads, and for cells of a notebook.
    """
    from whygpu.launch.excepthook import install as _install

    _install(_explanation_of)


def _explanation_of(error: BaseException) -> str:
    explanation = explain(error, here=snapshot(sys.executable, probe=False))
    if explanation.verdict != "found":
        return ""
    from whygpu.render.explain_text import render

    return render(explanation, width=80, color=False, verbose=False)


def plan(
    *wishes: str,
    machine: Snapshot | None = None,
    python: str | None = None,
    driver: str | None = None,
    gpu: str | None = None,
    glibc: str | None = None,
    platform: str | None = None,
) -> Answer:
    """Which releases can use the GPU of a machine, together: plan("tensorflow", "jax==0.10").

    The machine is this one or a snapshot's; each option overrides one of its facts, so that
    plan("torch", python="3.12", driver="535.54", gpu="RTX 4090") needs no machine at all.
    """
    from whygpu.planner.candidates import Table
    from whygpu.planner.machine import described, from_snapshot
    from whygpu.planner.planning import make_plan
    from whygpu.planner.wishes import parse_all
    from whygpu.tables.releases import versions_of

    spec = described(
        from_snapshot(machine or snapshot(probe=False)),
        python=python,
        driver=driver,
        gpu=gpu,
        glibc=glibc,
        platform=platform,
    )
    return make_plan(spec, parse_all(list(wishes)), Table(versions_of))


def lint(
    what: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    tensorflow: str | None = None,
) -> LintReport:
    """Which lines mishandle devices? Of files and folders, or of source that is given as text.

    A text with a line break in it is source; anything else is a path. `tensorflow` is the version
    that the code is for, where its own settings do not say it.
    """
    import os

    from whygpu.linter import files, lint_files, one_file, settings

    causes = lint_files.lint_causes()
    line = settings.tensorflow_line(tensorflow, "tensorflow") if tensorflow else None
    if isinstance(what, str) and "\n" in what:
        chosen = settings.Settings(tensorflow=line)
        result = one_file.lint_content("<source>", what.encode(), chosen, causes)
        return lint_files.report(1, [result])
    given = [what] if isinstance(what, (str, os.PathLike)) else what
    paths = [os.fspath(path) for path in given]
    chosen = settings.load(paths, causes)
    if line is not None:
        chosen = chosen._replace(tensorflow=line)
    return lint_files.lint_files(files.find(paths, chosen), chosen)


def estimate_memory(
    what: str,
    *,
    batch_size: int = 32,
    train: bool = True,
    optimizer: str | None = None,
    mixed_precision: bool = False,
    gpu: str | None = None,
    limit: str | int | None = None,
    backend: str | None = None,
    input: str | None = None,
    python: str | None = None,
    timeout: float | None = None,
    host_memory: str | int | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> MemoryEstimate:
    """What a model takes on a GPU, whether it fits there, and the largest batch that would.

    `what` is "model.keras" or "file.py:function". It is held against a `gpu` ("RTX 4090"), a
    `limit` (bytes, or "8GiB"), or else the free memory of this machine's GPU; none has to be there.
    `host_memory` (bytes, or "32GiB") is the main memory that the estimating process may take.
    """
    import os

    from whygpu.memory import estimate, gpu_rooms
    from whygpu.memory.amounts import in_bytes
    from whygpu.work.named_work import parse_what

    host = LocalHost()
    room: MemoryRoom | None
    no_room = ""
    if limit is not None:
        room = gpu_rooms.of_limit(in_bytes(limit))
    elif gpu is not None:
        room = gpu_rooms.of_name(gpu)
    else:
        from whygpu.collectors import driver

        seen = gpu_rooms.of_machine(driver.collect(host)[0].gpus)
        room = seen.value if isinstance(seen, Known) else None
        no_room = seen.reason if isinstance(seen, Unknown) else ""
    wanted = estimate.Wanted(
        name=what,
        what=parse_what(what, ("model-file", "function")),
        batch=batch_size,
        mode="train" if train else "infer",
        optimizer=optimizer,
        mixed=mixed_precision,
        backend=backend,
        input=input,
        room=room,
        no_room=no_room,
        timeout=estimate.DEFAULT_TIMEOUT if timeout is None else timeout,
        host_limit=None if host_memory is None else in_bytes(host_memory, "--host-memory"),
    )
    estimate.check(wanted)
    return estimate.estimate(
        wanted, _interpreter(host, python), os.environ, on_progress or (lambda text: None)
    )


def _interpreter(host: LocalHost, given: str | None) -> str:
    from whygpu.collectors import interpreter

    try:
        return interpreter.resolve(host, given) if given else interpreter.find_default(host)
    except interpreter.NoInterpreter as error:
        raise UsageError(str(error)) from error


def load_snapshot(path: str) -> Snapshot:
    """Read a snapshot from a file, or from standard input for "-"."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(LARGEST_SNAPSHOT + 1)
            if len(content) > LARGEST_SNAPSHOT:
                raise ValueError(f"it is larger than {LARGEST_SNAPSHOT >> 20} MiB")
        else:
            content = read_given(path, LARGEST_SNAPSHOT)
        data = bounded_json.loads(content)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(
            f"{path} is no snapshot: {error}; `whygpu snapshot -o FILE` writes one"
        ) from error
    if isinstance(data, dict) and "snapshot" in data and "verdict" in data:
        # The output of `check --json` holds the snapshot it was made from.
        data = data["snapshot"]
    found = data.get("schema") if isinstance(data, dict) else None
    if found != SCHEMA:
        raise UsageError(
            f"{path} is no snapshot that this version reads: expected schema {SCHEMA}, "
            f"received {repr(found)[:40]}; take it again with this version, or update whygpu"
        )
    try:
        return decode(Snapshot, data)
    except DecodeError as error:
        raise UsageError(f"{path} is a damaged snapshot: {error}") from error
