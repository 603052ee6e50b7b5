"""The engine: one outcome for every cause, folding, order, and what a probe takes back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from tests.cases import each
from tests.kit import machine, machine_causes
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import arrange, diagnose, fold, outcome_of, reconcile
from whygpu.model.cause import Cause, cause
from whygpu.model.finding import MACHINE, Effect, Evidence, Finding, Gap, Severity
from whygpu.model.observed import Absent, Known, NotApplicable, Unknown, need
from whygpu.model.report import Status
from whygpu.model.snapshot import Snapshot


def make(
    code: str,
    slug: str,
    *items: Finding | Gap | Exception,
    severity: Severity = "error",
    effect: Effect = "cpu",
    explains: tuple[str, ...] = (),
) -> Cause:
    """A cause whose detector yields these items, and raises those that are exceptions."""
    made = cause(
        code, f"tests.{slug}", "An example.", severity=severity, effect=effect, explains=explains
    )

    @made.on_machine
    def detect(snapshot: Snapshot) -> Iterator[Finding | Gap]:
        for item in items:
            if isinstance(item, Exception):
                raise item
            yield item

    return made


def find(
    code: str,
    slug: str,
    subject: str = "torch",
    *,
    severity: Severity = "error",
    effect: Effect = "cpu",
) -> Finding:
    return Finding(code, slug, severity, subject, f"{slug} of {subject}", (), (), effect)


FOUND = find("WG901", "example")
GAP = Gap("could not look")


@each(
    ("items", "status", "reasons", "findings"),
    [
        ((), "passed", (), ()),
        ((FOUND,), "found", (), (FOUND,)),
        ((GAP,), "undetermined", ("could not look",), ()),
        ((GAP, FOUND), "found", ("could not look",), (FOUND,)),
        ((FOUND, GAP), "found", ("could not look",), (FOUND,)),
        ((NotApplicable("a GPU"),), "not-applicable", ("none: a GPU",), ()),
        ((FOUND, NotApplicable("a GPU")), "found", (), (FOUND,)),
        ((GAP, NotApplicable("a GPU")), "undetermined", ("could not look",), ()),
        ((ZeroDivisionError("by zero"),), "crashed", ("ZeroDivisionError: by zero",), ()),
        ((FOUND, KeyError("row")), "crashed", ("KeyError: 'row'",), (FOUND,)),
        ((GAP, KeyError("row")), "crashed", ("could not look", "KeyError: 'row'"), ()),
    ],
)
def test_whatever_a_detector_does_exactly_one_outcome_comes_of_it(
    items: tuple[Finding | Gap | Exception, ...],
    status: Status,
    reasons: tuple[str, ...],
    findings: tuple[Finding, ...],
) -> None:
    outcome = outcome_of(make("WG901", "example", *items), machine())
    assert outcome.status == status
    assert outcome.reasons == reasons
    assert outcome.findings == findings


def test_an_unknown_fact_ends_as_undetermined_and_an_absent_one_as_not_applicable() -> None:
    unknown, absent = make("WG901", "unknown"), make("WG902", "absent")
    unknown.machine_detector = lambda _: iter([need(Unknown("no permission"))])
    absent.machine_detector = lambda _: iter([need(Absent("the packages"))])
    assert outcome_of(unknown, machine()).status == "undetermined"
    assert outcome_of(unknown, machine()).reasons == ("no permission",)
    assert outcome_of(absent, machine()).status == "not-applicable"


def test_a_detector_that_raises_on_truth_of_an_unknown_is_a_crash_and_not_a_pass() -> None:
    careless = make("WG901", "careless")
    careless.machine_detector = lambda _: iter([FOUND] if Unknown("no idea") else [])
    assert outcome_of(careless, machine()).status == "crashed"


def test_a_cause_without_a_machine_detector_is_not_part_of_the_report() -> None:
    bare = cause("WG901", "tests.bare", "Bare.", severity="error", effect="cpu")
    assert outcome_of(bare, machine()).status == "not-applicable"
    assert diagnose(machine(), [bare]).outcomes == ()


def test_one_crash_hides_nothing_of_the_other_causes() -> None:
    causes = [
        make("WG901", "crashing", RuntimeError("bug")),
        make("WG902", "finding", find("WG902", "finding")),
        make("WG903", "passing"),
    ]
    for order in itertools.permutations(causes):
        report = diagnose(machine("probes_left_out = 'not now'"), order)
        assert {(o.cause, o.status) for o in report.outcomes} == {
            ("crashing", "crashed"),
            ("finding", "found"),
            ("passing", "passed"),
        }
        assert [f.cause for f in report.findings] == ["finding"]
        assert [o.cause for o in report.undetermined] == ["crashing"]


def by_code(*causes: Cause) -> dict[str, Cause]:
    return {item.code: item for item in causes}


ROOT = make("WG101", "root", explains=("middle",))
MIDDLE = make("WG201", "middle", explains=("leaf",))
LEAF = make("WG404", "leaf")
CHAIN = by_code(ROOT, MIDDLE, LEAF)


def folded(findings: Sequence[Finding], causes: dict[str, Cause]) -> dict[str, str | None]:
    return {finding.cause: finding.explained_by for finding in fold(findings, causes)}


def test_a_chain_folds_under_its_first_cause_in_every_order() -> None:
    chain = [find("WG101", "root"), find("WG201", "middle"), find("WG404", "leaf")]
    for order in itertools.permutations(chain):
        assert folded(order, CHAIN) == {"root": None, "middle": "WG101", "leaf": "WG101"}


def test_a_chain_with_its_middle_missing_does_not_fold() -> None:
    assert folded([find("WG101", "root"), find("WG404", "leaf")], CHAIN) == {
        "root": None,
        "leaf": None,
    }


def test_a_special_case_explains_what_its_page_says_and_is_explained_like_the_broader_cause() -> (
    None
):
    special = make("WG202", "special", explains=("own-leaf",))
    causes = {**CHAIN, **by_code(special, make("WG405", "own-leaf"))}
    case = special.finding(subject="torch", message="", evidence=(), remedies=(), kind_of="middle")
    assert (case.code, case.cause) == ("WG202", "middle")
    found = [case, find("WG404", "leaf"), find("WG405", "own-leaf")]
    assert folded(found, causes) == {"middle": None, "leaf": None, "own-leaf": "WG202"}
    assert folded([find("WG101", "root"), *found], causes) == {
        "root": None,
        "middle": "WG101",
        "leaf": None,
        "own-leaf": "WG101",
    }


@each(
    ("explaining", "explained", "folds"),
    [
        ("torch", "torch", True),
        (MACHINE, "torch", True),
        ("torch", MACHINE, True),
        (MACHINE, MACHINE, True),
        ("torch", "jax", False),
    ],
)
def test_only_what_concerns_the_same_subject_is_folded(
    explaining: str, explained: str, folds: bool
) -> None:
    findings = [find("WG101", "root", explaining), find("WG201", "middle", explained)]
    assert folded(findings, CHAIN)["middle"] == ("WG101" if folds else None)


def test_what_leaves_the_gpu_usable_does_not_explain_that_it_is_not_used() -> None:
    history = find("WG101", "root", severity="warning", effect="none")
    assert folded([history, find("WG201", "middle")], CHAIN)["middle"] is None
    both = [history, find("WG201", "middle", severity="warning", effect="none")]
    assert folded(both, CHAIN)["middle"] == "WG101"


def test_the_same_cause_in_two_frameworks_folds_each_symptom_under_its_own() -> None:
    findings = [
        find("WG201", "middle", "torch"),
        find("WG404", "leaf", "torch"),
        find("WG404", "leaf", "jax"),
    ]
    folds = [finding.explained_by for finding in fold(findings, CHAIN)]
    assert folds == [None, "WG201", None]


def test_the_catalogue_never_explains_in_a_circle() -> None:
    """Two causes that explain each other would fold each other out of the report."""
    explains = {item.slug: item.explains for item in catalogue()}

    def reach(slug: str, seen: tuple[str, ...]) -> None:
        assert slug not in seen, f"{' explains '.join((*seen, slug))}"
        for below in explains[slug]:
            reach(below, (*seen, slug))

    for slug in explains:
        reach(slug, ())


def test_folding_a_circle_comes_to_an_end() -> None:
    one, other = (
        make("WG101", "one", explains=("other",)),
        make("WG102", "other", explains=("one",)),
    )
    findings = fold([find("WG101", "one"), find("WG102", "other")], by_code(one, other))
    assert len(arrange(findings)) == 2


def test_what_follows_from_another_frameworks_fault_by_way_of_the_machine_is_not_lost() -> None:
    findings = [
        find("WG101", "root", "torch"),
        find("WG201", "middle", MACHINE),
        find("WG404", "leaf", "jax"),
    ]
    assert folded(findings, CHAIN) == {"root": None, "middle": "WG101", "leaf": "WG101"}
    assert len(arrange(fold(findings, CHAIN))) == 3


def test_findings_come_in_the_order_to_mend_them_however_they_were_found() -> None:
    findings = [
        find("WG301", "broken-build", effect="broken"),
        find("WG801", "container"),
        find("WG101", "driver"),
        find("WG201", "library"),
        find("WG501", "memory", severity="warning", effect="none"),
        find("WG302", "hint", severity="info", effect="none"),
    ]
    for order in itertools.permutations(findings):
        assert [finding.cause for finding in arrange(order)] == [
            "broken-build",
            "container",
            "driver",
            "library",
            "memory",
            "hint",
        ]


def test_what_a_cause_explains_stands_right_behind_it() -> None:
    other = make("WG103", "other")
    findings = [
        find("WG404", "leaf"),
        find("WG103", "other"),
        find("WG201", "middle"),
        find("WG101", "root"),
    ]
    causes = {**CHAIN, **by_code(other)}
    for order in itertools.permutations(findings):
        arranged = arrange(fold(order, causes))
        assert [finding.cause for finding in arranged] == ["root", "leaf", "middle", "other"]


def arranged(*findings: Finding) -> list[tuple[str, str]]:
    return [(finding.cause, finding.subject) for finding in arrange(findings)]


def under(code: str, finding: Finding) -> Finding:
    return finding._replace(explained_by=code)


def test_each_of_two_roots_with_one_code_is_followed_by_what_concerns_its_own_framework() -> None:
    torch, jax = find("WG101", "root", "torch"), find("WG101", "root", "jax")
    follows_torch, follows_jax = (
        under("WG101", find("WG404", "leaf", subject)) for subject in ("torch", "jax")
    )
    assert arranged(follows_jax, follows_torch, torch, jax) == [
        ("root", "torch"),
        ("leaf", "torch"),
        ("root", "jax"),
        ("leaf", "jax"),
    ]


def test_what_concerns_the_machine_is_shown_once_although_two_roots_have_its_code() -> None:
    torch, jax = find("WG101", "root", "torch"), find("WG101", "root", "jax")
    shared = under("WG101", find("WG404", "leaf", MACHINE))
    assert arranged(torch, jax, shared) == [("root", "torch"), ("leaf", MACHINE), ("root", "jax")]


def test_a_finding_is_not_lost_beside_a_second_root_about_its_framework() -> None:
    driver, build = find("WG101", "driver", MACHINE), find("WG301", "build", "torch")
    leaf = under("WG101", find("WG404", "leaf", "torch"))
    assert arranged(driver, build, leaf) == [
        ("driver", MACHINE),
        ("leaf", "torch"),
        ("build", "torch"),
    ]


def test_a_finding_is_not_lost_where_its_roots_cause_is_a_follower_elsewhere() -> None:
    torch, build = find("WG101", "root", "torch"), find("WG301", "build", "jax")
    follower = under("WG301", find("WG101", "root", "jax"))
    leaf = under("WG101", find("WG404", "leaf", "jax"))
    assert len(arranged(torch, build, follower, leaf)) == 4


def test_a_fault_of_the_backend_explains_what_keras_does_and_not_the_reverse() -> None:
    faults = [find("WG101", "root", "tensorflow"), find("WG201", "middle", "keras")]
    folds = [finding.explained_by for finding in fold(faults, CHAIN, {"keras": "tensorflow"})]
    assert folds == [None, "WG101"]
    reverse = [find("WG101", "root", "keras"), find("WG201", "middle", "tensorflow")]
    folds = [finding.explained_by for finding in fold(reverse, CHAIN, {"keras": "tensorflow"})]
    assert folds == [None, None]


def test_a_report_folds_what_keras_does_under_the_fault_of_its_backend() -> None:
    causes = [
        make("WG101", "root", find("WG101", "root", "tensorflow"), explains=("middle",)),
        make("WG201", "middle", find("WG201", "middle", "keras")),
    ]
    for backend, folds in (("tensorflow", "WG101"), ("torch", None)):
        seen = machine(f"""
            probes_left_out = "--no-probe"
            [target.frameworks.keras.keras]
            backend = "{backend}"
        """)
        report = diagnose(seen, causes)
        assert {f.cause: f.explained_by for f in report.findings}["middle"] == folds


def test_each_step_of_a_chain_has_to_concern_the_step_before() -> None:
    findings = [
        find("WG101", "root", "jax"),
        find("WG201", "middle", "torch"),
        find("WG404", "leaf", MACHINE),
    ]
    assert folded(findings, CHAIN) == {"root": None, "middle": None, "leaf": "WG201"}


def test_of_two_explanations_the_one_about_the_same_framework_is_chosen() -> None:
    second = make("WG102", "second", explains=("middle",))
    findings = [
        find("WG101", "root", "jax"),
        find("WG102", "second", "torch"),
        find("WG201", "middle", MACHINE),
        find("WG404", "leaf", "torch"),
    ]
    assert folded(findings, {**CHAIN, **by_code(second)})["leaf"] == "WG102"


def test_what_follows_from_a_circle_comes_to_an_end_too() -> None:
    one = make("WG101", "one", explains=("other", "leaf"))
    other = make("WG102", "other", explains=("one",))
    findings = [find("WG101", "one"), find("WG102", "other"), find("WG404", "leaf")]
    assert len(arrange(fold(findings, by_code(one, other, LEAF)))) == 3


def test_what_a_probe_has_shown_is_not_taken_back_by_a_probe() -> None:
    finding = find("WG201", "middle", "torch")
    shown = finding._replace(evidence=(Evidence("probe", "the probe", "it failed"),))
    assert reconcile([shown], machine()) == [shown]
    read = finding._replace(evidence=(Evidence("machine", "a file", "it is old"),))
    assert reconcile([read], machine()) != [read]


def test_a_framework_that_computed_on_the_gpu_takes_back_an_error_about_it() -> None:
    (taken_back,) = reconcile([find("WG201", "middle", "torch")], machine())
    assert taken_back.severity == "warning"
    assert taken_back.confidence == "possible"
    assert "the probe computed on the GPU" in taken_back.message


@each(
    ("finding", "toml"),
    [
        (find("WG201", "middle", "torch"), 'start = "no-gpu"'),
        (find("WG201", "middle", "torch"), "[probes.torch]\noperations = []"),
        (find("WG201", "middle", "torch"), 'probes_left_out = "--no-probe"'),
        (find("WG101", "root", MACHINE), 'probes_left_out = "--no-probe"'),
        (find("WG201", "middle", "cupy"), ""),
        (find("WG201", "middle", "torch", severity="warning"), ""),
        (find("WG201", "middle", "torch", severity="info"), ""),
    ],
)
def test_nothing_else_is_taken_back(finding: Finding, toml: str) -> None:
    assert reconcile([finding], machine(toml)) == [finding]


def test_a_wrong_result_on_the_gpu_proves_nothing() -> None:
    wrong = machine(
        """
        [probes.torch]
        [[probes.torch.operations]]
        operation = "matmul"
        requested = "cuda:0"
        ran_on = "cuda:0"
        kind = "gpu"
        correct = false
        """
    )
    finding = find("WG201", "middle", "torch")
    assert reconcile([finding], wrong) == [finding]


def test_an_error_without_effect_on_the_framework_is_not_taken_back() -> None:
    finding = find("WG405", "harmless", "torch", effect="none")
    assert reconcile([finding], machine()) == [finding]


def test_an_error_about_the_machine_is_taken_back_by_any_framework_on_the_gpu() -> None:
    one = machine('only = ["torch", "jax"]\n[probes.jax]\noperations = []')
    (taken_back,) = reconcile([find("WG101", "root", MACHINE)], one)
    assert taken_back.severity == "warning"


@each(
    ("causes", "toml", "code"),
    [
        ([], "", 0),
        ([make("WG901", "fine")], "", 0),
        ([make("WG901", "hint", find("WG901", "hint", severity="info"))], "", 0),
        ([make("WG901", "odd", find("WG901", "odd", severity="warning"))], "", 1),
        ([make("WG901", "bad", find("WG901", "bad", "cupy"))], "", 1),
        ([make("WG901", "unclear", GAP)], "", 4),
        ([make("WG901", "crashing", RuntimeError("bug"))], "", 4),
        ([make("WG901", "both", find("WG901", "both", severity="info"), GAP)], "", 4),
        ([make("WG901", "both", find("WG901", "both", "cupy"), GAP)], "", 1),
        ([make("WG901", "elsewhere", NotApplicable("a GPU"))], "", 0),
        ([], 'probes_left_out = "--no-probe"', 4),
        ([], 'start = "no-gpu"', 0),
    ],
)
def test_the_exit_code_says_found_fine_or_undetermined(
    causes: list[Cause], toml: str, code: int
) -> None:
    assert diagnose(machine(toml), causes).exit_code == code


@pytest.mark.parametrize(("start", "verdict"), [("healthy", "gpu"), ("no-gpu", "no-gpu")])
def test_the_whole_catalogue_has_nothing_against_a_healthy_machine(
    start: str, verdict: str
) -> None:
    report = diagnose(machine(f'start = "{start}"'), catalogue())
    assert report.findings == ()
    assert [o.cause for o in report.undetermined] == []
    assert report.verdict == verdict
    assert report.exit_code == 0
    assert len(report.outcomes) == len(machine_causes())


def test_no_cause_crashes_or_fires_on_a_machine_of_which_nothing_is_known() -> None:
    report = diagnose(machine("nothing_seen = true"), catalogue())
    assert [o for o in report.outcomes if o.status == "crashed"] == []
    assert report.findings == ()
    assert report.verdict == "unknown"
    assert report.exit_code == 4


def test_the_report_keeps_the_snapshot_it_was_made_from() -> None:
    snapshot = machine()
    assert diagnose(snapshot, catalogue()).snapshot is snapshot
    assert isinstance(snapshot.target.frameworks, Known)
