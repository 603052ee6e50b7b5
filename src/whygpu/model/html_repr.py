"""What a notebook shows of a report: HTML, if `whygpu` has said who makes it.

Reports are at the bottom of the package, and what renders them is above. So the function is handed
in when a verb is first used; without one, a notebook shows the short repr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

render: Callable[[Any], str] | None = None


def html_repr(report: Any) -> str | None:
    """IPython takes None for "nothing to show", and shows the repr."""
    return None if render is None else render(report)
