"""XLA or cuDNN needs long to compile or to choose an algorithm: slow, but not an error.

## Why it happens

Compilation happens once for each input shape. XLA reports steps that take longer than usual,
because some programs can be changed to avoid them.

## What it looks like

`Very slow compile? If you want to file a bug, ...`, `[Compiling module ...] Very slow compile?`,
`Constant folding an instruction is taking > 1s`, `Trying algorithm ... is taking a while...`,
`Delay kernel timed out: measured time has sub-optimal accuracy.`

## Fix

None is needed. Steps after the first are fast; inputs of one shape avoid compiling again.

## Fires on (log)

```
2024-05-20 13:00:00.000001: E external/local_xla/xla/service/slow_operation_alarm.cc:65] Constant folding an instruction is taking > 1s:
2024-05-20 13:00:01.000001: E external/local_xla/xla/service/slow_operation_alarm.cc:133] The operation took 1.9s
```

```
E0000 00:00:1732000000.123456   4321 gpu_timer.cc:183] Delay kernel timed out: measured time has sub-optimal accuracy. There may be a missing warmup execution, please investigate in Nsight Systems.
```

## Quiet on (log)

```
2024-05-20 13:00:00.000001: I external/local_xla/xla/service/service.cc:168] XLA service started
```

## Sources

- <https://github.com/openxla/xla/blob/main/xla/service/slow_operation_alarm.cc>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG918", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"Very slow compile\?|Constant folding an instruction is taking|Trying algorithm [^\n]{1,200} is taking a while"
    r"|Delay kernel timed out: measured time|Skipping the delay kernel, measurement accuracy"
)


harmless(
    CAUSE,
    MESSAGE,
    "compiling or choosing algorithms takes long at the start; later steps are not slowed down",
)
