"""Sizes as they are written, given by users, and printed in logs."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.units import GIB, KIB, MIB, TIB, given_size, logged_size, size_text


@each(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (900, "900 bytes"),
        (1023, "1023 bytes"),
        (KIB, "1 KiB"),
        (64 * MIB, "64 MiB"),
        (3 * GIB // 2, "1.5 GiB"),
        (999 * MIB, "999 MiB"),
        (1000 * MIB - 1, "1000 MiB"),
        (1023 * MIB, "1023 MiB"),
        (TIB, "1 TiB"),
        (5000 * TIB, "5000 TiB"),
    ],
)
def test_a_size_is_written_with_three_digits(count: int, text: str) -> None:
    assert size_text(count) == text


def test_more_digits_tell_sizes_apart_that_three_do_not() -> None:
    sizes = int(7.021 * GIB), int(7.022 * GIB)
    assert [size_text(size) for size in sizes] == ["7.02 GiB", "7.02 GiB"]
    assert [size_text(size, digits=4) for size in sizes] == ["7.021 GiB", "7.022 GiB"]


@each(
    ("text", "count"),
    [
        ("4GiB", 4 * GIB),
        ("4G", 4 * GIB),
        ("4gb", 4 * 1000**3),
        (" 512 MiB ", 512 * MIB),
        ("1.5GiB", 1.5 * GIB),
        ("900B", 900),
        ("900", None),
        ("much", None),
        ("-1GiB", None),
        ("4XiB", None),
        ("", None),
    ],
)
def test_amounts_that_users_give(text: str, count: float | None) -> None:
    assert given_size(text) == count


@each(
    ("number", "unit", "count"),
    [
        ("1.57", "GiB", int(1.57 * GIB)),
        ("1.32", "G", int(1.32 * GIB)),
        ("500", "MB", 500 * MIB),
        ("138.0", "K", 138 * KIB),
        ("8,00", "GiB", 8 * GIB),
        ("1,073,741,824", "bytes", GIB),
        ("542572544", "", 542572544),
        ("542572544", None, None),
        ("31.44", None, None),
        ("9.00.", "MiB", 9 * MIB),
        ("1.2.3", "MiB", None),
    ],
)
def test_sizes_in_logs(number: str, unit: str | None, count: int | None) -> None:
    assert logged_size(number, unit) == count
