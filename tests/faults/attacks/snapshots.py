"""Snapshots from machines that lie, and files that only look like snapshots."""

from __future__ import annotations

import functools
import json
import pathlib
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tests.faults.attacks.hostile import planted, shell_word, word
from tests.faults.case import Case
from tests.faults.promises import commands_of
from tests.kit import machine, machine_causes, machine_examples
from tests.machines.healthy import healthy, without_gpu
from tests.secrets import KINDS
from whygpu import diagnose
from whygpu.model.codec import DecodeError, decode, encode
from whygpu.model.snapshot import Snapshot
from whygpu.render.check_json import as_dict

_VERBS = (
    ("check", "--snapshot"),
    ("check", "--snapshot"),
    ("memory", "--snapshot"),
    ("plan", "tensorflow", "--snapshot"),
    ("plan", "torch", "keras", "--snapshot"),
    ("diff", "good.json"),
    ("diff", "good.json"),
)


@functools.cache
def seeds() -> tuple[str, ...]:
    folder = pathlib.Path(__file__).resolve().parent.parent.parent / "machines"
    pages = (example.text for cause in machine_causes() for example in machine_examples(cause))
    made = [healthy(), without_gpu(), *map(machine, pages)]
    recorded = [path.read_text() for path in sorted(folder.glob("*.json"))]
    return (*recorded, *(json.dumps(encode(each)) for each in made))


def snapshots(chance: random.Random) -> Iterator[Case]:
    while True:
        text = chance.choice(seeds())
        kind = chance.random()
        if kind < 0.6:
            content = json.dumps(_changed(json.loads(text), chance, _hostile)).encode()
        elif kind < 0.8:
            content = json.dumps(_changed(json.loads(text), chance, _of_another_type)).encode()
        else:
            content = _torn(text.encode(), chance)
        yield _case(chance, content)


@functools.cache
def flows() -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Snapshots, each with the place of a text that a command is made of.

    Found by changing the text: then the command is another one.
    """
    found = []
    for text in seeds():
        data = json.loads(text)
        offered = _offered(data)
        for place in _leaves(data, ()):
            value = _at(data, place)
            if not isinstance(value, str) or len(value) < 3 or value not in " ".join(offered):
                continue
            with suppress(DecodeError):
                if _offered(_with(data, place, lambda value: f"{value}7")) != offered:
                    found.append((text, place))
    return tuple(found)


def _offered(data: Any) -> list[str]:
    return list(commands_of(as_dict(diagnose(decode(Snapshot, data)))))


def hijacks(chance: random.Random) -> Iterator[Case]:
    """A fact that a command is made of, glued to what a shell would act on."""
    while True:
        text, place = chance.choice(flows())
        made = shell_word(chance)
        data = _with(json.loads(text), place, lambda value, made=made: value + made)
        content = json.dumps(data).encode()
        yield Case(("check", "--snapshot", "m.json", "--json"), {"m.json": content})


def secrets(chance: random.Random) -> Iterator[Case]:
    """Private data in any string of a snapshot that somebody made by hand."""
    while True:
        made = [KINDS[kind](chance) for kind in chance.sample(sorted(KINDS), 3)]
        texts = [each.text for each in made]

        def plant(value: Any, chance: random.Random, texts: list[str] = texts) -> Any:
            return f"{value} {chance.choice(texts)}" if isinstance(value, str) else value

        data = _changed(json.loads(chance.choice(seeds())), chance, plant)
        case = _case(chance, json.dumps(data).encode())
        yield case._replace(secrets=tuple(each.core for each in made))


def _case(chance: random.Random, content: bytes) -> Case:
    options = chance.sample(("--json",), chance.randint(0, 1))
    verb = chance.choice(_VERBS)
    if verb[0] in ("check", "diff"):
        options += chance.sample(("-v",), chance.randint(0, 1))
    files = {"machine.json": content}
    if verb[0] == "diff":
        files["good.json"] = seeds()[0].encode()
    return Case((*verb, "machine.json", *options), files)


def _hostile(value: Any, chance: random.Random) -> Any:
    if isinstance(value, str):
        return planted(value, chance, 2) if value and chance.random() < 0.7 else word(chance)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return chance.choice((-1, 0, 2**63, 10**30, -(2**70)))
    return value


def _of_another_type(value: Any, chance: random.Random) -> Any:
    return chance.choice((None, True, 0, -1.5, "", [], {}, [[]], {"known": None}, {"unknown": ""}))


def _changed(data: Any, chance: random.Random, change: Any) -> Any:
    """A few of its leaves, changed."""
    places = list(_leaves(data, ()))
    for place in chance.sample(places, min(len(places), chance.randint(1, 12))):
        data = _with(data, place, lambda value: change(value, chance))
    return data


def _leaves(data: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if data else ()
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, (*place, key))
        elif key != "schema":
            yield (*place, key)


def _at(data: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        data = data[key]
    return data


def _with(data: Any, place: tuple[Any, ...], change: Any) -> Any:
    if not place:
        return change(data)
    made = data.copy()
    made[place[0]] = _with(data[place[0]], place[1:], change)
    return made


def _torn(content: bytes, chance: random.Random) -> bytes:
    kind = chance.randrange(6)
    if kind == 0:
        return content[: chance.randrange(len(content))]
    if kind == 1:
        return b"[" * 100_000
    if kind == 2:
        return b'{"schema": 1' + b', "a": {' * 20_000
    if kind == 3:
        return content.replace(b":", b"=", 1)
    if kind == 4:
        return chance.randbytes(2000)
    return chance.choice(
        (b"", b"null", b"{}", b"[]", b"NaN", b'"\\ud800"', b"1e999", b"\xff\xfe{}")
    )
