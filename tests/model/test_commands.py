"""Actions as shell text: quoted for a real shell, or not printed at all."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement

from tests.cases import each
from tests.pasting import BASH, paste
from whygpu.model.codec import decode, encode
from whygpu.model.commands import (
    is_requirement,
    note_on_install,
    remedy_text,
    shell_text,
    shell_texts,
)
from whygpu.model.finding import Remedy
from whygpu.model.observed import Known
from whygpu.model.remedy import (
    PYTHON,
    Action,
    Command,
    DropPath,
    Install,
    InstallFramework,
    LinkFile,
    Pip,
    PrependPath,
    SetVariable,
    Steps,
    UnsetVariable,
    a_name,
    a_number,
    a_path,
    a_requirement,
    command_line,
    set_variables,
    shell_script,
)
from whygpu.model.target import PLAIN_PIP, Installer, Manager, ManagerName

EVERY_KIND: list[tuple[Action, str]] = [
    (SetVariable("A", "x y"), "export A='x y'"),
    (set_variables(A="1", B="2"), "export A=1 B=2"),
    (UnsetVariable(("A", "B")), "unset A B"),
    (PrependPath("P", ("/a b", "/c", "/c")), 'export P="/a b:/c${P:+:$P}"'),
    (PrependPath("P", ("~/a",)), 'export P="$HOME/a${P:+:$P}"'),
    (PrependPath("P", ("/a$b", "~/c!")), """export P='/a$b':"$HOME"'/c!'"${P:+:$P}\""""),
    (DropPath("P", "/a", ("/b", "")), 'export P="/b:"'),
    (DropPath("P", "/a", ()), "unset P"),
    (Install(("numpy<2",)), "python -m pip install 'numpy<2'"),
    (
        Install(("torch",), "https://download.pytorch.org/whl/cu126", ("torch",), ("no-deps",)),
        "python -m pip uninstall -y torch && python -m pip install --no-deps torch --index-url "
        "https://download.pytorch.org/whl/cu126",
    ),
    (
        Install(("flash-attn",), options=("no-build-isolation", "no-cache")),
        "python -m pip install --no-build-isolation --no-cache-dir flash-attn",
    ),
    (Install((), removes=("jax",)), "python -m pip uninstall jax"),
    (Pip(("check",)), "python -m pip check"),
    (LinkFile(("/a b/x.so", "~/y"), "~/to"), "ln -s '/a b/x.so' ~/y ~/to/"),
    (LinkFile(("x.so.1",), "~/a b", "x.so"), "ln -s x.so.1 ~/'a b/x.so'"),
    (command_line("sudo nvidia-smi -i", a_number(0)), "sudo nvidia-smi -i 0"),
    (command_line("mv", a_path("~/it's"), a_path("~")), """mv ~/'it'"'"'s' ~"""),
    (shell_script("ls ", a_path("/a b"), " | grep x"), "ls '/a b' | grep x"),
    (shell_script(PYTHON, " -c 'import ", a_name("torch"), "'"), "python -c 'import torch'"),
    (
        Steps((Install(("a",)), SetVariable("B", "1"), SetVariable("C", "2"), Pip(("check",)))),
        "python -m pip install a && export B=1 C=2 && python -m pip check",
    ),
]


@each(("action", "expected"), EVERY_KIND)
def test_an_action_as_shell_text(action: Action, expected: str) -> None:
    assert shell_text(action) == expected


@each("action", [action for action, _ in EVERY_KIND])
def test_an_action_survives_the_codec(action: Action) -> None:
    remedy = Remedy("Do it.", action)
    assert decode(Remedy, encode(remedy)) == remedy


UNFIT: list[Action] = [
    SetVariable("A B", "1"),
    SetVariable("A", "1\ntouch x"),
    SetVariable("A", "\x1b[2J"),
    SetVariable("A", "\u202egnp.exe"),
    UnsetVariable(("A;touch x",)),
    PrependPath("P", ("/a:/b",)),
    PrependPath("P", ("-x",)),
    DropPath("P", "/a", ("/b\n",)),
    Install(("numpy @ https://example.org/numpy.whl",)),
    Install(("numpy; python_version < '4'",)),
    Install(("--index-url=https://example.org",)),
    Install(("numpy'&&touch${IFS}/tmp/x&&echo'",)),
    Install(("-r requirements.txt",)),
    Install(("",)),
    Install(()),
    Install(("torch",), index_url="http://example.org"),
    Install(("torch",), index_url="https://example.org/$(touch x)"),
    Install(("torch",), removes=("-y",)),
    Install(("torch",), removes=("torch;touch x",)),
    InstallFramework("tensorflow"),
    LinkFile(("/a",), "/b", "../c"),
    LinkFile(("--target-directory=/",), "/b"),
    command_line("kill", a_number("8;touch x")),
    command_line("usermod -aG", a_name("-G")),
    command_line("mv", a_path("")),
    command_line("mv", a_path("x" * 5000)),
    shell_script("x ", a_requirement("a b")),
    Steps((Pip(("check",)), SetVariable("A", "\n"))),
]


@each("action", UNFIT)
def test_a_value_that_cannot_be_what_it_should_be_gives_no_command(action: Action) -> None:
    assert shell_text(action) is None


@each(
    ("python", "shown"),
    [
        ("/opt/my env/bin/python", "'/opt/my env/bin/python' -m pip check"),
        ("~/my env/bin/python3.11", "~/'my env/bin/python3.11' -m pip check"),
        ("python3", "python3 -m pip check"),
        ("rm", None),
        ("/bin/sh", None),
        ("../python", None),
        ("-python", None),
        ("/opt/python\n/bin/python", None),
    ],
)
def test_commands_name_the_targets_own_interpreter(python: str, shown: str | None) -> None:
    assert shell_text(Pip(("check",)), Installer(python, "pip", False)) == shown


def test_an_environment_without_pip_is_served_by_uv() -> None:
    uv = Installer("/venv/bin/python", "uv", False)
    assert shell_text(Install(("numpy<2",), removes=("numpy",)), uv) == (
        "uv pip uninstall --python /venv/bin/python numpy && "
        "uv pip install --python /venv/bin/python 'numpy<2'"
    )
    assert shell_text(Pip(("check",)), uv) == "uv pip check --python /venv/bin/python"


def test_what_pip_refuses_is_said_beside_installs_only() -> None:
    managed = PLAIN_PIP._replace(externally_managed=True)
    assert "virtual environment" in remedy_text(Remedy("Install.", Install(("a",))), managed)
    assert remedy_text(Remedy("Set it.", SetVariable("A", "1")), managed) == "Set it."
    assert remedy_text(Remedy("Install.", Install(("a",))), PLAIN_PIP) == "Install."


@pytest.mark.slow
@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=40))
def test_whatever_a_value_is_a_shell_gives_it_on_as_one_argument(values: list[str]) -> None:
    actions = [Command(("printf", "%s\\0", a_path(value))) for value in values]
    variables = [SetVariable("WANTED", value) for value in values]
    pairs = [
        (text, value)
        for action, value in zip(actions, values, strict=True)
        if (text := shell_text(action)) is not None and not value.startswith("~")
    ] + [
        (f"{text}; printf '%s\\0' \"$WANTED\"", value)
        for action, value in zip(variables, values, strict=True)
        if (text := shell_text(action)) is not None
    ]
    script = "\n".join(text for text, _ in pairs)
    done = subprocess.run([BASH, "--norc", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [value for _, value in pairs]


def test_a_home_folder_that_was_removed_is_the_readers_own(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    text = shell_text(command_line("mv", a_path("~/a b"), a_path("~")))
    assert text is not None
    (pasted,) = paste([text], folder)
    assert pasted.ran == (("mv", f"{folder}/a b", str(folder)),)


ON_WINDOWS: list[tuple[Action, str | None]] = [
    (SetVariable("A", "x y"), "$env:A = 'x y'"),
    (set_variables(A="1", B="2"), "$env:A = '1'; $env:B = '2'"),
    (SetVariable("A", "it's"), None),
    (SetVariable("A", "$(calc)"), None),
    (UnsetVariable(("A", "B")), "Remove-Item Env:A; Remove-Item Env:B"),
    (PrependPath("LD_LIBRARY_PATH", ("/a",)), None),
    (DropPath("LD_LIBRARY_PATH", "/a", ("/b",)), None),
    (LinkFile(("/a",), "/b"), None),
    (Install(("numpy<2",)), 'python -m pip install "numpy<2"'),
    (Install(("numpy===1$(calc)",)), None),
    (
        Install(("torch==2.8.0",), removes=("torch",)),
        "python -m pip uninstall -y torch; if ($?) { python -m pip install torch==2.8.0 }",
    ),
    (
        Steps((Install(("a",)), Pip(("check",)), SetVariable("A", "1"))),
        "python -m pip install a; if ($?) { python -m pip check; if ($?) { $env:A = '1' } }",
    ),
    (command_line("nvidia-smi -L"), "nvidia-smi -L"),
    (command_line(PYTHON, "-c 'import torch; print(1)'"), 'python -c "import torch; print(1)"'),
    (command_line("sudo nvidia-smi -c DEFAULT"), None),
    (command_line("df -h /dev/shm"), None),
    (shell_script("ldconfig -p | grep cudnn"), None),
    (shell_script("wsl --update; wsl --shutdown", everywhere=True), "wsl --update; wsl --shutdown"),
    (shell_script("conda install x=", a_path("/a"), everywhere=True), None),
]


@each(("action", "shown"), ON_WINDOWS)
def test_powershell_gets_its_own_form_or_none(action: Action, shown: str | None) -> None:
    assert shell_text(action, PLAIN_PIP._replace(system="windows")) == shown


PYTHONS_OF_WINDOWS = [
    (r"C:\work\.venv\Scripts\python.exe", r"C:\work\.venv\Scripts\python.exe -m pip install a"),
    (
        r"C:\Program Files\Python313\python.exe",
        r'& "C:\Program Files\Python313\python.exe" -m pip install a',
    ),
    (r"~\venv\Scripts\python.exe", r'& "$HOME\venv\Scripts\python.exe" -m pip install a'),
    (r"C:\a$(calc)\python.exe", None),
    (r"C:\a`b\python.exe", None),
    (r"C:\a;b\python.exe", None),
    (r"C:\a & b\python.exe", None),
    (r"C:\%TEMP%\python.exe", None),
    (r"\\host\share\python.exe", None),
    (r"C:\work\calc.exe", None),
    ("C:\\a\nb\\python.exe", None),
]


@each(("python", "shown"), PYTHONS_OF_WINDOWS)
def test_powershell_starts_a_python_by_its_path(python: str, shown: str | None) -> None:
    installer = PLAIN_PIP._replace(system="windows", python=python)
    assert shell_text(Install(("a",)), installer) == shown
    assert shell_texts([Install(("a",))], installer, "windows") == ((shown,) if shown else ())


def test_a_python_that_is_an_argument_is_only_quoted() -> None:
    python = r"C:\Program Files\Python313\python.exe"
    installer = PLAIN_PIP._replace(system="windows", python=python, tool="uv")
    assert shell_text(Install(("a",)), installer) == f'uv pip install --python "{python}" a'


def test_debian_is_named_on_linux_only() -> None:
    without_pip = PLAIN_PIP._replace(has_pip=False)
    assert "Debian" in note_on_install(Install(("a",)), without_pip)
    on_windows = note_on_install(Install(("a",)), without_pip._replace(system="windows"))
    assert "ensurepip" in on_windows
    assert "Debian" not in on_windows


ON_A_MAC: list[tuple[Action, str | None]] = [
    (SetVariable("KERAS_BACKEND", "torch"), "export KERAS_BACKEND=torch"),
    (Install(("numpy<2",)), "python -m pip install 'numpy<2'"),
    (PrependPath("LD_LIBRARY_PATH", ("/a",)), None),
    (SetVariable("CUDA_HOME", "/opt/cuda"), None),
    (SetVariable("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/usr/local/cuda"), None),
    (command_line("nvidia-smi"), None),
    (shell_script("ldconfig -p | grep cudnn"), None),
    (command_line("sudo systemctl restart docker"), None),
    (
        shell_script(PYTHON, " -X faulthandler -c 'import jax'"),
        "python -X faulthandler -c 'import jax'",
    ),
]


@each(("action", "shown"), ON_A_MAC)
def test_a_mac_gets_no_command_of_linux_or_of_nvidia(action: Action, shown: str | None) -> None:
    assert shell_text(action, PLAIN_PIP._replace(system="darwin")) == shown


def in_project(name: ManagerName, **facts: Any) -> Installer:
    manager = Manager(name, "/my project", True)._replace(**facts)
    return Installer("/venv/bin/python", "pip", False, manager=Known(manager, "example"))


PIP = "/venv/bin/python -m pip"
PYTORCH = "https://download.pytorch.org/whl/cu126"
BY_MANAGER: list[tuple[Installer, Install, str]] = [
    (
        in_project("uv"),
        Install(("jax[cuda12]==0.7.2",)),
        "uv add --project '/my project' 'jax[cuda12]==0.7.2'",
    ),
    (
        in_project("uv", declared=("tensorflow-cpu",)),
        Install(("tensorflow==2.21.0",), removes=("tensorflow_cpu",), options=("force-reinstall",)),
        "uv remove --project '/my project' tensorflow_cpu && uv add --project '/my project' "
        "--reinstall-package tensorflow tensorflow==2.21.0",
    ),
    (
        in_project("uv"),
        Install(("torch==2.8.0",), PYTORCH),
        f"uv add --project '/my project' --index pytorch-cu126={PYTORCH} torch==2.8.0",
    ),
    (in_project("uv"), Install((), removes=("keras",)), f"{PIP} uninstall keras"),
    (
        in_project("uv"),
        Install(("a",), options=("force-reinstall", "no-deps")),
        f"{PIP} install --force-reinstall --no-deps a",
    ),
    (
        in_project("poetry", declared=("torch",)),
        Install(("torch==2.8.0",), PYTORCH, removes=("torch",)),
        f"poetry -C '/my project' source add --priority=explicit pytorch-cu126 {PYTORCH} && "
        "poetry -C '/my project' remove torch && "
        "poetry -C '/my project' add --source pytorch-cu126 torch==2.8.0",
    ),
    (
        in_project("poetry", project=""),
        Install(("protobuf", "numpy<2"), options=("upgrade",)),
        "poetry add protobuf@latest 'numpy<2'",
    ),
    (in_project("pdm"), Install(("numpy<2",)), "pdm add -p '/my project' 'numpy<2'"),
    (
        in_project("pdm"),
        Install(("torch==2.8.0",), PYTORCH),
        f"{PIP} install torch==2.8.0 --index-url {PYTORCH}",
    ),
    (
        in_project("pipenv", declared=("keras",)),
        Install(("keras==3.0",), removes=("keras",)),
        "cd '/my project' && pipenv uninstall keras && pipenv install keras==3.0",
    ),
    (
        in_project("pixi", project="/p/pixi.toml", feature="default"),
        Install(("torch==2.8.0",), PYTORCH),
        f"pixi add --manifest-path /p/pixi.toml --pypi --index {PYTORCH} torch==2.8.0",
    ),
    (
        in_project("pixi", project="/p/pixi.toml", feature="cuda", declared=("jax",)),
        Install((), removes=("jax",)),
        "pixi remove --manifest-path /p/pixi.toml --pypi --feature cuda jax",
    ),
    (in_project("pixi"), Install(("a",)), f"{PIP} install a"),
    (in_project("conda"), Install(("a",)), f"{PIP} install a"),
    (in_project("hatch"), Install(("a",)), f"{PIP} install a"),
    (in_project("uv", certain=False), Install(("a",)), f"{PIP} install a"),
]


@each(("installer", "action", "shown"), BY_MANAGER)
def test_the_tool_of_a_project_records_what_it_installs_or_pip_installs_it(
    installer: Installer, action: Install, shown: str
) -> None:
    assert shell_text(action, installer) == shown


@each(
    ("installer", "words"),
    [
        (in_project("uv"), "changes pyproject.toml and uv.lock as well, so that `uv sync` keeps"),
        (in_project("poetry", project=""), "Run it in the folder of the project."),
        (in_project("pixi"), "pixi manages this environment: `pixi install` can undo"),
        (in_project("pdm", certain=False), "pdm.lock is next to this environment: if pdm manages"),
        (in_project("conda"), "conda does not know what pip installs"),
        (in_project("hatch"), "hatch creates this environment from pyproject.toml"),
    ],
)
def test_the_text_of_an_installation_names_the_tool_of_the_project(
    installer: Installer, words: str
) -> None:
    assert words in remedy_text(Remedy("Install.", Install(("a",))), installer)
    assert remedy_text(Remedy("Set.", SetVariable("A", "1")), installer) == "Set."


def test_an_index_in_a_project_of_uv_is_for_one_package_only_if_it_is_explicit() -> None:
    remedy = Remedy("Install.", Install(("torch",), PYTORCH))
    assert "`explicit = true` to the index pytorch-cu126" in remedy_text(remedy, in_project("uv"))
    assert "explicit" not in remedy_text(remedy, in_project("poetry"))


@each(
    "action",
    [
        Install(()),
        Install(("a;touch x",)),
        Install(("a",), index_url="https://example.org/$(touch x)"),
        Install(("a",), removes=("a;touch x",)),
    ],
)
@each("name", ["uv", "poetry", "pipenv", "pixi"])
def test_the_tool_of_a_project_gets_no_unsafe_value(name: ManagerName, action: Install) -> None:
    assert shell_text(action, in_project(name, feature="default")) is None
    hostile = in_project(name, feature="default", project="/a\n/b")
    assert shell_text(Install(("a",)), hostile) is None


def test_powershell_gets_the_projects_tool_where_no_path_is_needed() -> None:
    installer = in_project("poetry", project="", declared=())._replace(system="windows")
    action = Install(("numpy<2",), "https://download.pytorch.org/whl/cpu")
    assert shell_text(action, installer) == (
        "poetry source add --priority=explicit pytorch-cpu https://download.pytorch.org/whl/cpu; "
        'if ($?) { poetry add --source pytorch-cpu "numpy<2" }'
    )
    assert shell_text(action, in_project("uv")._replace(system="windows")) is None


@each(
    "text",
    (
        *("torch", "a-b_c.d==1", "jax[cuda12]==0.7.1", "x>=2", "ruamel.yaml<1.0", "A1!=3.0"),
        *("-e", "torch-", "[x]", "a==", "a[b", "a==1.", "a;x", "a @ file:///x", "a[b-]", ""),
    ),
)
def test_a_simple_requirement_is_recognised_as_packaging_does(text: str) -> None:
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        expected = False
    else:
        expected = parsed.url is None
    assert is_requirement(text) == expected
