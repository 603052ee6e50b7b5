"""Write the reference of the command line and of the Python functions into docs/reference."""

from __future__ import annotations

import argparse
import ast
import inspect
import pathlib
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import whygpu
from whygpu.cli.help_page import SUMMARIES
from whygpu.cli.parser import parser

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "reference"

_PAGES = {
    "check": "check.md",
    "compare": "compare.md",
    "completion": "shell.md",
    "diff": "diff.md",
    "explain": "explain.md",
    "fix": "fix.md",
    "fleet": "fleet.md",
    "fleet check": "fleet.md",
    "fleet explain": "fleet.md",
    "fleet recipe": "fleet.md",
    "fleet report": "fleet.md",
    "history": "history.md",
    "lint": "lint.md",
    "lsp": "editor.md",
    "mcp": "agent.md",
    "memory": "memory.md",
    "memory estimate": "memory-estimate.md",
    "memory find": "memory-find.md",
    "plan": "plan.md",
    "report": "page.md",
    "rule": "rule.md",
    "run": "run.md",
    "snapshot": "snapshot.md",
}
"""Verb to the page about it."""

_EXAMPLE = re.compile(r"^Example:\n((?:    .*\n?|\n)+)", re.MULTILINE)


def pages() -> dict[str, str]:
    """File name to text."""
    return {"cli.md": command_line(), "python.md": python_functions()}


def command_line() -> str:
    parts = [
        "# Command line",
        "Made by `make docs` from the program. `whygpu VERB --help` prints the same. "
        "[Marks and exit codes](../answers.md) are the same for all verbs.",
        "`whygpu` without a verb is `whygpu check`. `whygpu --version` prints the version.",
    ]
    for name, verb in verbs():
        parts += [f"## whygpu {name}", f"{verb.description} ([More](../{_PAGES[name]}))"]
        parts += ["\n".join(_table(verb)), _text_block(verb.epilog or "")]
    return "\n\n".join(parts) + "\n"


def _table(verb: argparse.ArgumentParser) -> Iterator[str]:
    """Arguments and options, from the parser and not from its help, which each Python lays out
    differently."""
    yield "| argument | meaning |"
    yield "| --- | --- |"
    for flags, meaning in arguments(verb):
        yield f"| `{flags}` | {meaning.replace('|', chr(92) + '|')} |"


def arguments(verb: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Each argument and option of a verb as it is typed, and its meaning."""
    for action in verb._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        value = "" if action.nargs == 0 else str(action.metavar or "")
        if action.choices and not action.metavar:
            value = "{" + ",".join(map(str, action.choices)) + "}"
        flags = ", ".join(f"{flag} {value}".strip() for flag in action.option_strings) or value
        yield flags, (action.help or "") % {"default": action.default, "prog": verb.prog}


def verbs() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The verbs and subverbs by their names."""
    for verb in SUMMARIES:
        found = _parsers_below(parser(verb))[verb]
        yield verb, found
        for name, below in _parsers_below(found).items():
            yield f"{verb} {name}", below


def _parsers_below(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def python_functions() -> str:
    parts = [
        "# Python",
        "Made by `make docs` from the docstrings. `help(whygpu.check)` prints the same.",
        "The functions examine the interpreter that runs them (`THIS_PYTHON`), unless `python` "
        "names another environment. What they return prints as one line.",
    ]
    for name in sorted(set(whygpu.__all__) - {"__version__"}, key=str.lower):
        thing = getattr(whygpu, name)
        parts += [f"## whygpu.{name}"]
        if not _is_error(thing):
            parts += [_python_block(f"{name}{_signature(thing)}")]
        parts += [_with_examples(inspect.getdoc(thing) or "")]
    return "\n\n".join(parts) + "\n"


def _is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def _signature(thing: Any) -> str:
    """The arguments as the source has them: a default may be the path of this very Python."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))).body
    if isinstance(node, ast.ClassDef):
        made = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        fields = [ast.unparse(part) for part in node.body if isinstance(part, ast.AnnAssign)]
        if fields:
            return _listed(fields, "")
        (node,) = (part for part in made if part.name == "__init__")
    assert isinstance(node, ast.FunctionDef)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return _listed(list(_arguments(node.args)), result.replace(" -> None", ""))


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    positional = arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        if argument.arg != "self":
            yield _argument(argument, default)
    if arguments.vararg:
        yield "*" + _argument(arguments.vararg, None)
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    written = ast.unparse(argument)
    return f"{written} = {ast.unparse(default)}" if default else written


def _listed(arguments: list[str], result: str) -> str:
    """In one line, or one argument in each line if they are many."""
    line = f"({', '.join(arguments)}){result}"
    if len(line) < 70:
        return line
    return "(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){result}"


def _with_examples(text: str) -> str:
    """The docstring as Markdown: its example is a block of code."""

    def block(match: re.Match[str]) -> str:
        return _python_block(textwrap.dedent(match[1]))

    return _EXAMPLE.sub(block, text).strip()


def _text_block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _python_block(text: str) -> str:
    return f"```python\n{text.rstrip()}\n```"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
