"""What is the largest batch that fits?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from whygpu.cli.arguments import (
    add_color_argument,
    add_input_argument,
    add_python_argument,
    seconds,
    whole_number,
)
from whygpu.cli.html_file import HtmlFile, add_html_argument

if TYPE_CHECKING:
    from whygpu.memory.find import Progress

EXAMPLES = """\
examples:
  whygpu memory find train.py:make_model         a function that returns a model
  whygpu memory find train.py:step               a function step(batch_size)
  whygpu memory find model.keras --infer         a saved model, without training
  whygpu memory find net.py:Net --input 3x224x224 --optimizer sgd
  whygpu memory find train.py:step --limit 8GiB --margin 5% --multiple-of 8
  whygpu memory find train.py:step --device cpu --python ~/venv --json
"""

EXIT_CODES = {"0": "found", "1": "nothing fits, or the step leaks", "4": "cannot tell"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="model.keras, or file.py:function, which returns a Keras model, a PyTorch module, "
        "(module, example_inputs), (function, arguments) or a function step(batch_size), or "
        "takes batch_size and does the step itself",
    )
    add_python_argument(parser, "to run it with")
    parser.add_argument("--device", metavar="DEVICE", help="cpu, gpu, or gpu:1 in PCI bus order")
    parser.add_argument(
        "--limit",
        metavar="AMOUNT",
        help="memory it may use, such as 8GiB: the GPU's, or on the CPU what is resident; "
        "default: what is free",
    )
    parser.add_argument(
        "--margin",
        metavar="PART",
        default="0%",
        help="part of the memory to keep free, such as 5%%",
    )
    parser.add_argument(
        "--start", metavar="N", type=whole_number, help="the first batch to try; default: 8"
    )
    parser.add_argument(
        "--max", metavar="N", dest="largest", type=whole_number, help="try no larger batch"
    )
    parser.add_argument(
        "--multiple-of",
        metavar="N",
        type=whole_number,
        default=1,
        help="try multiples of this only",
    )
    parser.add_argument("--infer", action="store_true", help="inference instead of training")
    parser.add_argument("--optimizer", metavar="NAME", help="to train a model with: adam, sgd, ...")
    add_input_argument(parser)
    parser.add_argument(
        "--timeout", metavar="S", type=seconds, help="seconds for each trial; default: 600"
    )
    parser.add_argument(
        "--no-cache", dest="cache", action="store_false", help="do not use what was found before"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_html_argument(parser)
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import showing
    from whygpu.render.memory_find import render, render_json

    html_file = HtmlFile(options.html)
    done = ""
    try:
        with showing("looking at this machine") as show:

            def tell(progress: Progress) -> None:
                nonlocal done
                done = _done_in_words(progress)
                show(_in_words(progress))

            result = api.find_batch_size(
                options.what,
                python=options.python,
                device=options.device,
                limit=options.limit,
                margin=options.margin,
                start=options.start,
                largest=options.largest,
                multiple_of=options.multiple_of,
                infer=options.infer,
                optimizer=options.optimizer,
                input=options.input,
                timeout=options.timeout,
                cache=options.cache,
                on_progress=tell,
            )
    except KeyboardInterrupt:
        if done:
            # Each trial took its time: what it has shown is not lost.
            output.say(f"up to now {done}")
        raise
    if options.json:
        output.data(result, render_json)
    else:
        output.page(result, render, color=options.color)
    html_file.write(result)
    return result.exit_code


def _done_in_words(progress: Progress) -> str:
    return ", ".join(
        f"{trial.batch} {'fits' if trial.outcome == 'fits' else 'does not'}"
        for trial in progress.trials
    )


def _in_words(progress: Progress) -> str:
    number = len(progress.trials) + 1
    fitting = max((trial.batch for trial in progress.trials if trial.outcome == "fits"), default=0)
    so_far = f"; {fitting} fits" if fitting else ""
    where = "GPU" if progress.on_gpu else "main"
    return f"{where} memory, trial {number}, batch {progress.batch}: {progress.stage}{so_far}"
