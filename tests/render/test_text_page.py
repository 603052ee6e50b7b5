"""Text in lines that fit a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.cases import each
from whygpu.render.text_page import Page, cells, wrapped

TEXTS = st.text(st.sampled_from("ab -日🙂é\t"), max_size=80)


@each(
    ("text", "room", "lines"),
    [
        ("", 10, [""]),
        ("one two three", 7, ["one two", "three"]),
        ("a  b", 10, ["a  b"]),
        ("  indented", 20, ["  indented"]),
        ("one\ntwo three", 9, ["one", "two three"]),
        ("abcdefghij k", 4, ["abcd", "efgh", "ij k"]),
        ("x 日本語日本語", 6, ["x", "日本語", "日本語"]),
        ("a\xa0b c", 3, ["a\xa0b", "c"]),
    ],
)
def test_text_is_wrapped_between_words(text: str, room: int, lines: list[str]) -> None:
    assert wrapped(text, room) == lines


@given(TEXTS, st.integers(min_value=2, max_value=30))
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, room: int) -> None:
    lines = wrapped(text, room)
    assert all(cell_len(line) <= room for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_wide_character_takes_two_columns() -> None:
    assert [cells(text) for text in ("ab", "日本", "e\N{COMBINING ACUTE ACCENT}")] == [2, 4, 1]


def test_a_line_break_in_a_paragraph_starts_no_line() -> None:
    page = Page(40, color=False)
    page.paragraph("a name\n✓ all is fine")
    assert page.text() == "a name ✓ all is fine\n"


def test_a_label_that_leaves_no_room_has_a_line_of_its_own() -> None:
    page = Page(40, color=False)
    page.hanging("GPU 0", "idle", 7)
    page.hanging("GPU 12345", "at work", 7)
    assert page.text() == "GPU 0  idle\nGPU 12345\n       at work\n"
