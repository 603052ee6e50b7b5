"""Which number formats the targets can compute in on this machine, checked once per test run.

A processor may list instructions that trap, which ends the process of a framework in the middle of
a product in bfloat16. Tests must not depend on that. `settle` checks it in processes of the
targets. If it helps, `settle` limits the instruction sets that oneDNN may use in all processes of
the tests. `need` skips a test that this machine still cannot run, with the reason.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from tests import targets

VARIABLE = "ONEDNN_MAX_CPU_ISA"
LIMITS = ("AVX512_CORE_FP16", "AVX2", "SSE41")
"""Limits for oneDNN, from the weakest to the strictest."""
FORMATS = ("bfloat16", "float16")

_PROGRAMS = {
    "torch": """
import torch
from torch import nn, ones
for name in FORMATS:
    print(name, flush=True)
    kind = getattr(torch, name)
    nn.Linear(64, 64).to(kind)(ones(64, 64, dtype=kind))
    nn.LSTM(64, 64).to(kind)(ones(4, 4, 64, dtype=kind))
    nn.Conv2d(16, 16, 3).to(kind)(ones(2, 16, 8, 8, dtype=kind))
""",
    "tensorflow-2.21": """
import tensorflow as tf
for name in FORMATS:
    print(name, flush=True)
    x, image, kernel = (tf.ones(s, name) for s in ((64, 64), (2, 8, 8, 16), (3, 3, 16, 16)))
    tf.linalg.matmul(x, x).numpy()
    tf.nn.conv2d(image, kernel, 1, "SAME").numpy()
""",
    "jax": """
import jax.numpy as jnp
for name in FORMATS:
    print(name, flush=True)
    x = jnp.ones((64, 64), name)
    (x @ x).block_until_ready()
""",
}
_SAME_AS = {"keras-all": ("torch", "tensorflow-2.21", "jax")}
_LIMIT_SECONDS = 300

Found = dict[str, str]
"""Why a target cannot compute in a format, by "target format"; and the variable, if it helps."""
_found: Found = {}


def settle(folder: pathlib.Path) -> None:
    """Check, or read the result of another worker of the test run; `folder` is shared."""
    with open(folder / "abilities.json", "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        _found.update(json.loads(text) if text else _find_out())
        if not text:
            json.dump(_found, file)
    if VARIABLE in _found:
        os.environ[VARIABLE] = _found[VARIABLE]


def need(target: str, number_format: str) -> None:
    """Skip the calling test if the target cannot compute in this format."""
    import pytest

    for each in _SAME_AS.get(target, (target,)):
        why = _found.get(f"{each} {number_format}")
        if why is not None:
            pytest.skip(f"{each} cannot compute in {number_format} on this machine: {why}")


def _find_out() -> Found:
    failing = _failing(_PROGRAMS, {})
    if not failing or VARIABLE in os.environ:
        return failing
    names = {name.partition(" ")[0] for name in failing}
    for limit in LIMITS:
        still = _failing(names, {VARIABLE: limit})
        if len(still) < len(failing):
            return {**still, VARIABLE: limit}
    return failing


def _failing(names: Mapping[str, str] | set[str], changes: Mapping[str, str]) -> Found:
    built = [name for name in names if (targets.folder() / name / "bin" / "python").exists()]
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda name: _failing_of(name, changes), built)
    return {name: why for part in parts for name, why in part.items()}


def _failing_of(target: str, changes: Mapping[str, str]) -> Found:
    """One process for all formats; if it ends in one of them, another process does the rest."""
    found: Found = {}
    waiting = list(FORMATS)
    while waiting:
        python = targets.folder() / target / "bin" / "python"
        done = subprocess.run(
            [str(python), "-c", f"FORMATS = {waiting!r}\n{_PROGRAMS[target]}"],
            env={**os.environ, **changes, "CUDA_VISIBLE_DEVICES": "-1"},
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
        )
        if done.returncode == 0:
            break
        begun = [word for word in done.stdout.split() if word in waiting]
        failed = begun[-1] if begun else waiting[0]
        found[f"{target} {failed}"] = _reason(done)
        waiting = waiting[waiting.index(failed) + 1 :]
    return found


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"its process died of {signal.Signals(-done.returncode).name}"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]
