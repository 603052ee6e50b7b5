"""Keras in the process of its backend: when, and that nothing is told differently because of it."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cases import each
from tests.kit import machine
from tests.patience import stopped_in_time
from whygpu.model.observed import Known
from whygpu.model.probe import Probe, ProbeName
from whygpu.probes.runner import ProgressEvent, run_probes
from whygpu.probes.shared_process import host_of_keras

HEAD = """\
import os, signal, sys, time

def probe(report, sums):
    report.fact("pid", os.getpid())
    report.stage("import")
    alone = "shared" not in os.environ
"""
SOUND = """
report.version("1.0")
report.devices([("cpu", "")])
report.operate("matmul", "cpu", lambda: ("cpu", True))
os.environ["shared"] = "with the host"
"""
KERAS = """
report.fact("backend", "tensorflow")
report.devices([("cpu", "")])
report.operate("training-step", "default", lambda: ("cpu", True))
"""


class Outcome(NamedTuple):
    tensorflow: Probe
    keras: Probe
    events: list[ProgressEvent]

    @property
    def shared(self) -> bool:
        return self.tensorflow.fact("pid") == self.keras.fact("pid")


Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs these bodies as the probes of TensorFlow and of Keras, in one process if possible."""

    def run(
        tensorflow: str = SOUND,
        keras: str = KERAS,
        *,
        timeout: float = 20.0,
        memory_available: int | None = None,
    ) -> Outcome:
        scripts: dict[ProbeName, Path] = {}
        bodies: dict[ProbeName, str] = {"tensorflow": tensorflow, "keras": keras}
        for name, body in bodies.items():
            scripts[name] = tmp_path / f"{name}.py"
            scripts[name].write_text(HEAD + textwrap.indent(textwrap.dedent(body), "    "))
        events: list[ProgressEvent] = []
        probes = run_probes(
            sys.executable,
            ("tensorflow", "keras"),
            timeout=timeout,
            environ=os.environ,
            memory_available=memory_available,
            scripts=scripts,
            on_progress=events.append,
            keras_host="tensorflow",
        )
        return Outcome(probes[0], probes[1], events)

    return run


def test_two_sound_probes_share_a_process(run: Run) -> None:
    outcome = run()
    assert outcome.shared
    assert [probe.ended for probe in outcome[:2]] == ["finished", "finished"]
    assert (outcome.tensorflow.stage, outcome.keras.stage) == (
        "matmul cpu",
        "training-step default",
    )
    assert [each.operation for each in outcome.tensorflow.operations] == ["matmul"]
    assert [each.operation for each in outcome.keras.operations] == ["training-step"]
    assert isinstance(outcome.keras.devices, Known)
    assert outcome.keras.devices.source == "keras probe"
    assert [(event.probe, event.kind) for event in outcome.events if event.kind != "stage"] == [
        ("tensorflow", "started"),
        ("tensorflow", "ended"),
        ("keras", "started"),
        ("keras", "ended"),
    ]


def test_each_log_holds_what_the_probe_would_print_alone(run: Run) -> None:
    """Alone, Keras imports its backend, and so prints what that prints."""
    outcome = run(SOUND + 'os.write(2, b"TensorFlow\\n" * 3)', 'os.write(1, b"Keras\\n")\n' + KERAS)
    assert outcome.shared
    assert outcome.tensorflow.log == ("TensorFlow",) * 3
    assert outcome.keras.log == ("TensorFlow", "TensorFlow", "TensorFlow", "Keras")


def test_the_variables_of_keras_are_not_those_of_its_host(run: Run) -> None:
    tell = 'report.fact("jax", os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE"))\n'
    outcome = run(tell + SOUND, tell + KERAS)
    assert outcome.shared
    assert (outcome.tensorflow.fact("jax"), outcome.keras.fact("jax")) == ("None", "false")


CRASHES = {
    "a signal": ("os.abort()", "signal", "SIGABRT"),
    "an exit": ("os._exit(3)", "exit", "exit code 3"),
    "an exception": ('raise ImportError("no")', "exception", "ImportError: no"),
}


@each("crash", CRASHES)
def test_a_crash_of_keras_leaves_its_host_as_it_was(run: Run, crash: str) -> None:
    body, ended, how = CRASHES[crash]
    outcome = run(keras=f'report.version("3.0")\nreport.stage("devices")\n{body}')
    assert outcome.tensorflow.ended == "finished"
    assert outcome.tensorflow.fact("after the work") is None
    assert (outcome.keras.ended, outcome.keras.how, outcome.keras.stage) == (ended, how, "devices")
    assert outcome.keras.version == Known("3.0", "keras probe")
    assert not outcome.shared, "what failed is told as it fails alone"


@each(
    "body",
    [
        "os.abort()",
        "raise ImportError('partially initialized module')",
        "time.sleep(60)",
        KERAS.replace("tensorflow", "torch"),
        KERAS.replace("True", "False"),
        KERAS.replace('("cpu", True)', "1 / 0"),
        KERAS + "report.unknown_devices('why')",
    ],
)
def test_what_keras_does_only_beside_its_host_does_not_count(run: Run, body: str) -> None:
    alone, beside = (textwrap.indent(text, "    ") for text in (KERAS, body))
    outcome = run(keras=f"if alone:\n{alone}\nelse:\n{beside}", timeout=20.0)
    assert not outcome.shared
    assert (outcome.tensorflow.ended, outcome.keras.ended) == ("finished", "finished")
    assert outcome.keras.fact("backend") == "tensorflow"
    assert [each.correct for each in outcome.keras.operations] == [Known(True, "keras probe")]


@each(
    ("body", "ended"),
    [
        ("os.abort()", "signal"),
        ('raise ImportError("no")', "exception"),
        ("sys.exit(0)", "exit"),
        (SOUND + 'report.operate("matmul", "cpu", lambda: ("cpu", False))', "finished"),
        (SOUND + 'report.operate("matmul", "cpu", lambda: 1 / 0)', "finished"),
        (SOUND + 'report.unknown_devices("why")', "finished"),
        ("pass", "finished"),
    ],
)
def test_keras_does_not_share_with_a_host_that_is_not_sound(
    run: Run, body: str, ended: str
) -> None:
    outcome = run(tensorflow=body)
    assert (outcome.tensorflow.ended, outcome.keras.ended) == (ended, "finished")
    assert not outcome.shared


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_keras_does_not_wait_for_a_host_that_hangs(run: Run) -> None:
    outcome = run(tensorflow="time.sleep(600)", timeout=10.0, memory_available=10**12)
    assert (outcome.tensorflow.ended, outcome.keras.ended) == ("timed-out", "finished")
    order = [(event.probe, event.kind) for event in outcome.events]
    assert order.index(("keras", "ended")) < order.index(("tensorflow", "ended"))


def test_a_host_that_was_slow_exits_after_its_own_probe(run: Run) -> None:
    outcome, _ = stopped_in_time(
        lambda limit: run(tensorflow=f"time.sleep({0.4 * limit})" + SOUND, timeout=limit),
        lambda outcome: outcome.tensorflow.ended == outcome.keras.ended == "finished",
    )
    assert (outcome.tensorflow.ended, outcome.keras.ended) == ("finished", "finished")
    assert not outcome.shared


def test_a_keras_that_hangs_has_the_whole_time_limit(run: Run) -> None:
    outcome, limit = stopped_in_time(
        lambda limit: run(keras='report.stage("devices"); time.sleep(600)', timeout=limit),
        lambda outcome: outcome.keras.stage == "devices" and outcome.tensorflow.ended == "finished",
    )
    assert (outcome.keras.ended, outcome.keras.how, outcome.keras.stage) == (
        "timed-out",
        f"{limit:g} s",
        "devices",
    )
    assert outcome.tensorflow.ended == "finished"


def test_memory_that_keras_takes_is_not_held_against_its_host(run: Run) -> None:
    outcome = run(keras="held = bytearray(300 << 20); time.sleep(20)", memory_available=400 << 20)
    assert (outcome.tensorflow.ended, outcome.keras.ended) == ("finished", "over-limit")


def test_a_crash_at_exit_is_noted_for_both(run: Run) -> None:
    at_exit = "import atexit\natexit.register(os.kill, os.getpid(), signal.SIGSEGV)\n"
    outcome = run(at_exit + SOUND)
    assert outcome.shared
    for probe in outcome[:2]:
        assert (probe.ended, probe.fact("after the work")) == ("finished", "SIGSEGV")


def test_an_interpreter_that_cannot_be_started_is_told_of_both(tmp_path: Path) -> None:
    probes = run_probes(
        str(tmp_path / "python"),
        ("tensorflow", "keras"),
        environ=os.environ,
        memory_available=None,
        keras_host="tensorflow",
    )
    assert [(probe.name, probe.ended) for probe in probes] == [
        ("tensorflow", "not-started"),
        ("keras", "not-started"),
    ]


CONFLICT = '[[target.conflicts]]\npackage = "{}"\nrequirement = "{}"\nfound = "1.0"'


@each(
    ("change", "host"),
    [
        ("", "tensorflow"),
        ('[target.frameworks.keras.keras]\nbackend = "jax"', "jax"),
        ('[target.frameworks.keras.keras]\nbackend = "torch"', "torch"),
        ('[target.frameworks.keras.keras]\nbackend = "numpy"', None),
        ('[target.frameworks.keras.keras]\nbackend = {unknown = "permission denied"}', None),
        (CONFLICT.format("tensorflow", "keras>=3.10"), None),
        (CONFLICT.format("keras", "numpy>=2"), None),
        (CONFLICT.format("pandas", "numpy>=2"), "tensorflow"),
        ('[target.conflicts]\nunknown = "permission denied"', None),
        ('[system.cpu]\narchitecture = "aarch64"', None),
        ("[target]\nframeworks = {absent = 'x'}", None),
    ],
)
def test_keras_shares_the_process_of_a_backend_that_fits_it(
    change: str, host: ProbeName | None
) -> None:
    assert host_of_keras(machine(change)) == host
