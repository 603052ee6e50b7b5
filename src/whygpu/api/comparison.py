"""The verb compare."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from whygpu.api.arguments import THIS_PYTHON, checked
from whygpu.errors import UsageError
from whygpu.host.systems import require_linux

if TYPE_CHECKING:
    from collections.abc import Callable

    from whygpu.model.comparison import ComparisonReport

TIMEOUT = 1800.0
_LARGEST_SEED = (1 << 32) - 1


@checked
def compare(
    what: str,
    lanes: str | None = None,
    *,
    inputs: str | None = None,
    random: int = 0,
    batch: int | None = None,
    shapes: str | None = None,
    tolerance: str = "auto",
    repeat: int | None = None,
    train: int = 0,
    python: str | None = THIS_PYTHON,
    timeout: float = TIMEOUT,
    host_memory: str | int | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
) -> ComparisonReport:
    """The same work on several lanes: how far apart are the results, and is it more than rounding?

    `what` is "model.keras", "file.py:function" or "script.py". `lanes` are words such as
    "cpu,gpu:no-cudnn"; None takes those that tell most on this machine. `inputs` is a file of
    numpy.savez; without it, inputs are made from the seed `random`, `batch` of them, of the shapes
    that the model says or that `shapes` gives ("3x224x224"). `python` is an interpreter or a
    virtual environment: this program's, unless another is given. `timeout` is in seconds, for one
    run of one lane. `host_memory` (bytes, or "32GiB") is the main memory that one process may take.

    Example:
        whygpu.compare("model.keras", "cpu,gpu")
    """
    require_linux("compare")
    if not 0 <= random <= _LARGEST_SEED:
        raise UsageError(
            f"expected a seed from 0 to {_LARGEST_SEED}", option="random", value=random
        )
    if not timeout > 0:
        raise UsageError("expected more than 0 seconds", option="timeout", value=timeout)
    if what.endswith(".py"):
        _refuse_for_a_script(what, inputs=inputs, batch=batch, shapes=shapes)
    for option, number in (("batch", batch), ("repeat", repeat)):
        if number is not None and number < 1:
            raise UsageError("expected 1 or more", option=option, value=number)
    if train < 0:
        raise UsageError("expected a number of steps", option="train", value=train)
    if inputs is not None:
        _check_inputs(inputs)
    from whygpu.comparer import comparing
    from whygpu.memory.amounts import in_bytes

    return comparing.compare(
        what,
        lanes,
        inputs=inputs,
        random=random,
        batch=batch,
        shapes=shapes,
        tolerance=tolerance,
        repeat=repeat,
        train=train,
        python=python,
        timeout=timeout,
        host_limit=None if host_memory is None else in_bytes(host_memory, "host_memory"),
        on_progress=on_progress,
    )


def _refuse_for_a_script(what: str, **options: object) -> None:
    for option, value in options.items():
        if value is not None:
            raise UsageError(
                f"it is for models and functions; {what} as a script has its own inputs; expected "
                f"{what}:function",
                option=option,
                value=value,
            )


def _check_inputs(inputs: str) -> None:
    import zipfile

    if not os.path.isfile(inputs):
        raise UsageError(
            "there is no such file; expected a file of numpy.savez", option="inputs", value=inputs
        )
    if not zipfile.is_zipfile(inputs):
        raise UsageError(
            'not a file of numpy.savez; make one with numpy.savez("inputs.npz", array), or several '
            "arrays by name",
            option="inputs",
            value=inputs,
        )
