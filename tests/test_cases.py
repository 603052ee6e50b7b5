"""The cases of one test are all asked, and those that fail are named."""

from __future__ import annotations

import pathlib

import pytest

from tests.cases import each


def failure_of(test: object) -> str:
    with pytest.raises(AssertionError) as caught:
        test()  # type: ignore[operator]
    return str(caught.value)


def test_every_case_is_asked_and_each_that_fails_is_named() -> None:
    asked: list[int] = []

    @each("number", [1, 2, 3, 4])
    def odd(number: int) -> None:
        asked.append(number)
        assert number % 2, f"{number} is even"

    told = failure_of(odd)
    assert asked == [1, 2, 3, 4]
    assert told.startswith("2 of 4 cases failed")
    assert "\n2: 2 is even" in told
    assert "\n4: 4 is even" in told


def test_titles_are_those_that_were_given() -> None:
    def wrong(name: str, number: int) -> None:
        raise KeyError(name)

    cases = [("a", 1), ("b", 2)]
    assert "\n'a', 1: 'a'\n'b', 2: 'b'" in failure_of(each(("name", "number"), cases)(wrong))
    assert "\nfirst: 'a'\nsecond: 'b'" in failure_of(
        each(("name", "number"), cases, ids=["first", "second"])(wrong)
    )
    by_value = each(("name", "number"), cases, ids=lambda value: f"<{value}>")(wrong)
    assert "\n<a>, <1>: 'a'" in failure_of(by_value)


@pytest.mark.parametrize("number", [1, 2])
@each("letter", "ab")
@each("sign", "+-")
def test_cases_of_cases_and_fixtures(
    sign: str, letter: str, number: int, tmp_path: pathlib.Path
) -> None:
    (tmp_path / f"{sign}{letter}").touch(exist_ok=False)
    assert number in (1, 2)
    if (sign, letter) == ("-", "b"):
        assert len(list(tmp_path.iterdir())) == 4


def test_what_does_not_raise_and_what_is_skipped_is_a_failure() -> None:
    @each("stop", [pytest.fail, pytest.skip], ids=["fail", "skip"])
    def stops(stop: object) -> None:
        stop("so it is")  # type: ignore[operator]

    assert failure_of(stops).endswith("\nfail: so it is\nskip: so it is")


def test_no_cases_are_no_test() -> None:
    with pytest.raises(AssertionError, match="proves nothing"):
        each("nothing", [])
