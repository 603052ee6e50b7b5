"""The program uses a fixed GPU number that few machines have.

## Why it happens

"/gpu:2" or "cuda:3" is the number of a free GPU on the machine where the code was written. GPUs are
numbered among those that the program sees: after CUDA_VISIBLE_DEVICES="3", the only one is number
0.

## What it looks like

PyTorch: `CUDA error: invalid device ordinal`. TensorFlow 2 places the operation on another device
without a message, because soft placement is on by default; so does a session of TensorFlow 1 with
`allow_soft_placement=True`. In other sessions it is `InvalidArgumentError: Cannot assign a device
for operation`.

## Fix

Select the GPU outside the program with CUDA_VISIBLE_DEVICES, and use number 0 in the program. Or
read the number from an option, and compare it with the number of GPUs.

## Fires on (code)

```python
import tensorflow as tf

with tf.device("/gpu:2"):
    a = tf.constant(1.0)
```

```python
import torch

device = torch.device("cuda:3" if torch.cuda.is_available() else "cpu")
```

The other GPUs are hidden, and this one is now number 0.

```python
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
import torch

x = torch.ones(3).to("cuda:1")
```

```python
import torch

device = "cuda:2"
model = torch.nn.Linear(2, 2).to(device)
print(torch.cuda.get_device_name(2))
```

```python
import torch

net = torch.nn.Linear(4, 2)
net.cuda(device=2)
mask = torch.ones(3).to(torch.device("cuda", 3))
```

TensorFlow 2 does not fail, so there is no error to catch.

```python
import tensorflow as tf

try:
    with tf.device("/gpu:3"):
        x = tf.Variable(1.0)
except tf.errors.InvalidArgumentError as error:
    print(error)
```

## Quiet on (code)

```python
import tensorflow as tf

with tf.device("/gpu:0"):
    a = tf.constant(1.0)
```

The code expects PyTorch to fail.

```python
import torch

try:
    x = torch.ones(3, device="cuda:3")
except RuntimeError as error:
    print(error)
```

The program counts the GPUs first.

```python
import torch

device = "cuda:1" if torch.cuda.device_count() > 1 else "cuda:0"
x = torch.ones(3).to(device)
```

The program uses all GPUs, starting with the first.

```python
import torch

first = torch.nn.Linear(4, 4).to("cuda:0")
second = torch.nn.Linear(4, 4).to("cuda:1")
```

```python
import torch

device_ids = [0, 1, 2, 3]
torch.cuda.set_device(3)
model = torch.nn.parallel.DistributedDataParallel(make(), device_ids=device_ids)
```

```python
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"
import torch

x = torch.ones(3).cuda(1)
```

A caller may give another device than the default.

```python
import torch

class Trainer:
    def __init__(self, model, device=torch.device("cuda:1")):
        self.model = model.to(device)

trainer = Trainer(make(), device=chosen)
```

Another function hides the GPUs, perhaps in another run.

```python
import os
import torch

def on_one_gpu():
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"

def on_two_gpus():
    return torch.nn.DataParallel(torch.nn.Linear(2, 2), device_ids=[0, 1])
```

## Sources

- <https://www.tensorflow.org/guide/gpu#manual_device_placement>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from whygpu.causes.evidence.device_code import catches, takes_current_gpu, text_of, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call, Setting
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program, handlers_around
from whygpu.model.text_lines import has_line
from whygpu.model.values import Constant, Either, Several, Value

CAUSE = cause("WG720", __name__, __doc__, severity="warning", effect="none")

_TF_DEVICE = late(r"(?:/?(?:job|replica|task):\w+)*/?(?:device:)?gpu:(\d+)$", re.I)
_TORCH_DEVICE = late(r"cuda:(\d+)$")
_has_count = has_line(
    (
        *("device_count(", "len(", "num_gpu", "n_gpu", "ngpu", "gpu_count", "world_size", "nproc"),
        *("local_rank", "multi_gpu", "num_devices"),
    ),
    late(
        r"device_count\(|\blen\([^)\n]*(?:gpu|device)|num_gpus?\b|n_gpus?\b|ngpus?\b|gpu_count"
        r"|world_size|nproc|local_rank|multi_gpu|num_devices"
    ),
)


_LISTED = late(
    r"(?:device_?ids?|gpu_?ids?|gpus|devices)['\"]?\s{0,9}[=:]\s{0,9}[\[('\"]{1,2}0((?:\s{0,3},\s{0,3}\d{1,2}){1,64})",
    re.I,
)
"""A list of GPUs that begins with the first: device_ids=[0, 1, 2, 3]."""

_TAKES_NUMBER = frozenset(
    {
        "device",
        "set_device",
        "get_device_name",
        "get_device_properties",
        "get_device_capability",
        "mem_get_info",
        "memory_allocated",
        "synchronize",
    }
)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_MACHINE_HAS = 64
"""The program uses such a number to make the call fail."""


class _Choice(NamedTuple):
    number: int
    node: ast.expr
    call: Call
    framework: str


_WORDS = ("gpu:", "GPU:", "cuda:", ".cuda(", "torch.cuda.", "device_ids", 'cuda",', "cuda',")
_MAY_CHOOSE = late(
    rf"(?:gpu|cuda):(?!0\b)|\.cuda\((?!\s*\))|cuda\.(?:{'|'.join(sorted(_TAKES_NUMBER))})\b"
    r"|device_ids|cuda['\"],",
    re.I,
)
"""Another device than the first, or one whose number is not in this line."""
_has_choice = has_line(_WORDS, _MAY_CHOOSE)


def _possible(text: str) -> bool:
    if not _has_choice(text):
        return False
    return "CUDA_VISIBLE_DEVICES" in text or not _counts(text)


def _counts(text: str) -> bool:
    """Something in the file counts GPUs."""
    return _has_count(text.lower())


@CAUSE.on_code(*_WORDS, possible=_possible)
def detect(program: Program) -> Iterator[CodeFinding]:
    choices = list(_choices(program))
    numbers = {choice.number for choice in choices}
    if not numbers or max(numbers) == 0:
        return
    numbers |= _listed_numbers(program)
    numbers |= {0} if any(map(takes_current_gpu, program.calls())) else set()
    hidden = _visible(program)
    if hidden is None and _fits(program, numbers):
        return
    for choice in choices:
        visible = _visible_at(program, choice.call, hidden)
        if visible is None and hidden is not None and _fits(program, numbers):
            continue
        if choice.number == 0 or (visible is not None and choice.number < visible):
            continue
        if choice.number >= _NO_MACHINE_HAS or _failure_expected(choice, program):
            continue
        default_taken = _default_taken(program, choice.call.node)
        if default_taken == "never":
            continue
        yield CAUSE.in_code(
            program,
            choice.node,
            subject=choice.framework,
            message=_message(choice, visible)
            + ("; callers may give another one" if default_taken == "unknown" else ""),
            fix="Use number 0, and select the GPU with CUDA_VISIBLE_DEVICES when starting the "
            "program.",
            severity="info"
            if _is_placed_softly(program, choice) or default_taken == "unknown"
            else "error"
            if visible is not None
            else None,
            confidence="certain" if visible is not None else "likely",
        )


def _default_taken(program: Program, node: ast.AST) -> Literal["", "never", "unknown"]:
    """Whether a default of a parameter counts; empty if a call of this file does not give it.

    Empty for what is no default, too.
    """
    made = node
    parent = program.parent(node)
    while isinstance(parent, ast.expr):
        made, parent = parent, program.parent(parent)
    function = program.parent(parent) if isinstance(parent, ast.arguments) else None
    if not isinstance(parent, ast.arguments) or not isinstance(function, _FUNCTIONS):
        return ""
    positional = [*parent.posonlyargs, *parent.args]
    with_default = positional[len(positional) - len(parent.defaults) :]
    pairs = [*zip(with_default, parent.defaults), *zip(parent.kwonlyargs, parent.kw_defaults)]  # noqa: B905
    name = next(argument.arg for argument, default in pairs if default is made)
    names = [each.arg for each in positional]
    # A keyword-only parameter has no place.
    place = names.index(name) if name in names else len(names)
    owner = program.parent(function)
    called = function.name
    if isinstance(owner, ast.ClassDef):
        place -= 1
        called = owner.name if called == "__init__" else called
    calls = [
        call.node
        for call in program.calls()
        # torch.load is another load.
        if not call.path and _called_name(call.node) == called
    ]
    if not calls:
        return "unknown"
    return "never" if all(_gives(call, name, place) for call in calls) else ""


def _gives(call: ast.Call, name: str, place: int) -> bool:
    return (
        len(call.args) > place
        or any(isinstance(each, ast.Starred) for each in call.args)
        or any(keyword.arg in (name, None) for keyword in call.keywords)
    )


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _fits(program: Program, numbers: set[int]) -> bool:
    """Something counts the GPUs, or the program is for a machine with as many as it names."""
    return _counts(program.text) or numbers >= set(range(max(numbers)))


def _listed_numbers(program: Program) -> set[int]:
    """The numbers in lists of GPUs: the file is for a machine that has them all."""
    return {
        int(number)
        for match in _LISTED.finditer(program.text)
        for number in ("0", *match[1].split(",")[1:])
    }


def _is_placed_softly(program: Program, choice: _Choice) -> bool:
    """TensorFlow may take another device: only a session without soft placement fails."""
    if choice.framework != "tensorflow" or tf_name(choice.call.path) != "device":
        return False
    return not _fails_without_device(program)


@lru_cache(maxsize=1)
def _fails_without_device(program: Program) -> bool:
    text = program.text
    fails = program.tensorflow == "1" and "Session(" in text
    return fails and "soft_placement" not in text and "soft_device" not in text


def _failure_expected(choice: _Choice, program: Program) -> bool:
    """Whether the error is caught. TensorFlow 2 raises none: it uses another device instead."""
    if choice.framework == "tensorflow" and program.tensorflow != "1":
        return False
    return any(
        catches(handler, "InvalidArgumentError", "RuntimeError", "ValueError")
        for handler in handlers_around(choice.call)
    )


def _message(choice: _Choice, visible: int | None) -> str:
    if visible is not None:
        left = (
            "no GPU"
            if visible == 0
            else "one GPU, number 0"
            if visible == 1
            else (f"{visible} GPUs, numbers 0 to {visible - 1}")
        )
        return (
            f"the program uses GPU {choice.number}, but CUDA_VISIBLE_DEVICES, set in this file, "
            f"leaves {left}"
        )
    effect = (
        "PyTorch fails with: invalid device ordinal"
        if choice.framework == "torch"
        else "the strategy warns and computes that replica on the CPU"
        if tf_name(choice.call.path) == "distribute.MirroredStrategy"
        else "TensorFlow uses another device without a message, unless it is a session without "
        "allow_soft_placement, which fails"
    )
    return (
        f"GPU {choice.number} is a fixed number in the program: on a machine with "
        f"{choice.number} or fewer {'GPU' if choice.number == 1 else 'GPUs'}, {effect}"
    )


def _choices(program: Program) -> Iterator[_Choice]:
    """Every device that the program selects by a number."""
    variables: set[str] = set()
    for call in program.calls():
        if _for_several(call):
            continue
        for choice in _in_call(call):
            # A device in a variable is reported where it is first used.
            if isinstance(choice.node, ast.Name):
                if choice.node.id in variables:
                    continue
                variables.add(choice.node.id)
            if call.path != "torch.device" or not _belongs_to_other(program, call):
                yield choice


def _belongs_to_other(program: Program, made: Call) -> bool:
    """b.device = torch.device("cuda", 1) needs no GPU, and does not show what b does with it."""
    parent = program.parent(made.node)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    of = target.value if isinstance(target, ast.Attribute) else None
    return of is not None and not (isinstance(of, ast.Name) and of.id == "self")


def _in_call(call: Call) -> Iterator[_Choice]:
    first = list(zip(call.node.args[:1], call.arguments[:1], strict=True)) or [
        (keyword.value, call.keywords["device"])
        for keyword in call.node.keywords
        if keyword.arg == "device"
    ]
    if tf_name(call.path) == "device":
        yield from _written(call, first, _TF_DEVICE, "tensorflow")
    elif tf_name(call.path) == "distribute.MirroredStrategy":
        yield from _written(call, _listed(call, 0, "devices"), _TF_DEVICE, "tensorflow")
    elif call.path == "torch.nn.DataParallel":
        yield from _number(call, _listed(call, 1, "device_ids"))
    elif call.path == "torch.device" and len(call.arguments) == 2:
        if text_of(call.arguments[0]) == "cuda":
            yield from _number(call, [(call.node.args[1], call.arguments[1])])
    elif call.path == "torch.device" or (call.method == "to" and not call.path):
        yield from _written(call, first, _TORCH_DEVICE, "torch")
    elif (call.method == "cuda" and not call.path) or (
        call.path.startswith("torch.cuda.") and call.method in _TAKES_NUMBER
    ):
        yield from _written(call, first, _TORCH_DEVICE, "torch")
        yield from _number(call, first)
    elif call.path.startswith("torch."):
        named = [
            (keyword.value, call.keywords[keyword.arg])
            for keyword in call.node.keywords
            if keyword.arg in ("device", "map_location")
        ]
        yield from _written(call, named, _TORCH_DEVICE, "torch")


def _listed(call: Call, place: int, keyword: str) -> list[tuple[ast.expr, Value]]:
    """The items of a list that is an argument."""
    given = call.argument(place, keyword)
    return [(call.node, value) for value in given.items] if isinstance(given, Several) else []


def _written(
    call: Call,
    pairs: Sequence[tuple[ast.expr, Value]],
    pattern: re.Pattern[str],
    framework: str,
) -> Iterator[_Choice]:
    """Device names that are written out, also as one branch of a conditional expression."""
    for node, value in pairs:
        for part in value.values if isinstance(value, Either) else (value,):
            found = pattern.match(text_of(part) or "")
            if found:
                yield _Choice(int(found.group(1)), node, call, framework)


def _number(call: Call, pairs: Sequence[tuple[ast.expr, Value]]) -> Iterator[_Choice]:
    for node, value in pairs:
        if isinstance(value, Constant) and type(value.value) is int and value.value >= 0:
            yield _Choice(value.value, node, call, "torch")


def _for_several(call: Call) -> bool:
    """A test that runs only on machines with several GPUs."""
    return isinstance(call.scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        "gpu" in ast.unparse(decorator).lower() for decorator in call.scope.decorator_list
    )


class _Visible(NamedTuple):
    """CUDA_VISIBLE_DEVICES, which this program sets to a constant."""

    gpus: int
    settings: tuple[Setting, ...]


def _visible(program: Program) -> _Visible | None:
    settings = tuple(
        setting
        for setting in program.settings()
        if setting.path == "CUDA_VISIBLE_DEVICES" and not setting.unset
    )
    words = {text_of(setting.value) for setting in settings}
    if len(words) != 1:
        return None
    word = words.pop()
    if word is None:
        return None
    entries = [entry.strip() for entry in word.split(",") if entry.strip()]
    if not all(entry.isdecimal() for entry in entries):
        return _Visible(0, settings) if entries == ["-1"] else None
    return _Visible(len(entries), settings)


def _visible_at(program: Program, call: Call, hidden: _Visible | None) -> int | None:
    """How many GPUs the variable leaves at this call; None if it may not be set there."""
    if hidden is None or not any(
        program.surely_before(setting, call) for setting in hidden.settings
    ):
        return None
    return hidden.gpus
