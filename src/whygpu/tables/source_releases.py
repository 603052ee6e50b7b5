"""Releases without a wheel that pip can still install: pure Python, built in seconds.

The release table has only releases with a wheel. A requirement of another package may still be met
by one of these. For each Python, the newest one is enough: pip takes no older one.
"""

from __future__ import annotations

from whygpu.model.release import Release


def _jax(version: str, requires_python: str, *requires: str) -> Release:
    return Release(
        package="jax",
        version=version,
        file=f"https://pypi.org/project/jax/{version}/#files (jax-{version}.tar.gz)",
        pythons=(),
        requires_python=requires_python,
        platforms=("any",),
        glibc="",
        cuda="",
        cudnn="",
        architectures=(),
        requires=requires,
        unsearched=(),
    )


ROWS: tuple[Release, ...] = (
    # JAX has wheels since 0.4.16, which needs Python 3.9.
    _jax("0.3.25", ">=3.7", "numpy>=1.20", "scipy>=1.5", "typing-extensions"),
    _jax("0.4.13", ">=3.8", "ml-dtypes>=0.1.0", "numpy>=1.21", "scipy>=1.7"),
)


def source_releases(package: str) -> tuple[Release, ...]:
    """The rows of a package, from old to new."""
    return tuple(row for row in ROWS if row.package == package)
