"""Which lines of my program mishandle devices?"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from whygpu.cli import output
from whygpu.cli.arguments import add_color_argument
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.cli.suggestions import looks_like_log
from whygpu.errors import UsageError

if TYPE_CHECKING:
    from whygpu.model.code_finding import LintReport

EXAMPLES = """\
examples:
  whygpu lint train.py                 one file
  whygpu lint .                        everything that it reads in a folder
  whygpu lint --fix --diff .           show what --fix would change
  whygpu lint --gpu "RTX 5090" .       for the machine that it will run on
  whygpu lint --sarif . > lint.sarif   for code scanning
  cat train.py | whygpu lint -         from standard input

In a file, `# whygpu: ignore[WG720] the reason` ignores one finding. Settings
are read from [tool.whygpu.lint] in pyproject.toml.
"""

EXIT_CODES = {
    "0": "nothing found",
    "1": "something found",
    "2": "wrong usage, --fix cannot write, or nothing found but not all was read",
}

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
    parser.add_argument(
        "--driver", metavar="VERSION", help="the NVIDIA driver that images are for: 535.54.03"
    )
    parser.add_argument(
        "--gpu", metavar="MODEL", help='the GPU that images and requirements are for: "RTX 5090"'
    )
    parser.add_argument(
        "--snapshot", metavar="FILE", help="lint for the machine of a saved snapshot"
    )
    parser.add_argument("--fix", action="store_true", help="fix what can be fixed safely")
    parser.add_argument(
        "--diff", action="store_true", help="show what --fix would change, and change nothing"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the findings as JSON")
    output.add_argument("--sarif", action="store_true", help="print them as SARIF 2.1.0")
    output.add_argument("--github", action="store_true", help="print annotations for GitHub")
    add_html_argument(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="show ignored findings too")
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli.progress import counting

    paths = options.paths or ["."]
    names = ("select", "ignore", "tensorflow", "driver", "gpu")
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names}
    if options.snapshot is not None:
        chosen["machine"] = api.load_snapshot(options.snapshot)
    html_file = HtmlFile(options.html)
    if options.diff:
        if options.html is not None:
            raise UsageError("--diff prints a patch; --html is for the findings: leave one out")
        patch = api.lint_patch(paths, **chosen)
        for problem in patch.problems:
            output.say(f"{output.name(problem.path)} cannot be read: {problem.message}")
        output.patch(patch.content)
        return patch.exit_code
    report = api.lint(paths, **chosen, fix=options.fix, on_progress=counting())
    for left in report.not_fixed:
        output.say(f"{output.name(left.path)} is left as it is: {output.name(left.why)}")
    _show(options, report)
    for problem in report.problems:
        if problem.kind == "syntax" and looks_like_log(problem.path):
            output.say(
                f"lint reads programs; for a log: whygpu explain {output.name(problem.path)}"
            )
    html_file.write(report, _NAMES)
    return report.exit_code


def _show(options: argparse.Namespace, report: LintReport) -> None:
    if options.json or options.sarif:
        from whygpu.render import lint_json

        if options.json:
            output.data(report, lint_json.render_json, _NAMES)
        else:
            from whygpu.api import lint_causes
            from whygpu.version import VERSION

            as_sarif = partial(lint_json.render_sarif, causes=lint_causes(), version=VERSION)
            output.data(report, as_sarif, _NAMES)
    elif options.github:
        from whygpu.render.lint_json import render_github

        output.text(report, render_github, _NAMES)
    else:
        from whygpu.render.lint_text import marked_lines, render

        output.page(
            (report, marked_lines(report)),
            lambda shown, **style: render(
                shown[0], marked=shown[1], verbose=options.verbose, **style
            ),
            color=options.color,
            names=_NAMES,
        )
