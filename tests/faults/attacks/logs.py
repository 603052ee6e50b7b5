"""Logs that nobody would write: hostile words in real lines, damaged bytes, planted secrets."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import pathlib
import random
from collections.abc import Iterator
from typing import NamedTuple

from tests.faults.attacks.hostile import planted, shell_word, words_in
from tests.faults.case import Case
from tests.faults.promises import commands_of
from tests.kit import examples
from tests.secrets import KINDS
from whygpu.api import explain
from whygpu.causes import catalogue
from whygpu.render.explain_json import as_dict

LONGEST = 1 << 18
HARD = (
    b"",
    b"\n",
    b"\r",
    b"\0" * 64,
    b"\xff\xfe",
    b"\xe2\x96",
    b"\x1b[",
    b"\x1b]0;" + b"x" * 500,
    b"\x08" * 80,
    b'{"message": ' * 200,
    b'{"message": "a\\nb\\u001b[31m", "exc_info": "Traceback (most recent call last):\\nKeyError"}',
    b'"\\u001b[0;31mValueError\\u001b[0m\\n",\n',
    b"Traceback (most recent call last):\n",
    b'  File "' + b"a/" * 300 + b'.py", line 9999999999, in f\n',
    b"Detected at node 'a' defined at (most recent call last):\n",
    b"During handling of the above exception, another exception occurred:\n",
    b"  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: x (1)\n",
    b"E0000 00:00:99999999999999999999.9 1 a.cc:1] ",
    b"2020-01-01 00:00:00.000000: F tensorflow/a.cc:1] ",
    b"tensorflow==99999999999999999999.0.0 cuda 0.0.0.0.0 driver 1e999\n",
    b"CUDA out of memory. Tried to allocate 99999999999999999999999999 GiB (GPU 99999; 0 bytes)\n",
    b"libcudnn.so.99999999999999999999: cannot open shared object file\n",
    b"compute capability: 99999999999999.9 sm_99999999999999\n",
    b"Epoch 1/5 - loss: nan\n",
    b"[...]\n",
    b"a" * 5000,
    b" " * 5000,
    b"0" * 5000,
    b"'" * 500 + b'"' * 500,
    b"(" * 500 + b"[" * 500,
    "名前: エラー ✗ ░░▒▒▓▓██\n".encode(),
)
"""What is hard to read."""


@functools.cache
def fragments() -> tuple[bytes, ...]:
    """The logs on the pages of all causes, and those that were recorded."""
    pages = [
        example.text.encode() + b"\n"
        for cause in catalogue()
        for example in examples(cause.page)
        if example.kind == "log"
    ]
    folder = pathlib.Path(__file__).resolve().parent.parent.parent / "logs"
    return (*pages, *(path.read_bytes() for path in sorted(folder.glob("*.log"))))


def damaged(log: bytes, chance: random.Random) -> bytes:
    """A log with a few random changes."""
    data = bytearray(log)
    for _ in range(chance.randrange(6)):
        if not data:
            break
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.choice((1, 3, 40, 400)))
        kind = chance.randrange(6)
        if kind == 0:
            del data[start:end]
        elif kind == 1:
            data[start:start] = data[start:end] * chance.choice((1, 2, 30))
        elif kind == 2:
            data[start:start] = chance.choice(HARD)
        elif kind == 3:
            data[start] = chance.randrange(256)
        elif kind == 4:
            data[start:end] = bytes(chance.randrange(256) for _ in range(end - start))
        else:
            data[start:end] = data[start:end].replace(b"\n", b" ").swapcase()
    if chance.random() < 0.03:
        return data.decode("utf-8", "replace").encode("utf-16")
    return bytes(data)


def log(chance: random.Random) -> bytes:
    """Real lines with hostile words in them, and pieces that are hard to read."""
    pieces = []
    for _ in range(chance.randint(1, 6)):
        piece = chance.choice(fragments()) if chance.random() < 0.8 else chance.choice(HARD)
        if chance.random() < 0.5:
            piece = planted(piece.decode("utf-8", "replace"), chance).encode("utf-8", "replace")
        pieces.append(piece)
    return damaged(b"".join(pieces), chance)[:LONGEST]


def logs(chance: random.Random) -> Iterator[Case]:
    while True:
        options = chance.sample(("--json", "-v"), chance.randint(0, 2))
        if chance.random() < 0.2:
            options += ["--color", "always"]
        content = log(chance)
        if chance.random() < 0.3:
            yield Case(("explain", *options), stdin=content)
            continue
        name = chance.choice(("train.log", "out.txt", "a b.log", "[bold].log", "x\x1b[31m.log"))
        yield Case(("explain", *options, name), {name: packed(content, chance)})


class Flow(NamedTuple):
    """A word of a log that a command is made of."""

    text: str
    start: int
    end: int


@functools.cache
def flows() -> tuple[Flow, ...]:
    """Found by changing the word: then the command is another one."""
    found = []
    for fragment in fragments():
        text = fragment.decode("utf-8", "replace")
        offered = _offered(text)
        for word in words_in(text):
            start, end = word.span()
            # A version stays one with a digit more, and a name stays a name.
            other = f"{text[:end]}7{text[end:]}"
            if word[0] in " ".join(offered) and _offered(other) != offered:
                found.append(Flow(text, start, end))
    return tuple(found)


def _offered(text: str) -> list[str]:
    return list(commands_of(as_dict(explain(text))))


def hijacks(chance: random.Random) -> Iterator[Case]:
    """A word that a command is made of, glued to what a shell would act on."""
    while True:
        text, start, end = chance.choice(flows())
        kept = text[start:end] if chance.random() < 0.8 else ""
        made = text[:start] + kept + shell_word(chance) + text[end:]
        yield Case(("explain", "--json"), stdin=made.encode("utf-8", "replace"))


def packed(content: bytes, chance: random.Random) -> bytes:
    """Now and then compressed, and then now and then cut."""
    kind = chance.random()
    if kind > 0.15:
        return content
    made = chance.choice((gzip.compress, bz2.compress, lzma.compress))(content)
    return made[: chance.randrange(len(made) + 1)] if kind < 0.05 else made


def secrets(chance: random.Random) -> Iterator[Case]:
    """A log with keys, passwords and names in it, which end up as evidence."""
    while True:
        kinds = chance.sample(sorted(KINDS), 3)
        made = [KINDS[kind](chance) for kind in kinds]
        lines = [each.text for each in made]
        real = chance.choice(fragments()).decode("utf-8", "replace").splitlines()
        for line in lines:
            # As part of a line that is quoted, and as a line of its own.
            place = chance.randrange(len(real) + 1)
            if place < len(real) and chance.random() < 0.6:
                real[place] += f" {line}"
            else:
                real.insert(place, line)
        real.append(f"RuntimeError: CUDA error: {chance.choice(lines)}")
        options = chance.sample(("--json", "-v"), chance.randint(0, 2))
        cores = tuple(each.core for each in made)
        yield Case(("explain", *options), stdin="\n".join(real).encode(), secrets=cores)
