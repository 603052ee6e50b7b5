"""HTML and SVG elements, escaped by construction.

`p("a < b", kind="soft")` makes a paragraph. Text becomes markup in one place only, in which every
character with a meaning in HTML is escaped. Only what this module made is inserted as it is. So no
name, message or path from outside can become a tag, an attribute or a script, however the
fragment around it is written. The standard library has no such builder, and a template engine would
have to be installed wherever a notebook shows an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Union

from whygpu.model.outside_text import printable

_WITHOUT_CONTENT = frozenset({"br", "meta"})


class Html:
    """Finished markup. It is no `str`, so that nobody can join it with text that is not escaped."""

    __slots__ = ("_markup",)

    def __init__(self, markup: str, *, made_by_this_module: object) -> None:
        if made_by_this_module is not _KEY:
            raise TypeError("use the functions of whygpu.render.html.markup")
        self._markup = markup

    def __str__(self) -> str:
        return self._markup

    def __bool__(self) -> bool:
        return bool(self._markup)


_KEY = object()
Child = Union[Html, str, None, Iterable["Child"]]
"""What an element can contain. None is nothing, and of several, each in its order."""
Attribute = Union[str, int, float, bool, None]


def join(*children: Child) -> Html:
    """Several things one after the other, without an element around them."""
    return Html("".join(map(_markup, children)), made_by_this_module=_KEY)


def own_text(text: str) -> Html:
    """A style sheet or a script of ours, as it is. It must be a constant."""
    if "</" in text:
        raise ValueError("the text would end its element")
    return Html(text, made_by_this_module=_KEY)


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return str(child)
    if isinstance(child, str):
        return escape(printable(child), quote=False)
    return "".join(map(_markup, child))


def _attribute(name: str, value: Attribute) -> str:
    """`kind` is the attribute class; `aria_label` is aria-label; True is a name without a value."""
    if value is None or value is False or (name == "kind" and not value):
        return ""
    written = "class" if name == "kind" else name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {written}"
    if isinstance(value, float):
        return f' {written}="{value:.1f}"'
    return f' {written}="{escape(printable(str(value)))}"'


def element(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """One element. Its name, and those of its attributes, are constants of ours."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _WITHOUT_CONTENT:
        return Html(f"<{name}{written}/>", made_by_this_module=_KEY)
    content = "".join(map(_markup, children))
    return Html(f"<{name}{written}>{content}</{name}>", made_by_this_module=_KEY)


def _named(name: str) -> Callable[..., Html]:
    def make(*children: Child, **attributes: Attribute) -> Html:
        return element(name, *children, **attributes)

    return make


article = _named("article")
b = _named("b")
body = _named("body")
code = _named("code")
dd = _named("dd")
details = _named("details")
div = _named("div")
dl = _named("dl")
dt = _named("dt")
figcaption = _named("figcaption")
figure = _named("figure")
footer = _named("footer")
h1 = _named("h1")
h2 = _named("h2")
h3 = _named("h3")
head = _named("head")
header = _named("header")
html = _named("html")
li = _named("li")
main = _named("main")
mark = _named("mark")
meta = _named("meta")
ol = _named("ol")
p = _named("p")
pre = _named("pre")
script = _named("script")
section = _named("section")
span = _named("span")
style = _named("style")
summary = _named("summary")
table = _named("table")
tbody = _named("tbody")
td = _named("td")
th = _named("th")
thead = _named("thead")
title = _named("title")
tr = _named("tr")
ul = _named("ul")
