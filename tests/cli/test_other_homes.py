"""~ is one's own home: a path in another's stays whole where it is pasted or was typed."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.cases import each
from whygpu.cli import output
from whygpu.cli.main import main
from whygpu.model.commands import shell_text
from whygpu.model.finding import Remedy
from whygpu.model.remedy import Action, Install, LinkFile, PrependPath, a_path, shell_script
from whygpu.model.target import Installer

OTHERS = "/home/somebody-else/v"


class Shown(NamedTuple):
    installer: Installer
    remedy: Remedy


@each(
    "action",
    [
        Install(("jax",)),
        PrependPath("LD_LIBRARY_PATH", (f"{OTHERS}/lib",)),
        LinkFile((f"{OTHERS}/a.so",), f"{OTHERS}/lib"),
        shell_script("ls ", a_path(f"{OTHERS}/lib")),
    ],
)
def test_a_command_for_another_users_environment_names_that_one(action: Action) -> None:
    value = Shown(
        Installer(f"{OTHERS}/bin/python", "pip", False), Remedy(f"Mend {OTHERS}.", action)
    )
    shown = output.public(value)
    command = shell_text(shown.remedy.action, shown.installer)
    assert command is not None
    assert OTHERS in command
    assert "~" not in command
    assert shown.remedy.text == "Mend ~/v."


def test_a_secret_in_a_command_is_removed_all_the_same() -> None:
    key = "sk-proj-" + "a8Kq3Zr71Lw9Xc5Vb2Nm" * 2
    shown = output.public(Remedy("Look.", shell_script("ls ", a_path(f"{OTHERS}/{key}"))))
    assert key not in str(shown)


@each("option", [["--python", f"{OTHERS}/python"], [f"--python={OTHERS}/python"]])
def test_an_error_names_a_path_as_it_was_typed(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *option]) == 2
    assert f"{OTHERS}/python" in capsys.readouterr().err


def test_an_error_of_run_names_a_folder_of_what_was_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--report", f"{OTHERS}/no/r.json", "--", "true"]) == 125
    assert f"there is no folder {OTHERS}/no" in capsys.readouterr().err
