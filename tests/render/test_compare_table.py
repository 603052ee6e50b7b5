"""Tables of a given width: what is folded, what becomes a list, what is left out."""

from __future__ import annotations

from tests.cases import each
from whygpu.render.compare_table import fits, table

HEAD = ("name", "largest", "NaN")
ROWS = [("block_6_expand_BN", "1.4e-04", "-"), ("predictions", "0", "-")]


def test_a_column_without_anything_to_say_is_left_out() -> None:
    assert table(HEAD, ROWS, 80) == [
        ["   name               largest"],
        ["   block_6_expand_BN  1.4e-04"],
        ["   predictions        0"],
    ]


def test_names_are_folded_behind_what_joins_them() -> None:
    assert table(HEAD, ROWS, 28, ("name",))[1] == [
        "   block_6_expand_   1.4e-04",
        "   BN",
    ]
    assert fits(HEAD, ROWS, 29)
    assert not fits(HEAD, ROWS, 28)


def test_figures_are_not_folded_and_the_rows_become_a_list() -> None:
    assert table(HEAD, ROWS, 28) == [
        [],
        ["   block_6_expand_BN", "     largest 1.4e-04"],
        ["   predictions", "     largest 0"],
    ]


def test_a_number_in_a_list_has_its_title() -> None:
    rows = [("1, 2", "rounding (float32)", "1.5e-08"), ("each two of 1-4", "equal", "0")]
    assert table(("lanes", "verdict", "largest"), rows, 36) == [
        [],
        ["   lanes 1, 2", "     verdict rounding (float32);", "     largest 1.5e-08"],
        ["   each two of 1-4", "     verdict equal; largest 0"],
    ]


@each("width", range(24, 90))
def test_every_character_is_there_and_no_line_too_long(width: int) -> None:
    names = ["encoder.layers.11.attention", "x" * 30, "two words, and more", "a"]
    rows = [(name, "1.5e-08", "rounding (float32)") for name in names]
    lines = [line for block in table(("name", "largest", "verdict"), rows, width, ("name",))[1:]
             for line in block]  # fmt: skip
    assert max(map(len, lines)) <= width
    shown = sorted("".join(lines).replace(" ", ""))
    wanted = sorted("".join("".join(row) for row in rows).replace(" ", ""))
    titles = [] if "largest" not in "".join(lines) else sorted("largestverdict;" * len(rows))
    assert shown == sorted(wanted + titles)
