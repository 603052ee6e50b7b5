"""Attack every verb of whygpu with generated inputs, and report what held.

    python -m tools.fuzz [--inputs 10000] [--seed 2] [--kinds logs,words] [--jobs 2]

The kinds and their promises are those of `tests/faults`, which CI runs for a few hundred inputs.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.faults.campaign import CORES, campaign
from tests.faults.table import ATTACKS, KINDS

NAMES = ", ".join(attack.kind for attack in ATTACKS)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--kinds", help=f"some of these, with commas: {NAMES}")
    parser.add_argument(
        "--jobs", type=int, default=CORES, help="processes; one per core if not given"
    )
    options = parser.parse_args(arguments)
    chosen = frozenset(options.kinds.split(",")) if options.kinds else KINDS
    if chosen - KINDS:
        parser.error(f"no such kind: {', '.join(chosen - KINDS)}; there are {NAMES}")
    began = time.monotonic()
    result = campaign(
        options.inputs, options.seed, kinds=chosen, jobs=options.jobs, on_progress=_progress
    )
    seconds = time.monotonic() - began
    print("\r", end="", file=sys.stderr)
    for failure in result.failures:
        print(failure, end="\n\n")
    print(f"{'kind':18} {'inputs':>7} {'failed':>7} {'MiB':>5}")
    says = {attack.kind: attack.says for attack in ATTACKS}
    for kind, held in result.kinds.items():
        memory = f"{held.peak_kib / 1024:.0f}"
        print(f"{kind:18} {held.inputs:7,} {held.failed:7} {memory:>5}  {says[kind]}")
    memory = f"{result.peak_kib / 1024:.0f}"
    print(f"{'all':18} {result.inputs:7,} {len(result.failures):7} {memory:>5}")
    codes = ", ".join(f"{code}: {count:,}" for code, count in sorted(result.codes.items()))
    print(f"{seconds:.0f} s with {options.jobs} jobs, seed {options.seed}; exit codes {codes}")
    return 1 if result.failures else 0


def _progress(done: int) -> None:
    if sys.stderr.isatty() or done % 1000 == 0:
        print(f"\r{done:,} inputs", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
