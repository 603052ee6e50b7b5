"""The finder beside the truth, and beside accelerate's on PyTorch, on the CPU.

    python -m benchmarks.find_batch [--only torch_conv ...] [--accelerate PYTHON] [--json FILE]
                                    [--truth FILE]

The truth takes most of the time and does not depend on the finder: --truth takes it, where it is
there, from what --json has written before.

The truth is found by bisection over plain processes (find_truth.py) that are held against the same
limit of resident memory. The finder is the command `whygpu memory find`, as a user types it.
Everything runs on one core: what is resident depends on what happens to run at the same time.

With --accelerate, an interpreter that has PyTorch and accelerate, each PyTorch model is also given
to accelerate's find_executable_batch_size. That works inside one process and has no limit of its
own, so here everybody, the truth included, works under the same limit of address space (ulimit -v).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.targets import folder

HERE = pathlib.Path(__file__).parent
WHYGPU = str(pathlib.Path(sys.executable).with_name("whygpu"))
MIB = 1 << 20
TIME_LIMIT = 300
BACKENDS = ("tensorflow", "jax", "torch")
KINDS = {
    "keras": ("conv", "mlp", "lstm", "transformer"),
    "torch": ("conv", "mlp", "lstm", "transformer"),
    "jax": ("conv", "mlp", "scan", "attention"),
    "tensorflow": ("conv", "mlp", "attention", "while"),
}
LIMITS = {
    "keras (tensorflow)": 1152 * MIB,
    "keras (jax)": 768 * MIB,
    "keras (torch)": 896 * MIB,
    "tensorflow": 1152 * MIB,
    "jax": 640 * MIB,
    "torch": 768 * MIB,
}
"""Some 400 MiB more than the framework and a small batch take."""
CLEARLY = 0.015
"""So far from the limit, one plain process is believed."""
FINE = 100
"""The truth is determined to one part in this many."""
NEAR = 0.04
"""Around the truth: the plain processes that tell how sure it is."""
ACCELERATE_STARTS = 1024
ADDRESS_SPACE = 1024 * MIB

ACCELERATE = """
import json, sys, time
import torch
from accelerate.utils import find_executable_batch_size
import find_models

net, example = getattr(find_models, sys.argv[1])()
optimizer = torch.optim.Adam(net.parameters())
tried = []

@find_executable_batch_size(starting_batch_size=int(sys.argv[2]))
def train(batch_size):
    tried.append(batch_size)
    x = torch.ones((batch_size, *example.shape[1:]), dtype=example.dtype)
    for _ in range(3):
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
    return batch_size

began = time.time()
print(json.dumps({"found": train(), "trials": len(tried), "seconds": time.time() - began}))
"""


def environment(backend: str) -> dict[str, str]:
    settings = {"KERAS_BACKEND": backend, "PYTHONDONTWRITEBYTECODE": ""}
    return {**os.environ, **settings, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(HERE)}


def within(address_space: int | None) -> Callable[[], None] | None:
    if address_space is None:
        return None
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


class Peak(NamedTuple):
    """What a plain process with this batch has had at most."""

    batch: int
    bytes: int


class Case:
    """One model in one framework, under one limit."""

    def __init__(self, model: str, backend: str, *, address_space: int | None = None) -> None:
        self.model = model
        self.python = str(folder() / "keras-all" / "bin" / "python")
        self.environ = environment(backend)
        self.address_space = address_space
        of_keras = model.startswith("keras")
        self.limit = LIMITS[f"keras ({backend})" if of_keras else backend]
        self.peaks: list[Peak] = []
        self.name = f"{model} ({backend})" if of_keras else model

    def fits(self, batch: int) -> bool:
        """By the majority of plain processes: what they take is not the same every time."""
        first = self.fits_once(batch)
        if self.address_space is None and abs(self.peaks[-1].bytes / self.limit - 1) > CLEARLY:
            return first
        second = self.fits_once(batch)
        return first if first == second else self.fits_once(batch)

    def fits_once(self, batch: int) -> bool:
        """What fails does not fit; what else than memory it could be is shown."""
        done = subprocess.run(
            [self.python, str(HERE / "find_truth.py"), self.model, str(batch)],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            preexec_fn=within(self.address_space),
        )
        if self.address_space is not None:
            if done.returncode and "allocate" not in done.stderr:
                print(done.stderr[-500:], file=sys.stderr)
            return done.returncode == 0
        if done.returncode:
            raise RuntimeError(f"{self.name} with {batch}: {done.stderr[-2000:]}")
        self.peaks.append(Peak(batch, int(done.stdout.split()[-1])))
        return self.peaks[-1].bytes <= self.limit

    def scatter(self, truth: int) -> float | None:
        """By which part of itself the truth is uncertain: how far apart the plain processes around
        it are, beyond what their batches explain."""
        if self.address_space is not None:
            return None
        self.fits_once(truth // 2)
        half = self.peaks[-1]
        near = [peak for peak in self.peaks if abs(peak.batch - truth) <= NEAR * truth]
        middle = statistics.median(peak.bytes for peak in near)
        slope = (middle - half.bytes) / (truth - half.batch)
        apart = [peak.bytes - slope * peak.batch for peak in near]
        return round((max(apart) - min(apart)) / slope / truth, 4) if slope > 0 else None

    def truth(self, guess: int) -> int:
        """By bisection, from a bracket around a guess."""
        gap = max(guess // 32, 1)
        if self.fits(guess):
            low, high = guess, guess + gap
            while self.fits(high):
                low, high, gap = high, high + 2 * gap, 2 * gap
        else:
            low, high = guess - gap, guess
            while low > 0 and not self.fits(low):
                low, high, gap = low - 2 * gap, low, 2 * gap
            low = max(low, 0)
        while high - low > max(low // FINE, 1):
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle) else (low, middle)
        return low

    def ours(self) -> dict[str, Any]:
        words = ["memory", "find", str(HERE / f"find_models.py:{self.model}"), "--json"]
        words += ["--python", self.python, "--no-cache", "--device", "cpu"]
        if self.address_space is None:
            words += ["--limit", f"{self.limit}B"]
        began = time.monotonic()
        done = subprocess.run(
            [WHYGPU, *words],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=8 * TIME_LIMIT,
            preexec_fn=within(self.address_space),
        )
        result = json.loads(done.stdout) if done.stdout else {}
        if not result.get("batch"):
            raise RuntimeError(f"{self.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return {
            "found": result["batch"],
            "outcome": result["outcome"],
            "trials": len(result["trials"]),
            "seconds": round(time.monotonic() - began, 1),
            "batches": [trial["batch"] for trial in result["trials"]],
        }

    def accelerate(self, python: str) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(ACCELERATE)
            file.flush()
            done = subprocess.run(
                [python, file.name, self.model, str(ACCELERATE_STARTS)],
                env=self.environ,
                capture_output=True,
                text=True,
                timeout=8 * TIME_LIMIT,
                preexec_fn=within(self.address_space),
            )
        if done.returncode:
            return {"found": None, "trials": None, "error": done.stderr[-300:]}
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def row_of(case: Case, accelerate: str | None, known: list[dict[str, Any]]) -> dict[str, Any]:
    ours = case.ours()
    about = {"model": case.name, "limit": case.address_space or case.limit}
    then = [row for row in known if about.items() <= row.items()]
    truth = then[-1]["true"] if then else case.truth(ours["found"])
    row = {**about, "true": truth, **ours}
    row["off"] = round(1 - ours["found"] / truth, 4)
    row["scatter"] = then[-1]["scatter"] if then else case.scatter(truth)
    row["peaks"] = case.peaks
    if accelerate is not None:
        row["accelerate"] = case.accelerate(accelerate)
    return row


def cases(accelerate: str | None) -> list[Case]:
    if accelerate is not None:
        kinds = KINDS["torch"]
        return [Case(f"torch_{kind}", "torch", address_space=ADDRESS_SPACE) for kind in kinds]
    return [
        Case(f"{framework}_{kind}", backend)
        for framework, kinds in KINDS.items()
        for backend in (BACKENDS if framework == "keras" else (framework,))
        for kind in kinds
    ]


def shown(row: dict[str, Any]) -> str:
    text = (
        f"{row['model']:32} true {row['true']:6}  found {row['found']:6} ({row['off']:+.1%})  "
        f"trials {row['trials']}  {row['seconds']:.0f} s"
    )
    if row["scatter"] is not None:
        text += f"  truth scatters by {row['scatter']:.1%}"
    peer = row.get("accelerate")
    if peer:
        text += f"   accelerate: found {peer['found']}, trials {peer['trials']}"
        text += f", {peer['seconds']:.0f} s" if "seconds" in peer else f" ({peer['error']})"
    return text


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--accelerate", metavar="PYTHON")
    options.add_argument("--json", metavar="FILE")
    options.add_argument("--core", type=int, default=0, help="the core to run on")
    options.add_argument("--truth", metavar="FILE")
    chosen = options.parse_args()
    known = []
    if chosen.truth:
        lines = pathlib.Path(chosen.truth).read_text(encoding="utf-8").splitlines()
        known = [json.loads(line) for line in lines]
    os.sched_setaffinity(0, {chosen.core})
    for case in cases(chosen.accelerate):
        if chosen.only and not any(word in case.name for word in chosen.only):
            continue
        row = row_of(case, chosen.accelerate, known)
        print(shown(row), flush=True)
        if chosen.json:
            with open(chosen.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
