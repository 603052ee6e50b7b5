"""Real recordings of PyTorch's, JAX's and TensorFlow's profilers, judged as after a run."""

from __future__ import annotations

import gzip
import json
import pathlib
import random
from typing import NamedTuple

import pytest

from tests.cases import each
from whygpu.launch.profile_records import decoded
from whygpu.model.profile import Category, ProcessProfile, ProfileAnswer, ProfileOptions
from whygpu.profiling.broken_profile import BrokenProfile
from whygpu.profiling.judge import judged
from whygpu.profiling.kineto import read_kineto
from whygpu.profiling.perfetto import trace_events

RECORDED = pathlib.Path(__file__).parent / "recorded"


def loaded(name: str, tmp_path: pathlib.Path) -> ProcessProfile:
    """The profile as it is read after a run."""
    data = json.loads(gzip.decompress((RECORDED / name / "record.json.gz").read_bytes()))
    (file,) = [path for path in (RECORDED / name).iterdir() if path.name != "record.json.gz"]
    copy = tmp_path / file.stem
    copy.write_bytes(gzip.decompress(file.read_bytes()))
    data["recording"]["files"] = [str(copy)]
    profile, errors = decoded(data, str(tmp_path))
    assert not errors
    assert not profile.recording.problem
    return profile


def answer(name: str, tmp_path: pathlib.Path) -> ProfileAnswer:
    return judged([loaded(name, tmp_path)], ProfileOptions(), on_gpu=True)


class Expected(NamedTuple):
    named: Category
    least: float
    """The share that it has at least."""
    text: str = ""
    """Of its line."""
    cure: str = ""


CASES: dict[str, Expected] = {
    "torch_healthy": Expected("computing", 0.95),
    "jax_healthy": Expected("computing", 0.95),
    "torch_slow_decoding": Expected("input", 0.75, "for x, y in loader:", "num_workers="),
    "torch_pageable": Expected("copies", 0.6, 'to("cuda"', "pin_memory"),
    "torch_cpu_operation": Expected("cpu-operations", 0.5, "torch.sort", "on the GPU"),
    "jax_reads_loss": Expected("synchronisation", 0.4, "float(value)", "do not wait"),
    "keras_slow_dataset": Expected("input", 0.75, "model.fit", "PyDataset"),
    "torch_own_code": Expected("program", 0.65, "rewards(rows)", "take this code out"),
}


@pytest.mark.slow
@each("name", CASES)
def test_what_the_program_waits_for_is_named(name: str, tmp_path: pathlib.Path) -> None:
    expected = CASES[name]
    found = answer(name, tmp_path)
    assert found.gpu_timed
    largest = found.shares[0]
    assert largest.category == expected.named
    assert largest.share >= expected.least
    assert sum(share.share for share in found.shares) == pytest.approx(1, abs=0.02)
    if expected.named == "computing":
        assert found.verdict == "computing"
        assert found.gains == ()
        return
    assert found.verdict == "waiting"
    assert largest.where is not None
    assert expected.text in largest.where.text
    assert any(expected.cure in gain.change for gain in found.gains)


@pytest.mark.slow
@each("name", CASES)
def test_a_kernel_begins_after_the_program_has_begun_to_record(
    name: str, tmp_path: pathlib.Path
) -> None:
    """The clocks agree: what the profiler saw lies between its begin and its end."""
    profile = loaded(name, tmp_path)
    assert profile.device is not None
    first = profile.recording.marks[0][0]
    last = profile.recording.marks[-1][1]
    assert all(first <= kernel.begin <= kernel.end <= last for kernel in profile.device.kernels)


def test_a_program_that_launches_ahead_is_timed_by_the_gpu(tmp_path: pathlib.Path) -> None:
    """Its steps take 20 ms in Python, and the GPU needs 60 ms for each: products in float32."""
    found = answer("torch_float32", tmp_path)
    assert found.verdict == "computing"
    assert found.window is not None
    assert found.window.step_seconds == pytest.approx(0.06, rel=0.05)
    (gain,) = found.gains
    assert "TF32" in gain.change
    # The cured program took 9.7 ms: 6.2 times faster.
    assert 0.9 * 0.0097 > gain.to_low > 0.06 / 8
    assert any("faster than the GPU computes them" in note for note in found.notes)


def test_compilation_that_is_left_out_is_not_idle_time_of_the_gpu(tmp_path: pathlib.Path) -> None:
    """0.2 s of the recording: JAX compiles something at the end of the first epoch. In the rest,
    the kernels of a step take 7.8 of its 9.7 ms."""
    found = answer("keras_healthy_jax", tmp_path)
    assert found.total("computing") == pytest.approx(0.8, abs=0.03)
    assert found.verdict != "waiting"


def test_what_converts_data_on_the_cpu_neither_waits_nor_copies(tmp_path: pathlib.Path) -> None:
    """tolist() of a tensor on the CPU, and torch.tensor() of a list."""
    found = answer("torch_own_code", tmp_path)
    assert found.total("synchronisation") < 0.02
    assert not any("pin_memory" in gain.change for gain in found.gains)


def test_copies_have_their_size_and_kind_of_memory(tmp_path: pathlib.Path) -> None:
    recording = loaded("torch_pageable", tmp_path).device
    assert recording is not None
    large = [copy for copy in recording.copies if copy.bytes > 1_000_000]
    assert large
    assert {copy.direction for copy in large} == {"to the GPU"}
    assert all(copy.pageable for copy in large)
    assert recording.multiprocessors == 132


def test_copies_of_jax_have_them_too(tmp_path: pathlib.Path) -> None:
    recording = loaded("jax_reads_loss", tmp_path).device
    assert recording is not None
    assert {(copy.direction, copy.bytes, copy.pageable) for copy in recording.copies} == {
        ("from the GPU", 4, False)
    }
    assert any(kernel.blocks == 128 for kernel in recording.kernels)


def test_the_trace_shows_what_the_gpu_did(tmp_path: pathlib.Path) -> None:
    profile = loaded("torch_pageable", tmp_path)
    assert profile.device is not None
    events = trace_events((profile,), ProfileOptions(), on_gpu=True)["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names[2:] == ["GPU 0: kernels", "GPU 0: copies"]
    kernels = [event for event in events if event["ph"] == "X" and event["tid"] == 3]
    assert len(kernels) == len(profile.device.kernels)


def test_a_clock_that_does_not_agree_is_refused(tmp_path: pathlib.Path) -> None:
    profile = loaded("torch_pageable", tmp_path)
    run = profile.recording
    wrong = run._replace(marks=(run.marks[0], tuple(time + 0.1 for time in run.marks[1])))
    data = gzip.decompress((RECORDED / "torch_pageable" / "kineto.json.gz").read_bytes())
    with pytest.raises(BrokenProfile, match="its clock differs"):
        read_kineto(data, wrong)


@pytest.mark.slow
def test_a_broken_trace_is_an_error_and_never_a_crash(tmp_path: pathlib.Path) -> None:
    run = loaded("torch_pageable", tmp_path).recording
    whole = gzip.decompress((RECORDED / "torch_pageable" / "kineto.json.gz").read_bytes())
    chance = random.Random(5)
    values = (b"null", b'"x"', b"-1", b"[]", b"{}", b"1e99")
    for _ in range(40):
        data = whole
        for _ in range(20):
            at = data.find(b": ", chance.randrange(len(data)))
            end = min((data.find(mark, at) for mark in (b",", b"}")), default=at)
            data = data[: at + 2] + chance.choice(values) + data[max(end, at + 2) :]
        try:
            read_kineto(data, run)
        except BrokenProfile:
            continue


def test_of_too_many_events_the_first_part_counts(tmp_path: pathlib.Path) -> None:
    run = loaded("torch_pageable", tmp_path).recording
    whole = gzip.decompress((RECORDED / "torch_pageable" / "kineto.json.gz").read_bytes())
    found = read_kineto(b'{"cutAfterSeconds": 0.1,' + whole[1:], run)
    assert found.end == pytest.approx(run.marks[0][0] + 0.1)
    assert read_kineto(whole, run).end == run.end
