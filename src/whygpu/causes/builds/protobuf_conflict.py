"""The installed protobuf does not match the generated code in TensorFlow.

## Why it happens

TensorFlow contains code that was generated for one release of protobuf. protobuf refuses code that
is newer than itself, or older by more than a major version. Often a package that was installed
later changes the version of protobuf.

## What it looks like

The import fails before the framework looks for a GPU: `cannot import name 'runtime_version' from
'google.protobuf'`, `Detected mismatched Protobuf Gencode/Runtime major versions`, or, with older
releases, `Descriptors cannot be created directly`.

## Fix

Install a protobuf version in the range that the framework's metadata give. If a second package
needs another range, put the two into different environments.

## Fires on (machine)

```toml
[probes.tensorflow]
ended = "exception"
stage = "import"
how = "ImportError: cannot import name 'runtime_version' from 'google.protobuf' (__init__.py)"
[target.packages.protobuf]
version = "4.25.3"
```

```toml
probes_left_out = "--no-probe"
[[target.conflicts]]
package = "tensorflow"
requirement = "protobuf>=5.28.0"
found = "4.25.3"
```

## Quiet on (machine)

The metadata conflict, but the import works; only requirement-conflict reports this.

```toml
[[target.conflicts]]
package = "tensorflow"
requirement = "protobuf>=5.28.0"
found = "5.27.1"
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[target.conflicts]
unknown = "site-packages: permission denied"
```

## Fires on (log)

Two copies of protobuf in one process:

```
[libprotobuf ERROR google/protobuf/descriptor_database.cc:641] File already exists in database: sentencepiece_model.proto
[libprotobuf FATAL google/protobuf/descriptor.cc:1371] CHECK failed: GeneratedDatabase()->Add(encoded_file_descriptor, size):
```

```
TypeError: Descriptors cannot not be created directly.
If this call came from a _pb2.py file, your generated code is out of date
```

```
[libprotobuf FATAL google/protobuf/stubs/common.cc:87] This program requires version 3.12.3 of the Protocol Buffer runtime library, but the installed version is 3.6.1.
```

```
  File "/opt/env/lib/python3.12/site-packages/tensorflow/core/framework/types_pb2.py", line 9, in <module>
    from google.protobuf.internal import enum_type_wrapper
  File "/opt/env/lib/python3.12/site-packages/google/protobuf/internal/python_message.py", line 60, in <module>
    class GeneratedProtocolMessageType(type):
TypeError: Metaclasses with custom tp_new are not supported.
```

## Quiet on (log)

```
ModuleNotFoundError: No module named 'google.colab'
```

```
ImportError: cannot import name 'builder' from 'mypackage.protos' (/app/mypackage/protos.py)
```



## Sources

- <https://protobuf.dev/support/cross-version-runtime-guarantee/>
- <https://github.com/tensorflow/tensorflow/issues/56266>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.log_exceptions import INSTALLED, match_at, raised_by
from whygpu.causes.evidence.log_subjects import ended_after, framework_title, subject_of
from whygpu.causes.evidence.packages import (
    ImportFault,
    import_faults,
    package_named,
    requirement_of,
    tidy,
)
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import Install, Pip
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG308",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails", "framework-crashes"),
)

PACKAGE = "protobuf"
MESSAGES = late(
    r"cannot import name '(?:runtime_version|builder|descriptor)' from 'google\.protobuf"
    r"|Detected (?:mismatched|incompatible) Protobuf Gencode/Runtime"
    r"(?:.*gencode (?P<gencode>[\d.]+\d) runtime (?P<runtime>[\d.]+\d))?"
    r"|Descriptors (?:cannot (?:not )?|should not )be created directly"
    r"|No module named 'google(?:\.protobuf)?(?:\.\w+)*'"
    r"|'google\.protobuf[\w.]*' has no attribute"
    r"|'MessageFactory' object has no attribute"
    r"|This program (?:requires|was compiled against) version [\d.]+ of the Protocol Buffer"
    r"|Couldn't build proto file into descriptor pool"
)
_FOR_PROTOBUF_3 = late(r"Descriptors (?:cannot|should)")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for fault in import_faults(machine, PACKAGE, MESSAGES):
        yield fault if isinstance(fault, Gap) else _finding(machine, fault)


def _finding(machine: Snapshot, fault: ImportFault) -> Finding:
    package = package_named(machine, PACKAGE)
    installed = f"protobuf {package.version}" if package else "the installed protobuf"
    wanted = tidy(fault.conflict.requirement) if fault.conflict else _wanted(machine, fault)
    verb = "cannot be imported with" if fault.message else "can most likely not be imported with"
    asked = f"; it needs {wanted}" if wanted else ""
    return CAUSE.finding(
        subject=fault.framework.name,
        message=f"{titled(fault.framework)} {verb} {installed}{asked}",
        evidence=fault.evidence,
        remedies=(
            Remedy(
                f"Install a protobuf that {titled(fault.framework)} accepts.",
                Install((wanted,)) if wanted else Install(("protobuf",), options=("upgrade",)),
            ),
            Remedy("Then check whether this conflicts with another package.", Pip(("check",))),
        ),
        confidence="certain" if fault.message else "likely",
    )


def _wanted(machine: Snapshot, fault: ImportFault) -> str | None:
    """The versions to install: from the framework's metadata, or else from the message."""
    own = requirement_of(machine, fault.framework, PACKAGE)
    if fault.message is None:
        return own
    if fault.message["gencode"]:
        return f"protobuf>={fault.message['gencode']}"
    if _FOR_PROTOBUF_3.search(fault.message.string):
        return "protobuf<3.21"
    return own


LOG_MESSAGES = late(
    r"cannot import name '?\w{1,40}'? from '?google\.protobuf"
    r"|cannot import name '?(?:runtime_version|symbol_database|message_factory|enum_type_wrapper)'?$"
    r"|Detected (?:mismatched|incompatible) Protobuf Gencode/Runtime"
    r"(?:[^\n]{0,300}gencode (?P<gencode>[\d.]+\d) runtime (?P<runtime>[\d.]+\d))?"
    r"|Descriptors (?:cannot (?:not )?|should not )be created directly"
    r"|No module named '?google\.protobuf(?:\.\w+)*'?"
    r"|'google\.protobuf[\w.]*' has no attribute"
    r"|'(?:MessageFactory|SymbolDatabase|FieldDescriptor|EnumDescriptor)' object has no attribute"
    r"|This program (?:requires|was compiled against) version [\d.]+ of the Protocol Buffer"
    r"|Couldn't build proto file into descriptor pool|duplicate file name \([\w/]{1,80}\.proto\)"
    r"|File already exists in database: \S{1,120}\.proto|conflicts with the existing symbol"
    r"|[Cc](?:HECK|heck) failed: (?i:generated_?database)\S{1,4}->Add"
    r"|__(?:new|init)__\(\) got an unexpected keyword argument '(?:serialized_options|create_key)'"
    r"|undefined symbol: \w{0,12}6google8protobuf|Couldn't parse file content!"
    r"|Couldn't find (?:message|field|enum) google\.protobuf"
    r"|'google\.(?:protobuf|_upb)[\w.]{0,60}' object has no attribute"
    r"|has no attribute '_internal_create_key'|google\.protobuf\.runtime_version\.VersionError",
    re.MULTILINE,
)


_GENERATED = late(r"_pb2\.pyc?$")
_PROTOBUF = late(r"[/\\]google[/\\]protobuf[/\\]")
_ABSENT = ("No module named 'google'", "No module named google")
_AT_IMPORT = ("TypeError", "AttributeError", "ImportError", "ModuleNotFoundError", "NameError")


def _inside_generated_code(log: Log) -> Match | None:
    """Generated code only calls protobuf, so its errors are about these two."""
    for raised in log.raised:
        generated = any(_GENERATED.search(frame) for frame in raised.frames[-4:])
        below = raised_by(raised, _GENERATED) or (generated and raised_by(raised, _PROTOBUF))
        absent = raised.message in _ABSENT and raised_by(raised, INSTALLED)
        native = "DLL load failed" in raised.message
        if raised.type in _AT_IMPORT and (below or absent) and not native:
            return match_at(log, raised)
    return None


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    match = log.first(LOG_MESSAGES) or _inside_generated_code(log)
    if match is None:
        return
    wanted = None
    if match.groups.get("gencode"):
        wanted = f"protobuf>={match.groups['gencode']}"
    elif _FOR_PROTOBUF_3.search(match.text):
        wanted = "protobuf<3.21"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the installed protobuf does not match the generated code in "
        f"{framework_title(log)}, so the import fails",
        evidence=log.evidence(
            match.line,
            *(found.line for found in log.find(LOG_MESSAGES)),
            *ended_after(log, match.line),
        ),
        remedies=(
            Remedy(
                "Install a protobuf that the code was generated for.",
                Install((wanted,)) if wanted else Install(("protobuf",), options=("upgrade",)),
            ),
            Remedy("Then check whether this conflicts with another package.", Pip(("check",))),
        ),
    )
