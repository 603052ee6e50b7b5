"""The program uses a name of the device API that no release has, or not the installed one.

## Why it happens

The API moved: some functions are in tf.config, some in tf.config.experimental, and a few in both.
Answers on the web and generated code confuse them, or invent an error class that sounds right.
TensorFlow 1.14, 1.15 and 2.0 have in tf.config.experimental what later releases have in tf.config.

## What it looks like

`AttributeError: module 'tensorflow._api.v2.config' has no attribute 'set_memory_growth'`. If the
name is in an except clause, the AttributeError occurs only after another error, and hides it.

## Fix

Use the name that exists. `whygpu lint --fix` writes it if it is unambiguous.

## Fires on (code)

```python
import tensorflow as tf

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.set_memory_growth(gpu, True)
```

```python
from tensorflow import config

print(config.experimental_list_physical_devices("GPU"))
```

```python
import tensorflow as tf

try:
    tf.zeros((10, 10))
except tf.errors.CUDAOutOfMemoryError:
    print("too large")
```

```python
import torch

if torch.cuda.is_avaliable():
    print("GPU")
```

A misspelt name of PyTorch, and devices that do not exist.

```python
import torch

torch.backends.cudnn.benchmarks = True
torch.cuda.emtpy_cache()
```

```python
import torch

device = torch.device("gpu")
```

```python
import torch

def choose(options):
    return torch.device("gpu" if options.fast else "cpu")
```

```python
import torch

device = "gpu" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(2, 2).to(device)
```

```python
import torch

model = torch.nn.Linear(2, 2)
model.to("gpu:0")
```

```python
import tensorflow as tf

with tf.device("/cuda:0"):
    a = tf.constant(1.0)
```

```python
import jax

jax.config.update("jax_platfrom_name", "cpu")
```

TensorFlow distinguishes small letters here.

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("gpu")
```

## Fires on (log)

```
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    tf.config.set_memory_growth(gpu, True)
AttributeError: module 'tensorflow._api.v2.config' has no attribute 'set_memory_growth'
```

TensorFlow 2.1 has this name, 1.15 does not.

```
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    gpus = tf.config.list_physical_devices("GPU")
AttributeError: module 'tensorflow._api.v1.config' has no attribute 'list_physical_devices'
```

## Quiet on (log)

TensorFlow 2.0 has this name, 2.1 does not.

```
AttributeError: module 'tensorflow._api.v2.config' has no attribute 'experimental_list_devices'
```

## Quiet on (code)

Another object is asked for an attribute, and types are written as they are.

```python
import tensorflow as tf

if hasattr(options, "gpus"):
    print(tf.config.list_physical_devices("GPU"))
    tf.config.set_visible_devices([], "GPU")
```

TensorFlow calls it GPU, and other libraries have their own names.

```python
import tensorflow as tf

with tf.device("gpu:0"):
    a = tf.constant(1.0)
```

```python
import torch
from other import Engine

engine = Engine(device="gpu")
x = torch.zeros(3, device="cuda")
```

```python
import tensorflow as tf

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
```

The program's own object has the same name.

```python
from settings import config

config.set_memory_growth(True)
```

The author knows that it may be missing.

```python
import tensorflow as tf

if hasattr(tf.config, "set_memory_growth"):
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.set_memory_growth(gpu, True)
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/config>
- <https://www.tensorflow.org/api_docs/python/tf/errors>
- <https://docs.pytorch.org/docs/stable/cuda.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import guarded_by_attribute_error, text_of, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Assignment, Call
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Raised
from whygpu.model.program import Edit, Program, handlers_around
from whygpu.model.values import Either
from whygpu.tables.device_names import BEFORE, right_jax_option, right_name

CAUSE = cause("WG711", __name__, __doc__, severity="error", effect="broken")


_TENSORFLOW_WORDS = (
    *("tf.config", "tensorflow.config", "config.experimental", "config.set_", "config.list_"),
    *("tf.errors.", "tf1.errors.", "tf2.errors.", "tensorflow.errors.", "import errors"),
    *("is_gpu_", "set_backend", "is_cuda_available"),
)
_JAX_WORDS = ("config.update(",)
_TORCH_NAMES = tuple(
    (module, late(rf"{module.rpartition('.')[2]}\.([A-Za-z]\w{{2,60}})"))
    for module in ("torch.cuda", "torch.backends.cudnn", "torch.backends")
)
"""Each pattern begins with a word, which is found quickly."""
_NO_DEVICE = r"/?(?:device:)?gpu(?::?\d{1,3})?|cuda\d{1,3}|cuda:"
_MAY_BE_NO_DEVICE = tuple(
    late(pattern)
    for pattern in (r"gpu:?\d{0,3}['\"]", r"GPU:?\d{0,3}['\"]", r"cuda\d", r"cuda:['\"]")
)
_GPU_AND_NUMBER = late(r"gpu\d")
_TORCH_LACKS = late(_NO_DEVICE, re.IGNORECASE)
"""Types of devices that PyTorch does not have: gpu, gpu:0, cuda0. TensorFlow has the first two."""
_TENSORFLOW_LACKS = late(r"/?(?:gpu\d{1,3}|cuda(?::?\d{1,3})?)", re.IGNORECASE)


_TYPE_ARGUMENT = {
    "config.list_physical_devices": 0,
    "config.list_logical_devices": 0,
    "config.get_visible_devices": 0,
    "config.set_visible_devices": 1,
}
"""Where each function of TensorFlow takes a device type."""
_DEVICE_TYPES = {"CPU": "CPU", "GPU": "GPU", "CPUS": "CPU", "GPUS": "GPU", "CUDA": "GPU"}


def _possible(text: str) -> bool:
    """Whether a text has a name of TensorFlow's, or one of the others that does not exist."""
    if any(word in text for word in (*_TENSORFLOW_WORDS, *_JAX_WORDS)):
        return True
    if "torch" not in text:
        return ".device(" in text and ("cuda" in text or _GPU_AND_NUMBER.search(text) is not None)
    if "torch.backend." in text or any(each.search(text) for each in _MAY_BE_NO_DEVICE):
        return True
    return any(
        right_name(f"{module}.{name}")
        for module, pattern in _TORCH_NAMES
        for name in set(pattern.findall(text))
    )


@CAUSE.on_code(
    *_TENSORFLOW_WORDS,
    *("cuda.", "cudnn.", "torch.backend"),
    *("device(", ".to(", "device="),
    *_JAX_WORDS,
    needs=("tensorflow", "torch", "keras", "jax"),
    possible=_possible,
)
def detect(program: Program) -> Iterator[CodeFinding]:
    yield from _device_strings(program)
    yield from _device_types(program)
    yield from _jax_options(program)
    if any(map(_asks_framework, program.calls("builtins.hasattr"))):
        return
    for event in program.named():
        correction = right_name(event.path)
        if correction is None or guarded_by_attribute_error(event):
            continue
        node = event.node.func if isinstance(event.node, ast.Call) else event.node
        framework = event.path.partition(".")[0]
        written = event.path.replace("tensorflow.", "tf.", 1)
        right = correction.replace("tensorflow.", "tf.", 1)
        module = written.rpartition(".")[0]
        yield CAUSE.in_code(
            program,
            node,
            subject=framework,
            message=f"{written} does not exist: this "
            + ("has no effect" if type(event) is Assignment else "raises AttributeError")
            + (f"; the right name is {right}" if right else ""),
            fix=f"Write {right}." if right else f"Look for the right name in {module}.",
            edits=_edit(program, node, event.path, correction) if right else (),
            severity="warning" if type(event) is Assignment else None,
        )


def _asks_framework(call: Call) -> bool:
    """hasattr(tf.config, "set_memory_growth"), and not hasattr(model, "module")."""
    asked = getattr(call.argument(0), "path", "")
    return asked.partition(".")[0] in ("tensorflow", "torch", "keras")


def _jax_options(program: Program) -> Iterator[CodeFinding]:
    """jax.config.update("jax_platfrom_name", "cpu")"""
    for call in program.calls("jax.config.update"):
        option = text_of(call.argument(0)) or ""
        right = right_jax_option(option)
        if right and not guarded_by_attribute_error(call):
            yield CAUSE.in_code(
                program,
                call.node,
                subject="jax",
                message=f"JAX has no option {option!r}: this raises AttributeError; the right name "
                f"is {right!r}",
                fix=f'Write "{right}".',
            )


def _device_strings(program: Program) -> Iterator[CodeFinding]:
    """torch.device("gpu"), x.to("gpu:0"), tf.device("/cuda:0")."""
    for call in program.calls():
        for node, word in _devices_given(call):
            in_tensorflow = tf_name(call.path) == "device"
            lacks = _TENSORFLOW_LACKS if in_tensorflow else _TORCH_LACKS
            if not lacks.fullmatch(word) or any(handlers_around(call)):
                continue
            if not in_tensorflow and "torch" not in program.imports:
                continue
            number = "".join(filter(str.isdecimal, word))
            right = f"/gpu:{number or 0}" if in_tensorflow else f"cuda:{number}".rstrip(":")
            yield CAUSE.in_code(
                program,
                node,
                subject="tensorflow" if in_tensorflow else "torch",
                message=f"{'TensorFlow' if in_tensorflow else 'PyTorch'} has no device {word!r}: "
                f"this raises {'ValueError' if in_tensorflow else 'RuntimeError'}; the right name "
                f"is {right!r}",
                fix=f'Write "{right}".',
            )


def _device_types(program: Program) -> Iterator[CodeFinding]:
    """tf.config.list_physical_devices("gpu"): TensorFlow compares the types as they are written."""
    for call in program.calls():
        place = _TYPE_ARGUMENT.get(tf_name(call.path))
        if place is None:
            continue
        named = [each.value for each in call.node.keywords if each.arg == "device_type"]
        node = [*call.node.args[place : place + 1], *named, None][0]
        word = text_of(call.argument(place, "device_type")) or ""
        right = _DEVICE_TYPES.get(word.upper())
        if not isinstance(node, ast.Constant) or right is None or word == right:
            continue
        lists = place == 0
        yield CAUSE.in_code(
            program,
            node,
            subject="tensorflow",
            message=f"TensorFlow has no device type {word!r}: "
            + ("the list is always empty" if lists else "this changes nothing")
            + f"; the right name is {right!r}",
            fix=f'Write "{right}".',
            edits=(Edit(program.place(node), f'"{right}"'),),
        )


def _devices_given(call: Call) -> Iterator[tuple[ast.expr, str]]:
    """What a call gives as a device, if it is written here, or one of two that a variable has."""
    first = call.node.args[0] if call.node.args else None
    takes_first = (
        call.path == "torch.device"
        or tf_name(call.path) == "device"
        or (call.method == "to" and not call.path and len(call.node.args) == 1)
    )
    given = [(first, call.arguments[0])] if first is not None and takes_first else []
    if call.path.startswith("torch."):
        given += [
            (keyword.value, call.keywords[keyword.arg])
            for keyword in call.node.keywords
            if keyword.arg in ("device", "map_location")
        ]
    for node, value in given:
        if isinstance(value, Either):
            yield from ((node, text_of(each) or "") for each in value.values)
        elif isinstance(node, ast.Constant):
            yield node, text_of(value) or ""


def _edit(program: Program, node: ast.AST, wrong: str, right: str) -> tuple[Edit, ...]:
    """Replace the written name, if the part before the wrong name is in the source."""
    source = program.source(node)
    base, _, _ = wrong.rpartition(".")
    last = wrong.rpartition(".")[2]
    if not isinstance(node, ast.Attribute) or not source.endswith(f".{last}"):
        return ()
    stem = source[: -len(last) - 1]
    if right.startswith(f"{base}."):
        return (Edit(program.place(node), f"{stem}.{right.removeprefix(base + '.')}"),)
    # tf.config.experimental.x that should be tf.config.x
    outer, _, inner = base.rpartition(".")
    if right.startswith(f"{outer}.") and stem.endswith(f".{inner}"):
        stem = stem[: -len(inner) - 1]
        return (Edit(program.place(node), f"{stem}.{right.removeprefix(outer + '.')}"),)
    return ()


_NO_ATTRIBUTE = late(r"module '(?P<module>[\w.]{2,80})' has no attribute '(?P<name>\w{2,80})'")
_API = late(r"(?:_core)?\._api\.v[12]\b")
"""TensorFlow's own name for the folder of its public API; 1.15 and 2.0 have it in a package of its
own."""
_INSIDE_TENSORFLOW = late(r"-packages[/\\]tensorflow(?:_core)?[/\\]")
_INSIDE_A_PACKAGE = late(r"-packages[/\\]")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    for raised in log.raised:
        missed = _NO_ATTRIBUTE.search(raised.message) if raised.type == "AttributeError" else None
        if missed is None or raised.handled:
            continue
        path = f"{_API.sub('', missed['module'])}.{missed['name']}"
        older = BEFORE.get(path)
        correction = older or right_name(path)
        if correction is None or (older and _package_calls(raised)):
            continue
        written, right = (text.replace("tensorflow.", "tf.", 1) for text in (path, correction))
        where = "in the installed release, only in later ones" if older else "in any release"
        yield CAUSE.finding(
            subject=path.partition(".")[0],
            message=f"the name {written} does not exist {where}"
            + (f"; the right name is {right}" if right else ""),
            evidence=log.evidence(raised.line),
            remedies=(
                Remedy(f"Write {right}." if right else f"Look for the right name of {written}."),
            ),
        )
        return


def _package_calls(raised: Raised) -> bool:
    """An installed package that needs a later TensorFlow: not the program's name to change."""
    callers = [frame for frame in raised.frames if not _INSIDE_TENSORFLOW.search(frame)]
    return bool(callers) and bool(_INSIDE_A_PACKAGE.search(callers[-1]))
