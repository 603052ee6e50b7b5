"""pip finds no build of the framework for this Python, this platform or this CUDA.

## Why it happens

A release of a framework is a set of files, each for one Python version and one platform. If none of
them matches, pip reports "no matching distribution" although the release exists. Reasons: Python is
newer or older than the release, or a 32-bit build; the platform has no builds (Windows or macOS for
a GPU package); or the CUDA builds are on another index than the one pip used.

## What it looks like

`ERROR: Could not find a version that satisfies the requirement tensorflow==1.15 (from versions:
2.16.1, ...)`, `No matching distribution found for torch==1.7.1+cu110`, `jaxlib-...whl is not a
supported wheel on this platform`, `requires a different Python: 3.12.1 not in '<3.12,>=3.9'`.

## Fix

Check for which Python versions the release was built, and create an environment with one of them.
Or install a release that supports this Python. For CUDA builds, name the index that has them.
`whygpu plan` lists the releases that work on a machine.

## Fires on (log)

Python is too new for the release:

```
$ python3.12 -m pip install tensorflow==2.12.0
ERROR: Could not find a version that satisfies the requirement tensorflow==2.12.0 (from versions: 2.16.0rc0, 2.16.1, 2.17.0)
ERROR: No matching distribution found for tensorflow==2.12.0
```

The CUDA builds are on a separate index:

```
ERROR: Could not find a version that satisfies the requirement torch==1.8.1+cu111 (from versions: 1.7.1, 1.8.0, 1.8.1, 1.9.0)
ERROR: No matching distribution found for torch==1.8.1+cu111
```

```
ERROR: jaxlib-0.3.14+cuda11.cudnn82-cp38-none-manylinux2014_x86_64.whl is not a supported wheel on this platform.
```

Other tools use other messages:

```
UnsatisfiableError: The following specifications were found to be in conflict:
  - cudatoolkit 10.1*
  - pytorch 1.1.0* -> cudatoolkit >=10.0.130,<10.1.0a0
```

```
  x No solution found when resolving dependencies:
  Because all versions of tensorflow have no wheels with a matching Python ABI tag (e.g., `cp314`), we can conclude that your requirements are unsatisfiable.
```

## Quiet on (log)

A package that is unrelated to a GPU:

```
ERROR: Could not find a version that satisfies the requirement pywin32==300 (from versions: none)
ERROR: No matching distribution found for pywin32==300
```

The index could not be reached:

```
WARNING: Retrying (Retry(total=0, connect=None, read=None)) after connection broken by 'NewConnectionError': Temporary failure in name resolution
ERROR: Could not find a version that satisfies the requirement torch (from versions: none)
ERROR: No matching distribution found for torch
```

```
UnsatisfiableError: The following specifications were found to be incompatible with each other:

Package zlib conflicts for:
r-base=3.6 -> zlib
```

## Sources

- <https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/>
- <https://www.tensorflow.org/install/pip>
- <https://pytorch.org/get-started/previous-versions/>
- <https://docs.jax.dev/en/latest/installation.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import ended_after
from whygpu.model.cause import cause
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import PYTHON, Install, InstallFramework, command_line
from whygpu.tables.distributions import matters, normalised

CAUSE = cause("WG318", __name__, __doc__, severity="error", effect="broken")

_REQUIREMENT = r"(?P<{}>[A-Za-z][\w.-]{{1,60}})(?P<{}_rest>[^\s(]{{0,80}})"
STATEMENTS = late(
    "|".join(
        (
            r"Could not find a version that satisfies the requirement "
            + _REQUIREMENT.format("asked", "asked")
            + r"(?: \(from (?!versions)[^\n]{0,200}?\))?(?: \(from versions: (?P<versions>[^)\n]{0,4000}))?",
            r"No matching distribution found for " + _REQUIREMENT.format("none", "none"),
            r"(?P<wheel>\.whl['\"]? is not a supported wheel on this platform"
            r"|HTTP error 40[34] while getting [^\n]{1,300}\.whl)",
            r"Package '?(?P<package>[\w.-]{2,60})'? requires a different Python: (?P<python>\S{1,12}) not"
            r" in '?(?P<range>[^'\n]{2,60})",
            r"(?P<nowheels>[A-Za-z][\w.-]{1,60})\S{0,60} ha(?:s|ve) no (?:usable )?wheels with a matching",
            r"Unable to find installation candidates for (?P<poetry>[A-Za-z][\w.-]{1,60})",
            r"(?P<conda>(?:PackagesNotFoundError|ResolvePackageNotFound|(?:LibMamba)?UnsatisfiableError"
            r"|Could not solve for environment specs)\b[^\n]{0,160}(?:\n[^\n]{0,120}){1,9})",
            r"(?P<solver>Because (?:there (?:is|are) no versions? of|no versions of|only the following versions"
            r" of) (?P<solved>[A-Za-z][\w.-]{1,60}))",
            r"Requested (?P<metadata>[A-Za-z][\w.-]{1,60})[^\n]{1,400}has (?:different|inconsistent) version",
            r"(?P<registry>[A-Za-z][\w.-]{1,60})\S{0,30} was not found in the package registry",
            r"(?P<lacking>[A-Za-z][\w.-]{1,60}) \([\w.+]{1,20}\) requires Python [^\n]{2,80}"
            r"version solving failed",
            r"(?P<uv>doesn't have a source distribution or wheel for the current platform)",
            r"The \"?(?P<removed>tensorflow-gpu)\"? package has been removed",
        )
    )
)
_UNREACHABLE = late(
    r"connection broken by|NewConnectionError|name resolution|ProxyError|SSLError|Connection timed out"
    r"|CERTIFICATE_VERIFY_FAILED|Network is unreachable"
)
_NAMES = (
    *("asked", "none", "package", "poetry", "removed"),
    *("nowheels", "solved", "metadata", "registry", "lacking"),
)
_CUDA_TAG = late(r"\+cu(?:da)?\d|\[[^\]\n]{0,20}cuda|\[gpu")
_CUDA_INDEX = late(
    r"Looking in (?:indexes|links): [^\n]{0,400}(?:download\.pytorch\.org|jax-releases|pypi\.nvidia)"
)
_INDEXES = {
    "torch": "https://download.pytorch.org/whl/cu126",
    "torchvision": "https://download.pytorch.org/whl/cu126",
    "torchaudio": "https://download.pytorch.org/whl/cu126",
}
_LISTED = late(
    r"(?:- (?:package |nothing provides \S{1,60} needed by )?|`|::|[|`\u251c\u2514\u2500-]{2,4} |Package |^|\n)"
    r"([A-Za-z](?:(?!-\d)[\w.-]){1,60})"
)
"""A package in conda's list of missing or conflicting packages, or between uv's quotes."""
_WANTED_BY = late(r"\(from ([A-Za-z][\w.-]{1,60})[=<>!~\[)-]")
"""The package whose requirement pip cannot meet."""
_ALSO = frozenset(
    {"cudatoolkit", "cudnn", "keras-gpu", "pytorch", "pytorch-cuda"}
    | {"mxnet", "paddlepaddle", "tensorrt", "torchvision", "torchaudio", "triton", "xformers"}
)
"""Other packages with CUDA builds, in addition to the ones that whygpu knows."""
_FAMILIES = (
    "tensorflow",
    "tf-nightly",
    "tf-gpu",
    "jax",
    "torch",
    "mxnet",
    "paddlepaddle",
    "cupy",
    "nvidia-",
    "faiss-gpu",
    "flash-attn",
    "spconv",
    "mmcv",
    "dgl",
    "bitsandbytes",
    "vllm",
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    if log.says(_UNREACHABLE):
        return
    statements = [match for match in log.find(STATEMENTS) if _concerns_a_framework(match)]
    if not statements:
        return
    first = statements[0]
    yield CAUSE.finding(
        subject=MACHINE,
        message=_message(log, first, statements),
        evidence=log.evidence(*(match.line for match in statements), *ended_after(log, first.line)),
        remedies=_remedies(log, first, statements),
    )


def _name(match: Match) -> str:
    if match.groups["wheel"]:
        return normalised(_file_of(match).partition("-")[0])
    if match.groups["conda"] or match.groups["uv"]:
        words = _LISTED.findall(match.groups["conda"] or match.text)
        return next((word for word in map(normalised, words) if _is_relevant(word)), "")
    found = next((match.groups[part] for part in _NAMES if match.groups[part]), "") or ""
    return normalised(found)


def _file_of(match: Match) -> str:
    """For example jaxlib-0.3.14-cp38-none-any, from the line that rejects the file."""
    before = match.text.partition(".whl")[0]
    # A copied address often contains a space.
    return before.rpartition("/")[2].rpartition(": ")[2].replace(" ", "").strip("'\"")


def _concerns_a_framework(match: Match) -> bool:
    wanted_by = _WANTED_BY.findall(match.text)
    return any(_is_relevant(name) for name in (_name(match), *map(normalised, wanted_by)))


def _is_relevant(name: str) -> bool:
    return matters(name) or name in _ALSO or name.startswith(_FAMILIES)


def _message(log: Log, first: Match, statements: list[Match]) -> str:
    name, groups = _name(first), first.groups
    asked = f"{name}{groups['asked_rest'] or groups['none_rest'] or ''}"
    if groups["removed"]:
        return "the package tensorflow-gpu no longer exists; its GPU support is in tensorflow"
    if groups["wheel"]:
        return f"{_file_of(first)} is for another Python or platform"
    if groups["package"]:
        return f"{name} requires Python {groups['range']}, but this is Python {groups['python']}"
    if _wants_cuda(statements) and not _asked_cuda_index(log, first):
        return f"the index that pip used has no {asked}: CUDA builds are on a separate index"
    versions = groups["versions"]
    if versions is not None and versions.strip(" )") in ("none", ""):
        return (
            f"pip finds no build of {name} for this Python and platform (it finds none of its "
            "releases)"
        )
    if versions:
        return f"pip finds releases of {name} for this Python and platform, but not {asked}"
    return f"pip finds no build of {asked} for this Python and platform"


def _asked_cuda_index(log: Log, first: Match) -> bool:
    """pip searched the index with CUDA builds: it names that index, or lists some of them."""
    return log.says(_CUDA_INDEX) or "+cu" in (first.groups["versions"] or "")


def _wants_cuda(statements: list[Match]) -> bool:
    return any(_CUDA_TAG.search(match.text) for match in statements)


def _remedies(log: Log, first: Match, statements: list[Match]) -> tuple[Remedy, ...]:
    name = _name(first)
    if first.groups["removed"] or name == "tensorflow-gpu":
        return (
            Remedy(
                "Install tensorflow with its CUDA libraries.",
                InstallFramework("tensorflow"),
            ),
            Remedy("For a release before 2.12, use the Python version that it was made for."),
        )
    remedies = []
    if name in _INDEXES and _wants_cuda(statements) and not _asked_cuda_index(log, first):
        remedies.append(
            Remedy(
                "Name the index that has the CUDA builds.",
                Install((name,), index_url=_INDEXES[name]),
            )
        )
    if name.startswith("jax") and _wants_cuda(statements):
        remedies.append(
            Remedy(
                "Install JAX with its CUDA plugin.",
                InstallFramework("jax", options=("upgrade",)),
            )
        )
    remedies.append(
        Remedy(
            "Check which Python this is, and whether it is a 64-bit build.",
            command_line(
                PYTHON, "-c 'import sys, platform; print(sys.version, platform.machine())'"
            ),
        )
    )
    remedies.append(
        Remedy("List the releases that work on this machine.", command_line("whygpu plan"))
    )
    return tuple(remedies)
