"""What to say and do about a build that pip, uv or poetry did not find."""

from __future__ import annotations

from collections.abc import Callable

from whygpu.causes.evidence.builds_on_record import runs_anywhere
from whygpu.causes.evidence.log_installs import Attempt
from whygpu.causes.evidence.missing_builds import Reason
from whygpu.model.derived import and_list
from whygpu.model.finding import Remedy
from whygpu.model.machine_spec import PLATFORMS
from whygpu.model.remedy import (
    PYTHON,
    Action,
    Install,
    InstallFramework,
    PlannedFramework,
    a_number,
    a_requirement,
    command_line,
)
from whygpu.tables.package_names import other_name
from whygpu.tables.platform_builds import build_without_cuda
from whygpu.tables.torch_indexes import INDEX_ROOT, INDEXES, torch_release
from whygpu.tables.undeclared_limits import undeclared_limits

Text = tuple[str, tuple[Remedy, ...]]
"""The message of a finding, and its remedies."""

_FRAMEWORKS: dict[str, PlannedFramework] = {
    "tensorflow": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "torch": "torch",
    "pytorch": "torch",
    "jax": "jax",
    "jaxlib": "jax",
    "onnxruntime-gpu": "onnxruntime",
}


def advice_on(attempt: Attempt, reason: Reason) -> Text:
    return _TEXTS[reason.kind](attempt, reason)


def _framework(attempt: Attempt) -> PlannedFramework | None:
    return _FRAMEWORKS.get(attempt.package)


def _release_that_fits(attempt: Attempt, text: str, python: str = "") -> tuple[Remedy, ...]:
    framework = _framework(attempt)
    if framework is None:
        return ()
    environment = attempt.environment
    platform = "linux_aarch64" if (environment.system, environment.machine) == _ARM else ""
    wish = InstallFramework(framework, python=python or environment.python, platform=platform)
    return (Remedy(text, wish),)


_ARM = ("linux", "aarch64")


def _pythons(supported: tuple[str, ...]) -> str:
    if len(supported) < 2:
        return "".join(supported)
    return f"{supported[0]} to {supported[-1]}"


def _new_environment(attempt: Attempt, python: str) -> tuple[Remedy, ...]:
    if not python:
        return ()
    return (
        Remedy(
            f"Create an environment with Python {python} and install {attempt.requirement} there.",
            command_line("uv venv --python", a_number(python)),
        ),
    )


def _renamed(attempt: Attempt, reason: Reason) -> Text:
    known = other_name(attempt.package)
    framework = known.framework if known else None
    action = InstallFramework(framework) if framework else Install((reason.name,))
    return (
        f"the package to install with pip is {reason.name}, not {attempt.package}",
        (Remedy(f"Install {reason.name}.", action),),
    )


def _typo(attempt: Attempt, reason: Reason) -> Text:
    framework = _FRAMEWORKS.get(reason.name)
    return (
        f"the index has no package {attempt.package}; {reason.name} has a very similar name",
        (
            Remedy(
                f"If you meant {reason.name}, install it under its right name; this is its GPU "
                "build.",
                InstallFramework(framework),
            )
            if framework
            else Remedy(f"If you meant {reason.name}, install that.", Install((reason.name,))),
        ),
    )


def _removed(attempt: Attempt, _: Reason) -> Text:
    return (
        "the package tensorflow-gpu no longer exists; its GPU support is in tensorflow",
        (
            Remedy("Install tensorflow with its CUDA libraries.", InstallFramework("tensorflow")),
            Remedy(
                "For TensorFlow 2.11 or older, install tensorflow-gpu with a Python that this "
                "release has builds for: 3.10 or older."
            ),
        ),
    )


def _no_extra(attempt: Attempt, reason: Reason) -> Text:
    release = f"{attempt.package} {attempt.version}".strip()
    first, last = reason.releases
    which = f" (the releases {first} to {last} have it)" if first else ""
    return (
        f"{release} has no extra {reason.name}{which}, so it is installed without the CUDA "
        "libraries that the extra would add",
        _release_that_fits(
            attempt, "Install a release with the extra that adds its CUDA libraries."
        )
        or (Remedy("Look up the extras of this release in its documentation."),),
    )


_SIDES = {"too-new": "is too new", "too-old": "is too old", "other": "is not supported"}


def _python(attempt: Attempt, reason: Reason) -> Text:
    what = attempt.file or attempt.requirement
    if reason.python:
        source = " (known from the list of offered releases)" if reason.inferred else ""
        message = f"Python {reason.python}{source} {_SIDES[reason.side]} for {what}"
    elif reason.confidence == "certain":
        message = f"{what} has no build for the Python that {attempt.installer} installs for"
    else:
        offers = "newer" if reason.side == "too-new" else "older"
        message = (
            f"pip offers only {offers} releases than {what}: the Python that runs pip probably "
            f"{_SIDES[reason.side]} for it"
        )
    if reason.python_range:
        message += f": it requires Python {reason.python_range}"
    elif reason.supported:
        message += f": there are builds for Python {_pythons(reason.supported)}"
    newest = reason.supported[-1] if reason.supported else ""
    keep = (
        _release_that_fits(attempt, "Or install a release for this Python.", reason.python)
        if reason.python and runs_anywhere(attempt.package, reason.python)
        else ()
    )
    if attempt.installer == "poetry" and reason.python_range:
        return message, (
            Remedy(
                "Restrict requires-python in pyproject.toml to this range: poetry looks for "
                "releases that support the whole range of the project."
            ),
        )
    return message, (*_new_environment(attempt, newest), *keep) or _look_up()


_BUILDS = {
    "32-bit": "this is a 32-bit system or a 32-bit build of Python, and",
    "free-threaded": "this is the free-threaded build of Python, which needs its own wheels, and",
    "pypy": "this is PyPy, and",
}
_BUILD_ENDS = {
    "32-bit": "has builds for 64-bit systems only",
    "free-threaded": "probably has none for it",
    "pypy": "has builds for CPython only",
}


def _python_build(attempt: Attempt, reason: Reason) -> Text:
    end = _BUILD_ENDS[reason.name]
    if reason.confidence == "certain":
        end = end.replace("probably has none", "has none")
    best = reason.supported[-1] if reason.supported else "3.12"
    if attempt.environment.machine in ("armv7l", "i686"):
        return (
            f"{_BUILDS[reason.name]} {attempt.requirement} {end}",
            (Remedy("Install a 64-bit operating system on this machine, if it supports one."),),
        )
    kind = {"32-bit": "64-bit build of ", "free-threaded": "usual build of "}.get(reason.name, "C")
    return (
        f"{_BUILDS[reason.name]} {attempt.requirement} {end}",
        (
            Remedy(
                f"Create an environment with the {kind}Python {best}."
                if kind != "C"
                else f"Create an environment with CPython {best}.",
                command_line("uv venv --python", a_number(best)),
            ),
        ),
    )


def _wrong_file(attempt: Attempt, reason: Reason) -> Text:
    parts = [f"Python {''.join(reason.supported)}"] if reason.supported else []
    parts += [reason.platform] if reason.platform else []
    meant = f"is for {and_list(parts)}" if parts else "is for another Python or platform"
    if reason.confidence == "certain":
        message = f"{attempt.file} {meant}, and this is another system"
    else:
        message = (
            f"{attempt.file} {meant}, and at least one of these is different here; the log does "
            "not show which"
            if parts
            else f"{attempt.file} {meant}"
        )
    return (
        message,
        (
            Remedy(
                "Do not name a file: let pip choose the one for this Python and platform.",
                Install((attempt.package,)),
            )
            if not _framework(attempt)
            else _release_that_fits(
                attempt, "Do not name a file: let pip choose one for this Python and platform."
            )[0],
            *_look_up(),
        ),
    )


def _no_such_file(attempt: Attempt, reason: Reason) -> Text:
    if not reason.name:
        return (
            f"the server has no file {attempt.file}.whl at this address, or does not hand it out",
            _release_that_fits(attempt, "Install the release that fits, without naming a file.")
            or (Remedy("Let pip choose the file: name the package and its release only."),),
        )
    return (
        f"there is no file {attempt.file}.whl: its last part is not the name of a platform; wheels "
        f"for 64-bit Windows have {reason.name}",
        (
            Remedy(f"Write {reason.name} at the end of the name, or let pip choose the file."),
            *_release_that_fits(attempt, "Install the release that fits, without naming a file."),
        ),
    )


def _no_cuda_there(attempt: Attempt, reason: Reason) -> Text:
    if reason.platform == "macOS":
        return _no_cuda_on_macos(attempt)
    remedies: tuple[Remedy, ...]
    if reason.platform:
        remedies = (
            Remedy("Use NVIDIA's builds for this platform: for a Jetson, those of its JetPack."),
            *_release_that_fits(attempt, "Or install a newer release, which has such builds."),
        )
    return (
        f"there is no CUDA build of {_plain(attempt)} for {reason.platform}, so "
        f"{attempt.requirement} cannot be installed there",
        remedies,
    )


_MPS = ": PyTorch uses the GPU of a Mac through MPS"
_ON_MACOS = {
    "torch": _MPS,
    "torchvision": _MPS,
    "torchaudio": _MPS,
    "tensorflow": ", and tensorflow-metal for the GPU of the Mac",
    "onnxruntime": "",
    "jax": "",
}


def _no_cuda_on_macos(attempt: Attempt) -> Text:
    name = attempt.package.removesuffix("-gpu")
    if attempt.local:
        message = (
            f"there is no {attempt.requirement} for macOS: builds with +{attempt.local} in their "
            "version are for Linux and Windows only"
        )
    else:
        message = f"{attempt.requirement} does not exist for macOS, because CUDA does not"
    if name in _ON_MACOS:
        remedy = Remedy(f"Install the usual {name}{_ON_MACOS[name]}.", Install((name,)))
    else:
        remedy = Remedy("Remove this requirement on a Mac: no program there can use it.")
    return message, (remedy,)


def _plain(attempt: Attempt) -> str:
    """The requirement without CUDA: torch==1.8.1 of torch==1.8.1+cu111."""
    name = "tensorflow" if attempt.package == "tensorflow-gpu" else attempt.package
    return f"{name}=={attempt.version}" if attempt.version else name


def _no_build_there(attempt: Attempt, reason: Reason) -> Text:
    source = " (known from the list of offered releases)" if reason.inferred else ""
    where = " on PyPI" if reason.indexes else ""
    return (
        f"{attempt.requirement} has no build for {reason.platform or 'this platform'}{source}"
        f"{where}",
        (
            *(_from_index(attempt, reason) if reason.indexes else _older_release(attempt, reason)),
            *_on_windows(attempt),
            Remedy("List the releases that work on this machine.", command_line("whygpu plan")),
        ),
    )


def _on_windows(attempt: Attempt) -> tuple[Remedy, ...]:
    if not attempt.package.startswith(("nvidia-", "jax-cuda")):
        return ()
    return (Remedy("On Windows, use WSL2: there the packages for Linux work."),)


def _older_release(attempt: Attempt, reason: Reason) -> tuple[Remedy, ...]:
    if not reason.name:
        return ()
    install = Remedy(
        f"The newest release with a build for it is {reason.name}.",
        Install(
            (
                f"{attempt.package}=={reason.name}",
                *(limit.requirement for limit in undeclared_limits(attempt.package, reason.name)),
            )
        ),
    )
    platform = "linux_aarch64" if reason.platform == PLATFORMS["linux_aarch64"] else ""
    without_cuda = build_without_cuda(attempt.package, reason.name, platform)
    if without_cuda is None:
        return (install,)
    return (install, Remedy(f"This build does not use a GPU: for that, {without_cuda.instead}."))


def _musl(attempt: Attempt, _: Reason) -> Text:
    return (
        f"this system uses musl instead of glibc (Alpine Linux does), and {attempt.requirement} "
        "has builds for glibc only",
        (Remedy("Use an image with glibc, such as python:3.12-slim (Debian) instead of -alpine."),),
    )


def _glibc(attempt: Attempt, reason: Reason) -> Text:
    return (
        f"{attempt.requirement} needs glibc {reason.name} or newer, and this system has "
        f"{attempt.environment.glibc}",
        (
            Remedy("Use a newer system or container, or a release that supports this glibc."),
            Remedy("List the releases that work on this machine.", command_line("whygpu plan")),
        ),
    )


def _old_pip(attempt: Attempt, reason: Reason) -> Text:
    return (
        f"pip {attempt.environment.pip} is too old: it does not accept the wheels of "
        f"{attempt.file or attempt.requirement}, which need pip {reason.name} or newer",
        (Remedy("Upgrade pip.", Install(("pip",), options=("upgrade",))),),
    )


def _no_such_index(attempt: Attempt, reason: Reason) -> Text:
    return (
        f"PyTorch has no index {reason.tag}: it publishes no builds for CUDA {_cuda(reason.tag)}",
        _from_index(attempt, reason),
    )


def _no_such_build(attempt: Attempt, reason: Reason) -> Text:
    has = f"; its CUDA builds are {and_list(reason.indexes)}" if reason.indexes else ""
    return (
        f"there is no build of {_plain(attempt)} for CUDA {_cuda(reason.tag)} ({reason.tag}){has}",
        _from_index(attempt, reason),
    )


def _cuda(tag: str) -> str:
    """12.5 of cu125."""
    number = tag.removeprefix("cu")
    return f"{number[:-1]}.{number[-1]}"


def _from_index(attempt: Attempt, reason: Reason) -> tuple[Remedy, ...]:
    """Install from the index with the CUDA build that is nearest to the requested one."""
    if not reason.indexes:
        return _release_that_fits(attempt, "Install a release with a CUDA build.") or (
            Remedy(f"Use one of PyTorch's CUDA indexes: {and_list(INDEXES[-8:])}."),
        )
    tag = reason.tag if reason.tag in reason.indexes else _nearest(reason.tag, reason.indexes)
    action: Action = Install((_plain(attempt),), index_url=f"{INDEX_ROOT}{tag}")
    if (torch_release(attempt.package, attempt.version) or ()) < (2, 0):
        # These builds have the CUDA release in their version, and their dependencies are on PyPI.
        action = command_line(
            PYTHON,
            "-m pip install",
            a_requirement(f"{_plain(attempt)}+{tag}"),
            "-f https://download.pytorch.org/whl/torch_stable.html",
        )
    return (Remedy(f"Install its build for CUDA {_cuda(tag)}.", action),)


def _nearest(tag: str, indexes: tuple[str, ...]) -> str:
    """The newest that is not newer than the requested one, because of the driver; else the oldest."""
    older = [index for index in indexes if int(index[2:]) <= int(tag[2:])]
    return older[-1] if older else indexes[0]


def _index_not_asked(attempt: Attempt, reason: Reason) -> Text:
    if attempt.package == "jaxlib":
        remedies: tuple[Remedy, ...] = (
            Remedy(
                "Install a release of JAX with its CUDA plugin, which is on PyPI.",
                InstallFramework("jax", options=("upgrade",)),
            ),
            Remedy(
                "For this old release, name JAX's page of CUDA builds; the part after + must be "
                "one of the names there.",
                command_line(
                    PYTHON,
                    "-m pip install",
                    a_requirement(attempt.requirement),
                    "-f https://storage.googleapis.com/jax-releases/jax_cuda_releases.html",
                ),
            ),
        )
    else:
        remedies = _from_index(attempt, reason)
    hedge = "" if reason.confidence == "certain" else "judging by the log, "
    return (
        f"{hedge}the index that was searched has no {attempt.requirement}: CUDA builds are on a "
        "separate index",
        remedies,
    )


def _no_such_release(attempt: Attempt, reason: Reason) -> Text:
    if reason.confidence == "certain":
        message = f"there is no release {attempt.version} of {attempt.package}"
    else:
        message = (
            f"{attempt.package} {attempt.version} is newer than every release that whygpu knows: "
            f"the newest one is {reason.name}"
        )
    return message, (
        *_release_that_fits(attempt, "Install a release that exists."),
        Remedy("List the releases that work on this machine.", command_line("whygpu plan")),
    )


def _undecided(attempt: Attempt, _: Reason) -> Text:
    if attempt.offered:
        seen = f"{attempt.installer} finds releases of {attempt.package}, but not the requested one"
        candidates = "this Python, this platform, or the index that was searched"
    elif attempt.offered is not None:
        seen = f"{attempt.installer} finds no release of {attempt.package} at all"
        candidates = (
            "a Python that is too new, too old or 32-bit, a platform without builds, or an index "
            "without this package"
        )
    else:
        seen = f"{attempt.installer} finds no build of {attempt.requirement}"
        candidates = "this Python, this platform, or the index that was searched"
    return (
        f"{seen}; the log does not show whether the reason is {candidates}",
        _look_up(),
    )


def _look_up() -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Check which Python this is, and whether it is a 64-bit build.",
            command_line(
                PYTHON, "-c 'import sys, platform; print(sys.version, platform.machine())'"
            ),
        ),
        Remedy("List the releases that work on this machine.", command_line("whygpu plan")),
    )


_TEXTS: dict[str, Callable[[Attempt, Reason], Text]] = {
    "renamed": _renamed,
    "typo": _typo,
    "removed": _removed,
    "no-extra": _no_extra,
    "python": _python,
    "python-build": _python_build,
    "wrong-file": _wrong_file,
    "no-such-file": _no_such_file,
    "no-cuda-there": _no_cuda_there,
    "no-build-there": _no_build_there,
    "musl": _musl,
    "glibc": _glibc,
    "old-pip": _old_pip,
    "no-such-index": _no_such_index,
    "no-such-build": _no_such_build,
    "index-not-asked": _index_not_asked,
    "no-such-release": _no_such_release,
    "undecided": _undecided,
}
