"""whygpu compare on real frameworks: lanes, faults planted in them, randomness, what cannot run."""

from __future__ import annotations

import os
import pathlib

import pytest

from tests.targets import python_of
from whygpu.api import compare
from whygpu.comparer.lane_processes import Job, on_one_backend
from whygpu.comparer.lanes import parse_lanes
from whygpu.errors import UsageError
from whygpu.model.comparison import ComparisonReport
from whygpu.model.work import What

PROGRAMS = pathlib.Path(__file__).parent / "compare_programs.py"
BACKENDS = ("tensorflow", "jax", "torch")
LONG = pytest.mark.timeout(900)
ALL = ",".join(f"keras:{name}" for name in BACKENDS)


def run(
    function: str, target: str, lanes: str | None = None, **options: object
) -> ComparisonReport:
    what = f"{PROGRAMS}:{function}" if function.isidentifier() else function
    return compare(what, lanes, python=python_of(target), repeat=2, **options)  # type: ignore[arg-type]


def ends(report: ComparisonReport) -> dict[str, str]:
    return {each.run.lane.name: each.run.end for each in report.lanes}


@LONG
def test_backends_of_keras_differ_by_rounding_in_results_and_in_training() -> None:
    report = run("model", "keras-all", train=2)
    assert ends(report) == dict.fromkeys(ALL.split(","), "ran")
    assert report.reference.ran
    assert (report.verdict, report.exit_code) == ("rounding", 0)
    for lane in report.lanes:
        name = lane.run.lane.backend
        assert lane.run.framework.startswith("keras 3.")
        assert f" on {name} " in lane.run.framework
        assert lane.determinism.kind in ("same", "rounding")
        assert lane.speed is not None
        assert lane.speed.calls == 2
        assert lane.speed.first_call_seconds > 0
    for pair in report.pairs:
        assert [layer.layer for layer in pair.layers][:3] == [
            "convolution",
            "normalization",
            "sequence",
        ]
        kinds = {tensor.kind for tensor in pair.outputs}
        assert kinds == {"output", "loss", "gradient", "weight"}
        assert [each.name for each in pair.outputs if each.kind == "loss"] == ["loss[1]", "loss[2]"]
        losses = [each for each in pair.outputs if each.kind == "loss"]
        assert losses[0].scale != losses[1].scale  # it learns
    assert any("dropout" in note for lane in report.lanes for note in lane.run.notes)


@LONG
def test_a_fault_is_found_at_its_layer_in_every_pair() -> None:
    report = run("faulty", "keras-all", ALL)
    assert (report.verdict, report.exit_code) == ("different", 1)
    found = {(pair.a, pair.b): (pair.verdict, pair.first_layer) for pair in report.pairs}
    assert found == {
        ("keras:tensorflow", "keras:jax"): ("different", "normalization"),
        ("keras:tensorflow", "keras:torch"): ("different", "square"),
        ("keras:jax", "keras:torch"): ("different", "normalization"),
    }
    for pair in report.pairs:
        turned = ["square"] if "keras:torch" in (pair.a, pair.b) else []
        assert [each.layer for each in pair.layers if each.weights_differ] == turned
    beyond = {
        lane.run.lane.name: [
            each.layer for each in lane.layers if each.units.own > 1 or each.not_finite
        ]
        for lane in report.lanes
    }
    # Each fault at its own layer and nowhere else, whatever came to the layers after it.
    assert beyond == {
        "keras:tensorflow": ["large"],
        "keras:jax": ["normalization", "block"],
        "keras:torch": ["square"],
    }


@LONG
def test_code_between_two_layers_is_named_although_the_reference_does_not_run_it() -> None:
    report = run("between", "keras-all", "keras:tensorflow,keras:jax,keras:torch")
    (first, _, _) = sorted(report.pairs, key=lambda pair: pair.off is None)
    assert (first.verdict, first.first_layer, first.off) == ("different", "second", "keras:torch")
    assert any("that code or in the layer" in reason for reason in first.reasons)
    computed = {each.layer for each in first.layers if each.local and each.local.code_before}
    assert computed == {"second"}


@LONG
def test_what_is_wrong_only_as_a_whole_is_no_rounding() -> None:
    report = run("watched", "keras-all", "keras:torch,keras:jax", train=1)
    (pair,) = report.pairs
    assert (pair.verdict, pair.first_layer, pair.off) == ("different", "output", "keras:jax")
    assert all(layer.local is None or layer.local.units.own < 1 for layer in pair.layers)
    # A Sequential that is built again for float64 names its weights otherwise.
    trained = [each for each in pair.outputs if each.kind != "output"]
    assert {each.kind for each in trained} == {"loss", "gradient", "weight"}
    assert all(each.units is not None for each in trained)


def test_lanes_that_name_no_backend_have_the_same_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text('{"backend": "torch"}')
    inherited = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    job = Job(
        What("function", str(PROGRAMS), "model"),
        python_of("jax"),
        {**inherited, "HOME": str(tmp_path)},
        {"keras": "3.15.1", "jax": "0.10.2"},
        "",
    )
    changed, said = on_one_backend(job, parse_lanes("cpu,cpu:deterministic"))
    assert changed.environ["KERAS_BACKEND"] == "jax"
    assert "Keras, if imported, runs on JAX" in said
    assert on_one_backend(job, parse_lanes("cpu,keras:jax")) == (job, "")


def test_a_torch_module_is_compared_submodule_by_submodule() -> None:
    report = run("module", "torch", "cpu,cpu:deterministic", train=1)
    pair = report.pairs[0]
    assert (pair.verdict, pair.first_layer) == ("different", "norm")
    assert [layer.layer for layer in pair.layers] == ["first", "norm", "last", "Net"]
    assert {each.kind for each in pair.outputs} == {"output", "loss", "gradient", "weight"}


def test_a_function_of_jax_is_compared_by_its_outputs() -> None:
    report = run("pair", "jax", "cpu,cpu:deterministic")
    assert report.verdict in ("equal", "rounding")
    assert [each.name for each in report.pairs[0].outputs] == ["output.product"]


def test_a_script_records_what_is_compared(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(
        "import sys, whygpu, numpy\n"
        "numpy.random.seed(3)\n"
        "assert __name__ == '__main__' and sys.argv == [__file__]\n"
        "for step in range(2):\n"
        "    whygpu.record('step', numpy.random.rand(3))\n"
        "whygpu.record('both', {'a': numpy.ones(2, 'float16'), 'b': 1})\n"
        "sys.exit(0)\n"
    )
    report = run(str(script), "torch", "cpu,cpu:deterministic")
    assert report.verdict == "equal"
    outputs = {each.name: each.dtype_a for each in report.pairs[0].outputs}
    assert outputs == {
        "step": "float64",
        "step#2": "float64",
        "both.a": "float16",
        "both.b": "int64",
    }


@LONG
def test_a_layer_that_draws_in_inference_too_is_not_called_rounding() -> None:
    report = run("always_dropping", "keras-all", "keras:torch,keras:jax")
    (pair,) = report.pairs
    assert (report.verdict, report.exit_code) == ("undetermined", 4)
    assert "uses random numbers" in pair.reasons[0]


def test_randomness_that_is_not_seeded_is_no_difference_of_devices() -> None:
    report = run("entropy", "torch", "cpu,cpu:deterministic")
    assert [lane.determinism.kind for lane in report.lanes] == ["unseeded", "unseeded"]
    assert (report.verdict, report.exit_code) == ("undetermined", 4)
    assert "does not seed" in report.headline


def test_randomness_that_whygpu_seeds_is_told_as_such() -> None:
    report = run("drawn", "torch", "cpu,cpu:deterministic", random=7)
    assert report.verdict == "equal"
    assert any("does not seed" in note and "seed 7" in note for note in report.notes)


def test_a_lane_that_cannot_run_is_told_with_its_reason() -> None:
    report = run("steady", "torch", "cpu,keras:torch,keras:jax,gpu")
    assert ends(report) == {
        "cpu": "ran",
        "keras:torch": "cannot-run",
        "keras:jax": "cannot-run",
        "gpu": "cannot-run",
    }
    reasons = {each.run.lane.name: each.run.reason for each in report.lanes}
    assert "does not use Keras" in reasons["keras:torch"]
    assert reasons["keras:jax"] == "JAX is not installed in this environment"
    assert reasons["gpu"] in (
        "no NVIDIA driver was found on this machine",
        "the NVIDIA driver shows no GPU on this machine",
    )
    assert (report.verdict, report.exit_code) == ("undetermined", 4)
    assert not any("seed" in note for note in report.notes), "it seeds by itself"


def test_what_no_lane_can_use_is_the_users_to_mend(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "silent.py"
    script.write_text("print('nothing recorded')\n")
    with pytest.raises(UsageError, match=r"silent\.py recorded nothing; .*whygpu\.record"):
        run(str(script), "torch", "cpu")
    with pytest.raises(UsageError, match="--train trains models"):
        run("steady", "torch", "cpu", train=1)


def test_a_function_is_fed_from_a_file(tmp_path: pathlib.Path) -> None:
    numpy = pytest.importorskip("numpy")
    numpy.savez(tmp_path / "in.npz", values=numpy.arange(6.0).reshape(2, 3))
    inputs = str(tmp_path / "in.npz")
    report = run("summed", "torch", "cpu,cpu:deterministic", inputs=inputs)
    assert (report.verdict, report.inputs) == ("equal", "in.npz")
    assert report.pairs[0].outputs[0].shape_a == (3,)
