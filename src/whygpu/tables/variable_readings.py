"""How programs read an environment variable: the kinds of values there are.

Named tuples rather than dataclasses: making these classes is most of what importing them costs.
"""

from __future__ import annotations

from typing import NamedTuple, Union


class Text(NamedTuple):
    """Any value goes."""

    meaning: str


class Words(NamedTuple):
    """One of some words. Several words with one meaning stand together, with spaces between."""

    meanings: tuple[tuple[str, str], ...]
    otherwise: str
    """What happens with another word; empty where that is no trouble."""
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
    """A variable beside which this one is an error."""


class Folder(NamedTuple):
    """One folder, which must exist for the variable to be of use."""

    meaning: str


class Folders(NamedTuple):
    """Folders with colons between them; some may be missing without harm."""

    meaning: str


class Files(NamedTuple):
    """Files with colons or spaces between them; the loader skips a missing one with an error."""

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
    """key:value with commas between them."""

    meaning: str
    otherwise: str


class Members(NamedTuple):
    """Words with commas between them."""

    meaning: str
    alone: tuple[tuple[str, str], ...] = ()
    """What the value means when it is this one word."""
    required: tuple[str, ...] = ()
    """At least one of these must be among them."""
    otherwise: str = ""


class GpuList(NamedTuple):
    """GPUs as CUDA_VISIBLE_DEVICES lists them."""


Reading = Union[Text, Words, Number, Folder, Folders, Files, Flags, Pairs, Members, GpuList]


class Row(NamedTuple):
    name: str
    """A whole name, or a family's beginning, which ends with an underscore."""
    reading: Reading
    source: str
