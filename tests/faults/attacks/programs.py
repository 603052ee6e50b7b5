"""Programs under `run` that end strangely and write into what whygpu keeps for itself."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

from tests.faults.attacks.hostile import word
from tests.faults.case import Case

_HEAD = """\
import json, os, shutil, sys, time
folder = os.path.dirname(os.environ.get("WHYGPU_BOOTSTRAP_SETTINGS", "/nowhere/x"))
reports = os.path.join(folder, "reports")
def put(name, content):
    try:
        with open(os.path.join(reports, name), "wb") as file:
            file.write(content)
    except OSError:
        pass
"""
_DEEDS = (
    "put('1-1.json', b'')",
    "put('1-1.json', b'{')",
    "put('1-1.json', b'[]')",
    "put('1-1.json', b'\\xff' * 100)",
    "put('1-1.json', json.dumps({'pid': 'x', 'complete': 7, 'frameworks': []}).encode())",
    "put('1-1.json', b'[' * 100000)",
    "put('%d.work' % os.getpid(), b'nonsense')",
    "os.mkdir(os.path.join(reports, '2-2.json')) if os.path.isdir(reports) else None",
    "os.mkfifo(os.path.join(reports, '3-3.json')) if os.path.isdir(reports) else None",
    "shutil.rmtree(folder, ignore_errors=True)",
    "os.environ.clear()",
    "sys.path.clear()",
    "os.close(2)",
    "os.chdir('/')",
    "sys.setrecursionlimit(50)",
    "os.umask(0o777)",
    "sys.stderr.write('\\x1b[31m' * 10)",
    "[os.fork() or os._exit(3) for _ in range(3)]",
    "pass",
)
_PROGRAM_CODE = 7


def programs(chance: random.Random) -> Iterator[Case]:
    while True:
        deeds = "\n".join(chance.sample(_DEEDS, chance.randint(1, 3)))
        text = f"{_HEAD}{deeds}\nos._exit({_PROGRAM_CODE})\n"
        if chance.random() < 0.5:
            text = f"{_HEAD}{deeds}\nraise SystemExit({_PROGRAM_CODE})\n"
        options = chance.choice(
            (
                ("--no-repair",),
                ("--no-repair", "--quiet"),
                ("--no-repair", "--report", "report.json"),
                ("--device", "cpu"),
            )
        )
        extra = word(chance).replace("\0", "") if chance.random() < 0.3 else "x"
        yield Case(
            ("run", *options, "--", sys.executable, "program.py", extra),
            {"program.py": text.encode()},
            codes=frozenset((_PROGRAM_CODE,)),
            writes=frozenset(("report.json",)),
        )
