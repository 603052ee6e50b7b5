"""The rows of the table: what was planted and named, what was predicted and measured."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from benchmarks.idle.cases import Planted
from benchmarks.idle.measure import Comparison, Outcome

TOLERANCE = 1.25
HEADER = """\
| program | planted | named | share | predicted | measured |
| --- | --- | --- | ---: | ---: | ---: |"""


class Predicted(NamedTuple):
    """How many times faster a step becomes."""

    low: float
    high: float
    at_most: bool
    or_more: bool = False

    @property
    def text(self) -> str:
        if self.at_most:
            return (
                f"up to {self.high:.1f} x by itself"
                if self.or_more
                else f"at most {self.high:.1f} x"
            )
        low, high = f"{self.low:.1f}", f"{self.high:.1f}"
        more = " or more" if self.or_more else ""
        return f"{low} x{more}" if low == high else f"{low} to {high} x{more}"

    @property
    def may_fail(self) -> bool:
        """Whether a measured gain could contradict it."""
        return not (self.at_most and self.or_more)

    def holds(self, measured: float) -> bool:
        """Whether the measured gain is within 25 % of the range. A limit has no lower end, and
        "or more" no upper one."""
        low = 0.0 if self.at_most else self.low / TOLERANCE
        return low <= measured and (self.or_more or measured <= self.high * TOLERANCE)


class Row(NamedTuple):
    """What is known about one program. A later row of the same program replaces it."""

    program: str
    target: str
    """The framework environment that it is for."""
    backend: str
    device: str
    planted: str
    named: str = ""
    is_right: bool = False
    share: float = 0.0
    predicted: Predicted | None = None
    measured: float | None = None
    failed: str = ""
    """Why there is no answer, or no measured gain."""
    answer: dict[str, Any] | None = None
    cured: dict[str, Any] | None = None
    """The answer for the cured program."""

    @property
    def text(self) -> str:
        name = f"{self.program} ({self.backend or self.target})"
        if self.answer is None:
            return f"| {name} | {self.planted} | **failed** | | | |"
        mark = "" if self.is_right else " (wrong)"
        predicted = self.predicted.text if self.predicted is not None else ""
        gain = f"{self.measured:.1f} x" if self.measured is not None else ""
        return (
            f"| {name} | {self.planted} | {self.named}{mark} | {self.share * 100:.0f} % "
            f"| {predicted} | {gain} |"
        )


Key = tuple[str, str, str]


def key_of(each: Row | Planted) -> Key:
    return each.program, each.target, each.backend


def named_row(found: Outcome, device: str) -> Row:
    case, answer = found.case, found.answer
    shares = [each["share"] for each in answer["shares"] if each["category"] == found.named]
    return Row(
        case.program,
        case.target,
        case.backend,
        device,
        case.planted,
        found.named,
        found.is_right,
        sum(shares),
        prediction(case, answer),
        answer=answer,
    )


def failed_row(case: Planted, device: str, why: str) -> Row:
    return Row(case.program, case.target, case.backend, device, case.planted, failed=why)


def cured_row(row: Row, case: Planted, both: Comparison) -> Row:
    """With the prediction of the run that counts."""
    return row._replace(
        predicted=prediction(case, both.original), measured=both.gain, cured=both.cured, failed=""
    )


def prediction(case: Planted, answer: dict[str, Any]) -> Predicted | None:
    """Of the change that CURED makes to the program, if that was offered."""
    for gain in answer["gains"]:
        if case.cure in gain["change"]:
            fast = gain["from_seconds"] / max(gain["to_low"], 1e-9)
            slow = gain["from_seconds"] / max(gain["to_high"], 1e-9)
            return Predicted(slow, fast, gain["at_most"], gain.get("or_more", False))
    return None


def read_rows(path: pathlib.Path, device: str) -> dict[Key, Row]:
    """The last row of each program. A line that was not written completely is left out."""
    found: dict[Key, Row] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        try:
            row = Row(**json.loads(line))
        except (ValueError, TypeError):
            continue
        if row.device == device:
            predicted = None if row.predicted is None else Predicted(*row.predicted)
            found[key_of(row)] = row._replace(predicted=predicted)
    return found


def append(path: pathlib.Path, row: Row) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row._asdict()) + "\n")


def table(rows: Iterable[Row]) -> str:
    return "\n".join([HEADER, *(row.text for row in rows)])


def summary(rows: Sequence[Row]) -> str:
    """How many were right, in one line."""
    answered = [row for row in rows if row.answer is not None]
    right = sum(row.is_right for row in answered)
    compared = [(row.predicted, row.measured) for row in rows]
    gains = [(p, m) for p, m in compared if p is not None and m is not None and p.may_fail]
    held = sum(predicted.holds(measured) for predicted, measured in gains)
    return (
        f"named right: {right} of {len(answered)}; "
        f"predictions within 25 %: {held} of {len(gains)}; "
        f"failed: {len(rows) - len(answered)}"
    )
