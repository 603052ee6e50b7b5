"""`whygpu.find_batch_size`: the search from inside a program, its trials outside of it.

A trial must have the memory to itself, so it is a new process here as well. A forked one would
not do: threads and GPUs of a framework that has started do not live on in a fork, and what the
program holds already would count as the trial's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from whygpu.errors import UsageError
from whygpu.memory.amounts import parse_limit
from whygpu.memory.batch_search import FIRST
from whygpu.memory.find import DEFAULT_TIMEOUT, IN_TRIAL, OnProgress, Wanted, find
from whygpu.model.batch import BatchResult
from whygpu.model.work import What


def find_batch_size(
    step: str | Callable[..., Any] | Any,
    *,
    device: str | None = None,
    limit: int | str | None = None,
    margin: float = 0.0,
    start: int = FIRST,
    largest: int | None = None,
    multiple_of: int = 1,
    infer: bool = False,
    optimizer: str | None = None,
    input: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    cache: bool = True,
    on_progress: OnProgress | None = None,
) -> BatchResult:
    """The largest batch that fits; `.batch` is the number, or None where none is safe.

    `step` is a function of a file, called with the batch size, or whatever else `whygpu memory
    find` takes: a function that returns a model, "train.py:make_model", or a model itself. It runs
    in processes of its own, each of which loads the file anew.
    """
    if os.environ.get(IN_TRIAL):
        raise UsageError(
            "find_batch_size was called while its file was being loaded for a trial: put the call "
            'under `if __name__ == "__main__":`, so that it is the program alone that makes it'
        )
    from whygpu.launch.policy_options import parse_device

    with _named(step) as (name, what, pickled):
        wanted = Wanted(
            name=name,
            what=what,
            pickled=pickled,
            python=sys.executable,
            device=parse_device(device) if device is not None else None,
            limit=parse_limit(limit) if isinstance(limit, str) else limit,
            margin=margin,
            start=start,
            largest=largest,
            multiple_of=multiple_of,
            infer=infer,
            optimizer=optimizer,
            input=input,
            timeout=timeout,
            cache=cache,
            search_path=tuple(folder for folder in sys.path if folder),
        )
        result = find(wanted, os.environ, on_progress or (lambda progress: None))
    return result._replace(notes=(*result.notes, *_held_here()))


@contextmanager
def _named(step: Any) -> Iterator[tuple[str, What | None, str | None]]:
    """The step's name, and the file that it is in or the pickle that it is in."""
    if isinstance(step, str):
        from whygpu.work.named_work import parse_what

        yield step, parse_what(step, ("model-file", "function")), None
        return
    what = in_a_file(step)
    if what is not None:
        yield f"{os.path.basename(what.path)}:{what.name}", what, None
        return
    name = getattr(step, "__qualname__", None) or f"the {type(step).__name__}"
    content = _pickled(step, name)
    descriptor, path = tempfile.mkstemp(prefix="whygpu-step-", suffix=".pickle")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        yield name, None, path
    finally:
        os.unlink(path)


def in_a_file(step: Any) -> What | None:
    """Where a function can be loaded from by its name; None where it cannot."""
    module = sys.modules.get(getattr(step, "__module__", None) or "")
    name = getattr(step, "__qualname__", "")
    path = getattr(module, "__file__", None)
    if not name or not path or not path.endswith(".py") or not os.path.isfile(path):
        return None
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return What("function", os.path.abspath(path), name) if found is step else None


def _pickled(step: Any, name: str) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        raise UsageError(
            f"{name} is not a function at the top level of a file, so that another process cannot "
            "load it by its name: move it into a file (in a notebook: %%writefile step.py, then "
            'find_batch_size("step.py:step")), or install cloudpickle'
        ) from None
    try:
        return bytes(cloudpickle.dumps(step))
    except Exception as error:
        # Whatever the things that it holds on to do when they are asked to travel.
        raise UsageError(
            f"{name} cannot be sent to another process ({type(error).__name__}: {error}): move it "
            "into a file, at the top level, and let it make what it needs"
        ) from error


def _held_here() -> tuple[str, ...]:
    """What this program has on the GPU itself, which its trials had to do without."""
    torch = sys.modules.get("torch")
    by_torch = torch is not None and torch.cuda.is_available() and torch.cuda.memory_reserved() > 0
    bridge = sys.modules.get("jax._src.xla_bridge")
    by_jax = bool(set(getattr(bridge, "_backends", ())) - {"cpu", "interpreter"})
    eager = sys.modules.get("tensorflow.python.eager.context")
    context: Any = getattr(eager, "_context", None)
    started = getattr(context, "_initialized", False)
    by_tensorflow = bool(started and context.list_logical_devices("GPU"))
    if not (by_torch or by_jax or by_tensorflow):
        return ()
    return (
        "this program had GPU memory itself while it looked: call find_batch_size before anything "
        "is put on the GPU",
    )
