"""What the package says about itself is the same everywhere it says it."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from whygpu.cli.bug import NEEDED, NEW_ISSUE, failed
from whygpu.version import VERSION

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def test_a_bug_report_goes_to_an_issue_form_of_this_repository() -> None:
    address, _, form = NEW_ISSUE.partition("/new?template=")
    assert address == project()["urls"]["Issues"]
    assert (ROOT / ".github" / "ISSUE_TEMPLATE" / form).is_file()


def test_what_is_told_to_be_needed_is_what_the_package_requires() -> None:
    required = {re.split(r"[><=; ]", line)[0] for line in project()["dependencies"]}
    assert {"nvidia-ml-py" if name == "pynvml" else name for name in NEEDED} == required


def test_an_installation_without_a_needed_package_is_no_bug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed(ModuleNotFoundError("no", name="packaging.version"), ["check"])
    said = capsys.readouterr().err
    assert "pip install --force-reinstall whygpu" in said
    assert "bug" not in said


def test_the_command_for_windows_has_the_line_ends_that_cmd_needs() -> None:
    script = (ROOT / "bin" / "whygpu.cmd").read_bytes()
    assert script.count(b"\n") == script.count(b"\r\n") > 0
    labels = re.findall(rb"(?m)^:(\w+)\r$", script)
    assert re.findall(rb"goto (\w+)\r", script) == labels


def test_the_changelog_has_an_entry_for_this_version() -> None:
    assert f"\n## {VERSION} " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_conda_recipe_requires_what_the_package_requires() -> None:
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    of_recipe = [line.replace(" ", "") for line in re.findall(r"^    - (.+)", run, re.MULTILINE)]
    of_package = [line.partition(";")[0] for line in project()["dependencies"]]
    assert of_recipe == [
        f"python{project()['requires-python'][:2]}${{{{python_min}}}}",
        *of_package,
    ]


def test_links_of_the_readme_work_outside_the_repository() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_extra_all_has_the_other_extras_for_users() -> None:
    extras = project()["optional-dependencies"]
    for_users = sorted(set(extras) - {"all", "dev", "docs", "pages"})
    assert extras["all"] == [f"whygpu[{','.join(for_users)}]"]


def test_the_page_about_installing_names_every_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    named = set(re.findall(r"^\| `whygpu\[(\w+)\]`", page, re.MULTILINE))
    assert named == set(project()["optional-dependencies"]) - {"dev", "docs", "pages"}


def test_the_wheel_installs_the_manual_page() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (page,) = whole["tool"]["setuptools"]["data-files"]["share/man/man1"]
    assert (ROOT / page).is_file()
