"""Comparisons as text, as JSON, and as an HTML file."""

from __future__ import annotations

import json
import pathlib
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import jsonschema

import whygpu
from tests.comparer.kit import FINE, TF32, TIMING, WRONG, errors, judged, layer, pair, run, tensor
from whygpu.model.codec import decode
from whygpu.model.comparison import ComparisonReport, SettingDifference
from whygpu.render import compare, compare_html, compare_json

SCHEMA = json.loads(
    (pathlib.Path(whygpu.__path__[0]) / "schemas" / "compare.schema.json").read_text()
)


def fault() -> ComparisonReport:
    """One layer of one lane is wrong, one lane cannot run, one is slow."""
    setting = SettingDifference("epsilon", "0.001", "1e-05")
    layers = [
        layer("conv", FINE),
        layer("norm", WRONG, settings=(setting,), kind="BatchNormalization"),
        layer("dense", FINE),
    ]
    slow = TIMING._replace(seconds=(0.05, 0.05), compute_seconds=0.04, launches=9000)
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

  model.keras; inputs random, seed 0; tolerance auto; reference float64 on the CPU (keras 3.15.1 on
  tensorflow 2.21.0)

Lanes:
   lane  ran on       agrees with itself  one call    first call  speed  peak
   cpu   cpu          same                11 ms ±5 %  500 ms      -      -
   gpu   NVIDIA H200  same                50 ms ±0 %  500 ms      0.22x  -
   - gpu is slower than the CPU here because the work is too small: 9,000 kernels of 4.44 µs each,
     less than it takes to start them; a larger batch would use the GPU better (computing 40 ms)
   - gpu:no-cudnn cannot run here: JAX has no way to do without cuDNN

Differences:
   lanes     verdict    largest  relative  ULPs  cosine    parts at
   cpu, gpu  different  6.0e-08  6.0e-08   1     1.000000  norm

Because:
 ✗ cpu and gpu: different; gpu is off
   - norm (BatchNormalization) differs by up to 6.0e-08, 500 times what rounding explains, with the
     difference of its inputs taken out
   - its setting epsilon is 0.001 on cpu and 1e-05 on gpu
   - against float64: cpu 0.05 of what rounding explains, gpu 500 times what rounding explains
   - every other layer, given the same input, agrees

cpu and gpu:
   name    kind                largest  relative  ULPs  cosine    NaN, inf  of rounding
   output  output              6.0e-08  6.0e-08   1     1.000000  -         -
   conv    Conv2D              6.0e-08  6.0e-08   1     1.000000  -         0.05
   norm    BatchNormalization  6.0e-08  6.0e-08   1     1.000000  -         500
   dense   Conv2D              6.0e-08  6.0e-08   1     1.000000  -         0.05

note  layers were recorded for 2 of 32 rows
"""


def test_the_whole_text() -> None:
    assert compare.render(fault(), width=100, color=False) == FAULT


def test_tf32_in_the_text_and_every_layer_where_asked_for() -> None:
    text = compare.render(rounded(), width=100, color=False, verbose=True)
    assert "✓ The lanes differ by rounding only. TF32 is in it, and named below." in text
    assert "rounding (TF32)" in text
    assert "60 (0.3 of TF32)" in text
    assert "relu" not in compare.render(rounded(), width=100, color=False).partition("Because")[0]


def test_pairs_that_part_alike_are_told_once() -> None:
    names = ("keras:tensorflow", "keras:jax", "keras:torch")
    pairs = [
        pair(names[0], names[1], [layer("norm", WRONG)]),
        pair(names[0], names[2], [layer("norm", FINE)]),
        pair(names[1], names[2], [layer("norm", WRONG)]),
    ]
    units = {name: errors(name, norm=FINE) for name in names} | {
        names[1]: errors(names[1], norm=WRONG)
    }
    report = judged([run(name) for name in names], pairs, layers=units)
    text = compare.render(report, width=100, color=False)
    assert text.count("differs by up to") == 1
    assert "the same of keras:jax and keras:torch" in text
    assert "tensorflow, torch  rounding (float32)" in text
    everything = compare.render(report, width=100, color=False, verbose=True)
    assert everything.count("differs by up to") == 2


def test_a_narrow_terminal_and_plain_marks() -> None:
    text = compare.render(fault(), width=60, color=False, marks=compare.PLAIN_MARKS)
    assert text.startswith("x gpu")
    assert max(map(len, text.splitlines())) <= 60
    assert "parts at" in text


def test_json_is_as_its_schema_says_and_reads_back() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    for report in (fault(), rounded()):
        data = json.loads(compare_json.render(report))
        validator.validate(data)
        assert data.pop("schema") == 1
        assert decode(ComparisonReport, data) == report


class Outside(HTMLParser):
    """Whatever a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag in ("script", "link", "img", "iframe") or names & {"src", "href", "onload"}:
            self.found.append(tag)


def test_html_stands_by_itself_and_is_well_formed() -> None:
    text = compare_html.render(fault())
    outside = Outside()
    outside.feed(text)
    assert outside.found == []
    assert "http" not in text
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    plots = page.findall(".//svg")
    assert [plot.get("aria-label") for plot in plots] == ["Time by lane", "Difference by layer"]
    assert len(plots[1].findall(".//circle")) == 3
    assert len(plots[0].findall(".//rect")) == 2
    assert "prefers-color-scheme: dark" in text


def test_html_says_names_and_does_not_run_them() -> None:
    evil = '<script>alert("x")</script>'
    layers = [layer(evil, WRONG, tensors=(tensor(evil, kind="layer"),)), layer("dense", FINE)]
    named = run("gpu", devices=(evil,), notes=(evil,), timing=TIMING)
    named = named._replace(lane=named.lane._replace(name=evil))
    report = judged([run("cpu"), named], [pair("cpu", evil, layers)], notes=(evil,))
    text = compare_html.render(report._replace(what=evil))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def test_html_without_layers_times_or_pairs() -> None:
    text = compare_html.render(judged([run("cpu")], []))
    assert "<svg" not in text
    assert "Cannot tell" in text
