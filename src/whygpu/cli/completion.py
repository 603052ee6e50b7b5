"""Print the script that completes the words of whygpu in a shell."""

from __future__ import annotations

import argparse

from whygpu.cli.verb_help import DONE

EXAMPLES = """\
examples:
  eval "$(whygpu completion bash)"       in ~/.bashrc; zsh: the same in ~/.zshrc
  whygpu completion fish | source        in ~/.config/fish/config.fish
  whygpu completion bash > ~/.local/share/bash-completion/completions/whygpu

Words are completed without starting whygpu.
"""

EXIT_CODES = DONE

FILES = {"bash": "complete.bash", "zsh": "complete.zsh", "fish": "complete.fish"}
"""In the folder completions of the package, which `make docs` writes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(FILES), help="the shell: bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    from importlib.resources import files

    from whygpu.cli import output

    script = files("whygpu").joinpath("completions", FILES[options.shell])
    output.own(script.read_text(encoding="utf-8"))
    return 0
