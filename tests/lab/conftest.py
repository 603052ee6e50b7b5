"""What holds for tests of the lab, which run frameworks."""

from pathlib import Path

import pytest

from tests.lab.driver import NoCompiler, build
from tests.real.conftest import machine_abilities as machine_abilities


@pytest.fixture(scope="session")
def built_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stub driver that this session has compiled."""
    folder = tmp_path_factory.mktemp("stub-driver")
    try:
        build(folder)
    except NoCompiler as reason:
        pytest.skip(str(reason))
    return folder
