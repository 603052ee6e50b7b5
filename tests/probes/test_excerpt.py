"""What is kept of a stream that may be endless."""

from __future__ import annotations

from whygpu.probes.excerpt import KEPT_BYTES, Excerpt


def excerpt_of(*chunks: bytes) -> Excerpt:
    excerpt = Excerpt()
    for chunk in chunks:
        excerpt.add(chunk)
    return excerpt


def test_short_text_is_kept_whole() -> None:
    excerpt = excerpt_of(b"one\ntw", b"o\n", b"three")
    assert excerpt.lines() == ("one", "two", "three")
    assert not excerpt.cut


def test_what_just_fits_is_not_cut() -> None:
    excerpt = excerpt_of(b"x" * (2 * KEPT_BYTES))
    assert not excerpt.cut
    assert excerpt.lines() == ("x" * (2 * KEPT_BYTES),)


def test_one_byte_more_is_cut_and_says_so() -> None:
    excerpt = excerpt_of(b"x" * (2 * KEPT_BYTES), b"x")
    assert excerpt.cut
    assert excerpt.lines() == ("x" * KEPT_BYTES, "[1 bytes left out]", "x" * KEPT_BYTES)


def test_the_ends_of_a_long_stream_are_whole_lines_in_bounded_memory() -> None:
    lines = [b"line %07d\n" % number for number in range(100_000)]
    excerpt = excerpt_of(*lines)
    kept = excerpt.lines()
    middle = next(i for i, line in enumerate(kept) if line.startswith("["))
    first, last = kept[:middle], kept[middle + 1 :]
    assert first == tuple(f"line {number:07}" for number in range(len(first)))
    assert last == tuple(f"line {number:07}" for number in range(100_000 - len(last), 100_000))
    assert sum(len(line) + 1 for line in first + last) <= 2 * KEPT_BYTES
    left_out = sum(map(len, lines)) - sum(len(line) + 1 for line in first + last)
    assert kept[middle] == f"[{left_out} bytes left out]"


def test_colours_progress_bars_and_control_characters_go() -> None:
    excerpt = excerpt_of(
        b"\x1b[31mred\x1b[0m\r\n",
        b" 10%\r 50%\r100%\n",
        b"\x1b]0;title\x07text\x00\x08\n",
        b"\n  \n",
        b"tab\tstays \xff\n",
    )
    assert excerpt.lines() == ("red", "100%", "text", "tab\tstays \ufffd")
