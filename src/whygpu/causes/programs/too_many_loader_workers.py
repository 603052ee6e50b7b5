"""A DataLoader has more worker processes than the program has cores.

## Why it happens

`num_workers` was chosen for another machine. In a container, a job of a scheduler or a notebook
service, the program may use only a few of the cores of the machine. Workers beyond that take turns
on the same cores and need memory each.

## What it looks like

`This DataLoader will create 8 worker processes in total. Our suggested max number of worker in
current system is 2`. The GPU often waits for data.

## Fix

Use as many workers as the program has cores (`len(os.sched_getaffinity(0))`), or give it more
cores: `docker run --cpus`, `--cpus-per-task` in Slurm, the CPU request of the pod. More workers
than cores help only if they mostly wait for slow storage.

## Fires on (log)

```
/opt/conda/lib/python3.10/site-packages/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 8 worker processes in total. Our suggested max number of worker in current system is 2, which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.
```

## Quiet on (log)

```
Using 8 dataloader workers
```

## Sources

- <https://docs.pytorch.org/docs/stable/data.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

CAUSE = cause("WG741", __name__, __doc__, severity="warning", effect="none")

_WARNED = late(
    r"This DataLoader will create (?P<made>\d{1,5}) worker processes in total\. Our suggested max "
    r"number of worker in current system is (?P<cores>\d{1,5})"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    match = log.first(_WARNED)
    if match is None or log.failures:
        return
    made, cores = match.groups["made"], int(match.groups["cores"] or 0)
    yield CAUSE.finding(
        subject="torch",
        message=f"a DataLoader has {made} worker processes, and the program may use {cores} "
        f"core{'' if cores == 1 else 's'}: the workers take turns, and the GPU may wait for them",
        evidence=log.evidence(match.line),
        remedies=(
            Remedy(f"Use num_workers={cores}, unless the workers mostly wait for slow storage."),
            Remedy("Or give the program more cores, if a container or a job limits them."),
        ),
    )
