"""Verbs about GPU memory: memory_holders, estimate_memory, find_batch_size."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from whygpu.api.arguments import THIS_PYTHON, checked
from whygpu.errors import PolicyError, UsageError
from whygpu.host.local import LocalHost
from whygpu.host.systems import require_linux, require_posix
from whygpu.model.observed import Known, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from whygpu.memory.find import OnProgress
    from whygpu.model.batch import BatchResult
    from whygpu.model.estimate import MemoryEstimate, MemoryRoom
    from whygpu.model.holders import HoldersReport
    from whygpu.model.snapshot import Snapshot

_OTHER_NAMES = {"pytorch": "torch", "tf": "tensorflow"}


@checked
def memory_holders(
    python: str | None = THIS_PYTHON,
    *,
    gpu: str | int | None = None,
    machine: Snapshot | None = None,
) -> HoldersReport:
    """Who holds the memory of each GPU, and what would a new process take?

    `python` is the interpreter or virtual environment whose frameworks would start: this program's,
    unless another is given; None means the active environment of the shell. `gpu` limits the answer
    to GPUs: 0, "0,2" or a name. `machine` is a snapshot of another machine, to judge instead.

    Example:
        whygpu.memory_holders()
        whygpu.memory_holders(gpu=0)
    """
    from whygpu.api.machine import diagnose, snapshot
    from whygpu.memory.gpu_holders import judge
    from whygpu.model.finding import MACHINE

    seen = snapshot(python, probe=False) if machine is None else machine
    report = judge(seen, _numbers(seen, None if gpu is None else str(gpu)))
    if isinstance(report.gpus, Known) and report.exit_code == 0:
        return report
    causes = (
        f"{finding.code} {finding.cause}: {finding.message}"
        for finding in diagnose(seen).root_causes
        if finding.subject == MACHINE and finding.severity != "info"
    )
    return report._replace(causes=tuple(causes))


def _numbers(machine: Snapshot, text: str | None) -> tuple[int, ...] | None:
    """The GPUs that the text names; None for all, and if there is none to choose from."""
    from whygpu.launch.devices import find

    if text is None:
        return None
    words = tuple(word.strip() for word in text.removeprefix("gpu:").split(","))
    # Snapshots hold no UUIDs, so none can be looked up in one.
    if not all(words) or text.lower().startswith(("gpu-", "mig-")):
        raise UsageError(
            "expected a number such as 0, several (0,2), or a name", option="gpu", value=text
        )
    gpus = machine.driver.gpus
    if not (isinstance(gpus, Known) and gpus.value):
        return None
    try:
        return tuple(gpu.number for gpu in find(words, gpus.value, ()))
    except PolicyError as error:
        raise UsageError(*error.args, option="gpu", value=text) from error


@checked
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
    python: str | None = THIS_PYTHON,
    timeout: float | None = None,
    host_memory: str | int | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
) -> MemoryEstimate:
    """How much GPU memory a model takes, whether it fits, and the largest batch that would.

    `what` is "model.keras" or "file.py:function". The estimate is held against a `gpu`
    ("RTX 4090"), a `limit` (bytes, or "8GiB"), or else the free memory of this machine's GPU; no
    GPU is needed. `input` is the shape of one example ("3x224x224") if the model does not say it.
    `host_memory` (bytes, or "32GiB") is the main memory that the estimating process may take, and
    `python` the environment that has the framework: this program's, unless another is given.

    Example:
        whygpu.estimate_memory("train.py:build_model", batch_size=64, gpu="RTX 4090")
    """
    require_posix("memory estimate")
    from whygpu.collectors import interpreter
    from whygpu.memory import estimator
    from whygpu.memory.amounts import in_bytes
    from whygpu.work.named_work import parse_what

    host = LocalHost()
    room, no_room = _room(host, gpu, limit)
    wanted = estimator.Wanted(
        name=what,
        what=parse_what(what, ("model-file", "function")),
        batch=batch_size,
        mode="train" if train else "infer",
        optimizer=optimizer,
        mixed=mixed_precision,
        backend=None if backend is None else _OTHER_NAMES.get(backend, backend),
        input=input,
        room=room,
        no_room=no_room,
        timeout=estimator.DEFAULT_TIMEOUT if timeout is None else timeout,
        host_limit=None if host_memory is None else in_bytes(host_memory, "host_memory"),
    )
    # Before looking for the interpreter: a wrong number is the more useful error.
    estimator.check(wanted)
    return estimator.estimate(wanted, interpreter.find(host, python), os.environ, on_progress)


def _room(
    host: LocalHost, gpu: str | None, limit: str | int | None
) -> tuple[MemoryRoom | None, str]:
    """What the estimate is held against, or why that is unknown."""
    from whygpu.memory import gpu_rooms
    from whygpu.memory.amounts import in_bytes

    if limit is not None:
        return gpu_rooms.of_limit(in_bytes(limit, "limit")), ""
    if gpu is not None:
        return gpu_rooms.of_name(gpu), ""
    from whygpu.collectors import driver

    seen = gpu_rooms.of_machine(driver.collect(host)[0].gpus)
    if isinstance(seen, Known):
        return seen.value, ""
    return None, seen.reason if isinstance(seen, Unknown) else ""


@checked
def find_batch_size(
    step: str | Callable[..., Any] | Any,
    *,
    python: str | None = THIS_PYTHON,
    device: str | None = None,
    limit: int | str | None = None,
    margin: float | str = 0.0,
    start: int | None = None,
    largest: int | None = None,
    multiple_of: int = 1,
    infer: bool = False,
    optimizer: str | None = None,
    input: str | None = None,
    timeout: float | None = None,
    cache: bool = True,
    on_progress: OnProgress = lambda progress: None,
) -> BatchResult:
    """The largest batch that fits, found by trying; `.batch` is the number, None if none is safe.

    `step` is a function at the top level of a file, called with the batch size; or a function that
    returns a model, "train.py:make_model", "model.keras", or a model itself. Each trial runs in a
    process of its own that loads the file anew, with `python`: this program's interpreter, unless
    another is given (None: the active environment of the shell). `limit` (bytes, or "8GiB") is the
    memory that it may use, `margin` (0.05, or "5%") the part that stays free. No batch above
    `largest` is tried. `timeout` is in seconds, for each trial.

    Example:
        whygpu.find_batch_size("train.py:step", limit="8GiB", margin="5%").batch
    """
    require_linux("memory find")
    from whygpu.launch.policy_options import parse_device
    from whygpu.memory import find, from_program
    from whygpu.memory.amounts import in_bytes, parse_part
    from whygpu.memory.batch_search import FIRST_BATCH

    from_program.refuse_in_trial(os.environ)
    with from_program.named_step(step) as named:
        wanted = find.Wanted(
            name=named.name,
            what=named.what,
            pickled=named.pickled,
            python=python,
            device=parse_device(device) if device is not None else None,
            limit=in_bytes(limit, "limit") if limit is not None else None,
            margin=parse_part(margin, "margin") if isinstance(margin, str) else margin,
            start=FIRST_BATCH if start is None else start,
            largest=largest,
            multiple_of=multiple_of,
            infer=infer,
            optimizer=optimizer,
            input=input,
            timeout=find.DEFAULT_TIMEOUT if timeout is None else timeout,
            cache=cache,
            # Modules that only this program finds are of use to its own interpreter alone.
            search_path=tuple(filter(None, sys.path)) if python == THIS_PYTHON else (),
        )
        result = find.find(wanted, os.environ, on_progress)
    return result._replace(notes=(*result.notes, *from_program.held_by_this_program()))
