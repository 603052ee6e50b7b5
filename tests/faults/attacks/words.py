"""Arguments: words that no verb expects, in every place."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.faults.attacks.hostile import planted, word
from tests.faults.case import Case

_PLAIN_CODES = frozenset((0, 1, 2, 4))
_USES = (
    ("check", "--no-probe", "--python", "/nowhere"),
    ("check", "--snapshot", "machine.json", "--json"),
    ("check", "--no-probe", "--timeout", "5"),
    ("diff", "machine.json", "machine.json", "--no-probe", "--json"),
    ("history", "show", "-n", "5", "--json"),
    ("history", "export", "7"),
    ("explain", "train.log", "--json"),
    ("lint", "train.py", "--select", "WG704", "--tensorflow", "2.16"),
    ("plan", "tensorflow", "--gpu", "A100", "--driver", "535.54.03", "--python", "3.11", "--json"),
    ("plan", "torch==2.4.1", "keras", "--platform", "linux_x86_64", "--glibc", "2.31"),
    ("plan", "jax", "--why-not", "jax==0.4.30", "--driver", "470.57.02"),
    ("plan", "tensorflow", "--matrix"),
    ("memory", "--gpu", "0", "--snapshot", "machine.json"),
    ("memory", "estimate", "model.keras", "--batch", "32", "--python", "/nowhere"),
    ("memory", "find", "train.py:step", "--limit", "8GiB", "--python", "/nowhere"),
    ("compare", "model.keras", "--lanes", "cpu,gpu", "--python", "/nowhere"),
    ("rule", "WG203", "--json"),
    ("rule",),
    ("snapshot", "--no-probe", "--python", "/nowhere"),
    ("--version",),
    ("--help",),
    ("nonsense",),
)


def words(chance: random.Random) -> Iterator[Case]:
    while True:
        argv = list(chance.choice(_USES))
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(argv))
            made = chance.choice((word, lambda chance, old=argv[place]: planted(old, chance, 1)))
            kind = chance.randrange(4)
            if kind == 0 and place:
                argv[place] = made(chance)
            elif kind == 1:
                argv.append(made(chance))
            elif kind == 2 and place:
                argv[place : place + 1] = []
            elif place:
                argv[place] += chance.choice(("", "=", ",", ":", "\0x", "\udcff", "9" * 30))
            if not argv:
                argv = ["rule"]
        # The operating system passes no zero byte in an argument.
        safe = tuple(each.replace("\0", "") for each in argv)
        yield Case(safe, codes=_PLAIN_CODES)
