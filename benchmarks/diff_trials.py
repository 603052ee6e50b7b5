"""How many machines `whygpu diff` judges to find a planted change, and how long that takes.

    python -m benchmarks.diff_trials [--noise 200]

The changes are those of tests/differences/test_planted.py: examples of the causes' pages, and
faults planted in a machine that was recorded. To each, `noise` changes of packages that do not
matter, of the kernel, of variables and of free memory are added.
"""

from __future__ import annotations

import argparse
import statistics
import time

from tests.differences.noise import noisy
from tests.differences.test_planted import H200, ON_CPU, PLANTS, compared, examples


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--noise", type=int, default=200)
    noise = parser.parse_args().noise
    pairs = [(item.before, noisy(item.after, i, noise)) for i, item in enumerate(examples())]
    pairs += [
        (H200, noisy(plant(H200), i, noise)._replace(probes=ON_CPU))
        for i, (_, plant) in enumerate(PLANTS)
    ]
    seconds, trials, differences = [], [], []
    for before, after in pairs:
        began = time.perf_counter()
        found = compared(before, after)
        seconds.append(time.perf_counter() - began)
        trials.append(found.trials)
        differences.append(len(found.differences))
    print(f"{len(pairs)} planted changes, {statistics.median(differences):.0f} differences each")
    print(f"trials: median {statistics.median(trials):.0f}, most {max(trials):,}")
    print(f"seconds: median {statistics.median(seconds):.3f}, most {max(seconds):.2f}")
    most = max(range(len(pairs)), key=lambda place: trials[place])
    print(f"trials per second where there were most: {trials[most] / seconds[most]:,.0f}")


if __name__ == "__main__":
    main()
