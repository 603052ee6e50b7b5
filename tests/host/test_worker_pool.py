"""A pool whose processes are killed goes on with the other items."""

from __future__ import annotations

import os
import pathlib
import signal
from concurrent.futures import BrokenExecutor

import pytest

from whygpu.host.worker_pool import WorkerPool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL"),
]
DEADLY = 37


def _nothing() -> None:
    pass


def _double(number: int) -> int:
    if number == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def _once(path: str) -> str:
    """Kills its process the first time."""
    if path and not os.path.exists(path):
        with open(path, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return path


def _lost(number: int) -> int:
    return -number


@pytest.mark.parametrize("chunk", [1, 8, 100])
def test_an_item_that_kills_its_process_costs_no_other_item(chunk: int) -> None:
    with WorkerPool(_nothing, 2) as pool:
        found = list(pool.results(_double, range(120), chunk=chunk, lost=_lost))
    assert found == [2 * number if number != DEADLY else -DEADLY for number in range(120)]


def test_an_item_whose_process_was_killed_once_is_tried_again(tmp_path: pathlib.Path) -> None:
    items = ["", f"{tmp_path}/was-killed", ""]
    with WorkerPool(_nothing, 2) as pool:
        assert list(pool.results(_once, items, lost=lambda _: "lost")) == items


def test_without_a_result_for_lost_items_it_is_an_error() -> None:
    with pytest.raises(BrokenExecutor), WorkerPool(_nothing, 2) as pool:
        list(pool.results(_double, range(120)))
