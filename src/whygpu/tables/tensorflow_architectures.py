"""GPU code in the binaries of TensorFlow's releases, for naming one that serves an older GPU."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.architectures import fit, parse_code

_WHEELS = "tensorflow/python/platform/build_info.py in the wheels on PyPI"


class TensorflowCode(NamedTuple):
    release: str
    """The newest release with this code that also finds its libraries."""
    codes: tuple[str, ...]
    source: str


NEWEST_FIRST: tuple[TensorflowCode, ...] = (
    TensorflowCode("2.20.0", ("sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90"), _WHEELS),
    TensorflowCode("2.16.2", ("sm_50", "sm_60", "sm_70", "sm_80", "sm_90", "compute_90"), _WHEELS),
    TensorflowCode(
        "2.14.1", ("sm_35", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "compute_80"), _WHEELS
    ),
)


def newest_release_for(gpu: tuple[int, int]) -> str | None:
    """The newest release with machine code for a compute capability; None when none has it."""
    for row in NEWEST_FIRST:
        codes = [code for code in map(parse_code, row.codes) if code is not None]
        if fit(codes, gpu) == "binary":
            return row.release
    return None
