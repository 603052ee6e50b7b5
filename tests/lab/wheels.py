"""Packages of another version, for environments that do not fit together; fetched once, by pip."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.targets import folder

PINNED = {
    "keras-2": "keras==2.15.0",
    "protobuf-4": "protobuf==4.25.8",
    "protobuf-5": "protobuf==5.29.5",
    "tf-keras": "tf_keras==2.21.0",
    "h5py-new": "h5py==3.15.1",
    "jax-old": "jax==0.4.30",
    "jax-cuda12-plugin": "jax-cuda12-plugin==0.10.1",
    "ml-dtypes-for-numpy-1": "ml_dtypes==0.3.2",
    "numpy-1": "numpy==1.23.5",
    "cuda-runtime": "nvidia-cuda-runtime-cu12==12.9.79",
}
"""By a name of ours, what pip is asked for. Small ones only: all of them together are 45 MB."""

REMEDIES = {
    "numpy-1.26": "numpy==1.26.4",
    "numpy-2": "numpy==2.4.6",
    "protobuf-7": "protobuf==7.36.2",
    "h5py-3.14": "h5py==3.14.0",
    "ml-dtypes": "ml_dtypes==0.6.0",
    "keras-3": "keras==3.15.1",
    "tf-keras": "tf_keras==2.21.0",
    "wrapt": "wrapt==2.5.2",
    "jax-old": "jax==0.4.30",
    "jaxlib-old": "jaxlib==0.4.30",
    "jax-0.10": "jax==0.10.2",
    "jaxlib-0.10": "jaxlib==0.10.2",
    "scipy": "scipy==1.17.1",
}
"""What remedies install, where that is small: 250 MB in all."""


class NotFetched(Exception):
    """The package index could not be reached, or does not have it for this Python."""


def wheel(name: str, python: str) -> Path:
    """The wheel, in a version that fits an interpreter."""
    requirement = (PINNED | REMEDIES)[name]
    place = folder() / "wheels" / f"{name}-{_tag(python)}"
    found = sorted(place.glob("*.whl"))
    if not found:
        command = [python, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--dest", str(place), requirement]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            reason = done.stderr.strip().rpartition("\n")[2]
            raise NotFetched(f"{requirement} cannot be fetched: {reason}")
        found = sorted(place.glob("*.whl"))
    return found[0]


def _tag(python: str) -> str:
    code = "import sys; print('cp%d%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()
