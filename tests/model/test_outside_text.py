"""Text from outside is cut between words only."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.outside_text import excerpt


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
