"""Run the commands that the documentation shows, and write their output into it.

A block that starts with a `$` line shows a command and its output. The comment above it says with
which files the command runs:

    <!-- run: train.log is tests/logs/h200-torch-hidden.log; first 12 lines -->

`make docs` runs the command and writes what it prints, so that the page cannot go stale. A block of
plain command lines is run as well, and its output is ignored. What cannot run everywhere has
a reason instead:

    <!-- not run: needs a GPU -->

The options of such commands are still checked.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs" / "examples"
STANDARD_FILES = {
    "machine.json": "tests/machines/h200-hidden-out-of-range.json",
    "train.log": "tests/logs/h200-torch-hidden.log",
}
"""Files that commands name besides those in docs/examples, if a comment does not say otherwise."""

ANY_PROGRAM = "train.py"
"""In docs/examples, it stands for the reader's own program."""

PROGRAMS = ("whygpu", "python", "pip", "pipx", "uvx", "uv", "conda", "make", "docker", "pre-commit")

_FENCE = re.compile(
    r"(?:^<!-- (?P<kind>run|not run):(?P<note>[^\n]*?) -->\n\n?)?"
    r"^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LISTING = re.compile(r"^~~~.*?^~~~$", re.MULTILINE | re.DOTALL)
"""A block that shows the source of a page, with blocks of its own in it."""

_SHELL = ("", "console", "sh")
_COMMAND = re.compile(rf"(?:\$ )?(?:\w+=\S* )*(?:{'|'.join(PROGRAMS)})(?: |$)")
_REMARK = re.compile(r"(?:  +| +# ).*")
_FILE = re.compile(r"(\S+) is ([^\s;,]+)")
_FIRST = re.compile(r"first (\d+) lines")
_INLINE = re.compile(r"(?<!`)`(whygpu(?: [^`\n]+)?)`(?!`)")

WORKS = (0, 1, 4)
"""Exit codes of a command that has given an answer."""


class Block(NamedTuple):
    page: Path
    line: int
    kind: str
    """run, not run, or empty"""
    note: str
    """What the comment says."""
    body: str
    """The lines between the fences."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def shows_output(self) -> bool:
        return self.body.startswith("$ ")

    @property
    def commands(self) -> tuple[str, ...]:
        """Without prompts and the remarks behind them."""
        lines = [line for line in self.body.splitlines() if _COMMAND.match(line)]
        if self.shows_output:
            return tuple(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
        return tuple(_REMARK.sub("", line) for line in lines)


class Failure(Exception):
    """A command of a page did not give an answer."""


def pages() -> tuple[Path, ...]:
    """Every page that a person has written."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return tuple(sorted(page for page in found if page.parent.name not in ("causes", "reference")))


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page that have commands."""
    for match in _FENCE.finditer(page.read_text(encoding="utf-8")):
        if block := _block(page, match):
            yield block


def _block(page: Path, match: re.Match[str]) -> Block | None:
    line = match.string.count("\n", 0, match.start("body"))
    block = Block(page, line, match["kind"] or "", match["note"] or "", match["body"])
    if match["language"] not in _SHELL or not block.commands:
        return None
    listings = _LISTING.finditer(match.string)
    return None if any(it.start() < match.start() < it.end() for it in listings) else block


def inline_commands(page: Path) -> tuple[str, ...]:
    """Commands in the middle of a sentence or a table."""
    return tuple(dict.fromkeys(_INLINE.findall(page.read_text(encoding="utf-8"))))


def usage_error(command: str) -> str:
    """Why whygpu does not accept the words of this command; empty if it does, or is not in it."""
    from whygpu.cli.parser import parse
    from whygpu.errors import UsageError

    for part in re.split(r"\s(?:\||&&|;)\s", command):
        words = shlex.split(re.sub(r"\s+\d?>.*", "", part))
        while words and re.fullmatch(r"\w+=.*", words[0]):
            del words[0]
        if words[:1] != ["whygpu"]:
            continue
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            try:
                parse(words[1:])
            except SystemExit as stop:
                if stop.code:
                    return said.getvalue()
            except UsageError as error:
                return str(error)
    return ""


def files_of(block: Block) -> tuple[str, ...]:
    """The files of this repository that a reader needs for the commands of a block."""
    renamed = _renamed_files(block)
    words = {word for command in block.commands for word in shlex.split(command)}
    examples = [EXAMPLES / word for word in words - set(renamed) - {ANY_PROGRAM}]
    found = [str(path.relative_to(ROOT)) for path in examples if path.is_file()]
    return (*renamed.values(), *found)


def _renamed_files(block: Block) -> dict[str, str]:
    """The files that the comment gives another name for the commands."""
    return dict(_FILE.findall(block.note)) if block.kind == "run" else {}


def run(block: Block) -> tuple[str, ...]:
    """What each command of the block prints, one after the other in one folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "work")
        shutil.copytree(EXAMPLES, folder)
        for shown_name, source in {**STANDARD_FILES, **_renamed_files(block)}.items():
            (folder / shown_name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / source, folder / shown_name)
        environ = _environment(Path(name))
        return tuple(_output(block, command, folder, environ) for command in block.commands)


def _environment(scratch: Path) -> dict[str, str]:
    """Nothing of the reader's or the tester's own settings; whygpu and python are ours."""
    home, programs = scratch / "home", scratch / "bin"
    home.mkdir()
    programs.mkdir()
    for name in ("python", "python3"):
        (programs / name).symlink_to(sys.executable)
    (programs / "whygpu").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m whygpu "$@"\n')
    (programs / "whygpu").chmod(0o755)
    path = os.pathsep.join((str(programs), "/usr/local/bin", "/usr/bin", "/bin"))
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "COLUMNS": "80"}


def _output(block: Block, command: str, folder: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode not in WORKS:
        raise Failure(f"{block.place}: {command!r} ends with {done.returncode}:\n{text}")
    return text


def updated(page: Path) -> str:
    """The text of a page with the output that its commands have now."""

    def replaced(match: re.Match[str]) -> str:
        block = _block(page, match)
        if block is None or block.kind != "run" or not block.shows_output:
            return match[0]
        before = match[0].removesuffix(f"{block.body}```")
        return f"{before}{shown(block, run(block))}```"

    return _FENCE.sub(replaced, page.read_text(encoding="utf-8"))


def shown(block: Block, outputs: Sequence[str]) -> str:
    """The body of a block: each command and the part of its output that the comment asks for."""
    limit = _FIRST.search(block.note)
    parts = []
    for command, output in zip(block.commands, outputs, strict=True):
        lines = [line.rstrip() for line in output.rstrip("\n").splitlines()]
        if limit and len(lines) > int(limit[1]):
            lines[int(limit[1]) :] = ["..."]
        parts.append("\n".join((f"$ {command}", *lines, "")))
    return "".join(parts)


def main() -> None:
    for page in pages():
        text = updated(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"updated {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
