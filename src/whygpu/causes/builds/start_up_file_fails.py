"""A file that Python runs at every start raises an error, and Python goes on without it.

## Why it happens

Python runs `sitecustomize`, `usercustomize` and the `import` lines of `.pth` files when it starts.
They add folders to the path, patch packages or start tools. One that raises an error is left where
it is: what it would have added is missing, in every program.

## What it looks like

`Error in sitecustomize; set PYTHONVERBOSE for traceback:` or `Error processing line 1 of ...pth:`
before a program's own output. The program then runs, with other packages than those it was
meant to have, or it fails to import one.

## Fix

Mend the file, or remove it if nobody needs it. A `.pth` file is often what an uninstalled package
left behind.

## Fires on (machine)

```toml
[target.interpreter]
complaints = ["sitecustomize: ModuleNotFoundError: No module named 'site_settings'"]
```

## Quiet on (machine)

```toml
[target.interpreter]
complaints = []
```

## Cannot tell on (machine)

```toml
[target.interpreter]
complaints = {unknown = "the interpreter was not asked"}
```

## Sources

- <https://docs.python.org/3/library/site.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.driver import NOT_LOOKED
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.observed import NotApplicable, need
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG321", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    observed = need(machine.target.interpreter).complaints
    if observed == NOT_LOOKED:
        raise NotApplicable("start-up files in a snapshot that is older than this cause")
    complaints = need(observed)
    if not complaints:
        return
    yield CAUSE.finding(
        subject=MACHINE,
        message=(
            "a file that Python runs at every start fails, and what it would have set up is "
            f"missing: {complaints[0]}"
        ),
        evidence=tuple(seen(observed, text) for text in complaints),
        remedies=(Remedy("Mend the file, or remove it if nobody needs it."),),
    )
