"""Runs many quick cases as one test, because pytest's overhead per test is larger than a case.

`@each` has the arguments of `@pytest.mark.parametrize`. It runs every case, even after a failure,
and the error names each case that failed. Use parametrize for slow cases, and for cases that need
their own folder or environment.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""Skipping one case would silently skip the others."""
_LONGEST = 60

Test = Callable[..., None]


def each(
    names: str | tuple[str, ...],
    cases: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Test], Test]:
    wanted = (names,) if isinstance(names, str) else names
    # The values of a case are a sequence only if there are several of them.
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
                listed = "\n".join(f"{title}: {error or type(error)}" for title, error in failures)
                count = f"{len(failures)} of {len(values)} cases failed"
                raise AssertionError(f"{count}; above is the first.\n{listed}") from failures[0][1]

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
