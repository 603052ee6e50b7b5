"""Start a new cause: a file with the next free code of its family, a page and three detectors."""

from __future__ import annotations

import pathlib
import re
import sys

from tests.test_catalogue import FAMILIES
from tools.docs import LEDGER
from whygpu import causes

TEMPLATE = '''"""<The defect in one sentence>.

## Why it happens

<...>

## What it looks like

<...>

## Fix

<...>

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

## Fires on (log)

```
<lines that a real program printed>
```

## Quiet on (log)

```
<lines that look similar and mean something else>
```

## Fires on (code)

```python
<a few lines that have the defect>
```

## Quiet on (code)

```python
<the same, done right>
```

## Sources

- <https://...>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import need
from whygpu.model.program import Program
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause("CODE", __name__, __doc__, severity="error", effect="cpu", explains=("gpu-unused",))


# Keep the detectors that can see the defect. Delete the others, with their examples and imports.


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
'''


def next_code(family: str) -> str:
    """The first code of the family that was never given: the ledger remembers withdrawn ones."""
    digit = next(digit for digit, name in FAMILIES.items() if name == family)
    given = {line.split()[0] for line in LEDGER.read_text().splitlines()}
    given |= {cause.code for cause in causes.catalogue()}
    return next(f"WG{digit}{n:02}" for n in range(1, 100) if f"WG{digit}{n:02}" not in given)


def main(family: str, slug: str) -> None:
    if family not in FAMILIES.values() or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        sys.exit(
            "usage: make new-cause FAMILY=<folder> SLUG=<name-of-the-defect>\n"
            f"families: {', '.join(FAMILIES.values())}"
        )
    path = pathlib.Path(causes.__path__[0]) / family / f"{slug.replace('-', '_')}.py"
    if path.exists():
        sys.exit(f"{path} exists already")
    code = next_code(family)
    path.parent.mkdir(exist_ok=True)
    path.write_text(TEMPLATE.replace("CODE", code), encoding="utf-8")
    print(f"{code}: fill in {path}, then `make docs` and `make test-fast`")


if __name__ == "__main__":
    main(*(sys.argv[1:3] if len(sys.argv) >= 3 else ("", "")))
