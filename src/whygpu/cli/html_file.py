"""`--html FILE`: the answer of a verb as a page, besides what the verb prints."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from whygpu.errors import UsageError


def add_html_argument(parser: argparse.ArgumentParser, dest: str = "html") -> None:
    parser.add_argument(
        "--html",
        metavar="FILE",
        dest=dest,
        help="also write the answer as a page for a browser",
    )


_START = b"<!DOCTYPE html>"


class HtmlFile:
    """The file that was asked for, if one was. It is checked before the work begins."""

    def __init__(self, path: str | None, option: str = "--html", *, is_quiet: bool = False) -> None:
        from whygpu.cli import output

        if path in ("", "-"):
            raise UsageError(f"{option} {path!r}: expected the name of a file, such as page.html")
        self.path = output.require_writable(option, path)
        if self.path is not None and output.is_something_else(self.path, _START):
            raise UsageError(
                f"{option} {path}: this file exists and is not a page; choose another name"
            )
        self._is_quiet = is_quiet

    def write(self, answer: Any, names: Collection[str] = ()) -> None:
        """Call it after the answer is printed, which a full disk must not cost.

        `names` are fields that hold names of files.
        """
        if self.path is not None:
            from whygpu.render.html.answers import page

            self._save(answer, page, names)

    def write_several(self, heading: str, answers: Sequence[Any]) -> None:
        """Several answers on one page, each with a headline of its own."""
        if self.path is not None:
            from whygpu.render.html.answers import page_of_several

            self._save(tuple(answers), partial(page_of_several, heading), ())

    def _save(self, answer: Any, render: Callable[..., str], names: Collection[str]) -> None:
        from whygpu.cli import output
        from whygpu.version import VERSION

        assert self.path is not None
        made = partial(render, version=VERSION)
        output.save(self.path, answer, made, is_json=False, names=names)
        if not self._is_quiet:
            output.say(f"wrote {self.path}")
