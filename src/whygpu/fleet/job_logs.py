"""Finds the logs of jobs in folders, and explains each in a few words."""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.causes import catalogue
from whygpu.diagnosis.explainer import explain
from whygpu.errors import UsageError
from whygpu.fleet.folders import also_closed, files_below
from whygpu.host.log_files import pieces_of_file
from whygpu.model.explanation import Explanation
from whygpu.model.fleet import UnreadFolder
from whygpu.model.fleet_logs import JobLog, UnreadLog
from whygpu.model.outside_text import excerpt
from whygpu.readers.log import read_pieces
from whygpu.readers.unpacking import without_packing

LOG_NAMES = (
    *("*.log", "*.txt", "*.out", "*.err", "*.log.*", "*.out.*", "*.err.*"),
    # PBS and Grid Engine: name.o1234, name.e1234
    *("*.o[0-9]*", "*.e[0-9]*", "stdout", "stderr"),
)
"""Names of logs. A folder of jobs also has checkpoints and data, which may be very large."""
_LONGEST_NODE = 100
_LINE_NUMBER = re.compile(r"\bline \d+")


class LogFile(NamedTuple):
    path: str
    below: str
    """The path below the folder that the user named."""


class FoundLogs(NamedTuple):
    logs: list[LogFile]
    other_files: int
    unread_folders: tuple[UnreadFolder, ...] = ()


def find_logs(given: Sequence[str], names: Sequence[str] = ()) -> FoundLogs:
    """The logs in files and folders. `names` are patterns instead of the usual names of logs."""
    pattern = re.compile("|".join(map(fnmatch.translate, names or LOG_NAMES)))
    found: dict[str, LogFile] = {}
    closed: list[UnreadFolder] = []
    others = 0
    for path in given:
        if not os.path.isdir(path):
            if not os.path.lexists(path):
                raise UsageError(f"there is no {path}; name folders of logs, or logs")
            found.setdefault(os.path.abspath(path), LogFile(path, os.path.basename(path)))
            continue
        for file in files_below(path, closed):
            if _is_log(os.path.basename(file), pattern):
                log = LogFile(file, os.path.relpath(file, path))
                found.setdefault(os.path.abspath(file), log)
            else:
                others += 1
    if not found:
        raise UsageError(
            f"no log in {', '.join(given)}: looked for files named "
            f"{', '.join(names or LOG_NAMES)}, compressed or not; --name PATTERN looks for others"
            f"{also_closed(closed)}"
        )
    return FoundLogs(sorted(found.values()), others, tuple(closed))


def _is_log(name: str, pattern: re.Pattern[str]) -> bool:
    return pattern.fullmatch(without_packing(name)) is not None


class JobReader:
    """Explains one log. It goes to other processes with the pattern that finds a node's name."""

    def __init__(self, node_from: str | None = None) -> None:
        self._node_from = node_from

    def prepare(self) -> None:
        """What a process needs before its first log."""
        catalogue()

    def __call__(self, log: LogFile) -> JobLog | UnreadLog:
        """Whatever is in the file, the result is one row."""
        try:
            written = os.stat(log.path).st_mtime
            pieces = pieces_of_file(log.path, regular_only=True)
            explanation = explain(read_pieces(pieces, log.path), catalogue())
        except UsageError as error:
            return UnreadLog(log.path, excerpt(str(error)))
        except OSError as error:
            return UnreadLog(log.path, excerpt(f"cannot read it: {error.strerror or error}"))
        except Exception as error:
            # One odd log must not hide a hundred thousand others.
            why = f"a bug in whygpu: {type(error).__name__}: {error}"
            return UnreadLog(log.path, excerpt(why))
        root = explanation.root_causes[0] if explanation.root_causes else None
        return JobLog(
            file=log.path,
            node=node_in(log.below, self._node_from),
            week=time.strftime("%G-W%V", time.localtime(written)),
            verdict=explanation.verdict,
            code=root.code if root is not None else "",
            cause=root.cause if root is not None else "",
            doubt=_doubt(explanation),
        )


def _doubt(explanation: Explanation) -> str:
    """Without the numbers of lines, so that logs with the same end have the same doubt."""
    if explanation.verdict != "unknown" or explanation.guidance is None:
        return ""
    return excerpt(_LINE_NUMBER.sub("a line", explanation.guidance.understood))


def node_in(below: str, node_from: str | None) -> str:
    """The node that a path names: by the pattern, or else the first folder of the path."""
    if node_from is None:
        folder, separator, _ = below.partition(os.sep)
        return folder if separator else ""
    match = re.search(node_from, below)
    if match is None:
        return ""
    return (match[1] if match.re.groups else match[0])[:_LONGEST_NODE]
