"""`model.predict` is called in a loop with one sample at a time.

## Why it happens

`predict` is made for many samples: each call sets up a data pipeline and a loop over batches. On
TensorFlow that takes much longer than a small model computes. A GPU gets one sample, computes for
microseconds, and waits for the next call.

## What it looks like

Predictions take tens of milliseconds each, however small the model is, and the GPU is hardly used.
`tf.function retracing` warnings may appear as well.

## Fix

Put the samples into one array and call `predict` once, with a `batch_size`.

## Fires on (code)

```python
import numpy as np
from tensorflow import keras

model = keras.models.load_model("model.keras")
for path in paths:
    picture = load(path)
    results.append(model.predict(np.expand_dims(picture, axis=0)))
```

```python
import keras

model = keras.Sequential([keras.layers.Dense(2)])
for row in table:
    sample = row.values
    sample = sample.reshape(1, -1)
    scores.append(model.predict(sample)[0])
```

```python
import keras

model = keras.models.load_model("model.keras")
found = [model.predict(image[None, ...])[0] for image in images]
```

## Quiet on (code)

Each sample depends on the result before it.

```python
import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(2)])
tokens = [0] * 64
for place in range(1, limit):
    prediction = model.predict(np.array([tokens]))
    tokens[place] = prediction[0, place - 1].argmax()
```

Whole batches.

```python
import keras

model = keras.Sequential([keras.layers.Dense(2)])
for batch in batches:
    results.append(model.predict(batch))
```

A few pictures to look at.

```python
import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(2)])
for number in range(9):
    show(model.predict(np.expand_dims(pictures[number], 0)))
```

## Sources

- <https://keras.io/api/models/model_training_apis/>
- <https://www.tensorflow.org/api_docs/python/tf/keras/Model#predict>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygpu.causes.evidence.runtime_starts import is_keras_model
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.text_lines import has_line

CAUSE = cause("WG742", __name__, __doc__, severity="info", effect="none")

_FEW = 100
"""A loop over fewer samples than this is for looking at them."""
_SHOWING = frozenset({"imshow", "subplot", "title", "set_title", "show", "mimsave", "display"})
"""Calls of a loop that shows each sample to somebody."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


_LOOP = late(r"^[ \t]{0,200}for\b", re.MULTILINE)
_MODELS = ("Sequential", "Model", "load_model", "applications")
_predicts_inside = has_line((".predict(",), late(r"^[ \t]|\bfor\b"))
_in_comprehension = has_line((".predict(",), late(r"\bfor\b[^\n]{0,400}\bin\b"))


def _possible(text: str) -> bool:
    return (
        any(name in text for name in _MODELS)
        and _predicts_inside(text)
        and (_LOOP.search(text) is not None or _in_comprehension(text))
    )


@CAUSE.on_code(".predict(", needs=("tensorflow", "keras"), possible=_possible)
def detect(program: Program) -> Iterator[CodeFinding]:
    reported = set()
    for call in program.calls():
        if call.method != "predict" or not is_keras_model(call.receiver) or not call.node.args:
            continue
        loop = _loop_around(program, call)
        if loop is None or call.node in reported or _is_short(loop):
            continue
        if _is_one_sample(call.node, loop):
            reported.add(call.node)
            yield CAUSE.in_code(
                program,
                call.node,
                subject="keras",
                message=f"{program.source(call.node.func)} is called with one sample at a time in "
                "a loop: each call sets up a data pipeline, which takes longer than a small model "
                "computes",
                fix="Put the samples into one array and predict them in one call.",
            )


def _loop_around(program: Program, call: Call) -> ast.For | None:
    """The innermost loop that executes the call each time, in the same function."""
    node: ast.AST | None = call.node
    while node is not None and not isinstance(node, _FUNCTIONS):
        node = program.parent(node)
        if isinstance(node, ast.If):
            # Perhaps only now and then.
            return None
        if isinstance(node, ast.While):
            return None
        if isinstance(node, ast.For):
            return node
        if isinstance(node, ast.ListComp):
            return _as_loop(node)
    return None


def _as_loop(node: ast.ListComp) -> ast.For | None:
    """[model.predict(x) for x in samples]"""
    first = node.generators[0]
    if len(node.generators) > 1 or first.ifs:
        return None
    return ast.For(first.target, first.iter, [ast.Expr(node.elt)], [])


def _is_short(loop: ast.For) -> bool:
    """Whether it is over a few samples, or shows each of them."""
    calls = (node for node in ast.walk(loop) if isinstance(node, ast.Call))
    if any(_last_name(call.func) in _SHOWING for call in calls):
        return True
    over = loop.iter
    if isinstance(over, (ast.List, ast.Tuple)):
        return True
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range":
        last = over.args[-1] if len(over.args) < 3 else over.args[1]
        return isinstance(last, ast.Constant) and (
            isinstance(last.value, int) and last.value <= _FEW
        )
    # for picture in pictures[:10] or pictures[-2:], also below enumerate() and zip()
    return any(isinstance(node, ast.Slice) and _is_few(node) for node in ast.walk(over))


def _is_few(part: ast.Slice) -> bool:
    if isinstance(part.lower, ast.UnaryOp) and part.upper is None:
        last = part.lower.operand
    else:
        last = part.upper or part
    return isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value <= _FEW


def _is_one_sample(call: ast.Call, loop: ast.For) -> bool:
    """Whether the argument is a batch of one, made from what the loop goes over.

    And not from an earlier result: then there are no other samples yet.
    """
    node = call.args[0]
    if not _mentions(node, _computed_from(loop, _names(loop.target))):
        return False
    if _mentions(node, _computed_from(loop, set(), call)):
        return False
    if isinstance(node, ast.Name):
        values = [
            statement.value
            for statement in ast.walk(loop)
            if isinstance(statement, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == node.id for t in statement.targets)
        ]
        # The last of several: x = load(path); x = np.expand_dims(x, 0)
        return bool(values) and _adds_an_axis(values[-1])
    return _adds_an_axis(node)


def _computed_from(loop: ast.For, names: set[str], call: ast.Call | None = None) -> set[str]:
    """The variables that the loop computes from these, or from the result of a call."""
    found = set(names)
    while True:
        size = len(found)
        for statement in ast.walk(loop):
            if isinstance(statement, ast.Assign) and (
                _mentions(statement.value, found)
                or any(node is call for node in ast.walk(statement.value))
            ):
                for target in statement.targets:
                    found |= _changed(target)
        if len(found) == size:
            return found


def _changed(target: ast.expr) -> set[str]:
    """The variables that an assignment changes: x of x[number], and not number."""
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    if isinstance(target, (ast.Tuple, ast.List)):
        return {name for each in target.elts for name in _changed(each)}
    return {target.id} if isinstance(target, ast.Name) else set()


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return not names.isdisjoint(_names(node))


def _adds_an_axis(node: ast.expr) -> bool:
    """x[None], x[i:i + 1], np.expand_dims(x, 0), x.reshape(1, 28, 28), np.array([x])"""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _is_one_long(node.slice)
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return bool(parts) and _is_new_axis(parts[0])
    if not isinstance(node, ast.Call):
        return False
    name = _last_name(node.func)
    if name == "expand_dims":
        axes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "axis")]
        return len(axes) == 1 and _is_number(axes[0], 0)
    if name == "reshape":
        return _first_length_is_one(node)
    if name in ("array", "asarray", "stack") and node.args:
        given = node.args[0]
        return isinstance(given, ast.List) and len(given.elts) == 1
    return False


def _first_length_is_one(node: ast.Call) -> bool:
    """x.reshape(1, n), x.reshape((1, n)), np.reshape(x, [1, n])"""
    for argument in node.args[:2]:
        if isinstance(argument, (ast.Tuple, ast.List)):
            return bool(argument.elts) and _is_number(argument.elts[0], 1)
    return bool(node.args) and _is_number(node.args[0], 1)


def _is_one_long(part: ast.Slice) -> bool:
    """i:i + 1"""
    last = part.upper
    return (
        part.lower is not None
        and part.step is None
        and isinstance(last, ast.BinOp)
        and isinstance(last.op, ast.Add)
        and _is_number(last.right, 1)
        and ast.unparse(last.left) == ast.unparse(part.lower)
    )


def _is_new_axis(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or (
        isinstance(node, ast.Attribute) and node.attr == "newaxis"
    )


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
