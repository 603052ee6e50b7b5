"""Numbers in text from elsewhere never raise."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.whole_numbers import whole_number


@each(
    ("text", "number"),
    [
        ("42", 42),
        ("007", 7),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("²", None),
        (" 1", None),
        ("9" * 18, 10**18 - 1),
        ("9" * 5000, None),
    ],
)
def test_only_a_whole_number_has_a_value(text: str, number: int | None) -> None:
    assert whole_number(text) == number
