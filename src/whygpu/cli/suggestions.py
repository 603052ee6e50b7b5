"""Suggests what a word that is not a verb was meant as: a similar verb, or the verb it needs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence

from whygpu.cli import output
from whygpu.errors import EXIT_USAGE, UsageError

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a tenth of its time
if TYPE_CHECKING:
    from typing import Any, NoReturn

_KINDS = {
    "model": r".+\.(?:keras|h5|hdf5)|.+\.py:[\w.]+",
    "source": r".+\.py",
    "notebook": r".+\.ipynb",
    "requirements": r"(?:.*/)?(?:[\w-]*requirements[\w-]*\.txt|pyproject\.toml|\w+\.lock)",
    "log": r".+\.(?:log|txt|out|err)",
    "snapshot": r".+\.json",
    "code": r"(?i:WG)\d{3}",
    "command": r"(?:.*/)?python[\d.]*",
    "framework": r"(?i:tensorflow|keras|jax|torch|pytorch)(?:[=<>~].*)?",
    "message": r"(?s).*\S\s+\S.*",
}
"""What a word looks like, the first that fits."""

_ESTIMATE = ("memory estimate {word} --batch 32", "the memory that it needs")
_FIND = ("memory find {word}", "the largest batch that fits")
_ESTIMATE_OF = ("memory estimate {word}:FUNCTION --batch 32", "what a model of it needs")
_FIND_OF = ("memory find {word}:FUNCTION", "the largest batch that fits")
_RUN = ("run -- python {word}", "run it, and see where")
_LINT = ("lint {word}", "which lines mishandle devices")
_EXPLAIN = ("explain {word}", "what it means")
_COMPARE = ("compare {word}", "do CPU, GPU and others agree?")
_SUGGESTIONS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "whygpu": {
        "model": (_ESTIMATE, _FIND, _COMPARE),
        "source": (_RUN, _LINT, _ESTIMATE_OF),
        "notebook": (_EXPLAIN, _LINT),
        "requirements": (("plan --from {word}", "which of these cannot use the GPU"),),
        "log": (_EXPLAIN,),
        "snapshot": (("check --snapshot {word}", "diagnose the machine that it is from"),),
        "environment": (("check --python {word}", "does each framework in it use the GPU?"),),
        "folder": (_LINT,),
        "code": (("rule {word}", "what the code means"),),
        "command": (("run -- {word} ...", "run it, and see where"),),
        "framework": (("plan {word}", "which releases can use this GPU"),),
        "message": (_EXPLAIN,),
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
        shown = output.plain(message)
        lines = (f"{self.prog}: error: {shown}", f"`{self.prog} --help` has examples.", "")
        self.exit(EXIT_USAGE, output.wrapped(self.format_usage() + "\n".join(lines)))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.nargs == argparse.PARSER and value not in (action.choices or ()):
            raise UsageError(unknown_word(self.prog, str(value), tuple(action.choices or ())))
        super()._check_value(action, value)


def refuse_unknown(
    top: argparse.ArgumentParser, words: Sequence[str], unknown: Sequence[str]
) -> NoReturn:
    """Say which words the verb does not take, and what the first of them was meant as."""
    import difflib

    from whygpu.cli.option_words import options

    first = unknown[0].partition("=")[0]
    problem = f"unrecognized arguments: {' '.join(unknown)}"
    if first.startswith("-"):
        names = [name for action in options(top, words) for name in action.option_strings]
        near = difflib.get_close_matches(first, names, 1)
        if near:
            problem += f"; did you mean {near[0]}?"
    else:
        meant = _commands("whygpu", first)
        if meant:
            problem += f"; did you mean `{meant[0][0]}`?"
    _innermost(top, words).error(problem)


def _innermost(top: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the verb, or of the subverb, that the words name: its usage helps more."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            named = next((word for word in words if word in action.choices), None)
            if named is not None:
                return _innermost(action.choices[named], words)
    return top


def looks_like_log(path: str) -> bool:
    return _kind(path) == "log"


def unknown_word(command: str, word: str, names: Collection[str]) -> str:
    """What was seen, and what to type instead."""
    import difflib

    near = difflib.get_close_matches(word, names, 1)
    if near:
        return f"no such verb: {word!r}; did you mean `{command} {near[0]}`?"
    meant = _commands(command, word)
    if not meant:
        *others, last = names
        return f"no such verb: {word!r}; expected {command} {', '.join(others)} or {last}"
    wide = max(len(line) for line, _ in meant)
    lines = [f"  {line:{wide}}   {what}" for line, what in meant]
    return "\n".join([f"{word!r} needs a verb before it:", *lines])


def _commands(command: str, word: str) -> list[tuple[str, str]]:
    from whygpu.model.shell import quoted

    shown = quoted(output.plain(word))
    rows = _SUGGESTIONS.get(command, {}).get(_kind(word), ())
    return [(f"whygpu {line.format(word=shown)}", what) for line, what in rows]


def _kind(word: str) -> str:
    import re

    if os.path.exists(os.path.join(word, "bin", "python")):
        return "environment"
    if os.path.isdir(word):
        return "folder"
    return next((kind for kind, form in _KINDS.items() if re.fullmatch(form, word)), "")
