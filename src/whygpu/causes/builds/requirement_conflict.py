"""An installed package has a version that another installed package does not allow.

## Why it happens

pip installs what the last command asks for. It only warns if this breaks the requirements of a
package that was installed before. The installed packages are then not the ones that were tested
together.

## What it looks like

Often nothing: the requirement was stricter than necessary, or the part that does not match is not
used. Sometimes an error much later, in another place. Conflicts that are known to break the import
have their own causes (protobuf-conflict, numpy-abi, keras-tf-version-mismatch,
jax-plugin-mismatch).

## Fix

Install a version that both allow, or put the two packages into different environments.

## Fires on (machine)

```toml
[[target.conflicts]]
package = "torch"
requirement = "nvidia-cudnn-cu12==9.10.2.21"
found = "9.1.0.70"
```

## Quiet on (machine)

```toml
probes_left_out = "--no-probe"
[[target.conflicts]]
package = "tensorflow"
requirement = "protobuf>=5.28.0"
found = "4.25.3"
```

## Cannot tell on (machine)

```toml
[target.conflicts]
unknown = "site-packages: permission denied"
```

## Fires on (log)

```
ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. This behaviour is the source of the following dependency conflicts.
tensorflow 2.13.0 requires typing-extensions<4.6.0,>=3.6.6, but you have typing-extensions 4.8.0 which is incompatible.
```

## Quiet on (log)

Two packages that are unrelated to a framework:

```
ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. This behaviour is the source of the following dependency conflicts.
spyder 5.1.5 requires pyqt5<5.13, but you have pyqt5 5.15.2 which is incompatible.
```

## Sources

- <https://pip.pypa.io/en/stable/cli/pip_check/>
- <https://packaging.python.org/en/latest/specifications/dependency-specifiers/>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.builds import jax_plugin_mismatch, numpy_abi, protobuf_conflict
from whygpu.causes.evidence import packages
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.packages import (
    conflict_evidence,
    framework_name_of,
    other_version,
    package_named,
    required_name,
    tidy,
)
from whygpu.causes.keras import keras_tf_version_mismatch
from whygpu.model.cause import cause
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.remedy import Install, Pip, Steps, steps_of
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import RequirementConflict
from whygpu.tables.distributions import matters, normalised

CAUSE = cause("WG313", __name__, __doc__, severity="warning", effect="none")

_ADVICE = "Install an allowed version; pip then checks the requirements of the other packages."


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for conflict in need(machine.target.conflicts):
        if isinstance(conflict.found, Unknown):
            yield Gap(
                f"whether {conflict.package}'s requirement {conflict.requirement} is met: "
                f"{conflict.found.reason}"
            )
        elif not _has_own_cause(machine, conflict):
            yield _finding(machine, conflict)


def _has_own_cause(machine: Snapshot, conflict: RequirementConflict) -> bool:
    return (
        packages.claims(machine, conflict, protobuf_conflict.PACKAGE, protobuf_conflict.MESSAGES)
        or numpy_abi.claims(machine, conflict)
        or keras_tf_version_mismatch.claims(machine, conflict)
        or jax_plugin_mismatch.claims(machine, conflict)
    )


def _finding(machine: Snapshot, conflict: RequirementConflict) -> Finding:
    package = package_named(machine, conflict.package)
    version = f" {package.version}" if package else ""
    name = required_name(conflict.requirement)
    found = conflict.found
    remedy = other_version(machine, tidy(conflict.requirement), _ADVICE)
    here = f"{name} {found.value} is installed" if isinstance(found, Known) else "it is missing"
    return CAUSE.finding(
        subject=framework_name_of(conflict.package) or MACHINE,
        message=f"{conflict.package}{version} requires {tidy(conflict.requirement)}; {here}",
        evidence=(conflict_evidence(machine, conflict),),
        remedies=(remedy._replace(action=Steps((*steps_of(remedy.action), Pip(("check",))))),),
        confidence="possible",
    )


STATEMENTS = late(
    r"^(?:ERROR: )?(?P<package>[\w.-]{2,60}) \S{1,30} (?:requires|has requirement) (?P<wanted>[^\n]{2,120}?),? "
    r"but you(?:'ll)? have (?P<name>[\w.-]{2,60}) (?P<there>\S{1,30}) which is incompatible",
    re.MULTILINE,
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statements = [
        match
        for match in log.find(STATEMENTS)
        if any(matters(normalised(match.groups[part] or "")) for part in ("package", "name"))
    ]
    if not statements:
        return
    first = statements[0].groups
    yield CAUSE.finding(
        subject=subject_of(log),
        severity="info",
        message=f"pip installed {first['name']} {first['there']}, although {first['package']} "
        f"requires {first['wanted']}",
        evidence=log.evidence(*(match.line for match in statements)),
        remedies=(
            Remedy(
                "Install the required version.",
                Install((tidy(first["wanted"] or ""),)),
            ),
            Remedy("If two packages conflict, put them into different environments."),
        ),
    )
