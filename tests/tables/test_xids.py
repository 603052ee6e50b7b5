"""The table of Xids is sound."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.xids import XIDS, Xid, follows_a_program, is_of_the_hardware


@each("row", XIDS.values(), ids=lambda row: str(row.number))
def test_a_row_is_complete(row: Xid) -> None:
    assert 0 < row.number < 1000
    assert row.source.startswith("https://docs.nvidia.com/")
    assert row.meaning[0].islower()
    assert not row.meaning.endswith(".")


def test_numbers_are_in_order() -> None:
    assert list(XIDS) == sorted(XIDS)


def test_no_number_accuses_both_the_program_and_the_hardware() -> None:
    assert not [n for n in XIDS if follows_a_program(n) and is_of_the_hardware(n)]


def test_known_kinds() -> None:
    assert all(map(follows_a_program, (13, 31, 43, 45, 68, 69)))
    assert all(map(is_of_the_hardware, (46, 48, 62, 64, 74, 79, 95, 109, 119, 120, 140)))
    # A contained error ends one program; a replaced row is a repair; nobody knows 999.
    assert not any(map(is_of_the_hardware, (94, 63, 92, 999)))
    assert not follows_a_program(999)
