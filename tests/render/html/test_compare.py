"""Comparisons as an HTML file: whole, self-contained, harmless, and readable in the dark."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

from tests.comparer.kit import FINE, TIMING, WRONG, judged, layer, pair, run, tensor
from tests.page_samples import comparison as fault
from whygpu.model.comparison import ComparisonReport, LocalDifference, Units
from whygpu.render.html import answers, style


def page(report: ComparisonReport) -> ElementTree.Element:
    return ElementTree.fromstring(answers.page(report, "1").removeprefix("<!DOCTYPE html>\n"))


def texts(element: ElementTree.Element, path: str) -> list[str]:
    return ["".join(found.itertext()) for found in element.findall(path)]


def test_the_verdict_comes_first_then_why_what_to_do_and_the_figures() -> None:
    found = page(fault())
    headline = "gpu is different from cpu, first at norm."
    assert texts(found, ".//h1") == [f"something is wrong: {headline}"]
    assert texts(found, ".//title")[0] == f"{headline} (whygpu compare)"
    assert texts(found, ".//h2") == [
        "Because",
        "What to do",
        "Difference of each layer by itself",
        "Differences",
        "Lanes",
        "Every result and layer",
        "How it was compared",
    ]
    assert texts(found, ".//tr[@class='here']/th") == ["norm"]


def test_plots_have_names_axes_and_titles() -> None:
    layers, times = page(fault()).findall(".//svg[@role='img']")
    assert "largest is 500 times what rounding explains" in (layers.get("aria-label") or "")
    assert "cpu is fastest with 11 ms a call" in (times.get("aria-label") or "")
    shown = texts(layers, ".//text")
    assert {"times what rounding explains", "first differs at norm", "100", "0.1"} <= set(shown)
    assert "3 layers, in the order of computation" in shown
    said = texts(layers, ".//title")
    assert len(said) == 3
    assert any(each.startswith("norm (Conv2D): 500 times what rounding") for each in said)
    assert any("cannot be judged by itself" in each for each in said)
    shown = texts(times, ".//text")
    assert {"time of one call, logarithmic", "10 ms", "1 s", "cpu", "gpu", "2.1 s"} <= set(shown)


def test_times_that_are_close_have_a_linear_axis_from_nought() -> None:
    near = TIMING._replace(first_call_seconds=0.02)
    report = judged([run("cpu", timing=near), run("gpu", timing=near)], [])
    (times,) = page(report).findall(".//svg[@role='img']")
    assert {"0", "5 ms", "20 ms", "time of one call"} <= set(texts(times, ".//text"))


def test_what_is_not_finite_has_a_place_of_its_own() -> None:
    local = LocalDifference(0.0, Units(0.0), not_finite_in_one=3)
    found = judged([run("cpu"), run("gpu")], [pair("cpu", "gpu", [layer("scale", local=local)])])
    (layers,) = page(found).findall(".//svg[@role='img']")
    assert "not finite" in texts(layers, ".//text")


def test_many_pairs_are_drawn_by_what_is_true_of_them() -> None:
    names = ["cpu", "gpu", "gpu:xla", "gpu:no-cudnn", "gpu:no-tf32"]
    pairs = [
        pair(a, b, [layer("norm", WRONG if b == names[-1] else FINE)])
        for a, b in itertools.combinations(names, 2)
    ]
    found = page(judged([run(name) for name in names], pairs))
    assert texts(found, ".//figcaption/ul/li") == [
        "different at norm: 4 pairs, the worst of each layer",
        "rounding (float32): 6 pairs, the worst of each layer",
    ]
    assert len(found.findall(".//details")) == 10


@pytest.mark.parametrize("count", [1, 24, 25, 400])
def test_marks_lie_within_the_drawing(count: int) -> None:
    layers = [layer(f"a.long.name.of.a.layer.number.{number}", WRONG) for number in range(count)]
    found = page(judged([run("cpu"), run("gpu")], [pair("cpu", "gpu", layers)]))
    (plot,) = found.findall(".//svg[@role='img']")
    _, _, width, height = map(float, (plot.get("viewBox") or "").split())
    marks = plot.findall(".//circle")
    assert len(marks) == count
    assert all(0 < float(mark.get("cx") or 0) < width for mark in marks)
    assert all(0 < float(mark.get("cy") or 0) < height for mark in marks)


def test_names_are_said_and_do_not_run() -> None:
    evil = '"><script>alert("x")</script>'
    layers = [layer(evil, WRONG, tensors=(tensor(evil, kind="layer"),)), layer("dense", FINE)]
    named = run("gpu", devices=(evil,), notes=(evil,), timing=TIMING)
    named = named._replace(lane=named.lane._replace(name=evil))
    report = judged([run("cpu"), named], [pair("cpu", evil, layers)], notes=(evil,))
    text = answers.page(report._replace(what=evil), "1")
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    page(report._replace(what=evil))


def test_without_layers_times_or_pairs() -> None:
    text = answers.page(judged([run("cpu")], []), "1")
    assert "<svg" not in text
    assert "Cannot tell" in text


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colors", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_everything_stands_out_from_the_page(colors: dict[str, str]) -> None:
    for name in ("text", "soft", "good", "bad", "open"):
        for back in ("back", "box"):
            assert contrast(colors[name], colors[back]) >= 4.5, (name, back)
    for name in ("text", "soft", "bad"):
        assert contrast(colors[name], colors["tint"]) >= 4.5, name
    for name in ("text", "soft", "open"):
        assert contrast(colors[name], colors["warm"]) >= 4.5, name
    assert contrast(colors["text"], colors["marked"]) >= 4.5
    for name in ("bar", *(f"mark{number}" for number in range(8))):
        assert contrast(colors[name], colors["back"]) >= 3, name
