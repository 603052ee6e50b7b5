"""Programs and notebooks for `lint`: hostile names, lines, values, files and settings."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator

from tests.faults.attacks.hostile import planted, word
from tests.faults.case import Case, Entry, Fifo, Link
from tests.kit import examples
from tests.secrets import KINDS
from whygpu.causes import catalogue

_OUTPUTS = ((), ("--json",), ("--sarif",), ("--github",), ("-v",), ("--diff",), ("--fix",))
_NAMES = ("a.py", "train me.py", "x\x1b[31m.py", "q'uo\"te.py", "-v.py", "ü.py", "new\nline.py")
_BOMBS = (
    "a0='x'*1000\n" + "".join(f"a{n + 1}=a{n}+a{n}\n" for n in range(60)),
    "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0' * 10**10\n",
    "x = 10 ** 10 ** 10\n",
    "x = [[0] * 10**9] * 10**9\n",
    "x = " + "(" * 90 + "1" + ")" * 90 + "\n",
    "x = " + "-" * 5000 + "1\n",
    "x = " + "+".join("1" * 1 for _ in range(20_000)) + "\n",
    "import tensorflow as tf\n" + "; ".join(["tf.Session()"] * 2000) + "\n",
    "def f(): f()\nf()\n" * 50,
    "".join(f"def f{n}(): f{n + 1}(); f{n + 1}()\n" for n in range(40)) + "f0()\n",
    "class A(A): pass\n",
    "from a import *\n" * 2000,
    "\x00\x00",
    "# -*- coding: rot13 -*-\nimport tensorflow\n",
    "# -*- coding: nonsense -*-\n",
    "\ufeff\ufeffimport tensorflow as tf\n",
    "if 1:\n" + "".join(" " * n + "if 1:\n" for n in range(1, 120)),
)


@functools.cache
def programs() -> tuple[str, ...]:
    return tuple(
        example.text + "\n"
        for cause in catalogue()
        for example in examples(cause.page)
        if example.kind == "code"
    )


def program(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.15:
        return chance.choice(_BOMBS).encode("utf-8", "replace")
    text = "\n".join(chance.choice(programs()) for _ in range(chance.randint(1, 4)))
    if kind < 0.6:
        text = planted(text, chance)
    elif kind < 0.8:
        text = "\n".join(f"{line}  # {word(chance)}" for line in text.splitlines()) + "\n"
    if chance.random() < 0.1:
        text = text.replace("\n", "\r\n")
    return text.encode(chance.choice(("utf-8", "utf-8", "latin-1", "utf-16")), "replace")


def notebook(chance: random.Random) -> bytes:
    source = program(chance).decode("utf-8", "replace")
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source},
        {"cell_type": word(chance), "source": [word(chance), None]},
        chance.choice((None, [], {"cell_type": "code", "source": {"a": 1}})),
    ]
    text = json.dumps({"cells": cells[: chance.randint(1, 3)], "nbformat": 4, "metadata": {}})
    return text.encode()[: len(text) if chance.random() < 0.8 else chance.randrange(len(text))]


def sources(chance: random.Random) -> Iterator[Case]:
    while True:
        files: dict[str, Entry] = {}
        for _ in range(chance.randint(1, 3)):
            if chance.random() < 0.2:
                files[f"{chance.randrange(100)}.ipynb"] = notebook(chance)
            else:
                files[chance.choice(_NAMES)] = program(chance)
        if chance.random() < 0.2:
            files["pyproject.toml"] = _settings(chance)
        files |= _strange(chance)
        options = chance.choice(_OUTPUTS)
        paths = (".",) if chance.random() < 0.5 else tuple(f"./{name}" for name in files)
        yield Case(("lint", *options, *paths), files)


def _settings(chance: random.Random) -> bytes:
    value = chance.choice(('["WG704"]', f'"{word(chance)}"', "7", "[[[]]]", "{a = 1}", '["WG0"]'))
    key = chance.choice(("select", "ignore", "tensorflow", "exclude", "nonsense"))
    return f"[tool.whygpu.lint]\n{key} = {value}\n".encode("utf-8", "replace")


def _strange(chance: random.Random) -> dict[str, Entry]:
    kind = chance.randrange(8)
    if kind == 0:
        return {"pipe.py": Fifo()}
    if kind == 1:
        return {"zero.py": Link("/dev/zero")}
    if kind == 2:
        return {"loop.py": Link("loop.py"), "folder": Link(".")}
    if kind == 3:
        return {"outside.py": Link("/etc/hostname"), "gone.py": Link("nowhere.py")}
    return {}


def secrets(chance: random.Random) -> Iterator[Case]:
    """A key on the very line that is quoted."""
    while True:
        made = [KINDS[kind](chance) for kind in chance.sample(sorted(KINDS), 2)]
        lines = []
        for line in chance.choice(programs()).splitlines():
            note = chance.choice(made).text.replace("\n", " ")
            lines.append(f"{line}  # {note}" if line.strip() else line)
        options = chance.choice(((), ("--json",), ("--sarif",), ("--github",), ("-v",)))
        yield Case(
            ("lint", *options, "a.py"),
            {"a.py": "\n".join(lines).encode() + b"\n"},
            secrets=tuple(each.core for each in made),
        )
