"""CUDA libraries that did not load according to a log: which cause this supports, how strongly.

A library that is not found means one of three things: no CUDA at all, another CUDA release, or a
folder that the loader does not search. The other libraries that opened, the folders in the log and
the release of the name decide between them. If nothing decides, the finding says so and asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from whygpu.causes.evidence.framework_installs import gpu_build_in_log
from whygpu.causes.evidence.log_extensions import importing_package, lines_about_extensions
from whygpu.causes.evidence.log_subjects import failed_elsewhere, framework_title, is_tensorflow
from whygpu.causes.evidence.missing_gpu_statements import lines_lacking_a_gpu
from whygpu.model.commands import shell_text
from whygpu.model.derived import DISPLAY_NAMES, and_list, display_name
from whygpu.model.finding import Confidence, Effect, Remedy, Severity
from whygpu.model.lazy_regex import late
from whygpu.model.log import LibraryEvent, Log, Match
from whygpu.model.remedy import Install, a_name, a_number, command_line, shell_script
from whygpu.tables.cuda_libraries import RELEASES, CudaRelease, soname
from whygpu.tables.release_defects import SearchListDefect, search_list_defect
from whygpu.tables.tensorflow_builds import build_of
from whygpu.tables.torch_extensions import extension_with
from whygpu.tables.versions import release_numbers

TOOLKIT = frozenset(
    {
        *("cudart", "cublas", "cublasLt", "cufft", "cufftw", "curand", "cusolver", "cusolverMg"),
        *("cusparse", "cusparseLt", "cupti", "nppc", "nvJitLink", "nvToolsExt", "nvjpeg"),
        *("nvrtc", "nvrtc-builtins", "nvvm"),
    }
)
"""Libraries of the CUDA toolkit, by the name between lib and .so."""

PACKAGES = {
    "nvinfer": "tensorrt",
    "nvinfer_plugin": "tensorrt",
    "nvonnxparser": "tensorrt",
    "nccl": "nvidia-nccl-cu12",
    "custatevec": "cuquantum-python",
    "cutensornet": "cuquantum-python",
    "cudensitymat": "cuquantum-python",
}
"""NVIDIA's libraries that are no part of the toolkit, by the package that installs them. They
matter only to a program that fails without them."""

_PROFILER_ONLY = ("cupti", "nvToolsExt")
NO_DLOPEN = late(r"Cannot dlopen some GPU libraries|Error loading CUDA libraries")
"""TensorFlow prints the first only after it has found a GPU."""
CUDNN_UNUSABLE = late(r"Failed to determine cuDNN version[^\n]{0,160}CUDNN_STATUS_\w{4,60}")
"""TensorFlow's stub for cuDNN answers, because the library itself could not be loaded."""
_NO_RUNTIME = late(r"Error loading CUDA libraries|cudart_stub\.cc")
NO_CUDART = late(
    r"Could not find cuda drivers on your machine, GPU will not be used"
    r"|Ignore above cudart dlerror if you do not have a GPU set up"
)
WITHOUT_GPU = late(
    r"available devices are \[ ?/job:localhost/replica:0/task:0/(?:device:)?(?i:cpu):0 ?\]"
    r"|Registered devices: \[CPU(?:, XLA_CPU)?\]|Physical (?:GPU|devices?) \S{0,40} does not exist"
    r"|Num GPUs Available: +0|enable_soft_placement=0\. Supported device types \[CPU\]"
)
"""Messages of a program whose GPU was not registered."""
_INSTALLED = late(
    r"[/\\]cuda-(?P<path>\d{1,2}\.\d)\b|\\CUDA\\v(?P<windows>\d{1,2}\.\d)\b"
    r"|\brelease (?P<nvcc>\d{1,2}\.\d), V\d"
)
"""A CUDA release on the machine: its folder, or the version of its compiler."""
_BUILD_OF_TORCH = late(r"\d\+cu(?P<major>9|1\d)(?P<minor>\d)\b")
"""The CUDA that a PyTorch installs, which its extensions must use as well."""
_DRIVER_TROUBLE = late(
    r"failed call to cuInit|Failed call to cuInit|Could not dlopen library 'libcuda\."
)
_SEES_A_GPU = late(
    r"Found device 0 with properties|Adding visible gpu devices|\| NVIDIA-SMI |Driver Version: \d"
    r"|Skipping registering GPU devices"
)


_CUDNN_FILE = late(
    r"(?P<library>libcudnn\w{0,40}\.so\.(?P<major>\d{1,2})\b|cudnn64_(?P<windows>\d)\.dll)"
)
_SELF_CHECK = late(r"Failed to import the TensorFlow module\.")
"""The script of 2017 that checks the requirements of TensorFlow for Windows."""
_BUNDLED = late(r"or one of its dependencies")


_ASKED_FOR_A_GPU = ("cupy", "numba", "onnxruntime")
"""These load CUDA only if a program uses a GPU; TensorFlow always does."""


class Missing(NamedTuple):
    """The CUDA libraries that a log reports as missing, and the effect on the program."""

    toolkit: tuple[LibraryEvent, ...]
    cudnn: tuple[LibraryEvent, ...]
    opened: tuple[LibraryEvent, ...]
    """Libraries of the toolkit that opened."""
    installed: tuple[str, ...]
    """CUDA releases that are on the machine, according to the log."""
    lines: tuple[int, ...]
    """All related lines: the loader's messages, the summary, and the end of the program."""
    stops: bool
    gpu_seen: bool
    elsewhere: bool
    """The program continued and failed for a reason unrelated to devices."""
    ended_it: bool = False
    """The program continued, and ended because it had no GPU."""
    at_import: bool = True
    """If the program stops, whether it does so at an import, and not where it needs the library."""
    needed_by: str = ""
    """What needs them, as a title: the package that was imported, or the framework."""

    @property
    def severity(self) -> Severity:
        if self.stops or self.ended_it:
            return "error"
        if self.elsewhere or not (self.gpu_seen or self.installed):
            return "info"
        return "error" if self.gpu_seen else "warning"

    @property
    def effect(self) -> Effect:
        return "broken" if self.stops else "cpu"


def missing_libraries(log: Log) -> Missing | None:
    """None if the log reports no missing CUDA library, or if the driver itself is the problem."""
    elsewhere = lines_about_extensions(log)
    lost = [
        event
        for event in log.library_events("not-found")
        if _matters(event) and not _is_bundled(log, event) and event.line not in elsewhere
    ]
    opened_since = {event.library: event.line for event in log.library_events("opened")}
    # If a library opens later, the loader only searched the wrong folder first.
    lost = [event for event in lost if opened_since.get(event.library, 0) < event.line]
    summary = [match.line for match in log.find(NO_DLOPEN)]
    stops = any(event.stops for event in lost) or (bool(lost) and log.says(_SELF_CHECK))
    at_use = _ends_at_use(log, lost)
    if (at_use or not stops) and _driver_is_the_trouble(log):
        return None
    if not lost and (not summary or _found_but_unfit(log)):
        return None
    first = min([*(event.line for event in lost), *summary])
    seen = bool(log.devices) or bool(summary) or log.says(_SEES_A_GPU)
    followers = [match.line for match in log.find(WITHOUT_GPU) if match.line > first]
    # TensorFlow loads all of them and continues without: a later crash has another reason.
    goes_on = is_tensorflow(log)
    lacking_gpu = lines_lacking_a_gpu(log)
    stopping = {event.line for event in lost if event.stops}
    ends = [
        failure
        for failure in log.failures
        if (stops and not at_use)
        or not stopping.isdisjoint(range(failure.line, failure.last + 1))
        or (failure.kind == "signal" and (at_use or not goes_on))
        or failure.line in lacking_gpu
        or WITHOUT_GPU.search(failure.text)
    ]
    return Missing(
        toolkit=tuple(e for e in lost if not is_cudnn(e)),
        cudnn=tuple(e for e in lost if is_cudnn(e)),
        opened=tuple(e for e in log.library_events("opened") if e.component in TOOLKIT),
        installed=_installed(log),
        lines=(
            *(event.line for event in lost),
            *summary,
            *followers,
            *(match.line for pattern in (NO_CUDART, _SELF_CHECK) for match in log.find(pattern)),
            *(failure.line for failure in ends if failure.line >= first),
        ),
        stops=stops,
        gpu_seen=seen
        or log.framework in _ASKED_FOR_A_GPU
        or any(event.component == "cuda" for event in log.library_events("opened")),
        elsewhere=failed_elsewhere(log, first),
        ended_it=bool(lacking_gpu),
        at_import=not at_use,
        needed_by=_needed_by(log, lost),
    )


def _ends_at_use(log: Log, lost: Sequence[LibraryEvent]) -> bool:
    """Whether no import failed: the message is of a library that is loaded when it is needed."""
    stopping = {event.line for event in lost if event.stops}
    raised_at = {each.line for each in log.raised if each.type != "RuntimeError"}
    return bool(stopping) and stopping.isdisjoint(raised_at)


def _needed_by(log: Log, lost: Sequence[LibraryEvent]) -> str:
    imported = (importing_package(log, event.line) for event in lost if event.stops)
    package = next((name for name in imported if name), "")
    row = extension_with(package)
    if row is not None:
        return row.distribution
    if not package and any(log.line(event.line).source == "dso_loader.cc" for event in lost):
        # TensorFlow writes it, also if the log is mostly about another framework that imports it.
        return framework_title(log) if is_tensorflow(log) else display_name("tensorflow")
    if not package or (log.framework and package.startswith(log.framework)):
        return framework_title(log)
    return DISPLAY_NAMES.get(package, package)


def _found_but_unfit(log: Log) -> bool:
    """TensorFlow's summary is about a library that exists but cannot be used."""
    unfit = (*log.library_events("broken"), *log.library_events("wrong-symbols"))
    return cudnn_unusable(log) is not None or any(
        event.component in TOOLKIT or is_cudnn(event) for event in unfit
    )


def cudnn_unusable(log: Log) -> Match | None:
    """The statement that only cuDNN could not be loaded, so TensorFlow does not use the GPU."""
    alone = log.says(NO_DLOPEN) and not log.says(_NO_RUNTIME)
    return log.first(CUDNN_UNUSABLE) if alone else None


def _is_bundled(log: Log, event: LibraryEvent) -> bool:
    """PyTorch for Windows names its own DLL that fails, but not the file that is missing."""
    text = log.line(event.line).text
    return "site-packages" in text and _BUNDLED.search(text) is not None


def _matters(event: LibraryEvent) -> bool:
    needed = event.component in PACKAGES and event.stops
    return needed or event.component in TOOLKIT or is_cudnn(event)


def is_cudnn(event: LibraryEvent) -> bool:
    return event.component.partition("_")[0] == "cudnn"


def other_cudnn(log: Log, missing: Missing) -> Match | None:
    """The statement of a cuDNN of another major release than the missing one."""
    wanted = {event.version.partition(".")[0] for event in missing.cudnn}
    return next(
        (
            match
            for match in log.find(_CUDNN_FILE)
            if (match.groups["major"] or match.groups["windows"]) not in wanted
        ),
        None,
    )


def _driver_is_the_trouble(log: Log) -> bool:
    if any(event.component == "cuda" for event in log.library_events("not-found")):
        return True
    return log.says(_DRIVER_TROUBLE)


def _installed(log: Log) -> tuple[str, ...]:
    found = [next(v for v in match.groups.values() if v) for match in log.find(_INSTALLED)]
    if log.framework == "torch":
        found += [f"{m.groups['major']}.{m.groups['minor']}" for m in log.find(_BUILD_OF_TORCH)]
    return tuple(dict.fromkeys(found))


def foreign_releases(missing: Missing) -> tuple[str, ...]:
    """Installed CUDA releases that do not have the missing libraries under these names."""
    return tuple(
        release
        for release in missing.installed
        if not any(_has(release, event) for event in missing.toolkit)
    )


def _has(release: str, event: LibraryEvent) -> bool:
    name = soname(event.component, release)
    if name is None:
        # This release does not have the library, or the library is not on record. Only in the
        # first case is it another release than the needed one.
        known = any(event.component in row.suffixes for row in RELEASES)
        return not known
    wanted = event.version
    return wanted == "" or name == f"lib{event.component}.so.{wanted}"


def other_release_opened(missing: Missing) -> bool:
    """The opened libraries belong to a release that does not have the missing ones by name."""
    lost, opened = _without_profiler(missing)
    return bool(lost and opened) and any(
        all(_in_row(row, event) for event in opened)
        and not any(_in_row(row, event) for event in lost)
        for row in RELEASES
    )


def partly_there(missing: Missing) -> bool:
    """Libraries of one release opened only in part: a folder, or an incomplete installation."""
    lost, opened = _without_profiler(missing)
    return bool(lost and opened) and not other_release_opened(missing)


def _without_profiler(missing: Missing) -> tuple[list[LibraryEvent], list[LibraryEvent]]:
    return (
        [event for event in missing.toolkit if event.component not in _PROFILER_ONLY],
        [event for event in missing.opened if event.component not in _PROFILER_ONLY],
    )


def _in_row(row: CudaRelease, event: LibraryEvent) -> bool:
    suffix = row.suffixes.get(event.component)
    return suffix is not None and event.version in ("", suffix)


def only_for_profiling(missing: Missing) -> bool:
    return bool(missing.toolkit and not missing.stops) and all(
        event.component in _PROFILER_ONLY for event in missing.toolkit
    )


def names(events: Iterable[LibraryEvent]) -> str:
    """The names of the libraries as in the log, each once; empty if it names none."""
    libraries = list(dict.fromkeys(event.library for event in events))
    return and_list(libraries) if libraries else ""


def asked_release(events: Sequence[LibraryEvent]) -> str:
    """The CUDA release that the names belong to, as far as they show it: 9.0, 11.x."""
    for event in events:
        if "." in event.version and event.component in ("cudart", "cublas", "cusolver", "cufft"):
            major = release_numbers(event.version)[0]
            # From 11 on libcudart.so.11.0 is the name in every release of its major number.
            return f"{major}.x" if event.component == "cudart" and major >= 11 else event.version
    for event in events:
        if event.component in ("cudart", "cublas", "cublasLt", "nvrtc", "nvJitLink"):
            return f"{event.version.partition('.')[0]}.x" if event.version else ""
    return ""


_LAST_WITH_DLLS = (2, 10)
"""The last TensorFlow for Windows that looks for CUDA."""


def needed_release(log: Log, missing: Missing) -> str:
    """The CUDA that this build needs, from TensorFlow's table or from the library names."""
    version = log.version_of("tensorflow") if log.framework in ("tensorflow", "keras") else None
    if version and log.platform == "windows" and release_numbers(version)[:2] > _LAST_WITH_DLLS:
        version = ".".join(map(str, _LAST_WITH_DLLS))
    row = build_of(version) if version else None
    by_name = asked_release(missing.toolkit)
    if row is not None and by_name.partition(".")[0] in ("", row.cuda.partition(".")[0]):
        return row.cuda
    asked = [*missing.toolkit, *missing.opened]
    fitting = [row for row in RELEASES if all(_in_row(row, event) for event in asked)]
    if len(fitting) == 1 and fitting[0].first == fitting[0].last:
        return ".".join(map(str, fitting[0].first))
    return by_name


_FIRST_PYTHON_WITH_CTK = (3, 10)
"""Older Pythons get releases of CuPy whose wheels have no extra with CUDA's libraries."""


def _cupy_with_libraries(log: Log, major: int) -> Remedy:
    python = release_numbers(log.version_of("python") or "")
    if python and python[:2] < _FIRST_PYTHON_WITH_CTK:
        return Remedy(
            "Install the toolkit of this CUDA release: only with Python 3.10 or newer does pip "
            "install CUDA's libraries with CuPy. Or let conda install both.",
            shell_script(
                "conda install -c conda-forge cupy cuda-version=", a_number(major), everywhere=True
            ),
        )
    return Remedy(
        "Install the CuPy for the installed CUDA, with its libraries.",
        # Releases before 14 have no such extra: pip would change nothing.
        Install((f"cupy-cuda{major}x[ctk]",), options=("upgrade",)),
    )


def cuda_remedies(log: Log, missing: Missing) -> tuple[Remedy, ...]:
    """How to install the libraries, the simplest way first."""
    package = next((PACKAGES[e.component] for e in missing.toolkit if e.component in PACKAGES), "")
    if package:
        return (
            Remedy("Install the package that contains it.", Install((package,))),
            Remedy(
                "If it is installed, check whether the loader finds it, and add its folder to "
                "LD_LIBRARY_PATH if not.",
                shell_script("ldconfig -p | grep -E 'nvinfer|nccl|custatevec|cutensornet'"),
            ),
        )
    release = needed_release(log, missing)
    of = f"CUDA {release}" if release else "the CUDA release that this build was made for"
    with_framework = _installed_with_framework(log, release, of)
    return (
        *([with_framework] if with_framework else []),
        _found_by_loader(log, missing, release, of),
    )


_CONDA = late(r"(?i)\b(?:ana|mini)?conda\d?\b|\bmamba\b|[/\\]envs[/\\]")


def _installed_with_framework(log: Log, release: str, of: str) -> Remedy | None:
    """The CUDA libraries come with the framework; None if this one has no such package."""
    major = int(release.partition(".")[0] or 0)
    if log.framework in ("tensorflow", "keras") and log.platform != "windows":
        if major == 0 or major >= 11:
            return Remedy(
                "Install TensorFlow together with its CUDA libraries.", gpu_build_in_log(log)
            )
        return Remedy(
            f"Install {of} into this environment with conda.",
            shell_script(
                "conda install cudatoolkit=",
                a_number(release.removesuffix(".x")),
                " cudnn",
                everywhere=True,
            ),
        )
    if log.platform == "windows" and 10 <= major < 12 and log.says(_CONDA):
        return Remedy(
            f"Install {of} into this environment with conda, and activate the environment before "
            "the program starts: its libraries are found only then.",
            shell_script(
                "conda install -c conda-forge cudatoolkit=",
                a_number(release.removesuffix(".x")),
                " cudnn",
                everywhere=True,
            ),
        )
    if log.framework == "jax":
        return Remedy("Install JAX together with its CUDA libraries.", gpu_build_in_log(log))
    if log.framework == "cupy" and major >= 11:
        return _cupy_with_libraries(log, major)
    if log.framework == "onnxruntime":
        return Remedy(
            "Install ONNX Runtime together with its CUDA libraries.",
            # Old releases have no such extras: pip would change nothing.
            Install(("onnxruntime-gpu[cuda,cudnn]",), options=("upgrade",)),
        )
    return None


def _found_by_loader(log: Log, missing: Missing, release: str, of: str) -> Remedy:
    if log.platform == "windows":
        return Remedy(
            f"Install {of} and add its bin folder to PATH, then open a new terminal.",
            command_line("where.exe", a_name(missing.toolkit[0].library))
            if missing.toolkit
            else None,
        )
    return Remedy(
        f"If {of} is installed, add its folder to the loader's search path.",
        shell_script(
            'export LD_LIBRARY_PATH="/usr/local/cuda-',
            a_number(release) if release and not release.endswith(".x") else "X.Y",
            '/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
        ),
    )


_ANY_CUDART = "where.exe cudart64_*.dll"
_ANY_LIBRARY = "find / -name 'libcudart.so*' 2>/dev/null"


def _first_name(missing: Missing) -> str:
    return missing.toolkit[0].library if missing.toolkit else ""


def which_question(log: Log, missing: Missing) -> str:
    """The command that separates a missing CUDA, another release and a folder not searched."""
    if log.platform == "windows":
        asked = shell_text(command_line("where.exe", a_name(_first_name(missing)))) or _ANY_CUDART
        return (
            f"What does `{asked}` find? Nothing: CUDA is missing, or another release is "
            "installed (look in C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA)."
        )
    stem = _first_name(missing).partition(".so")[0]
    search = shell_script("find / -name '", a_name(stem), ".so*' 2>/dev/null")
    asked = shell_text(search) or _ANY_LIBRARY
    return (
        f"What does `{asked}` print? Nothing: CUDA is missing. Another number: another release. "
        "Exactly this name: the loader does not search that folder."
    )


def loss(missing: Missing) -> str:
    """What the framework does without these libraries."""
    name = missing.needed_by
    if not missing.stops:
        return f"{name} continues without the GPU"
    return f"importing {name} fails" if missing.at_import else "the program fails where it needs it"


def judged(missing: Missing, *, proven: bool) -> Confidence:
    return "certain" if proven and (missing.stops or missing.gpu_seen) else "likely"


def known_defect(log: Log, missing: Missing) -> SearchListDefect | None:
    """The release's own defect, if it matches: only libraries are missing that it does not find."""
    version = log.version_of(log.framework)
    row = search_list_defect(log.framework, version) if version else None
    if row is None or missing.cudnn:
        return None
    named = {event.library.partition(".so")[0].removeprefix("lib") for event in missing.toolkit}
    return row if named <= set(row.libraries) else None
