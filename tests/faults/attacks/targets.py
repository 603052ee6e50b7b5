"""Interpreters that lie, and environments whose packages say what they like."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from tests.faults.attacks.hostile import planted, word
from tests.faults.case import Case, Entry, Fifo, Link, Script
from tests.secrets import KINDS

_FRAMEWORKS = ("tensorflow", "torch", "jax", "jaxlib", "keras", "onnxruntime", "nvidia-cudnn-cu12")
_METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Requires-Dist: numpy<2.0,>=1.26
Requires-Dist: {requirement}
Author: {author}
"""


def lying_pythons(chance: random.Random) -> Iterator[Case]:
    """A `python` that answers anything at all, or nothing."""
    while True:
        files = {"python": Script(_lie(chance))}
        options = chance.choice(((), ("--json",), ("-v",)))
        verb = chance.choice(("check", "check", "snapshot"))
        if verb == "snapshot":
            options = ()
        yield Case((verb, "--no-probe", "--python", "./python", *options), files)


def _lie(chance: random.Random) -> bytes:
    answers = (
        "{}",
        "[]",
        "null",
        word(chance).replace("\0", ""),
        json.dumps({"version": word(chance), "prefix": word(chance), "paths": [word(chance)]}),
        json.dumps({"version": [1, {}], "prefix": None, "paths": "abc", "executable": 7}),
        "9" * 5000,
    )
    answer = chance.choice(answers).replace("'", "'\\''")
    kind = chance.randrange(6)
    body = {
        0: f"printf '%s' '{answer}'",
        1: f"printf '%s\\n' '{answer}'; exit 1",
        2: f"printf '%s' '{answer}' >&2; kill -SEGV $$",
        3: "head -c 3000000 /dev/zero | tr '\\0' x",
        4: "exit 0",
        5: f"printf '%s' '{answer}'; (setsid sleep 300 >/dev/null 2>&1 &)",
    }[kind]
    head = chance.choice(("#!/bin/sh\n", "#!/bin/sh\n", "#!/nowhere/python\n", "\x7fELF", ""))
    return (head + body + "\n").encode("utf-8", "replace")


def hostile_packages(chance: random.Random) -> Iterator[Case]:
    """A real virtual environment whose metadata was written by somebody else."""
    while True:
        made = [KINDS[kind](chance) for kind in chance.sample(sorted(KINDS), 2)]
        files: dict[str, Entry] = {
            "env/pyvenv.cfg": f"home = {word(chance)}\nversion = {word(chance)}\n".encode(
                "utf-8", "replace"
            ),
            "env/bin/python": Link("/proc/self/exe"),
        }
        site = "env/lib/python3.11/site-packages"
        for name in chance.sample(_FRAMEWORKS, chance.randint(1, 4)):
            version = chance.choice(("2.21.0", "2.13.0+cpu", word(chance), "1.15.5", ""))
            text = _METADATA.format(
                name=name,
                version=version,
                requirement=planted("protobuf>=4; python_version<'3.12'", chance, 2),
                author=chance.choice(made).text,
            )
            base = f"{site}/{name.replace('-', '_')}"
            files[f"{base}-2.0.dist-info/METADATA"] = text.encode("utf-8", "replace")
            files[f"{base}/__init__.py"] = b"raise SystemExit(1)\n"
            files[f"{base}/version.py"] = f"cuda = {word(chance)!r}\n".encode("utf-8", "replace")
            if chance.random() < 0.3:
                files[f"{base}/libx.so"] = b"\x7fELF\x02\x01\x01" + chance.randbytes(300)
            if chance.random() < 0.1:
                files[f"{base}/pipe.so"] = Fifo()
        environ = {
            "PYTHONPATH": site,
            "LD_LIBRARY_PATH": f"{word(chance)}:/usr/lib".replace("\0", ""),
            "CUDA_VISIBLE_DEVICES": word(chance).replace("\0", ""),
        }
        options = chance.choice(((), ("--json",), ("-v",)))
        yield Case(
            ("check", "--no-probe", *options),
            files,
            environ,
            secrets=tuple(each.core for each in made),
        )
