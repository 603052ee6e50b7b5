"""Write docs/causes from the pages in the cause files, and enter new codes in the ledger."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator, Sequence

from whygpu.causes import catalogue
from whygpu.model.cause import Cause
from whygpu.render.rule_page import page_text
from whygpu.tables.proofs import proofs_of

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "causes"
LEDGER = FOLDER / "ledger.txt"


FAMILIES = {
    "1": "The NVIDIA driver and the hardware",
    "2": "CUDA and cuDNN libraries, and the loader",
    "3": "Framework builds and Python packages",
    "4": "Selection, visibility and placement of devices",
    "5": "Memory",
    "6": "Keras and its backends",
    "7": "Program code",
    "8": "Containers, WSL, schedulers and other vendors",
    "9": "Harmless messages that look like a problem",
}
"""First digit of a code to what its causes are about."""


def pages() -> dict[str, str]:
    """File name to text, for everything under docs/causes but the ledger."""
    causes = catalogue()
    files = {
        f"{cause.code}-{cause.slug}.md": page_text(cause, proofs_of(cause.slug), examples=True)
        for cause in causes
    }
    files["README.md"] = "\n".join(_index(causes))
    return files


def _index(causes: Sequence[Cause]) -> Iterator[str]:
    yield "# Causes"
    yield ""
    yield (
        "Every reason that whygpu knows, with its code. `whygpu rule CODE` prints the same pages; "
        "the search of the site finds them by the words of an error message."
    )
    for digit, title in FAMILIES.items():
        yield from ("", f"## {digit}xx {title}", "", "| code | what is wrong | name | severity |")
        yield "| --- | --- | --- | --- |"
        for cause in causes:
            if cause.code[2] == digit:
                link = f"[{cause.code}]({cause.code}-{cause.slug}.md)"
                yield f"| {link} | {cause.title} | {cause.slug} | {cause.severity} |"
    yield ""


def ledger() -> str:
    """Every code that was ever given and its name. It only grows: a code is never used again."""
    entries: dict[str, str] = {}
    if LEDGER.exists():
        for line in LEDGER.read_text().splitlines():
            code, slug = line.split()
            entries[code] = slug
    for cause in catalogue():
        held = entries.setdefault(cause.code, cause.slug)
        if held != cause.slug:
            sys.exit(f"{cause.code} belongs to {held}; give {cause.slug} a new code")
    return "".join(f"{code} {slug}\n" for code, slug in sorted(entries.items()))


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    LEDGER.write_text(ledger(), encoding="utf-8")


if __name__ == "__main__":
    main()
