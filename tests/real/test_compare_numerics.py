"""What rounding explains, on real layers: sound ones stay within it, and faulty ones do not."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import pytest

from tests.comparer.inside import INSIDE
from tests.targets import python_of

ZOO = pathlib.Path(__file__).parent / "compare_zoo.py"
BACKENDS = ("tensorflow", "jax", "torch")


def run(backend: str, *words: str) -> str:
    environ = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(INSIDE)}
    done = subprocess.run(
        [python_of("keras-all"), "-W", "ignore", ZOO, *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By layer, or fault of one, and backend."""
    folder = str(tmp_path_factory.mktemp("zoo"))
    for backend in BACKENDS:
        run(backend, "lane", folder)
    last_line = run("tensorflow", "reference", folder, *BACKENDS).splitlines()[-1]
    found: dict[str, dict[str, Any]] = json.loads(last_line)
    return found


def test_sound_layers_are_within_what_rounding_explains(units: dict[str, dict[str, Any]]) -> None:
    sound = {name: by for name, by in units.items() if "fault" not in name}
    assert len(sound) > 20
    worst = {name: max(each["own"] for each in by.values()) for name, by in sound.items()}
    # Half of it, so that other processors and releases have room.
    assert {name: value for name, value in worst.items() if value > 0.5} == {}


def test_faults_are_beyond_it_on_every_backend(units: dict[str, dict[str, Any]]) -> None:
    faults = {name: by for name, by in units.items() if "fault" in name}
    assert len(faults) > 10
    seen = {
        (name, backend): each["not_finite"] > 0 or each["own"] > 1
        for name, by in faults.items()
        for backend, each in by.items()
    }
    assert [case for case, found in seen.items() if not found] == []


def test_an_overflow_is_not_finite(units: dict[str, dict[str, Any]]) -> None:
    assert all(each["not_finite"] for each in units["dense fault 1"].values())
