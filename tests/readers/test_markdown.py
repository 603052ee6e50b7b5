"""What a person writes around output that is shown in Markdown."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.log import read_text
from whygpu.readers.markdown import around_output


def written(text: str) -> list[str]:
    return [line.text for line in around_output(read_text(text).lines)]


def test_what_is_outside_the_fences_is_of_the_person() -> None:
    text = "It waits for ever.\n```shell\nUsing device: cuda\n```\nWhat now?\n````\nmore\n````\n"
    assert written(text) == ["It waits for ever.", "What now?"]


def test_an_open_fence_goes_on_to_the_end_and_records_are_of_a_program() -> None:
    assert written("It waits.\n[WARNING] slow\n```\nUsing device: cuda\n") == ["It waits."]


@each("text", ["Using device: cuda\nIt waits.\n", "the key ```a``` is missing\nstep 3\n"])
def test_a_text_without_fences_is_no_report(text: str) -> None:
    assert written(text) == []
