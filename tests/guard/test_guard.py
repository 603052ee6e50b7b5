"""A guard that has nothing to guard says so, rather than let a program believe in it."""

from __future__ import annotations

import pytest

import whygpu
from whygpu.errors import UsageError


def test_a_guard_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"with whygpu\.oom_guard\(model\)"), whygpu.oom_guard():
        pass


def test_a_module_whose_loop_was_not_guarded_is_reported_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with whygpu.oom_guard(object()):
        assert capsys.readouterr().err == ""
    assert "has guarded nothing" in capsys.readouterr().err
