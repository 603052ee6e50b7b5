"""The site builds without a warning, and can be read without any other site."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs_commands import ROOT

pytest.importorskip("zensical", reason="the builder of the site is not installed: make site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copyfile(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_every_page_is_built(site: Path) -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"]
    for page in pages:
        place = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / ("" if page.stem == "index" else place) / "index.html").is_file(), place
    assert (site / "causes" / "index.html").is_file()


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'<(?:script|img|link rel="stylesheet")[^>]* (?:src|href)="(https?:[^"]*)')
    asks_for_stars = 'data-md-component="source"'
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert loads.findall(text) == [], page
        assert asks_for_stars not in text, page


def test_causes_can_be_searched_by_the_words_of_a_log(site: Path) -> None:
    assert "libcusolver.so.11" in (site / "search.json").read_text(encoding="utf-8")


def test_the_copy_button_can_leave_out_prompts(site: Path) -> None:
    """While a block is copied it has a mark, by which the style sheet hides prompts and output."""
    mark = "data-md-copying"
    assert any(mark in script.read_text(encoding="utf-8") for script in site.rglob("*.js"))
    style = (site / "stylesheets" / "pages.css").read_text(encoding="utf-8")
    assert {f"code[{mark}] .gp", f"code[{mark}] .go"} <= set(
        re.findall(r"code\[[\w-]+\] \.\w+", style)
    )
