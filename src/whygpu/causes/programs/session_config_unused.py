"""A session configuration is created and filled in, but never passed to a session.

## Why it happens

`config.gpu_options.allow_growth = True` only changes an object. It has an effect when the object is
passed to a session, or to Keras through a session. The line that does this often gets lost when
code is ported or copied.

## What it looks like

No message. TensorFlow reserves nearly all of the GPU's memory, as if nothing had been set.

## Fix

Pass it to the session: `tf.compat.v1.Session(config=config)`. TensorFlow 2 code has no session;
call `tf.config.experimental.set_memory_growth(gpu, True)` for each GPU.

## Fires on (code)

```python
import tensorflow.compat.v1 as tf

config = tf.ConfigProto()
config.gpu_options.allow_growth = True
sess = tf.Session()
```

```python
import tensorflow as tf

def prepare():
    options = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    options.gpu_options.per_process_gpu_memory_fraction = 0.5
```

```python
import tensorflow.compat.v1 as tf

gpu_options = tf.GPUOptions(per_process_gpu_memory_fraction=0.3)
sess = tf.Session()
```

## Quiet on (code)

```python
import tensorflow.compat.v1 as tf

config = tf.ConfigProto()
config.gpu_options.allow_growth = True
sess = tf.Session(config=config)
```

The object is passed on.

```python
import tensorflow.compat.v1 as tf

def make_config():
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    return config
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/compat/v1/ConfigProto>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import keras_name, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Program

CAUSE = cause("WG717", __name__, __doc__, severity="warning", effect="none")

_OPTIONS = ("allow_growth", "per_process_gpu_memory_fraction", "visible_device_list")


@CAUSE.on_code("ConfigProto", "GPUOptions", needs=("tensorflow", "keras"))
def detect(program: Program) -> Iterator[CodeFinding]:
    for call in program.calls():
        if tf_name(call.path) not in ("ConfigProto", "GPUOptions"):
            continue
        statement = program.statement(call.node)
        if not isinstance(statement, ast.Assign) or statement.value is not call.node:
            continue
        target = statement.targets[0]
        if len(statement.targets) != 1 or not isinstance(target, ast.Name):
            continue
        setting = _first_setting(call, target.id)
        if setting is not None and not _used(program, call, target.id):
            yield _finding(program, setting, target.id)


def _finding(program: Program, setting: ast.AST, name: str) -> CodeFinding:
    what = program.source(setting) if isinstance(setting, ast.Attribute) else name
    return CAUSE.in_code(
        program,
        setting,
        subject="tensorflow",
        message=f"{what} is set, but {name} is never passed to a session, so it has no effect",
        fix=f"Pass it to the session: tf.compat.v1.Session(config={name}); "
        "in TensorFlow 2 use tf.config.experimental.set_memory_growth.",
    )


def _first_setting(call: Call, name: str) -> ast.AST | None:
    """The first option that is set, on the object or in its constructor."""
    for node in ast.walk(call.scope):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and node.attr in _OPTIONS
            and _root(node) == name
        ):
            return node
    return call.node if call.keywords.keys() & {"gpu_options", *_OPTIONS} else None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _used(program: Program, call: Call, name: str) -> bool:
    """The variable is read for anything other than setting one of its attributes."""
    # Another file may read a module's variable, so only a script can be judged.
    if isinstance(call.scope, ast.Module) and not _is_script(program):
        return True
    for node in ast.walk(call.scope):
        if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        outer: ast.AST = node
        while isinstance(program.parent(outer), ast.Attribute):
            parent = program.parent(outer)
            assert parent is not None
            outer = parent
        if not (isinstance(outer, ast.Attribute) and isinstance(outer.ctx, ast.Store)):
            return True
    return any(
        name in node.names
        for node in ast.walk(call.scope)
        if isinstance(node, (ast.Global, ast.Nonlocal))
    )


def _is_script(program: Program) -> bool:
    """It uses sessions or models itself, and does not only define names."""
    return any(
        tf_name(call.path) in ("Session", "InteractiveSession", "compat.v1.Session")
        or keras_name(call.path) in ("Sequential", "models.Sequential", "Model", "models.Model")
        or call.method in ("fit", "run", "compile", "train", "fit_generator")
        for call in program.calls()
    )
