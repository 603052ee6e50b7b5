"""How programs read an environment variable: the kinds of values there are.

Named tuples rather than dataclasses: making these classes is most of what importing them costs.
"""

from __future__ import annotations

from typing import NamedTuple, Union


class Text(NamedTuple):
    """Any value is valid."""

    meaning: str


class Words(NamedTuple):
    """One of some words. Words with the same meaning are in one string, separated by spaces."""

    meanings: tuple[tuple[str, str], ...]
    otherwise: str
    """What happens with another word; empty if that is harmless."""
    any_case: bool = False
    empty_is_unset: bool = True


class Number(NamedTuple):
    meaning: str
    """With {value}."""
    low: float
    high: float
    otherwise: str
    unlimited_with: str = ""
    """A variable that lifts the upper limit when it is set."""
    clashes_with: str = ""
    """A variable together with which this one is an error."""


class Folder(NamedTuple):
    """One folder, which must exist for the variable to have an effect."""

    meaning: str


class Folders(NamedTuple):
    """Folders separated by colons; missing ones are harmless."""

    meaning: str


class Files(NamedTuple):
    """Files separated by colons or spaces; the loader skips a missing one with an error."""

    meaning: str


class Flags(NamedTuple):
    """Command-line flags of a compiler inside the framework."""

    prefix: str
    meaning: str
    file_allowed: bool
    """A value that does not begin with a dash names a file with flags."""
    folder_flags: tuple[str, ...] = ()
    """Flags whose value is a folder that must exist."""


class Pairs(NamedTuple):
    """key:value pairs separated by commas."""

    meaning: str
    otherwise: str
    keys: tuple[str, ...] = ()
    """Those that are known; a later release may have more."""


class Members(NamedTuple):
    """Words separated by commas."""

    meaning: str
    alone: tuple[tuple[str, str], ...] = ()
    """The meaning of the value if it is only this word."""
    required: tuple[str, ...] = ()
    """At least one of these must be among them."""
    otherwise: str = ""


class GpuList(NamedTuple):
    """GPUs as CUDA_VISIBLE_DEVICES lists them."""


Reading = Union[Text, Words, Number, Folder, Folders, Files, Flags, Pairs, Members, GpuList]


class Row(NamedTuple):
    name: str
    """A whole name, or the prefix of a family, which ends with an underscore."""
    reading: Reading
    source: str
