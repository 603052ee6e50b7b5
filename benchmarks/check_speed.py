"""How long `whygpu check` takes beside framework imports and other doctors.

    python -m benchmarks.check_speed [--runs 7] [--peers] [--json]

Every command is run in turn, round after round, so that a slow moment of the machine hits all of
them alike. The table shows the medians of elapsed time and of processor time, and their ratios to
another command on the same target: `check --no-probe` is what the others are compared with, and
`check` itself is compared with importing the framework, which it has to do. `--peers` installs
env-doctor and cuda-doctor into environments of their own first (env-doctor then needs a network).
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
import time
from dataclasses import dataclass, field
from typing import Literal

from tests.targets import TARGETS, build, find_interpreter, folder

WHYGPU = str(pathlib.Path(sys.executable).with_name("whygpu"))
PEERS = {"env-doctor": ("check",), "cuda-doctor": ()}


@dataclass
class Contestant:
    name: str
    against: str
    """The contestant that this one is compared with."""
    command: list[str]
    environ: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)

    def run(self) -> None:
        # Byte code is kept, as it is where people work: compiling is not what is measured.
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **self.environ}
        began, used = time.perf_counter(), _processor_time_of_children()
        subprocess.run(self.command, env=environ, capture_output=True, timeout=300)
        self.seconds.append(time.perf_counter() - began)
        self.processor_seconds.append(_processor_time_of_children() - used)


def _processor_time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def contestants(peers: bool) -> list[Contestant]:
    chosen = [
        Contestant("python -c pass", "", [sys.executable, "-c", "pass"]),
        Contestant("whygpu --help", "python -c pass", [WHYGPU, "--help"]),
    ]
    for name, rivals in (
        ("tensorflow-2.21", {"import tensorflow": ["-c", "import tensorflow"]}),
        (
            "torch",
            {
                "import torch": ["-c", "import torch"],
                "torch.utils.collect_env": ["-m", "torch.utils.collect_env"],
            },
        ),
        ("jax", {"import jax": ["-c", "import jax"]}),
    ):
        print(f"target {name}: {build(name, TARGETS[name])}", file=sys.stderr)
        python = folder() / name / "bin" / "python"
        if not python.exists():
            continue
        own = f"whygpu check --no-probe ({name})"
        chosen.append(Contestant(own, "", [WHYGPU, "check", "--no-probe", "--python", str(python)]))
        chosen += [Contestant(rival, own, [str(python), *rest]) for rival, rest in rivals.items()]
        # Keras runs on the framework of this target.
        backend = {"KERAS_BACKEND": name.partition("-")[0]}
        full, plain = [WHYGPU, "check", "--python", str(python)], next(iter(rivals))
        chosen.append(Contestant(f"whygpu check ({name})", plain, full, backend))
        if peers and name == "torch":
            chosen += [peer_beside(python, peer, own) for peer in PEERS]
    return chosen


def peer_beside(python: pathlib.Path, peer: str, against: str) -> Contestant:
    """A doctor in its own environment, which sees the target's packages, as it requires."""
    place = folder() / f"peer-{peer}"
    if not place.exists():
        interpreter = find_interpreter(TARGETS["torch"].python)
        subprocess.run([interpreter or sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin" / "pip", "install", "-q", peer], check=True)
    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    command = [str(place / "bin" / peer), *PEERS[peer]]
    return Contestant(f"{peer} (torch)", against, command, {"PYTHONPATH": str(site)})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--peers", action="store_true")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    field_of_runners = contestants(chosen.peers)
    for round_number in range(chosen.runs + 1):
        for contestant in field_of_runners:
            print(f"\rround {round_number}: {contestant.name:60}", end="", file=sys.stderr)
            contestant.run()
    print(f"\r{'':80}\r", end="", file=sys.stderr)
    # The first round warms the page cache and writes byte code.
    medians = {
        item.name: (
            statistics.median(item.seconds[1:]),
            statistics.median(item.processor_seconds[1:]),
        )
        for item in field_of_runners
    }
    rows = [
        {
            "name": item.name,
            "median_s": round(medians[item.name][0], 4),
            "range_s": [round(min(item.seconds[1:]), 4), round(max(item.seconds[1:]), 4)],
            "processor_s": round(medians[item.name][1], 4),
            "against": item.against,
            "ratio": _ratio(medians, item, 0),
            "processor_ratio": _ratio(medians, item, 1),
        }
        for item in field_of_runners
    ]
    if chosen.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'':44} {'elapsed':>10} {'processor':>12}  ratios of the two")
    for row in rows:
        times = f"{row['name']:44} {row['median_s']:8.3f} s {row['processor_s']:10.3f} s"
        print(times, end="")
        if row["against"]:
            print(f"  {row['ratio']:6} {row['processor_ratio']:6} x {row['against']}", end="")
        print()


def _ratio(
    medians: dict[str, tuple[float, float]], item: Contestant, which: Literal[0, 1]
) -> float | None:
    if not item.against:
        return None
    return round(medians[item.name][which] / medians[item.against][which], 2)


if __name__ == "__main__":
    main()
