"""What is around an answer: a page that stands by itself, or the frame of a notebook's output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from whygpu.model.standing import Standing
from whygpu.render.html.markup import (
    Child,
    Html,
    body,
    div,
    element,
    footer,
    h1,
    h2,
    h3,
    head,
    header,
    html,
    main,
    meta,
    own_text,
    p,
    script,
    section,
    span,
    style,
    title,
)
from whygpu.render.html.parts import Section, Sheet, standing_mark
from whygpu.render.html.script import SCRIPT
from whygpu.render.html.style import ROOT, notebook_style, page_style

STANDINGS: dict[Standing, str] = {
    "fine": "fine",
    "answered": "answered",
    "attention": "needs attention",
    "wrong": "something is wrong",
    "unknown": "cannot tell",
}
"""What the mark before a headline means."""


def page(sheet: Sheet, version: str) -> str:
    """One answer as a whole page. `version` is whygpu's."""
    content = [_verdict(sheet, h1), sheet.top, [_section(each, h2) for each in sheet.sections]]
    return _document(f"{sheet.headline} (whygpu {sheet.verb})", content, version)


def page_of_several(heading: str, sheets: Sequence[Sheet], version: str) -> str:
    """Several answers on one page, each with a headline of its own."""
    content = [header(h1(heading)), *map(_one_of_several, sheets)]
    return _document(f"{heading} (whygpu)", content, version)


def _one_of_several(sheet: Sheet) -> Html:
    parts = [_section(each, h3) for each in sheet.sections]
    verb = p(f"whygpu {sheet.verb}", kind="soft")
    return section(verb, _verdict(sheet, h2), sheet.top, parts, kind="sheet")


def fragment(sheet: Sheet) -> str:
    """One answer in a notebook. It has no script: untrusted notebooks would not run it."""
    content = [_verdict(sheet, h1), sheet.top, [_section(each, h2) for each in sheet.sections]]
    return _framed(content)


def fragment_of_several(sheets: Sequence[Sheet]) -> str:
    return _framed([_one_of_several(sheet) for sheet in sheets])


def _framed(content: Sequence[Child]) -> str:
    return str(div(style(own_text(notebook_style())), content, kind=ROOT))


def _document(name: str, content: Sequence[Child], version: str) -> str:
    sheet_text, script_text = page_style(), SCRIPT
    whole = html(
        head(
            meta(charset="utf-8"),
            element(
                "meta",
                http_equiv="Content-Security-Policy",
                content=_policy(sheet_text, script_text),
            ),
            meta(name="viewport", content="width=device-width, initial-scale=1"),
            meta(name="color-scheme", content="light dark"),
            title(name),
            style(own_text(sheet_text)),
        ),
        body(main(content), _imprint(version), script(own_text(script_text)), kind=ROOT),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{whole}\n"


def _policy(style_text: str, script_text: str) -> str:
    """Nothing is loaded, and nothing runs but our own script, whatever a name contains."""
    return (
        f"default-src 'none'; style-src '{_digest(style_text)}'; "
        f"script-src '{_digest(script_text)}'; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    from base64 import b64encode
    from hashlib import sha256

    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _verdict(sheet: Sheet, heading: Callable[..., Html]) -> Html:
    named = span(f"{STANDINGS[sheet.standing]}: ", kind="hidden")
    about = p(", ".join(sheet.about), kind="soft") if sheet.about else None
    words = div(heading(named, sheet.headline), about)
    return header(standing_mark(sheet.standing), words, kind="verdict")


def _section(part: Section, heading: Callable[..., Html]) -> Html:
    return section(heading(part.title), part.content)


def _imprint(version: str) -> Html:
    return footer(
        p(
            f"Made by whygpu {version}. It removes home folders, names of users and hosts, "
            "addresses and keys that it recognises, and keeps the names of files and nodes that "
            "an answer is about. Look through a page before you publish it."
        )
    )
