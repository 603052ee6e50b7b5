"""Which remedies whygpu carries out itself, and which are for a person."""

from __future__ import annotations

from pathlib import Path

from tests.cases import each
from whygpu.fixing.remedies import Environment, by_hand, steps_for
from whygpu.model.finding import Finding, Remedy
from whygpu.model.remedy import (
    Action,
    DropPath,
    Install,
    LinkFile,
    Pip,
    PrependPath,
    SetVariable,
    Steps,
    UnsetVariable,
    command_line,
    shell_script,
)
from whygpu.model.target import Installer

PLACE = Environment(
    "/env",
    Installer("/env/bin/python", "pip", False),
    {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""},
)


def finding(*actions: Action | None) -> Finding:
    remedies = tuple(Remedy(f"Remedy {n}.", action) for n, action in enumerate(actions))
    return Finding("WG203", "library-path-conflict", "error", "torch", "", (), remedies, "cpu")


@each(
    "action",
    [
        Install(("torch==2.10.0",)),
        LinkFile(("/env/lib/a.so",), "/env/lib/b"),
        PrependPath("LD_LIBRARY_PATH", ("/env/lib",)),
        DropPath("LD_LIBRARY_PATH", "/old", ()),
        SetVariable("ONEDNN_MAX_CPU_ISA", "AVX2"),
        Steps((Install(("a",)), SetVariable("B", "1"))),
    ],
)
def test_whygpu_can(action: Action) -> None:
    (step,) = steps_for(finding(action), PLACE)
    assert step.remedy.action == action
    assert by_hand([finding(action)], PLACE) == ()


def test_what_pip_would_check_afterwards_is_left_to_the_examination() -> None:
    (step,) = steps_for(finding(Steps((Install(("a",)), Pip(("check",))))), PLACE)
    assert step.remedy.action == Install(("a",))


@each(
    ("action", "why"),
    [
        (None, "there is no command"),
        (command_line("sudo modprobe nvidia"), "it needs root"),
        (shell_script("sudo apt-get install x && reboot"), "it needs root"),
        (command_line("nvidia-smi"), "outside the environment, or changes nothing"),
        (Pip(("check",)), "outside the environment, or changes nothing"),
        (LinkFile(("/env/a.so",), "/usr/lib"), "/usr/lib is outside the environment"),
        (LinkFile(("/env/a.so",), "/env/../usr"), "outside the environment"),
        (UnsetVariable(("CUDA_VISIBLE_DEVICES",)), "somebody has set CUDA_VISIBLE_DEVICES"),
        (SetVariable("JAX_PLATFORMS", "cuda"), "somebody has set JAX_PLATFORMS"),
        (SetVariable("CUDA_VISIBLE_DEVICES", "0"), "somebody has set CUDA_VISIBLE_DEVICES"),
        (Install(("a b; rm",)), "not safe"),
        (Steps((Install(("a",)), command_line("sudo reboot"))), "it needs root"),
    ],
)
def test_a_person_must(action: Action | None, why: str) -> None:
    assert steps_for(finding(action), PLACE) == ()
    (step,) = by_hand([finding(action)], PLACE)
    assert why in step.by_hand


def test_what_helps_only_one_run_is_no_step_for_anybody() -> None:
    once = finding(command_line("whygpu run -- python PROGRAM.py"))
    assert steps_for(once, PLACE) == ()
    assert by_hand([once], PLACE) == ()


def test_a_link_comes_before_a_variable() -> None:
    link, path = LinkFile(("/env/a",), "/env/b"), PrependPath("LD_LIBRARY_PATH", ("/env/a",))
    install = Install(("x",))
    steps = steps_for(finding(path, link, install), PLACE)
    assert [step.remedy.action for step in steps] == [link, path, install]


def test_a_link_into_the_environment_through_another_name(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "name").symlink_to(tmp_path / "env")
    place = PLACE._replace(prefix=str(tmp_path / "env"))
    assert steps_for(finding(LinkFile(("/a",), str(tmp_path / "name" / "lib"))), place)
