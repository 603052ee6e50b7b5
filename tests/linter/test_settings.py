"""[tool.whygpu.lint], and which files are looked at."""

from __future__ import annotations

import pathlib

import pytest

import whygpu
from tests.cases import each
from whygpu.errors import UsageError
from whygpu.linter import files
from whygpu.linter.lint_files import lint_causes, lint_files
from whygpu.linter.pins import _search, tensorflow_pin
from whygpu.linter.settings import Settings, load, tensorflow_line

CAUSES = lint_causes()


def settings(folder: pathlib.Path, text: str) -> Settings:
    (folder / "pyproject.toml").write_text(text)
    return load([str(folder)], CAUSES)


def codes(chosen: Settings, path: str) -> set[str]:
    return {cause.code for cause in chosen.causes_for(path, CAUSES)}


def test_no_settings_are_fine(tmp_path: pathlib.Path) -> None:
    assert codes(settings(tmp_path, "[project]\n"), "x.py") == {cause.code for cause in CAUSES}


def test_select_and_ignore_take_codes_beginnings_and_names(tmp_path: pathlib.Path) -> None:
    chosen = settings(
        tmp_path,
        '[tool.whygpu.lint]\nselect = ["WG71", "gpu-config-misuse"]\nignore = ["wg711"]\n',
    )
    found = codes(chosen, "x.py")
    assert "WG701" in found
    assert "WG710" in found
    assert not {"WG711", "WG704", "WG720"} & found


def test_per_file_ignores(tmp_path: pathlib.Path) -> None:
    text = '[tool.whygpu.lint.per-file-ignores]\n"tests/*" = ["WG720"]\n"old.py" = ["WG"]\n'
    chosen = settings(tmp_path, text)
    assert "WG720" not in codes(chosen, str(tmp_path / "tests" / "a.py"))
    assert "WG720" in codes(chosen, str(tmp_path / "src" / "a.py"))
    assert codes(chosen, str(tmp_path / "deep" / "old.py")) == set()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.whygpu.lint]\nselct = []\n", "selct"),
        ("[tool.whygpu.lint]\nselect = 'WG7'\n", "list"),
        ("[tool.whygpu.lint]\nignore = ['WG999']\n", "WG999"),
        ("[tool.whygpu.lint]\ntensorflow = 'new'\n", "new"),
        ("[tool.whygpu]\nlint = 3\n", "table"),
        ("[tool.whygpu.lint]\nper-file-ignores = []\n", "per-file-ignores"),
    ],
)
def test_wrong_settings_are_told(tmp_path: pathlib.Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        settings(tmp_path, text)


def test_a_broken_file_of_settings_does_not_stop_lint(tmp_path: pathlib.Path) -> None:
    chosen = settings(tmp_path, "not toml")
    (tmp_path / "a.py").write_text("import torch\nx = torch.ones(2)\nx.cuda()\n")
    made = lint_files(files.find([str(tmp_path)], chosen), chosen)
    assert [found.finding.code for found in made.findings] == ["WG726"]
    (problem,) = made.problems
    assert problem.path.endswith("pyproject.toml")
    assert "not valid TOML" in problem.message
    with pytest.raises(UsageError, match=r"nothing is changed.*pyproject\.toml"):
        whygpu.lint(str(tmp_path), fix=True)


def test_the_nearest_file_counts(tmp_path: pathlib.Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    settings(tmp_path, '[tool.whygpu.lint]\ntensorflow = "1.15"\n')
    assert load([str(inner)], CAUSES).tensorflow == "1"
    assert load([str(inner / "x.py"), str(tmp_path / "y.py")], CAUSES).root == str(tmp_path)


@each(("text", "line"), [("1.15", "1"), ("1.x", "1"), ("2", "2"), ("2.16.1", "2")])
def test_versions_of_tensorflow(text: str, line: str) -> None:
    assert tensorflow_line(text, "--tensorflow") == line


def test_folders_are_searched_for_python_and_notebooks(tmp_path: pathlib.Path) -> None:
    for name in (
        "a.py",
        "b.ipynb",
        "c.txt",
        "sub/d.py",
        ".hidden/e.py",
        "node_modules/f.py",
        "venv/g.py",
        "venv/pyvenv.cfg",
        "skip/h.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    chosen = Settings(exclude=("skip",), root=str(tmp_path))
    found = files.find([str(tmp_path)], chosen)
    assert [str(pathlib.Path(path).relative_to(tmp_path)) for path in found] == [
        "a.py",
        "b.ipynb",
        "sub/d.py",
    ]
    named = str(tmp_path / "c.txt")
    assert files.find([named, named], chosen) == [named]


def test_a_path_that_is_not_there_is_the_users_to_mend(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.py"):
        files.find([str(tmp_path / "missing.py")], Settings())


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("requirements.txt", "numpy\ntensorflow==1.15.0\n", "1"),
        ("requirements-gpu.txt", "tensorflow-gpu==1.4\n", "1"),
        ("requirements.txt", "tensorflow<2\n", "1"),
        ("requirements.txt", "tensorflow>=2.3\n", None),
        ("requirements.txt", "tensorflow==2.8.0\n", "2"),
        ("setup.py", "install_requires=['tensorflow~=1.13']\n", "1"),
        ("environment.yml", "dependencies:\n  - tensorflow=1.14\n", "1"),
        ("Dockerfile", "FROM tensorflow/tensorflow:1.15.0-gpu\n", "1"),
        ("requirements.txt", "tensorflow-datasets==1.0\n", None),
        ("notes.txt", "tensorflow==1.15\n", None),
    ],
)
def test_what_a_project_pins(
    tmp_path: pathlib.Path, name: str, text: str, line: str | None
) -> None:
    _search.cache_clear()
    tensorflow_pin.cache_clear()
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    inner = tmp_path / "src"
    inner.mkdir()
    assert tensorflow_pin(str(inner)) == line
