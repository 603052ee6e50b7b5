"""Variables, folders and output files that are not what a program expects of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.faults.attacks.hostile import word
from tests.faults.attacks.snapshots import seeds
from tests.faults.case import Case, Link

_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "XLA_FLAGS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "KERAS_BACKEND",
    "KERAS_HOME",
    "COLUMNS",
    "LINES",
    "TERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "HOME",
    "TMPDIR",
    "PATH",
    "LANG",
    "LC_ALL",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "XDG_CACHE_HOME",
    "USER",
)
_OUTPUTS = ("out.json", "folder", "nowhere/out.json", "link.json", "/dev/full", "/dev/null", "")


def surroundings(chance: random.Random) -> Iterator[Case]:
    while True:
        names = chance.sample(_VARIABLES, chance.randint(1, 4))
        values = ("", "/", "/nowhere", "0", "-5", "x" * 3000, word(chance))
        environ = {name: chance.choice(values).replace("\0", "") for name in names}
        # What cannot be loaded at all is the dynamic loader's to complain about.
        environ.pop("LD_PRELOAD", None)
        machine = {"machine.json": chance.choice(seeds()).encode()}
        argv = chance.choice(
            (
                ("check", "--no-probe"),
                ("check", "--snapshot", "machine.json"),
                ("plan", "tensorflow", "--python", "3.11", "--gpu", "A100"),
                ("memory",),
                ("rule", "WG203"),
                ("snapshot", "--no-probe"),
            )
        )
        yield Case(argv, machine, environ)


def outputs(chance: random.Random) -> Iterator[Case]:
    """`snapshot -o` to places that cannot, or should not, be written."""
    while True:
        place = chance.choice(_OUTPUTS)
        if chance.random() < 0.2:
            place = word(chance).replace("\0", "")[:100]
        yield Case(
            ("snapshot", "--no-probe", "-o", place),
            {"folder/x": b"kept", "link.json": Link("target.json"), "target.json": b"old"},
            writes=frozenset(("out.json", "target.json", place.lstrip("./"))),
        )
