"""Where a phrase is found, and where a line says that it is only advice."""

from __future__ import annotations

import re
import time

from tests.cases import each
from whygpu.readers.log import read_text

FAULT = re.compile("cuda error")


@each(
    ("text", "lines"),
    [
        ("cuda error, cuda error\ncuda error", [1, 1, 2]),
        ("cuda error. If you see cuda error or cuda error, wait\ncuda error", [1, 2]),
        ("If you get a cuda error\nIf you wait: cuda error cuda error", [2, 2]),
        ("cuda error cuda error if you face cuda error", [1, 1]),
    ],
)
def test_what_follows_advice_in_its_line_is_not_found(text: str, lines: list[int]) -> None:
    assert [match.line for match in read_text(text).find(FAULT)] == lines


def test_a_line_with_many_matches_takes_no_longer_for_each() -> None:
    def seconds(count: int) -> float:
        log = read_text("cuda error seen here, " * count)
        begin = time.process_time()
        assert len(list(log.find(FAULT))) == count
        return time.process_time() - begin

    few = min(seconds(700) for _ in range(3))
    assert any(seconds(5_600) < 24 * few for _ in range(3))
