"""Training ended early: the data set gave fewer batches than the training was told to expect.

## Why it happens

`fit(..., steps_per_epoch=N, epochs=E)` takes N batches in each epoch from one iterator over the
data set. If the data set ends before, Keras prints a warning and stops the training there: later
epochs are missing or shorter than planned, and the program ends without an error.

## What it looks like

`Your input ran out of data; interrupting training.` The program then continues with what follows
`fit`, with a model that is trained less than intended.

## Fix

Leave `steps_per_epoch` out, so that an epoch is one pass over the data set; or let the data set
repeat: `dataset.repeat()`.

## Fires on (log)

```
Epoch 2/5
WARNING:tensorflow:Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at least `steps_per_epoch * epochs` batches (in this case, 500 batches). You may need to use the repeat() function when building your dataset.
```

## Quiet on (log)

The end of a data set is reported in each epoch, and the training goes on.

```
2024-04-01 10:10:10.000001: W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence
Epoch 2/5
```

The size of the data set was not known before the first epoch.

```
    919/Unknown 12s 2ms/step - loss: 1.0546
UserWarning: Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at least `steps_per_epoch * epochs` batches.
927/927 12s 2ms/step - loss: 1.0546
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/keras/Model#fit>
- <https://keras.io/api/models/model_training_apis/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

CAUSE = cause("WG739", __name__, __doc__, severity="warning", effect="none")

_RAN_OUT = late(
    r"Your input ran out of data; interrupting (?P<what>training|evaluation|\w{1,20})"
    r"(?:[^\n]{1,150}in this case, (?P<batches>\d{1,9}) batches)?"
)
_SIZE_UNKNOWN = late(r"(?<!\d)\d{1,9}/Unknown\b")
"""A data set of unknown size ends the first epoch like this, and Keras counts it then."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    match = log.first(_RAN_OUT)
    if match is None or log.failures or log.says(_SIZE_UNKNOWN):
        return
    wanted = match.groups["batches"]
    than = f"than the {int(wanted):,} that it was told to expect" if wanted else "than expected"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{match.groups['what']} ended early: the data set gave fewer batches {than}",
        evidence=log.evidence(match.line),
        remedies=(
            Remedy("Leave steps_per_epoch out: then an epoch is one pass over the data set."),
            Remedy("Or let the data set repeat: dataset.repeat()."),
        ),
    )
