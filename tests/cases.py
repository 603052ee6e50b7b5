"""Many cases of one question as one test: what is asked in a moment costs more to be counted.

`@each` is written as `@pytest.mark.parametrize` is. Every case is asked, whatever became of those
before, and the failure names each that failed. For cases that take their time, or that want
something of their own (a folder, an environment), there is parametrize.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""To skip one case would leave out the others without a word."""
_LONGEST = 60

Test = Callable[..., None]


def each(
    names: str | tuple[str, ...],
    cases: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Test], Test]:
    wanted = (names,) if isinstance(names, str) else names
    # The values of a case are a sequence only where there are several of them.
    values = [(case,) if isinstance(names, str) else tuple(case) for case in cases]
    assert values, "a test without cases proves nothing"
    titles = _titles(values, ids)

    def joined(test: Test) -> Test:
        @functools.wraps(test)
        def ask_all(**fixtures: Any) -> None:
            failures = []
            for title, case in zip(titles, values, strict=True):
                try:
                    test(**fixtures, **dict(zip(wanted, case, strict=True)))
                except _FAILURES as error:
                    failures.append((title, error))
            if failures:
                told = "\n".join(f"{title}: {error or type(error)}" for title, error in failures)
                count = f"{len(failures)} of {len(values)} cases failed"
                raise AssertionError(f"{count}; above is the first.\n{told}") from failures[0][1]

        asked = inspect.signature(test)
        left = [one for name, one in asked.parameters.items() if name not in wanted]
        ask_all.__signature__ = asked.replace(parameters=left)  # type: ignore[attr-defined]
        return ask_all

    return joined


def _titles(
    values: list[tuple[Any, ...]], ids: Callable[[Any], object] | Iterable[object] | None
) -> list[str]:
    if ids is not None and not callable(ids):
        return [str(title) for title in ids]
    title = ids or (lambda value: repr(value)[:_LONGEST])
    return [", ".join(str(title(value)) for value in case) for case in values]
