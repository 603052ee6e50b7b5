"""The table of graphics that only draw is sound, and keeps cards that compute out."""

from __future__ import annotations

import itertools

from tests.cases import each
from whygpu.tables.graphics_devices import DISPLAY_ONLY, DisplayOnly, display_only


@each("row", DISPLAY_ONLY, ids=lambda row: row.first)
def test_a_row_is_complete(row: DisplayOnly) -> None:
    assert int(row.first, 16) <= int(row.last, 16)
    assert row.first == row.first.lower()
    assert len(row.first) == len(row.last) == 4
    assert row.what
    assert row.source.startswith("https://")


def test_ranges_are_in_order_and_do_not_overlap() -> None:
    for before, after in itertools.pairwise(DISPLAY_ONLY):
        assert int(before.last, 16) < int(after.first, 16)


@each(
    ("device_id", "draws_only"),
    [
        ("1638", True),  # a laptop's Ryzen 5000
        ("164e", True),  # a desktop's Ryzen 7000
        ("1304", True),
        ("131d", True),
        ("131e", False),
        ("744c", False),  # Radeon RX 7900
        ("73bf", False),  # Radeon RX 6800
        ("74a1", False),  # Instinct MI300X
        ("740f", False),  # Instinct MI210
        ("Apple M2", False),
    ],
)
def test_processors_and_cards_are_told_apart(device_id: str, draws_only: bool) -> None:
    assert (display_only("amd", device_id) is not None) is draws_only


def test_another_makers_number_means_nothing() -> None:
    assert display_only("intel", "1638") is None
