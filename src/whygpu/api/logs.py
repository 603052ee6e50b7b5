"""Verbs about logs and exceptions: explain, and what whygpu.install() shows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from whygpu.api.machine import diagnose, snapshot
from whygpu.api.releases import place_of_log, place_of_machine, with_releases
from whygpu.causes import catalogue
from whygpu.errors import UsageError
from whygpu.host.local import LocalHost
from whygpu.model.derived import installer_of
from whygpu.model.target import PLAIN_PIP
from whygpu.privacy import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whygpu.host.log_files import OnRead
    from whygpu.model.explanation import Explanation
    from whygpu.model.log import Log
    from whygpu.model.memory_use import MemoryEnd
    from whygpu.model.snapshot import Snapshot
    from whygpu.model.system import OperatingSystem
    from whygpu.planner.remedies import Place

_SYSTEMS: dict[str, OperatingSystem] = {
    "linux": "linux",
    "unknown": "linux",
    "macos": "darwin",
    "windows": "windows",
}
"""The system of each platform that a log can name; most logs come from Linux."""
_LOG_ENDINGS = (".log", ".txt", ".out", ".err", ".gz", ".bz2", ".xz", ".zst", ".ipynb")


def explain(
    log: str | bytes | BaseException | os.PathLike[str],
    *,
    here: Snapshot | None = None,
    memory: MemoryEnd | None = None,
) -> Explanation:
    """What a log, a traceback or an exception means.

    `log` is the text itself, an exception, or a file: a `pathlib.Path`, or its name. `here` is a
    snapshot of the machine that wrote the log; its facts confirm or refute what the log suggests.
    `memory` is what watching the run has shown.

    Example:
        whygpu.explain("Could not load dynamic library 'libcudnn.so.8'")
        whygpu.explain("train.log", here=whygpu.snapshot(probe=False))
    """
    if isinstance(log, BaseException):
        import traceback

        log = "".join(traceback.format_exception(type(log), log, log.__traceback__))
    elif isinstance(log, os.PathLike) or (isinstance(log, str) and _names_a_file(log)):
        return explain_file(os.fspath(log), here=here)
    elif not isinstance(log, str | bytes):
        raise UsageError(
            f"expected the text of a log, an exception or a file, received {type(log).__name__}",
            option="log",
        )
    return explain_text(log, here=here, memory=memory)


def explain_text(
    log: str | bytes,
    *,
    here: Snapshot | None = None,
    memory: MemoryEnd | None = None,
    name: str = "",
) -> Explanation:
    """The same for the text itself, whatever it looks like; `name` says where it is from."""
    piece = log.encode("utf-8", "surrogateescape") if isinstance(log, str) else log
    return _explained([piece], name, here, memory)


def _names_a_file(text: str) -> bool:
    """One word that ends like the name of a log is not a log."""
    if len(text.split(maxsplit=1)) != 1 or "\n" in text:
        return False
    return text.lower().endswith(_LOG_ENDINGS) or os.path.isfile(text)


def explain_file(
    path: str, *, here: Snapshot | None = None, on_read: OnRead = lambda done, size: None
) -> Explanation:
    """What the log in a file means, or for "-" standard input; a log may have any size.

    `on_read` is called with the bytes that were read so far, and the size of the file (0: unknown).
    """
    from whygpu.host import log_files

    pieces = log_files.pieces_of_input if path == "-" else log_files.pieces_of_file
    return _explained(pieces(path, on_read), "" if path == "-" else path, here, None)


def _explained(
    pieces: Iterable[bytes], name: str, here: Snapshot | None, memory: MemoryEnd | None
) -> Explanation:
    from whygpu.diagnosis.explainer import explain as _explain
    from whygpu.readers.log import read_pieces

    log = read_pieces(pieces, name)._replace(memory=memory)
    same = here if here is not None and _of_this_machine(log, here) else None
    if same is not None:
        log = log._replace(processor=same.system.cpu)
    explanation = _explain(log, catalogue())
    if here is not None:
        from whygpu.diagnosis.corroboration import corroborate

        explanation = corroborate(explanation, log, diagnose(here), catalogue())
    explanation = _ready(explanation, log, same)
    # Answers get posted, and logs are full of home folders and sometimes hold a key.
    platform = LocalHost().platform
    installer = Redactor(platform, keeps_other_homes=True).value(explanation.installer)
    cleaned = Redactor(platform).value(explanation, context=log.text)
    return cleaned._replace(installer=installer)


def _of_this_machine(log: Log, here: Snapshot) -> bool:
    from whygpu.diagnosis.other_machine import other_machine

    return not other_machine(log, here)


def _ready(explanation: Explanation, log: Log, here: Snapshot | None) -> Explanation:
    """With the releases to install, for the machine that was looked at or the one in the log."""

    def place() -> Place:
        return place_of_log(log) if here is None else place_of_machine(here)

    return explanation._replace(
        root_causes=with_releases(explanation.root_causes, place),
        symptoms=with_releases(explanation.symptoms, place),
        installer=PLAIN_PIP._replace(system=_SYSTEMS[log.platform])
        if here is None
        else installer_of(here),
    )


def explain_uncaught(show: Callable[[Explanation], str]) -> None:
    """From now on, explain uncaught exceptions below their traceback. `show` writes the text.

    Those that end the program, those of threads, and those of notebook cells.
    """
    from whygpu.launch.excepthook import install

    def text_for(error: BaseException) -> str:
        explanation = explain(error, here=snapshot(sys.executable, probe=False))
        return show(explanation) if explanation.verdict == "found" else ""

    install(text_for)
