"""The codes that decide on their own: each is a real code, belongs to one cause, and decides."""

from __future__ import annotations

import pytest

from tests.cases import each
from whygpu.causes import catalogue
from whygpu.diagnosis.explainer import explain
from whygpu.readers.log import read_text
from whygpu.tables.cuda_statuses import NUMBERS_BEFORE_10_1, STATUSES
from whygpu.tables.status_families import FAMILIES


def test_every_number_and_name_occurs_once() -> None:
    for values in (
        [row.number for row in STATUSES],
        [row.runtime for row in STATUSES if row.runtime],
        [row.driver for row in STATUSES if row.driver],
    ):
        assert len(values) == len(set(values))


def test_renumbered_errors_are_in_the_table() -> None:
    assert set(NUMBERS_BEFORE_10_1.values()) <= {row.runtime for row in STATUSES}


def test_a_code_belongs_to_one_cause_of_the_catalogue() -> None:
    slugs = {cause.slug for cause in catalogue()}
    assert set(FAMILIES) <= slugs
    for slug, names in FAMILIES.items():
        for other, others in FAMILIES.items():
            assert slug == other or not names & others


@pytest.mark.slow
@each("slug", list(FAMILIES))
def test_a_program_that_ends_with_the_code_has_this_cause(slug: str) -> None:
    for name in FAMILIES[slug]:
        log = read_text(f"RuntimeError: the call failed: {name}")
        found = explain(log, catalogue()).root_causes
        assert [root.cause for root in found[:1]] == [slug], name


def test_a_code_that_the_program_survived_decides_nothing() -> None:
    log = read_text(
        "prefetch: CUDA_ERROR_INVALID_HANDLE\nEpoch 1/2 loss: 0.5\nEpoch 2/2 loss: 0.4\n"
    )
    assert explain(log, catalogue()).verdict != "found"
