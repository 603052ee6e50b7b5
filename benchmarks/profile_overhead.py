"""What the sampling of `whygpu run --profile` costs, outside the frameworks' own profilers.

    python -m benchmarks.profile_overhead [--blocks 3000] [torch jax tensorflow keras]
    python -m benchmarks.profile_overhead --device gpu --json rows.jsonl \\
        --python torch=/venvs/torch/bin/python --python tensorflow=/venvs/tf/bin/python
    python -m benchmarks.profile_overhead --tools --python torch=/venvs/tools/bin/python

One process trains all the time. When the sampler has settled, blocks of steps are drawn by lot: in
one half of them one sample is taken, and in the other half none. What a sample costs is the
processor time of the whole process, sampler included, that such a block takes longer. Each block is
short and there are thousands, so that the interval is narrow although other programs disturb both
halves. The hooks that mark the steps are called by themselves, many times.

With --tools, whole runs of one PyTorch program are compared instead: as it is, under whygpu, and
with gpuprof and TraceML if that interpreter has them. Programs whose row is in the file of --json
are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks import machine

BOOTSTRAP = pathlib.Path(__file__).parents[1] / "src/whygpu/launch/bootstrap"
WARM_UP = 60.0
"""Seconds of steps at most, until there are enough samples for the sampler to settle."""
TARGETS = {"torch": "torch", "jax": "jax", "tensorflow": "tensorflow-2.21", "keras": "keras-all"}
FRAMEWORK_OF = {"keras": "tensorflow"}
"""The framework whose interpreter has it."""
LONGEST = 1800.0
STEPS_OF_A_BLOCK = 0.012
"""Seconds of processor time: as many steps as take that long."""
HOOK_CALLS = 20000

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

HOOKS = {
    "torch": "hooks._stepped(optimizer, (), {})",
    "jax": "hooks._executed(train_step)",
    "tensorflow": "around_nothing(train_step)",
    "keras": "around_nothing(train_step); recorder.mark('keras fit')",
}
"""What is called in each step. A batch of Keras is a call of a tf.function, too."""

MEASURE = """
import importlib, json, random, sys, tempfile, _thread, time
sys.path.append({bootstrap!r})
from whygpu_bootstrap.profile import recorder, sampler
recorder.begin(tempfile.mkdtemp())
hooks = importlib.import_module("whygpu_bootstrap.profile.{name}")
hooks.start(module)
taken = recorder._state["sampler"]
began = time.process_time()
while taken.taken < taken._settles_at and time.process_time() - began < {warm_up}:
    step()
finish()
rate = 1 / taken._period()
own, samples = taken._usual

# From here on, the sampler sleeps and takes a sample only when it is told to.
turn = _thread.allocate_lock()
turn.acquire()
waits = [False]

def period(instance):
    waits[0] = True
    turn.acquire()
    waits[0] = False
    return {block} / 4

sampler.Sampler._period = period
while not waits[0]:
    step()
steps, before = 0, time.process_time()
while time.process_time() - before < 2:
    step()
    steps += 1
finish()
usual = max(1, round(steps * {block} / (time.process_time() - before)))

wanted = usual
for _ in range({blocks}):
    sampled = random.random() < 0.5
    before, steps = time.process_time(), 0
    if sampled:
        number = taken.taken
        turn.release()
    # The sampler may be late. The blocks without a sample are as long as the last one with one.
    while steps < (usual if sampled else wanted) or (
        sampled and (taken.taken == number or not waits[0])
    ):
        step()
        steps += 1
    finish()
    if sampled:
        wanted = steps
    print(json.dumps([sampled, steps, time.process_time() - before]), flush=True)

if {name!r} in ("tensorflow", "keras"):
    from whygpu_bootstrap.profile import tensorflow as functions
    around_nothing = functions._marking_call(lambda instance: None)
    train_step = globals().get("train_step") or model.train_function
before = time.process_time()
for _ in range({calls}):
    {hook}
hook = (time.process_time() - before) / {calls}
print(json.dumps([hook, rate, own / samples, 0]), flush=True)
"""


class Cost(NamedTuple):
    """What sampling and the hooks cost, in seconds of processor time."""

    step: float
    sample: float
    error: float
    """Of the cost of a sample: two standard errors."""
    own: float
    """The part of it that the thread of the sampler spends, by its own clock."""
    rate: float
    """Samples a second, once the sampler has settled."""
    hook: float

    def row(self, name: str) -> str:
        share, error = (100 * self.rate * each for each in (self.sample, self.error))
        return (
            f"| {name} | {self.step * 1e3:.2f} ms | {self.sample * 1e6:.0f} us "
            f"(\u00b1 {self.error * 1e6:.0f}), {self.own * 1e6:.0f} us of it in its thread "
            f"| {self.rate:.0f} | {share:+.2f} % (\u00b1 {error:.2f}) "
            f"| {self.hook * 1e6:.1f} us | {100 * self.hook / self.step:+.2f} % |"
        )


def measured(name: str, python: str, options: argparse.Namespace) -> Cost:
    program = f"ON_GPU = {options.device == 'gpu'}\n{STEPS[name]}" + MEASURE.format(
        bootstrap=str(BOOTSTRAP),
        name=name,
        block=STEPS_OF_A_BLOCK,
        blocks=options.blocks,
        warm_up=WARM_UP,
        hook=HOOKS[name],
        calls=HOOK_CALLS,
    )
    lines = [json.loads(line) for line in _output([python, "-c", program]).splitlines() if line]
    return cost([tuple(line) for line in lines if len(line) == 3], *lines[-1][:3])


def cost(blocks: Sequence[tuple[bool, int, float]], hook: float, rate: float, own: float) -> Cost:
    """A block is (a sample was taken, steps, processor time). The slowest twentieth of each kind,
    in which something else happened, is left out."""
    plain = _usual([seconds for sampled, _, seconds in blocks if not sampled])
    more = _usual([seconds for sampled, _, seconds in blocks if sampled])
    error = math.hypot(*(statistics.stdev(each) / len(each) ** 0.5 for each in (plain, more)))
    step = statistics.median(seconds / steps for sampled, steps, seconds in blocks if not sampled)
    return Cost(step, statistics.fmean(more) - statistics.fmean(plain), 2 * error, own, rate, hook)


def _usual(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return ordered[: len(ordered) - len(ordered) // 20]


def _output(words: list[str], **environ: str) -> str:
    everything = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", **environ}
    done = subprocess.run(
        words, env=everything, capture_output=True, text=True, check=True, timeout=LONGEST
    )
    return done.stdout


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
    print(
        "| steps of | a step | one sample | samples a second | sampling | hooks of a step | hooks |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name in options.names:
        if name in done:
            continue
        framework = FRAMEWORK_OF.get(name, name)
        problem = machine.why_unusable(python_for(name), framework, options.device)
        try:
            found = None if problem else measured(name, python_for(name), options)
        except (subprocess.SubprocessError, statistics.StatisticsError) as error:
            found, problem = None, f"{name}: {error}"
        if found is None:
            print(f"left out: {problem}", file=sys.stderr, flush=True)
            continue
        print(found.row(name), flush=True)
        if options.json:
            _append(options.json, {"name": name, "device": options.device, **found._asdict()})


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
    parser.add_argument("--blocks", type=int, default=3000)
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
