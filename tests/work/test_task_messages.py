"""What a task sends to whygpu about an exception."""

from __future__ import annotations

from tests.comparer.inside import part


def test_the_colors_of_a_message_are_left_out() -> None:
    error = ValueError("in R.call().\n\n\x1b[1mCould not infer the shape\x1b[0m of [8]")
    assert part("main").text_of(error) == "in R.call().\n\nCould not infer the shape of [8]"
