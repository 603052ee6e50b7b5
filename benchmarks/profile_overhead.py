"""What the sampling of `whygpu run --profile` costs, outside the frameworks' own profilers.

    python -m benchmarks.profile_overhead [--pairs 150] [--seconds 0.2] [torch jax tensorflow keras]
    python -m benchmarks.profile_overhead --device gpu --json rows.jsonl \\
        --python torch=/venvs/torch/bin/python --python tensorflow=/venvs/tf/bin/python
    python -m benchmarks.profile_overhead --tools --python torch=/venvs/tools/bin/python

One process trains all the time. When the sampler has settled, sampling waits and goes on in turns,
and each stretch with it is compared with the one before: so other work on the machine disturbs both
alike. The hooks that mark the steps work throughout. The processor time of the whole process,
sampler included, is compared as well, because it depends less on other programs.

With --tools, whole runs of one PyTorch program are compared instead: as it is, under whygpu, and
with gpuprof and TraceML if that interpreter has them. Programs whose row is in the file of --json
are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks import machine

BOOTSTRAP = pathlib.Path(__file__).parents[1] / "src/whygpu/launch/bootstrap"
WARM_UP = 60.0
"""Seconds at most, until there are enough samples for the sampler to settle."""
TARGETS = {"torch": "torch", "jax": "jax", "tensorflow": "tensorflow-2.21", "keras": "keras-all"}
FRAMEWORK_OF = {"keras": "tensorflow"}
"""The framework whose interpreter has it."""
LONGEST = 300.0

STEPS = {
    "torch": """
import torch as module
module.set_num_threads(1)
device = "cuda" if ON_GPU else "cpu"
model = module.nn.Sequential(module.nn.Linear(256, 512), module.nn.ReLU(), module.nn.Linear(512, 1))
model.to(device)
optimizer = module.optim.SGD(model.parameters(), lr=0.01)
x, y = module.rand(256, 256, device=device), module.rand(256, 1, device=device)

def step():
    optimizer.zero_grad()
    module.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

def finish():
    if ON_GPU:
        module.cuda.synchronize()
""",
    "jax": """
import jax as module
import jax.numpy as jnp
w, x = jnp.ones((256, 256)) / 256, jnp.ones((512, 256))

@module.jit
def train_step(w, x):
    return w - 0.1 * module.grad(lambda w: jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2))(w)

def step():
    global w
    w = train_step(w, x)

def finish():
    w.block_until_ready()
""",
    "tensorflow": """
import tensorflow as module
weights = module.Variable(module.ones((256, 256)) / 256)
x = module.ones((512, 256))

@module.function
def train_step(x):
    with module.GradientTape() as tape:
        loss = module.reduce_mean(module.tanh(module.tanh(x @ weights) @ weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss

def step():
    train_step(x)

def finish():
    weights.numpy()
""",
    "keras": """
import keras as module
import numpy as np
model = module.Sequential([module.Input((256,)), module.layers.Dense(512), module.layers.Dense(1)])
model.compile("sgd", "mse")
x, y = np.ones((256, 256), "float32"), np.ones((256, 1), "float32")

def step():
    model.train_on_batch(x, y)

def finish():
    pass
""",
}

MEASURE = """
import importlib, json, sys, tempfile, threading, time
sys.path.append({bootstrap!r})
from whygpu_bootstrap.profile import recorder, sampler
sampling = threading.Event()
period = sampler.Sampler._period

def wait_for_turn(instance):
    sampling.wait()
    return period(instance)

sampler.Sampler._period = wait_for_turn
sampling.set()
usual = sys.getswitchinterval()
recorder.begin(tempfile.mkdtemp())
importlib.import_module("whygpu_bootstrap.profile.{name}").start(module)
began = time.perf_counter()
taken = recorder._state["sampler"]
while taken.taken < taken._settles_at and time.perf_counter() - began < {warm_up}:
    step()

def stretch():
    count, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < {seconds}:
        for _ in range(5):
            step()
        finish()
        count += 5
    return [(time.perf_counter() - wall) / count, (time.process_time() - cpu) / count]

for _ in range({pairs}):
    sampling.clear()
    sys.setswitchinterval(usual)
    off = stretch()
    sampling.set()
    sys.setswitchinterval(sampler.SWITCH_INTERVAL)
    on = stretch()
    print(json.dumps([off, on]), flush=True)
"""


def measured(name: str, python: str, options: argparse.Namespace) -> list[Any]:
    """[[seconds of a step, its processor time] without, the same with sampling] of each pair."""
    program = f"ON_GPU = {options.device == 'gpu'}\n{STEPS[name]}" + MEASURE.format(
        bootstrap=str(BOOTSTRAP),
        name=name,
        seconds=options.seconds,
        pairs=options.pairs,
        warm_up=WARM_UP,
    )
    output = _output([python, "-c", program])
    return [json.loads(line) for line in output.splitlines() if line.startswith("[[")]


def _output(words: list[str], **environ: str) -> str:
    everything = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", **environ}
    done = subprocess.run(
        words, env=everything, capture_output=True, text=True, check=True, timeout=LONGEST
    )
    return done.stdout


def row(name: str, pairs: list[Any]) -> str:
    ratios = [[on[part] / off[part] for off, on in pairs] for part in (0, 1)]
    texts = []
    for each in ratios:
        low, middle, high = statistics.quantiles(each, n=4)
        texts.append(
            f"{100 * (middle - 1):+.1f} % ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})"
        )
    step = statistics.median(off[0] for off, _ in pairs)
    return f"| {name} | {step * 1e3:.1f} ms | {texts[0]} | {texts[1]} |"


PROGRAM = """
import contextlib, json, os, time
import torch
TOOL, ON_GPU = os.environ["TOOL"], bool(os.environ["ON_GPU"])
STEPS = int(os.environ["STEPS"])
if TOOL == "traceml":
    import traceml_ai as traceml
    traceml.init(mode="auto")
torch.manual_seed(0)
torch.set_num_threads(1)
device = "cuda" if ON_GPU else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.rand(64 * STEPS, 256), torch.rand(64 * STEPS, 1))
loader = torch.utils.data.DataLoader(data, batch_size=64)

def train():
    for step, (x, y) in enumerate(loader):
        with traceml.trace_step(model) if TOOL == "traceml" else contextlib.nullcontext():
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
        if step == STEPS // 5:
            loss.item()
            began = time.perf_counter(), time.process_time()
    loss.item()
    steps = STEPS - STEPS // 5 - 1
    print()
    print("measured", json.dumps([(time.perf_counter() - began[0]) / steps,
                                  (time.process_time() - began[1]) / steps]), flush=True)

if TOOL == "gpuprof":
    import gpuprof
    with gpuprof.profile("overhead"):
        train()
else:
    train()
"""
"""A step of about the length that makes tools visible."""


def _commands(python: str, program: str, device: str) -> dict[str, list[str]]:
    whygpu = [sys.executable, "-I", "-m", "whygpu", "run", "--no-repair", "--quiet"]
    return {
        "nothing": [python, program],
        "whygpu run --profile": [*whygpu, "--device", device, "--profile", "--", python, program],
        "gpuprof": [python, program],
        "traceml": [python, "-m", "traceml_ai.launcher.cli", "run", program],
    }


def tool_runs(python: str, options: argparse.Namespace) -> dict[str, list[list[float]]]:
    """[seconds of a step, its processor time] of each round, by tool."""
    found: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "train.py"
        program.write_text(PROGRAM)
        os.chdir(folder)
        for _ in range(options.rounds):
            for tool, words in _commands(python, str(program), options.device).items():
                try:
                    output = _output(
                        words,
                        TOOL=tool,
                        ON_GPU="1" if options.device == "gpu" else "",
                        STEPS=str(options.steps),
                    )
                except (subprocess.SubprocessError, OSError) as error:
                    print(f"{tool}: {error}", file=sys.stderr, flush=True)
                    continue
                for line in output.splitlines():
                    if line.startswith("measured "):
                        found.setdefault(tool, []).append(json.loads(line.partition(" ")[2]))
    return found


def tool_row(tool: str, runs: list[list[float]], plain: list[list[float]]) -> str:
    """By the quickest run of each: other work on the machine only makes them slower."""
    best = [min(run[part] for run in runs) for part in (0, 1)]
    bare = [min(run[part] for run in plain) for part in (0, 1)]
    more = [
        f"{100 * (with_it / without - 1):+.0f} %"
        for with_it, without in zip(best, bare, strict=True)
    ]
    return f"| {tool} | {best[0] * 1e3:.2f} ms | {more[0]} | {more[1]} |"


def compare_tools(options: argparse.Namespace, python: str) -> None:
    runs = tool_runs(python, options)
    print("| with | a step | more time | more processor time |")
    print("| --- | ---: | ---: | ---: |")
    for tool, measured_runs in runs.items():
        if "nothing" in runs:
            print(tool_row(tool, measured_runs, runs["nothing"]), flush=True)
    if options.json:
        _append(options.json, {"tools": runs, "device": options.device})


def compare_sampling(options: argparse.Namespace, python_for: Callable[[str], str]) -> None:
    done = _names_in(options.json, options.device)
    print("| steps of | a step | time: median (quartiles) | processor time |")
    print("| --- | ---: | ---: | ---: |", flush=True)
    for name in options.names:
        if name in done:
            continue
        framework = FRAMEWORK_OF.get(name, name)
        problem = machine.why_unusable(python_for(name), framework, options.device)
        try:
            pairs = [] if problem else measured(name, python_for(name), options)
        except subprocess.SubprocessError as error:
            pairs, problem = [], f"{name}: {error}"
        if len(pairs) < 2:
            print(f"left out: {problem or name}", file=sys.stderr, flush=True)
            continue
        print(row(name, pairs), flush=True)
        if options.json:
            _append(options.json, {"name": name, "device": options.device, "pairs": pairs})


def _append(path: pathlib.Path, found: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")


def _names_in(path: pathlib.Path | None, device: str) -> set[str]:
    if path is None or not path.exists():
        return set()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {each["name"] for each in rows if "name" in each and each["device"] == device}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(STEPS), help="default: all")
    parser.add_argument("--pairs", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each stretch")
    parser.add_argument("--tools", action="store_true", help="compare whole runs with other tools")
    parser.add_argument("--rounds", type=int, default=3, help="of --tools")
    parser.add_argument("--steps", type=int, default=3000, help="of --tools")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--python", action="append", default=[], metavar="[FRAMEWORK=]PATH")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="append each row to it")
    options = parser.parse_args()
    try:
        options.interpreters = machine.interpreters(options.python)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    return options


def main() -> None:
    options = parsed()

    def python_for(name: str) -> str:
        """The one that was given, or that of the framework environments; those have no GPU."""
        given: str = options.interpreters.of(FRAMEWORK_OF.get(name, name))
        if given or options.device == "gpu":
            return given
        from tests.targets import folder

        return str(folder().absolute() / TARGETS[name] / "bin" / "python")

    with machine.alone(options.device):
        if options.tools:
            compare_tools(options, python_for("torch"))
        else:
            compare_sampling(options, python_for)


if __name__ == "__main__":
    try:
        main()
    except machine.NotAlone as problem:
        sys.exit(str(problem))
