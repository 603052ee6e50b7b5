"""What TensorFlow 1 had and TensorFlow 2 does not."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.tensorflow_1_names import REMOVED, is_removed


@each(
    ("module", "name", "removed"),
    [
        ("tensorflow", "Session", True),
        ("tensorflow._api.v2.v2", "Session", True),
        ("tensorflow.compat.v1", "contrib", True),
        ("tensorflow._api.v2.train", "AdamOptimizer", True),
        ("tensorflow_core._api.v2.train", "Saver", True),
        ("tensorflow._api.v2.train", "Checkpoint", False),
        ("tensorflow", "keras", False),
        ("tensorflow", "Saver", False),
        ("tensorflow._api.v2.summary", "FileWriter", True),
    ],
)
def test_by_module(module: str, name: str, removed: bool) -> None:
    assert is_removed(module, name) is removed


def test_what_tensorflow_2_has_is_not_among_them() -> None:
    kept = {"Variable", "constant", "GradientTape", "function", "keras", "data", "io", "linalg"}
    assert kept.isdisjoint(REMOVED["tensorflow"])
    assert {"Checkpoint", "Example", "Feature", "latest_checkpoint"}.isdisjoint(REMOVED["train"])
