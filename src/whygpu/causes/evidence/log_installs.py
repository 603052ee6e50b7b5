"""Failed installations in a log, as values: what was requested, where, and for which Python."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.tables.distributions import matters, normalised

Installer = Literal["pip", "uv", "poetry", "conda", "pixi"]
System = Literal["linux", "windows", "macos", ""]
PythonBuild = Literal["", "32-bit", "free-threaded", "pypy"]
Refusal = Literal[
    "none",
    "file",
    "no-file",
    "removed",
    "renamed",
    "extra",
    "python",
    "python-tag",
    "platform",
]
"""What the installer itself gives as the reason; "none" if it only finds no build."""


class Environment(NamedTuple):
    """The environment that the log shows; a field is empty if the log does not decide it."""

    python: str = ""
    """Such as 3.12."""
    python_build: PythonBuild = ""
    """Empty for the usual build as well."""
    system: System = ""
    machine: str = ""
    """As in platform tags, without the names of Windows: x86_64, aarch64, arm64, armv7l, i686."""
    musl: bool = False
    glibc: str = ""
    pip: str = ""


class Attempt(NamedTuple):
    """An installation that failed."""

    installer: Installer
    line: int
    lines: tuple[int, ...]
    """All lines that report it."""
    package: str
    """Its normalised name."""
    specifier: str
    """As requested: ==1.8.1+cu111, >=2.0; empty if any release is acceptable."""
    extras: tuple[str, ...]
    offered: tuple[str, ...] | None
    """The releases that pip lists as available; None if the log has no list."""
    file: str
    """The wheel that was refused, without .whl."""
    refusal: Refusal
    needs_python: str
    """The range of Python versions that the installer quotes."""
    indexes: tuple[str, ...]
    """The package indexes and pages that the log shows as searched."""
    environment: Environment

    @property
    def requirement(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.package}{extras}{self.specifier}"

    @property
    def version(self) -> str:
        """The pinned release without its local part; empty if no single one was requested."""
        return self._pin[0]

    @property
    def local(self) -> str:
        """The local part of the pinned version: cu111, cuda11.cudnn82."""
        return self._pin[1]

    @property
    def _pin(self) -> tuple[str, str]:
        match = _PIN.fullmatch(self.specifier)
        return (match["version"], match["local"] or "") if match else ("", "")


_PIN = late(r"={2,3}\s{0,3}(?P<version>\d[\w.]{0,40}?)(?:\+(?P<local>[\w.]{1,40}))?")
_NAME = r"[A-Za-z][\w.-]{1,60}"
_WORD = rf"(?<![\w.-]){_NAME}"
"""A name at the start of a match: without the condition, each letter of a long word starts one."""
_TAIL = r"[^\s(;,'\"`]{0,80}(?:,[<>=!~][^\s(;,'\"`]{1,40}){0,6}"


def _wrapped(text: str) -> str:
    """uv breaks its lines anywhere between words."""
    return text.replace(" ", r"\s{1,12}")


STATEMENTS = late(
    "|".join(
        (
            rf"[Cc]ould not find a version that satisfies the requirement (?P<asked>{_NAME})"
            rf"(?P<asked_rest>{_TAIL})(?:; [^\n(]{{0,80}}[^\n( ])?(?: \(from (?!versions)[^\n]{{0,200}}?\){{1,2}})?"
            r"(?: \(from versions: (?P<versions>[^)\n]{0,4000}))?",
            rf"No matching distribution found for (?P<none>{_NAME})(?P<none_rest>{_TAIL})",
            r"(?P<wheel>\.whl['\"]? is not a supported wheel on this platform"
            r"|HTTP error 40[34] while getting [^\n]{1,300}\.whl)",
            r"Package '?(?P<package>[\w.-]{2,60})'? requires a different Python: \S{1,12} not"
            r" in '?(?P<range>[^'\n]{2,60})",
            rf"(?P<nowheels>{_WORD})(?P<nowheels_rest>{_TAIL})\s{{1,12}}"
            + _wrapped(r"ha(?:s|ve) no (?:usable )?wheels with a (?:matching )?")
            + r"(?P<tag>Python|platform|free-threading)?",
            r"Unable to find installation candidates for "
            rf"(?P<poetry>{_NAME}) ?(?:\((?P<poetry_version>[\w.+]{{1,40}})\))?",
            r"(?P<conda>(?:PackagesNotFoundError|ResolvePackageNotFound|(?:LibMamba)?UnsatisfiableError"
            r"|[Cc]ould not solve for environment specs|Encountered problems while solving"
            r"|Cannot solve the request because of|Virtual package '__cuda' does not match)"
            r"[^\n]{0,300}(?:\n[^\n]{0,300}){0,40})",
            r"(?P<solver>Because (?:there (?:is|are) no versions? of|no versions of|only the following versions"
            rf" of) (?P<solved>{_NAME})(?P<solved_rest>{_TAIL}))",
            rf"Because\s{{1,12}}only\s{{1,12}}(?P<only>{_NAME})\S{{0,60}}\s{{1,12}}"
            + _wrapped(r"(?:is|are) available and (?:you require|your project depends on) ")
            + rf"{_NAME}(?P<only_rest>{_TAIL})",
            r"Requested (?P<metadata>[A-Za-z][\w.-]{1,60})[^\n]{1,400}has (?:different|inconsistent) version",
            rf"(?P<registry>{_WORD})\S{{0,30}}\s{{1,12}}"
            + _wrapped(r"was not found in the (?:package registry|cache)"),
            rf"(?P<lacking>{_WORD}) \([\w.+]{{1,20}}\) requires Python [^\n]{{2,80}}"
            r"version solving failed",
            r"(?:Distribution `(?P<uv>[^`\n]{1,200})`[^\n]{0,60}?)?"
            r"(?P<current>doesn't have a source distribution or wheel for the current platform)",
            r"The \"?(?P<removed>tensorflow-gpu)\"? package has been removed",
            r"You tried to install \"(?P<renamed>pytorch)\"",
            rf"(?P<without>{_NAME})[ =]{{1,2}}(?P<without_version>\d[\w.+]{{0,30}})`? does not "
            r"(?:provide the extra|have an extra named) ['\"`](?P<extra>[\w.-]{1,40})",
        )
    )
)
_UNREACHABLE = late(
    r"connection broken by|NewConnectionError|name resolution|ProxyError|SSLError|Connection timed out"
    r"|CERTIFICATE_VERIFY_FAILED|Network is unreachable|Max retries exceeded|CondaHTTPError"
    r"|error sending request|dns error|CONNECTION FAILED for url"
)
_NAMES = (
    *("asked", "none", "package", "poetry", "removed", "renamed", "without"),
    *("nowheels", "solved", "only", "metadata", "registry", "lacking"),
)
_RESTS = ("asked_rest", "none_rest", "nowheels_rest", "solved_rest", "only_rest")
_EXTRAS = late(r"\[(?P<extras>[\w.,-]{1,80})\]")
_LISTED = late(
    r"(?:- (?:package |nothing provides \S{1,60} (?:\S{1,60} )?needed by )?|`|::"
    r"|[|`\u251c\u2514\u2500-]{2,4} |Package |because of: |^|\n)([A-Za-z](?:(?!-\d)[\w.-]){1,60})"
)
"""A package in conda's list of missing or conflicting packages."""
_WANTED_BY = late(r"\(from ([A-Za-z][\w.-]{1,60})[=<>!~\[)-]")
"""The package whose requirement pip cannot meet."""
_ALSO = frozenset(
    {"cuda", "cudatoolkit", "cudnn", "keras-gpu", "pytorch", "pytorch-cuda", "pytorch-gpu"}
    | {"mxnet", "paddlepaddle", "tensorrt", "torchvision", "torchaudio", "triton", "xformers"}
)
"""Other packages with CUDA builds, in addition to the ones that whygpu knows."""
_FAMILIES = (
    *("tensorflow", "tf-nightly", "tf-gpu", "jax", "torch", "pytorch", "mxnet", "paddlepaddle"),
    *(
        "cupy",
        "nvidia-",
        "faiss-gpu",
        "flash-attn",
        "spconv",
        "mmcv",
        "dgl",
        "bitsandbytes",
        "vllm",
    ),
)


def failed_install(log: Log) -> Attempt | None:
    """The first installation of a framework or of a CUDA package that failed; None if none did.

    If an index could not be reached, nothing follows from what was not found.
    """
    if log.says(_UNREACHABLE):
        return None
    found = [match for match in log.find(STATEMENTS) if _concerns_a_framework(match)]
    if not found:
        return None
    first = found[0]
    # pip reports one failure with two lines; only the first lists the releases.
    same = [match for match in found if _name(match) == _name(first)]
    groups = {
        name: next((match.groups[name] for match in same if match.groups[name]), None)
        for name in first.groups
    }
    rest = next((groups[name] for name in _RESTS if groups[name]), "") or ""
    extras = _EXTRAS.search(rest)
    version = groups["poetry_version"] or groups["without_version"] or _pinned_in(groups["uv"])
    file = _file_of(first).replace("%2B", "+") if first.groups["wheel"] else ""
    if file.count("-") > 1:
        version = file.split("-")[1]
    return Attempt(
        installer=_installer(log, first),
        line=first.line,
        lines=tuple(match.line for match in found),
        package=_name(first),
        specifier=f"=={version}" if version else _EXTRAS.sub("", rest).strip("'\"`,."),
        extras=(groups["extra"],)
        if groups["extra"]
        else tuple(extras["extras"].split(","))
        if extras
        else (),
        offered=_versions(groups["versions"]),
        file=file,
        refusal=_refusal(log, groups),
        needs_python=_needed_python(log, _name(first), groups, rest),
        indexes=tuple(dict.fromkeys(_urls(log))),
        environment=environment_of(log),
    )


def _pinned_in(distribution: str | None) -> str:
    """The version in uv's torch==2.5.1 @ registry+https://..."""
    return (distribution or "").partition("==")[2].partition(" ")[0]


def _versions(listed: str | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    return tuple(word for word in re.split(r"[,\s]+", listed) if re.match(r"\d", word))


_SKIPPED = late(
    r"wheel\(s\) were skipped as your project's environment does not support the identified "
    r"(?P<tags>abi|python|platform) tags"
)


def _refusal(log: Log, groups: dict[str, str | None]) -> Refusal:
    if groups["wheel"]:
        return "no-file" if groups["wheel"].startswith("HTTP") else "file"
    for name in ("removed", "renamed", "extra"):
        if groups[name]:
            return name
    if groups["package"]:
        return "python"
    if groups["tag"]:
        return "platform" if groups["tag"] == "platform" else "python-tag"
    skipped = log.first(_SKIPPED) if groups["poetry"] else None
    if skipped:
        return "platform" if skipped.groups["tags"] == "platform" else "python-tag"
    return "none"


_IGNORED = late(
    r"(?P<version>\d[\w.]{0,30}) Requires-Python (?P<range>[^;\n]{2,60})",
)


_POETRY_RANGE = late(
    rf"(?P<name>{_NAME}) \([\w.+]{{1,30}}\) requires Python (?P<range>[<>=!~^][<>=!~^\d.,| *]{{1,60}})"
)


def _needed_python(log: Log, name: str, groups: dict[str, str | None], rest: str) -> str:
    if groups["range"]:
        return groups["range"].strip()
    for match in log.find(_POETRY_RANGE):
        if normalised(match.groups["name"] or "") == name:
            return (match.groups["range"] or "").strip(" ,")
    pin = _PIN.fullmatch(_EXTRAS.sub("", rest))
    if pin is None:
        return ""
    ignored = {match.groups["version"]: match.groups["range"] for match in log.find(_IGNORED)}
    return (ignored.get(pin["version"]) or ignored.get(f"{pin['version']}.0") or "").strip()


_PIXI = late(r"\bpixi\b|for which no candidates were found|Virtual package '__")
_UV = late(
    r"\buv (?:pip|add|sync|lock|run)\b|No solution found when resolving|we can conclude that"
)
_POETRY = late(r"\bpoetry\b|version solving failed", re.IGNORECASE)


def _installer(log: Log, first: Match) -> Installer:
    groups = first.groups
    if groups["conda"]:
        return "pixi" if log.says(_PIXI) else "conda"
    if groups["poetry"] or groups["lacking"]:
        return "poetry"
    if groups["nowheels"] or groups["registry"] or groups["current"] or groups["only"]:
        return "uv"
    if groups["solved"]:
        return "uv" if log.says(_UV) or not log.says(_POETRY) else "poetry"
    return "pip"


def _name(match: Match) -> str:
    if match.groups["wheel"]:
        return normalised(_file_of(match).partition("-")[0])
    if match.groups["conda"]:
        words = _LISTED.findall(match.groups["conda"])
        return next((word for word in map(normalised, words) if _is_relevant(word)), "")
    if match.groups["current"]:
        return normalised((match.groups["uv"] or "").partition("==")[0])
    found = next((match.groups[part] for part in _NAMES if match.groups[part]), "") or ""
    return normalised(found)


def _file_of(match: Match) -> str:
    """For example jaxlib-0.3.14-cp38-none-any, from the line that rejects the file."""
    before = match.text.partition(".whl")[0]
    # A copied address often contains a space.
    return before.rpartition("/")[2].rpartition(": ")[2].replace(" ", "").strip("'\"")


def _concerns_a_framework(match: Match) -> bool:
    if "__cuda" in (match.groups["conda"] or ""):
        return True
    wanted_by = _WANTED_BY.findall(match.text)
    return any(_is_relevant(name) for name in (_name(match), *map(normalised, wanted_by)))


def _is_relevant(name: str) -> bool:
    return matters(name) or name in _ALSO or name.startswith(_FAMILIES)


PYPI = "https://pypi.org/simple"
_SEARCHED = late(
    r"Looking in (?:indexes|links): (?P<looked>[^\n]{1,600})"
    r"|(?P<name>--(?:extra-)?index(?:-url)?|-i|-f|--find-links|--default-index)[ =]"
    r"(?P<option>\S{8,200})"
)
_URL = late(r"https?://[^\s,'\"]{4,200}")


def _urls(log: Log) -> list[str]:
    urls = []
    for match in log.find(_SEARCHED):
        found = _URL.findall(match.groups["looked"] or match.groups["option"] or "")
        urls += [url.rstrip("/") for url in found]
        if match.groups["name"] == "--extra-index-url":
            urls.append(PYPI)
    return urls


_PYTHON_SEEN = late(
    r"\bpython(?P<command>2\.7|3\.\d{1,2})t?(?![\d.]*[<>=~])"
    r"|\bPython(?P<folder>3\d{1,2})(?:-32)?[\\/]"
    r"|^Python (?P<banner>2\.7|3\.\d{1,2})\.\d"
    r"|\b(?:[Uu]sing|require|Found)\s{1,12}C?Python\s{1,12}(?P<using>3\.\d{1,2})"
    r"|\(python (?P<pip>3\.\d{1,2})\)"
    r"|\bpy -(?P<launcher>3\.\d{1,2})\b"
    r"|requires a different Python: (?P<different>\d\.\d{1,2})"
    r"|\(e\.g\.,\s{1,12}`cp(?P<tag>3\d{1,2})t?`\)"
    r"|--python[ =](?P<option>3\.\d{1,2})",
    re.MULTILINE,
)
_OF_THE_TOOL = late(r"pipx|venvs/poetry|lib/poetry|share/uv/tools")
_FREE_THREADED = late(
    r"\bpython3\.\d{1,2}t\b|free-threading (?:build|compatible)|\(e\.g\.,\s{1,12}`cp3\d{1,2}t`\)"
    r"|CPython\s{1,12}3\.\d{1,2}\s{1,12}\(`cp3\d{1,2}t`\)"
)
_PYPY = late(r"\bpypy(?:3(?:\.\d{1,2})?)?\b|\[PyPy |`pypy3|`pp3", re.IGNORECASE)
_BITS_32 = late(
    r"\b32 bit \(Intel\)|Python3\d{1,2}-32\b|\(e\.g\.,\s{1,12}`win32`\)|linux_i686|\bi686\b"
    r"|\barmv[67]l\b"
)
_NOT_OURS = late(
    r"\S{1,200}\.whl\b|following\s{1,12}(?:Python\s{1,12}ABI\s{1,12}tags?|platforms?):"
    r"(?:\s{1,12}`[\w.]{2,60}`,?){1,40}"
)
"""Names of wheels, and lists of the wheels that exist: they do not describe the environment."""
_SYSTEMS: tuple[tuple[System, re.Pattern[str]], ...] = (
    (
        "macos",
        late(
            r"(?<!/c)(?<!:)/Users/|macosx_\d|\bDarwin\b(?!['\"])|\bmacOS\b|Mac ?Book|/opt/homebrew"
            r"|\bosx-(?:64|arm64)\b|\bApple M\d|\bMac[\w.-]{0,40} [^\n]{0,60}%"
        ),
    ),
    (
        "windows",
        late(
            r"\b[A-Z]:\\|\b[a-z]:\\\w{2}|\bwin_amd64\b|\bwin-64\b|\bon win32\b|\bWindows\b(?!['\"])|MINGW64|`win32`"
        ),
    ),
    (
        "linux",
        late(
            r"/home/|/usr/(?!local/(?:Cellar|opt))|/root/|/mnt/c/|linux_\w|linux-(?:64|aarch64)\b"
            r"|\bUbuntu\b|\bDebian\b|\bAlpine\b|GNU/Linux|piwheels|\broot@\w{6,}:"
        ),
    ),
)
_MACHINES = (
    ("armv7l", late(r"\barmv[67]l\b")),
    ("i686", late(r"linux_i686|\bi686\b")),
    ("aarch64", late(r"aarch64|\bJetson\b|\bJetPack\b|\bL4T\b|\btegra\b", re.IGNORECASE)),
    (
        "arm64",
        late(r"macosx_\d{1,2}_\d{1,2}_arm64|\bosx-arm64\b|\bApple M\d|\barm64\b|/opt/homebrew"),
    ),
    ("x86_64", late(r"x86_64|\bAMD64\b|\blinux-64\b|\bosx-64\b|\bwin-64\b|win_amd64")),
)
_MUSL = late(r"musllinux|\bAlpine\b|\bapk add\b|\bmusl\b", re.IGNORECASE)
_GLIBC = late(r"\bglibc[ =_-]{1,3}(?:version )?(\d\.\d{1,2})\b|GLIBC (\d\.\d{1,2})\b")
_PIP = late(
    r"[Yy]ou are using pip version (\d{1,2}(?:\.\d{1,2}){0,2})|^pip (\d{1,2}(?:\.\d{1,2}){1,2}) from"
    r"|new release of pip(?: available)?: (\d{1,2}(?:\.\d{1,2}){1,2})",
    re.MULTILINE,
)


def environment_of(log: Log) -> Environment:
    """What the log shows of the Python and of the system that it was written on."""
    text = _NOT_OURS.sub("", log.text)
    system = _system(text)
    return Environment(
        python=_python(log),
        python_build=_python_build(text),
        system=system,
        machine=_machine(text, system),
        musl=bool(_MUSL.search(text)),
        glibc=_first_group(_GLIBC, text),
        pip=_first_group(_PIP, text),
    )


def _python(log: Log) -> str:
    """The one Python that the log mentions; empty if there are several."""
    seen = set()
    for match in log.find(_PYTHON_SEEN):
        if _OF_THE_TOOL.search(match.text):
            continue
        version = next(value for value in match.groups.values() if value)
        seen.add(version if "." in version else f"{version[0]}.{version[1:]}")
    return seen.pop() if len(seen) == 1 else ""


def _python_build(text: str) -> PythonBuild:
    if _PYPY.search(text):
        return "pypy"
    if _FREE_THREADED.search(text):
        return "free-threaded"
    return "32-bit" if _BITS_32.search(text) else ""


def _system(text: str) -> System:
    seen = [system for system, pattern in _SYSTEMS if pattern.search(text)]
    if "linux" in seen and "/mnt/c/" in text:
        return "linux"
    return seen[0] if len(seen) == 1 else ""


def _machine(text: str, system: System) -> str:
    seen = [machine for machine, pattern in _MACHINES if pattern.search(text)]
    if len(seen) != 1:
        return ""
    if seen[0] in ("aarch64", "arm64"):
        return "arm64" if system == "macos" else "aarch64"
    return seen[0]


def _first_group(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return next((group for group in match.groups() if group), "") if match else ""
