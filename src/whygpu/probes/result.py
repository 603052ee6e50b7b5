"""Reads the messages of a probe, from lines that may be cut short or garbage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from whygpu.model.codec import DecodeError, decode, hints
from whygpu.model.observed import Absent, Observed, Unknown
from whygpu.model.probe import Probe, ProbeDevice, ProbeEnd, ProbeName, ProbeOperation

LINE_LIMIT = 256 * 1024
TOTAL_LIMIT = 4 * 1024 * 1024

_TYPES = dict(hints(Probe))


class LineSplitter:
    """Splits chunks into whole lines, in bounded memory; what exceeds the limits is left out."""

    def __init__(self) -> None:
        self._partial = bytearray()
        self._skipping = False
        self._taken = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._extend(end)
            if not self._skipping:
                yield bytes(self._partial)
            self._partial.clear()
            self._skipping = self._taken > TOTAL_LIMIT
        self._extend(rest)

    def _extend(self, data: bytes) -> None:
        if self._skipping:
            return
        self._taken += len(data)
        self._partial += data
        if len(self._partial) > LINE_LIMIT or self._taken > TOTAL_LIMIT:
            self._partial.clear()
            self._skipping = True


class Result:
    """What the messages of a probe have reported so far."""

    def __init__(self, name: ProbeName) -> None:
        self._name = name
        self._source = f"{name} probe"
        self._version: Observed[str] | None = None
        self._devices: Observed[tuple[ProbeDevice, ...]] | None = None
        self._operations: list[ProbeOperation] = []
        self._facts: list[tuple[str, str]] = []
        self._traceback: tuple[str, ...] = ()
        self.begun = False
        self.stage = "start"
        self.exception: str | None = None
        self.finished = False

    def take(self, line: bytes) -> None:
        """Take in one line; anything but a message of the harness is ignored."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or len(message) != 1:
            return
        ((key, value),) = message.items()
        try:
            self._take(key, value)
        except DecodeError:
            return
        self.begun = True

    def _take(self, key: str, value: Any) -> None:
        if key == "stage":
            self.stage = decode(str, value)
        elif key == "version":
            self._version = decode(_TYPES["version"], self._with_source(value))
        elif key == "devices":
            self._devices = decode(_TYPES["devices"], self._with_source(value))
        elif key == "operation":
            self._operations.append(self._operation(value))
        elif key == "fact":
            self._facts.append(decode(tuple[str, str], value))
        elif key == "exception":
            self.exception, self._traceback = self._exception(value)
        elif key == "finished":
            self.finished = decode(bool, value)

    def _with_source(self, value: Any) -> Any:
        """The observation as the codec expects it, with this probe as its source."""
        known = isinstance(value, dict) and "known" in value
        return {**value, "source": self._source} if known else value

    def _operation(self, value: Any) -> ProbeOperation:
        if isinstance(value, dict):
            value = {
                key: self._with_source(part) if key in ("ran_on", "correct") else part
                for key, part in value.items()
            }
        return decode(ProbeOperation, value)

    def _exception(self, value: Any) -> tuple[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            raise DecodeError("exception", "an object", value)
        return decode(str, value.get("last")), decode(tuple[str, ...], value.get("lines"))

    def _missing(self, ended: ProbeEnd, how: str) -> Absent | Unknown:
        """The value of a fact that was not reported."""
        if ended == "finished":
            return Absent(self._source)
        if ended in ("timed-out", "cut-short"):
            return Unknown(f"the {self._source} was still in stage {self.stage!r} after {how}")
        return Unknown(f"the {self._source} ended in stage {self.stage!r}: {how}")

    def note(self, name: str, text: str) -> None:
        """Add a fact that only the parent process can know."""
        self._facts.append((name, text))

    def probe(
        self, ended: ProbeEnd, how: str, seconds: float, log: tuple[str, ...], log_cut: bool
    ) -> Probe:
        """The result as a value, in which facts that were not reported are absent or unknown."""
        missing = self._missing(ended, how)
        return Probe(
            name=self._name,
            ended=ended,
            how=how,
            stage=self.stage,
            seconds=round(seconds, 3),
            version=missing if self._version is None else self._version,
            devices=missing if self._devices is None else self._devices,
            operations=tuple(self._operations),
            traceback=self._traceback,
            facts=tuple(self._facts),
            log=log,
            log_cut=log_cut,
        )
