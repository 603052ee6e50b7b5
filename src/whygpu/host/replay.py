"""A Host that replays a transcript: for tests, and to examine a remote machine again."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from whygpu.host import limits
from whygpu.host.base import Completed, FileFacts, Host, Platform
from whygpu.model.codec import decode, decode_observed, encode
from whygpu.model.libraries import ElfFacts
from whygpu.model.observed import Absent, Known, Observed

T = TypeVar("T")

Transcript = dict[str, Any]
"""{"platform": {...}, "environ": {...}, "answers": {"read /proc/meminfo": {"known": ...}, ...}}"""


class NotRecorded(LookupError):
    """The transcript has no answer to a query."""


class NotConsumed(AssertionError):
    """The transcript has answers that no query used."""


class ReplayHost:
    """Answers from a transcript, and remembers which answers were used.

    `absent` names kinds of queries ("read", "list", ...) that are answered with Absent if the
    transcript does not have them. Then the many paths that do not exist need not be recorded.
    """

    def __init__(self, transcript: Transcript, *, absent: tuple[str, ...] = ()) -> None:
        self._answers: dict[str, Any] = dict(transcript.get("answers", {}))
        self._platform = decode(Platform, transcript["platform"], "platform")
        self._environ: Mapping[str, str] = dict(transcript.get("environ", {}))
        self._absent = absent
        self._used: set[str] = set()

    @property
    def platform(self) -> Platform:
        return self._platform

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    def read(
        self, path: str, limit: int = limits.TEXT_FILE, *, whole: bool = True
    ) -> Observed[str]:
        return self._answer(str, f"read {path}")

    def read_bytes(
        self, path: str, limit: int = limits.BINARY_FILE, *, whole: bool = True
    ) -> Observed[bytes]:
        coded = self._answer(str, f"read_bytes {path}")
        if isinstance(coded, Known):
            return Known(base64.b64decode(coded.value), coded.source)
        return coded

    def list(self, path: str) -> Observed[tuple[str, ...]]:
        return self._answer(tuple[str, ...], f"list {path}")

    def stat(self, path: str) -> Observed[FileFacts]:
        return self._answer(FileFacts, f"stat {path}")

    def disk(self, path: str) -> Observed[int]:
        return self._answer(int, f"disk {path}")

    def elf(self, path: str) -> Observed[ElfFacts]:
        return self._answer(ElfFacts, f"elf {path}")

    def symbols(self, path: str) -> Observed[tuple[tuple[str, ...], tuple[str, ...]]]:
        return self._answer(tuple[tuple[str, ...], tuple[str, ...]], f"symbols {path}")

    def gpu_code(self, path: str) -> Observed[tuple[str, ...]]:
        return self._answer(tuple[str, ...], f"gpu_code {path}")

    def run(
        self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
    ) -> Observed[Completed]:
        return self._answer(Completed, f"run {' '.join(command)}")

    def assert_consumed(self) -> None:
        """Fail if an answer was never used: the test then covers less than its transcript."""
        left = sorted(self._answers.keys() - self._used)
        if left:
            raise NotConsumed("the transcript has unused answers: " + "; ".join(left))

    def _answer(self, kind: Any, question: str) -> Observed[Any]:
        if question not in self._answers:
            verb, _, subject = question.partition(" ")
            if verb in self._absent:
                return Absent(subject)
            raise NotRecorded(f"the transcript has no answer to: {question}")
        self._used.add(question)
        return decode_observed(kind, self._answers[question], question)


class RecordingHost:
    """Forwards queries to another host and records the transcript that would replay them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._answers: dict[str, Any] = {}

    @property
    def transcript(self) -> Transcript:
        return {
            "platform": encode(self._host.platform),
            "environ": dict(self._host.environ),
            "answers": dict(self._answers),
        }

    @property
    def platform(self) -> Platform:
        return self._host.platform

    @property
    def environ(self) -> Mapping[str, str]:
        return self._host.environ

    def read(
        self, path: str, limit: int = limits.TEXT_FILE, *, whole: bool = True
    ) -> Observed[str]:
        return self._keep(f"read {path}", self._host.read(path, limit, whole=whole))

    def read_bytes(
        self, path: str, limit: int = limits.BINARY_FILE, *, whole: bool = True
    ) -> Observed[bytes]:
        def coded(value: bytes) -> str:
            return base64.b64encode(value).decode("ascii")

        answer = self._host.read_bytes(path, limit, whole=whole)
        return self._keep(f"read_bytes {path}", answer, coded)

    def list(self, path: str) -> Observed[tuple[str, ...]]:
        return self._keep(f"list {path}", self._host.list(path))

    def stat(self, path: str) -> Observed[FileFacts]:
        return self._keep(f"stat {path}", self._host.stat(path))

    def disk(self, path: str) -> Observed[int]:
        return self._keep(f"disk {path}", self._host.disk(path))

    def elf(self, path: str) -> Observed[ElfFacts]:
        return self._keep(f"elf {path}", self._host.elf(path))

    def symbols(self, path: str) -> Observed[tuple[tuple[str, ...], tuple[str, ...]]]:
        return self._keep(f"symbols {path}", self._host.symbols(path))

    def gpu_code(self, path: str) -> Observed[tuple[str, ...]]:
        return self._keep(f"gpu_code {path}", self._host.gpu_code(path))

    def run(
        self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
    ) -> Observed[Completed]:
        answer = self._host.run(command, timeout=timeout, env=env)
        return self._keep(f"run {' '.join(command)}", answer)

    def _keep(
        self, question: str, answer: Observed[T], coded: Callable[[T], Any] = encode
    ) -> Observed[T]:
        if isinstance(answer, Known):
            self._answers[question] = {"known": coded(answer.value), "source": answer.source}
        else:
            self._answers[question] = encode(answer)
        return answer
