"""Framework releases that cannot find their own CUDA wheels, as they were published."""

from __future__ import annotations

from typing import NamedTuple


class SearchListDefect(NamedTuple):
    """A release whose binaries leave folders of its own wheels out of their RUNPATH."""

    framework: str
    version: str
    libraries: tuple[str, ...]
    """As in lib<library>.so."""
    good_release: str
    """The nearest release without the defect."""
    source: str


SEARCH_LIST_DEFECTS: tuple[SearchListDefect, ...] = (
    SearchListDefect(
        "tensorflow",
        "2.16.1",
        ("cublas", "cublasLt", "cudnn", "cufft", "cusolver", "cusparse"),
        "2.16.2",
        "https://github.com/tensorflow/tensorflow/issues/63362",
    ),
    SearchListDefect(
        "tensorflow",
        "2.21.0",
        ("cusolver",),
        "2.20.0",
        "https://github.com/tensorflow/tensorflow/pull/112973",
    ),
)


def search_list_defect(framework: str, version: str) -> SearchListDefect | None:
    """What is known against a release; None when nothing is."""
    return next(
        (
            row
            for row in SEARCH_LIST_DEFECTS
            if row.framework == framework and row.version == version
        ),
        None,
    )
