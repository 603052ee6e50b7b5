"""Model files of real Keras releases that hold code: none of it is executed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.targets import python_of

MAKE = """
import sys
import keras
marker, *paths = sys.argv[1:]
write = lambda x: (open("MARKER", "w").write("executed"), x)[1]
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Lambda(write)])
for path in paths:
    model.save(path)
"""


@pytest.mark.parametrize("verb", [["memory", "estimate"], ["compare"]], ids=" ".join)
def test_a_lambda_in_a_file_is_not_executed(verb: list[str], tmp_path: Path) -> None:
    python = python_of("keras-all")
    marker, files = tmp_path / "marker", [tmp_path / "model.keras", tmp_path / "model.h5"]
    env = {**os.environ, "KERAS_BACKEND": "torch"}
    make = MAKE.replace("MARKER", str(marker))
    subprocess.run([python, "-c", make, marker, *files], env=env, check=True, capture_output=True)
    marker.unlink(missing_ok=True)
    for file in files:
        words = [*verb, str(file), "--batch", "2", "--python", str(python)]
        done = subprocess.run(
            [sys.executable, "-m", "whygpu", *words], env=env, capture_output=True, text=True
        )
        assert done.returncode in (2, 4), done.stdout + done.stderr
        assert "Lambda" in done.stdout + done.stderr
        assert not marker.exists()
