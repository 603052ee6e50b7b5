"""The table of instruction sets is sound."""

from __future__ import annotations

from whygpu.tables.cpu_features import ROWS, features_of
from whygpu.tables.distributions import matters


def test_every_row_is_about_a_known_distribution_and_has_a_source() -> None:
    for row in ROWS:
        assert matters(row.distribution)
        assert row.source
        assert row.features
    keys = [(row.distribution, row.machine, row.first) for row in ROWS]
    assert len(set(keys)) == len(keys)


def test_tensorflow_uses_avx_from_1_6_on() -> None:
    row = features_of("tensorflow", "1.6.0", "x86_64")
    assert row is not None
    assert row.features == ("avx",)
    assert features_of("tensorflow", "1.5.1", "x86_64") is None


def test_other_processors_are_not_on_record() -> None:
    assert features_of("tensorflow", "2.21.0", "aarch64") is None
