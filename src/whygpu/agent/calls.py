"""Turns the arguments of a tool into a command line, or says what is wrong with them.

Values stand behind `--option=` or after `--`, so that none can be read as an option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from whygpu.agent.tools import Argument, Tool
from whygpu.model.outside_text import excerpt

_ALLOW_FIX = (
    "this server may not change anything, so nothing was done. Without `apply`, `fix` lists the "
    "steps; a person can run `whygpu fix --apply`, or start the server with --allow-fix"
)


class ToolFailure(Exception):
    """What is wrong with a call, for the agent to read."""


class Call(NamedTuple):
    """A tool and its arguments as a command line."""

    words: tuple[str, ...]
    given: bytes
    """Standard input."""


def call_of(tool: Tool, arguments: Mapping[str, Any], *, may_change: bool) -> Call:
    """The command line for the arguments; ToolFailure if they are wrong or not allowed.

    Many agents pass null for an argument that they leave out.
    """
    arguments = {name: value for name, value in arguments.items() if value is not None}
    _check(tool, arguments)
    if arguments.get("apply") and not may_change:
        raise ToolFailure(_ALLOW_FIX)
    options: list[str] = []
    others: list[str] = []
    given = ""
    for name, argument in tool.arguments.items():
        value = arguments.get(name, argument.schema.get("default"))
        if value is None or value == []:
            continue
        if argument.is_input:
            given = value
            others.append("-")
        elif argument.option:
            options += _option(argument, value)
        else:
            others += (_path(word) for word in _words(value))
    if "--apply" in options:
        # To apply steps is to prove them.
        options.remove("--dry-run")
    words = (*tool.verb, "--json", *options, *(("--", *others) if others else ()))
    return Call(words, given.encode("utf-8", "surrogateescape"))


def _option(argument: Argument, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        if value is argument.given_if:
            yield argument.option
    elif argument.joined:
        yield f"{argument.option}={','.join(value)}"
    else:
        yield from (f"{argument.option}={word}" for word in _words(value))


def _words(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else [str(value)]


def _path(word: str) -> str:
    """A lone `-` would be standard input."""
    return "./-" if word == "-" else word


def _check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    unknown = arguments.keys() - tool.arguments.keys()
    if unknown:
        raise ToolFailure(
            f"{tool.name} has no argument {_shown(min(unknown))}; it has "
            f"{', '.join(tool.arguments)}"
        )
    for error in Draft202012Validator(tool.json_schema).iter_errors(arguments):
        name = ".".join(map(str, error.absolute_path))
        if error.validator == "required":
            break
        raise ToolFailure(f"{tool.name}: {name}: {_problem(error)}")
    if tool.one_of and sum(name in arguments for name in tool.one_of) != 1:
        expected = " or ".join(tool.one_of)
        which = ", and only one of them" if len(tool.one_of) > 1 else ""
        raise ToolFailure(f"{tool.name}: give {expected}{which}")


def _problem(error: Any) -> str:
    received = _shown(error.instance)
    if error.validator == "type":
        return f"expected {error.validator_value}, received {received}"
    if error.validator == "maxLength":
        return (
            f"expected at most {error.validator_value:,} characters, received "
            f"{len(error.instance):,}; save it in a file and give its path"
        )
    if error.validator == "minLength":
        return "expected a text, received an empty one"
    if error.validator == "pattern":
        return f"it has a character that no path or name can have: {received}"
    return f"expected {error.validator} {error.validator_value}, received {received}"


def _shown(value: object) -> str:
    return excerpt(repr(value), 80)
