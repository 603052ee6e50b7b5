"""Reads the names of nodes from the lists that schedulers and other tools have.

One name on each line (kubectl, sinfo, PBS), with `key=value` behind it (hostfiles of MPI and
DeepSpeed, inventories of Ansible), or several: `node[01-04,07]` (Slurm, pdsh), `web[1:5]`
(Ansible). What is none of these is an error that names the line: a name that was read wrongly would
be reported as a missing node.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import chain, product
from math import prod

from whygpu.errors import UsageError
from whygpu.host.files import read_given
from whygpu.model.outside_text import excerpt, one_line

MOST_NODES = 200_000
"""As many as the largest clusters have nodes, several times over."""
_MOST_NAMED = 8 * MOST_NODES
"""Names in a list, in which a node may stand in several groups."""
_LARGEST_LIST = 1 << 24
"""Bytes."""

_SECTION = re.compile(r"\[[^\[\]:]{1,200}(?::(hosts|vars|children))?\]")
"""Of an inventory. A group's variables, and names of other groups, are no nodes."""
_COUNT_OF_HOSTS = re.compile(r"hosts \(\d{1,9}\):")
"""The first line of `ansible all --list-hosts`."""
_SETTING = re.compile(r"[\w.-]{1,100}=.{0,1000}")
_PORT_OR_SLOTS = re.compile(r"([^:]{0,300}):\d{1,9}")
"""node1:8 (MPICH), node1:2222 (Ansible); an address of IPv6 has more colons."""
_BRACKETS = re.compile(r"\[([^\[\]]{1,100000})\]")
"""Slurm writes thousands of nodes that do not follow each other into one pair."""
_RANGE = re.compile(r"([0-9]{1,18}|[a-z])(?:[-:]([0-9]{1,18}|[a-z])(?::([0-9]{1,9}))?)?")
_NAME = re.compile(r"[^\s\[\]{},;=\"'<>|]{1,300}")


def expected_nodes(path: str) -> tuple[str, ...]:
    """The names in a file, each once; comments begin with # or ;."""
    try:
        content = read_given("/dev/stdin" if path == "-" else path, _LARGEST_LIST)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    # A Windows shell writes UTF-16.
    text = content.decode(json.detect_encoding(content), "replace")
    names: dict[str, None] = {}
    left = _MOST_NAMED
    for number, line in _lines_with_nodes(text):
        try:
            found = nodes_in(line)
        except ValueError as error:
            shown = excerpt(one_line(line), 60)
            raise UsageError(f"{path}, line {number}, has {shown!r}: {error}") from error
        names.update(dict.fromkeys(found))
        left -= len(found)
        if len(names) > MOST_NODES:
            raise UsageError(f"{path} names more than {MOST_NODES:,} nodes")
        if left < 0:
            raise UsageError(f"{path} has more than {_MOST_NAMED:,} names")
    if not names:
        raise UsageError(f"{path} names no node; expected one name on each line")
    return tuple(names)


def _lines_with_nodes(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments and what an inventory has besides hosts."""
    has_hosts = True
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.partition("#")[0].partition(";")[0].strip()
        section = _SECTION.fullmatch(line)
        if section is not None:
            has_hosts = section[1] not in ("vars", "children")
        elif has_hosts and line and not _COUNT_OF_HOSTS.fullmatch(line):
            yield number, line


def nodes_in(line: str) -> list[str]:
    """The nodes that one line names; ValueError says what is expected instead."""
    if line[0] in '{}[]"' or line.startswith(("- ", "---")) or line.endswith(":"):
        raise ValueError(
            "expected a name of a node, not YAML or JSON; of an inventory of Ansible, give the "
            "output of `ansible all -i INVENTORY --list-hosts`"
        )
    first, *rest = _shell_words(line)
    if not all(map(_SETTING.fullmatch, rest)):
        raise ValueError(
            "expected one name of a node, and nothing behind it except key=value; of a table, give "
            "the column with the names, such as `kubectl get nodes -o name` or "
            "`sinfo --noheader --Node --format=%N`"
        )
    found: list[str] = []
    for word in _words(first.removeprefix("node/")):
        found += _expanded(word)
        if len(found) > MOST_NODES:
            raise ValueError(f"expected at most {MOST_NODES:,} nodes in a line")
    return found


def _shell_words(line: str) -> list[str]:
    """A setting of an inventory may have quotes around blanks."""
    if "'" not in line and '"' not in line:
        return line.split()
    try:
        return shlex.split(line) or [line]
    except ValueError:
        raise ValueError("expected a quote to be closed in the same line") from None


def _words(text: str) -> Iterator[str]:
    """What is between the commas that are outside brackets."""
    start = depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    if text[start:]:
        yield text[start:]


def _expanded(word: str) -> Iterator[str]:
    """node[1-3] is three nodes."""
    parts = _BRACKETS.split(word)
    texts, ranges = parts[::2], parts[1::2]
    port = _PORT_OR_SLOTS.fullmatch(texts[-1])
    if port is not None:
        texts[-1] = port[1]
    if not _NAME.fullmatch("".join(texts)):
        raise ValueError("expected a name of a node, or a range such as node[01-04]")
    lists = [_values(text) for text in ranges]
    if prod(map(len, lists)) > MOST_NODES:
        raise ValueError(f"expected a range of at most {MOST_NODES:,} nodes")
    for chosen in product(*lists):
        yield "".join(chain.from_iterable(zip(texts, (*chosen, ""), strict=True)))


def _values(text: str) -> list[str]:
    """01-03,7 is 01, 02, 03 and 7."""
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError("expected a range such as [01-04,07] or [a:f]")
        found += _one_range(match[1], match[2] or match[1], int(match[3] or 1))
        if len(found) > MOST_NODES:
            raise ValueError(f"expected a range of at most {MOST_NODES:,} nodes")
    return found


def _one_range(first: str, last: str, step: int) -> list[str]:
    if first.isdecimal() != last.isdecimal() or step < 1:
        raise ValueError("expected a range such as [01-04] or [a:f]")
    whole = first.isdecimal()
    numbers = range(*((int(first), int(last) + 1) if whole else (ord(first), ord(last) + 1)), step)
    if not 0 < len(numbers) <= MOST_NODES:
        raise ValueError(f"expected a range that goes up, of at most {MOST_NODES:,} nodes")
    return [f"{number:0{len(first)}}" if whole else chr(number) for number in numbers]
