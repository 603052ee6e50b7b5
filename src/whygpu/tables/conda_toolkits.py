"""Which conda channel has the cudatoolkit package of a CUDA release."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers


class CondaToolkits(NamedTuple):
    """A channel with the CUDA releases from `first` to `last`, each with a cuDNN."""

    channel: str
    first: tuple[int, int]
    last: tuple[int, int]
    source: str


ROWS: tuple[CondaToolkits, ...] = (
    CondaToolkits(
        "anaconda", (9, 0), (9, 0), "https://github.com/ContinuumIO/anaconda-issues/issues/9121"
    ),
    # CUDA 12 and newer are other packages, from cuda-cudart to cuda-toolkit.
    CondaToolkits(
        "conda-forge", (9, 2), (11, 8), "https://anaconda.org/conda-forge/cudatoolkit/files"
    ),
)


def conda_channel(cuda: str) -> str | None:
    """The channel with cudatoolkit of a CUDA release; None if no channel is on record."""
    wanted = release_numbers(cuda)[:2]
    return next((row.channel for row in ROWS if row.first <= wanted <= row.last), None)
