"""What `whygpu history on` adds to check and run: the last good run, and a record of this one.

It never changes an answer or an exit code. Whatever goes wrong is a note on standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from whygpu.cli import output
from whygpu.errors import UsageError

if TYPE_CHECKING:
    from whygpu.launch.execution import Prepared
    from whygpu.model.history import SinceGood
    from whygpu.model.policy import RunReport
    from whygpu.model.report import Report


def after_check(report: Report, *, silent: bool, color: str) -> None:
    """`silent`: say nothing, because standard output is JSON."""
    from whygpu.render.history_text import render_since

    with _harmless():
        from whygpu.api import past_runs

        since = None if silent else past_runs.since_good_check(report)
        if since is not None:
            output.page(since, _below(render_since), color=color, signs=_signs())
        past_runs.remember_check(report)


def after_run(report: RunReport, prepared: Prepared, *, silent: bool) -> None:
    from whygpu.render.history_text import render_since

    if report.device == "none" and not report.exit_code:
        return  # It uses no framework.
    with _harmless():
        from whygpu.api import past_runs

        machine = past_runs.machine_of(prepared)
        argv = prepared.plan.argv
        since = None if silent else past_runs.since_good_run(report, machine, argv)
        if since is not None:
            output.page_on_error(since, _below(render_since))
        past_runs.remember_run(report, machine, argv)


def _below(render: Callable[..., str]) -> Callable[..., str]:
    """The page after an empty line."""

    def page(shown: SinceGood, **style: int) -> str:
        return "\n" + render(shown, **style)

    return page


def _signs() -> dict[int, str]:
    from whygpu.render.diff_text import PLAIN_SIGNS

    return PLAIN_SIGNS


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        output.say(f"note: the history cannot be used: {error}")
