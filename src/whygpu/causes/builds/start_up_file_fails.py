"""A file that Python runs at every start fails, and Python continues without it.

## Why it happens

At every start Python runs `sitecustomize`, `usercustomize` and the `import` lines of `.pth` files.
They add folders to the path, patch packages or start tools. If one of them fails, Python continues,
and every program lacks what the file would have set up.

## What it looks like

`Error in sitecustomize; set PYTHONVERBOSE for traceback:` or `Error processing line 1 of ...pth:`
before the program's own output. The program then runs with other packages than intended, or cannot
import one.

## Fix

Fix the file, or remove it if it is not needed. A `.pth` file is often left over from an uninstalled
package.

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
            "a file that Python runs at every start fails, so what it should set up is missing: "
            f"{complaints[0]}"
        ),
        evidence=tuple(seen(observed, text) for text in complaints),
        remedies=(Remedy("Fix the file, or remove it if it is not needed."),),
    )
