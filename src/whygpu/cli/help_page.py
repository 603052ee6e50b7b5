"""The page that `whygpu --help` prints, without argparse, whose import takes longest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from whygpu.cli.verb_help import VERDICT, exit_codes

SUMMARIES = {
    "check": "Does each framework use the GPU? If not: the root cause, the evidence, the fix.",
    "compare": "Do CPU, GPU and other backends give the same results, and how fast is each?",
    "completion": "Print the script that completes the words of whygpu in a shell.",
    "diff": "What changed between two machines, environments or days, and does it matter?",
    "explain": "What does this log mean? The root cause, the lines that prove it, the fix.",
    "fix": "Repair the environment: test a remedy in a copy, apply it, or undo it.",
    "fleet": "Many machines: which nodes are not like the others, and why?",
    "history": "Record each check and run, to say what changed since it last worked.",
    "lint": "Which lines of my program mishandle devices?",
    "lsp": "Serve an editor: what lint finds, while you type.",
    "mcp": "Let an agent ask: the verbs as tools of the Model Context Protocol.",
    "memory": "Who holds GPU memory, and what would a new process take?",
    "plan": "Which releases can use the GPU of this machine, or of one that options describe?",
    "report": "Check, memory and plan of this machine on one page, to send to somebody.",
    "rule": "The page of one cause: why it happens, what it looks like, how to fix it.",
    "run": "Run a program on the device you choose, repaired, and report where it ran.",
    "snapshot": "Save what whygpu sees of this machine and environment, without private data.",
}
"""The first line of each verb's module: the modules themselves take too long to import for it."""

USAGE = "whygpu [-h] [--version] VERB ..."

PURPOSE = "Tells why a deep-learning program does or does not use its GPU."

_TOP = f"""\
usage: {USAGE}

{PURPOSE}

options:
  -h, --help  show this help message and exit
  --version   show program's version number and exit

verbs:
"""

EXAMPLES = """\
  whygpu                              does each framework here use the GPU?
  whygpu --python ~/venv/bin/python   the same for another environment
  whygpu check --json | jq .verdict   for scripts
  whygpu snapshot -o machine.json     save what was seen, to post in an issue
  whygpu check --snapshot FILE        diagnose a machine from its snapshot
  whygpu diff machine.json            what has changed since, is it the reason?
  whygpu history on                   compare failures with the last good run
  whygpu explain train.log            what a log or traceback means
  whygpu fix                          test a remedy in a copy; --apply does it
  whygpu plan tensorflow jax          which releases fit this machine
  whygpu run -- python train.py       run it, repaired, and report where it ran
  whygpu compare model.keras          do CPU, GPU and others agree?
  whygpu lint train.py                which lines mishandle devices
  whygpu memory                       who holds GPU memory, what is left
  whygpu report -o page.html          all of it on a page, to send to somebody
  whygpu fleet report snapshots/      which of my nodes are not like the others
  whygpu rule WG203                   what one code means
"""

_BOTTOM = f"""
examples:
{EXAMPLES}
`whygpu VERB --help` lists the options of a verb.

{exit_codes(VERDICT)}"""

_NAMES_WIDE = 14
_MOST_COLUMNS = 100
_FEWEST_COLUMNS = 40


def columns_asked() -> int:
    """The width that COLUMNS asks for; 0 if it is not set, or not to a number."""
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 6 else 0


def columns() -> int:
    """How wide a page of help may be. shutil's function would import compression libraries."""
    if columns_asked():
        return max(min(columns_asked(), _MOST_COLUMNS), _FEWEST_COLUMNS) - 2
    try:
        return min(os.get_terminal_size().columns, _MOST_COLUMNS) - 2
    except OSError:
        return 78


def help_page() -> str:
    rows = (row for name, summary in SUMMARIES.items() for row in _rows(name, summary))
    return _TOP + "\n".join(rows) + "\n" + _BOTTOM


def _rows(name: str, summary: str) -> Iterator[str]:
    """The verb, and its summary in a column of its own."""
    first = f"  {name}"
    for line in _wrapped(summary.split(), max(columns() - _NAMES_WIDE, 20)):
        yield f"{first:{_NAMES_WIDE}}{line}"
        first = ""


def _wrapped(words: Iterable[str], width: int) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip()
    yield line
