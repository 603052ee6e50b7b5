"""A function is compiled again and again, and the GPU waits meanwhile.

## Why it happens

tf.function, torch.compile and jax.jit compile a function for the shapes and types of its arguments,
and for the values of Python arguments. With other shapes or values, or a function that is made anew
in a loop, they compile again, which takes from milliseconds to minutes. After 8 compilations of one
function, torch.compile gives up and runs it without compiling.

## What it looks like

`5 out of the last 5 calls to <function train_step> triggered tf.function retracing`,
`torch._dynamo hit config.recompile_limit (8)`. The GPU is idle while a processor compiles.
`whygpu run --profile` shows which argument changes, and how much time it takes.

## Fix

Make the function once, outside the loop. Keep the shapes the same: drop the last short batch, or
pad. Pass numbers that change as tensors. Or compile for any length:
`tf.function(reduce_retracing=True)`, `torch.compile(dynamic=True)`. In a loop, call a small Keras
model directly, `model(x)`, instead of `model.predict(x)`.

## Fires on (log)

```
WARNING:tensorflow:5 out of the last 5 calls to <function train_step at 0x7f1b2c0d5e50> triggered tf.function retracing. Tracing is expensive and the excessive number of tracings could be due to (1) creating @tf.function repeatedly in a loop, (2) passing tensors with different shapes, (3) passing Python objects instead of tensors.
```

```
WARNING:tensorflow:6 out of the last 6 calls to <function TensorFlowTrainer.make_predict_function.<locals>.one_step_on_data_distributed at 0x7f1b2c0d5e50> triggered tf.function retracing.
```

```
W1020 12:01:33.123456 4242 torch/_dynamo/convert_frame.py:1016] [0/8] torch._dynamo hit config.recompile_limit (8)
W1020 12:01:33.123456 4242 torch/_dynamo/convert_frame.py:1016] [0/8]    function: 'forward' (/home/me/train.py:29)
W1020 12:01:33.123456 4242 torch/_dynamo/convert_frame.py:1016] [0/8]    last reason: 0/7: tensor 'x' size mismatch at index 0. expected 23, actual 24
```

## Quiet on (log)

It was compiled once.

```
WARNING:tensorflow:AutoGraph could not transform <function normalize at 0x7f1c2c0d9b70> and will run it as-is.
```

## Sources

- <https://www.tensorflow.org/guide/function#controlling_retracing>
- <https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html>
- <https://docs.jax.dev/en/latest/persistent_compilation_cache.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import command_line

CAUSE = cause("WG740", __name__, __doc__, severity="warning", effect="none")

_RETRACED = late(
    r"(?P<some>\d{1,6}) out of the last (?P<calls>\d{1,6}) calls to <(?:bound method |function )?"
    r"(?P<name>(?:[^\n<>]|<\w{1,20}>){1,200}?)(?: at 0x[0-9a-f]{1,16}| of |>)[^\n]{0,200}? ?triggered tf\.function "
    r"retracing"
)
_LIMIT = late(
    r"torch\._dynamo hit config\.(?:accumulated_)?(?:recompile|cache_size)_limit \((?P<limit>\d{1,6})\)"
)
_FUNCTION = late(r"\bfunction: '(?P<name>[^'\n]{1,100})'")
_REASON = late(r"last reason: (?:\d{1,6}/\d{1,6}: )?(?P<reason>[^\n]{1,200})")
_MEASURE = Remedy(
    "See which argument changes, and what it costs.",
    command_line("whygpu run --profile -- python PROGRAM.py"),
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    if log.failures:
        return
    yield from _retraced(log)
    yield from _given_up(log)


def _retraced(log: Log) -> Iterator[Finding]:
    found = list(log.find(_RETRACED))
    if not found:
        return
    last = found[-1].groups
    yield CAUSE.finding(
        subject="tensorflow",
        message=f"{last['some']} of the last {last['calls']} calls of {_short(last['name'])} were "
        "traced again: it is a new function, or has other shapes or Python values each time",
        evidence=log.evidence(*(match.line for match in found[:3])),
        remedies=(
            Remedy(
                "Make the tf.function once, outside the loop; keep shapes the same, and pass "
                "numbers as tensors."
            ),
            _MEASURE,
        ),
        confidence="likely",
        ask="Does the warning stop after the first steps? Then it costs little.",
    )


def _given_up(log: Log) -> Iterator[Finding]:
    limit = log.first(_LIMIT)
    if limit is None:
        return
    function, reason = log.first(_FUNCTION), log.first(_REASON)
    name = f" ({function.groups['name']})" if function else ""
    why = f"; the last reason was: {reason.groups['reason']}" if reason else ""
    lines = (each.line for each in (limit, function, reason) if each is not None)
    yield CAUSE.finding(
        subject="torch",
        message=f"torch.compile compiled a function{name} {limit.groups['limit']} times, and then "
        f"gave up: other arguments now run without compilation{why}",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy(
                "Keep shapes and Python arguments the same from step to step, or use "
                "torch.compile(..., dynamic=True)."
            ),
            _MEASURE,
        ),
    )


def _short(name: str | None) -> str:
    """predict_function of Model.make_predict_function.<locals>.predict_function"""
    return (name or "a function").rpartition(".")[2].strip()
