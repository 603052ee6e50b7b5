"""Options that several verbs have, and the words of their values."""

from __future__ import annotations

import argparse


def add_color_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour: on a terminal (default), always, or never; NO_COLOR and "
        "FORCE_COLOR are honoured",
    )


def add_python_argument(
    parser: argparse.ArgumentParser,
    what_for: str = "",
    *,
    subject: str = "the interpreter (or virtual environment)",
    dest: str = "python",
) -> None:
    parser.add_argument(
        "--python",
        metavar="PYTHON",
        dest=dest,
        help=f"{subject} {what_for}".rstrip() + "; default: the active environment, else the one "
        "that has whygpu and a framework, else python on PATH",
    )


def add_data_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """An answer for programs, in one of two formats."""
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help=f"print {what} as JSON")
    formats.add_argument("--sarif", action="store_true", help=f"print {what} as SARIF 2.1.0")


def add_input_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        metavar="SHAPE",
        help="what a model takes, without the batch: 3x224x224, 256:int64; several with commas",
    )


def add_host_memory_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host-memory",
        metavar="AMOUNT",
        help="main memory that one process of it may take, such as 32GiB (default: what is free "
        "now, minus a reserve)",
    )


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number") from None


def seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds") from None
