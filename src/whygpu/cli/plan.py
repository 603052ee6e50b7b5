"""Which releases can use the GPU of this machine, or of one that options describe?"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from whygpu.cli import output
from whygpu.cli.arguments import add_color_argument, add_python_argument
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.errors import UsageError
from whygpu.model.shell import quoted

if TYPE_CHECKING:
    from whygpu.model.install_plan import PlanAnswer, ReleaseAnswer

EXAMPLES = """\
examples:
  whygpu plan                              TensorFlow on this machine
  whygpu plan tensorflow jax               both, in one environment
  whygpu plan tensorflow==2.15 --python 3.11 --driver 470.82 --gpu "RTX 3090"
  whygpu plan --why-not tensorflow==2.12   the whole chain for one release
  whygpu plan torch --matrix               every release and what it needs
  whygpu plan --snapshot FILE --json       another machine, from its snapshot
  whygpu plan --from requirements.txt      which lines cannot use the GPU
  whygpu plan --update                     read the package index first
"""

EXIT_CODES = {
    "0": "a plan; with --from: all of it can use the GPU",
    "1": "no plan; with --from: something cannot",
    "2": "wrong usage, or a file that cannot be read",
    "4": "cannot tell",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "wishes",
        nargs="*",
        metavar="FRAMEWORK",
        help="tensorflow, keras, jax, torch, cupy, onnxruntime; as in tensorflow==2.15 "
        "(default: tensorflow)",
    )
    add_python_argument(
        parser,
        subject="a version (3.11; 3.14t if free-threaded), an interpreter or a virtual environment",
    )
    parser.add_argument("--driver", metavar="VERSION", help="the NVIDIA driver: 535.54.03")
    parser.add_argument(
        "--gpu",
        metavar="MODEL",
        action="append",
        help='the GPU: "RTX 5090", or its compute capability: 12.0; may be repeated',
    )
    parser.add_argument("--glibc", metavar="VERSION", help="the C library: 2.31")
    parser.add_argument(
        "--platform",
        metavar="PLATFORM",
        help="linux_x86_64, linux_aarch64, win_amd64, macosx_arm64 or macosx_x86_64",
    )
    parser.add_argument("--snapshot", metavar="FILE", help="plan for a saved snapshot's machine")
    parser.add_argument(
        "--why-not", metavar="RELEASE", help="check one release against every constraint"
    )
    parser.add_argument(
        "--from",
        dest="file",
        metavar="FILE",
        help="judge what a requirements.txt, pyproject.toml, environment.yml, uv.lock, "
        "poetry.lock, pdm.lock, pixi.lock or conda-lock.yml installs",
    )
    parser.add_argument("--matrix", action="store_true", help="print the table of releases")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="let uv, or pip if uv is not installed, resolve the plan too (asks the index)",
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="first bring the table of releases up to date from the package index of pip "
        "(uses the network; about 10 MB)",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    add_html_argument(parser)
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api

    html_file = HtmlFile(options.html)
    if options.update:
        _update()
    names = ("python", "driver", "gpu", "glibc", "platform")
    facts: dict[str, Any] = {name: getattr(options, name) for name in names}
    if options.gpu is not None:
        facts["gpu"] = ", ".join(options.gpu)
    if options.snapshot is not None:
        facts["machine"] = api.load_snapshot(options.snapshot)
    if options.file is not None:
        return _show_file(options, facts, html_file)
    if options.why_not is not None:
        release = api.why_not(options.why_not, *options.wishes, **facts)
        _show_release(release, options)
        html_file.write(release)
        return release.exit_code
    for word in options.wishes:
        if os.path.isfile(word):
            raise UsageError(f"{word} is a file; `whygpu plan --from {quoted(word)}` reads it")
    answer = api.plan(*options.wishes, **facts, verify=options.verify)
    _show(answer, options)
    html_file.write(answer)
    return answer.exit_code


def _show_file(options: argparse.Namespace, facts: dict[str, Any], html_file: HtmlFile) -> int:
    from whygpu import api
    from whygpu.render import requirements_json, requirements_text

    if options.wishes or options.why_not or options.matrix or options.verify:
        raise UsageError(
            f"--from {options.file}: the file names the frameworks; leave out FRAMEWORK, "
            "--why-not, --matrix and --verify"
        )
    answer = api.plan_from(options.file, **facts)
    names = ("file", "path")
    if options.json:
        output.data(answer, requirements_json.render, names)
    else:
        output.page(answer, requirements_text.render, color=options.color, names=names)
    html_file.write(answer, names)
    return answer.exit_code


def _update() -> None:
    """Update the release table, and say on standard error what has changed."""
    from whygpu import api
    from whygpu.cli.progress import showing
    from whygpu.render.plan_text import update_lines

    with showing("reading the package index") as show:
        done = api.update_releases(show)
    for line in update_lines(done):
        output.say(line)


def _show(answer: PlanAnswer, options: argparse.Namespace) -> None:
    from whygpu.render import plan_json, plan_text

    if options.json:
        # It lists every release, also without --matrix.
        output.data(answer, plan_json.render)
    elif options.matrix:
        from whygpu.planner.matrix import matrix

        output.page(
            matrix(answer),
            lambda rows, width, color: plan_text.render_matrix(rows, color=color),
            color=options.color,
        )
    else:
        output.page(answer, plan_text.render, color=options.color)


def _show_release(release: ReleaseAnswer, options: argparse.Namespace) -> None:
    from whygpu.render import plan_json, plan_text

    if options.json:
        output.data(release, plan_json.render_chain)
    else:
        output.page(release, plan_text.render_chain, color=options.color)
