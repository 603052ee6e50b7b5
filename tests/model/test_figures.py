"""Numbers as people read them."""

from __future__ import annotations

import pytest

from whygpu.model.figures import counted


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1200, "1,200 files")]
)
def test_a_count_has_its_noun_in_the_right_number(count: int, text: str) -> None:
    assert counted(count, "file") == text
