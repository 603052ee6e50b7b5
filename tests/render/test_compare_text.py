"""Comparisons as text and as JSON."""

from __future__ import annotations

import itertools
import json
import re

from tests.cases import each
from tests.comparer.kit import FINE, TF32, TIMING, WRONG, errors, judged, layer, pair, run
from tests.schemas import obeys
from whygpu.model.codec import decode
from whygpu.model.comparison import ComparisonReport, Determinism, SettingDifference
from whygpu.render import compare_json, compare_text
from whygpu.render import compare_rows as rows
from whygpu.render.marks import PLAIN_MARKS


def fault() -> ComparisonReport:
    """One layer of one lane is wrong, one lane cannot run, one is slow."""
    setting = SettingDifference("epsilon", "0.001", "1e-05")
    layers = [
        layer("conv", FINE),
        layer("norm", WRONG, settings=(setting,), kind="BatchNormalization"),
        layer("dense", FINE),
    ]
    slow = TIMING._replace(
        seconds=(0.05, 0.05), compute_seconds=0.04, launches=9000, busy_seconds=0.01
    )
    return judged(
        [
            run("cpu", timing=TIMING),
            run("gpu", timing=slow, devices=("NVIDIA H200",)),
            run("gpu:no-cudnn", end="cannot-run", reason="JAX has no way to do without cuDNN"),
        ],
        [pair("cpu", "gpu", layers)],
        layers={"cpu": errors("cpu", norm=FINE), "gpu": errors("gpu", norm=WRONG)},
        notes=("layers were recorded for 2 of 32 rows",),
    )


def rounded() -> ComparisonReport:
    return judged(
        [run("cpu", timing=TIMING), run("gpu", products="tf32", timing=TIMING)],
        [pair("cpu", "gpu", [layer("conv", TF32), layer("relu", FINE)])],
    )


FAULT = """\
✗ gpu is different from cpu, first at norm.

Because:
 ✗ cpu and gpu: different; gpu is wrong
   - given the same input, norm (BatchNormalization) differs by up to 6.0e-08,
     500 times what rounding explains
   - its setting epsilon is 0.001 on cpu and 1e-05 on gpu
   - compared with float64: cpu differs by 0.05 of what rounding explains, gpu
     differs by 500 times what rounding explains
   - given the same input, every other layer agrees

What to do:
   - give norm the same epsilon everywhere: it is 0.001 on cpu, and 1e-05 on gpu

Lanes:
   lane  on   one call    first call  speed
   cpu   CPU  11 ms ±5 %  500 ms      1x
   gpu   GPU  50 ms ±0 %  500 ms      0.22x
   - run twice, each lane repeats exactly; the GPU is NVIDIA H200
   - gpu:no-cudnn cannot run here: JAX has no way to do without cuDNN
   - gpu is slower than the CPU here because the work is too small: its 9,000
     kernels take 10 ms of 40 ms, and launching them takes the rest; a larger
     batch would use the GPU better (computing 40 ms)

Differences:
   lanes     verdict    largest  relative  ULPs  cosine    first at
   cpu, gpu  different  6.0e-08  6.0e-08   1     1.000000  norm

cpu and gpu:
   name    kind                largest  relative  of rounding
   output  output              6.0e-08  6.0e-08   -
   conv    Conv2D              6.0e-08  6.0e-08   0.05
 > norm    BatchNormalization  6.0e-08  6.0e-08   500
   dense   Conv2D              6.0e-08  6.0e-08   0.05

Compared:
   what       model.keras
   inputs     random, seed 0
   tolerance  auto: what rounding explains
   reference  float64 on the CPU, by keras 3.15.1 on tensorflow 2.21.0
   note       layers were recorded for 2 of 32 rows
"""


def test_the_whole_text() -> None:
    assert compare_text.render(fault(), width=80, color=False) == FAULT


def test_tf32_in_the_text_and_every_layer_where_asked_for() -> None:
    text = compare_text.render(rounded(), width=100, color=False, verbose=True)
    assert "✓ The lanes differ by rounding only. Some of it comes from TF32; see below." in text
    assert "rounding (TF32)" in text
    assert "60 (0.3 of TF32)" in text
    assert "whygpu run --tf32 off" in text
    assert (
        "relu" not in compare_text.render(rounded(), width=100, color=False).partition("Lanes")[2]
    )


def backends(*, wrong: str) -> ComparisonReport:
    names = ("keras:tensorflow", "keras:jax", "keras:torch")
    pairs = [
        pair(a, b, [layer("norm", WRONG if wrong in (a, b) else FINE)])
        for a, b in itertools.combinations(names, 2)
    ]
    units = {name: errors(name, norm=WRONG if name == wrong else FINE) for name in names}
    return judged([run(name) for name in names], pairs, layers=units)


def test_pairs_that_part_alike_are_told_once() -> None:
    report = backends(wrong="keras:jax")
    text = compare_text.render(report, width=100, color=False)
    assert text.count("differs by up to") == 1
    assert "the same holds for keras:jax and keras:torch" in text
    assert "tensorflow, torch  rounding (float32)" in text
    assert text.index("jax, torch  ") < text.index("tensorflow, torch  ")
    everything = compare_text.render(report, width=100, color=False, verbose=True)
    assert everything.count("differs by up to") == 2


def test_where_names_have_no_place_lanes_are_numbered() -> None:
    text = compare_text.render(backends(wrong="keras:jax"), width=80, color=False)
    assert "   2 keras:jax\n" in text
    assert "   1, 2   different " in text
    assert "…" not in text


def test_a_lane_that_differs_from_all_others_is_named_once() -> None:
    names = ("keras:tensorflow", "keras:jax", "keras:torch")
    pairs = [
        pair(names[0], names[1], [layer("norm", WRONG)]),
        pair(names[0], names[2], [layer("norm", WRONG)]),
        pair(names[1], names[2], [layer("norm", FINE)]),
    ]
    assert judged([run(name) for name in names], pairs).headline == (
        "keras:tensorflow differs from keras:jax and keras:torch by more than rounding, first at "
        "norm."
    )


def many(count: int) -> ComparisonReport:
    """The last of many lanes is wrong, in a layer with a long name."""
    names = ["cpu", "gpu", *(f"gpu:{each}" for each in LONG_OPTIONS)][: count - 1]
    names.append("keras:jax")
    places = ["encoder.blocks.0.attention.out_projection", "encoder.blocks.11.mlp.normalization"]
    pairs = [
        pair(a, b, [layer(places[0], FINE), layer(places[1], WRONG if b == names[-1] else FINE)])
        for a, b in itertools.combinations(names, 2)
    ]
    gpu = ("NVIDIA GeForce RTX 4090 Laptop GPU",)
    runs = [
        run(name, timing=TIMING, devices=gpu if name.startswith("gpu") else ("cpu",))
        for name in names
    ]
    return judged(runs, pairs, notes=("a note that is long enough for two lines " * 2,))


LONG_OPTIONS = (
    "no-cudnn",
    "deterministic",
    "no-tf32",
    "xla",
    "no-cudnn+no-tf32",
    "no-cudnn+deterministic+no-tf32",
)


@each("verbose", [False, True])
@each("width", [40, 60, 80, 100])
@each("count", [2, 3, 5, 9])
def test_nothing_is_cut(count: int, width: int, verbose: bool) -> None:
    report = many(count)
    text = compare_text.render(report, width=width, color=False, verbose=verbose)
    assert max(map(len, text.splitlines())) <= width
    names = [lane.run.lane.name for lane in report.lanes]
    names += [each.layer for each in report.pairs[-1].layers]
    names += rows.gpus(report.lanes)
    solid = "".join(text.split())
    for part in re.findall(r"[^._+@: ]+", " ".join(names)):
        assert part in solid
    assert "…" not in text


def test_many_pairs_are_put_together() -> None:
    text = compare_text.render(many(9), width=100, color=False)
    assert "9 with 1-8" in text
    assert "each two of 1-8" in text
    assert "36 pairs, the worst of each row: -v shows each" in text
    assert "9 with" not in compare_text.render(many(9), width=100, color=False, verbose=True)


def test_what_is_true_of_several_lanes_is_said_once() -> None:
    notes = ("its weights were set to those of the first lane",)
    runs = [
        run("keras:tensorflow"),
        run("keras:jax", notes=notes),
        run("keras:torch", notes=notes),
        run("gpu", end="cannot-run", reason="the NVIDIA driver shows no GPU"),
        run("gpu:xla", end="cannot-run", reason="the NVIDIA driver shows no GPU"),
    ]
    text = compare_text.render(judged(runs, []), width=100, color=False)
    assert "- each of keras:jax and keras:torch: its weights were set" in text
    assert "- gpu and gpu:xla cannot run here: the NVIDIA driver shows no GPU\n" in text
    assert "- all ran on the CPU; run twice, each lane repeats exactly\n" in text


def test_why_nothing_was_compared_comes_first() -> None:
    runs = [run("cpu"), run("gpu")]
    report = judged(runs, [], notes=("the recorded results could not be compared: a disk is full",))
    unknown = [lane._replace(determinism=Determinism("unknown", "once")) for lane in report.lanes]
    text = compare_text.render(report._replace(lanes=tuple(unknown)), width=100, color=False)
    assert "Because:\n   - the recorded results could not be compared: a disk is full\n" in text
    assert text.count("a disk is full") == 1
    assert "repeats" in text
    assert "run twice" not in text


def test_a_narrow_terminal_and_plain_marks() -> None:
    text = compare_text.render(fault(), width=60, color=False, marks=PLAIN_MARKS)
    assert text.startswith("x gpu")
    assert "first at" in text


def test_colour_changes_no_character() -> None:
    plain = compare_text.render(fault(), width=80, color=False)
    colored = compare_text.render(fault(), width=80, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    assert "\x1b[31m > norm" in colored


def test_json_is_as_its_schema_says_and_reads_back() -> None:
    for report in (fault(), rounded()):
        data = json.loads(compare_json.render(report))
        obeys("compare", data)
        assert data.pop("schema") == 1
        assert decode(ComparisonReport, data) == report
