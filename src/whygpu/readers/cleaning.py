"""Restores the program's own line: no colours, no wrapping, no prefixes, no other language.

Terminals, containers, schedulers, loggers and people who quote add text to the front of a line. A
cleaned line starts where the program's own line started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from whygpu.model.outside_text import without_sequences
from whygpu.tables.translated_messages import in_english

_SEQUENCE_START = re.compile("[\x1b\x90-\x9f]")
_LOST_ESCAPE = re.compile(
    # Written as text (^[[0;31m), or without the escape character ([0;31m).
    r"(?:\^\[|\\x1b|\\u001b|\\033|\\e)\[[\d;]{0,16}m|\[(?:[01]|[349]\d|\d{1,2};[\d;]{1,12})m"
    # A word may begin with the same two characters: [multiproc_executor.py:783].
    r"|\[m(?![a-z_])"
)
_OVERTYPED = re.compile("\x08+")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b\ufeff]")
_ENTITY = re.compile(r"&(quot|lt|gt|amp|nbsp|#39|#x27);")
_ENTITIES = {
    "quot": '"',
    "lt": "<",
    "gt": ">",
    "amp": "&",
    "nbsp": " ",
    "#39": "'",
    "#x27": "'",
}

_TIME = r"\d{4}-\d\d-\d\d[T ][\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)"
_DAEMON = r"(?:kernel|systemd|python[\d.]{0,5}|dockerd?|containerd|kubelet|sudo|slurm\w{0,8})"
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        # A service, a job runner, a container engine: 2021-05-29T05:52:59Z app[web.1]:
        rf"(?:[^\t\n]{{1,80}}\t){{0,2}}\[?{_TIME}\]?\s+(?:(?:stdout|stderr) [FP] "
        r"|[\w.-]{1,60}\[[\w.]{1,20}\]:\s?|[\w.-]{1,60} [\w.-]{1,40}\[\d{1,10}\]: "
        # Without the number of a process, "CUDA error: " looks the same as a host and a program.
        rf"|(?:[\w-]{{0,60}}[\d.-][\w.-]{{0,60}} [\w.-]{{1,40}}|[\w.-]{{1,60}} {_DAEMON}): )?",
        # ComfyUI: 2025-03-15T22:57:28.208512 - text. Before a level it is a record.
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6} - (?!\[?(?:DEBUG|INFO|WARN|ERROR|CRITICAL))",
        # BuildKit: #12 2.311 text
        r"#\d{1,4} \d{1,6}\.\d{1,3} (?=\S|\s)",
        # docker compose and pm2: app-1  |
        r"(?:\d{1,3}\|)?[A-Za-z_][\w.-]{0,60}\s{0,20}\| ",
        # syslog: Nov 15 01:02:03 host kernel:
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]{1,60} [\w.@/-]{1,60}(?:\[\d{1,10}\])?"
        # Some journals leave out the host.
        r"|[\w.@/-]{1,60}\[\d{1,10}\]):(?: |$)",
        # dmesg: [  123.456] or [Fri Mar  3 04:23:22 2023]
        r"(?:<\d{1,3}>)?\[ {0,8}\d{1,8}\.\d{3,9}\] "
        r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] ",
        # ranks, pods and workers: [rank0]: , [1,0]<stderr>: , (Worker pid=12, ip=10.0.0.1)
        r"\[(?:rank|default)?\d{1,5}\]: ?"
        r"|[\w :]{0,30}\[\d{1,5},[\w:,-]{1,60}\]<std(?:out|err)>: ?"
        r"|\((?:[\w.:-]{1,80} )?pid=\d{1,8}[^()\n]{0,80}\) ?|\((?:raylet|autoscaler|gcs_server)\) "
        r"|\[pod/[\w./-]{1,200}\] |\[?std(?:err|out)\]?:? ",
        # GitHub's annotations, and pytest's mark before the message of an exception
        r"##\[(?:error|warning)\]|E {2,12}(?=\S)",
        # quoted in a mail, a comment or a table; not Python's prompt
        r"[ \t]{0,8}(?:>{1,2}(?!>)[ \t]?|\|[ \t]|#[ \t]){1,8}",
    )
)
_MOST_PREFIXES = 4
_ENDS = ("ed", "fault", "instruction", "error", "exception", "(core dumped)")
"""A quick check for every line, before the pattern."""
_LAST_BAR = re.compile(
    # A progress bar ends without a newline, so the shell's message follows it on the same line.
    r"^.{0,4000}(?:[\d\]%)>=|]|\d\.|(?<=\d)[mu]?s|/s|/it|/step|/epoch|/sample|nan|inf)"
    r"(?=(?:Killed|Terminated|Segmentation fault|Aborted|Illegal instruction|Bus error"
    r"|Floating point exception)(?: \(core dumped\))?$)"
)
_AFTER_BAR = re.compile(r"(?<=(?:it/s|s/it)\])(?=[A-Z]\w)")
"""What the program writes next begins on the same line."""

_TEXT_KEYS = ("message", "msg", "log", "text", "line", "MESSAGE", "content", "textPayload", "event")
_REASON_KEYS = ("error", "err", "reason")
"""Servers write what failed as the message, and why under a key of its own."""
_TRACE_KEYS = ("exc_info", "exception", "traceback", "stack_trace", "stacktrace", "exc_text")
_LEVEL_KEYS = ("level", "lvl", "levelname", "log_level")
_LEVELS = {
    **dict.fromkeys(("debug", "trace", "10", "20"), "DEBUG"),
    **dict.fromkeys(("info", "notice", "30"), "INFO"),
    **dict.fromkeys(("warn", "warning", "40"), "WARNING"),
    **dict.fromkeys(("error", "err", "50"), "ERROR"),
    **dict.fromkeys(("fatal", "critical", "60"), "CRITICAL"),
}
"""As a program gives it to its own record. What a collector calls severity only says from which
stream a line came."""
_HAS_OWN_HEAD = re.compile(
    r"[^\n]{0,80}(?:\b[IWEF] {1,4}\S{1,200}:\d{1,6}\]|\b(?:DEBUG|INFO|WARN|ERROR|CRITICAL))"
    r"|(?:[\w.]{1,80}(?:Error|Exception)\b|Traceback \()"
)
"""A message that shows its own level, or is an exception."""
_JSON_STRING = re.compile(r'^\s{0,80}"((?:[^"\\]|\\.){0,65536})"\s{0,8},?')
_ESCAPED = re.compile(r"\\([nrt\"])")
_UNESCAPED = {"n": "\n", "r": "\n", "t": "\t", '"': '"'}
_MANY_ESCAPED_BREAKS = 3
_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\[^\\]")


def cleaned(raw: bytes) -> list[str]:
    """The lines in a raw line: one, unless it contains several in JSON or backspaces."""
    text = _without_colour(_decoded(raw))
    lines: list[str] = []
    for part in _OVERTYPED.split(text) if "\x08" in text else [text]:
        for line in _unpacked(_CONTROL.sub("", part).rstrip()):
            line = _without_prefixes(_without_entities(_without_colour(line))).rstrip()
            line = _LAST_BAR.sub("", line) if line.endswith(_ENDS) else line
            lines += map(in_english, _AFTER_BAR.split(line) if "it" in line else [line])
    return lines


def _decoded(raw: bytes) -> str:
    """As UTF-8 if it is valid, else byte by byte: no byte is lost or an error."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
    return text.replace("\xa0", " ")


def _without_colour(text: str) -> str:
    if "[" not in text and _SEQUENCE_START.search(text) is None:
        return text
    return _LOST_ESCAPE.sub("", without_sequences(text))


def _without_entities(text: str) -> str:
    if "&" not in text:
        return text
    return _ENTITY.sub(lambda match: _ENTITIES[match[1]], text)


def _unpacked(text: str) -> list[str]:
    """The messages in a line of JSON, or in a string of a notebook's output; else the line."""
    start = text.lstrip()
    if start.startswith("{") and text.endswith("}") and '"' in text:
        messages = list(_messages_in_json(text))
        if messages:
            return [line for message in messages for line in message.splitlines()]
    if start.startswith('"') and "\\" in text:
        match = _JSON_STRING.fullmatch(text)
        if match:
            text = match[1] + " "
            return _with_breaks(text).rstrip().splitlines() or [""]
    if text.count("\\n") >= _MANY_ESCAPED_BREAKS and not _WINDOWS_PATH.search(text):
        # A part of a larger JSON text, or Python's representation of some output.
        return _with_breaks(text).splitlines()
    return [text]


def _with_breaks(text: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPED[match[1]], text).replace("\\\\", "\\")


def _messages_in_json(text: str) -> Iterator[str]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(record.get("cells"), list):
        yield from _outputs_of_notebook(record["cells"])
        return
    inner = [value for value in record.values() if isinstance(value, dict)]
    reason = next((record[key] for key in _REASON_KEYS if isinstance(record.get(key), str)), "")
    for keys in (_TEXT_KEYS, _TRACE_KEYS):
        for mapping in (record, *inner):
            message = next(
                (mapping[key] for key in keys if isinstance(mapping.get(key), str)), None
            )
            if message is None:
                continue
            if keys is _TEXT_KEYS:
                message = message.rstrip()
                message = f"{message}: {reason}" if reason else _with_level(message, record)
            yield message
            break


def _with_level(message: str, record: dict[str, Any]) -> str:
    """The message as a logger of plain text writes it, with the level of its record."""
    word = next((record[key] for key in _LEVEL_KEYS if key in record), "")
    level = _LEVELS.get(str(word).lower())
    if level is None or "\n" in message or _HAS_OWN_HEAD.match(message):
        return message
    return f"[{level}] {message}"


def _outputs_of_notebook(cells: list[Any]) -> Iterator[str]:
    """Of a notebook in one line. Jupyter itself writes each line of output on a line of its own."""
    for cell in cells:
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else ():
            if isinstance(output, dict):
                data = output.get("data")
                shown = data.get("text/plain") if isinstance(data, dict) else None
                yield _joined(output.get("text"), "")
                yield _joined(shown, "")
                yield _joined(output.get("traceback"), "\n")


def _joined(lines: object, between: str) -> str:
    """Jupyter allows a text as well as a list of them."""
    if isinstance(lines, list):
        return between.join(line for line in lines if isinstance(line, str))
    return lines if isinstance(lines, str) else ""


def _without_prefixes(text: str) -> str:
    for _ in range(_MOST_PREFIXES):
        shorter = text
        for pattern in _PREFIXES:
            match = pattern.match(shorter)
            if match:
                shorter = shorter[match.end() :]
        if shorter == text:
            return text
        text = shorter
    return text
