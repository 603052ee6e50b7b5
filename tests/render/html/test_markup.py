"""Elements: what is text stays text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whygpu.model.outside_text import printable
from whygpu.render.html import markup
from whygpu.render.html.markup import Html, code, div, element, join, li, meta, own_text, p, ul


def test_text_and_attributes_are_escaped() -> None:
    made = p("a < b & c", title='"><script>alert(1)</script>', kind="soft")
    assert str(made) == (
        '<p title="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;" class="soft">'
        "a &lt; b &amp; c</p>"
    )


def test_elements_text_and_lists_can_be_children() -> None:
    made = ul((li(each) for each in ("a", "b")), None, [li(code("c"), "&")])
    assert str(made) == "<ul><li>a</li><li>b</li><li><code>c</code>&amp;</li></ul>"
    assert str(join("<", p())) == "&lt;<p></p>"


def test_attributes_without_a_value_are_left_out() -> None:
    made = div(hidden=True, open=False, id=None, kind="", aria_label="x", tabindex=0)
    assert str(made) == '<div hidden aria-label="x" tabindex="0"></div>'
    assert str(meta(http_equiv="x", name="y")) == '<meta http-equiv="x" name="y"/>'
    assert str(element("rect", x=1.25)) == '<rect x="1.2"></rect>'


def test_nobody_else_makes_markup() -> None:
    with pytest.raises(TypeError, match="use the functions"):
        Html("<script>", made_by_this_module=None)
    with pytest.raises(TypeError):
        _ = p("a") + "b"  # type: ignore[operator]
    with pytest.raises(ValueError, match="end its element"):
        own_text("</style><script>")


@given(st.text(), st.text())
def test_any_text_comes_back_as_it_was(text: str, attribute: str) -> None:
    whole = str(markup.p(text, title=attribute))
    parsed = ElementTree.fromstring(whole)
    assert list(parsed) == []
    # XML has one kind of line end, and attributes have spaces.
    assert (parsed.text or "") == printable(text)
    assert (parsed.get("title") or "").split() == printable(attribute).split()
