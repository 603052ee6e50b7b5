"""Limits of a release that its metadata do not declare: newer packages break it."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_NUMPY_2 = "https://numpy.org/doc/stable/numpy_2_0_migration_guide.html"
_NUMPY_124 = "https://numpy.org/doc/stable/release/1.24.0-notes.html"
_JAX_CHANGES = "https://docs.jax.dev/en/latest/changelog.html"
_PROTOBUF_4 = "https://protobuf.dev/news/2022-05-06/#python-updates"


class UndeclaredLimit(NamedTuple):
    """Releases of a package from `first` to `last` work only with what `requirement` allows."""

    package: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    requirement: str
    because: str
    source: str


_NUMPY_1 = "its binaries were built for NumPy 1"
_OLD_PROTOBUF = "its generated code needs protobuf 3.20 or older"
_ALIASES = "it uses names that NumPy 1.24 removed"

LIMITS: tuple[UndeclaredLimit, ...] = (
    *(
        limit
        for name in ("tensorflow", "tensorflow-gpu")
        for limit in (
            UndeclaredLimit(name, (1, 0), (2, 8, 0), "protobuf<3.21", _OLD_PROTOBUF, _PROTOBUF_4),
            UndeclaredLimit(name, (1, 0), (2, 7, 99), "numpy<1.24", _ALIASES, _NUMPY_124),
            UndeclaredLimit(name, (2, 8), (2, 17, 99), "numpy<2", _NUMPY_1, _NUMPY_2),
        )
    ),
    # Read from the wheels: _versions.so up to 0.4.28 says cuDNN 8.9; 0.4.29 is for cuDNN 9.
    UndeclaredLimit(
        "jax-cuda12-plugin",
        (0, 4, 22),
        (0, 4, 28, 99),
        "nvidia-cudnn-cu12<9",
        "it was built for cuDNN 8",
        _JAX_CHANGES,
    ),
    UndeclaredLimit("jaxlib", (0, 1), (0, 4, 25), "numpy<2", _NUMPY_1, _NUMPY_2),
    UndeclaredLimit("torch", (1, 0), (2, 2, 99), "numpy<2", _NUMPY_1, _NUMPY_2),
    UndeclaredLimit("h5py", (2, 0), (3, 10, 99), "numpy<2", _NUMPY_1, _NUMPY_2),
)


def undeclared_limits(package: str, version: str) -> tuple[UndeclaredLimit, ...]:
    """What is known about one release beyond its metadata."""
    numbers = release_numbers(version)
    return tuple(
        row for row in LIMITS if row.package == package and row.first <= numbers <= row.last
    )
