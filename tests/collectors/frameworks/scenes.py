"""Targets made of a few files, seen through the framework collectors."""

from __future__ import annotations

import pathlib

from tests.collectors.sites import interpreter
from whygpu.collectors import frameworks, packages
from whygpu.collectors.frameworks.shared import Loader
from whygpu.host.local import LocalHost
from whygpu.model.observed import Known, need
from whygpu.model.target import Framework, FrameworkName


def no_loader() -> Loader:
    raise AssertionError("a build without CUDA has nothing to load")


def collect(*paths: pathlib.Path) -> tuple[Framework, ...]:
    host, python = LocalHost(), interpreter(*paths)
    found = packages.collect(host, python)
    return need(frameworks.collect(host, Known(python, "test"), found, no_loader))


def only(name: FrameworkName, *paths: pathlib.Path) -> Framework:
    (framework,) = (each for each in collect(*paths) if each.name == name)
    return framework
