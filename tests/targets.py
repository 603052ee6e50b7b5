"""Real framework environments that tests examine, each apart from whygpu's own.

`python -m tests.targets` builds them under .targets/ (or WHYGPU_TARGETS); `python_of(name)` gives
a test the interpreter of one, or skips the test with the reason why it is not there.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

from tests import tested_frameworks

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class TargetSpec:
    python: tuple[str, ...]
    """Versions that will do, best first."""
    requirements: tuple[str, ...]
    """What pip is told to install."""
    index: str = ""
    """Where else pip looks for it, if the package index that it is set up for lacks it."""
    first_use: str = ""
    """What is run once after the installation, so that byte code is there for what tests import."""
    pip: str = ""
    """The pip to install with, where the one that comes with the interpreter is too old."""
    everyday: bool = True
    """Built by default; the others take gigabytes and are built when named."""

    @property
    def stamp(self) -> str:
        return hashlib.sha256("\n".join(self.requirements).encode()).hexdigest()[:16]


TENSORFLOW = "import tensorflow as tf; tf.keras.Sequential"
TORCH = "torch==2.13.0+cpu"
"""The local version keeps pip from taking the default build with its gigabytes of CUDA wheels,
which is another subject. PyPI has no other build for Linux: if neither pip's settings nor PyTorch's
own index lead to this one, PyTorch is not tested, and the summary of the tests says so."""
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
KERAS = "import os; os.environ['KERAS_BACKEND'] = '{}'; import keras"
MODERN = ("3.11", "3.12", "3.13", "3.10")

TARGETS = {
    "tensorflow-2.21": TargetSpec(MODERN, ("tensorflow==2.21.0",), first_use=TENSORFLOW),
    "jax": TargetSpec(("3.12", "3.13", "3.11"), ("jax", "keras"), first_use=KERAS.format("jax")),
    "torch": TargetSpec(
        MODERN, (TORCH, "keras"), index=TORCH_INDEX, first_use=KERAS.format("torch")
    ),
    # One model on every backend, for comparisons.
    "keras-all": TargetSpec(
        MODERN,
        ("tensorflow==2.21.0", "jax", TORCH),
        index=TORCH_INDEX,
        first_use=KERAS.format("torch"),
    ),
    "tensorflow-gpu-1.15": TargetSpec(
        ("3.7",), ("tensorflow-gpu==1.15.5", "protobuf<3.21"), first_use=TENSORFLOW
    ),
    # Everything by name, because packages too new for Python 3.6 are taken where the index does
    # not say which Python they need; and by a pip that knows the wheels of that time.
    "tensorflow-gpu-1.12": TargetSpec(
        ("3.6",),
        (
            "--no-deps",
            "tensorflow-gpu==1.12.0",
            "tensorboard==1.12.2",
            "absl-py==0.15.0",
            "astor==0.8.1",
            "gast==0.4.0",
            "grpcio==1.48.2",
            "h5py==2.10.0",
            "keras-applications==1.0.8",
            "keras-preprocessing==1.1.2",
            "markdown==3.3.7",
            "numpy==1.19.5",
            "protobuf==3.19.6",
            "six==1.16.0",
            "termcolor==1.1.0",
            "werkzeug==2.0.3",
            "wheel==0.37.1",
        ),
        pip="pip==21.3.1",
    ),
    "tensorflow-2.21-cuda": TargetSpec(
        MODERN, ("tensorflow[and-cuda]==2.21.0",), first_use=TENSORFLOW, everyday=False
    ),
    "jax-cuda12": TargetSpec(
        ("3.12", "3.13", "3.11"), ("jax[cuda12]",), first_use="import jax", everyday=False
    ),
}


def folder() -> pathlib.Path:
    given = os.environ.get("WHYGPU_TARGETS")
    return pathlib.Path(given) if given else ROOT / ".targets"


def python_of(name: str) -> str:
    """The interpreter of a target that is built; skips the calling test when it is not."""
    import pytest

    tested_frameworks.note(name)
    python = folder() / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"the target {name} is not built: {_why_not(name)}")
    return str(python)


def _why_not(name: str) -> str:
    note = folder() / f"{name}.failed"
    return note.read_text().strip() if note.exists() else f"run `python -m tests.targets {name}`"


def find_interpreter(versions: tuple[str, ...]) -> str | None:
    """A CPython of one of these versions: this one, on PATH, or in pyenv."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in versions:
        if version == own:
            return sys.executable
        # pyenv's shims are on PATH for every version it knows and fail for those not selected.
        pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
        candidates = _of_pyenv(pyenv, version)
        on_path = shutil.which(f"python{version}")
        if on_path:
            candidates.append(pathlib.Path(on_path))
        for candidate in candidates:
            if subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
                return str(candidate)
    return None


def _of_pyenv(root: pathlib.Path, version: str) -> list[pathlib.Path]:
    try:
        return sorted(root.glob(f"versions/{version}.*/bin/python"))
    except PermissionError:
        # It is another user's, as with PYENV_ROOT under sudo.
        return []


def build(name: str, spec: TargetSpec) -> str:
    """Make one target, or leave a note that says why it cannot be made. Returns what was done."""
    place = folder() / name
    stamp = place / "whygpu-target"
    note = folder() / f"{name}.failed"
    if stamp.exists() and stamp.read_text() == spec.stamp:
        return "is there"
    if place.is_symlink():
        return "is somebody else's link: left alone"
    interpreter = find_interpreter(spec.python)
    note.parent.mkdir(parents=True, exist_ok=True)
    if interpreter is None:
        note.write_text(f"no Python {' or '.join(spec.python)} on this machine")
        return note.read_text()
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", place], check=True)
    # Byte code is made when a module is first imported; compiling all of it takes a minute.
    install = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--no-compile"]
    if spec.pip:
        subprocess.run([*install, spec.pip], check=True)
    wanted = [*install, "--prefer-binary", *spec.requirements]
    done = subprocess.run(wanted, capture_output=True, text=True)
    if done.returncode and spec.index:
        again = [*wanted, "--extra-index-url", spec.index]
        done = subprocess.run(again, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(place, ignore_errors=True)
        asked = " ".join(spec.requirements)
        note.write_text(f"pip install {asked} failed: {done.stderr.strip()[-500:]}")
        return note.read_text()
    # Probes write no byte code into a target, and compiling it in memory triples each import.
    if spec.first_use:
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "KERAS_HOME": str(place)}
        command = [str(place / "bin" / "python"), "-c", spec.first_use]
        subprocess.run(command, env=environ, capture_output=True, timeout=300)
    note.unlink(missing_ok=True)
    stamp.write_text(spec.stamp)
    return "built"


def main(names: list[str]) -> int:
    chosen = names or [name for name, spec in TARGETS.items() if spec.everyday]
    unknown = sorted(set(chosen) - TARGETS.keys())
    if unknown:
        print(f"no such target: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
        return 2
    for name in chosen:
        began = time.monotonic()
        print(f"target {name} ...", end=" ", flush=True)
        print(f"{build(name, TARGETS[name])} ({time.monotonic() - began:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
