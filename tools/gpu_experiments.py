"""What is still to be measured on a GPU, the most informative first.

An experiment is a function of the machine and of the rows that were measured before; its result is
a row of figures. tools/record_gpu.py carries them out.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import Interpreters
from tests.hardware.memory_programs import GUARDED_FIT, GUARDED_LOOP, MEASURED, MEASURED_TORCH
from tests.hardware.tensorflow_programs import PROGRAMS, Program
from tools.gpu_runs import Ended, run, scrubbed
from whygpu.api.logs import explain_text

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
LOGS = ROOT / "tests" / "logs"
_RECORDED = "h200-tensorflow-"
MIB, GIB = 1 << 20, 1 << 30

Row = dict[str, Any]


class Machine(NamedTuple):
    """Where the experiments run."""

    interpreters: Interpreters
    """Those with the frameworks."""
    folder: Path
    """For logs."""
    gpu_bytes: int | None
    """Memory of the GPU; None to try the experiments on the CPU."""


class NotYet(Exception):
    """The experiment needs the row of another one, or a package."""


class Experiment(NamedTuple):
    name: str
    """kind/subject."""
    carry_out: Callable[[Machine, Mapping[str, Row], float], Row]
    """With the rows of earlier experiments, by name, and the seconds that it may take."""
    seconds: float
    """What it may take at most."""
    beside: str = ""
    """Experiments with the same word may run side by side, because each limits its memory."""


class Search(NamedTuple):
    """A model of benchmarks/find_models.py, and the limits of memory to search under."""

    model: str
    backend: str
    gpu_limit: int
    cpu_limit: int

    @property
    def name(self) -> str:
        return f"{self.model}-{self.backend}"

    def limit(self, machine: Machine) -> int:
        return self.gpu_limit if machine.gpu_bytes else self.cpu_limit

    def python(self, machine: Machine) -> str:
        return machine.interpreters.of(self.backend)


SEARCHES = (
    Search("torch_conv", "torch", 7 * GIB, 768 * MIB),
    Search("torch_transformer", "torch", 7 * GIB, 768 * MIB),
    Search("keras_conv", "tensorflow", 3 * GIB, 1152 * MIB),
    Search("keras_conv", "jax", 7 * GIB, 768 * MIB),
    Search("jax_conv", "jax", 7 * GIB, 640 * MIB),
    Search("keras_transformer", "jax", 7 * GIB, 768 * MIB),
    Search("jax_attention", "jax", 7 * GIB, 640 * MIB),
    Search("keras_transformer", "tensorflow", 3 * GIB, 1152 * MIB),
    Search("tensorflow_conv", "tensorflow", 3 * GIB, 1152 * MIB),
)
GUARDS = {"tf-function": (GUARDED_LOOP, 1536, 1024), "keras-fit": (GUARDED_FIT, 1536, 4096)}
"""The program, its limit in MiB, and its batch."""
TO_ESTIMATE = dict(
    [
        *(("attention", 64), ("vit", 64), ("resnet", 128), ("unet", 32), ("densenet", 64)),
        *(("inception", 256), ("separable", 128), ("autoencoder", 256), ("wavenet", 64)),
        *(("two_convolutions", 256), ("vgg", 64), ("mobile", 128), ("odd_channels", 256)),
        *(("bottleneck", 128), ("gpt", 64)),
    ]
)
"""Models of tests/estimates/small_models.py that were not measured in training with XLA, and their
batches."""
INFERRED = tuple(TO_ESTIMATE)[:9]
"""Those that were not measured at inference either."""
UNSEEN = {
    "keypoints": 256,
    "squeeze": 256,
    "two_towers": 2048,
    "crossing": 128,
    "encoder": 64,
    "captions": 256,
    "tabular": 8192,
    "dilated": 256,
    "torch_keypoints": 512,
    "torch_dilated": 256,
    "torch_patches": 64,
    "torch_decoder": 32,
    "torch_captions": 256,
    "torch_squeeze": 256,
    "torch_transposed": 512,
    "torch_dropped": 512,
}
"""Models of tests/estimates/unseen_models.py, and their batches."""
ACCELERATE_STARTS = 4096
"""Up to twice what fits: accelerate's finder only goes down."""
FIND_WITH_ACCELERATE = """
import json, sys, time
import torch
from accelerate.utils import find_executable_batch_size
import find_models
import find_truth

limit = int(sys.argv[3]) if len(sys.argv) > 3 else None
if limit is not None:
    find_truth.limit_torch(limit)
tried = []

@find_executable_batch_size(starting_batch_size=int(sys.argv[2]))
def train(batch_size):
    tried.append(batch_size)
    net, example = getattr(find_models, sys.argv[1])()
    find_truth.torch_steps(net, example, batch_size, "cpu" if limit is None else "cuda")
    return batch_size

began = time.monotonic()
print(json.dumps({"batch": train(), "trials": len(tried), "search": time.monotonic() - began}))
"""
ESTIMATE_LIMIT = 6500
"""MiB, as in tests/estimates/h200.json."""
SEARCH_SECONDS, TRUTH_SECONDS, MEASURE_SECONDS, PROGRAM_SECONDS = 300.0, 400.0, 120.0, 60.0
"""On an H200 a program took 7 to 20 s, and a search up to 170 s without an end. A program that
waits for memory is ended after its seconds, and its log is kept."""
SLOW = ("limit-too-small", "batch-too-large")
"""Programs in which TensorFlow may wait 10 s, again and again: they come last."""
FINE = 100
"""The truth is found to one part in this many."""
_TRIED_BATCH = 4
"""Of guards and of models to estimate, where they are only tried on the CPU."""


def experiments() -> Iterator[Experiment]:
    programs = {
        each.name: Experiment(f"program/{each.name}", partial(_program, each), PROGRAM_SECONDS)
        for each in PROGRAMS
    }
    recorded = {file.stem.removeprefix(_RECORDED) for file in LOGS.glob(f"{_RECORDED}*.log")}
    for each in SEARCHES:
        if each.backend == "torch":
            accelerate = partial(_accelerate, each)
            yield Experiment(f"accelerate/{each.name}", accelerate, MEASURE_SECONDS)
        # Alone, where its seconds are compared with those of accelerate.
        beside = "" if each.backend == "torch" else "limited"
        yield Experiment(f"find/{each.name}", partial(_find, each), SEARCH_SECONDS, beside)
    for name in GUARDS:
        yield Experiment(f"guard/{name}", partial(_guard, name), MEASURE_SECONDS, "limited")
    for mode, models in (("train", tuple(TO_ESTIMATE)), ("infer", INFERRED)):
        for file, batches in (("unseen_models", UNSEEN), ("small_models", _only(models))):
            for model, batch in batches.items():
                measure = partial(_estimate, file, model, batch, mode)
                name = f"estimate/{model}-{mode}"
                yield Experiment(name, measure, MEASURE_SECONDS, "limited")
    missing = [name for name in programs if name not in recorded]
    yield from (programs[name] for name in sorted(missing, key=lambda name: name in SLOW))
    for each in SEARCHES:
        yield Experiment(f"truth/{each.name}", partial(_truth, each), TRUTH_SECONDS, "truth")
    yield from (programs[name] for name in programs if name in recorded)


def _program(program: Program, machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
    """Run a program as a user does, without whygpu, and keep its log."""
    python = machine.interpreters.of("tensorflow")
    ended = run_program(program, python, seconds)
    log = scrubbed(ended.output, python)
    (machine.folder / f"{program.name}.log").write_text(log, encoding="utf-8")
    answer = explain_text(log)
    return {
        **_end(ended),
        "claim": program.claim,
        "as_expected": bool(re.search(program.prints, log)) and bool(ended.code) == program.fails,
        "explained": [finding.cause for finding in answer.root_causes] or [answer.verdict],
        "explained_as": [finding.message for finding in answer.root_causes],
        "cause_expected": program.cause,
    }


LACKING = re.compile(r"^ModuleNotFoundError: No module named '(\w{1,40})", re.MULTILINE)
PACKAGES = ("tensorflow", "keras", "jax", "torch", "accelerate")


def _run(command: Sequence[str], **options: Any) -> Ended:
    """If a package is not installed, nothing was measured: the next call tries again."""
    ended = run(command, **options)
    lacking = LACKING.search(f"{ended.errors}\n{ended.output}") if ended.code else None
    if lacking is not None and lacking[1] in PACKAGES:
        raise NotYet(f"the package {lacking[1]} in {command[0]}")
    return ended


def run_program(program: Program, python: str, seconds: float = MEASURE_SECONDS) -> Ended:
    command = [python, "-u", "-c", program.code]
    return _run(command, seconds=seconds, environ=program.environ, together=True)


def _find(search: Search, machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
    """`whygpu memory find`, as a user types it."""
    command = [sys.executable, "-m", "whygpu", "memory", "find", "--json", "--no-cache"]
    command += [f"{BENCHMARKS / 'find_models.py'}:{search.model}"]
    command += ["--python", search.python(machine)]
    command += ["--limit", f"{search.limit(machine)}B"]
    command += [] if machine.gpu_bytes else ["--device", "cpu"]
    ended = _run(command, seconds=seconds, environ=_environ(search.backend))
    found = _json(ended.output)
    return {
        **_end(ended),
        "limit": search.limit(machine),
        **{name: found.get(name) for name in ("batch", "outcome", "smallest_not", "device")},
        "trials": [
            {name: trial[name] for name in ("batch", "outcome", "alone", "seconds", "how")}
            for trial in found.get("trials", ())
        ],
        "notes": [scrubbed(note, search.python(machine)) for note in found.get("notes", ())],
    }


def _accelerate(search: Search, machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
    """accelerate's finder on the same model under the same limit; its seconds are from the start
    of the command to its end, as those of `whygpu memory find` are."""
    python = search.python(machine)
    command = [python, "-c", FIND_WITH_ACCELERATE, search.model, str(ACCELERATE_STARTS)]
    command += [str(search.limit(machine))] if machine.gpu_bytes else []
    ended = _run(command, seconds=seconds, environ=_environ(search.backend))
    why = "" if ended.code == 0 else scrubbed(ended.errors[-500:], python)
    return {**_end(ended), "limit": search.limit(machine), **_json(ended.output), "how": why}


def _truth(search: Search, machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
    """The largest batch that plain processes run, around what the search found."""
    found = rows.get(f"find/{search.name}", {})
    if not found.get("batch"):
        raise NotYet(f"find/{search.name}")
    low = int(found["batch"])
    high = int(found.get("smallest_not") or low + max(low // 25, 1))
    plain = _Plain(search, machine, seconds)
    plain.remember(rows.get(f"truth/{search.name}", {}).get("processes", ()))
    while plain.has_time and not plain.runs(low) and low > 1:
        low, high = max(low - max(low // 25, 1), 1), low
    while plain.has_time and plain.runs(high):
        low, high = high, high + max(high // 25, 1)
    while plain.has_time and high - low > max(low // FINE, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if plain.runs(middle) else (low, middle)
    return {
        "code": 0 if plain.has_time else None,
        "seconds": round(plain.spent, 1),
        "limit": search.limit(machine),
        "runs": low if plain.known.get(low) else None,
        "does_not": high if plain.known.get(high) is False else None,
        "found": found["batch"],
        "processes": plain.seen,
    }


class _Plain:
    """Processes without whygpu, one for each batch."""

    def __init__(self, search: Search, machine: Machine, seconds: float) -> None:
        self._search, self._machine, self._seconds = search, machine, seconds
        self.spent = 0.0
        self.known: dict[int, bool] = {}
        self.seen: list[Row] = []

    @property
    def has_time(self) -> bool:
        return self.spent < self._seconds

    def remember(self, earlier: Iterable[Row]) -> None:
        """What an earlier call found before its time was over."""
        self.seen = [each for each in earlier if each["code"] is not None]
        self.known = {each["batch"]: each["fits"] for each in self.seen}

    def runs(self, batch: int) -> bool:
        if batch in self.known:
            return self.known[batch]
        limit = self._search.limit(self._machine)
        python = self._search.python(self._machine)
        command = [python, str(BENCHMARKS / "find_truth.py")]
        command += [self._search.model, str(batch)]
        environ = _environ(self._search.backend)
        if self._machine.gpu_bytes:
            command.append(str(limit))
            environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{limit / self._machine.gpu_bytes:.4f}"
        ended = _run(command, seconds=self._seconds - self.spent, environ=environ)
        self.spent += ended.seconds
        fits = ended.code == 0
        if fits and not self._machine.gpu_bytes:
            fits = int(ended.output.split()[-1]) <= limit
        last = [line for line in ended.errors.splitlines() if line.strip()][-1:]
        how = "" if ended.code == 0 else scrubbed("".join(last), python)[:300]
        self.seen.append({"batch": batch, "fits": fits, "code": ended.code, "how": how})
        if ended.code is not None:
            self.known[batch] = fits
        return fits


def _guard(name: str, machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
    code, limit, batch = GUARDS[name]
    words = (limit, batch if machine.gpu_bytes else _TRIED_BATCH)
    return {**_printed(code, words, machine, seconds), "limit_mib": limit, "batch": words[1]}


def _only(models: Iterable[str]) -> dict[str, int]:
    return {model: TO_ESTIMATE[model] for model in models}


def _estimate(
    file: str,
    model: str,
    batch: int,
    mode: str,
    machine: Machine,
    rows: Mapping[str, Row],
    seconds: float,
) -> Row:
    tried = batch if machine.gpu_bytes else _TRIED_BATCH
    words: tuple[object, ...] = (file, model, tried, mode)
    framework = "torch" if model.startswith("torch_") else "tensorflow"
    if framework == "torch":
        found = _printed(MEASURED_TORCH, words, machine, seconds, framework)
    else:
        found = _printed(MEASURED, (ESTIMATE_LIMIT, *words), machine, seconds)
    about = {"model": model, "file": f"{file}.py", "framework": framework, "mode": mode}
    nothing = {"mixed": False, "reserved_bytes": None, "process_bytes": None}
    return {**found, "measured": {**about, "batch": tried, **nothing, **found["printed"]}}


def _printed(
    code: str,
    words: Sequence[object],
    machine: Machine,
    seconds: float,
    framework: str = "tensorflow",
) -> Row:
    """What one of our programs prints: a line of JSON."""
    environ = _environ(framework)
    environ["PYTHONPATH"] = f"{ROOT / 'tests' / 'estimates'}:{ROOT / 'src'}"
    python = machine.interpreters.of(framework)
    command = [python, "-c", code, *map(str, words)]
    ended = _run(command, seconds=seconds, environ=environ)
    return {
        **_end(ended),
        "printed": _json(ended.output),
        "errors": "" if ended.code == 0 else scrubbed(ended.errors[-1500:], python),
    }


def _environ(backend: str) -> dict[str, str]:
    return {"KERAS_BACKEND": backend, "PYTHONPATH": str(BENCHMARKS)}


def _end(ended: Ended) -> Row:
    return {"code": ended.code, "seconds": round(ended.seconds, 1)}


def _json(output: str) -> Row:
    """The JSON at the end of an output: all of it, or its last line; {} if there is none."""
    for text in (output, *output.splitlines()[-1:]):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}
