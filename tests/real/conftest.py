"""What holds for tests that run frameworks; those of the lab have it from here."""

from __future__ import annotations

import os

import pytest

from tests import abilities

LONGEST = (
    "lab/test_scenarios.py",
    "test_compare.py",
    "test_find_frameworks.py",
    "test_guard_keras.py",
    "test_guard_memory.py",
    "test_out_of_memory.py",
    "test_trace.py",
    "test_tf1.py",
    "test_compare_numerics.py",
    "test_fleet_ray.py",
    "test_fix.py",
    "lab/test_run.py",
    "test_run.py",
    "test_probes.py",
    "test_tutorial.py",
)
"""Files that take half a minute or more, longest first: none of them should be left to the end,
when only one processor has something to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}

    def place(item: pytest.Item) -> int:
        path = item.path
        name = f"lab/{path.name}" if path.parent.name == "lab" else path.name
        return places.get(name, len(places))

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def machine_abilities(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Before the first framework is used: what this machine's processor lets it compute."""
    own = tmp_path_factory.getbasetemp()
    # The workers of a test run have folders beside each other.
    abilities.settle(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)
