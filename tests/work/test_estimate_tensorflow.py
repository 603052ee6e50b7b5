"""What TensorFlow takes on a GPU beside what its graph shows."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.comparer.inside import part

MARGINS = part("estimates.tensorflow_margins")
BLOCK = part("estimates.margins").BLOCK
RECURRENT = part("estimates.cudnn_recurrent").Recurrent
MIB = 1 << 20


@each(
    ("kind", "rows", "hidden", "kept"),
    [
        ("LSTM", 3200, 64, 3.906),
        ("LSTM", 12800, 256, 62.5),
        ("LSTM", 6400, 512, 62.5),
        ("GRU", 3200, 64, 4.688),
        ("GRU", 12800, 256, 75.0),
    ],
)
def test_cudnn_keeps_what_tensorflow_was_given_on_an_h200(
    kind: str, rows: int, hidden: int, kept: float
) -> None:
    layer = RECURRENT(kind, hidden, copied=True)
    assert layer.reserve(rows, 4) == pytest.approx(kept * MIB, rel=1e-3)


def test_sequences_that_are_copied_take_more_and_small_layers_less() -> None:
    large = [RECURRENT("LSTM", 512, copied=copied) for copied in (False, True)]
    small = [RECURRENT("LSTM", 64, copied=copied) for copied in (False, True)]
    sizes = [each.workspace(1000, 64, 10**6, 4, True) for each in large]
    assert sizes[1] - sizes[0] == 1000 * (64 + 2 * 512) * 4
    plain, copied = (each.workspace(1000, 64, 10**6, 4, True) for each in small)
    assert copied < plain


def test_what_is_known_is_left_out_of_the_margins() -> None:
    known = {"weights": 100 * MIB, "optimizer": 200 * MIB}
    least, most = MARGINS.XLA.around({**known, "activations": 1000 * MIB, "workspace": 100 * MIB})
    assert least == 300 * MIB + MARGINS.XLA.least * 1000 * MIB
    assert most == 300 * MIB + MARGINS.XLA.most * 1100 * MIB + BLOCK


def test_for_convolutions_the_margin_is_that_of_the_arrays_and_covers_the_workspace() -> None:
    sizes = {"activations": 100 * MIB, "workspace": 0}
    _, most = MARGINS.CONVOLUTIONS.around(sizes)
    assert most == MARGINS.CONVOLUTIONS.most * 100 * MIB + BLOCK
    _, with_some = MARGINS.CONVOLUTIONS.around({**sizes, "workspace": 150 * MIB})
    assert with_some == most
    _, with_much = MARGINS.CONVOLUTIONS.around({**sizes, "workspace": 900 * MIB})
    assert with_much == 1000 * MIB + BLOCK
