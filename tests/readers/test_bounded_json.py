"""What is wrong with JSON is said in words for people, and nothing of the content is quoted."""

from __future__ import annotations

import json

import pytest

from tests.cases import each
from whygpu.readers.bounded_json import loads

TEXT = json.dumps({"a": [1, True, None, "text"], "b": {"c": "\u00e4"}}, ensure_ascii=False).encode()


def wrong(content: bytes) -> str:
    with pytest.raises(ValueError, match="it ") as caught:
        loads(content)
    return str(caught.value)


def test_a_text_that_was_cut_off_anywhere_is_called_that() -> None:
    for end in range(1, len(TEXT)):
        assert "cut off" in wrong(TEXT[:end]), TEXT[:end]


@each(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"\x1f\x8b\x08\x00", "it has binary data, not text"),
        (b"bash: whygpu: not found", "it is not JSON, but perhaps the message"),
        (TEXT + TEXT, "it has more after its end (line 1, column"),
        (b'{"a": 1,\n "b" 2}', "it is not valid JSON in line 2, column 6"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"9" * 10_000, "it has a number with too many digits"),
        (b"[" + b"1," * 1_300_000, "it has more than 1,200,000 values"),
    ],
)
def test_what_is_wrong_is_said_without_the_words_of_python(content: bytes, message: str) -> None:
    assert message in wrong(content)


def test_nothing_of_the_content_is_quoted() -> None:
    """A link among the files may lead to one with passwords."""
    for content in (b"root:$6$secret", b'{"a": $6$secret}', b'{"a": "$6$secret', b"[1] $6$secret"):
        assert "secret" not in wrong(content)
