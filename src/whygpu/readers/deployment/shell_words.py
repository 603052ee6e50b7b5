"""Splits shell scripts into commands and words, each with its line.

Only what a shell splits is split: variables are replaced if they are known, and a word with another
variable or a substitution stays as it is written, so that a caller sees the `$` in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whygpu.model.deployment import ShellCommand
from whygpu.model.requirement_file import FileLine

_VARIABLE = re.compile(
    r"\$(?:\{(?P<braced>\w+)(?::?-(?P<default>[^}$]*))?\}|(?P<plain>[A-Za-z_]\w*))"
)
_PLAIN = re.compile(r"[^\s\\'\"#$;|&()]+")
"""Characters that mean themselves outside of quotes."""
_QUOTED = {"'": re.compile(r"[^']+"), '"': re.compile(r"[^\"\\]+")}
"""Characters that mean themselves inside of these quotes."""
_OPERATORS = ("&&", "||", ";;", ";", "|", "&", "\n", "(", ")")
_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "exec", "sudo"}
)
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_TESTS = frozenset({"[", "[[", "test"})
_FILE_TESTS = frozenset({"-e", "-f", "-s", "-r", "-d"})
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})
_RUNS_TEXT = re.compile(r"-[a-z]{0,5}c")
MOST_WORDS = 20_000
"""A script has some hundreds; the rest of a longer one is not read."""


class _Block:
    """An `if` or `case` that is open."""

    def __init__(self, start: int, keyword: str) -> None:
        self.start = start
        """The number of its first command."""
        self.has_branches = keyword == "case"

    def is_choice(self, found: Sequence[ShellCommand]) -> bool:
        """Not if it only asks for a file, without which the commands in it would fail."""
        if self.has_branches or self.start >= len(found):
            return True
        return not _asks_for_file(found[self.start])


class NumberedLine(NamedTuple):
    number: int
    """From 1."""
    text: str


def substituted(text: str, variables: Mapping[str, str]) -> str:
    """The text with its known variables replaced."""

    def value(match: re.Match[str]) -> str:
        known = variables.get(match["braced"] or match["plain"])
        if known is not None:
            return known
        return match["default"] if match["default"] is not None else match[0]

    return _VARIABLE.sub(value, text)


def commands(
    path: str,
    lines: Sequence[NumberedLine],
    variables: Mapping[str, str],
    *,
    stops_at_failures: bool = True,
) -> tuple[ShellCommand, ...]:
    """The commands of a script, in order.

    A shell without `-e` goes on after a command that fails: only the last one counts.
    """
    splitter = _Splitter(path, lines, variables)
    found = splitter.run()
    if stops_at_failures:
        return found
    return tuple(
        command._replace(may_fail=command.may_fail or number not in splitter.counted)
        for number, command in enumerate(found)
    )


def with_inner_commands(listed: Sequence[ShellCommand]) -> Iterator[ShellCommand]:
    """The commands; for bash -c "pip install torch", those of its text, at the line of the text."""
    for command in listed:
        number = _number_of_text(command.plain_words)
        if number is None:
            yield command
            continue
        number += command.first_plain
        place = command.place_of(number)
        lines = [NumberedLine(place.line, line) for line in command.words[number].split("\n")]
        for each in commands(place.file, lines, {}, stops_at_failures=False):
            yield each._replace(
                place=place,
                word_places=(),
                may_fail=each.may_fail or command.may_fail,
                is_choice=each.is_choice or command.is_choice,
            )


def _number_of_text(words: Sequence[str]) -> int | None:
    """Which word of a command is the text that a shell runs; None for other commands."""
    if not words or words[0].rpartition("/")[2] not in _SHELLS:
        return None
    for number, word in enumerate(words[1:-1], 1):
        if _RUNS_TEXT.fullmatch(word):
            return number + 1
        if not word.startswith("-") and words[number - 1] not in ("-o", "+o"):
            return None
    return None


class _Splitter:
    def __init__(
        self, path: str, lines: Sequence[NumberedLine], variables: Mapping[str, str]
    ) -> None:
        self._path = path
        self._lines = lines
        self._variables = variables
        self._found: list[ShellCommand] = []
        self._words: list[str] = []
        self._places: list[FileLine] = []
        self._word: str | None = None
        self._word_line: NumberedLine | None = None
        self._start: NumberedLine | None = None
        self._quote = ""
        self._count = 0
        self._depth = 0
        """How many `if` and loops are open: the commands in them may not run, or may fail."""
        self._blocks: list[_Block] = []
        self._list_start = 0
        """The first command of the list that && and || join."""
        self._is_list_over = False
        self._sets_errexit = False
        self.counted: set[int] = set()
        """The commands whose failure ends a script that a shell without `-e` runs."""

    def run(self) -> tuple[ShellCommand, ...]:
        for line in self._lines:
            if self._count > MOST_WORDS:
                break
            self._line(line)
        self._end_command("")
        self.counted.update(range(self._list_start, len(self._found)))
        return tuple(self._found)

    def _line(self, line: NumberedLine) -> None:
        text = line.text
        if not self._quote and text.lstrip().startswith("#"):
            # A comment between continued lines does not end the command.
            return
        position = 0
        while position < len(text):
            character = text[position]
            if self._quote:
                position += self._quoted(text, position)
            elif character == "\\":
                if position + 1 == len(text):
                    self._end_word()
                    return
                self._add(text[position + 1], line)
                position += 2
            elif character in "'\"":
                self._quote = character
                self._add("", line)
                position += 1
            elif character.isspace():
                self._end_word()
                position += 1
            elif (plain := _PLAIN.match(text, position)) is not None:
                self._add(plain[0], line)
                position = plain.end()
            elif character == "#" and self._word is None:
                break
            elif character == "$" and text.startswith("$(", position):
                position += self._substitution(text, position, line)
            else:
                operator = next((o for o in _OPERATORS if text.startswith(o, position)), "")
                if operator and not self._is_redirection(text, position):
                    self._end_command(operator)
                    position += len(operator)
                else:
                    self._add(character, line)
                    position += 1
        if not self._quote:
            self._end_command("\n")
        elif self._word is not None:
            self._word += "\n"

    def _quoted(self, text: str, position: int) -> int:
        character = text[position]
        if character == self._quote:
            self._quote = ""
            return 1
        if character == "\\" and self._quote == '"' and position + 1 < len(text):
            self._word = (self._word or "") + text[position + 1]
            return 2
        plain = _QUOTED[self._quote].match(text, position)
        characters = plain[0] if plain is not None else character
        self._word = (self._word or "") + characters
        return len(characters)

    def _substitution(self, text: str, position: int, line: NumberedLine) -> int:
        """$(...) stays one word."""
        depth, end = 0, position + 1
        while end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        self._add(text[position:end], line)
        return end - position

    @staticmethod
    def _is_redirection(text: str, position: int) -> bool:
        """The & of 2>&1 and &> is no operator."""
        before, after = text[position - 1 : position], text[position + 1 : position + 2]
        return text[position] == "&" and (before in ("<", ">") or after == ">")

    def _add(self, text: str, line: NumberedLine) -> None:
        self._start = self._start or line
        self._word_line = self._word_line or line
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append(substituted(self._word, self._variables))
            line = self._word_line or NumberedLine(1, "")
            self._places.append(FileLine(self._path, line.number, line.text.strip()))
            self._word = self._word_line = None
            self._count += 1

    def _end_command(self, operator: str) -> None:
        self._end_word()
        words, places = self._words, self._places
        is_condition = False
        while words and words[0] in (_KEYWORDS | _OPENING | _CLOSING):
            self._depth = max(0, self._depth + (words[0] in _OPENING) - (words[0] in _CLOSING))
            self._note_block(words[0])
            is_condition |= words[0] == "!"
            if words[0] in ("for", "case", "select"):
                break
            words, places = words[1:], places[1:]
        if words and self._start is not None:
            if self._is_list_over:
                self._list_start, self._is_list_over = len(self._found), False
            if operator == "||":
                # A failure of any command before || goes on behind it.
                for number in range(self._list_start, len(self._found)):
                    self._found[number] = self._found[number]._replace(may_fail=True)
            may_fail = operator in ("||", "|", "&") or is_condition or self._depth > 0
            # [ "$GPU" = 1 ] && pip install ...
            is_choice = any(
                command.words[0] in _TESTS and not _asks_for_file(command)
                for command in self._found[self._list_start :]
            )
            self._found.append(
                ShellCommand(tuple(words), places[0], may_fail, tuple(places), is_choice)
            )
            self._sets_errexit |= _sets_errexit(words)
            if self._sets_errexit:
                self.counted.add(len(self._found) - 1)
            self._is_list_over = operator not in ("&&", "||", "|")
        self._words, self._places, self._start = [], [], None

    def _note_block(self, keyword: str) -> None:
        if keyword in ("if", "case"):
            self._blocks.append(_Block(len(self._found), keyword))
        elif keyword in ("else", "elif") and self._blocks:
            self._blocks[-1].has_branches = True
        elif keyword in ("fi", "esac") and self._blocks:
            block = self._blocks.pop()
            if block.is_choice(self._found):
                for number in range(block.start, len(self._found)):
                    self._found[number] = self._found[number]._replace(is_choice=True)


def _asks_for_file(command: ShellCommand) -> bool:
    """[ -f requirements.txt ]"""
    words = command.words
    return words[0] in _TESTS and words[1:2] != ("!",) and not _FILE_TESTS.isdisjoint(words)


def _sets_errexit(words: Sequence[str]) -> bool:
    """set -e, set -eux, set -o errexit"""
    options = words[1:] if words[0] == "set" else ()
    return "errexit" in options or any(re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in options)
