"""The summary of a test run names what was tested for real, and what was not."""

from __future__ import annotations

import pathlib

from tests.tested_frameworks import Ended, note, noted, summary, versions_in

ALL = {
    "everything": {"tensorflow": "2.21.0", "keras": "3.14.0", "jax": "0.10.2", "torch": "2.13.0"}
}


def test_what_was_tested_is_named_with_its_version() -> None:
    ended = [Ended(("everything",), True, ""), Ended(("everything",), False, "")]
    found = summary(ended, ALL)
    assert found.tested == [
        "everything: tensorflow 2.21.0, keras 3.14.0, jax 0.10.2, torch 2.13.0 (1 tests passed)"
    ]
    assert found.untested == []


def test_a_framework_that_no_test_has_reached_is_named() -> None:
    skipped = "Skipped: the target torch is not built: pip install torch failed:\n no such build"
    ended = [
        Ended(("jax",), True, ""),
        Ended(("torch",), False, skipped),
        Ended(("tf",), False, "AssertionError"),
    ]
    found = summary(ended, {"jax": {"jax": "0.10.2"}, "torch": {}, "tf": {}})
    assert found.tested == ["jax: jax 0.10.2 (1 tests passed)"]
    assert found.untested == [
        "tf: no test passed",
        "torch: pip install torch failed: no such build",
        "TensorFlow",
        "Keras",
        "PyTorch",
    ]


def test_tests_without_frameworks_have_no_such_summary() -> None:
    assert not any(summary([], {}))


def test_what_is_built_on_request_only_is_no_gap() -> None:
    reason = "the target big is not built: run `python -m tests.targets big`"
    ended = [Ended(("big",), False, reason), Ended(("everything",), True, "")]
    found = summary(ended, {**ALL, "big": {}}, ["big"])
    assert found.untested == []
    assert found.on_request == ["big: run `python -m tests.targets big`"]


def test_a_note_is_read_once() -> None:
    before = noted()
    note("torch")
    note("jax")
    assert noted() == ("jax", "torch")
    assert noted() == ()
    for target in before:
        note(target)


def test_versions_are_those_of_the_installed_packages(tmp_path: pathlib.Path) -> None:
    site = tmp_path / "lib" / "python3.7" / "site-packages"
    for name in ("tensorflow_gpu-1.15.5", "torch-2.13.0+cpu", "torchvision-0.28", "keras-3.14.0"):
        (site / f"{name}.dist-info").mkdir(parents=True)
    assert versions_in(tmp_path) == {
        "keras": "3.14.0",
        "tensorflow": "1.15.5",
        "torch": "2.13.0+cpu",
    }
