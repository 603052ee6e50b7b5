"""Links of the documentation lead somewhere, and its programs do not have the defects we lint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

import whygpu
from tests.patience import PATIENCE
from tools import man_page
from tools.docs_commands import ROOT, blocks, files_of, pages
from tools.reference import FOLDER as REFERENCE
from tools.reference import pages as reference_pages
from whygpu.cli.parser import VERBS

DOCS = ROOT / "docs"
SITE = "https://whygpu.readthedocs.io/en/latest/"
REPOSITORY = "https://github.com/whygpu/whygpu/blob/main/"
PAGES = (*pages(), *sorted(DOCS.glob("causes/*.md")), *sorted(DOCS.glob("reference/*.md")))

_FENCE = re.compile(r"^(```|~~~)(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_FUNCTION = re.compile(r"\bwhygpu\.(\w+)\(")


PAGE_OF_VERB = {"completion": "shell", "lsp": "editor", "mcp": "agent", "report": "page"}
"""Verbs whose page has another name."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """What the site builder makes of the headings."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        found.add(f"{slug}_{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def target_of(page: Path, link: str) -> tuple[Path, str] | None:
    """The file and the anchor that a link leads to; None if it leads out of the project."""
    address, _, anchor = link.partition("#")
    if address.startswith(SITE):
        place = DOCS / (address.removeprefix(SITE).rstrip("/") or "index")
        found = place / "README.md" if place.is_dir() else place.with_suffix(".md")
    elif address.startswith(REPOSITORY):
        found = ROOT / address.removeprefix(REPOSITORY)
    elif re.match(r"\w+:", address):
        return None
    else:
        found = (page.parent / address) if address else page
    return found, anchor


def broken(page: Path, link: str) -> bool:
    target = target_of(page, link)
    if target is None:
        return False
    file, anchor = target
    return not file.is_file() or bool(anchor and anchor not in anchors(file))


def test_every_link_leads_to_a_page_and_a_heading() -> None:
    wrong = [
        f"{name(page)}: {link}"
        for page in PAGES
        for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
        if broken(page, link)
    ]
    assert wrong == []


def test_links_to_nowhere_are_noticed() -> None:
    page = DOCS / "index.md"
    assert broken(page, "nothing.md")
    assert broken(page, f"{SITE}check/#nothing")
    assert broken(page, f"{REPOSITORY}NOTHING.md")
    assert not broken(page, f"{SITE}check/#the-answer")


def test_pages_of_the_site_have_no_links_that_leave_the_site_by_file() -> None:
    """A link from docs/ to a file beside it would work in the repository and not on the site."""
    for page in PAGES:
        if DOCS in page.parents:
            for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
                target = target_of(page, link)
                assert (
                    target is None
                    or SITE in link
                    or REPOSITORY in link
                    or (DOCS in target[0].resolve().parents)
                ), f"{name(page)}: {link}"


@pytest.mark.parametrize("page", pages(), ids=name)
def test_functions_that_a_page_names_exist(page: Path) -> None:
    named = set(_FUNCTION.findall(page.read_text(encoding="utf-8")))
    assert named <= set(dir(whygpu))


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=name)
def test_programs_of_the_tutorials_are_what_lint_recommends(page: Path) -> None:
    programs = [
        body
        for _, language, body in _FENCE.findall(page.read_text("utf-8"))
        if language == "python"
    ]
    for program in programs:
        found = whygpu.lint(program)
        assert found.problems == ()
        assert [(it.finding.code, it.line) for it in found.findings] == []


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=name)
def test_a_reader_of_a_tutorial_can_get_the_files_that_it_uses(page: Path) -> None:
    links = {link.removeprefix(REPOSITORY) for link in _LINK.findall(page.read_text("utf-8"))}
    for block in blocks(page):
        if block.kind == "run" and block.shows_output:
            assert set(files_of(block)) <= links, block.place


def test_the_reference_is_what_the_program_says() -> None:
    for file, text in reference_pages().items():
        assert (REFERENCE / file).read_text(encoding="utf-8") == text, f"{file}: run `make docs`"


def test_the_manual_page_is_what_the_program_says() -> None:
    assert man_page.PAGE.read_text("utf-8") == man_page.page(), "run `make docs`"


def test_the_manual_page_is_one_that_man_can_show() -> None:
    if not shutil.which("man"):
        pytest.skip("man is not installed here")
    environ = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
    command = ["man", "--warnings", "-l", str(man_page.PAGE)]
    shown = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=PATIENCE)
    if not shown.stdout:
        pytest.skip(f"man shows no page here: {shown.stderr.strip()}")
    assert shown.stderr == ""
    # As the shell wants it: neither a hyphen nor a quotation mark of print.
    assert "--no-probe" in shown.stdout
    assert "~/venv/bin/python" in shown.stdout


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r": ([\w/-]+\.md)$", navigation, re.MULTILINE))
    written = {str(page.relative_to(DOCS)) for page in PAGES if DOCS in page.parents}
    assert listed == {page for page in written if not re.match(r"causes/WG", page)}


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_of_every_verb_has_its_exit_codes(verb: str) -> None:
    page = DOCS / f"{PAGE_OF_VERB.get(verb, verb)}.md"
    assert re.search(r"exit codes?\b", page.read_text(encoding="utf-8"), re.IGNORECASE)
