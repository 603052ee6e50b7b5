"""`whygpu.find_batch_size`: the search from inside a program, its trials outside of it.

A trial must have the memory to itself, so it is a new process here as well. A forked one would
not do: threads and GPUs of a framework that has started do not live on in a fork, and what the
program holds already would count as the trial's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from whygpu.errors import UsageError
from whygpu.memory.find import IN_TRIAL
from whygpu.model.work import What


class NamedStep(NamedTuple):
    name: str
    what: What | None
    """The file and the function in it; None if the step is pickled."""
    pickled: str | None
    """The file with the pickle."""


def refuse_in_trial(environ: Mapping[str, str]) -> None:
    if environ.get(IN_TRIAL):
        raise UsageError(
            "a trial loaded this file, and the file called find_batch_size again: put the call "
            'under `if __name__ == "__main__":`, so that only the main program makes it'
        )


@contextmanager
def named_step(step: Any) -> Iterator[NamedStep]:
    """The step, as another process can load it: by its name in a file, or from a pickle."""
    if isinstance(step, str):
        from whygpu.work.named_work import parse_what

        yield NamedStep(step, parse_what(step, ("model-file", "function")), None)
        return
    what = in_a_file(step)
    if what is not None:
        yield NamedStep(f"{os.path.basename(what.path)}:{what.name}", what, None)
        return
    name = getattr(step, "__qualname__", None) or f"the {type(step).__name__}"
    content = _pickled(step, name)
    descriptor, path = tempfile.mkstemp(prefix="whygpu-step-", suffix=".pickle")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        yield NamedStep(name, None, path)
    finally:
        os.unlink(path)


def in_a_file(step: Any) -> What | None:
    """Where a function can be loaded from by its name; None if it cannot."""
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
            f"{name} is not a function at the top level of a file, so another process cannot "
            "import it: move it into a file (in a notebook: %%writefile step.py, then "
            'find_batch_size("step.py:step")), or install cloudpickle'
        ) from None
    try:
        return bytes(cloudpickle.dumps(step))
    except Exception as error:
        # Pickling runs code of the objects that the step refers to, which may raise anything.
        raise UsageError(
            f"{name} cannot be sent to another process ({type(error).__name__}: {error}): move it "
            "to the top level of a file, and create what it needs inside it"
        ) from error


def held_by_this_program() -> tuple[str, ...]:
    """A note, if this program holds GPU memory itself, which its trials did not have."""
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
        "this program itself held GPU memory during the search: call find_batch_size before the "
        "program puts anything on the GPU",
    )
