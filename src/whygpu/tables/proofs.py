"""How each cause and its remedies were proven: in the fault lab, or on a GPU.

`python -m tools.carry_out_remedies --write` writes `tables/lab_proofs.py`, and the lab's tests
compare it with what they see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from whygpu.tables.lab_proofs import ROWS
from whygpu.tables.proof_rows import LabResult


class Sighting(NamedTuple):
    """A cause that was seen on a GPU."""

    cause: str
    machine: str
    seen: str
    source: str
    """The document with the output."""


H200 = "NVIDIA H200, driver 580.159.04"

ON_A_GPU: tuple[Sighting, ...] = (
    Sighting(
        "library-path-conflict",
        H200,
        "check names the cause after `pip install 'tensorflow[and-cuda]==2.21.0'`",
        "docs/check.md",
    ),
    Sighting(
        "library-path-conflict",
        H200,
        "fix links libcusolver.so.11, TensorFlow 2.21.0 computes on the GPU, and undo goes back",
        "docs/tensorflow-on-gpu.md",
    ),
    Sighting(
        "cuda-version-mismatch",
        H200,
        "fix installs 'tensorflow[and-cuda]==2.20.0' over tensorflow, which then computes on the "
        "GPU",
        "docs/tensorflow-on-gpu.md",
    ),
    Sighting(
        "library-file-broken",
        H200,
        "fix takes the folder of a damaged libcudnn.so.9 off LD_LIBRARY_PATH, TensorFlow computes "
        "on the GPU, and undo goes back",
        "docs/tensorflow-on-gpu.md",
    ),
    Sighting(
        "cpu-only-build",
        H200,
        "fix installs 'jax[cuda13]==0.11.2' over the CPU build of JAX, which then computes on the "
        "GPU, and undo goes back",
        "docs/tensorflow-on-gpu.md",
    ),
    Sighting(
        "cudnn-version-mismatch",
        H200,
        "fix installs 'nvidia-cudnn-cu12==9.*' over 8.9.7.29, TensorFlow 2.21.0 computes on the "
        "GPU, and undo goes back",
        "docs/tensorflow-on-gpu.md",
    ),
    Sighting(
        "visible-devices-hides-gpu",
        H200,
        "check names the cause for Keras, JAX, PyTorch, CuPy and Numba",
        "docs/check.md",
    ),
)

_RESULTS: Mapping[LabResult, str] = {
    "mends": "carried out, and the cause is gone",
    "eases": "does not remove the cause",
    "shows": "changes nothing",
    "not-here": "not carried out",
    "no-command": "not carried out",
}
NOT_PROVEN = (
    "Not proven: no scenario of the fault lab has this cause, and it was not seen on a GPU. Only "
    "its examples are tested."
)


def proofs_of(cause: str) -> tuple[str, ...]:
    """Where the cause was seen, and the result of each of its remedies."""
    return tuple(_lines(cause)) or (NOT_PROVEN,)


def _lines(cause: str) -> Iterator[str]:
    for sighting in ON_A_GPU:
        if sighting.cause == cause:
            yield f"{sighting.machine}: {sighting.seen} ({sighting.source})."
    scenarios: dict[tuple[str, LabResult, str], list[str]] = {}
    for row in ROWS:
        if row.cause == cause:
            scenarios.setdefault((row.text, row.result, row.detail), []).append(row.scenario)
    seen = dict.fromkeys(name for names in scenarios.values() for name in names)
    if seen:
        yield f"Named by check in the fault lab: {', '.join(seen)}."
    for (text, result, detail), names in scenarios.items():
        reason = f": {detail}" if detail else ""
        where = "" if len(names) == len(seen) else f" ({', '.join(dict.fromkeys(names))})"
        yield f'Remedy "{text}": {_RESULTS[result]}{reason}{where}.'
