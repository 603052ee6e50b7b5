"""How much GPU memory does a model take, does it fit, and which batch would?"""

from __future__ import annotations

import argparse

from whygpu.cli.arguments import (
    add_color_argument,
    add_host_memory_argument,
    add_input_argument,
    add_python_argument,
    seconds,
    whole_number,
)
from whygpu.cli.html_file import HtmlFile, add_html_argument

EXAMPLES = """\
examples:
  whygpu memory estimate model.keras --batch 64 --gpu "RTX 4090"
  whygpu memory estimate model.keras --infer --limit 8GiB --backend jax
  whygpu memory estimate train.py:build_model --batch 32 --mixed-precision
  whygpu memory estimate net.py:Net --input 3x224x224 --optimizer sgd
  whygpu memory estimate steps.py:make_step        a JAX (function, arguments)
  whygpu memory estimate model.keras --python ~/venv --json
"""

EXIT_CODES = {
    "0": "fits, or no GPU or limit is known",
    "1": "does not fit",
    "4": "cannot tell",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="model.keras, or file.py:function, which returns a Keras model, a PyTorch module, "
        "(module, example_inputs) or, for JAX, (function, arguments)",
    )
    parser.add_argument(
        "--batch",
        metavar="N",
        dest="batch_size",
        type=whole_number,
        default=32,
        help="examples (default: 32)",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--train", action="store_true", default=True, help="a training step (the default)"
    )
    mode.add_argument(
        "--infer", dest="train", action="store_false", help="inference instead of training"
    )
    parser.add_argument(
        "--optimizer",
        metavar="NAME",
        help="adam, sgd, ...; default: the one that the model is compiled with, else adam",
    )
    parser.add_argument(
        "--mixed-precision", action="store_true", help="compute in 16 bits, keep weights in 32"
    )
    room = parser.add_mutually_exclusive_group()
    room.add_argument(
        "--gpu", metavar="MODEL", help='the GPU: "RTX 4090", "A100 80GB"; default: this machine\'s'
    )
    room.add_argument("--limit", metavar="AMOUNT", help="memory it may take, such as 8GiB")
    parser.add_argument(
        "--backend", metavar="NAME", help="Keras's: torch, jax or tensorflow (default: as set)"
    )
    add_input_argument(parser)
    add_python_argument(parser, "that has the framework")
    add_host_memory_argument(parser)
    parser.add_argument("--timeout", metavar="S", type=seconds, help="seconds for all of it")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_html_argument(parser)
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import waiting
    from whygpu.render.memory_estimate import render, render_json

    html_file = HtmlFile(options.html)
    with waiting("estimating") as show:
        found = api.estimate_memory(
            options.what,
            batch_size=options.batch_size,
            train=options.train,
            optimizer=options.optimizer,
            mixed_precision=options.mixed_precision,
            gpu=options.gpu,
            limit=options.limit,
            backend=options.backend,
            input=options.input,
            python=options.python,
            timeout=options.timeout,
            host_memory=options.host_memory,
            on_progress=show,
        )
    if options.json:
        output.data(found, render_json)
    else:
        output.page(found, render, color=options.color)
    html_file.write(found)
    return found.exit_code
