"""Which tool manages an environment, as the files show that the tool leaves."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping

import pytest

from tests.cases import each
from tests.collectors.test_installer import environment
from tests.file_tree import write_tree
from whygpu.collectors import manager
from whygpu.host.local import LocalHost
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.target import Interpreter, Manager

PROJECT = '[project]\nname = "demo"\ndependencies = ["Tensor_Flow[and-cuda] (>=2)", "jax<1"]\n'
LISTED = ("tensor-flow", "jax")
PIXI = """
[pypi-dependencies]
jax = "*"
[feature.cuda.pypi-dependencies]
torch = "*"
[environments]
cuda = ["cuda"]
gpu = {features = ["cuda"], solve-group = "all"}
both = ["cuda", "test"]
"""


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return environment(tmp_path_factory.mktemp("any") / ".venv")


def seen(
    interpreter: Interpreter,
    folder: pathlib.Path,
    files: Mapping[str, str],
    place: str = ".venv",
) -> Observed[Manager]:
    """What manages the environment `place` of a folder with these files; {} is the folder."""
    write_tree(folder, {name: text.replace("{}", str(folder)) for name, text in files.items()})
    return manager.collect(LocalHost(), interpreter._replace(prefix=str(folder / place)))


UV = {"uv.lock": "", ".venv/pyvenv.cfg": "uv = 0.8.0\n", "pyproject.toml": PROJECT}
POETRY = {"poetry.lock": "", ".venv/pyvenv.cfg": "virtualenv = 20.1\n", "pyproject.toml": PROJECT}
PDM = {"pdm.lock": "", ".pdm-python": "{}/.venv/bin/python", "pyproject.toml": PROJECT}
PIPENV = {".venv/.project": "{}", "Pipfile": '[packages]\nJAX = "*"\n', "Pipfile.lock": "{}"}


@each(
    ("files", "expected"),
    [
        (UV, Manager("uv", "{}", True, LISTED)),
        (POETRY, Manager("poetry", "{}", True, LISTED)),
        (PDM, Manager("pdm", "{}", True, LISTED)),
        (PIPENV, Manager("pipenv", "{}", True, ("jax",))),
        ({".venv/conda-meta/history": ""}, Manager("conda", "", True)),
        # Only a lock file: another tool, or none, may have created the environment.
        ({**UV, ".venv/pyvenv.cfg": "version = 3.11\n"}, Manager("uv", "{}", False)),
        ({**POETRY, ".venv/pyvenv.cfg": "version = 3.11\n"}, Manager("poetry", "{}", False)),
        ({**PDM, ".pdm-python": "/other/bin/python"}, Manager("pdm", "{}", False)),
        ({"Pipfile.lock": ""}, Manager("pipenv", "{}", False)),
        # A project that cannot get dependencies.
        ({**UV, "pyproject.toml": "[tool.uv.workspace]\n"}, Manager("uv", "{}", False)),
        ({**UV, "pyproject.toml": "not TOML ["}, Manager("uv", "{}", False)),
        ({**UV, "pyproject.toml": "[project]\ndependencies = 1\n"}, Manager("uv", "{}", True)),
    ],
)
def test_the_files_of_a_project_show_its_tool(
    interpreter: Interpreter,
    tmp_path_factory: pytest.TempPathFactory,
    files: Mapping[str, str],
    expected: Manager,
) -> None:
    folder = tmp_path_factory.mktemp("project")
    found = seen(interpreter, folder, files)
    project = expected.project.replace("{}", str(folder))
    assert found == Known(expected._replace(project=project), str(folder / ".venv"))


def test_an_environment_elsewhere_belongs_to_no_project(
    interpreter: Interpreter, tmp_path: pathlib.Path
) -> None:
    assert isinstance(seen(interpreter, tmp_path, {**UV, "a/b": ""}, "a"), Absent)
    assert isinstance(seen(interpreter, tmp_path / "c", {"pyproject.toml": PROJECT}), Absent)


def test_a_copy_of_an_environment_belongs_to_no_project(
    interpreter: Interpreter, tmp_path: pathlib.Path
) -> None:
    pixi = {"manifest_path": f"{tmp_path}/pixi.toml", "environment_name": "default"}
    copy = {"copy/conda-meta/pixi": json.dumps(pixi), "pixi.toml": PIXI}
    found = seen(interpreter, tmp_path, copy, "copy")
    assert found == Known(Manager("conda", "", True), str(tmp_path / "copy"))
    copy = {"other/.project": str(tmp_path), "Pipfile": PIPENV["Pipfile"]}
    assert isinstance(seen(interpreter, tmp_path, copy, "other"), Absent)


def test_uv_may_use_another_environment_for_the_project(
    interpreter: Interpreter, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "/opt/venv")
    found = seen(interpreter, tmp_path, UV)
    assert found == Known(Manager("uv", str(tmp_path), False), str(tmp_path / ".venv"))


@each(
    ("name", "feature", "declared"),
    [
        ("default", "default", ("jax",)),
        ("cuda", "cuda", ("torch",)),
        ("gpu", "cuda", ("torch",)),
        ("both", "", ()),
        ("unknown", "", ()),
    ],
)
def test_pixi_names_its_manifest_and_the_feature_of_an_environment(
    interpreter: Interpreter,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    feature: str,
    declared: tuple[str, ...],
) -> None:
    folder = tmp_path_factory.mktemp("project")
    record = json.dumps({"manifest_path": f"{folder}/pixi.toml", "environment_name": name})
    place = f".pixi/envs/{name}"
    (folder / place / "conda-meta").mkdir(parents=True)
    (folder / place / "conda-meta" / "pixi").write_text(record)
    found = seen(interpreter, folder, {"pixi.toml": PIXI}, place)
    expected = Manager("pixi", f"{folder}/pixi.toml", True, declared, feature)
    assert found == Known(expected, str(folder / place))


def test_poetry_names_an_environment_in_its_cache_by_the_folder_of_the_project(
    interpreter: Interpreter, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The name that poetry 2 gives to the environment of a project in this folder.
    place = "pypoetry/virtualenvs/demo-3Lscdmnw-py3.11"
    monkeypatch.setenv("PWD", "/elsewhere")
    unknown = seen(interpreter, tmp_path, {f"{place}/pyvenv.cfg": ""}, place)
    assert unknown == Known(Manager("poetry", "", True), str(tmp_path / place))
    assert manager.poetry_hash("/srv/po") == "3Lscdmnw"
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    place = f"pypoetry/virtualenvs/demo-{manager.poetry_hash(str(project))}-py3.11"
    monkeypatch.setenv("PWD", str(project / "src"))
    found = seen(interpreter, tmp_path, {f"{place}/pyvenv.cfg": ""}, place)
    assert found == Known(Manager("poetry", str(project), True, LISTED), str(tmp_path / place))
    copy = f"{place}.whygpu-fix-0123456789ab/environment"
    other = seen(interpreter, tmp_path, {f"{copy}/pyvenv.cfg": ""}, copy)
    assert isinstance(other, Absent), "poetry does not use a folder inside that of the environment"


def test_hatch_keeps_its_environments_in_one_folder(
    interpreter: Interpreter, tmp_path: pathlib.Path
) -> None:
    found = seen(interpreter, tmp_path, {}, "hatch/env/virtual/demo/aBc/demo")
    assert isinstance(found, Known)
    assert found.value == Manager("hatch", "", True)
