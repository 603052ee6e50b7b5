"""How fast `whygpu explain` reads a large log beside `grep -c -F -f` with the same literals.

    python -m benchmarks.explain_speed [--size 1000] [--runs 5] [--json]

A log of ordinary training output, with faults sprinkled in, is written to a temporary file: Keras
bars, PyTorch loops, the dictionaries of a trainer, JSON lines, checkpoints with hashes and paths.
Both programs read it in turn, round after round, so that a slow moment of the machine hits both;
the table shows the best and the median time of each whole process and its peak memory. The answer
is compared with the answer on a short log that holds the same faults.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.readers.sieve import WORDS

WHYGPU = str(pathlib.Path(sys.executable).with_name("whygpu"))
BLOCK_LINES = 20_000

START = """\
2024-05-14 09:12:01.100412: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow \
binary is optimized to use available CPU instructions in performance-critical operations.
2024-05-14 09:12:04.310555: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1929] Created \
device /job:localhost/replica:0/task:0/device:GPU:0 with 9597 MB memory:  -> device: 0, name: \
NVIDIA GeForce RTX 3080, pci bus id: 0000:01:00.0, compute capability: 8.6
"""
WARNING = (
    "2024-05-14 10:{minute:02}:44.512903: W external/local_tsl/tsl/framework/bfc_allocator.cc:296] "
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate {size:.2f}GiB with "
    "freed_by_count=0. The caller indicates that this is not a failure, but this may mean that "
    "there could be performance gains if more memory were available."
)
FAULT = """\
Traceback (most recent call last):
  File "/workspace/project/train.py", line 214, in <module>
    main()
  File "/workspace/project/train.py", line 180, in main
    outputs = model(batch)
RuntimeError: CUDA error: uncorrectable ECC error encountered
"""


def ordinary_lines(seed: int) -> Iterator[str]:
    """Training output of the usual kinds, no two lines quite alike."""
    chance = random.Random(seed)
    step = seed * BLOCK_LINES
    while True:
        step += 1
        loss, rate = chance.random() * 4, chance.random() * 1e-3
        speed = loss * 10
        kind = chance.randrange(10)
        if kind < 3:
            done = chance.randrange(31)
            bar = "=" * done + ">" + "." * (30 - done)
            yield f" {step % 1563}/1563 [{bar}] - ETA: {done}s - loss: {loss:.4f} - acc: {rate:.4f}"
        elif kind < 5:
            epoch, batch = divmod(step, 900)
            yield f"Epoch [{epoch}/90][{batch}/900]  Time {loss:.3f}  Loss {loss:.4f}  lr {rate:g}"
        elif kind < 7:
            yield str(
                {"loss": loss, "grad_norm": loss * 3, "learning_rate": rate, "epoch": step / 900}
            )
        elif kind == 7:
            yield json.dumps({"step": step, "metrics": {"loss": loss, "tokens": step * 8192}})
        elif kind == 8:
            filled = chance.randrange(20)
            bar = "█" * filled + " " * (20 - filled)
            yield f"{filled * 5}%|{bar}| {step % 400}/400 [00:{filled:02}<00:19, {speed:.2f}it/s]"
        elif step % 50:
            yield f"[rank0] step {step}: {chance.randrange(9000)} tokens/s, {loss:.1f} ms a batch"
        else:
            digest = f"{chance.getrandbits(128):032x}"
            yield f"saved /data/runs/exp-{step % 7}/{digest}/weights-{step:08}.safetensors"


def write_log(path: pathlib.Path, megabytes: float) -> int:
    """Write the log; the answer is the number of the line that names the fault."""
    size = int(megabytes * 1e6)
    written = number = fault_at = 0
    with open(path, "w", encoding="utf-8") as file:
        number += START.count("\n")
        written += file.write(START)
        lines = ordinary_lines(1)
        while written < size:
            block = [next(lines) for _ in range(BLOCK_LINES)]
            block[BLOCK_LINES // 2] = WARNING.format(minute=number % 60, size=2 + number % 5)
            written += file.write("\n".join(block) + "\n")
            number += BLOCK_LINES
            if not fault_at and written >= size / 2:
                file.write(FAULT)
                number += FAULT.count("\n")
                fault_at = number
        file.write(FAULT)
    return fault_at


class Measured(NamedTuple):
    seconds: float
    peak_mib: float
    output: str


def measured(command: list[str]) -> Measured:
    """Run to the end: wall-clock time and peak resident memory of the process."""
    peak = 0
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, env={**os.environ, "LC_ALL": "C"})
        while True:
            try:
                process.wait(timeout=0.02)
                break
            except subprocess.TimeoutExpired:
                peak = max(peak, _peak_kib(process.pid))
        seconds = time.perf_counter() - began
        output.seek(0)
        return Measured(seconds, peak / 1024, output.read().decode("utf-8", "replace"))


def _peak_kib(pid: int) -> int:
    """So far. The figure at the end of a process includes its parent's memory."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0]) if found else 0


def answer(text: str) -> tuple[str, list[str]]:
    data = json.loads(text)
    return data["verdict"], [finding["cause"] for finding in data["root_causes"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=float, default=1000, metavar="MB")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large, short = pathlib.Path(folder, "large.log"), pathlib.Path(folder, "short.log")
        words = pathlib.Path(folder, "words")
        words.write_bytes(b"\n".join(WORDS) + b"\n")
        fault_at = write_log(large, options.size)
        short.write_text(START + WARNING.format(minute=1, size=2) + "\n" + FAULT + FAULT)
        commands = {
            "whygpu explain": [WHYGPU, "explain", "--json", str(large)],
            "grep -c -F -f": ["grep", "-c", "-F", "-f", str(words), str(large)],
        }
        results: dict[str, list[Measured]] = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, command in commands.items():
                results[name].append(measured(command))
        said = results["whygpu explain"][0].output
        expected = measured([WHYGPU, "explain", "--json", str(short)]).output
        size = large.stat().st_size / 1e6
    best = {name: min(run.seconds for run in runs) for name, runs in results.items()}
    ratio = best["grep -c -F -f"] / best["whygpu explain"]
    lines = {line for root in json.loads(said)["root_causes"] for line in _lines(root)}
    checks = {
        "same answer as on the short log": answer(said) == answer(expected),
        "the fault in the middle has its line number": fault_at in lines,
    }
    if options.json:
        print(json.dumps({"megabytes": size, "seconds": best, "ratio": ratio, **checks}, indent=2))
    else:
        print(f"{size:.0f} MB, {options.runs} runs, {len(WORDS)} literals")
        for name, runs in results.items():
            median = statistics.median(run.seconds for run in runs)
            peak = max(run.peak_mib for run in runs)
            print(
                f"{name:16} best {best[name]:6.2f} s  median {median:6.2f} s  "
                f"{size / best[name]:6.0f} MB/s  peak {peak:5.0f} MiB"
            )
        print(f"speed of whygpu explain: {ratio:.2f} of grep's")
        for name, held in checks.items():
            print(f"{name}: {'yes' if held else 'NO'}")
    return 0 if all(checks.values()) else 1


def _lines(finding: dict[str, object]) -> set[object]:
    evidence = finding["evidence"]
    return {item["line"] for item in evidence} if isinstance(evidence, list) else set()


if __name__ == "__main__":
    sys.exit(main())
