"""Suggests what a word that is not a verb was meant as: a similar verb, or the verb it needs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection

from whygpu.cli import output
from whygpu.errors import UsageError

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a tenth of its time
if TYPE_CHECKING:
    from typing import Any, NoReturn

_KINDS = {
    "model": r".+\.(?:keras|h5|hdf5)|.+\.py:[\w.]+",
    "source": r".+\.py",
    "log": r".+\.(?:log|txt|out|err)",
    "code": r"(?i:WG)\d{3}",
    "command": r"(?:.*/)?python[\d.]*",
}
"""What a word looks like, the first that fits."""

_ESTIMATE = ("memory estimate {word} --batch 32", "the memory that it needs")
_FIND = ("memory find {word}", "the largest batch that fits")
_ESTIMATE_OF = ("memory estimate {word}:FUNCTION --batch 32", "what a model of it needs")
_FIND_OF = ("memory find {word}:FUNCTION", "the largest batch that fits")
_RUN = ("run -- python {word}", "run it, and see where")
_LINT = ("lint {word}", "which lines mishandle devices")
_COMPARE = ("compare {word}", "do CPU, GPU and others agree?")
_SUGGESTIONS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "whygpu": {
        "model": (_ESTIMATE, _FIND, _COMPARE),
        "source": (_RUN, _LINT, _ESTIMATE_OF),
        "log": (("explain {word}", "what it means"),),
        "code": (("rule {word}", "what the code means"),),
        "command": (("run -- {word} ...", "run it, and see where"),),
    },
    "whygpu memory": {"model": (_ESTIMATE, _FIND), "source": (_ESTIMATE_OF, _FIND_OF)},
}
"""By the command that the word follows, and what it looks like."""


class Parser(argparse.ArgumentParser):
    """argparse's own would only list all verbs."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help to standard output, errors to standard error, both through the one exit."""
        if not message:
            return
        if file is sys.stdout:
            output.own(message)
        else:
            output.say_own(message)

    def error(self, message: str) -> NoReturn:
        """What is wrong with the words may quote them."""
        super().error(output.plain(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.nargs == argparse.PARSER and value not in (action.choices or ()):
            raise UsageError(unknown_word(self.prog, str(value), tuple(action.choices or ())))
        super()._check_value(action, value)


def unknown_word(command: str, word: str, names: Collection[str]) -> str:
    """What was seen, and what to type instead."""
    import difflib

    near = difflib.get_close_matches(word, names, 1)
    if near:
        return f"no such verb: {word!r}; did you mean `{command} {near[0]}`?"
    meant = _commands(command, word)
    if not meant:
        *others, last = names
        return f"{command} {word}: expected {', '.join(others)} or {last}"
    wide = max(len(line) for line, _ in meant)
    lines = [f"  {line:{wide}}   {what}" for line, what in meant]
    return "\n".join([f"{word!r} needs a verb before it:", *lines])


def _commands(command: str, word: str) -> list[tuple[str, str]]:
    import re

    from whygpu.model.shell import quoted

    kind = next((kind for kind, form in _KINDS.items() if re.fullmatch(form, word)), "")
    shown = quoted(output.plain(word))
    rows = _SUGGESTIONS.get(command, {}).get(kind, ())
    return [(f"whygpu {line.format(word=shown)}", what) for line, what in rows]
