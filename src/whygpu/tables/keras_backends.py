"""Which releases of Keras work on which backends, which its metadata do not say."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_KERAS_3 = "https://keras.io/keras_3/"
_FLOAT8 = "https://pytorch.org/docs/2.1/tensor_attributes.html"
_JAX_CHANGES = "https://docs.jax.dev/en/latest/changelog.html"


class BackendLimit(NamedTuple):
    """Releases of Keras from `first` to `last` on one backend."""

    backend: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    requirement: str | None
    """The releases of the backend that work; None if there are none."""
    because: str
    """The rest of a sentence that begins with the release of Keras."""
    source: str


_ANY = (9999,)
ROWS: tuple[BackendLimit, ...] = (
    BackendLimit("torch", (0,), (2, 9999), None, "has no PyTorch backend; Keras 3 has", _KERAS_3),
    BackendLimit("jax", (0,), (2, 9999), None, "has no JAX backend; Keras 3 has", _KERAS_3),
    # Read from the wheels: keras/src/backend/torch/core.py names float8 types from 3.2.0 on.
    BackendLimit("torch", (3, 2), _ANY, "torch>=2.1", "uses float8 types of PyTorch 2.1", _FLOAT8),
    # Found by training a small model with each pair: Keras 3.0 to 3.15, JAX 0.4.18 to 0.12.
    BackendLimit(
        "jax",
        (3, 0),
        (3, 9, 1),
        "jax<0.6.1",
        "uses jax.spmd_mode, which JAX 0.6.1 removed",
        _JAX_CHANGES,
    ),
    BackendLimit(
        "jax",
        (3, 9, 2),
        (3, 9, 9999),
        "jax<0.6.1,>=0.4.24",
        "uses jax.spmd_mode, which JAX 0.6.1 removed, and modules of JAX 0.4.24",
        _JAX_CHANGES,
    ),
    BackendLimit(
        "jax",
        (3, 10),
        (3, 11, 9999),
        "jax>=0.4.24",
        "uses modules of JAX 0.4.24 (splash_attention)",
        _JAX_CHANGES,
    ),
    BackendLimit(
        "jax", (3, 12), _ANY, "jax>=0.4.30", "uses jax.export of JAX 0.4.30", _JAX_CHANGES
    ),
)


def backend_limit(keras: str, backend: str) -> BackendLimit | None:
    """The known problem of a release of Keras on a backend; None if there is none."""
    numbers = release_numbers(keras)
    return next(
        (row for row in ROWS if row.backend == backend and row.first <= numbers <= row.last), None
    )
