"""Which interpreters have the frameworks and see the GPU, and a lock so that only one measures.

Shared by the benchmarks that also run on a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

FRAMEWORKS = ("torch", "tensorflow", "jax")
LOCK = pathlib.Path(tempfile.gettempdir()) / "whygpu-benchmark-on-gpu.lock"
SLOWEST_IMPORT = 180.0
"""Seconds: the first import of a framework on a machine reads gigabytes."""

_GPUS = {
    "torch": "import torch; found = torch.cuda.device_count()",
    "tensorflow": ("import tensorflow as tf; found = len(tf.config.list_physical_devices('GPU'))"),
    "jax": "import jax; found = sum(each.platform == 'gpu' for each in jax.devices())",
}


class NotAlone(Exception):
    """Another benchmark measures on the GPU."""


class Interpreters(NamedTuple):
    """The Python that has each framework."""

    named: Mapping[str, str]
    default: str = ""

    def of(self, framework: str) -> str:
        """Empty if none was given."""
        return self.named.get(framework, self.default)


def interpreters(words: Sequence[str]) -> Interpreters:
    """From values of --python: a path, or FRAMEWORK=PATH."""
    named, default = {}, ""
    for word in words:
        framework, separator, path = word.partition("=")
        if separator and framework in FRAMEWORKS:
            named[framework] = path
        elif separator and not os.path.exists(word):
            known = ", ".join(FRAMEWORKS)
            raise argparse.ArgumentTypeError(f"--python {word}: the frameworks are {known}")
        else:
            default = word
    return Interpreters(named, default)


def why_unusable(python: str, framework: str, device: str, *, keras: bool = False) -> str:
    """Why programs of a framework, or of Keras on it, cannot run there; empty if they can."""
    if not python:
        return f"no interpreter was given for {framework}: --python {framework}=PATH"
    code = _GPUS[framework] if device == "gpu" else f"import {framework}; found = 1"
    if keras:
        code += "\nimport keras"
    try:
        done = subprocess.run(
            [python, "-c", f"{code}\nprint('found', found)"],
            capture_output=True,
            text=True,
            timeout=SLOWEST_IMPORT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": framework},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{framework}: {error}"
    if done.returncode:
        return f"{framework}: {_last_line(done.stderr)}"
    if done.stdout.split()[-2:] == ["found", "0"]:
        return f"{framework} sees no GPU in {python}"
    return ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it failed without a message"


@contextlib.contextmanager
def alone(device: str) -> Iterator[None]:
    """On a GPU, programs that run at the same time would slow each other down."""
    if device != "gpu":
        yield
        return
    with LOCK.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotAlone(f"another benchmark measures on this GPU ({LOCK} is locked)") from None
        yield
