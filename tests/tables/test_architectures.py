"""The rules of GPU code: which GPU runs what."""

from __future__ import annotations

import itertools

from tests.cases import each
from whygpu.tables.architectures import Code, Fit, fit, parse_capability, parse_code, runs


def code(name: str) -> Code:
    parsed = parse_code(name)
    assert parsed is not None
    return parsed


@each(
    ("name", "expected"),
    [
        ("sm_80", Code(True, (8, 0), "")),
        ("compute_90", Code(False, (9, 0), "")),
        ("sm_90a", Code(True, (9, 0), "a")),
        ("sm_100f", Code(True, (10, 0), "f")),
        ("compute_121", Code(False, (12, 1), "")),
        ("sm_9", None),
        ("gfx90a", None),
        ("", None),
    ],
)
def test_names_are_read(name: str, expected: Code | None) -> None:
    assert parse_code(name) == expected


@each(("text", "expected"), [("8.6", (8, 6)), ("12.0", (12, 0)), ("9", None), ("9.0a", None)])
def test_capabilities_are_read(text: str, expected: tuple[int, int] | None) -> None:
    assert parse_capability(text) == expected


@each(
    ("name", "gpu", "expected"),
    [
        ("sm_80", (8, 0), True),
        ("sm_80", (8, 9), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("sm_70", (7, 5), True),
        ("compute_80", (12, 0), True),
        ("compute_90", (8, 9), False),
        ("sm_90a", (9, 0), True),
        ("compute_90a", (10, 0), False),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 3), True),
        ("sm_103f", (10, 0), False),
        ("compute_100f", (12, 0), False),
    ],
)
def test_one_code_on_one_gpu(name: str, gpu: tuple[int, int], expected: bool) -> None:
    assert runs(code(name), gpu) is expected


TENSORFLOW = ("sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90")
TORCH = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


@each(
    ("names", "gpu", "expected"),
    [
        (TENSORFLOW, (6, 1), "binary"),
        (TENSORFLOW, (7, 5), "binary"),
        (TENSORFLOW, (5, 2), "too-old"),
        (TENSORFLOW, (12, 0), "compiled"),
        (TORCH, (7, 0), "too-old"),
        (TORCH, (10, 3), "binary"),
        (TORCH, (13, 0), "too-new"),
        (("sm_60", "sm_75"), (7, 0), "too-new"),
        (("sm_80",), (8, 7), "undocumented"),
        (("sm_80", "compute_80"), (8, 7), "compiled"),
        (("sm_87",), (8, 7), "binary"),
        (("sm_87",), (8, 9), "undocumented"),
    ],
)
def test_a_set_of_code_on_one_gpu(
    names: tuple[str, ...], gpu: tuple[int, int], expected: Fit
) -> None:
    assert fit(map(code, names), gpu) == expected


def test_the_order_of_code_does_not_matter() -> None:
    for names in itertools.permutations(("sm_60", "sm_90", "compute_90")):
        assert fit(map(code, names), (12, 0)) == "compiled"
        assert fit(map(code, names), (6, 1)) == "binary"
