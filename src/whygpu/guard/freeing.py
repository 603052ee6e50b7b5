"""Frees, after an error, the memory that the failed attempt still holds."""

from __future__ import annotations

import gc
import sys
import traceback
from typing import Any


def release(error: BaseException) -> None:
    """Drop what the frames of an error hold, and what the framework keeps for reuse.

    The local variables of the functions that failed are the step's tensors. The error itself, its
    message and its lines, can still be raised afterwards.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        traceback.clear_frames(link.__traceback__)
        link = link.__cause__ or link.__context__
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def add_note(error: BaseException, text: str) -> None:
    """Add a line to an error's message; errors have no place for it before Python 3.11."""
    if hasattr(error, "add_note"):
        error.add_note(f"whygpu: {text}")
