"""A package prints a Python warning that has nothing to do with the GPU: harmless.

## Why it happens

Python packages warn about settings, versions and slow paths with `warnings.warn`. A warning is
printed once for each place in the code, with the file and the line of the call, and the program
continues. Warnings about a GPU, about memory or about a driver are not meant here.

## What it looks like

`UserWarning: ...`, `RuntimeWarning: ...`, `ResourceWarning: ...`, below the name of a file with a
line number; then often the source line `warnings.warn(`.

## Fix

None is needed for the GPU. Read the warning if results are not what you expect.

## Fires on (log)

```
/opt/venv/lib/python3.13/site-packages/google/protobuf/runtime_version.py:98: UserWarning: Protobuf gencode version 5.28.3 is exactly one major version older than the runtime version 6.31.1 at data.proto.
  warnings.warn(
```

## Quiet on (log)

```
/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 10010).
```

```
ValueError: shapes (3,4) and (5,6) not aligned
```

## Sources

- <https://docs.python.org/3/library/warnings.html#warning-categories>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.tables.gpu_vocabulary import message_is_about_gpu

CAUSE = cause("WG927", __name__, __doc__, severity="info", effect="none")

_WARNING = late(
    r":\d{1,6}: (?!Future|Deprecation|Pending)[A-Z]\w{2,40}Warning: (?P<text>[^\n]{3,400})"
)
_MOST_LINES = 8


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    ends = log.failed_lines()
    lines = [
        match.line
        for match in log.find(_WARNING)
        if match.line not in ends and not message_is_about_gpu(match.groups["text"] or "")
    ]
    if lines:
        yield CAUSE.finding(
            subject=subject_of(log),
            message="a package warns about something other than the GPU"
            + ("" if len(lines) == 1 else f" (on {len(lines)} lines)"),
            evidence=log.evidence(*lines[:_MOST_LINES]),
            remedies=(Remedy("Nothing needs to be done for the GPU."),),
        )
