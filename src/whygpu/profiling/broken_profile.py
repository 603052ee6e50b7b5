"""The error of the readers of frameworks' profiles."""

from __future__ import annotations


class BrokenProfile(ValueError):
    """The file is not what it should be; the message says where."""
