"""Comparing as a process of its own, of models as large as there are."""

from __future__ import annotations

import os
import pathlib
import sys

import numpy
import pytest

from tests.comparer.inside import part
from whygpu.comparer import measures, reference_tasks
from whygpu.comparer.lane_processes import Collected, Job
from whygpu.model.comparison import Lane, LaneRun, Reference
from whygpu.model.work import What

recording = part("lanes.recording")
LAYERS = 320
"""What is found of so many is more than a message may hold."""


def record(folder: pathlib.Path, by: float) -> str:
    writer = recording.Writer(str(folder))
    for number in range(LAYERS):
        name = f"layer-{number}"
        writer.tensor(name, "layer", numpy.full(3, 1.0 + by, dtype=numpy.float32))
        writer.step(name, "Dense", [name], "float32", {}, "")
    writer.close()
    return str(folder)


@pytest.mark.slow
def test_a_model_of_many_layers_is_compared_to_its_end(tmp_path: pathlib.Path) -> None:
    what = What("script", str(tmp_path / "model.py"))
    job = Job(what, sys.executable, dict(os.environ), {}, str(tmp_path), timeout=60.0)
    lanes = [
        Collected(LaneRun(Lane(name, "cpu"), "ran"), (record(tmp_path / name, by),), "keras")
        for name, by in (("one", 0.0), ("two", 1e-6))
    ]
    nothing = reference_tasks.ReferenceRun(Reference(False))
    found = reference_tasks.differences(job, lanes, nothing, lambda text: None)
    assert reference_tasks.notes(found) == []
    (pair,) = measures.of_entries(found.entries).pairs
    assert [each.layer for each in pair.layers] == [f"layer-{number}" for number in range(LAYERS)]
    assert all(each.tensors[0].unequal == 3 for each in pair.layers)
