"""The catalogue keeps its own rules: names, codes, pages, and every example on every page."""

from __future__ import annotations

import pathlib

from tests.cases import each
from tests.kit import (
    examples,
    explained,
    lint,
    machine,
    machine_examples,
    run,
    setup_findings,
)
from whygpu import causes
from whygpu.causes import catalogue, find_cause
from whygpu.linter.judge import is_about_gpus, possible, relevant, words_in
from whygpu.linter.text_words import TextWords
from whygpu.model.cause import Cause
from whygpu.tables.variables import row_of

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

every_cause = each("cause", catalogue(), ids=lambda cause: cause.slug)


def test_there_are_causes() -> None:
    assert len(catalogue()) >= 30


def test_no_machine_detector_is_left_out_where_a_machine_is_judged() -> None:
    judging = {cause.slug for cause in catalogue() if cause.machine_detector is not None}
    loaded = {cause.slug for cause in causes.machine_catalogue()}
    assert judging <= loaded, "a cause with a machine detector is in NEVER_SEEN_ON_MACHINES"
    assert loaded <= judging, (
        f"{', '.join(sorted(loaded - judging))}: no machine detector; name the module in "
        "NEVER_SEEN_ON_MACHINES in src/whygpu/causes/__init__.py"
    )


def test_codes_and_names_are_unique() -> None:
    assert len({cause.code for cause in catalogue()}) == len(catalogue())
    assert len({cause.slug for cause in catalogue()}) == len(catalogue())


def test_a_code_once_given_keeps_its_name_for_ever() -> None:
    ledger = dict(line.split() for line in LEDGER.read_text().splitlines())
    current = {cause.code: cause.slug for cause in catalogue()}
    assert current.items() <= ledger.items(), "run `make docs` to enter new causes in the ledger"


@every_cause
def test_a_cause_keeps_the_rules(cause: Cause) -> None:
    the_code_belongs_to_the_family_of_its_folder(cause)
    it_is_found_by_code_and_by_name(cause)
    its_page_is_complete(cause)
    what_it_explains_exists(cause)
    it_has_a_detector_and_no_example_without_one(cause)


@every_cause
def test_the_examples_on_its_page_do_what_they_say(cause: Cause) -> None:
    if cause.machine_detector is not None:
        it_is_quiet_on_healthy_machines(cause)
        the_machines_on_its_page_are_judged_as_it_says(cause)
    if cause.log_detector is not None:
        the_logs_on_its_page_mean_what_it_says(cause)
    if cause.code_detector is not None:
        the_code_on_its_page_does_what_it_says(cause)
    if cause.setup_detector is not None:
        the_files_on_its_page_are_judged_as_it_says(cause)


def the_code_belongs_to_the_family_of_its_folder(cause: Cause) -> None:
    assert cause.code[:2] == "WG"
    assert len(cause.code) == 5
    folder = pathlib.Path(causes.__path__[0]) / FAMILIES[cause.code[2]]
    assert (folder / f"{cause.slug.replace('-', '_')}.py").is_file()


def it_is_found_by_code_and_by_name(cause: Cause) -> None:
    assert find_cause(cause.code.lower()) is cause
    assert find_cause(cause.code[2:]) is cause
    assert find_cause(cause.slug) is cause


def its_page_is_complete(cause: Cause) -> None:
    for heading in HEADINGS:
        assert f"\n## {heading}" in cause.page, f"{cause.code} has no section {heading}"
    long = [line for line in _prose(cause.page) if len(line) > 100]
    assert not long, f"{cause.code} has lines of more than 100 characters: {long[0]}"
    sources = cause.page.partition("## Sources")[2]
    assert "<http" in sources, f"{cause.code} has no <https://...> among its sources"


def _prose(page: str) -> list[str]:
    """The lines outside of examples: a log's lines are as long as they are."""
    parts = page.split("```")
    return [line for part in parts[::2] for line in part.splitlines()]


def what_it_explains_exists(cause: Cause) -> None:
    for slug in cause.explains:
        assert find_cause(slug) is not None, f"{cause.code} explains {slug}, which is no cause"
        assert slug != cause.slug


def it_has_a_detector_and_no_example_without_one(cause: Cause) -> None:
    kinds = {example.kind for example in examples(cause.page)}
    detectors = {
        "machine": cause.machine_detector,
        "log": cause.log_detector,
        "code": cause.code_detector,
        "setup": cause.setup_detector,
    }
    assert any(detectors.values())
    assert kinds == {kind for kind, detector in detectors.items() if detector is not None}


def it_is_quiet_on_healthy_machines(cause: Cause) -> None:
    for start in ("healthy", "no-gpu"):
        outcome = run(cause, machine(f'start = "{start}"'))
        assert outcome.status in ("passed", "not-applicable"), (start, outcome)


def the_machines_on_its_page_are_judged_as_it_says(cause: Cause) -> None:
    chosen = machine_examples(cause)
    assert {example.expectation for example in chosen} == {"fires", "quiet", "cannot tell"}
    for example in chosen:
        snapshot = machine(example.text)
        for variable in snapshot.environment.variables:
            missing = f"whygpu does not read {variable.name}: add a row to tables/variables.py"
            assert row_of(variable.name) is not None, missing
        outcome = run(cause, snapshot)
        if example.expectation == "fires":
            assert outcome.status == "found", (outcome, example.text)
            for finding in outcome.findings:
                assert finding.message
                assert finding.evidence
                assert finding.remedies
        elif example.expectation == "quiet":
            assert outcome.status in ("passed", "not-applicable"), (outcome, example.text)
        else:
            assert outcome.status == "undetermined", (outcome, example.text)


def the_logs_on_its_page_mean_what_it_says(cause: Cause) -> None:
    chosen = [example for example in examples(cause.page) if example.kind == "log"]
    assert {example.expectation for example in chosen} == {"fires", "quiet"}
    for example in chosen:
        explanation = explained(example.text)
        assert not explanation.crashed
        answers = explanation.noise if cause.code[2] == "9" else explanation.root_causes
        if example.expectation == "quiet":
            assert cause.code not in [finding.code for finding in answers], example.text
            continue
        assert cause.code in [finding.code for finding in answers], (answers, example.text)
        if cause.code[2] != "9":
            assert explanation.root_causes[0].code == cause.code, (answers, example.text)
        for finding in answers:
            assert finding.message
            assert finding.remedies
            assert all(evidence.line is not None for evidence in finding.evidence)


def the_code_on_its_page_does_what_it_says(cause: Cause) -> None:
    chosen = [example for example in examples(cause.page) if example.kind == "code"]
    assert {example.expectation for example in chosen} == {"fires", "quiet"}
    for example in chosen:
        found = lint(example.text, cause)
        assert bool(found) is (example.expectation == "fires"), (found, example.text)
        assert not found or may_be_in(cause, example.text), "its words keep lint from parsing this"
        for item in found:
            assert item.finding.code == cause.code
            assert item.finding.message
            assert item.finding.remedies
            assert item.finding.evidence[0].kind == "code"


def may_be_in(cause: Cause, text: str) -> bool:
    """Whether lint parses a file of a folder with this text for the cause."""
    words = TextWords(text)
    chosen = possible([cause], words)
    return is_about_gpus(text) and bool(relevant(chosen, words_in(chosen, words), text))


def the_files_on_its_page_are_judged_as_it_says(cause: Cause) -> None:
    chosen = [example for example in examples(cause.page) if example.kind == "setup"]
    assert {example.expectation for example in chosen} == {"fires", "quiet"}
    for example in chosen:
        found = setup_findings(example.text, cause)
        assert bool(found) is (example.expectation == "fires"), (found, example.text)
        for item in found:
            assert item.finding.code == cause.code
            assert item.finding.message
            assert item.finding.remedies
            assert f"==> {item.place.file} <==" in example.text
