"""What it takes to install whygpu and to start it: seconds, packages and MB.

    make package
    python -m benchmarks.install_weight [--runs 3] [--write]

Everything happens in empty folders, with the wheel in `dist` and its dependencies in a folder of
wheels, which is the only index: the network is not measured. Of several runs the shortest time
counts, because other programs can only make it longer. They add little to the processor time, which
is measured too. `--write` puts the tables into docs/install.md. pipx and uv are installed for it,
into an environment of their own.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "install.md"
_TABLES = re.compile(r"(?<=<!-- install -->\n).*?(?=<!-- end -->)", re.DOTALL)
_WEIGHT = """
import importlib.metadata as metadata, os
for package in metadata.distributions():
    size = sum(os.path.getsize(f.locate()) for f in package.files if f.locate().is_file())
    print(package.name, package.version, size)
"""
"""Run by the Python of the new environment."""


class Cost(NamedTuple):
    seconds: float
    processor: float
    """Seconds of processor time, of all processes of the command."""


class Timing(NamedTuple):
    command: str
    first: Cost
    again: Cost | None
    """None if a second time would do nothing."""


class Weight(NamedTuple):
    package: str
    version: str
    bytes: int


class Place:
    """An empty folder with the tools of a person who has not installed whygpu yet."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.links = folder / "links"
        self.tools = _environment(folder / "tools")
        wheels = list((ROOT / "dist").glob("*.whl"))
        if len(wheels) != 1:
            sys.exit("dist must have the wheel to install, and no other: make package")
        (self.wheel,) = wheels
        _run([self.tools("pip"), "install", "-q", "pipx", "uv"], os.environ)
        _run([self.tools("pip"), "download", "-q", "-d", self.links, self.wheel], os.environ)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environ = kept | {
            "HOME": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.links),
        }

    def time(self, command: str, *words: object, again: bool = True) -> Timing:
        first = _run(words, self.environ, self.folder)
        return Timing(command, first, _run(words, self.environ, self.folder) if again else None)


def _environment(folder: pathlib.Path) -> Programs:
    _run([sys.executable, "-m", "venv", folder], os.environ)
    return Programs(folder)


class Programs:
    """The programs of a virtual environment, by their names."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._bin = folder / "bin"

    def __call__(self, name: str) -> str:
        return str(self._bin / name)


def _run(words: object, environ: Mapping[str, str], folder: pathlib.Path | None = None) -> Cost:
    assert isinstance(words, list | tuple)
    start, before = time.perf_counter(), _processor_time()
    done = subprocess.run(
        [str(word) for word in words], env=environ, cwd=folder, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1, 4):
        raise SystemExit(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return Cost(seconds, _processor_time() - before)


def _processor_time() -> float:
    """Of all processes that this one has started, and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def measure(folder: pathlib.Path) -> tuple[list[Timing], list[Weight]]:
    place = Place(folder)
    new = _environment(folder / "venv")
    pip, python, whygpu = new("pip"), new("python"), new("whygpu")
    uvx, pipx = place.tools("uvx"), place.tools("pipx")
    timings = [
        place.time("pip install whygpu", pip, "install", "whygpu", again=False),
        place.time("whygpu --help", whygpu, "--help"),
        place.time("whygpu", whygpu),
        place.time("python -m whygpu", python, "-m", "whygpu"),
        place.time("pipx run whygpu", pipx, "run", "--backend", "pip", "whygpu"),
        place.time("uvx whygpu", uvx, "--no-index", "--find-links", place.links, "whygpu"),
    ]
    listed = subprocess.check_output([python, "-c", _WEIGHT], text=True).splitlines()
    rows = [Weight(name, version, int(size)) for name, version, size in map(str.split, listed)]
    weights = [row for row in rows if row.package not in ("pip", "setuptools")]
    return timings, sorted(weights, key=lambda row: -row.bytes)


def shortest(runs: list[list[Timing]]) -> list[Timing]:
    """The shortest times of each command, from runs of the same commands."""
    return [
        Timing(
            same[0].command,
            _least([timing.first for timing in same]),
            _least(again) if (again := [t.again for t in same if t.again is not None]) else None,
        )
        for same in zip(*runs, strict=True)
    ]


def _least(costs: list[Cost]) -> Cost:
    """The shortest time and the least processor time, which may be of different runs."""
    return Cost(min(cost.seconds for cost in costs), min(cost.processor for cost in costs))


def tables(timings: list[Timing], weights: list[Weight], wheel_bytes: int, how: str) -> str:
    lines = [
        "| command | first time | processor | again | processor |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in timings:
        cells = [_seconds(value) for cost in (row.first, row.again) if cost for value in cost]
        lines.append(f"| `{row.command}` | {' | '.join(cells + [''] * (4 - len(cells)))} |")
    lines += ["", "| package | version | MB |", "| --- | --- | ---: |"]
    lines += [f"| {row.package} | {row.version} | {_mb(row.bytes)} |" for row in weights]
    total = sum(row.bytes for row in weights)
    lines += [
        f"| {len(weights)} packages | | {_mb(total)} |",
        "",
        f"The wheel of whygpu has {_mb(wheel_bytes)} MB. Measured on {time.strftime('%Y-%m-%d')} "
        f"with Python {platform.python_version()} on {os.cpu_count()} processor cores, without a "
        f"GPU, and without a framework in the environment; {how}.",
        "",
    ]
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 0.05 else "under 0.1 s"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the tables into docs/install.md")
    parser.add_argument("--runs", type=int, default=3, help="how often to measure (default: 3)")
    options = parser.parse_args()
    load = os.getloadavg()[1]
    runs = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            timings, weights = measure(pathlib.Path(folder))
        runs.append(timings)
    (wheel,) = (ROOT / "dist").glob("*.whl")
    others = f"with other programs running (load average {load:.0f})"
    how = f"the shortest of {options.runs} runs, {others}"
    text = tables(shortest(runs), weights, wheel.stat().st_size, how)
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(_TABLES.sub(lambda _: text, page), encoding="utf-8")


if __name__ == "__main__":
    main()
