"""Shared libraries in a log: which were opened, which were not, and the loader's message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.log import LibraryEvent, LibraryOutcome, Line, Raised

_LIBRARY = (
    r"(?P<library>(?:lib)?[A-Za-z_][\w+-]{0,60}(?:\.(?:cpython|pypy|abi)[\w-]{1,40})?"
    r"(?:\.so(?:\.\d{1,4}){0,4}|(?:\.\d{1,4}){0,3}\.dylib|(?:\.\d{1,3})?\.dll))"
)
_PATH = r"(?:[^\s'\"]{0,200}[/\\])?"
_EVENTS: tuple[tuple[re.Pattern[str], LibraryOutcome], ...] = (
    (
        re.compile(
            rf"(?:S|s)uccessfully opened (?:CUDA|dynamic) library '?{_LIBRARY}'?(?: locally)?"
        ),
        "opened",
    ),
    (
        re.compile(rf"undefined symbol: (?P<symbol>\S{{1,300}}) ?, version {_LIBRARY}"),
        "wrong-symbols",
    ),
    (
        re.compile(
            rf"symbol (?P<symbol>\S{{1,300}}),? version \S{{1,80}} not defined in file {_LIBRARY}"
        ),
        "wrong-symbols",
    ),
    (
        re.compile(rf"version [`']{_LIBRARY}' not found \(required by"),
        "wrong-symbols",
    ),
    (
        re.compile(rf"(?<![\w.-]){_LIBRARY} ?: ?undefined symbol: (?P<symbol>\S{{1,300}})"),
        "wrong-symbols",
    ),
    (
        re.compile(
            rf"(?<![\w.-]){_LIBRARY}: (?:file too short|invalid ELF header|wrong ELF class"
            r"|cannot (?:read file data|apply additional memory)|ELF |only ET_DYN)"
        ),
        "broken",
    ),
    (
        # macOS names the file and gives the reason in brackets.
        re.compile(
            rf"(?<![\w.-]){_LIBRARY}'? \((?:slice is not valid mach-o|not a mach-o|file too short"
            r"|truncated mach-o|code signature invalid)"
        ),
        "broken",
    ),
    (
        re.compile(rf"(?<![\w.-]){_LIBRARY}: cannot open shared object file"),
        "not-found",
    ),
    (
        re.compile(
            r"(?:[Cc]ould not load dynamic library|Couldn't open CUDA library|could not dlopen DSO:"
            r"|[Cc]ould not (?:find|locate|load)(?: (?:the )?(?:library|file|module))?"
            r"|[Nn]o library found under:|[Uu]nable to load(?: any of)?"
            r"|[Ff]ailed to load(?: library)?|Error loading|Library not loaded:)"
            rf"[ :]{{1,3}}[\"'{{]?{_PATH}{_LIBRARY}"
        ),
        "not-found",
    ),
    (re.compile(rf"(?<![\w.-]){_LIBRARY}['\"]? (?:=> |was |is )?not found"), "not-found"),
    (
        # Any other sentence that says so, such as those of .NET and Java.
        re.compile(
            r"(?:[Uu]nable to|[Cc]ould ?n(?:o|')t|[Cc]annot|[Ff]ailed to|[Ee]rror while) "
            r"(?:dynamically )?(?:load|open|find|locate|dlopen)[^\n]{0,40}?"
            rf"(?:['\"`(: ]|/){_LIBRARY}"
        ),
        "not-found",
    ),
    (
        re.compile(
            r"(?:load the \"|no jni)(?P<library>cu[a-zA-Z]{2,12}|nvrtc|nccl)"
            r"(?:\" shared library| in java\.library\.path)"
        ),
        "not-found",
    ),
    (re.compile(rf"depends on [\"']{_LIBRARY}[\"'] which is missing"), "not-found"),
)

_RENAMED = re.compile(r"-[0-9a-f]{8}$")
_STOPPING = (
    *("ImportError", "OSError", "NotFoundError", "RuntimeError", "ModuleNotFoundError"),
    *("UnsatisfiedLinkError", "DllNotFoundException"),
)
_ENDS_AT_USE = re.compile(
    # CTranslate2 raises this, and cuDNN's own loader ends the process with the others.
    r"Library \S{1,80} is not found or cannot be loaded|Unable to load any of \{lib"
    r"|[Cc]ould not load library (?:libcudnn|cudnn)\S{1,60}\.? Error\b"
    r"|Could not locate \S{1,60}\.dll\. Please make sure it is in your library path"
)
"""Who writes such a message does not go on without the library."""
_OF_TENSORRT = re.compile(r"load dynamic library '?libnvinfer[\w.]{0,30}'?(?=; dlerror: )")
_FILE_WORDS = (".so", ".dll", ".dylib", "shared library", "java.library.path")


def events(lines: Sequence[Line], raised: Sequence[Raised]) -> tuple[LibraryEvent, ...]:
    """The result for each library, line by line; each once per line."""
    fatal = {
        number
        for exception in raised
        if exception.type in _STOPPING
        for number in range(exception.line, exception.line + exception.message.count("\n") + 1)
    }
    return tuple(event for line in lines for event in _of_line(line, line.number in fatal))


def _of_line(line: Line, stops: bool) -> Iterator[LibraryEvent]:
    if not any(word in line.text for word in _FILE_WORDS):
        return
    stops = stops or line.level == "fatal" or _ENDS_AT_USE.search(line.text) is not None
    optional = _OF_TENSORRT.search(line.text)
    if optional is not None:
        # What TensorRT lacks is of no concern to TensorFlow.
        line = line._replace(text=line.text[: optional.end()])
    seen: set[str] = set()
    for pattern, outcome in _EVENTS:
        for match in pattern.finditer(line.text):
            name = match["library"]
            if name in seen:
                continue
            seen.add(name)
            component, version = identify(name)
            yield LibraryEvent(
                line=line.number,
                library=name,
                component=component,
                version=version,
                outcome=outcome,
                detail=line.text[match.start() : match.start() + 200].strip(),
                stops=stops,
            )


def identify(library: str) -> tuple[str, str]:
    """Which library a file name means, and which version: libcudnn.so.8 and cudnn64_8.dll."""
    base = library
    if base.endswith(".dll"):
        stem, _, rest = base[:-4].partition("64")
        digits = rest.strip("_").partition("_")[0]
        if stem in ("cudart", "nvrtc", "cupti") and len(digits) >= 2 and digits.isdecimal():
            # cudart64_110.dll is 11.0; from CUDA 12 on it is cudart64_12.dll.
            version = f"{digits[:-1]}.{digits[-1]}" if len(digits) > 2 else _old_style(digits)
        elif len(digits) in (2, 3) and digits.isdecimal() and digits[-1] == "0" and digits != "10":
            version = _old_style(digits) if len(digits) == 2 else f"{digits[:-1]}.{digits[-1]}"
        else:
            version = digits
        name = stem or base[:-4]
        return ("cuda" if name == "nvcuda" else name), version
    stem, _, version = base.partition(".so")
    if not _ and base.endswith(".dylib"):
        stem, _, version = base[: -len(".dylib")].partition(".")
    # Wheels rename the libraries that they include: libcudnn-a2b758a6.so.7.0.3.
    name = _RENAMED.sub("", stem.removeprefix("lib"))
    return name, version.strip(".")


def _old_style(digits: str) -> str:
    """cublas64_90.dll is CUDA 9.0, cudart64_12.dll is CUDA 12."""
    return digits if digits[0] in "123" else f"{digits[0]}.{digits[1]}"
