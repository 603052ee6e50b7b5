"""The outline of a text is shorter, and lacks no word that the text has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from whygpu.model.lazy_regex import in_outline, outline_of

TEXTS = some.text(some.sampled_from("ab01 \n_A."), max_size=40)


@given(before=TEXTS, word=some.text(some.sampled_from("ab01 \n_."), min_size=1), after=TEXTS)
def test_every_part_of_a_text_is_found_in_its_outline(before: str, word: str, after: str) -> None:
    assert in_outline(word) in outline_of(before + word + after)


def test_lines_that_differ_in_numbers_only_are_one() -> None:
    text = "\n".join(f"Step {step} loss 0.{step}" for step in range(1000))
    assert outline_of(text) == "step 0 loss 0.0"
