"""The catalogue keeps its own rules: names, codes, pages, and every example on every page."""

from __future__ import annotations

import pathlib

import pytest

from tests.kit import examples, lint, machine, run
from whygpu import causes
from whygpu.causes import catalogue, find_cause
from whygpu.model.cause import Cause

FAMILIES = {
    "1": "driver",
    "2": "libraries",
    "3": "builds",
    "4": "devices",
    "5": "memory",
    "6": "keras",
    "7": "programs",
    "8": "containers",
    "9": "noise",
}
LEDGER = pathlib.Path(__file__).parent.parent / "docs" / "causes" / "ledger.txt"
HEADINGS = ("Why it happens", "What it looks like", "Fix", "Fires on", "Quiet on", "Sources")

every_cause = pytest.mark.parametrize("cause", catalogue(), ids=lambda cause: cause.slug)


def test_there_are_causes() -> None:
    assert len(catalogue()) >= 30


def test_codes_and_names_are_unique() -> None:
    assert len({cause.code for cause in catalogue()}) == len(catalogue())
    assert len({cause.slug for cause in catalogue()}) == len(catalogue())


def test_a_code_once_given_keeps_its_name_for_ever() -> None:
    ledger = dict(line.split() for line in LEDGER.read_text().splitlines())
    current = {cause.code: cause.slug for cause in catalogue()}
    assert current.items() <= ledger.items(), "run `make docs` to enter new causes in the ledger"


@every_cause
def test_the_code_belongs_to_the_family_of_its_folder(cause: Cause) -> None:
    assert cause.code[:2] == "WG"
    assert len(cause.code) == 5
    folder = pathlib.Path(causes.__path__[0]) / FAMILIES[cause.code[2]]
    assert (folder / f"{cause.slug.replace('-', '_')}.py").is_file()


@every_cause
def test_it_is_found_by_code_and_by_name(cause: Cause) -> None:
    assert find_cause(cause.code.lower()) is cause
    assert find_cause(cause.slug) is cause


@every_cause
def test_its_page_is_complete(cause: Cause) -> None:
    for heading in HEADINGS:
        assert f"\n## {heading}" in cause.page, f"{cause.code} has no section {heading}"
    assert all(len(line) <= 100 for line in cause.page.splitlines())
    assert "<http" in cause.page.partition("## Sources")[2]


@every_cause
def test_what_it_explains_exists(cause: Cause) -> None:
    for slug in cause.explains:
        assert find_cause(slug) is not None, f"{cause.code} explains {slug}, which is no cause"
        assert slug != cause.slug


judged_on_machines = pytest.mark.parametrize(
    "cause", [c for c in catalogue() if c.machine_detector], ids=lambda cause: cause.slug
)
judged_on_code = pytest.mark.parametrize(
    "cause", [c for c in catalogue() if c.code_detector], ids=lambda cause: cause.slug
)


@judged_on_machines
@pytest.mark.parametrize("expectation", ["fires", "quiet", "cannot tell"])
def test_the_examples_on_its_page_do_what_they_say(cause: Cause, expectation: str) -> None:
    chosen = [
        example
        for example in examples(cause.page)
        if example.kind == "machine" and example.expectation == expectation
    ]
    assert chosen, f"{cause.code} has no example for: {expectation}"
    for example in chosen:
        outcome = run(cause, machine(example.text))
        if expectation == "fires":
            assert outcome.status == "found", (outcome, example.text)
            for finding in outcome.findings:
                assert finding.message
                assert finding.evidence
                assert finding.remedies
        elif expectation == "quiet":
            assert outcome.status in ("passed", "not-applicable"), (outcome, example.text)
        else:
            assert outcome.status == "undetermined", (outcome, example.text)


@judged_on_code
@pytest.mark.parametrize("expectation", ["fires", "quiet"])
def test_the_code_on_its_page_does_what_it_says(cause: Cause, expectation: str) -> None:
    chosen = [
        example
        for example in examples(cause.page)
        if example.kind == "code" and example.expectation == expectation
    ]
    assert chosen, f"{cause.code} has no code example for: {expectation}"
    for example in chosen:
        found = lint(example.text, cause)
        assert bool(found) is (expectation == "fires"), (found, example.text)
        for item in found:
            assert item.finding.code == cause.code
            assert item.finding.message
            assert item.finding.remedies
            assert item.finding.evidence[0].kind == "code"


@every_cause
def test_it_has_a_detector(cause: Cause) -> None:
    assert cause.machine_detector or cause.code_detector


@judged_on_machines
@pytest.mark.parametrize("start", ["healthy", "no-gpu"])
def test_it_is_quiet_on_a_healthy_machine(cause: Cause, start: str) -> None:
    outcome = run(cause, machine(f'start = "{start}"'))
    assert outcome.status in ("passed", "not-applicable"), outcome
