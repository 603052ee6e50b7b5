"""The range of an estimate for JAX contains what was measured on an NVIDIA H200.

The figures are of docs/measured/memory-estimate.md.
"""

from __future__ import annotations

from tests.cases import each
from tests.comparer.inside import part

MARGINS = part("estimates.jax_margins")
MIB = 1 << 20


@each(
    ("known", "measured", "off", "how", "train"),
    [
        # Those that are furthest off. Known are weights and optimizer.
        (87, 2416, -0.28, "modelled", False),
        (528, 2306, -0.059, "modelled", False),
        (30, 283, -0.476, "modelled", False),
        (1584, 10328, -0.083, "modelled", True),
        (273, 6578, -0.123, "modelled", True),
        (30, 1313, 0.148, "modelled", True),
        (10, 268, -0.273, "modelled", True),
        (1584, 10328, -0.056, "compiled", True),
        (370, 9361, -0.069, "compiled", True),
        (98, 401, -0.115, "compiled", False),
        (0, 546, -0.217, "compiled", False),
    ],
)
def test_what_was_measured_is_in_the_range(
    known: int, measured: int, off: float, how: str, train: bool
) -> None:
    arrays = measured * (1 + off) - known
    sizes = {"weights": known * MIB, "activations": int(arrays * MIB)}
    least, most = MARGINS.around(sizes, how, train)
    assert least <= measured * MIB <= most
    # The range must allow an answer: weights are known, and a compiler is hardly wrong.
    assert most <= 1.5 * (known + arrays) * MIB + 128 * MIB


def test_a_range_is_narrower_if_the_compiler_was_asked() -> None:
    sizes = {"weights": 100 * MIB, "activations": 4000 * MIB}
    compiled, training, other = (
        MARGINS.around(sizes, how, train)
        for how, train in (("compiled", True), ("modelled", True), ("modelled", False))
    )
    assert compiled[1] < training[1] < other[1]
    assert compiled[0] > training[0]
