"""Makes the logs of many jobs, of which the cause is known or which cannot be read.

Sizes are spread as those of real jobs are: most have some kilobytes, some a megabyte. A failed job
works for a while and then ends with a recorded log.
"""

from __future__ import annotations

import gzip
import pathlib
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

RECORDED = sorted((pathlib.Path(__file__).parent.parent / "tests" / "logs").glob("*.log"))
NODES = 100
FAILED_PART = 0.1
"""Of the jobs; the others are healthy."""
ODD = 1000
"""Of this many logs, one cannot be read, one is empty, and one is binary."""
COMPRESSED_PART = 0.01
_USUAL_LINES = 120
"""The median; a hundredth of the logs has more than thirty times as many."""
_SPREAD = 1.5
_MOST_LINES = 50_000


class MadeLogs(NamedTuple):
    logs: int
    size: int
    """Bytes on the disk."""
    unreadable: int
    failed: int


Line = Callable[[int, random.Random], str]


def _steps(step: int, chance: random.Random) -> str:
    return f"step {step} loss {chance.random():.4f} lr 0.001 {chance.randrange(900)} img/s\n"


def _records(step: int, chance: random.Random) -> str:
    seconds = step * 7
    clock = f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if step % 100 == 99:
        return f"2026-11-11 {clock},481 INFO trainer.py:210 - saved out/checkpoint-{step}\n"
    loss = 4 / (1 + step) + chance.random() / 10
    return f"2026-11-11 {clock},123 INFO trainer.py:88 - iter {step} loss={loss:.3f} lr=3e-05\n"


def _bars(step: int, chance: random.Random) -> str:
    part = step % 100
    bar = "█" * (part // 10) + "▏▎▍▌▋▊▉"[part % 7]
    ends = "\n" if part == 99 else ""
    epoch, speed = step // 100, chance.uniform(5, 20)
    return f"\rEpoch {epoch}: {part}%|{bar}| {part}/100 [00:12<01:30, {speed:.2f}it/s]{ends}"


def _keras(step: int, chance: random.Random) -> str:
    if step % 50 == 0:
        return f"Epoch {step // 50 + 1}/100\n"
    return f"{step % 50}/50 - 0s - loss: {chance.random():.4f} - accuracy: {chance.random():.4f}\n"


FORMS: tuple[Line, ...] = (_steps, _records, _bars, _keras)


def make_logs(
    folder: pathlib.Path, count: int, seed: int = 1, texts: Sequence[bytes] = ()
) -> MadeLogs:
    """Write `count` logs in a folder for each node."""
    chance = random.Random(seed)
    recorded = [path.read_bytes() for path in RECORDED] + list(texts)
    for node in range(NODES):
        (folder / f"gpu-{node:03}").mkdir(parents=True)
    size = unreadable = failed = 0
    for number in range(count):
        path = folder / f"gpu-{number % NODES:03}" / f"job-{number}.log"
        match number % ODD:
            case 997:
                path.write_bytes(b"")
                continue
            case 998:
                content = chance.randbytes(20_000)
            case 999:
                # The directory entry is there, and the file it leads to is not.
                path.symlink_to(folder / "gone.log")
                unreadable += 1
                continue
            case _:
                content = _work(number, chance)
                if chance.random() < FAILED_PART:
                    content += chance.choice(recorded)
                    failed += 1
        if chance.random() < COMPRESSED_PART:
            path, content = path.with_suffix(".log.gz"), gzip.compress(content)
        path.write_bytes(content)
        size += len(content)
    return MadeLogs(count, size, unreadable, failed)


def _work(number: int, chance: random.Random) -> bytes:
    lines = min(_MOST_LINES, int(_USUAL_LINES * chance.lognormvariate(0, _SPREAD)))
    form = chance.choice(FORMS)
    head = f"job {number} on {chance.randrange(1, 9)} workers, seed {chance.randrange(10**9)}\n"
    text = head + "".join(form(step, chance) for step in range(lines))
    return f"{text}\n".encode()
