"""What holds for tests that run frameworks; those of the lab have it from here."""

from __future__ import annotations

import os

import pytest

from tests import abilities


@pytest.fixture(scope="session", autouse=True)
def machine_abilities(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Before the first framework is used: what this machine's processor lets it compute."""
    own = tmp_path_factory.getbasetemp()
    # The workers of a test run have folders beside each other.
    abilities.settle(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)
