"""How much of the free memory other people's code may take."""

from __future__ import annotations

from tests.cases import each
from whygpu.host.limits import spare

GIB = 1 << 30


@each(
    ("available", "expected"),
    [
        (0, 0),
        (GIB // 2, GIB // 4),
        (4 * GIB, 4 * GIB - (512 << 20)),
        (100 * GIB, 95 * GIB),
    ],
)
def test_a_reserve_is_kept_for_other_programs(available: int, expected: int) -> None:
    assert spare(available) == expected
