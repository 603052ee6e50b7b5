"""Recordings of the planted programs are kept so that they can be judged again."""

from __future__ import annotations

import gzip
import json
import pathlib
import subprocess
import sys
from typing import Any

from benchmarks.idle.cases import Planted
from benchmarks.idle.keeping import NOTHING_KEPT, keep
from benchmarks.idle.measure import HERE, Place
from tests.patience import PATIENCE
from tests.profiling.test_recorded import RECORDED
from whygpu.launch.profile_records import decoded


def recorded(name: str, folder: pathlib.Path) -> dict[str, Any]:
    """As a process leaves it: the file of the profiler is beside the record."""
    data: dict[str, Any] = json.loads(
        gzip.decompress((RECORDED / name / "record.json.gz").read_bytes())
    )
    content = (RECORDED / name / "kineto.json.gz").read_bytes()
    (folder / "1-2.kineto.json").write_bytes(gzip.decompress(content))
    data["recording"]["files"] = [str(folder / "1-2.kineto.json")]
    return data


def test_what_was_kept_is_read_as_after_the_run(tmp_path: pathlib.Path) -> None:
    data = recorded("torch_pageable", tmp_path)
    original, _ = decoded(data, str(tmp_path))
    assert keep(data, tmp_path / "kept")
    again = json.loads(gzip.decompress((tmp_path / "kept" / "record.json.gz").read_bytes()))
    copy = tmp_path / "kept" / "kineto.json"
    copy.write_bytes(gzip.decompress((tmp_path / "kept" / "kineto.json.gz").read_bytes()))
    again["recording"]["files"] = [str(copy)]
    profile, errors = decoded(again, str(tmp_path / "kept"))
    assert not errors
    assert profile == original


def test_a_process_without_a_recording_leaves_none(tmp_path: pathlib.Path) -> None:
    assert not keep({"recording": {}}, tmp_path / "kept")
    assert not keep({"recording": {"files": [str(tmp_path / "gone")]}}, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_checkout_is_enough_where_whygpu_is_not_installed() -> None:
    """A machine with a GPU may have no network to install it from."""
    words = [sys.executable, "-I", "-S", str(HERE / "keeping.py"), NOTHING_KEPT, "--version"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["whygpu"]), done.stderr


def test_recordings_are_of_the_program_as_it_is(tmp_path: pathlib.Path) -> None:
    """The cured program would replace those of the original."""
    case = Planted("keras_healthy", "keras-all", None, "jax")
    place = Place(recordings=tmp_path)
    assert place.whygpu(case, cured=False)[-1] == str(tmp_path / "keras_healthy_jax")
    assert place.whygpu(case, cured=True)[-1] == NOTHING_KEPT
