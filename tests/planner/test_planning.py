"""The newest releases that fit and go together, or what stands in their way."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.planner.small_table import (
    GTX_1080,
    RTX_5090,
    TABLE,
    machine,
    release,
    table_of,
    tensorflow,
)
from whygpu.errors import UsageError
from whygpu.model.install_plan import PlanAnswer, TableEdition
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Absent, Unknown
from whygpu.model.release import Release
from whygpu.planner import resolve
from whygpu.planner.candidates import Table
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.wishes import parse, parse_all


def plan(wishes: str, where: MachineSpec | None = None, table: Table = TABLE) -> PlanAnswer:
    return make_plan(where or machine(), parse_all(wishes.split()), table)


def chosen(answer: PlanAnswer) -> list[str]:
    return [item.requirement for item in answer.plan.chosen] if answer.plan else []


def reasons(answer: PlanAnswer) -> dict[str, tuple[str | None, str]]:
    return {v.candidate.build: (v.breaks, v.reason) for v in answer.candidates}


OLD_GPU = machine(gpu=GTX_1080)
"""No failure of any release is on record for it."""


@each(
    ("wishes", "where", "expected"),
    [
        ("tensorflow", machine(), ["tensorflow[and-cuda]==2.20.0"]),
        ("tensorflow", machine(driver="470.82"), ["tensorflow==2.12.1"]),
        ("tensorflow", machine(python="3.10", platform="win_amd64"), ["tensorflow==2.10.1"]),
        ("tensorflow==2.15", machine(), ["tensorflow[and-cuda]==2.15.1"]),
        ("jax", machine(), ["jax[cuda13]==0.7.2"]),
        ("jax", machine(driver="570.86"), ["jax[cuda12]==0.7.2"]),
        ("torch", machine(), ["torch==2.11.0"]),
        ("keras", machine(), ["keras==3.12.0", "tensorflow[and-cuda]==2.20.0"]),
    ],
)
def test_the_newest_that_fits(wishes: str, where: MachineSpec, expected: list[str]) -> None:
    answer = plan(wishes, where)
    assert chosen(answer) == expected
    assert answer.exit_code == 0


def test_wishes_that_share_files_get_builds_for_one_cuda_release() -> None:
    answer = plan("tensorflow jax torch")
    assert chosen(answer) == [
        "tensorflow[and-cuda]==2.20.0",
        "jax[cuda12]==0.7.2",
        "torch==2.8.0",
    ]
    assert answer.plan is not None
    # torch pins it, the others take what it pins.
    assert ("nvidia-cudnn-cu12", "9.10.2.21") in answer.plan.solution.packages
    assert reasons(answer)["torch==2.11.0"] == (
        "conflict",
        "needs nvidia-cudnn-cu13; jax-cuda12-plugin 0.7.2 needs nvidia-cudnn-cu12: "
        "these install the same files (nvidia/cudnn)",
    )


def test_the_order_of_wishes_does_not_decide_what_is_possible() -> None:
    forward, backward = plan("tensorflow jax torch"), plan("torch jax tensorflow")
    assert sorted(chosen(forward)) == sorted(chosen(backward))


def test_the_first_wish_gives_way_before_another_is_left_far_behind() -> None:
    rows = (
        *(tensorflow(f"2.{n}.0", "3.11", "12.5.1", f"numpy=={p}") for n, p in ((19, 2), (20, 1))),
        *(
            release("torch", f"{n}.0", cuda="12.8", requires=(f"numpy=={p}",))
            for n, p in ((1, 1), (2, 2), (3, 2), (4, 2))
        ),
        release("numpy", "1"),
        release("numpy", "2"),
    )
    answer = plan("tensorflow torch", table=table_of(rows))
    assert chosen(answer) == ["tensorflow==2.19.0", "torch==4.0"]


def torch_and_tensorflow(torch: str, tensorflows: str) -> Table:
    """Releases of both, oldest first, each with the release of a package that it needs."""
    return table_of(
        [
            *(
                release("torch", f"{n}.0", cuda="12.8", requires=(f"six=={six}",))
                for n, six in enumerate(torch, 1)
            ),
            *(
                tensorflow(f"2.{n}.0", "3.11", "12.5.1", f"six=={six}")
                for n, six in enumerate(tensorflows, 18)
            ),
            *(release("six", version) for version in "123"),
        ]
    )


@each(
    ("torch", "tensorflows", "expected"),
    [
        # The other wish is one release behind, and not in its older half.
        ("1112", "21", ["torch==4.0", "tensorflow==2.18.0"]),
        ("1121", "32", ["torch==3.0", "tensorflow==2.19.0"]),
        ("12", "1121", ["torch==2.0", "tensorflow==2.20.0"]),
        ("1112", "2111", ["torch==3.0", "tensorflow==2.21.0"]),
        # Both ways leave one of them far behind: the wish that is less far behind gives way.
        ("2333331", "133332", ["torch==7.0", "tensorflow==2.18.0"]),
        ("233331", "1333332", ["torch==1.0", "tensorflow==2.24.0"]),
    ],
)
def test_how_far_behind_a_wish_may_be_left(
    torch: str, tensorflows: str, expected: list[str]
) -> None:
    answer = plan("torch tensorflow", OLD_GPU, torch_and_tensorflow(torch, tensorflows))
    assert chosen(answer) == expected


def test_the_conflict_is_that_of_the_newest_releases() -> None:
    table = torch_and_tensorflow("12", "33")
    assert plan("torch tensorflow", table=table).conflict == (
        "torch 2.0 needs six==2; tensorflow 2.19.0 needs six==3"
    )


def test_a_conflict_in_metadata_is_named_before_one_of_files_but_only_of_the_newest() -> None:
    rows = [
        release("torch", "1.0", cuda="12.8", requires=("numpy==1",)),
        release("torch", "2.0", cuda="13.0", requires=("nvidia-cudnn-cu13",)),
        tensorflow("2.20.0", "3.11", "12.5.1", "nvidia-cudnn-cu12", "numpy==2"),
        *(release("numpy", version) for version in "12"),
        *(release(f"nvidia-cudnn-cu{cuda}", "9.9") for cuda in (12, 13)),
    ]
    answer = plan("torch tensorflow", table=table_of(rows))
    assert "these install the same files (nvidia/cudnn)" in answer.conflict


TWO_CUDAS = [
    tensorflow("2.20.0", "3.11", "12.5.1", "nvidia-cudnn-cu12"),
    release("torch", "2.11.0", cuda="13.0", requires=("nvidia-cudnn-cu13",)),
    *(release(f"nvidia-cudnn-cu{cuda}", "9.9") for cuda in (12, 13)),
]
"""The default build of PyTorch shares files with TensorFlow's packages; others were not read."""


def test_builds_that_were_not_read_are_a_guess_and_no_reason_to_say_that_nothing_fits() -> None:
    wishes, table = parse_all(["tensorflow", "torch"]), table_of(TWO_CUDAS)
    assert make_plan(machine(), wishes, table).plan is None
    answer = make_plan(machine(), wishes, table, may_guess=True)
    assert answer.plan is not None
    assert answer.exit_code == 4
    (index,) = (item.torch_index for item in answer.plan.chosen if item.torch_index)
    # An index for CUDA 13 would bring the files of nvidia-cudnn-cu13.
    assert index.startswith("cu12")
    reason = reasons(answer)["torch==2.11.0"][1]
    assert reason.endswith("these install the same files (nvidia/cudnn)")


def test_why_not_does_not_refuse_what_a_build_that_was_not_read_may_allow() -> None:
    answer = why_not(machine(), parse("tensorflow"), [parse("torch")], table_of(TWO_CUDAS))
    last = answer.chain[-1]
    assert (last.constraint, last.outcome) == ("conflict", "unchecked")
    assert last.reason.startswith("may be compatible with torch 2.11.0: the requirements of")


def test_a_resolver_that_gives_up_on_what_is_excluded_leaves_the_reason_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolve, "MOST_ROUNDS", 1)
    answer = plan("torch tensorflow", OLD_GPU, torch_and_tensorflow("1", "2"))
    assert answer.plan is None
    assert answer.conflict == "no combination was found"
    assert set(reasons(answer).values()) == {(None, "")}


def test_a_release_with_a_defect_is_better_than_no_plan() -> None:
    rows = [
        tensorflow("2.20.0", "3.11", "12.5.1", "numpy==1"),
        tensorflow("2.21.0", "3.11", "12.5.1", "numpy==2", unsearched=("cusolver",)),
        release("torch", "2.8.0", cuda="12.8", requires=("numpy==2",)),
        *(release("numpy", version) for version in "12"),
    ]
    answer = plan("tensorflow torch", table=table_of(rows))
    assert chosen(answer) == ["tensorflow==2.21.0", "torch==2.8.0"]
    assert answer.standing == "attention"


def test_what_cannot_be_installed_says_so_even_if_it_is_old_or_has_a_defect() -> None:
    missing = "numpy==9.9"
    rows = [
        tensorflow("2.19.0", "3.11", "12.5.1", missing),
        tensorflow("2.20.0", "3.11", "12.5.1"),
        tensorflow("2.21.0", "3.11", "12.5.1", missing, unsearched=("cusolver",)),
        release("numpy", "1.0"),
    ]
    found = reasons(plan("tensorflow", table=table_of(rows)))
    conflict = ("conflict", "needs numpy==9.9, which has no wheel for this machine")
    assert found["tensorflow==2.19.0"] == found["tensorflow==2.21.0"] == conflict


def test_a_keras_that_does_not_fit_the_machine_is_not_refused_for_its_backend() -> None:
    rows = [
        release("keras", "2.15.0", requires_python="<3.11"),
        release("torch", "2.8.0", cuda="12.8"),
    ]
    answer = plan("keras torch", table=table_of(rows))
    assert reasons(answer)["keras==2.15.0"] == ("python", "needs Python <3.11, you have 3.11")
    assert answer.conflict == ""


def test_a_conflict_names_both_sides() -> None:
    answer = plan("tensorflow==2.15 jax")
    assert answer.plan is None
    assert answer.exit_code == 1
    assert answer.conflict == (
        "tensorflow 2.15.1 needs nvidia-cudnn-cu12==8.9.4.25; "
        "jax-cuda12-plugin 0.7.2 needs nvidia-cudnn-cu12<10.0,>=9.8"
    )
    assert reasons(answer)["jax[cuda12]==0.7.2"] == (
        "conflict",
        "its jax-cuda12-plugin needs nvidia-cudnn-cu12<10.0,>=9.8; "
        "tensorflow 2.15.1 needs nvidia-cudnn-cu12==8.9.4.25",
    )


def old_torch(*keras: str) -> Table:
    """What a machine with an old driver can have of PyTorch, and these releases of Keras."""
    torch = release("torch", "2.0.1", cuda="11.7", architectures=("sm_86",))
    return table_of([torch, *(release("keras", version) for version in keras)])


def test_keras_is_one_that_works_on_the_pytorch_that_fits() -> None:
    answer = plan("torch keras", table=old_torch("2.15.0", "3.1.1", "3.12.0"))
    assert chosen(answer) == ["torch==2.0.1", "keras==3.1.1"]
    breaks, reason = reasons(answer)["keras==3.12.0"]
    assert breaks == "conflict"
    assert reason.startswith("needs torch>=2.1")


@pytest.mark.parametrize(("backend", "name"), [("torch", "PyTorch"), ("jax", "JAX")])
def test_keras_2_has_one_backend_only(backend: str, name: str) -> None:
    answer = plan(f"keras==2.15 {backend}")
    assert answer.plan is None
    assert answer.exit_code == 1
    assert answer.conflict == f"keras 2.15.0 has no {name} backend; Keras 3 has"
    chain = why_not(machine(), parse("keras==2.15"), parse_all([backend]), TABLE).chain
    assert chain[-1] == ("conflict", "breaks", f"has no {name} backend; Keras 3 has")


def test_keras_2_beside_pytorch_is_fine_where_tensorflow_is_its_backend() -> None:
    torch = release("torch", "2.4.0", cuda="12.1", architectures=("sm_86",))
    rows = [torch, release("keras", "2.15.0"), tensorflow("2.15.1", "3.11", "12.2")]
    answer = plan("keras==2.15 torch tensorflow", table=table_of(rows))
    assert chosen(answer) == ["keras==2.15.0", "torch==2.4.0", "tensorflow==2.15.1"]


def test_a_release_with_a_defect_is_avoided_and_taken_only_when_asked_for() -> None:
    assert reasons(plan("tensorflow"))["tensorflow[and-cuda]==2.21.0"][0] == "defect"
    asked = plan("tensorflow==2.21")
    assert chosen(asked) == ["tensorflow[and-cuda]==2.21.0"]
    assert (asked.standing, asked.exit_code) == ("attention", 0)
    assert plan("tensorflow==2.20").standing == "fine"


def test_cudnn_that_dropped_the_gpu_is_not_taken_and_the_command_pins_one_that_serves_it() -> None:
    answer = plan("tensorflow", machine(gpu=GTX_1080))
    assert answer.plan is not None
    assert ("nvidia-cudnn-cu12", "9.10.2.21") in answer.plan.solution.packages
    assert answer.plan.solution.pins == (
        (
            "nvidia-cudnn-cu12==9.10.2.21",
            "cuDNN 9.11 and newer need compute capability 7.5",
        ),
    )
    assert plan("tensorflow").plan is not None
    assert plan("tensorflow").plan.solution.pins == ()  # type: ignore[union-attr]


def test_a_limit_that_metadata_leave_open_is_pinned() -> None:
    answer = plan("tensorflow==2.10", machine(python="3.10"))
    assert answer.plan is not None
    assert ("numpy", "1.26.4") in answer.plan.solution.packages
    assert answer.plan.solution.pins == (
        ("numpy<2", "tensorflow 2.10.1: its binaries were built for NumPy 1"),
    )


def test_a_pin_is_named_once_for_a_release_with_an_extra() -> None:
    extra = 'nvidia-cublas-cu12; extra == "and-cuda"'
    rows = (
        tensorflow("2.10.1", "3.11", "11.2", "numpy>=1.20", extra),
        *(release("numpy", version) for version in ("1.26.4", "2.1.3")),
        release("nvidia-cublas-cu12", "12.5"),
    )
    answer = plan("tensorflow", table=table_of(rows))
    assert chosen(answer) == ["tensorflow[and-cuda]==2.10.1"]
    assert answer.plan is not None
    assert [requirement for requirement, _ in answer.plan.solution.pins] == ["numpy<2"]


def test_a_pinned_cudnn_that_dropped_the_gpu_is_a_conflict() -> None:
    rows = (
        tensorflow("2.20.0", "3.11", "12.5.1", "nvidia-cudnn-cu12==9.27.0.42"),
        release("nvidia-cudnn-cu12", "9.27.0.42"),
    )
    answer = plan("tensorflow", machine(gpu=GTX_1080), table_of(rows))
    assert reasons(answer)["tensorflow==2.20.0"] == (
        "conflict",
        "needs nvidia-cudnn-cu12==9.27.0.42, which does not support this GPU",
    )


def test_a_release_that_another_one_excludes_is_named_as_requested() -> None:
    answer = plan("keras==2.15 tensorflow==2.20")
    assert answer.conflict == ("keras 2.15.0 is requested; tensorflow 2.20.0 needs keras>=3.10.0")


def test_a_limit_on_a_package_outside_the_table_is_pinned() -> None:
    rows = (tensorflow("2.10.1", "3.10", "11.2", "numpy>=1.20"),)
    answer = plan("tensorflow", machine(python="3.10"), table_of(rows))
    assert answer.plan is not None
    assert [requirement for requirement, _ in answer.plan.solution.pins] == ["numpy<2"]


def test_a_limit_that_metadata_declare_needs_no_pin() -> None:
    answer = plan("tensorflow==2.12")
    assert answer.plan is not None
    assert answer.plan.solution.pins == ()


def test_a_requirement_with_no_wheel_for_this_python_is_a_conflict() -> None:
    rows = (
        tensorflow("2.20.0", "3.11", "12.5.1", "numpy==9.9"),
        release("numpy", "9.9", pythons=("3.12",)),
    )
    answer = plan("tensorflow", table=table_of(rows))
    assert answer.plan is None
    assert reasons(answer)["tensorflow==2.20.0"] == (
        "conflict",
        "needs numpy==9.9, which has no wheel for this machine",
    )


def test_an_extra_that_asks_for_what_the_index_does_not_have_is_a_conflict() -> None:
    lines = 'tensorrt-libs==8.6.1; extra == "and-cuda"'
    rows = (
        tensorflow("2.14.1", "3.11", "11.8"),
        tensorflow("2.15.0", "3.11", "12.2", lines),
    )
    answer = plan("tensorflow", table=table_of(rows))
    assert chosen(answer) == ["tensorflow==2.14.1"]
    assert reasons(answer)["tensorflow[and-cuda]==2.15.0"] == (
        "conflict",
        "needs tensorrt-libs==8.6.1, which is not on the package index",
    )


def test_packages_that_are_not_in_the_table_are_open_to_any_version() -> None:
    rows = (tensorflow("2.20.0", "3.11", "12.5.1", "absl-py>=1.0,<2", "astunparse==99", "six>1"),)
    assert chosen(plan("tensorflow", table=table_of(rows))) == ["tensorflow==2.20.0"]


def test_ranges_that_do_not_overlap_conflict_even_for_packages_outside_the_table() -> None:
    rows = (
        tensorflow("2.12.1", "3.11", "11.8", "typing-extensions<4.6,>=3.6"),
        release("torch", "2.2.0", cuda="11.8", requires=("typing-extensions>=4.8.0",)),
    )
    answer = plan("tensorflow torch", table=table_of(rows))
    assert answer.conflict == (
        "tensorflow 2.12.1 needs typing-extensions<4.6,>=3.6; "
        "torch 2.2.0 needs typing-extensions>=4.8.0"
    )


def test_a_marker_decides_for_the_machine_that_is_planned_for() -> None:
    lines = ('numpy<2; python_version < "3.12"', 'numpy>=2; python_version >= "3.12"')
    rows = (
        tensorflow("2.20.0", "3.11 3.12", "12.5.1", *lines),
        release("numpy", "1.26.4"),
        release("numpy", "2.1.3"),
    )
    table = table_of(rows)
    for python, numpy in (("3.11", "1.26.4"), ("3.12", "2.1.3")):
        answer = plan("tensorflow", machine(python=python), table)
        assert answer.plan is not None
        assert ("numpy", numpy) in answer.plan.solution.packages


@pytest.mark.parametrize("missing", [Unknown("nobody asked"), Absent("the PCI bus")])
def test_a_missing_gpu_gives_a_plan_that_is_not_certain(missing: Unknown | Absent) -> None:
    answer = plan("tensorflow", machine()._replace(gpus=missing))
    assert chosen(answer) == ["tensorflow[and-cuda]==2.20.0"]
    assert answer.exit_code == 4
    assert len(answer.unchecked) == 1


def test_code_that_has_to_be_compiled_is_a_note_and_no_obstacle() -> None:
    b200 = PlannedGpu("B200", (10, 0), "data-center")
    answer = plan("tensorflow", machine(gpu=b200))
    assert answer.exit_code == 0
    assert answer.plan is not None
    assert "expect minutes" in answer.plan.verdicts[0].notes[0]


def test_what_is_likely_to_fail_is_the_last_choice() -> None:
    """2.20 is reported to fail on this GPU, and 2.21, which has a defect too, is likely to."""
    answer = plan("tensorflow", machine(gpu=RTX_5090))
    assert chosen(answer) == ["tensorflow[and-cuda]==2.21.0"]
    assert answer.plan is not None
    assert answer.plan.verdicts[0].likely_failure
    assert answer.standing == "unknown"
    breaks, reason = reasons(answer)["tensorflow[and-cuda]==2.20.0"]
    assert breaks == "reports"
    assert reason.startswith("is reported not to work on GeForce RTX 5090 (12.0): CUDA_ERROR_")
    turing = machine(python="3.7", gpu=PlannedGpu("T4", (7, 5), "data-center"))
    rows = [
        tensorflow(version, "3.7", cuda, package="tensorflow-gpu", unsearched=unsearched)
        for version, cuda, unsearched in (("1.12.0", "9.0", ()), ("1.10.0", "9.0", ("cublas",)))
    ]
    assert chosen(plan("tensorflow", turing, table_of(rows))) == ["tensorflow-gpu==1.12.0"]


def test_a_release_that_does_not_exist_is_wrong_usage() -> None:
    known = r"tensorflow==2\.18\.99: no such release in the table; it has 1.15.5 to 2.21.0"
    with pytest.raises(UsageError, match=known):
        plan("tensorflow==2.18.99")
    with pytest.raises(UsageError, match="torch: no such release in the table; it has none"):
        plan("torch", table=table_of([]))


@each("wish", ["tensorflow==2.99", "tensorflow>2.21", "tensorflow~=3.0", "tensorflow>=2.22,<3"])
def test_a_release_after_the_table_is_said_to_be_newer(wish: str) -> None:
    table = Table(TABLE.versions, TableEdition("2026-01-02", "shipped"))
    newer = "newer than this table of 2026-01-02, which ends at 2.21.0"
    with pytest.raises(UsageError, match=newer):
        plan(wish, table=table)


def unread(version: str) -> Release:
    return tensorflow(version, "3.11", "", architectures=(), cudnn="", unread="nobody has read it")


def test_a_release_whose_build_is_unknown_is_chosen_only_if_nothing_known_fits() -> None:
    table = table_of([tensorflow("2.20.0", "3.11", "12.5.1"), unread("2.22.0")])
    answer = plan("tensorflow", table=table)
    assert chosen(answer) == ["tensorflow==2.20.0"]
    assert answer.exit_code == 0
    assert answer.candidates[0].fits
    answer = plan("tensorflow>2.20", table=table)
    assert chosen(answer) == ["tensorflow==2.22.0"]
    assert answer.exit_code == 4
    (reason,) = answer.unchecked
    assert reason == "was not checked against the driver and the GPU: nobody has read it"


def test_a_release_whose_build_is_unknown_must_still_be_installable() -> None:
    newer = unread("2.22.0")._replace(pythons=("3.13",))
    answer = plan("tensorflow", table=table_of([newer]))
    assert [verdict.breaks for verdict in answer.candidates] == ["python"]


def test_why_not_goes_through_the_whole_chain() -> None:
    where = machine(driver="470.82", gpu=RTX_5090)
    answer = why_not(where, parse("tensorflow==2.20"), (), TABLE)
    assert answer.candidate.version == "2.20.0"
    assert [check.constraint for check in answer.chain] == [
        "python",
        "platform",
        "glibc",
        "build",
        "driver",
        "architecture",
        "reports",
        "defect",
        "conflict",
    ]
    assert [check.constraint for check in answer.broken] == ["driver", "reports"]


def test_why_not_in_company() -> None:
    chain = why_not(machine(), parse("tensorflow==2.15"), parse_all(["jax"]), TABLE).chain
    assert chain[-1][:2] == ("conflict", "breaks")
    assert chain[-1].reason.startswith("needs nvidia-cudnn-cu12==8.9.4.25; jax-cuda12-plugin")
    chain = why_not(machine(), parse("tensorflow==2.20"), parse_all(["jax"]), TABLE).chain
    assert chain[-1] == ("conflict", "holds", "is compatible with jax 0.7.2")


@each(
    ("wish", "where", "broken"),
    [
        ("tensorflow==2.20", machine(python="3.14"), "python"),
        ("tensorflow==2.20", machine(platform="win_amd64"), "platform"),
        ("tensorflow==2.21", machine(glibc="2.17"), "glibc"),
    ],
)
def test_what_cannot_be_installed_is_not_checked_for_conflicts(
    wish: str, where: MachineSpec, broken: str
) -> None:
    answer = why_not(where, parse(wish), (), TABLE)
    assert broken in [check.constraint for check in answer.broken]
    assert "conflict" not in [check.constraint for check in answer.chain]


@each(
    ("others", "outcome", "reason"),
    [
        ([], "holds", "has all its requirements available"),
        (["tensorflow==2.12"], "holds", "has all its requirements available"),
        (["torch", "jax"], "holds", "is compatible with torch 2.8.0 and jax 0.7.2"),
        (["cupy"], "unchecked", "was not checked: no release of cupy fits this machine"),
    ],
)
def test_why_not_says_what_the_release_goes_with(
    others: list[str], outcome: str, reason: str
) -> None:
    cupy = release("cupy-cuda12x", "13.6.0", pythons=("3.9",))
    table = Table(lambda package: [cupy] if package == cupy.package else TABLE.versions(package))
    wishes = parse_all(others) if others else ()
    chain = why_not(machine(), parse("tensorflow==2.20"), wishes, table).chain
    assert chain[-1] == ("conflict", outcome, reason)


@each("wishes", ["tensorflow", "torch", "jax", "keras"])
def test_a_fact_of_the_machine_that_is_unknown_takes_the_tick(wishes: str) -> None:
    answer = plan(wishes)
    assert answer.standing == "fine"
    assert answer.plan is not None
    newest = answer.plan.chosen[0]
    for fact in MachineSpec._fields:
        if fact == "free_threaded":
            continue  # it is known if the Python is
        where = machine()._replace(**{fact: Unknown("it could not be looked at")})  # type: ignore[arg-type]
        if fact == "glibc" and not any(part.glibc for part in newest.parts):
            continue  # a release that needs no certain glibc rests on nothing there
        assert plan(wishes, where).standing == "unknown", fact
