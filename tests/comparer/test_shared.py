"""What lanes share: weights that are set, weights that are kept, and room on disk."""

from __future__ import annotations

import os
import pathlib

import pytest

from tests.comparer.inside import part
from whygpu.comparer.lane_processes import share_equal_files

numpy = pytest.importorskip("numpy")
RANDOM = numpy.random.RandomState(0)
BIAS = numpy.zeros(4)


def drawn() -> object:
    return RANDOM.standard_normal((4, 4))


def settle(own: list[object], theirs: list[object]) -> tuple[list[object], bool]:
    chosen, changed = part("lanes.sharing").settled(own, theirs, [True] * len(own))
    return chosen, changed


def test_weights_drawn_at_random_are_those_of_the_first_lane() -> None:
    own, theirs = [drawn(), BIAS, drawn()], [drawn(), BIAS, drawn()]
    chosen, changed = settle(own, theirs)
    assert changed
    assert all(one is other for one, other in zip(chosen, theirs, strict=True))


def test_weights_that_are_mostly_the_same_are_the_programs_own() -> None:
    same = [drawn(), drawn()]
    odd = drawn()
    chosen, changed = settle([*same, odd], [*same, drawn()])
    assert not changed
    assert chosen[2] is odd


def test_a_transposed_matrix_is_no_accident() -> None:
    one, other = drawn(), drawn()
    turned = one.T  # type: ignore[attr-defined]
    chosen, changed = settle([turned, drawn()], [one, other])
    assert changed
    assert chosen[0] is turned
    assert chosen[1] is other


def test_constants_say_nothing_of_how_weights_were_made() -> None:
    own, theirs = [BIAS, BIAS + 1, drawn()], [BIAS, BIAS + 1, drawn()]
    _, changed = settle(own, theirs)
    assert changed


def test_other_shapes_are_named() -> None:
    check = part("lanes.sharing").check_shapes
    message = r"the weight dense/kernel is of shape \(2, 3\) here and \(3, 2\) in lane cpu"
    with pytest.raises(part("loading").Unusable, match=message):
        check(["dense/kernel"], [numpy.zeros((2, 3))], [numpy.zeros((3, 2))], "cpu")
    with pytest.raises(part("loading").Unusable, match="it has 1 weights here and 2 in lane cpu"):
        check(["a"], [BIAS], [BIAS, BIAS], "cpu")


def test_a_bundle_is_whole_or_not_there(tmp_path: pathlib.Path) -> None:
    shared = part("lanes.sharing").Shared(str(tmp_path), "cpu")
    assert shared.bundle("inputs") is None
    (tmp_path / "inputs.part").mkdir()  # what a lane leaves that dies while writing
    assert shared.bundle("inputs") is None
    shared.leave("inputs", [BIAS, BIAS + 2], rows=3)
    arrays, facts = part("lanes.sharing").Shared(str(tmp_path), "gpu").bundle("inputs")
    assert [array.tolist() for array in arrays] == [[0] * 4, [2] * 4]
    assert (facts["rows"], facts["lane"]) == (3, "cpu")


def test_equal_files_of_two_runs_are_one(tmp_path: pathlib.Path) -> None:
    for run, second in (("1", b"abc"), ("2", b"abd")):
        (tmp_path / run).mkdir()
        (tmp_path / run / "0.npy").write_bytes(b"same")
        (tmp_path / run / "1.npy").write_bytes(second)
        (tmp_path / run / "manifest.json").write_bytes(b"same")
    share_equal_files(str(tmp_path / "2"), str(tmp_path / "1"))
    assert os.path.samefile(tmp_path / "1" / "0.npy", tmp_path / "2" / "0.npy")
    assert not os.path.samefile(tmp_path / "1" / "1.npy", tmp_path / "2" / "1.npy")
    assert not os.path.samefile(tmp_path / "1" / "manifest.json", tmp_path / "2" / "manifest.json")
    assert (tmp_path / "2" / "1.npy").read_bytes() == b"abd"
