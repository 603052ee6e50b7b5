"""What `whygpu run` and `whygpu run --trace` cost a TensorFlow training on the CPU.

    python -m benchmarks.run_overhead [--rounds 5] [--seconds 20] [--json]

The program is a small convolutional network fitted with Keras on made-up images; it is given as
many epochs as fill the time asked for on this machine. Each round runs it bare, under
`whygpu run` and under `whygpu run --trace`, in a different order from round to round. The medians
of whole processes are compared, including start and end, because a user waits for those too. The
result also has the processor time, which a busy machine changes less, and the time of `fit` alone.
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
from typing import Any

from tests.targets import folder

WHYGPU = str(pathlib.Path(sys.executable).with_name("whygpu"))
LIMITS = {"run": "2 % or 0.1 s", "run --trace": "15 %"}

PROGRAM = """
import json, os, sys, time
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
epochs = int(sys.argv[1])
import numpy as np
import keras
keras.utils.set_random_seed(7)
images = np.random.default_rng(7).random((4096, 32, 32, 3), dtype="float32")
labels = np.arange(4096) % 10
model = keras.Sequential([
    keras.layers.Input((32, 32, 3)),
    keras.layers.Conv2D(16, 3, activation="relu"),
    keras.layers.MaxPooling2D(),
    keras.layers.Conv2D(32, 3, activation="relu"),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dropout(0.3),
    keras.layers.Dense(10),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])
began = time.perf_counter()
history = model.fit(images, labels, batch_size=64, epochs=epochs, validation_split=0.1, verbose=0)
fit = time.perf_counter() - began
with open(sys.argv[2], "w") as file:
    json.dump({"fit": fit, "loss": history.history["loss"][-1]}, file)
"""


class Bench:
    """The program, and the ways to run it."""

    def __init__(self, place: pathlib.Path) -> None:
        self._python = folder() / "tensorflow-2.21" / "bin" / "python"
        self._program = place / "train.py"
        self._program.write_text(PROGRAM)
        self._result = place / "result.json"

    def once(self, way: str, epochs: int) -> dict[str, float]:
        """Seconds of the whole process and of fit, and the final loss of the training."""
        argv = [str(self._python), str(self._program), str(epochs), str(self._result)]
        if way != "plain":
            argv = [WHYGPU, *way.split(), "--quiet", "--", *argv]
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "KERAS_BACKEND": "tensorflow"}
        began, cpu_before = time.perf_counter(), _cpu_of_children()
        subprocess.run(argv, env=environ, check=True, capture_output=True, timeout=600)
        whole, cpu = time.perf_counter() - began, _cpu_of_children() - cpu_before
        return {"whole": whole, "cpu": cpu, **json.loads(self._result.read_text())}


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def epochs_for(bench: Bench, seconds: float) -> int:
    """How many epochs fill the time, from one short and one longer training."""
    short, longer = bench.once("plain", 1), bench.once("plain", 4)
    epoch = max((longer["fit"] - short["fit"]) / 3, 0.01)
    return max(round((seconds - short["whole"]) / epoch), 1)


def measure(bench: Bench, rounds: int, epochs: int) -> dict[str, list[dict[str, float]]]:
    ways = ["plain", *LIMITS]
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for number in range(rounds):
        shift = number % len(ways)
        for way in ways[shift:] + ways[:shift]:
            print(f"\rround {number + 1} of {rounds}: {way:12}", end="", file=sys.stderr)
            found[way].append(bench.once(way, epochs))
    print(f"\r{'':40}\r", end="", file=sys.stderr)
    return found


def rows(found: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    def median(way: str, name: str) -> float:
        return statistics.median(run[name] for run in found[way])

    return [
        {
            "way": way,
            "whole_s": round(median(way, "whole"), 3),
            "fit_s": round(median(way, "fit"), 3),
            "range_s": [round(f(run["whole"] for run in runs), 3) for f in (min, max)],
            "cpu_s": round(median(way, "cpu"), 3),
            "whole_ratio": round(median(way, "whole") / median("plain", "whole"), 4),
            "cpu_ratio": round(median(way, "cpu") / median("plain", "cpu"), 4),
            "fit_ratio": round(median(way, "fit") / median("plain", "fit"), 4),
            "added_s": round(median(way, "whole") - median("plain", "whole"), 3),
            "limit": LIMITS.get(way, ""),
            "same_loss": {run["loss"] for run in runs} == {found["plain"][0]["loss"]},
        }
        for way, runs in found.items()
    ]


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(pathlib.Path(place))
        epochs = epochs_for(bench, chosen.seconds)
        table = rows(measure(bench, chosen.rounds, epochs))
    if chosen.json:
        print(json.dumps({"epochs": epochs, "rounds": chosen.rounds, "ways": table}, indent=1))
        return
    print(f"{epochs} epochs, medians of {chosen.rounds} rounds")
    for row in table:
        parts = [
            f"{name} {row[f'{name}_s']:7.2f} s x {row[f'{name}_ratio']:5.3f}"
            for name in ("whole", "cpu", "fit")
        ]
        ending = "" if row["same_loss"] else "  the loss differs"
        print(f"{row['way']:12} {'   '.join(parts)}   {row['limit']}{ending}")


if __name__ == "__main__":
    main()
