"""Removes private data from everything that leaves the machine.

Users post snapshots in public issues. Home folders become ~. Names of users and hosts, network
addresses, hardware identifiers and anything that looks like a key are removed from values. Names of
fields never change. A word in prose that equals a user's name stays, unless a text of the same
answer shows that it is a name (`learnt.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

from whygpu.host.base import Platform
from whygpu.model.codec import decode, encode, vocabulary
from whygpu.model.snapshot import Snapshot
from whygpu.privacy.addresses import NETWORK, NETWORK_SHARES, URLS, without_ipv4
from whygpu.privacy.hardware import HARDWARE
from whygpu.privacy.keys import (
    KEYS,
    LONG_ENOUGH,
    closes_frame,
    continues_frame,
    opens_frame,
    without_random_runs,
)
from whygpu.privacy.learnt import MOST_NAMES, NOBODYS_NAMES, learnt_from, lines_with_names, without
from whygpu.privacy.named import NAMED, replacement_for
from whygpu.privacy.people import HOMES, PEOPLE
from whygpu.privacy.percent import clean_encoded
from whygpu.privacy.rules import REMOVED, Rule, RuleBook, apply

T = TypeVar("T")

_HARMLESS = re.compile(r"[a-z_.-]{0,15}|(?:[a-z-]{1,40} )?\d{0,6}(?:[.+]\d{1,6}){0,2}")
"""Short words and versions, which are most of a snapshot and cannot be private. Four numbers with
dots may be an address."""
_VERSION_FIELDS = frozenset(
    ("version", "requires", "requirement", "requirements", "owner", "found", "cuda", "cudnn")
)
"""Fields with versions: NVIDIA's packages have four numbers (12.9.2.10), like addresses."""
_VERSION_WORD = re.compile(r"[\w.\[\],<>=!~()+*-]{1,100}")
_FOUR_NUMBERS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_SAME_FIELD = frozenset(("known",))
"""The codec puts a known value into an object."""


def _is_requirement(text: str) -> bool:
    """Whether a text is a version, or a package and its version, and nothing else."""
    head, _, marker = text.partition(";")
    words = head.split()
    return (
        len(words) <= 3
        and all(map(_VERSION_WORD.fullmatch, words))
        and _FOUR_NUMBERS.search(marker) is None
    )


def _tells_something(name: str) -> bool:
    """A machine may be called gpu and its user nvidia, but a snapshot needs these words."""
    return len(name) > 1 and name not in NOBODYS_NAMES | vocabulary(Snapshot)


GENERAL = RuleBook((*URLS, *KEYS, NAMED, *PEOPLE, *HARDWARE, *NETWORK))
_LINE_BREAKS = {"\\n": "\x1d", "\\r": "\x1e", "\\t": "\x1f"}
"""Escapes, and rare space characters that replace them while the text is cleaned."""
_COLOURS = re.compile(r"\x1b(?:\[[0-9;:?]{0,40}[A-Za-z])?")
_PASSES = 4
"""The result of one rule can match another rule. Two passes are usual, more are rare."""


class Redactor:
    """Cleans text. Knows the user and the name of the machine, to recognise them in paths."""

    def __init__(self, platform: Platform, *, keeps_other_homes: bool = False) -> None:
        """`keeps_other_homes`: for commands, in which ~ would mean the user's own home."""
        host_name = platform.host_name.partition(".")[0]
        # Folders of Windows contain \\n and \\t, which mean something else in all other texts.
        own = _own(platform.home, platform.user, host_name)
        self._folders = (*own, *(() if keeps_other_homes else HOMES), *NETWORK_SHARES)
        self._cleaned: dict[tuple[str, bool], tuple[str, dict[str, str]]] = {}
        # A command with a replaced word would do something else.
        self._learns = not keeps_other_homes
        self._learnt: dict[str, str] = {}
        self._fixed_words: frozenset[str] = frozenset()
        names = {platform.user: "<user>", host_name: "<host>", platform.host_name: "<host>"}
        self._names = {name: word for name, word in names.items() if _tells_something(name)}

    def text(self, text: str, *, versions: bool = False) -> str:
        """`versions`: four numbers with dots are a version here, not an address."""
        if text in self._names:
            return self._names[text]
        if _HARMLESS.fullmatch(text):
            return self._learnt.get(text, text)
        # Two thirds of a snapshot's strings occur more than once.
        found = self._cleaned.get((text, versions))
        if found is None:
            found = self._cleaned[text, versions] = self._clean(text, versions)
        cleaned, names = found
        if names and len(self._learnt) < MOST_NAMES:
            self._learnt.update((name, names[name]) for name in names.keys() - self._fixed_words)
        return without(self._learnt, cleaned) if self._learnt else cleaned

    def for_one_answer(self) -> Redactor:
        """A redactor without learnt names that shares the texts which this one has cleaned."""
        fresh = copy(self)
        fresh._learnt = {}
        return fresh

    @property
    def has_learnt(self) -> bool:
        """Whether texts that were cleaned earlier may contain names that were found later."""
        return bool(self._learnt)

    def _clean(self, text: str, versions: bool) -> tuple[str, dict[str, str]]:
        """The text without private data, and the names that were removed from it."""
        if "\x1b" in text:
            plain = _COLOURS.sub("", text)
            cleaned, names = self._clean(plain, versions)
            return (text if cleaned == plain else cleaned), names
        names = {}
        for _ in range(_PASSES):
            cleaned = self._clean_once(text, versions)
            if cleaned != text and self._learns:
                names |= learnt_from(text, cleaned)
                cleaned = without(names, cleaned)
            if cleaned == text:
                break
            text = cleaned
        return text, names

    def _clean_once(self, text: str, versions: bool) -> str:
        text = apply(self._folders, text)
        if "\\" in text:
            return _with_line_breaks(text, lambda lines: _clean_lines(lines, versions))
        return _clean_lines(text, versions)

    def tree(self, value: object, field: str = "") -> object:
        """A JSON value with every string cleaned; the keys of objects stay as they are."""
        known = len(self._learnt)
        cleaned = self._tree(value, field)
        return cleaned if len(self._learnt) == known else self._tree(value, field)

    def _tree(self, value: object, field: str) -> object:
        if isinstance(value, str):
            return self._named(value, field)
        if isinstance(value, list):
            return self._lines(value, field)
        if isinstance(value, dict):
            return {
                key: self._tree(item, field if key in _SAME_FIELD else key)
                for key, item in value.items()
            }
        return value

    def _named(self, text: str, field: str) -> str:
        versions = field in _VERSION_FIELDS and _is_requirement(text)
        return replacement_for(field, text) or self.text(text, versions=versions)

    def _lines(self, items: list[object], field: str) -> list[object]:
        """The items of a list may be the lines of one text, and a key may have many lines."""
        cleaned = []
        in_frame = False
        for item in items:
            line = item if isinstance(item, str) else ""
            in_frame = in_frame and continues_frame(line)
            cleaned.append(REMOVED if in_frame else self._tree(item, field))
            in_frame = (in_frame and not closes_frame(line)) or opens_frame(line)
        return cleaned

    def value(self, value: T, context: str = "") -> T:
        """A cleaned value of the model; one value is one answer.

        `context` is the text that the answer quotes from: names are learnt from all of it.
        """
        self._learnt = {}
        kind: Any = type(value)
        self._fixed_words = vocabulary(kind)
        for line in lines_with_names(context):
            self.text(line)
        return decode(type(value), self.tree(encode(value)))


def _clean_lines(text: str, versions: bool) -> str:
    if "%" in text:
        text = clean_encoded(text, lambda decoded: _clean_plain(decoded, versions))
    return _clean_plain(text, versions)


def _clean_plain(text: str, versions: bool) -> str:
    text = GENERAL.apply(text)
    if not versions:
        text = without_ipv4(text)
    return without_random_runs(text) if len(text) >= LONG_ENOUGH else text


def _with_line_breaks(text: str, clean: Callable[[str], str]) -> str:
    """JSON and repr() write a line break as two characters; no word continues across it."""
    if any(break_ in text for break_ in _LINE_BREAKS.values()):
        return clean(text)
    for escape, break_ in _LINE_BREAKS.items():
        text = text.replace(escape, break_)
    text = clean(text)
    for escape, break_ in _LINE_BREAKS.items():
        text = text.replace(break_, escape)
    return text


def _own(home: str, user: str, host_name: str) -> list[Rule]:
    """Rules for the names of this user and this machine, anywhere in a text."""
    rules = []
    home = home.rstrip("/")
    if len(home) > 1:
        rules.append(_literal(home, rf"(?<![\w.-]){re.escape(home)}(?![\w.-])", "~"))
    if _tells_something(user):
        name = re.escape(user)
        # Only if a path or an address names a person: prose may use the same word.
        rules.append(_literal(user, rf"(?<=[/\\]){name}(?=[/\\:;,'\")\s]|$)", "<user>"))
        rules.append(_literal(user, rf"(?<![\w.-]){name}(?=@)", "<user>"))
    if len(host_name) > 2 and _tells_something(host_name):
        name = re.escape(host_name)
        # With its domain, even if the machine itself does not know it.
        pattern = rf"(?<![\w-]){name}(?:\.[A-Za-z][\w-]{{0,62}}){{0,8}}(?![\w-])"
        rules.append(_literal(host_name, pattern, "<host>"))
    return rules


def _literal(word: str, pattern: str, replacement: str) -> Rule:
    expression = re.compile(pattern)
    return Rule((word.lower(),), lambda text: expression.sub(replacement, text))
