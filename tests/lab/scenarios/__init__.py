"""The scenarios, one module for each family of causes; found by walking this package."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from tests.lab.scenario import Scenario


def every_scenario() -> tuple[Scenario, ...]:
    found: list[Scenario] = []
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        found += import_module(module.name).SCENARIOS
    return tuple(found)
