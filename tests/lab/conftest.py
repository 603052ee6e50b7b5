"""What holds for tests of the lab, which run frameworks."""

from tests.real.conftest import machine_abilities as machine_abilities
