"""Instruction sets that framework binaries use without checking that the processor has them."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers


class CpuFeatures(NamedTuple):
    distribution: str
    """The distribution with the binaries: jaxlib, not jax."""
    machine: str
    first: tuple[int, ...]
    features: tuple[str, ...]
    source: str


_TENSORFLOW_AVX = "https://github.com/tensorflow/tensorflow/releases/tag/v1.6.0"

ROWS: tuple[CpuFeatures, ...] = (
    CpuFeatures("tensorflow", "x86_64", (1, 6), ("avx",), _TENSORFLOW_AVX),
    CpuFeatures("tensorflow-gpu", "x86_64", (1, 6), ("avx",), _TENSORFLOW_AVX),
    CpuFeatures("tensorflow-cpu", "x86_64", (1, 15), ("avx",), _TENSORFLOW_AVX),
    CpuFeatures("tf-nightly", "x86_64", (2, 1), ("avx",), _TENSORFLOW_AVX),
    CpuFeatures(
        "jaxlib",
        "x86_64",
        (0, 4),
        ("avx",),
        "jaxlib 0.10.2 refuses to start without AVX (run under qemu-user with a Nehalem CPU)",
    ),
)


def features_of(distribution: str, version: str, machine: str) -> CpuFeatures | None:
    """The row for a distribution's release on a machine; None if nothing is on record."""
    numbers = release_numbers(version)
    return next(
        (
            row
            for row in ROWS
            if row.distribution == distribution and row.machine == machine and row.first <= numbers
        ),
        None,
    )
