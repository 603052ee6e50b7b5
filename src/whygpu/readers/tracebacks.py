"""Python's exceptions: tracebacks, chained causes, groups, IPython's format, single last lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.log import Line, Raised
from whygpu.readers.markdown import FENCE
from whygpu.readers.work_progress import shows_work

_NAME = (
    r"(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}?(?:Error|Exception)"
    r"|(?:Base)?ExceptionGroup|SystemExit"
    # Without "Error" in it, a name counts only together with its module.
    r"|(?:[A-Za-z_]\w{0,60}\.){1,8}[A-Z]\w{0,60}?"
    r"(?:NotFound|Missing|Conflict|Expired|Timeout|NotMet|OfResources)"
    # Modules that contain nothing but exceptions
    r"|(?:[A-Za-z_]\w{0,60}\.){1,8}(?:exc|exceptions?|errors?)\.[A-Z]\w{0,60}"
    # Exceptions of extension modules have special names.
    r"|(?:pyarrow\.)?(?:lib\.)?Arrow(?:Invalid|NotImplementedError|TypeError|KeyError|CapacityError)"
    r"|(?:[A-Za-z_]\w{0,60}\.){0,4}onnxruntime_pybind11_state\.[A-Z]\w{2,30}"
    r"|(?:cv2|struct|zlib|socket|shutil|sqlite3)\.(?:[Ee]rror|timeout))"
)
_LAST = re.compile(
    # Those who write in Markdown emphasise the exception.
    r"^(?:[\s|+*_`]{0,12}"
    r"|[^\n]{0,60}?\b(?:[Rr]aised|[Ee]xception|E(?:rror|RROR)|error|Caused by):? "
    # In a sentence: I get this error at line 65 of train.py: ValueError: ...
    r"|[^\n:]{0,40}\b(?:[Gg]et|[Gg]etting|[Gg]ot|[Gg]ives?|this|that|following) (?:an? "
    r"|the )?error\b"
    r"[^\n:]{0,50}: )"
    rf"{_NAME}(?:\(\w{{1,60}}\))?(?: \(see above for traceback\))?(?::(?!:)\s?(?P<message>.*)|$)"
)
_LAST_OF_TRACEBACK = re.compile(
    # Below frames, any text without indentation is the exception: cv2.error: , queue.Empty
    r"^(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60})(?::\s(?P<message>.*)|:?$)"
)
_HEADER = re.compile(
    r"^[\s|]{0,12}(?:\+ )?(?:Original |Exception Group )?Traceback \(most recent call last\)"
)
_IPYTHON_HEADER = re.compile(r"^(?P<type>[\w.]{3,80})\s{1,80}Traceback \(most recent call last\)")
_FRAME = re.compile(
    r"^(?:[\s|]{0,16}File \"(?P<file>[^\"\n]{1,400})\", line \d+"
    r"|(?P<ipython>[~/\w<][^\s]{0,300}?(?:\.pyc?|>)) in \S"
    r"|(?:File|Cell|Input) (?P<new>(?:In ?)?[^\s:,]{1,300})(?::\d+|, line \d+))"
)
_IPYTHON_SOURCE = re.compile(r"^\s{0,12}(?:-{1,6}> ?)?\d{1,6}\s")
_CHAINED = re.compile(
    r"^[\s|]{0,12}(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception)"
)
_OTHER_END = re.compile(r"^(?:terminate called |ERROR: failed to solve: |The command '/bin/sh -c )")
_NCCL_RECORD = re.compile(r"^\S{1,80}:\d{1,8}:\d{1,8} \[\d{1,3}\] NCCL ")
_PROMPT = re.compile(
    r"^(?:\([\w.-]{1,40}\) ?)?(?:[\w.-]{1,60}@[\w.-]{1,60}:[^\n$#]{0,80}[$#]|\$|>>>"
    r"|(?:PS )?[A-Z]:\\[^\n>]{0,120}>) ?\w"
)
"""The next command of a session."""
_IGNORED = re.compile(r"^(?:Exception ignored (?:in|on)\b|--- Logging error ---)")
_GOES_ON = re.compile(
    # Text after an empty line that still belongs to the message above it.
    r"^\s{0,12}(?:Detected at node|Node:|\(\d\) |\[\[|Original |OOM when|Hint:|Use `|-- Process"
    r"|CUDA kernel|Errors may have|Arguments received by)"
)
_ORIGINAL = re.compile(r"^\s{0,8}[Oo]riginal error(?: was)?:")
_OF_KERAS = re.compile(r"\bException encountered when calling \S")
"""The first line of an exception that Keras re-raises; the message follows after an empty line."""
_STACK_OF_NODE = re.compile(r"\bdefined at \(most recent call last\)|^Original stack trace for")
_WRAPPERS = ("ChildFailedError", "CalledProcessError", "ProcessExitedException")
"""A launcher raises these because a program that it launched has failed."""
_BY_THE_USER = ("KeyboardInterrupt",)
_WIDEST_GAP = 8
"""The largest gap between the numbers of lines that belong together. A larger gap means that
ordinary lines were left out."""
_MOST_MESSAGE_LINES = 30
_MOST_STACK_LINES = 120


def raised(lines: Sequence[Line]) -> tuple[Raised, ...]:
    """Every exception, in the order of the log.

    An exception is marked as handled if it led to another, if Python ignored it, or if a logger
    only warned about it.
    """
    reader = _Reader(lines)
    index = 0
    while index < len(lines):
        index += reader.take(index)
    reader.end_traceback()
    reader.end_chain()
    return tuple(reader.found)


class _Reader:
    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self.found: list[Raised] = []
        self._frames: list[str] = []
        self._header: Line | None = None
        """The header of an unfinished IPython traceback; it names the exception."""
        self._ignored = False
        self._after_frame = False
        self._led_to_another = False
        """Whether another exception is announced that is not read yet."""

    def take(self, index: int) -> int:
        """Read one line; returns how many lines were used."""
        line = self._lines[index]
        text = line.text
        if _HEADER.match(text):
            self.end_traceback()
            self._ignored = self._is_ignored(index)
            if self.found and _wraps(self.found[-1]):
                self._mark_handled()
            return 1
        named = _IPYTHON_HEADER.match(text)
        if named:
            self.end_traceback()
            self._header = line
            return 1
        frame = _FRAME.match(text)
        if frame:
            self._frames.append(frame["file"] or frame["ipython"] or frame["new"])
            self._after_frame = True
            return 1
        if _CHAINED.match(text):
            self._led_to_another = bool(self.found) and not self.found[-1].handled
            self._mark_handled()
            self._frames = []
            return 1
        source, self._after_frame = self._after_frame, False
        if self._header is not None and _IPYTHON_SOURCE.match(text):
            return 1
        if _IGNORED.match(text):
            self._ignored = True
            return 1
        match = _LAST.match(text)
        if match is None and ((self._frames and not source) or self._is_announced(text)):
            match = _LAST_OF_TRACEBACK.fullmatch(text)
        return 1 if match is None else self._take_exception(index, match)

    def _is_announced(self, text: str) -> bool:
        """Whether the header of IPython's traceback names the exception of this line."""
        named = _IPYTHON_HEADER.match(self._header.text) if self._header is not None else None
        return named is not None and text.startswith(f"{named['type']}: ")

    def _take_exception(self, index: int, match: re.Match[str]) -> int:
        line = self._lines[index]
        kind = match["type"].rpartition(".")[2]
        more = continuation(self._lines, index + 1, like=line)
        message = "\n".join([match["message"] or "", *(each.text.strip() for each in more)]).strip()
        if line.text.lstrip().startswith("Caused by:"):
            self._mark_handled()
        if kind not in _BY_THE_USER and not (kind == "SystemExit" and message in ("", "0")):
            earlier = any(not each.handled for each in self.found)
            handled = (
                self._ignored
                or line.level in ("warning", "info")
                or (kind in _WRAPPERS and earlier)
                or kind.endswith("ExceptionGroup")
            )
            frames = tuple(self._frames)
            self.found.append(Raised(line.number, kind, message, frames, handled))
            self._led_to_another = False
        self._frames = []
        self._header = None
        self._ignored = False
        return 1 + len(more)

    def end_traceback(self) -> None:
        """A traceback has ended without its last line: the log was cut."""
        if self._header is not None:
            named = _IPYTHON_HEADER.match(self._header.text)
            if named is not None and named["type"] not in _BY_THE_USER:
                kind = named["type"].rpartition(".")[2]
                self.found.append(Raised(self._header.number, kind, "", tuple(self._frames)))
        self._header = None
        self._frames = []
        self._ignored = False

    def end_chain(self) -> None:
        """The log was cut before the exception that the last one led to: the last one counts."""
        if self._led_to_another:
            self.found[-1] = self.found[-1]._replace(handled=False)

    def _is_ignored(self, index: int) -> bool:
        return any(_IGNORED.match(line.text) for line in self._lines[max(0, index - 2) : index])

    def _mark_handled(self) -> None:
        if self.found:
            self.found[-1] = self.found[-1]._replace(handled=True)


def _wraps(exception: Raised) -> bool:
    """Whether the message of this exception is itself a traceback, of a worker or replica."""
    return (
        exception.message.startswith("Caught ")
        or "terminated with the following error" in exception.message
    )


def continuation(lines: Sequence[Line], start: int, *, like: Line) -> list[Line]:
    """The further lines of a message: up to a record, a frame, another exception, or a gap."""
    taken: list[Line] = []
    in_stack = False
    for place in range(start, min(start + _MOST_STACK_LINES, len(lines))):
        line = lines[place]
        if (line.level, line.source) != (like.level, like.source):
            break
        if line.number - lines[place - 1].number > _WIDEST_GAP:
            break
        if not line.text.strip():
            following = lines[place + 1].text if place + 1 < len(lines) else ""
            of_keras = not taken and _OF_KERAS.search(like.text)
            goes_on = in_stack or of_keras or _GOES_ON.match(following)
            if not goes_on and not _quotes_another(lines, place):
                break
        elif in_stack and (_FRAME.match(line.text) or line.text.startswith("  ")):
            pass
        elif _ends_message(line.text) or (not in_stack and len(taken) >= _MOST_MESSAGE_LINES):
            break
        in_stack = in_stack or _STACK_OF_NODE.search(line.text) is not None
        taken.append(line)
    while taken and not taken[-1].text.strip():
        taken.pop()
    return taken


def _quotes_another(lines: Sequence[Line], start: int) -> bool:
    """Whether the message, after advice in several paragraphs, ends with the error behind it."""
    for line in lines[start : start + _MOST_MESSAGE_LINES]:
        if _ORIGINAL.match(line.text):
            return True
        if _ends_message(line.text):
            return False
    return False


def _ends_message(text: str) -> bool:
    if FENCE.match(text):
        return True
    others = (_OTHER_END, _NCCL_RECORD, _FRAME, _HEADER, _IPYTHON_HEADER, _CHAINED, _LAST, _IGNORED)
    return shows_work(text) or any(pattern.match(text) for pattern in (*others, _PROMPT))
