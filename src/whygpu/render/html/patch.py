"""What `whygpu lint --fix` would change, as a patch."""

from __future__ import annotations

from whygpu.model.code_finding import SourcePatch
from whygpu.render.html.parts import Sheet, items, lines, sections


def sheet(patch: SourcePatch) -> Sheet:
    text = patch.content.decode("utf-8", "replace").splitlines()
    return Sheet(
        "lint --diff",
        "unknown" if patch.problems else "answered",
        "What --fix would change" if text else "Nothing to change",
        sections=sections(
            ("Patch", lines(text) if text else None),
            ("Not read", items(f"{each.path}: {each.message}" for each in patch.problems)),
        ),
    )
