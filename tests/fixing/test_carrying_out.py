"""Remedies are carried out by a shell, exactly as they are shown."""

from __future__ import annotations

import os
from pathlib import Path

from tests.fixing.small import environment
from tests.patience import stopped_in_time
from whygpu.fixing.carrying_out import carry_out, variables_of
from whygpu.model.remedy import (
    DropPath,
    Install,
    LinkFile,
    PrependPath,
    SetVariable,
    Steps,
    UnsetVariable,
)
from whygpu.model.target import Installer

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home/ann", "LD_LIBRARY_PATH": "/old:/new"}


def installer(folder: Path) -> Installer:
    return Installer(f"{folder}/bin/python", "pip", False)


def test_variables_are_those_of_the_shell_afterwards(tmp_path: Path) -> None:
    action = Steps(
        (
            SetVariable("KERAS_BACKEND", "it's $HOME"),
            PrependPath("LD_LIBRARY_PATH", ("/first",)),
            UnsetVariable(("HOME",)),
        )
    )
    done = carry_out(action, installer(tmp_path), ENVIRON, str(tmp_path))
    assert done.failure == ""
    assert done.environ == {
        "PATH": ENVIRON["PATH"],
        "KERAS_BACKEND": "it's $HOME",
        "LD_LIBRARY_PATH": "/first:/old:/new",
    }
    assert variables_of(action) == ("KERAS_BACKEND", "LD_LIBRARY_PATH", "HOME")


def test_a_folder_leaves_a_search_path(tmp_path: Path) -> None:
    action = DropPath("LD_LIBRARY_PATH", "/old", ("/new",))
    done = carry_out(action, installer(tmp_path), ENVIRON, str(tmp_path))
    assert done.environ["LD_LIBRARY_PATH"] == "/new"


def test_packages_are_installed_and_files_linked(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "numbers")
    lines: list[str] = []
    action = Steps((Install(("numbers",)), LinkFile((str(env / "pyvenv.cfg"),), str(env / "lib"))))
    done = carry_out(action, installer(env), ENVIRON, str(tmp_path), on_line=lines.append)
    assert (done.exit_code, lines) == (0, ["Collecting numbers"])
    assert not (env / "lib" / "faults" / "numbers").exists()
    assert os.readlink(env / "lib" / "pyvenv.cfg") == str(env / "pyvenv.cfg")


def test_no_variable_of_the_user_leads_pip_elsewhere(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    (env / "bin" / "python").write_text("#!/bin/sh\nenv | grep ^PIP_ | sort\n")
    given = {**ENVIRON, "PIP_TARGET": "/srv", "PIP_PYTHON": "/srv/python", "PIP_INDEX_URL": "here"}
    done = carry_out(Install(("a",)), installer(env), given, str(tmp_path))
    names = [line.partition("=")[0] for line in done.output]
    assert "PIP_INDEX_URL" in names
    assert not {"PIP_TARGET", "PIP_PYTHON"} & set(names)
    assert done.environ == given


def test_a_failing_command_says_why_and_changes_no_variable(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    action = Steps((SetVariable("A", "1"), Install(("refused",))))
    done = carry_out(action, installer(env), ENVIRON, str(tmp_path))
    assert done.failure == "ERROR: No matching distribution found for refused"
    assert done.environ == ENVIRON


def test_a_command_that_never_ends_is_stopped(tmp_path: Path) -> None:
    env = environment(tmp_path / "env")
    (env / "bin" / "python").write_text("#!/bin/sh\necho begin\nsleep 600\n")
    action = Install(("x",))
    done, _ = stopped_in_time(
        lambda limit: carry_out(action, installer(env), ENVIRON, str(tmp_path), time_limit=limit),
        lambda done: "begin" in done.output,
    )
    assert (done.exit_code, done.output[0]) == (124, "begin")
    assert "stopped after" in done.failure


def test_an_action_without_a_command_is_not_carried_out(tmp_path: Path) -> None:
    action = LinkFile(("/a\nb",), str(tmp_path))
    done = carry_out(action, installer(tmp_path), ENVIRON, str(tmp_path))
    assert done.exit_code != 0
    assert os.listdir(tmp_path) == []
