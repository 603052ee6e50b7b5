"""Start a new cause: a file with the next free code of its family, a page, and detectors."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tests.test_catalogue import FAMILIES
from tools.docs import LEDGER
from whygpu import causes

USAGE = (
    'usage: make new-cause FAMILY=<folder> SLUG=<name-of-the-defect> [SEEN_IN="machine log code"]'
)


class Part(NamedTuple):
    """What a skeleton contains for one place where the defect can be seen."""

    examples: str
    """The sections of the page."""
    detector: str
    imports: frozenset[str]
    """The names that the detector uses, each of which has a line in `IMPORTS`."""


IMPORTS = (
    ("whygpu.model.cause", ("cause",)),
    ("whygpu.model.code_finding", ("CodeFinding",)),
    ("whygpu.model.derived", ("nvidia_gpu",)),
    ("whygpu.model.finding", ("MACHINE", "Finding", "Gap", "Remedy", "seen")),
    ("whygpu.model.lazy_regex", ("late",)),
    ("whygpu.model.log", ("Log",)),
    ("whygpu.model.observed", ("need",)),
    ("whygpu.model.program", ("Program",)),
    ("whygpu.model.remedy", ("command_line",)),
    ("whygpu.model.snapshot", ("Snapshot",)),
)
"""Modules and their names, in the order of a sorted file."""

PAGE = '''"""<The defect in one sentence>.

## Why it happens

<...>

## What it looks like

<...>

## Fix

<...>

{examples}
## Sources

- <https://...>
"""

from __future__ import annotations

from collections.abc import Iterator

{imports}

CAUSE = cause("{code}", __name__, __doc__, severity="error", {effect})


{detectors}'''

SEVERAL = (
    "# Keep the detectors that can see the defect. Delete the others, with their examples and "
    "imports.\n\n\n"
)

PARTS = {
    "machine": Part(
        examples="""\
## Fires on (machine)

```toml
<in what this machine differs from a healthy one>
```

## Quiet on (machine)

```toml
<the nearest machine that does not have the defect>
```

## Cannot tell on (machine)

```toml
nothing_seen = true
```
""",
        detector="""\
@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    raise NotImplementedError
    yield CAUSE.finding(
        subject=MACHINE,
        message="<what was seen, what was expected, where>",
        evidence=(seen(machine.driver.version),),
        remedies=(Remedy("<what to do>", command_line("<command>")),),
    )
""",
        imports=frozenset(
            [
                "nvidia_gpu",
                "MACHINE",
                "Finding",
                "Gap",
                "Remedy",
                "seen",
                "need",
                "command_line",
                "Snapshot",
            ]
        ),
    ),
    "log": Part(
        examples="""\
## Fires on (log)

```
<lines that a real program printed>
```

## Quiet on (log)

```
<lines that look similar and mean something else>
```
""",
        detector="""\
_PHRASE = late(r"<what the log says, as a regular expression without unbounded repetition>")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    for match in log.find(_PHRASE):
        raise NotImplementedError
        yield CAUSE.finding(
            subject="<framework>",
            message="<what the log shows, and what it means>",
            evidence=log.evidence(match.line),
            remedies=(Remedy("<what to do>"),),
        )
""",
        imports=frozenset(("late", "Log", "Finding", "Remedy")),
    ),
    "code": Part(
        examples="""\
## Fires on (code)

```python
<a few lines that have the defect>
```

## Quiet on (code)

```python
<the same, done right>
```
""",
        detector="""\
@CAUSE.on_code("<a word without which a file cannot have it>")
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    for call in program.calls("<the full name of what is called>"):
        raise NotImplementedError
        yield CAUSE.in_code(
            program,
            call.node,
            subject="<framework>",
            message="<what is wrong, and what happens>",
            fix="<what to do>",
        )
""",
        imports=frozenset(("CodeFinding", "Program")),
    ),
}


def skeleton(code: str, seen_in: Sequence[str]) -> str:
    """The file of a cause that these detectors see."""
    parts = [part for place, part in PARTS.items() if place in seen_in]
    used = {"cause"}.union(*(part.imports for part in parts))
    imported = [
        (module, [name for name in names if name in used])
        for module, names in IMPORTS
        if used.intersection(names)
    ]
    return PAGE.format(
        code=code,
        effect='effect="cpu", explains=("gpu-unused",)'
        if "machine" in seen_in
        else 'effect="broken"',
        examples="\n".join(part.examples for part in parts),
        imports="\n".join(f"from {module} import {', '.join(names)}" for module, names in imported),
        detectors=(SEVERAL if len(parts) > 1 else "")
        + "\n\n".join(part.detector for part in parts),
    )


def next_code(family: str) -> str:
    """The first code of the family that was never given: the ledger remembers withdrawn ones."""
    digit = next(digit for digit, name in FAMILIES.items() if name == family)
    given = {line.split()[0] for line in LEDGER.read_text().splitlines()}
    given |= {cause.code for cause in causes.catalogue()}
    return next(f"WG{digit}{n:02}" for n in range(1, 100) if f"WG{digit}{n:02}" not in given)


def places_of(family: str, wanted: str) -> list[str]:
    """Where the defect can be seen: as asked, or wherever causes of the family can be."""
    possible = [
        place for place in PARTS if place != "machine" or family not in causes.UNSEEN_ON_MACHINES
    ]
    places = wanted.split() or possible
    for place in places:
        if place not in PARTS:
            sys.exit(f"SEEN_IN has no {place!r}; choose among {', '.join(PARTS)}\n{USAGE}")
        if place not in possible:
            sys.exit(
                f"the family {family} is not loaded for a machine: choose another family, or "
                f'SEEN_IN="{" ".join(possible)}"'
            )
    return places


def main(family: str, slug: str, seen_in: str = "") -> None:
    if family not in FAMILIES.values():
        sys.exit(
            f"there is no family {family!r}; choose among {', '.join(FAMILIES.values())}\n{USAGE}"
        )
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        sys.exit(
            f"{slug!r} is no name of a cause: small letters and digits, words joined by hyphens, "
            f"such as driver-too-old\n{USAGE}"
        )
    places = places_of(family, seen_in)
    path = pathlib.Path(causes.__path__[0]) / family / f"{slug.replace('-', '_')}.py"
    if path.exists():
        sys.exit(f"{path} exists already")
    code = next_code(family)
    path.parent.mkdir(exist_ok=True)
    path.write_text(skeleton(code, places), encoding="utf-8")
    print(f"{code}: fill in {path}")
    if "machine" not in places and family not in causes.UNSEEN_ON_MACHINES:
        print(
            f'No machine shows it: enter "{path.stem}" in NEVER_SEEN_ON_MACHINES in '
            "src/whygpu/causes/__init__.py"
        )
    print(
        "Then: make docs fix\n"
        "      .venv/bin/pytest -q -n 0 tests/test_catalogue.py tests/test_mutation.py\n"
        "Each step, with an example: docs/contributing.md, Adding a cause"
    )


if __name__ == "__main__":
    main(*(*sys.argv[1:], "", "")[:3])
