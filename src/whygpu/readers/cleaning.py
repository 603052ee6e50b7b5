"""A raw line as its writer meant it: without colours, and without what was put before it on its way.

Terminals, containers, schedulers, loggers and people who quote all add something to the front of a
line. What is left here starts where the program's own line started.
"""

from __future__ import annotations

import json
import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CARET_ESCAPE = re.compile(
    r"(?:\^\[|\\x1b|\\u001b|\\033)\[[\d;]{0,16}m|\[(?:\d{1,3};?){1,4}m(?=\S)"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_QUOTE = re.compile(r"[ \t]{0,8}(?:>(?!>)[ \t]?|\|[ \t]|#[ \t])+")
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        # What a service, a job runner or a container engine writes: 2021-05-29T05:52:59Z app[web.1]:
        r"\d{4}-\d\d-\d\dT[\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)?\s+(?:(?:stdout|stderr) [FP] )?"
        r"(?:[\w.-]{1,60}\[[\w.]{1,20}\]:\s?)?",
        # docker compose: app-1  |
        r"[\w.-]{1,60}\s{0,20}\| ",
        # syslog: Nov 15 01:02:03 host kernel:
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,60} [\w.-]{1,40}(?:\[\d+\])?: ",
        # dmesg: [  123.456] or [Fri Mar  3 04:23:22 2023]
        r"\[ {0,8}\d{1,8}\.\d{3,9}\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] ",
        # ranks and workers: [rank0]: , [1,0]<stderr>: , (Worker pid=12, ip=10.0.0.1) , 0: [srun -l]
        r"\[rank\d{1,5}\]:? ?|\[\d{1,5},\d{1,5}\]<std(?:out|err)>: ?|\((?:[\w.:-]{1,80} )?pid=\d{1,8}"
        r"[^()\n]{0,80}\) ?",
    )
)
_JSON_TEXT = ("message", "msg", "log", "text", "line", "MESSAGE", "content", "textPayload")
_NOTEBOOK_LINE = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*,?\s*')


def decoded(raw: bytes) -> str:
    """As UTF-8 where it is that, else byte by byte: no byte is lost, and none is an error."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def clean(raw: bytes) -> str:
    text = decoded(raw)
    if "\x1b" in text or "[" in text:
        text = _CARET_ESCAPE.sub("", _ESCAPE.sub("", text))
    text = _CONTROL.sub("", text).rstrip()
    text = _unwrapped_json(text)
    return _without_prefixes(text)


def _unwrapped_json(text: str) -> str:
    """The message inside a line of JSON, or inside a notebook's list of output lines."""
    start = text.lstrip()
    if start.startswith("{") and text.endswith("}"):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return text
        message = next((record[key] for key in _JSON_TEXT if key in record), None)
        return message.rstrip("\n") if isinstance(message, str) else text
    if start.startswith('"') and "\\" in text:
        match = _NOTEBOOK_LINE.fullmatch(text)
        if match:
            try:
                return str(json.loads(f'"{match[1]}"')).rstrip("\n")
            except ValueError:
                return text
    return text


def _without_prefixes(text: str) -> str:
    for _ in range(4):
        shorter = text
        for pattern in _PREFIXES:
            match = pattern.match(shorter)
            if match:
                shorter = shorter[match.end() :]
        quote = _QUOTE.match(shorter)
        if quote:
            shorter = shorter[quote.end() :]
        if shorter == text:
            return text
        text = shorter
    return text
