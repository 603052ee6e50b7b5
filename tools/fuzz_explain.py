"""Feed `whygpu explain` logs that nobody would write, and see that it neither fails nor hangs.

    python -m tools.fuzz_explain [--seconds 600] [--seed 1]

Logs are put together from the examples on the pages of all causes and from pieces that are hard to
read (escapes, deep JSON, cut UTF-8, zeros, giant lines), and then damaged. Each has to be
explained without an exception, in a time that its size allows, to an answer that is valid by the
schema. At the end stand the number of logs, the slowest, and what explaining leaves in memory.
"""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import random
import sys
import time
import tracemalloc
from typing import Any, NamedTuple

import jsonschema
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import whygpu
from tests.kit import examples
from whygpu.api import explain_pieces
from whygpu.causes import catalogue
from whygpu.render.explain import render
from whygpu.render.explain_json import as_dict

SCHEMA = pathlib.Path(whygpu.__path__[0]) / "schemas" / "explain.schema.json"
BATCH = 200
"""Examples that Hypothesis is asked for at a time."""
SECONDS_PER_LOG = 2.0
SECONDS_PER_MEGABYTE = 20.0
LONGEST = 1 << 20

FRAGMENTS = tuple(
    example.text.encode() + b"\n"
    for cause in catalogue()
    for example in examples(cause.page)
    if example.kind == "log"
)
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


class Seen(NamedTuple):
    logs: int
    megabytes: float
    slowest: float
    """Seconds."""
    verdicts: dict[str, int]


def damaged(log: bytes, how: int) -> bytes:
    """A log with a few random changes; `how` decides which."""
    chance = random.Random(how)
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


def logs() -> st.SearchStrategy[bytes]:
    piece = st.one_of(
        st.sampled_from(FRAGMENTS),
        st.sampled_from(FRAGMENTS),
        st.sampled_from(HARD),
        st.binary(max_size=60),
        st.tuples(st.sampled_from(HARD), st.integers(1, 300)).map(lambda pair: pair[0] * pair[1]),
    )
    whole = st.lists(piece, max_size=12).map(b"".join)
    return st.tuples(whole, st.integers(0, 2**32)).map(lambda pair: damaged(*pair)[:LONGEST])


def check(log: bytes, schema: jsonschema.Draft202012Validator) -> tuple[float, str]:
    """Explain one log; what must never happen is an exception here."""
    began = time.thread_time()
    explanation = explain_pieces([log])
    seconds = time.thread_time() - began
    assert not explanation.crashed, explanation.crashed
    allowed = SECONDS_PER_LOG + SECONDS_PER_MEGABYTE * len(log) / 1e6
    assert seconds < allowed, f"{seconds:.1f} s for {len(log)} bytes"
    schema.validate(json.loads(json.dumps(as_dict(explanation))))
    render(explanation, width=80, color=False, verbose=True)
    return seconds, explanation.verdict


def fuzz(seconds: float, start: int) -> Seen:
    """Until the time is over. A log that fails is shrunk and shown by Hypothesis."""
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    until = time.monotonic() + seconds
    counts: dict[str, int] = {}
    sizes: list[float] = []
    slowest = 0.0

    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(log=logs())
    def explained(log: bytes) -> None:
        nonlocal slowest
        if time.monotonic() > until:
            return
        took, verdict = check(log, schema)
        counts[verdict] = counts.get(verdict, 0) + 1
        sizes.append(len(log) / 1e6)
        slowest = max(slowest, took)

    while time.monotonic() < until:
        seed(start)(explained)()
        start += 1
    return Seen(len(sizes), sum(sizes), slowest, counts)


def left_behind(count: int = 60) -> int:
    """Bytes that explaining so many logs leaves behind, once all caches are filled.

    The process's size would count what Hypothesis remembers, which is more by far.
    """
    chance = random.Random(count)
    some = [damaged(chance.choice(FRAGMENTS) * 3, how) for how in range(count)]
    held = []
    tracemalloc.start()
    for _ in range(3):
        for log in some:
            explain_pieces([log])
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return held[2] - held[1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options: Any = parser.parse_args(arguments)
    seen = fuzz(options.seconds, options.seed)
    print(f"{seen.logs} logs, {seen.megabytes:.1f} MB, no failure; {seen.verdicts}")
    print(f"slowest {seen.slowest:.2f} s; 60 more logs leave {left_behind()} bytes behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
