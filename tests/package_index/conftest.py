"""The package index on this machine, for the tests of this folder."""

from tests.package_index.local_index import index, web

__all__ = ["index", "web"]
