"""The fuzzer works, and a moment of it finds nothing."""

from __future__ import annotations

import jsonschema
import pytest

from tools import fuzz_explain
from tools.fuzz_explain import FRAGMENTS, check, damaged, fuzz


def test_a_moment_of_it() -> None:
    seen = fuzz(0.4, start=7)
    assert seen.logs > 0
    assert set(seen.verdicts) <= {"found", "nothing-wrong", "not-gpu", "unknown"}


def test_damage_is_repeatable_and_varied() -> None:
    log = b"".join(FRAGMENTS[:5])
    assert damaged(log, 3) == damaged(log, 3)
    assert len({damaged(log, how) for how in range(50)}) > 25


def test_a_log_that_takes_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_explain, "SECONDS_PER_LOG", -1.0)
    with pytest.raises(AssertionError, match="6 bytes"):
        check(b"hello\n", jsonschema.Draft202012Validator({}))
