"""The data set ended, and waiting operations were cancelled: harmless.

## Why it happens

tf.data signals the end of a data set with a status, which releases since 2.11 print at every step
it passes. Operations that wait for the next batch are cancelled, which is printed as well.

## What it looks like

`Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence`, `Local rendezvous recv
item cancelled`, `BaseCollectiveExecutor::StartAbort Out of range: End of sequence`, `Error occurred
when finalizing GeneratorDataset iterator`, or `Executor start aborting (this does not indicate an
error and you can ignore this message)`.

## Fix

None is needed, if training continues with the next epoch or ends as planned.

## Fires on (log)

```
2024-04-01 10:10:10.000001: W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence
         [[{{node IteratorGetNext}}]]
```

```
2020-09-09 09:09:09.000009: W tensorflow/core/common_runtime/base_collective_executor.cc:217] BaseCollectiveExecutor::StartAbort Out of range: End of sequence
         [[{{node IteratorGetNext}}]]
```

```
2023-05-05 12:12:12.120000: I tensorflow/core/common_runtime/executor.cc:1197] [/device:CPU:0] (DEBUG INFO) Executor start aborting (this does not indicate an error and you can ignore this message): INVALID_ARGUMENT: You must feed a value for placeholder tensor 'Placeholder/_0' with dtype int32
```

## Quiet on (log)

```
2024-04-01 10:10:10.000001: W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting with status: RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[1024]
```

## Sources

- <https://github.com/tensorflow/tensorflow/issues/62963>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG914", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"aborting with status: (?:OUT_OF_RANGE|CANCELLED)|StartAbort (?:Out of range|Cancelled|OUT_OF_RANGE|CANCELLED)"
    r"|Local rendezvous recv item cancelled|this does not indicate an error and you can ignore"
    r"|Error occurred when finalizing \w{1,40} iterator: "
    r"|did not fully read the dataset being cached|Filling up shuffle buffer|Shuffle buffer filled"
)


harmless(
    CAUSE,
    MESSAGE,
    "the data set ended (or was left early), and operations that waited for more data were "
    "cancelled",
)
