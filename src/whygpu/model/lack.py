"""Why a GPU cannot be used here, with what would help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.finding import Remedy
from whygpu.model.target import PLAIN_PIP, Installer


class Obstacle(NamedTuple):
    """One thing that is in the way."""

    text: str
    """Empty if the summary already says it."""
    remedy: Remedy | None


class Lack(NamedTuple):
    summary: str
    obstacles: tuple[Obstacle, ...] = ()
    installer: Installer = PLAIN_PIP
    """The installer of the target, for which commands are written."""

    @property
    def one_line(self) -> str:
        """The summary, with the first obstacle."""
        first = [obstacle.text for obstacle in self.obstacles[:1] if obstacle.text]
        return ": ".join([self.summary, *first])

    def __str__(self) -> str:
        return "\n".join([self.summary, *self._lines()])

    def _lines(self) -> Iterator[str]:
        for obstacle in self.obstacles:
            if obstacle.text:
                yield f"  {obstacle.text}"
            if obstacle.remedy is not None:
                yield f"    {remedy_text(obstacle.remedy, self.installer)}"
                command = shell_text(obstacle.remedy.action, self.installer)
                if command:
                    yield f"      {command}"
