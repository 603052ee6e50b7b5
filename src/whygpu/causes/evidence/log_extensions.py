"""A compiled extension of PyTorch that does not fit the installed PyTorch, as a log shows it.

The messages come from different programs: the loader (a symbol is missing), Python (a compiled
module is missing), PyTorch (an operator is missing, or has no code for CUDA) and the extension
itself. Each function here reads one kind of message. None of them knows an extension by its
wording: the name comes from the file, the module or the operator that the message names, or from
the traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from whygpu.causes.evidence.log_cpu_builds import CPU_VERSION
from whygpu.causes.evidence.log_torch_builds import cuda_of_torch, release_of_label
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match, Raised
from whygpu.tables.cuda_libraries import release_with
from whygpu.tables.torch_extensions import (
    TorchExtension,
    extension_named,
    extension_that_registers,
    extension_with,
    is_only_native,
)

Fault = Literal["other-build", "not-loaded", "other-cuda", "without-cuda", "not-built"]
"""- other-build: compiled for another PyTorch
- not-loaded: its native code cannot be loaded, most often because of another PyTorch
- other-cuda: compiled for another CUDA than PyTorch, as the log says
- without-cuda: compiled, but without code for the GPU
- not-built: its native code is missing
"""


class BrokenExtension(NamedTuple):
    line: int
    fault: Fault
    name: str
    """The module or package as the log names it; empty if it does not."""
    row: TorchExtension | None = None
    built_for: str = ""
    """As text: "PyTorch 2.1.0+cu121 and CUDA 12.1"; empty if the log does not say."""
    installed: str = ""
    """The PyTorch that is installed; empty if the log does not say."""
    detail: str = ""
    """What is missing: a symbol, a module, an operator."""
    cache: str = ""
    """The folder in which PyTorch compiled it at an earlier run."""
    library: str = ""
    """The CUDA library that its native code needs and that the loader did not find."""
    library_line: int = 0


def broken_extensions(log: Log) -> list[BrokenExtension]:
    """Every message about a broken extension; those that ended the program come first."""
    if not log.says(_HINTS):
        return []
    found = [_with_library(log, fault) for read in _READERS for fault in read(log)]
    return sorted(found, key=lambda fault: (not ends_with(log, fault), fault.line))


def lines_about_extensions(log: Log) -> frozenset[int]:
    """Their lines: similar messages there are not about the framework."""
    return frozenset(
        line for fault in broken_extensions(log) for line in (fault.line, fault.library_line)
    )


_HINTS = late(
    r"undefined symbol|DLL load failed|WinError 1\d\d|No module named|cannot import name"
    r"|is not defined|does not exist|No such operator|_OpNamespace|custom C\+\+ ops"
    r"|from the 'CUDA' backend|for device cuda|ompiled with|wasn't build with"
    r"|libtorch_cuda_c|bitsandbytes|xFormers|requires cuda extensions|without --cuda_ext"
    r"|has no attribute 'extension'|compiled without GPU support|CUDA Setup failed"
    r"|cannot open shared object file|object has no attribute 'c"
)


_ENOUGH = 60
"""How much of a line identifies it in the text of a failure, which may be shortened."""


def ends_with(log: Log, fault: BrokenExtension) -> tuple[int, ...]:
    """The failures that this fault caused: they contain its line, follow from it, or name it."""
    words = tuple(
        word.lower()
        for word in (
            *(fault.name, fault.detail),
            *((fault.row.distribution, *fault.row.functions) if fault.row else ()),
        )
        if len(word) > 3
    )
    handled = any(exception.handled and _covers(exception, fault.line) for exception in log.raised)
    text = log.line(fault.line).text.strip()[:_ENOUGH]
    # A message may begin on the line after the name of its exception.
    later = [each for each in log.failures if each.last >= fault.line or text in each.text]
    return tuple(
        failure.line
        for failure in later
        if failure.line <= fault.line
        or (handled and failure is later[0])
        or any(word in failure.text.lower() for word in words)
    )


def _covers(exception: Raised, line: int) -> bool:
    return exception.line <= line <= exception.line + exception.message.count("\n")


# The loader: a symbol or a library is missing.

_SYMBOL = late(
    r"undefined symbol:? [`'\"]?(?P<symbol>_Z(?:T[ISV]|GV)?N?[KRO]{0,2}(?:2at|3c10|5torch|6caffe2)\d?\w{0,300}"
    r"|_Z\d{1,3}THP\w{1,300}|THP[A-Z]\w{1,60}|THC\w{1,60}|aoti_torch_\w{1,80})"
    # A person may name the file after the symbol.
    r"[`'\"]?(?: in (?:the )?(?:file )?[`'\"]?(?P<file>[^\s'\"`]{1,300}\.so)\b)?"
)
"""A symbol of PyTorch's own libraries."""
_OF_TORCH = late(
    r"(?:^|[/\\])torch[/\\](?:lib|_C|bin)\b"
    r"|(?:^|[/\\])lib(?:torch|torch_(?:cpu|cuda\w*|hip|python|global_deps)|c10\w*|caffe2\w*|shm)\.so"
)
_PACKAGES = late(r"[/\\](?:site|dist)-packages[/\\](?:[^/\\]{1,120}\.egg[/\\])?(?P<name>\w{1,80})")
_CACHE = late(
    r"^(?P<folder>\S{1,300}?/torch_extensions(?:/py\d{1,4}_(?:cu(?P<cuda>\d{2,4})|cpu))?"
    r"/(?P<name>\w{1,80}))/"
)
_NATIVE_NAMES = ("_C", "_ext", "_cuda", "ext", "C")
"""Names of compiled modules that say nothing about their package."""


def _missing_symbols(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_SYMBOL):
        before = match.text.partition(": undefined symbol")[0].split()[-1:]
        path = match.groups["file"] or "".join(before).strip("'\"(")
        symbol = match.groups["symbol"] or ""
        name = _name_of_file(path)
        if _OF_TORCH.search(path):
            continue
        cached = _CACHE.match(path)
        digits = cached["cuda"] if cached else None
        yield BrokenExtension(
            match.line,
            "other-build",
            name,
            extension_with(name),
            built_for=f"CUDA {release_of_label(digits)}" if digits else "",
            detail=symbol,
            cache=cached["folder"] if cached else "",
        )


_NO_NAME = late(r"(?P<file>[\w./-]{1,300}\.so)[`'\"]?: undefined symbol(?!:? ?[`'\"]?\w)")
"""A person may leave out the symbol. The file alone says enough if only an extension has it."""


def _nameless_symbols(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_NO_NAME):
        name = _name_of_file(match.groups["file"] or "")
        row = extension_with(name)
        if row is not None:
            yield BrokenExtension(match.line, "other-build", name, row)


def _name_of_file(path: str) -> str:
    """The package that a compiled file belongs to: flash_attn_2_cuda, torchvision, my_ops."""
    installed = _PACKAGES.search(path)
    if installed:
        return installed["name"]
    *folders, file = re.split(r"[/\\]", path)
    stem = file.partition(".")[0]
    if stem in _NATIVE_NAMES and folders:
        return folders[-1]
    return stem


_SPLIT_LIBRARIES = late(r"libtorch_cuda_(?:cu|cpp)\.so: cannot open shared object file")
"""Only some releases of PyTorch 1 had these two files."""


def _libraries_of_old_torch(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_SPLIT_LIBRARIES):
        name = _importing_package(_raised_at(log, match.line))
        yield BrokenExtension(
            match.line, "other-build", name, extension_with(name), built_for="PyTorch 1"
        )


_CUDA_LIBRARIES = (
    "cudart",
    "cublas",
    "cublasLt",
    "cusparse",
    "cusolver",
    "cufft",
    "curand",
    "nvrtc",
)
_IMPORTED = late(r"^\s{0,8}(?:>>> )?(?:import|from) (?P<name>\w{2,60})\b")
_MINORS_FIT = 11
"""From this release on, a library has one name in all releases of a major number."""


def _libraries_of_other_cuda(log: Log) -> Iterator[BrokenExtension]:
    """The extension needs libraries of another CUDA than the one PyTorch was built for.

    Importing PyTorch loads the libraries of its own CUDA. So if PyTorch is loaded and a library is
    still missing, the extension was built for another CUDA, even if the log does not name both.
    """
    there = cuda_of_torch(log)
    for event in log.library_events("not-found", _CUDA_LIBRARIES):
        name = importing_package(log, event.line)
        row = extension_with(name)
        release = release_with(event.component, event.version) if event.stops else ""
        if row is None or row.fitting == "by-cuda" or not release:
            continue
        if there and _same_cuda(release, there):
            continue
        yield BrokenExtension(
            event.line,
            "other-cuda",
            name,
            row,
            built_for=f"CUDA {release}",
            installed=f"PyTorch for CUDA {there}" if there else "",
            library=event.library,
            library_line=event.line,
        )


def _same_cuda(needed: str, there: str) -> bool:
    one, other = needed.split("."), there.split(".")
    return one[0] == other[0] and (int(one[0]) >= _MINORS_FIT or one == other)


def importing_package(log: Log, line: int) -> str:
    """The package whose import failed at this line; "" if the log does not show it."""
    return _importing_package(_raised_at(log, line)) or _imported_before(log, line)


def _imported_before(log: Log, line: int) -> str:
    """The package in an import statement directly above a line, as in a session of Python."""
    above = next((each.text for each in reversed(log.lines) if each.number < line), "")
    statement = _IMPORTED.match(above)
    return statement["name"] if statement else ""


def _with_library(log: Log, fault: BrokenExtension) -> BrokenExtension:
    """PyTorch reports missing operators after an import failed; an earlier line may say why."""
    if fault.fault != "not-loaded" or fault.row is None:
        return fault
    for event in log.library_events("not-found", _CUDA_LIBRARIES):
        text = log.line(event.line).text
        if event.line < fault.line and any(module in text for module in fault.row.modules):
            return fault._replace(library=event.library, library_line=event.line)
    return fault


# Windows: a DLL cannot be loaded, and the message does not say why.

_DLL = late(
    r"DLL load failed while importing (?P<module>[\w.]{1,80})"
    r"|\[WinError 12[67]\][^\n]{0,300}|Could not find module '[^'\n]{1,300}' \(or one of its dep"
)


def _unloadable_dlls(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_DLL):
        module = match.groups["module"] or ""
        in_path = _PACKAGES.search(match.text)
        if in_path is not None:
            name = in_path["name"]
        elif module and module not in _NATIVE_NAMES:
            name = module
        else:
            name = _importing_package(_raised_at(log, match.line))
        row = extension_with(name)
        if row is not None:
            yield BrokenExtension(match.line, "not-loaded", name, row)


# Python: a compiled module is missing.

_MODULE = late(
    r"No module named ['\"]?(?P<module>[\w.]{1,120})"
    r"|cannot import name '(?P<part>_C|_ext)' from (?:partially initialized module )?"
    r"'(?P<package>[\w.]{1,120})'"
    r"|name '(?P<native>_C|_ext)' is not defined"
)
_NAMED_AFTER_CUDA = late(r"\w{1,60}_cuda")
_WITHOUT_EXTENSIONS = ("torch", "numpy", "tensorflow", "jax", "jaxlib")
"""If compiled files of these are missing, something else is wrong: a copy of the source."""


def _missing_modules(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_MODULE):
        part = match.groups["part"] or match.groups["native"]
        if match.groups["native"]:
            package = _importing_package(_raised_at(log, match.line), anywhere=True)
        elif part:
            package = match.groups["package"] or ""
        else:
            package, _, part = (match.groups["module"] or "").rstrip(".").rpartition(".")
        if package.partition(".")[0] in _WITHOUT_EXTENSIONS:
            continue
        if part in ("_C", "_ext") and package:
            yield BrokenExtension(
                match.line,
                "not-built",
                package.partition(".")[0],
                extension_with(package),
                detail=f"{package}.{part}",
            )
        elif part and not package and (is_only_native(part) or _NAMED_AFTER_CUDA.fullmatch(part)):
            yield BrokenExtension(match.line, "not-built", part, extension_with(part), detail=part)


# PyTorch: an operator is missing, or has no code for CUDA.

_OPERATOR = late(
    r"operator (?P<missing>\w{2,40})::(?P<name1>\w{1,60}) does not exist"
    r"|No such operator (?P<none>\w{2,40})::(?P<name2>\w{1,60})"
    r"|'_OpNamespace' '(?P<empty>\w{2,40})' object has no attribute '(?P<name3>\w{1,60})'"
    r"|Could not run '(?P<unrun>\w{2,40})::(?P<name4>\w{1,60})' with arguments from the 'CUDA' "
)


def _missing_operators(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_OPERATOR):
        without_cuda = match.groups["unrun"] is not None
        namespace = next(
            (
                value
                for key in ("missing", "none", "empty", "unrun")
                if (value := match.groups[key])
            ),
            "",
        )
        operator = next((value for i in "1234" if (value := match.groups[f"name{i}"])), "")
        row = extension_that_registers(namespace)
        if row is not None:
            yield BrokenExtension(
                match.line,
                "without-cuda" if without_cuda else "not-loaded",
                row.modules[0],
                row,
                detail=f"{namespace}::{operator}",
            )


# The extension itself says what is wrong.

_DIFFERENT_CUDA = late(
    r"PyTorch and (?P<name>\w{2,40}) were compiled with\s{1,8}different\s{1,8}CUDA[^.\n]{0,40}\."
    r"(?:\s{1,8}PyTorch has CUDA [Vv]ersion[ =](?P<there>[\d.]{1,8}\d) (?:and|whereas) \w{2,40} has "
    r"CUDA [Vv]ersion[ =](?P<built>[\d.]{0,8}\d))?"
)
_BUILT_FOR = late(
    r"xFormers was built for:\s{1,12}PyTorch (?P<built>\S{3,30}) with CUDA (?P<cuda>\d{3,4}|None) "
    r"\(you have (?P<there>[^\s)]{3,30})\)"
)
_TORCH_WITHOUT_CUDA = late(r"\(you have [\d.]{3,12}\+cpu\)")
_OWN_PHRASES = late(
    r"Couldn't load custom C\+\+ ops\. This can happen if your PyTorch and (?P<ops>\w{2,40}) versions"
    r"|module '(?P<circular>\w{2,40})' has no attribute 'extension'"
)
_NO_GPU_CODE = late(
    r"(?P<xformers>xFormers) wasn't build with CUDA support"
    r"|\w{2,60}: implementation for device cuda(?::\d{1,2})? not found"
    r"|RuntimeError: Not compiled with (?:GPU|CUDA|cuda) support"
    r"|(?P<bitsandbytes>bitsandbytes) was compiled without GPU support"
    r"|libbitsandbytes_cpu\.so: undefined symbol: c\w{3,60}"
)
_OF_ITS_LIBRARY = late(
    r"'NoneType' object has no attribute 'c(?:get|set|fill|gemm|igemm|quantize|dequantize|adam|lion)"
    r"\w{0,40}'"
)
"""Functions of the library of bitsandbytes, which was not loaded."""
_OPTIONS_LEFT_OUT = late(r"\bapex[\w.]{0,60} requires cuda extensions|without --cuda_ext")
_NO_BINARY = late(
    r"Could not find the bitsandbytes CUDA binary at [^\n]{0,300}?libbitsandbytes_cuda(?P<asked>\d{3})"
    r"|Could not find the bitsandbytes CUDA binary at"
    r"|Required library version not found: libbitsandbytes_cuda(?P<required>\d{3})"
    r"|libbitsandbytes_cuda(?P<unopened>\d{3})\w{0,20}\.so: cannot open shared object file"
)
_SETUP_FAILED = late(r"CUDA Setup failed despite (?:GPU|CUDA) being available")


def _different_cuda(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_DIFFERENT_CUDA):
        name = (match.groups["name"] or "").lower()
        there, built = match.groups["there"], match.groups["built"]
        yield BrokenExtension(
            match.line,
            "other-cuda",
            name,
            extension_with(name),
            built_for=f"CUDA {built}" if built else "",
            installed=f"PyTorch for CUDA {there}" if there else "",
        )


def _states_its_build(log: Log) -> Iterator[BrokenExtension]:
    row = extension_named("xformers")
    for match in log.find(_BUILT_FOR):
        built, there = match.groups["built"] or "", match.groups["there"] or ""
        if there.endswith("+cpu"):
            # The installed PyTorch cannot use a GPU, whichever xFormers is installed.
            continue
        cuda = match.groups["cuda"] or ""
        labels = (built.partition("+")[2], there.partition("+")[2])
        differ = all(label.startswith("cu") for label in labels) and labels[0] != labels[1]
        yield BrokenExtension(
            match.line,
            "other-cuda" if differ else "other-build",
            "xformers",
            row,
            built_for=f"PyTorch {built}"
            + (f" and CUDA {release_of_label(cuda)}" if cuda.isdecimal() else ""),
            installed=f"PyTorch {there}",
        )


def _in_its_own_words(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_OWN_PHRASES):
        name = match.groups["ops"] or match.groups["circular"] or ""
        row = extension_with(name)
        if row is not None:
            yield BrokenExtension(match.line, "not-loaded", name, row)
    for match in log.find(_OPTIONS_LEFT_OUT):
        yield BrokenExtension(match.line, "not-built", "apex", extension_named("apex"))
    if not log.says(_TORCH_WITHOUT_CUDA):
        yield from _without_gpu_code(log)


def _without_gpu_code(log: Log) -> Iterator[BrokenExtension]:
    for match in log.find(_OF_ITS_LIBRARY):
        if not _missing_cuda(log) and log.says(_BITSANDBYTES):
            yield BrokenExtension(
                match.line, "without-cuda", "bitsandbytes", extension_named("bitsandbytes")
            )
    for match in log.find(_NO_GPU_CODE):
        if "bitsandbytes" in match.text:
            if _missing_cuda(log):
                continue
            name = "bitsandbytes"
        elif match.groups["xformers"]:
            name = "xformers"
        else:
            name = _importing_package(_raised_at(log, match.line), anywhere=True)
            if not name and "implementation for device" in match.text:
                name = "mmcv"
            name = name or _named_below(log, match.line)
        if name:
            yield BrokenExtension(match.line, "without-cuda", name, extension_with(name))


_IN_ITS_SOURCE = late(r"[/\\](?P<name>detectron2|mmcv|torch_scatter|torch_sparse|pytorch3d)[/\\]")


def _named_below(log: Log, line: int) -> str:
    """A report may quote the exception first and the frame below it."""
    near = (at for at in log.lines if 0 <= at.number - line <= 2)
    found = (_IN_ITS_SOURCE.search(at.text) for at in near)
    return next((match["name"] for match in found if match is not None), "")


def _missing_cuda(log: Log) -> bool:
    """bitsandbytes found no CUDA, or PyTorch has none: then that is the cause."""
    return (
        log.says(_SEARCHED)
        or log.says(CPU_VERSION)
        or bool(log.library_events("not-found", ("cudart", "cuda")))
    )


_SEARCHED = late(r"(?:libcudart|libcuda)\.so(?:\.\d{1,3})? not found|No libcudart\.so found")
_BITSANDBYTES = late(r"bitsandbytes")


BEFORE_WINDOWS = "releases before 0.43 have none for Windows"
_LIBRARY_OF_LINUX = late(r"[/\\]libbitsandbytes_cpu\.so\b")
_LOOKED_FOR = late(r"CUDA[_ ]SETUP: WARNING! libcudart\.so not found")
SELECTS_LIBRARY = "BNB_CUDA_VERSION"
_SELECTED = late(r"\bBNB_CUDA_VERSION=\d{2,3} environment variable detected")
_SOURCE_FOLDER = late(
    r"Could not find the bitsandbytes CUDA binary at [^\n]{0,20}?"
    r"(?P<folder>/(?:(?!site-packages|dist-packages)[^\n'\"]){1,200})/bitsandbytes/libbitsandbytes_cuda"
)
_NO_LIBRARY_AT_ALL = late(r"libbitsandbytes_cpu\.so: cannot open shared object file")


def _none_for_windows(log: Log) -> Iterator[BrokenExtension]:
    """Old releases of bitsandbytes took a library of Linux on Windows, and looked for CUDA there."""
    if log.platform != "windows" or not log.says(_LIBRARY_OF_LINUX):
        return
    row = extension_named("bitsandbytes")
    for pattern in (_LIBRARY_OF_LINUX, _LOOKED_FOR, _SETUP_FAILED):
        for match in log.find(pattern):
            yield BrokenExtension(
                match.line, "without-cuda", "bitsandbytes", row, detail=BEFORE_WINDOWS
            )


def _binary_missing(log: Log) -> Iterator[BrokenExtension]:
    row = extension_named("bitsandbytes")
    matches = list(log.find(_NO_BINARY))
    if not matches:
        return
    asked = next((value for match in matches if (value := _asked(match))), "")
    selected = log.first(_SELECTED)
    lines = [match.line for match in (selected, *matches, *log.find(_SETUP_FAILED)) if match]
    is_source = log.says(_SOURCE_FOLDER) and log.says(_NO_LIBRARY_AT_ALL)
    for line in lines:
        if is_source:
            # Its source, imported from the folder of the program: there is no library at all.
            yield BrokenExtension(line, "not-built", "bitsandbytes", row)
            continue
        yield BrokenExtension(
            line,
            "other-cuda" if asked else "not-loaded",
            "bitsandbytes",
            row,
            installed=f"CUDA {release_of_label(asked)}" if asked else "",
            detail=SELECTS_LIBRARY if selected else "",
        )


def _asked(match: Match) -> str:
    return next(
        (value for key in ("asked", "required", "unopened") if (value := match.groups[key])), ""
    )


# Tracebacks: which package was at work.

_LOADS_FOR_OTHERS = late(
    r"<frozen|[/\\]importlib[/\\]|[/\\]ctypes[/\\]|[/\\]torch[/\\](?:_ops|_classes|_library|utils)\b"
)
"""Code that loads a library for another package."""
_OF_TORCH_FRAME = late(r"[/\\]torch[/\\]")


def _raised_at(log: Log, line: int) -> Raised | None:
    return next((exception for exception in log.raised if _covers(exception, line)), None)


def _importing_package(exception: Raised | None, *, anywhere: bool = False) -> str:
    """The package whose code was running; "" if a traceback does not show it.

    `anywhere` also skips frames of PyTorch, which calls functions of extensions, and takes a
    package from a folder of source if it is on record.
    """
    for frame in reversed(exception.frames if exception else ()):
        if _LOADS_FOR_OTHERS.search(frame) or (anywhere and _OF_TORCH_FRAME.search(frame)):
            continue
        installed = _PACKAGES.search(frame)
        if installed:
            return installed["name"]
        folders = re.split(r"[/\\]", frame)[:-1]
        return next((name for name in reversed(folders) if extension_with(name)), "")
    return ""


_READERS = (
    _missing_symbols,
    _nameless_symbols,
    _libraries_of_old_torch,
    _libraries_of_other_cuda,
    _unloadable_dlls,
    _missing_modules,
    _missing_operators,
    _different_cuda,
    _states_its_build,
    _in_its_own_words,
    _none_for_windows,
    _binary_missing,
)
