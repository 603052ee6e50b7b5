"""TOML with the lines of its keys and values, which the parser of Python does not keep."""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple

from whygpu.errors import UsageError
from whygpu.model.requirement_file import FileLine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLE_NAME = re.compile(r"^[\w.\-\"' ]+$")
_KEY = re.compile(r"""^\s*(["']?)([\w.-]+)\1\s*=""")
_STRING = re.compile(r"""\"((?:[^\"\\]|\\.)*)\"|'([^']*)'""")
_ESCAPE = re.compile(r'\\(["\\])')


class _Row(NamedTuple):
    table: str
    """The table that the line belongs to; tables of an array have their number: package#3."""
    place: FileLine


class TomlFile:
    """A parsed file. Raises UsageError if it is not TOML."""

    def __init__(self, path: str, text: str) -> None:
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        # TOMLDecodeError is one; Python raises another for numbers of thousands of digits.
        except ValueError as error:
            raise UsageError(f"{path} is not valid TOML: {error}") from error
        except RecursionError:
            raise UsageError(f"{path} cannot be read: it is nested too deeply") from None
        self._path = path
        self._rows = list[_Row]()
        counts: dict[str, int] = {}
        table = ""
        for number, raw in enumerate(text.splitlines(), 1):
            header = _header(raw)
            if header is not None:
                table, is_of_array = header
                if is_of_array:
                    counts[table] = counts.get(table, -1) + 1
                    table = f"{table}#{counts[table]}"
            self._rows.append(_Row(table, FileLine(path, number, raw.strip())))
        self._by_table: dict[str, list[FileLine]] = {}
        for row in self._rows:
            self._by_table.setdefault(row.table, []).append(row.place)
        self._used: set[int] = set()

    def table(self, *names: str) -> dict[str, Any]:
        """A table of the file; empty if it has none with this name."""
        found: Any = self.data
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def of_key(self, table: str, key: str) -> FileLine:
        """The line of a key of a table, or the table's header if the key is a table itself."""
        for place in self._by_table.get(table, ()):
            match = _KEY.match(place.text)
            if match and match[2].lower() == key.lower():
                return place
        inside = self._by_table.get(f"{table}.{key}") or self._by_table.get(table)
        return inside[0] if inside else self._nowhere()

    def of_string(self, table: str, value: str) -> FileLine:
        """The next line with this string in a table, or in any table if that one lacks it."""
        every = [row.place for row in self._rows]
        for places in (self._by_table.get(table, ()), every):
            for place in places:
                if place.line not in self._used and value in _strings(place.text):
                    self._used.add(place.line)
                    return place
        return next((p for p in every if value in _strings(p.text)), self._nowhere())

    def _nowhere(self) -> FileLine:
        """For a value that is written over several lines: the file as a whole."""
        return FileLine(self._path, 1, "")


def _header(line: str) -> tuple[str, bool] | None:
    """The name of the table that begins here, and whether it is one of an array."""
    text = line.partition("#")[0].strip()
    is_of_array = text.startswith("[[") and text.endswith("]]")
    if not is_of_array and not (text.startswith("[") and text.endswith("]")):
        return None
    name = text[2:-2] if is_of_array else text[1:-1]
    if not _TABLE_NAME.match(name):
        return None
    return re.sub(r"[\s\"']", "", name), is_of_array


def _strings(line: str) -> list[str]:
    return [_ESCAPE.sub(r"\1", match[1] or match[2] or "") for match in _STRING.finditer(line)]
