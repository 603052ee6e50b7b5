"""A page of text for a terminal.

Made without rich, which takes longer to import than most answers take to make.
"""

from __future__ import annotations

import textwrap

BOLD, GREEN, YELLOW, RED, CYAN, DIM = "1", "32", "33", "31", "1;36", "2"


class Page:
    """Lines of text, wrapped under their labels, in colour or not."""

    def __init__(self, width: int, color: bool) -> None:
        self._width = width
        self._color = color
        self._lines: list[str] = []

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._color and style and text else text

    def line(self, text: str = "", style: str = "") -> None:
        """One line as it is: a command has to survive copy and paste."""
        self._lines.append(self.styled(text, style))

    def hanging(self, label: str, text: str, indent: int, style: str = "", mark: str = "") -> None:
        """A label with the text beside it; wrapped lines start under the text."""
        room = max(self._width - indent, 20)
        first, *rest = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
        shown = self.styled(label, mark) + " " * (indent - len(label))
        self._lines.append(shown + self.styled(first, style))
        self._lines += [" " * indent + self.styled(line, style) for line in rest]

    def section(self, title: str) -> None:
        self.line()
        self.line(f"{title}:", CYAN)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines) + "\n"
