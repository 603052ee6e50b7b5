"""Detects lines that show that the program did some work."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.log import Line

_WORK = re.compile(
    "|".join(
        (
            # counters and measures of training
            r"\b(?:[Ee]poch|EPOCH)[ :=\[(#]{0,3}\d",
            r"\b(?:[Gg]lobal[ _])?(?:[Ss]tep|[Ii]ter(?:ation)?)[ s:=\[(#]{1,3}\d",
            r"\b(?:\w{1,20}_)?(?:[Ll]oss|[Aa]ccuracy|acc|mAP|perplexity|reward)['\"]?[ :=]{1,3}\d",
            r"\d ?(?:it/s|s/it|[mu]?s/(?:step|sample|epoch)|samples/s|im(?:g|ages)/s|tokens/s)",
            r"\d ?(?:FPS|fps)\b|\bFPS for\b|global_step/sec: [1-9]|\[#\d{3,8}\]\[\d{2,6}ms\]",
            # "after loading a saved model" reports no work.
            r"Saving (?:checkpoint|model|summar)|Saved (?:model|checkpoint)"
            r"|^\W{0,4}saved (?:model|checkpoint)|[:,.)\]] saved (?:model|checkpoint)",
            r"Successfully (?:saved|trained)|Test (?:loss|accuracy|score)",
            r"\b(?:[Oo]utputs?|[Rr]esults?|[Pp]redictions?|[Mm]odel) (?:\w{1,12} )?"
            r"(?:saved|written) (?:to|in)\b",
            # progress bars: 120/1000 [01:20<09:40
            r"\b[1-9]\d{0,8}/\d{1,9} \[\d{1,4}:\d\d<",
            # tests that pass
            r"\b\d{1,6} passed\b[^\n]{0,80} in \d|^Ran \d{1,6} tests? in \d|\btest result: ok\b",
            # ends
            r"[Ff]inished training|[Tt]raining (?:finished|complete|done)\b|[Tt]ime taken\b",
            r"\b[Ii]nference time\b|\b(?:[Ee]lapsed time|[Tt]ime elapsed)\b[^\n\d]{0,12}\d",
            # one of so many pieces of work
            r"\b(?:[Cc]hunk|[Bb]atch|[Ff]rame|[Ff]old|[Ss]ample|[Ii]mage) {1,2}\d{1,7} ?"
            r"(?:/|of) ?\d",
            # services
            r"Serving (?:Flask|on)|Running on https?://|Uvicorn running",
            r"Started (?:GRPCInference|HTTP|Metrics)Service at|\d tokens per second"
            r"|Application startup complete|Starting \w{0,20} ?server at http",
            # a GPU that answers
            r"Num GPUs Available: +[1-9]|PhysicalDevice\(name='/physical_device:GPU",
            r"\[(?:Cuda|Gpu)Device\(|is_available\(\)\W{0,8}True|^tf\.Tensor\(",
        )
    )
)
_ROW = re.compile(r"\s{1,12}\d{1,4}/\d{1,4}\s{2,12}[\d.]{1,6}G\s")
"""A row of YOLO's table of epochs: 3/100  4.2G  0.085. It is indented like source code."""
_NOT_A_NUMBER = re.compile(r"\b(?:\w{1,20}_)?[Ll]oss['\"]?[ :=]{1,3}-?(?:nan|inf)\b", re.IGNORECASE)
_OF_A_BUILD = re.compile(r"(?:Step|STEP) \d{1,4}/\d{1,4} ?: {1,2}[A-Z]{2,12}\b")
"""A step with which Docker or Podman builds an image: Step 2/5 : RUN pip install torch"""
_SOURCE = "    "
"""The indentation of source lines in a traceback."""


def shows_work(text: str) -> bool:
    """Whether a line reports steps, results, or a service that has started."""
    if _ROW.match(text):
        return True
    return (
        not text.startswith(_SOURCE)
        and _WORK.search(text) is not None
        and _OF_A_BUILD.match(text) is None
    )


def lost_numbers(lines: Sequence[Line]) -> tuple[int, ...]:
    """Lines where a loss is no longer a number: the program continues, but its work is useless."""
    return tuple(line.number for line in lines if _NOT_A_NUMBER.search(line.text))


def progress(lines: Sequence[Line]) -> tuple[int, ...]:
    """The numbers of the lines that show work."""
    return tuple(sorted({line.number for line in lines if shows_work(line.text)}))
