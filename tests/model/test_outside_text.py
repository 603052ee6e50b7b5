"""Text from outside is cut between words only."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.outside_text import LONGEST_QUOTE, excerpt, telling_excerpt


@each(
    ("text", "longest", "expected"),
    [
        ("as long as it may be", 20, "as long as it may be"),
        ("the token is abcdef123", 18, "the token is ..."),
        ("https://host/t/abc/x and", 18, "... (24 characters)"),
        ("from https://host/t/abc/x", 20, "from ..."),
        ("cut here exactly", 8, "cut here ..."),
        ("{'key': 'abcdefgh'}", 12, "{'key': ' ..."),
        ("页面文件太小，无法完成操作", 6, "页面文件太小 ..."),
        ("abcdefgh", 4, "... (8 characters)"),
    ],
)
def test_no_word_is_cut(text: str, longest: int, expected: str) -> None:
    assert excerpt(text, longest) == expected


def test_of_a_long_line_the_failure_is_shown() -> None:
    story = "so I tried it again " * 20
    assert telling_excerpt(f"{story}see /x/y_error.log") == "... /x/y_error.log", (
        "a path stays whole"
    )
    assert telling_excerpt(f"{story}and then: Could not open it") == "... Could not open it"
    assert telling_excerpt("Error: " + "a b " * LONGEST_QUOTE).startswith("Error: a b")
    assert telling_excerpt("x error") == "x error"
