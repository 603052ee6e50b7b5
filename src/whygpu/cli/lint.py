"""Which lines of my program mishandle devices?"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from whygpu.cli import output
from whygpu.cli.arguments import add_color_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whygpu.linter.fix_files import FixResult
    from whygpu.linter.settings import Settings
    from whygpu.model.cause import Cause
    from whygpu.model.code_finding import LintReport

EXAMPLES = """\
examples:
  whygpu lint train.py                 one file
  whygpu lint src notebooks            Python files and notebooks in folders
  whygpu lint --fix --diff .           show what --fix would change
  whygpu lint --sarif . > lint.sarif   for code scanning
  cat train.py | whygpu lint -         from standard input

In a file, `# whygpu: ignore[WG720] the reason` takes one finding back. Settings
are read from [tool.whygpu.lint] in pyproject.toml.

exit codes:
  0 nothing found   1 something found   3 a bug
  2 wrong usage, or nothing found and some files could not be read, or --fix
    could not write a file
"""

EXIT_FINE, EXIT_FOUND, EXIT_UNREADABLE, EXIT_BUG = range(4)
EXIT_NOT_WRITTEN = 2

_NAMES = ("path",)
"""Fields that hold names of files: editors and code scanning open a file by them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files, folders or notebooks; - is standard input (default: this folder)",
    )
    parser.add_argument("--select", metavar="CODES", help="look for these causes only")
    parser.add_argument("--ignore", metavar="CODES", help="do not look for these causes")
    parser.add_argument(
        "--tensorflow", metavar="VERSION", help="the TensorFlow that the code is for: 1.15, 2.16"
    )
    parser.add_argument("--fix", action="store_true", help="mend what can be mended safely")
    parser.add_argument(
        "--diff", action="store_true", help="show what --fix would change, and change nothing"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the findings as JSON")
    output.add_argument("--sarif", action="store_true", help="print them as SARIF 2.1.0")
    output.add_argument("--github", action="store_true", help="print annotations for GitHub")
    parser.add_argument("-v", "--verbose", action="store_true", help="show ignored findings too")
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu.cli.progress import counting
    from whygpu.linter import files, lint_files, settings

    causes = lint_files.lint_causes()
    paths = options.paths or ["."]
    chosen = _with_options(settings.load(paths, causes), options, causes)
    found = files.find(paths, chosen)
    if options.diff:
        return _diff(found, chosen, causes)
    fixed = _fix(found, paths, chosen, causes) if options.fix else None
    report = lint_files.lint_files(found, chosen, counting())
    if fixed is None:
        _show(options, report, causes)
        return report.exit_code
    _show(options, report._replace(fixed=fixed.mended), causes)
    return EXIT_NOT_WRITTEN if fixed.left and report.exit_code < EXIT_BUG else report.exit_code


def _with_options(
    settings: Settings, options: argparse.Namespace, causes: Sequence[Cause]
) -> Settings:
    from whygpu.linter.settings import check_codes, tensorflow_line

    for name in ("select", "ignore"):
        given = getattr(options, name)
        if given is not None:
            words = tuple(given.replace(",", " ").split())
            check_codes(words, causes, f"--{name}")
            settings = (
                settings._replace(select=words)
                if name == "select"
                else settings._replace(ignore=words)
            )
    if options.tensorflow is not None:
        line = tensorflow_line(options.tensorflow, "--tensorflow")
        settings = settings._replace(tensorflow=line)
    return settings


def _fix(
    found: Sequence[str], given: Sequence[str], settings: Settings, causes: Sequence[Cause]
) -> FixResult:
    """Mend the files themselves, and say which could not be."""
    from whygpu.errors import UsageError
    from whygpu.linter.files import STDIN
    from whygpu.linter.fix_files import fix_files

    if STDIN in found:
        raise UsageError("--fix changes files, and standard input is none; --diff shows the change")
    result = fix_files(found, given, settings, causes)
    for path, why in result.left:
        output.say(f"{output.name(path)} is left as it is: {output.name(why)}")
    return result


def _diff(paths: Sequence[str], settings: Settings, causes: Sequence[Cause]) -> int:
    from whygpu.linter.fix import fixed
    from whygpu.linter.one_file import read
    from whygpu.linter.patch import patch

    changed, unreadable = False, 0
    for path in paths:
        try:
            content = read(path)
        except OSError as error:
            output.say(f"{output.name(path)} cannot be read: {error.strerror}")
            unreadable += 1
            continue
        result = fixed(path, content, settings, causes).content
        if result != content:
            changed = True
            output.patch(patch(path, content, result))
    if changed:
        return EXIT_FOUND
    return EXIT_UNREADABLE if unreadable else EXIT_FINE


def _show(options: argparse.Namespace, report: LintReport, causes: Sequence[Cause]) -> None:
    if options.json or options.sarif:
        from whygpu.render import lint_json

        if options.json:
            output.data(report, lint_json.render_json, _NAMES)
        else:
            output.data(report, partial(lint_json.render_sarif, causes=causes), _NAMES)
    elif options.github:
        from whygpu.render.lint_json import render_github

        output.text(report, render_github, _NAMES)
    else:
        from whygpu.render.lint_text import marked_lines, render
        from whygpu.render.marks import MARKS, PLAIN_MARKS

        output.page(
            (report, marked_lines(report)),
            lambda shown, **style: render(
                shown[0], marked=shown[1], verbose=options.verbose, **style
            ),
            color=options.color,
            marks=(MARKS, PLAIN_MARKS),
            names=_NAMES,
        )
