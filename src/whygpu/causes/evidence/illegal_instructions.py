"""An illegal instruction: what the processor lists, what was tried, and what a log shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from whygpu.causes.evidence.framework_builds import titled
from whygpu.model.derived import and_list
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import Cpu, TrialOutcome
from whygpu.model.target import Framework
from whygpu.tables.onednn_isa import VARIABLES, allows

SIGNAL = late(
    r"\bIllegal [Ii]nstruction\b(?! Parameter)"
    r"|\billegal (?:hardware instruction\b|instruction \(?core dump)"
    r"|Instrucci\w{1,2}n ilegal|Instru\w{2,4}o ilegal"
    r"|Instruction non permise|Ung\w{1,2}ltiger Maschinenbefehl|Istruzione non consentita"
    r"|\u975e\u6cd5\u6307\u4ee4"
    r"|\u041d\u0435\u0434\u043e\u043f\u0443\u0441\u0442\u0438\u043c\u0430\u044f"
    r" \u0438\u043d\u0441\u0442\u0440\u0443\u043a\u0446\u0438\u044f"
    r"|\bSIGILL\b|EXC_BAD_INSTRUCTION|(?:0xC000001D|3221225501|-1073741795)"
    r"|[Ee]xit(?:ed with)? (?:code|status):? 132\b|STATUS_ILLEGAL_INSTRUCTION"
)
"""How logs report that the processor refused an instruction."""

_LISTED = late(
    r"(?:binary was not compiled to use|CPU instructions in performance[ -]critical operations"
    r"|To enable the following instructions|library wasn't compiled to use)"
    r":? (?P<sets>[A-Z][A-Z0-9_.]{2,12}(?:,? [A-Z][A-Z0-9_.]{2,12}){0,24})"
)
"""TensorFlow names instruction sets that the processor has."""

_FLAGS = late(
    r"^[ \t]{0,8}[Ff]lags[ \t]{0,20}:[ \t]{1,40}(?P<flags>fpu [\w ]{20,4000})$", re.MULTILINE
)
"""The processor's own list, as /proc/cpuinfo and lscpu print it. It is complete."""

WHICH_SETS = command_line("grep -m1 -oE 'avx[^ ]*|amx[^ ]*' /proc/cpuinfo")
ASK = (
    "Does `grep -m1 -c -w avx /proc/cpuinfo` print 0? Then the processor has no AVX. If it prints "
    "1, does the program still crash with ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 set? `whygpu run` "
    "tests which instructions work."
)


def lacking(cpu: Cpu, framework: Framework) -> Observed[str]:
    """Instruction sets that the build uses and the processor lacks; absent if there are none."""
    used, there = framework.build.cpu_features, cpu.instruction_sets
    if not isinstance(used, Known):
        return used
    if not used.value:
        return Absent(used.source)
    if isinstance(there, Unknown):
        return Unknown(f"whether {titled(framework)} can run on this processor: {there.reason}")
    missing = [name.upper() for name in used.value if name not in listed_sets(cpu)]
    return Known(and_list(missing), used.source) if missing else Absent(used.source)


def without_avx(cpu: Cpu) -> bool:
    """Whether the processor is known to have no AVX, which many builds require."""
    x86 = cpu.architecture in ("x86_64", "AMD64")
    return x86 and isinstance(cpu.instruction_sets, Known) and "avx" not in listed_sets(cpu)


def trapping_in_use(machine: Snapshot) -> Observed[tuple[str, ...]]:
    """The sets that trap and that oneDNN may use, according to the variable that limits it."""
    found = trapping(machine.system.cpu)
    if not isinstance(found, Known):
        return found
    given = (machine.environment.get(name) for name in VARIABLES)
    limit = next((each.value for each in given if isinstance(each, Known)), None)
    used = (name for name in found.value if limit is None or allows(limit, name))
    return Known(tuple(used), found.source)


def accounted_for(machine: Snapshot, framework: Framework) -> bool:
    """Whether the processor explains that a framework crashes with an illegal instruction."""
    cpu = machine.system.cpu
    if without_avx(cpu) or isinstance(lacking(cpu, framework), Known):
        return True
    unusable = trapping_in_use(machine)
    return isinstance(unusable, Known) and bool(unusable.value)


def trapping(cpu: Cpu) -> Observed[tuple[str, ...]]:
    """Instruction sets that the processor lists and that trap when executed."""
    if not isinstance(cpu.trials, Known):
        return cpu.trials
    listed = listed_sets(cpu)
    found = (trial.feature for trial in cpu.trials.value if trial.outcome == "traps")
    return Known(tuple(name for name in found if name in listed), cpu.trials.source)


def looked_at(cpu: Cpu) -> str:
    """What is known about the processor's instructions, for a result that is not certain."""
    if not isinstance(cpu.instruction_sets, Known):
        return f"what the processor lists is unknown ({_why_not(cpu.instruction_sets)})"
    if not isinstance(cpu.trials, Known):
        sets = [name for name in listed_sets(cpu) if name.startswith(("avx", "amx"))]
        lists = f"the processor lists {and_list(sets) if sets else 'no AVX'}"
        return f"{lists}; {_why_not(cpu.trials)}"
    found = [
        f"{and_list(names)} {how}"
        for outcome, how in _OUTCOMES.items()
        if (names := [each.feature for each in cpu.trials.value if each.outcome == outcome])
    ]
    return f"of what the processor lists, {and_list(found)}" if found else "it lists no AVX"


_OUTCOMES: Mapping[TrialOutcome, str] = {
    "runs": "can be executed here",
    "traps": "cannot",
    "not-permitted": "are not permitted by the kernel",
    "unclear": "gave no clear answer",
}


def _why_not(fact: Absent | Unknown) -> str:
    return fact.reason if isinstance(fact, Unknown) else f"not in {fact.source}"


def listed_sets(cpu: Cpu) -> tuple[str, ...]:
    return cpu.instruction_sets.value if isinstance(cpu.instruction_sets, Known) else ()


class Refused(NamedTuple):
    """A log of a program that crashed with an illegal instruction."""

    first: Match
    worked: bool
    """It had made progress before."""
    has_avx: bool | None
    """None if it is unknown."""
    lists_amx: bool
    listing: tuple[int, ...]
    """The lines that name the instructions of the processor."""
    lacks_avx2: bool = False
    """The log shows all instruction sets, with AVX and without AVX2."""


def refused_in(log: Log) -> Refused | None:
    first = log.first(SIGNAL)
    if first is None:
        return None
    sets = _sets_of(log)
    avx = [name for name in sets if name.startswith("avx")]
    return Refused(
        first=first,
        worked=any(line < first.line for line in log.progress),
        has_avx=bool(avx) if sets else None,
        lists_amx=any(name.startswith("amx") for name in sets),
        listing=tuple(match.line for pattern in (_LISTED, _FLAGS) for match in log.find(pattern)),
        lacks_avx2=log.says(_FLAGS) and "avx" in sets and "avx2" not in sets,
    )


def _sets_of(log: Log) -> tuple[str, ...]:
    """Instruction sets of the processor, from the machine's own list or from TensorFlow's log.

    TensorFlow names only those that its build does not use, so AVX2 or FMA imply AVX too.
    """
    if log.processor is not None and isinstance(log.processor.instruction_sets, Known):
        return log.processor.instruction_sets.value or ("none",)
    flags = log.first(_FLAGS)
    if flags is not None:
        listed = (flags.groups["flags"] or "").split()
        return tuple(name for name in listed if name.startswith(("avx", "amx"))) or ("none",)
    words = (match.groups["sets"] or "" for match in log.find(_LISTED))
    found = {name.lower() for text in words for name in text.replace(",", " ").split()}
    # A set that always comes with AVX.
    return tuple(sorted(found | ({"avx"} if found & {"fma", "f16c"} else set())))
