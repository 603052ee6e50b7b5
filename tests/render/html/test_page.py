"""Pages stand by themselves, are well-formed, and run nothing but their own script."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from tests.kit import machine
from whygpu import diagnose
from whygpu.render.html import answers, shell
from whygpu.render.html.markup import p
from whygpu.render.html.parts import Sheet, cells_table, sections
from whygpu.render.html.script import SCRIPT
from whygpu.render.html.style import notebook_style, page_style

BROKEN = """
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
[probes.tensorflow]
operations = [{kind = "cpu"}]
"""


def check_page(toml: str = "") -> str:
    return answers.page(diagnose(machine(toml)), "1.0")


def parsed(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def texts(page: str, path: str) -> list[str]:
    return ["".join(found.itertext()) for found in parsed(page).findall(path)]


class Outside(HTMLParser):
    """Whatever a page would load or run, and styles that its policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        bad = [name for name in names if name in ("src", "href", "style") or name.startswith("on")]
        if tag in ("link", "img", "iframe", "object", "form", "base") or bad:
            self.found.append(f"{tag} {bad}")


def test_a_page_stands_by_itself() -> None:
    page = check_page(BROKEN)
    outside = Outside()
    outside.feed(page)
    assert outside.found == []
    assert not re.search(r"https?:|url\(|@import", page)


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_our_own_style_and_script_only() -> None:
    found = parsed(check_page())
    (policy,) = (
        each.get("content")
        for each in found.findall(".//meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )
    (style,), (script,) = found.findall(".//style"), found.findall(".//script")
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest(style.text or '')}'; "
        f"script-src 'sha256-{digest(script.text or '')}'; base-uri 'none'; form-action 'none'"
    )
    assert script.text == SCRIPT
    assert style.text == page_style()


def test_the_verdict_comes_first_then_the_layers_then_what_to_do() -> None:
    page = check_page(BROKEN)
    assert texts(page, ".//h1") == [
        "something is wrong: TensorFlow does not use the GPU (Keras, JAX and PyTorch do) "
        "(WG203 library-path-conflict)"
    ]
    assert texts(page, ".//h2") == ["What to do", "Frameworks", "Every check"]
    (broken,) = [
        each
        for each in parsed(page).findall(".//li")
        if each.find("div[@class='layer wrong']") is not None
    ]
    assert "cuDNN" in "".join(broken.itertext())
    assert "WG203 library-path-conflict: TensorFlow" in "".join(broken.itertext())
    assert "whygpu run -- python PROGRAM.py" in texts(page, ".//pre")


def test_what_could_not_be_looked_at_is_not_drawn_as_healthy() -> None:
    page = check_page("nothing_seen = true")
    marks = texts(page, ".//ol[@class='stack']//span[@aria-hidden]")
    assert set(marks) == {"?"}
    assert "✓" not in page


def test_several_answers_share_a_page() -> None:
    reports = [diagnose(machine()), diagnose(machine("nothing_seen = true"))]
    page = answers.page_of_several("Two machines", reports, "1.0")
    assert texts(page, ".//h1") == ["Two machines"]
    assert [text.partition(":")[0] for text in texts(page, ".//h2")] == ["fine", "cannot tell"]
    assert len(parsed(page).findall(".//script")) == 1


def test_a_fragment_has_no_script_and_no_rule_about_anything_else() -> None:
    fragment = answers.fragment(diagnose(machine(BROKEN)))
    found = ElementTree.fromstring(fragment)
    assert found.get("class") == "whygpu"
    assert not found.findall(".//script")
    rules = re.sub(r"@media[^{]*\{|\{[^}]*\}|\s*\}", "\n", notebook_style())
    selectors = [each.strip() for each in re.split(r"[,\n]", rules) if each.strip()]
    assert len(selectors) > 100
    assert all(".whygpu" in each for each in selectors)


def test_a_sheet_needs_a_headline_and_perhaps_sections_and_tables() -> None:
    table = cells_table("Hosts", ("host", "GPU", "empty"), [("a", p("x"), ""), ("b", "y", "-")])
    sheet = Sheet("fleet", "answered", "Two hosts", sections=sections(("Hosts", table), ("No", [])))
    page = shell.page(sheet, "1.0")
    assert texts(page, ".//thead//th") == ["host", "GPU"]
    assert texts(page, ".//h2") == ["Hosts"]
    assert texts(page, ".//title") == ["Two hosts (whygpu fleet)"]
