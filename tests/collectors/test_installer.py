"""How packages get into an environment, as its files and PATH tell."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from whygpu.collectors import installer, interpreter, packages
from whygpu.host.local import LocalHost
from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.finding import Remedy
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.remedy import Install
from whygpu.model.target import Installer, Interpreter, Package

pytestmark = pytest.mark.slow
"""Each test starts programs."""


def environment(folder: pathlib.Path) -> Interpreter:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return need(interpreter.collect(LocalHost(), str(folder / "bin" / "python")))


def seen(target: Interpreter) -> Installer:
    host = LocalHost()
    return installer.collect(host, target, packages.collect(host, target))


def test_another_environment_is_named_by_its_path(tmp_path: pathlib.Path) -> None:
    target = environment(tmp_path / "other env")
    assert seen(target).python == str(tmp_path / "other env/bin/python")


def test_an_environment_without_pip_gets_it_first_or_is_served_by_uv(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, host = environment(tmp_path), LocalHost()
    monkeypatch.setenv("PATH", "/nowhere")
    python = f"{tmp_path}/bin/python"
    for known in (packages.collect(host, target), Unknown("not looked at")):
        found = installer.collect(LocalHost(), target, known)
        assert found == Installer(python, "pip", False, has_pip=False, manager=found.manager)
        command = shell_text(Install(("jax",), removes=("jaxlib",)), found)
        assert command is not None
        assert command.startswith(f"{python} -m ensurepip --upgrade && {python} -m pip uninstall")
        assert command.count("ensurepip") == 1
        assert "no pip" in remedy_text(Remedy("Install it.", Install(("jax",))), found)


def test_uv_on_path_serves_an_environment_without_pip(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = environment(tmp_path / "v")
    uv = tmp_path / "uv"
    uv.write_text("")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = seen(target)
    assert found.tool == "uv"
    assert "ensurepip" not in (shell_text(Install(("jax",)), found) or "")


def test_what_path_leads_to_is_named_as_one_types_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = environment(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin")
    assert seen(target).python == "python"
    (tmp_path / "bin" / "python").unlink()
    other = need(interpreter.collect(LocalHost(), f"{tmp_path}/bin/python3"))
    assert seen(other).python == "python3"


def test_an_environment_that_uv_made_is_served_by_uv_while_it_has_no_pip(
    tmp_path: pathlib.Path,
) -> None:
    target = environment(tmp_path)
    settings = tmp_path / "pyvenv.cfg"
    settings.write_text(f"{settings.read_text()}uv = 0.8.0\n")
    assert seen(target).tool == "uv"
    pip = Package("pip", "25.0", "", False, (), ())
    assert installer.collect(LocalHost(), target, Known((pip,), "example")).tool == "pip"


@pytest.mark.parametrize(("isolated", "managed"), [(False, True), (True, False)])
def test_the_systems_own_python_is_not_for_pip(
    tmp_path: pathlib.Path, isolated: bool, managed: bool
) -> None:
    target = environment(tmp_path / "venv")
    library = tmp_path / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library.mkdir()
    target = target._replace(isolated=isolated, paths=(str(library),))
    assert not seen(target).externally_managed
    (library / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    assert seen(target).externally_managed is managed
