"""What rounding explains, on real layers: sound ones stay within it, and faulty ones do not."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.abilities import need
from tests.comparer.inside import INSIDE
from tests.patience import PATIENCE
from tests.targets import python_of

pytestmark = pytest.mark.timeout(900)

ZOO = pathlib.Path(__file__).parent / "compare_zoo.py"
BACKENDS = ("tensorflow", "jax", "torch")
Units = dict[str, dict[str, dict[str, Any]]]
"""By layer and backend."""


def run(backend: str, *words: str) -> str:
    environ = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(INSIDE)}
    done = subprocess.run(
        [python_of("keras-all"), "-W", "ignore", ZOO, *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Units]:
    need("keras-all", "bfloat16")
    need("keras-all", "float16")
    folder = str(tmp_path_factory.mktemp("zoo"))
    with ThreadPoolExecutor(len(BACKENDS)) as pool:
        list(pool.map(lambda backend: run(backend, "lane", folder), BACKENDS))
    last_line = run("tensorflow", "reference", folder, *BACKENDS).splitlines()[-1]
    found: dict[str, Units] = json.loads(last_line)
    return found


def test_sound_layers_are_within_what_rounding_explains(measured: dict[str, Units]) -> None:
    sound = measured["sound"]
    assert len(sound) > 25
    assert all(set(by) == set(BACKENDS) for by in sound.values())
    worst = {name: max(each["own"] for each in by.values()) for name, by in sound.items()}
    # Half of it, so that other processors and releases have room.
    assert {name: value for name, value in worst.items() if value > 0.5} == {}


def test_faults_are_beyond_it_on_every_backend(measured: dict[str, Units]) -> None:
    faulty = measured["faulty"]
    assert len(faulty) > 10
    seen = {
        (name, backend): each["not_finite"] > 0 or each["own"] > 10
        for name, by in faulty.items()
        for backend, each in by.items()
    }
    assert [case for case, found in seen.items() if not found] == []


def test_an_overflow_is_not_finite(measured: dict[str, Units]) -> None:
    overflown = measured["faulty"]["dense-again"]
    assert all(each["not_finite"] for each in overflown.values())
