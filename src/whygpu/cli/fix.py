"""Repair the environment: test a remedy in a copy, apply it, or undo it."""

from __future__ import annotations

import argparse

from whygpu.cli.arguments import add_color_argument, add_python_argument, seconds
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.cli.verb_help import VERDICT
from whygpu.errors import UsageError
from whygpu.probes import DEFAULT_TIMEOUT

EXAMPLES = """\
examples:
  whygpu fix                  what helps, tested in a copy; changes nothing
  whygpu fix --dry-run        the steps only, not tested
  whygpu fix --apply          test it, then change the environment
  whygpu fix --undo           go back to the environment as it was
  whygpu fix --python ~/venv --only WG203

The copy and the packages that are downloaded need space and the network. What
needs root, a driver or a restart is listed as a step for you.
"""

EXIT_CODES = {**VERDICT, "0": "nothing wrong (any more)"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_python_argument(parser, "to repair")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="list the steps without testing them")
    how.add_argument("--apply", action="store_true", help="test the steps, then apply them")
    how.add_argument("--undo", action="store_true", help="undo the last fix")
    parser.add_argument(
        "--only",
        metavar="CODE",
        action="append",
        default=[],
        help="repair this cause only; may be repeated",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --undo: go back even if other changes are lost",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_TIMEOUT,
        help=f"time limit for running each framework (default: {DEFAULT_TIMEOUT:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    add_html_argument(parser)
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    if options.undo:
        if options.html is not None:
            raise UsageError("--html shows a fix; --undo takes one back, and has no page")
        return _undo(options)
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import showing

    html_file = HtmlFile(options.html)
    with showing("examining the environment") as show:
        answer = api.fix(
            options.python,
            apply=options.apply,
            prove=not options.dry_run,
            only=_codes(options.only),
            timeout=options.timeout,
            on_step=show,
        )
    if options.json:
        from whygpu.render.fix_json import render

        output.data(answer, render)
    else:
        from whygpu.render.fix_text import render as render_text

        output.page(answer, render_text, color=options.color)
    html_file.write(answer)
    return answer.exit_code


def _undo(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import showing

    with showing("taking the fix back", steps=False):
        undone = api.undo_fix(options.python, force=options.force)
    if options.json:
        from whygpu.render.fix_json import render_undone

        output.data(undone, render_undone)
    else:
        from whygpu.render.fix_text import render_undone as undone_text

        output.text(undone, undone_text)
    return 0


def _codes(given: list[str]) -> tuple[str, ...]:
    """The codes of causes that were named by code or by slug."""
    from whygpu.causes import find_cause

    codes = []
    for name in given:
        cause = find_cause(name)
        if cause is None:
            raise UsageError("no such cause; `whygpu rule` lists them", option="only", value=name)
        codes.append(cause.code)
    return tuple(codes)
