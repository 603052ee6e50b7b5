"""Do CPU, GPU and other backends give the same results, and how fast is each?"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from whygpu.cli import output
from whygpu.cli.arguments import (
    add_color_argument,
    add_host_memory_argument,
    add_python_argument,
    seconds,
    whole_number,
)
from whygpu.cli.html_file import HtmlFile, add_html_argument

if TYPE_CHECKING:
    from whygpu.model.comparison import ComparisonReport

EXAMPLES = """\
what is compared:
  model.keras               a Keras model's file
  file.py:function          what it returns: a Keras model, a PyTorch module
                            (alone or with example inputs), (function,
                            arguments) for JAX, or arrays in any structure;
                            if a function that makes a batch stands in place
                            of the inputs, its time is reported separately
  script.py                 what it hands to whygpu.record("name", array)

lanes, with commas between them:
  cpu, gpu                  the device
  gpu:no-cudnn+no-tf32      with options: no-cudnn, no-tf32, deterministic, xla
  keras:jax                 a Keras backend (tensorflow, jax, torch), on the CPU
  keras:torch@gpu:no-tf32   the same on a GPU

examples:
  whygpu compare model.keras
  whygpu compare train.py:build_model --lanes cpu,gpu,gpu:no-cudnn --batch 16
  whygpu compare train.py:build_model --lanes keras:tensorflow,keras:jax
  whygpu compare net.py:module --input 3x224x224 --train 5
  whygpu compare script.py --lanes cpu,gpu --json
  whygpu compare model.keras --inputs data.npz --html report.html
"""

EXIT_CODES = {"0": "equal, or different by rounding only", "1": "different", "4": "cannot tell"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", help="model.keras, file.py:function or script.py")
    parser.add_argument(
        "--lanes", metavar="LANES", help="cpu,gpu,...; default: the most useful ones here"
    )
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument(
        "--inputs",
        metavar="FILE",
        help="inputs of a model, or a function, by name: a file of numpy.savez",
    )
    inputs.add_argument(
        "--random",
        metavar="SEED",
        type=whole_number,
        default=0,
        help="the seed of made-up inputs (default: 0)",
    )
    parser.add_argument(
        "--batch", metavar="N", type=whole_number, help="how many examples (default: 4)"
    )
    parser.add_argument(
        "--input",
        metavar="SHAPE",
        dest="shapes",
        help="the shape of the input, if the model does not say it: 3x224x224, or 128:int64",
    )
    parser.add_argument(
        "--tolerance",
        metavar="T",
        default="auto",
        help="auto (what rounding explains), or a part of the largest value: 1e-4",
    )
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=whole_number,
        help="calls to measure (default: as many as fit in 1.5 s)",
    )
    parser.add_argument(
        "--train",
        metavar="N",
        type=whole_number,
        default=0,
        help="train N steps as well, and compare that",
    )
    add_python_argument(parser, "to run it with")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=1800.0,
        help="for one run of one lane (default: 1800)",
    )
    add_host_memory_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_html_argument(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="every layer, every reason")
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli.progress import showing

    html_file = HtmlFile(options.html)
    with showing("looking at this machine") as show:
        report = api.compare(
            options.what,
            options.lanes,
            inputs=options.inputs,
            random=options.random,
            batch=options.batch,
            shapes=options.shapes,
            tolerance=options.tolerance,
            repeat=options.repeat,
            train=options.train,
            python=options.python,
            timeout=options.timeout,
            host_memory=options.host_memory,
            on_progress=show,
        )
    _show(report, options)
    html_file.write(report)
    return report.exit_code


def _show(report: ComparisonReport, options: argparse.Namespace) -> None:
    if options.json:
        from whygpu.render.compare_json import render as render_json

        output.data(report, render_json)
        return
    from whygpu.render.compare_text import PLAIN_SIGNS, render

    output.page(
        report,
        partial(render, verbose=options.verbose),
        color=options.color,
        signs=PLAIN_SIGNS,
    )
