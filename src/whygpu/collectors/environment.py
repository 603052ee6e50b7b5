"""The environment variables of the allow-list, each with the effect of its value here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from whygpu.collectors.driver_answer import GpuIds
from whygpu.collectors.visible_devices import SOURCE, select, shorten
from whygpu.host.base import Host
from whygpu.model.driver import Driver
from whygpu.model.environment import Environment, GpuSelection, Variable
from whygpu.model.observed import Absent, Known, Observed
from whygpu.tables.variable_readings import Files, Flags, Folder, Folders, GpuList, Reading
from whygpu.tables.variable_values import Judgement, judged_value
from whygpu.tables.variables import RANDOM_WORD, SECRET_VALUE, row_of

CUDA_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"

FLAG = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
"""A word that may contain quoted spaces."""


def collect(host: Host, driver: Driver, ids: tuple[GpuIds, ...]) -> Environment:
    selection = _selection(host, driver, ids)
    variables = []
    for name, value in sorted(host.environ.items()):
        row = row_of(name)
        if row is None or _is_secret(value, row.reading):
            continue
        if isinstance(row.reading, GpuList) and isinstance(selection, Known):
            meaning, problem = _judge_selection(selection.value)
        else:
            meaning, problem = judged_value(row.reading, value, host.environ) or _READERS[
                type(row.reading)
            ](row.reading, value, host)
        variables.append(Variable(name, shorten(value), meaning, problem))
    return Environment(tuple(variables), selection)


def _selection(host: Host, driver: Driver, ids: tuple[GpuIds, ...]) -> Observed[GpuSelection]:
    text = host.environ.get(CUDA_VISIBLE_DEVICES)
    if text is None:
        return Absent(SOURCE)
    order = host.environ.get("CUDA_DEVICE_ORDER", "")
    return Known(select(text, driver, ids, order), SOURCE)


def _is_secret(value: str, reading: Reading) -> bool:
    if SECRET_VALUE.search(value):
        return True
    is_path = isinstance(reading, Folder | Folders | Files | Flags | GpuList)
    return not is_path and RANDOM_WORD.search(shorten(value)) is not None


def _judge_selection(selection: GpuSelection) -> Judgement:
    visible = selection.visible
    problem = "; ".join(f"{entry.text!r}: {entry.reason}" for entry in selection.ignored)
    if not isinstance(visible, Known):
        reason = visible.source if isinstance(visible, Absent) else visible.reason
        return f"selects GPUs; which ones is unknown: {reason}", problem
    if not visible.value:
        return "hides every GPU from CUDA", problem
    return f"CUDA sees GPU {', '.join(map(str, visible.value))} and no other", problem


def _folder(reading: Folder, value: str, host: Host) -> Judgement:
    missing = isinstance(host.stat(value), Absent)
    return reading.meaning, f"there is no folder {value}" if missing else ""


def _folders(reading: Folders, value: str, host: Host) -> Judgement:
    folders = [folder for folder in value.split(":") if folder]
    missing = [folder for folder in folders if isinstance(host.stat(folder), Absent)]
    note = f" ({len(missing)} of {len(folders)} do not exist)" if missing else ""
    return reading.meaning + note, ""


def _files(reading: Files, value: str, host: Host) -> Judgement:
    # The loader searches for a name without a slash like any library, and may find it.
    paths = [path for path in re.split(r"[: ]", value) if "/" in path]
    missing = [path for path in paths if isinstance(host.stat(path), Absent)]
    return reading.meaning, f"missing: {', '.join(missing)}" if missing else ""


def _flags(reading: Flags, value: str, host: Host) -> Judgement:
    meaning = reading.meaning
    words = FLAG.findall(value)
    if reading.file_allowed and words and not words[0].startswith("-"):
        if isinstance(host.stat(value.strip()), Known):
            return f"{meaning}, in the file {value}", ""
        return meaning, f"there is no file {value}, and the program aborts when it tries to read it"
    for word in words:
        if not word.startswith(reading.prefix):
            return meaning, f"{word} is not a flag that it knows, so the program aborts"
        flag, _, setting = word.partition("=")
        folder = setting.strip("\"'")
        if flag in reading.folder_flags and isinstance(host.stat(folder), Absent):
            return meaning, f"{flag} names {folder or 'nothing'}, which is not a folder"
    return meaning, ""


_READERS: dict[type, Callable[[Any, str, Host], Judgement]] = {
    Folder: _folder,
    Folders: _folders,
    Files: _files,
    Flags: _flags,
}
