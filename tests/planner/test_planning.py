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
from whygpu.model.install_plan import PlanAnswer
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Absent, Unknown
from whygpu.planner.candidates import Table
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.wishes import parse, parse_all


def plan(wishes: str, where: MachineSpec | None = None, table: Table = TABLE) -> PlanAnswer:
    return make_plan(where or machine(), parse_all(wishes.split()), table)


def chosen(answer: PlanAnswer) -> list[str]:
    return [item.requirement for item in answer.plan.chosen] if answer.plan else []


def reasons(answer: PlanAnswer) -> dict[str, tuple[str | None, str]]:
    return {v.candidate.requirement: (v.breaks, v.reason) for v in answer.candidates}


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
    answer = plan("tensorflow", machine(gpu=RTX_5090))
    assert answer.exit_code == 0
    assert answer.plan is not None
    assert "expect minutes" in answer.plan.verdicts[0].notes[0]


def test_a_release_that_does_not_exist_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match=r"tensorflow==2\.99\.\*: no such release"):
        plan("tensorflow==2.99")


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
        "defect",
        "conflict",
    ]
    assert [check.constraint for check in answer.broken] == ["driver"]


def test_why_not_in_company() -> None:
    chain = why_not(machine(), parse("tensorflow==2.15"), parse_all(["jax"]), TABLE).chain
    assert chain[-1].outcome == "breaks"
    assert chain[-1].reason.startswith("needs nvidia-cudnn-cu12==8.9.4.25; jax-cuda12-plugin")
    chain = why_not(machine(), parse("tensorflow==2.20"), parse_all(["jax"]), TABLE).chain
    assert chain[-1].reason == "is compatible with jax 0.7.2"


@each("wishes", ["tensorflow", "torch", "jax", "keras"])
def test_a_fact_of_the_machine_that_is_unknown_takes_the_tick(wishes: str) -> None:
    answer = plan(wishes)
    assert answer.standing == "fine"
    assert answer.plan is not None
    newest = answer.plan.chosen[0]
    for fact in MachineSpec._fields:
        where = machine()._replace(**{fact: Unknown("it could not be looked at")})
        if fact == "glibc" and not any(part.glibc for part in newest.parts):
            continue  # a release that needs no certain glibc rests on nothing there
        assert plan(wishes, where).standing == "unknown", fact
