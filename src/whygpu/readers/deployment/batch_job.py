"""Reads job scripts of Slurm, PBS and LSF: their directives, and the GPUs that they ask for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Literal, NamedTuple

from whygpu.model.deployment import Grant, ShellCommand, VariableSetting
from whygpu.model.requirement_file import FileLine
from whygpu.model.whole_numbers import whole_number
from whygpu.readers.deployment.shell_words import NumberedLine, commands

Scheduler = Literal["Slurm", "PBS", "LSF"]
MARKS: dict[Scheduler, str] = {"Slurm": "#SBATCH", "PBS": "#PBS", "LSF": "#BSUB"}
_SCHEDULERS = {mark: scheduler for scheduler, mark in MARKS.items()}
_COMMENTED = re.compile(
    r"^\s*#\s*#+\s*(?:SBATCH|PBS|BSUB)\b.*(?:gres|gpus|ngpus|-gpu|-G\b)|^\s*#\s+#?SBATCH\s.*(?:gres|gpus)"
)
_GPU_COUNT = re.compile(r"(?:^|[:=])(\d+)\s*$")
_PBS_GPUS = re.compile(r"\b(?:ngpus|gpus|naccelerators)=(\d+)")
_PBS_GPU_NODES = re.compile(r"\bngpus\b|[:=+]\w{0,20}gpu(?!_)", re.IGNORECASE)
"""nodes=1:gpu and nodes=gpu04 choose nodes; gres=gpu:1 and x=GRES:gpu@1 are Moab's request.
gpu_type=a100 only chooses among GPUs."""
_LSF_GPUS = re.compile(r"\bnum=(\d+)|ngpus\w{0,20}=(\d+)")
_GPU_ACCOUNT = re.compile(r"@(?:gpu|[avh]100)$|[-_]gpu$", re.IGNORECASE)
_SELECTED = re.compile(r"\bselect=(\d+)")
_SLURM_GPUS = ("--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "-G")


class Job(NamedTuple):
    scheduler: Scheduler
    place: FileLine
    """The first directive."""
    grants: tuple[Grant, ...]
    partition: str
    partition_place: FileLine | None
    grant_elsewhere: str
    node_choice: FileLine | None
    """A constraint that chooses nodes with GPUs."""
    gpu_account: FileLine | None
    """An account for hours of GPUs."""
    commented_grant: FileLine | None
    variables: tuple[VariableSetting, ...]
    commands: tuple[ShellCommand, ...]


def read(path: str, content: str) -> Job | None:
    """None if the script has no directives."""
    lines = [NumberedLine(number, line) for number, line in enumerate(content.split("\n"), 1)]
    directives = list(_directives(path, lines))
    if not directives:
        return None
    scheduler = directives[0].scheduler
    every = [directive for directive in directives if directive.scheduler == scheduler]
    mine = [directive for directive in every if not directive.is_late]
    if not mine:
        # Most likely a script that writes jobs.
        return None
    partition, where = "", None
    elsewhere = ""
    node_choice = gpu_account = None
    for directive in mine:
        for name in ("-p", "--partition", "-q", "--qos"):
            if name in directive.options and not partition:
                partition, where = directive.options[name], directive.place
        constraint = directive.options.get("-C", directive.options.get("--constraint", ""))
        if re.search(r"gpu|a100|v100|h100|nvidia", constraint, re.IGNORECASE):
            node_choice = directive.place
        if scheduler == "PBS" and "gpu_type=" in directive.options.get("-l", ""):
            node_choice = directive.place
        account = directive.options.get("-A", directive.options.get("--account", ""))
        if _GPU_ACCOUNT.search(account):
            gpu_account = directive.place
        # -x of Slurm excludes nodes.
        is_alone = "--exclusive" if scheduler == "Slurm" else "-x"
        if is_alone in directive.options:
            elsewhere = "the job has its nodes for itself"
        if any("gpu" in directive.options.get(name, "").lower() for name in ("-w", "--nodelist")):
            elsewhere = "it chooses nodes with GPUs by their names"
    found = commands(path, lines, {})
    return Job(
        scheduler,
        mine[0].place,
        tuple(_all_grants(mine, every)),
        partition,
        where,
        elsewhere,
        node_choice,
        gpu_account,
        _commented(path, lines),
        tuple(_variables(found)),
        found,
    )


class _Directive(NamedTuple):
    scheduler: Scheduler
    options: dict[str, str]
    place: FileLine
    is_late: bool
    """It comes after a command, where Slurm and PBS do not read it."""


def _directives(path: str, lines: list[NumberedLine]) -> Iterator[_Directive]:
    has_command = False
    for line in lines:
        word = line.text.partition(" ")[0].partition("\t")[0]
        scheduler = _SCHEDULERS.get(word)
        if scheduler is not None:
            options = _options(line.text[len(word) :])
            place = FileLine(path, line.number, line.text.strip())
            yield _Directive(scheduler, options, place, has_command and scheduler != "LSF")
        has_command |= bool(line.text.strip()) and not line.text.lstrip().startswith("#")


def _options(content: str) -> dict[str, str]:
    """--gres=gpu:1, --gres gpu:1, -p gpu, -pgpu; a comment at the end does not count."""
    try:
        words = shlex.split(content, comments=True)
    except ValueError:
        words = content.split()
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, has_value, value = word.partition("=")
            found[name] = value
            name = "" if has_value else name
        elif word.startswith("-") and len(word) > 1 and not word[1].isdecimal():
            known = word if word in ("-gpu",) or len(word) == 2 else word[:2]
            found[known] = word[len(known) :].lstrip("=")
            name = known if word == known else ""
        elif name:
            found[name] = word if not found[name] else f"{found[name]} {word}"
    return found


def _all_grants(mine: list[_Directive], every: list[_Directive]) -> Iterator[Grant]:
    """If no directive gives GPUs, those that come too late do not either."""
    found = [grant for directive in mine for grant in _grants(directive)]
    yield from found
    for directive in every if not found else ():
        for grant in _grants(directive):
            refused = f"{directive.scheduler} reads directives only up to the first command"
            yield grant._replace(refused=refused)


def _grants(directive: _Directive) -> Iterator[Grant]:
    options, place = directive.options, directive.place
    if directive.scheduler == "Slurm":
        for name in _SLURM_GPUS:
            if name in options:
                yield Grant(f"{name}={options[name]}", place, _slurm_count(name, options[name]))
        for name in ("--gres", "--tres-per-task", "--tres-per-node", "--tres-per-job"):
            if name in options and re.search("gpu|shard|mps", options[name], re.IGNORECASE):
                yield Grant(f"{name}={options[name]}", place, _slurm_count(name, options[name]))
    elif directive.scheduler == "PBS":
        wanted = " ".join(filter(None, (options.get("-l", ""), options.get("-W", ""))))
        match = _PBS_GPUS.search(wanted)
        if match is not None or _PBS_GPU_NODES.search(wanted):
            # Several chunks may be on one node.
            chunks = _SELECTED.search(wanted)
            is_one = chunks is None or chunks[1] == "1"
            yield Grant(f"-l {wanted}", place, int(match[1]) if match and is_one else None)
    else:
        wanted = f"{options.get('-gpu', '')} {options.get('-R', '')}"
        match = _LSF_GPUS.search(wanted)
        if "-gpu" in options or match is not None:
            numbers = match.groups() if match is not None and "/task" not in wanted else ()
            count = next((int(n) for n in numbers if n), None)
            yield Grant(f"-gpu {options.get('-gpu', '')}", place, count)


def _slurm_count(option: str, value: str) -> int | None:
    """How many GPUs the job has on a node; None where several tasks or sockets have them."""
    return None if option.endswith(("-per-task", "-per-socket")) else _count(value)


def _count(value: str) -> int | None:
    """gpu:a100:2 -> 2; gpu -> 1; with a variable None."""
    if "$" in value or "{" in value:
        return None
    match = _GPU_COUNT.search(value.partition(",")[0].partition("(")[0])
    if match is not None:
        return whole_number(match[1])
    return whole_number(value) if value.isdecimal() else 1 if value else None


def _commented(path: str, lines: list[NumberedLine]) -> FileLine | None:
    for line in lines:
        if _COMMENTED.search(line.text):
            return FileLine(path, line.number, line.text.strip())
    return None


def _variables(found: tuple[ShellCommand, ...]) -> Iterator[VariableSetting]:
    for command in found:
        words = command.words[1:] if command.words[0] == "export" else command.words
        for word in words:
            name, mark, value = word.partition("=")
            if not mark or not re.fullmatch(r"[A-Za-z_]\w*", name):
                break
            if name == "CUDA_VISIBLE_DEVICES" and value in ("", "-1") and word != words[-1]:
                # CUDA_VISIBLE_DEVICES= python prepare.py: this one command is for the CPU.
                continue
            yield VariableSetting(name, None if "$" in value else value, command.place)
