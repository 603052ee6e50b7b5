"""What a sieve keeps of a log, and how it counts lines, whatever the log is made of."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.cases import each
from whygpu.readers import sieve
from whygpu.readers.sieve import Sieve, Sifted

FAULT = b"RuntimeError: CUDA error: out of memory"


def sifted(data: bytes, piece: int = 1 << 20) -> Sifted:
    it = Sieve()
    for start in range(0, len(data), piece):
        it.feed(data[start : start + piece])
    return it.finish()


def training(count: int) -> list[bytes]:
    return [b"step %d of %d: loss=%d.%d lr=1e-4" % (n, count, n % 7, n) for n in range(count)]


def numbers_of(result: Sifted, text: bytes) -> list[int]:
    return [number for number, line in result.lines if text in line]


def test_a_short_log_is_kept_whole() -> None:
    result = sifted(b"one\ntwo\n\nfour")
    assert result.lines == [(1, b"one"), (2, b"two"), (3, b""), (4, b"four")]
    assert result.lines_read == result.lines_kept == 4


def test_nothing_gives_nothing() -> None:
    assert sifted(b"") == Sifted([], 0, 0)


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_the_last_line_counts_with_and_without_its_end(ending: bytes) -> None:
    assert sifted(b"one\ntwo" + ending).lines_read == 2


@pytest.mark.parametrize("piece", [1 << 20, 1 << 16, 7777, 101])
def test_a_fault_in_the_middle_is_kept_with_its_number_and_its_neighbours(piece: int) -> None:
    lines = training(20_000)
    lines[11_111] = FAULT
    result = sifted(b"\n".join(lines) + b"\n", piece)
    assert numbers_of(result, FAULT) == [11_112]
    kept = [number for number, _ in result.lines]
    assert set(range(11_110, 11_121)) <= set(kept)
    assert kept == sorted(kept)
    assert result.lines_read == 20_000
    assert result.lines_kept < 2_000


def test_the_beginning_and_the_end_are_kept() -> None:
    result = sifted(b"\n".join(training(20_000)))
    kept = [number for number, _ in result.lines]
    assert kept[:100] == list(range(1, 101))
    assert kept[-100:] == list(range(19_901, 20_001))


def test_lines_that_differ_in_numbers_only_are_kept_a_few_times() -> None:
    lines = training(20_000)
    for place in range(5_000, 15_000, 10):
        lines[place] = b"W bfc_allocator.cc:%d] ran out of memory (%d bytes)" % (place, place)
    result = sifted(b"\n".join(lines))
    assert len(numbers_of(result, b"ran out of memory")) == sieve.KEPT_OF_A_KIND


def test_a_traceback_is_kept_to_its_end() -> None:
    lines = training(20_000)
    frames = [b'  File "a.py", line %d, in f' % n for n in range(60)]
    lines[9_000:9_000] = [b"Traceback (most recent call last):", *frames, b"cv2.error: bad"]
    result = sifted(b"\n".join(lines))
    assert numbers_of(result, b"cv2.error") == [9_062]
    assert len(numbers_of(result, b'File "a.py"')) == 60


def test_what_a_carriage_return_overwrites_has_the_number_of_its_line() -> None:
    result = sifted(b"one\n 10%\r 50%\r100%\nthree\r\nfour")
    assert [number for number, _ in result.lines] == [1, 2, 2, 2, 3, 4]
    assert result.lines_read == 4


def test_carriage_returns_do_not_shift_later_numbers() -> None:
    bars = b"\r".join(b" %d%%" % n for n in range(100))
    lines = [bars if n % 3 == 0 else b"epoch" for n in range(2_000)]
    lines[1_500] = FAULT
    assert numbers_of(sifted(b"\n".join(lines)), FAULT) == [1_501]


def test_a_line_of_many_megabytes_is_read_in_parts_and_keeps_its_number() -> None:
    giant = b"x " * 3_000_000 + b" CUDA failure " + b"y " * 3_000_000
    result = sifted(b"start\n" * 30_000 + giant + b"\nafter\nend")
    assert numbers_of(result, b"CUDA failure") == [30_001]
    assert numbers_of(result, b"after") == [30_002]
    assert sum(len(text) for _, text in result.lines) < 2_000_000


@pytest.mark.slow
def test_a_word_is_not_cut_in_two_where_a_giant_line_is() -> None:
    # At every place a cut could fall, a fault lies across it.
    giant = b"".join(b"padding %6d " % n + b"CUDNN_STATUS_NOT_INITIALIZED " for n in range(40_000))
    kept = b"".join(text for _, text in sifted(b"x\n" * 20_000 + giant).lines)
    assert b"CUDNN_STATUS_NOT_INITIALIZED" in kept


def test_zeros_are_no_trouble() -> None:
    assert sifted(b"a\0b\0\n\0\0c").lines == [(1, b"ab"), (2, b"c")]


@each("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_encodings_of_windows(encoding: str) -> None:
    mark = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}.get(encoding, "")
    data = f"{mark}Fehler: Gerät\r\nzweite Zeile\r\n".encode(encoding)
    for piece in (1 << 20, 3):
        assert sifted(data, piece).lines == [(1, "Fehler: Gerät".encode()), (2, b"zweite Zeile")]


@pytest.mark.slow
@pytest.mark.parametrize("width", [100, 5_000])
def test_memory_does_not_grow_with_the_log(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "KINDS_BYTES", 1 << 17)
    monkeypatch.setattr(sieve, "KEPT_BYTES", 1 << 16)
    digits = bytes.maketrans(b"0123456789", b"abcdefghij")
    lines = [
        b"error in %s on device" % (b"%d" % (number**3) * (width // 10)).translate(digits)
        for number in range(500_000 // width)
    ]
    it = Sieve()
    tracemalloc.start()
    it.feed(b"\n".join(lines))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 1_000_000
    assert sum(len(text) for _, text in it.finish().lines) < 4 * sieve.KEPT_BYTES


def test_late_faults_are_kept_when_there_are_too_many() -> None:
    noise = [
        b"error " + bytes([97 + n % 26, 97 + n // 26 % 26, 97 + n // 676]) for n in range(17_000)
    ]
    lines = [*training(2_000), *noise, FAULT, *training(5_000)]
    assert numbers_of(sifted(b"\n".join(lines)), FAULT)
