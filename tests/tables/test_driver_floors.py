"""The table of driver floors is sound."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.driver_floors import FAMILIES_FROM, FLOORS, driver_floors
from whygpu.tables.versions import release_numbers


def test_every_row_has_a_source_at_nvidia() -> None:
    for row in FLOORS:
        assert row.source.startswith("https://docs.nvidia.com/")
        assert row.first <= row.last


def test_newer_cuda_never_runs_on_an_older_driver() -> None:
    order = [(row.first, release_numbers(row.driver)) for row in FLOORS]
    assert order == sorted(order)


def test_releases_before_the_families_have_exact_rows() -> None:
    for row in FLOORS:
        assert row.first == row.last or row.first[0] >= FAMILIES_FROM


@each(
    ("cuda", "drivers"),
    [
        ("13.0", ["580"]),
        ("13", ["580"]),
        ("12.5.1", ["525.60.13"]),
        ("11.8", ["450.80.02"]),
        ("11.0", ["450.36.06"]),
        ("11", ["450.36.06", "450.80.02"]),
        ("10.1", ["418.39"]),
        ("10", ["410.48", "418.39", "440.33"]),
        ("9.0", ["384.81"]),
        ("8.0", ["367.48", "375.26"]),
        ("7.5", []),
        ("99.0", []),
        ("local", []),
    ],
)
def test_the_rows_for_a_release(cuda: str, drivers: list[str]) -> None:
    assert [row.driver for row in driver_floors(cuda)] == drivers
