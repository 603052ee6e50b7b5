"""Ask the driver of this machine all that whygpu asks it, and show where the answer is a surprise.

    python -m tools.gpu_facts FOLDER [--python PYTHON] [--seconds 8]

FOLDER gets the answers: nvml.json (what NVML said), nvidia-smi.xml, check.json, and stress.json
with the test under load, for which PYTHON needs a framework (--seconds 0 leaves it out). Printed is
what to look at: each question that NVML refused, each value that nvidia-smi shows in another way,
and each fact that `whygpu check` could not tell. A machine with a GPU needs less than two minutes.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from whygpu.collectors import nvml
from whygpu.host.own_process import own_command, own_environ, verb_command

LONGEST = 100.0
"""Seconds for one command."""
HARDWARE = ("WG1", "WG501")
"""Codes of the causes that judge what the driver says of its GPUs."""

Fact = Mapping[str, Any]


class Field(NamedTuple):
    """The same fact in the answer of NVML and in that of nvidia-smi."""

    of_nvml: str
    of_smi: str
    place: int | None = None
    """In NVML's list."""
    divisor: float = 1.0
    """NVML counts bytes and milliwatts."""
    tolerance: float = 0.0


FIELDS = (
    Field("memory_total", "memory.total", divisor=1 << 20, tolerance=1.0),
    Field("ecc_uncorrected", "ecc.errors.uncorrected.volatile.total"),
    Field("power_limit", "power.limit", divisor=1000, tolerance=1.0),
    Field("power_default", "power.default_limit", divisor=1000, tolerance=1.0),
    Field("max_clock", "clocks.max.sm"),
    Field("max_memory_clock", "clocks.max.memory"),
    Field("pcie", "pcie.link.width.current", place=0),
    Field("pcie", "pcie.link.width.max", place=1),
    Field("pcie", "pcie.link.gen.max", place=3),
)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_facts")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args(words)
    options.folder.mkdir(parents=True, exist_ok=True)
    for line in surprises(options.folder, options.python, options.seconds):
        print(line, flush=True)
    return 0


def surprises(folder: pathlib.Path, python: str, seconds: float) -> Iterator[str]:
    survey = json.loads(
        _saved(folder / "nvml.json", own_command(sys.executable, nvml.WORKER)) or "{}"
    )
    if "gpus" not in survey:
        yield f"NVML does not start: {survey.get('text', 'no answer')}"
        return
    for number, gpu in enumerate(survey["gpus"]):
        for name, fact in facts_of(gpu):
            if "error" in fact:
                yield f"GPU {number}: {name}: NVML answers {fact['error']} ({fact['text']})"
    _saved(folder / "nvidia-smi.xml", ["nvidia-smi", "-q", "-x"])
    yield from _unlike_nvidia_smi(survey["gpus"])
    check = [*verb_command(["check"]), "--python", python, "--no-probe", "--json"]
    yield from _not_told(_saved(folder / "check.json", check))
    if seconds:
        loaded = [*check, "--stress", str(seconds)]
        yield from _not_told(_saved(folder / "stress.json", loaded))


def facts_of(gpu: Fact) -> Iterator[tuple[str, Fact]]:
    """Every answer about a GPU, by the name of the question."""
    if "error" in gpu:
        yield "the GPU itself", gpu
        return
    for name, fact in gpu.items():
        yield from fact.items() if name == "health" else [(name, fact)]


def _unlike_nvidia_smi(gpus: Iterable[Fact]) -> Iterator[str]:
    names = ",".join(field.of_smi for field in FIELDS)
    text = _output(["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader,nounits"])
    if not text:
        yield "nvidia-smi gave no answer to compare with"
        return
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    for number, (gpu, row) in enumerate(zip(gpus, rows, strict=False)):
        for line in unlike(gpu, row):
            yield f"GPU {number}: {line}"


def unlike(gpu: Fact, row: Iterable[str]) -> Iterator[str]:
    """What nvidia-smi prints in another way than NVML answers."""
    facts = dict(facts_of(gpu))
    for field, printed in zip(FIELDS, row, strict=False):
        fact = facts.get(field.of_nvml, {})
        value = fact.get("value")
        if field.place is not None and value is not None:
            value = value[field.place]
        shown = _number(printed)
        if value is None or shown is None:
            if (value is None) != (shown is None):
                yield f"{field.of_smi}: nvidia-smi prints {printed}, NVML answers {dict(fact)}"
        elif abs(value / field.divisor - shown) > field.tolerance:
            yield f"{field.of_smi}: nvidia-smi prints {printed}, NVML answers {value}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _not_told(text: str) -> Iterator[str]:
    """What whygpu found in the hardware, and what it could not tell of it."""
    report = json.loads(text or "{}")
    for finding in report.get("root_causes", ()):
        if finding["code"].startswith(HARDWARE):
            yield f"whygpu found {finding['code']}: {finding['message']}"
    for gap in report.get("undetermined", ()):
        if gap["code"].startswith(HARDWARE):
            yield f"whygpu cannot tell {gap['code']}: {gap['reason']}"


def _saved(file: pathlib.Path, command: Sequence[str]) -> str:
    text = _output(command)
    file.write_text(text, encoding="utf-8")
    return text.strip()


def _output(command: Sequence[str]) -> str:
    """What it prints; empty if it cannot be started or does not end."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
            env=own_environ(os.environ),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{command[0]}: {error}", file=sys.stderr)
        return ""
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
