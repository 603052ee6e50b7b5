"""Which lines of my program mishandle devices?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from whygpu.cli.arguments import add_color_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whygpu.linter.run import OnProgress
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
  0 nothing found   1 something found   2 wrong usage   3 a bug
"""

_PATIENCE = 0.5
"""Seconds after which a reader wants to see that something goes on."""


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
    from whygpu.linter import files, run, settings

    causes = run.lint_causes()
    paths = options.paths or ["."]
    chosen = _with_options(settings.load(paths, causes), options, causes)
    found = files.find(paths, chosen)
    if options.diff:
        return _diff(found, chosen, causes)
    mended = _fix(found, chosen, causes) if options.fix else 0
    report = run.lint_files(found, chosen, _progress())
    _write(options, report._replace(fixed=mended), causes)
    return report.exit_code


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


def _fix(paths: Sequence[str], settings: Settings, causes: Sequence[Cause]) -> int:
    """Mend the files themselves; how many findings that were."""
    from whygpu.errors import UsageError
    from whygpu.linter.files import STDIN
    from whygpu.linter.fix import fixed
    from whygpu.linter.one_file import read

    if STDIN in paths:
        raise UsageError("--fix changes files, and standard input is none; --diff shows the change")
    count = 0
    for path in paths:
        try:
            content = read(path)
            result = fixed(path, content, settings, causes)
            if result.content != content:
                with open(path, "wb") as file:
                    file.write(result.content)
                count += result.mended
        except OSError as error:
            print(f"whygpu: {path} is left as it is: {error.strerror}", file=sys.stderr)
    return count


def _diff(paths: Sequence[str], settings: Settings, causes: Sequence[Cause]) -> int:
    import difflib

    from whygpu.cli.terminal import write
    from whygpu.linter.fix import fixed
    from whygpu.linter.one_file import read

    changed = False
    for path in paths:
        try:
            content = read(path)
        except OSError as error:
            print(f"whygpu: {path} cannot be read: {error.strerror}", file=sys.stderr)
            continue
        result = fixed(path, content, settings, causes).content
        if result == content:
            continue
        changed = True
        before, after = (
            text.decode("utf-8", "replace").splitlines(keepends=True) for text in (content, result)
        )
        for line in difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"):
            write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return 1 if changed else 0


def _write(options: argparse.Namespace, report: LintReport, causes: Sequence[Cause]) -> None:
    from whygpu.cli.terminal import shows, use_color, width, write

    if options.json or options.sarif or options.github:
        from whygpu.render import lint_json

        if options.json:
            write(lint_json.render_json(report))
        elif options.sarif:
            write(lint_json.render_sarif(report, causes))
        else:
            write(lint_json.render_github(report))
        return
    from whygpu.render.lint import MARKS, PLAIN_MARKS, render

    text = render(
        report,
        width=width(),
        color=use_color(options.color),
        verbose=options.verbose,
        marks=MARKS if shows("".join(MARKS.values()), sys.stdout) else PLAIN_MARKS,
    )
    write(text)


def _progress() -> OnProgress | None:
    """A count on standard error, for somebody who waits."""
    if not sys.stderr.isatty():
        return None
    import time

    began = shown = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if done == total:
            if shown > began:
                sys.stderr.write("\r\033[K")
        elif now - began > _PATIENCE and now - shown > 0.1:
            shown = now
            sys.stderr.write(f"\r{done:,} of {total:,} files")
        else:
            return
        sys.stderr.flush()

    return show
