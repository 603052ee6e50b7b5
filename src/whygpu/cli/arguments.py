"""Options that several verbs have."""

from __future__ import annotations

import argparse


def add_color_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour: on a terminal (default), always, or never; NO_COLOR is honoured",
    )
