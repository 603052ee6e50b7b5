"""The one gate through which everything passes that leaves the machine.

A snapshot is made to be posted in a public issue. Home folders become ~, and names of users and
hosts, network addresses, hardware identifiers and anything shaped like a key are removed from
values; names of fields are never touched, and neither is a word in prose that happens to equal a
user's name.
"""

from __future__ import annotations

import re
from typing import TypeVar

from whygpu.host.base import Platform
from whygpu.model.codec import decode, encode, vocabulary
from whygpu.model.snapshot import Snapshot

T = TypeVar("T")

_HOMES = re.compile(
    r"(?:/home/(?!linuxbrew\b)|/Users/(?!Shared\b)|[A-Za-z]:\\Users\\)[^/\\\s:;,'\"<>]+"
)
_ROOT_HOME = re.compile(r"(?<![\w./-])/root(?=/|\b(?![\w.-]))")
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # key=value and "Authorization: Bearer value", whatever the value looks like
    (
        re.compile(
            r"(?i)((?:token|secret|passw(?:or)?d|api[_-]?key|credential)[\w.-]{0,40})"
            r"(\s*[=:]\s*)(\"?)[^\s\"',;&]{4,}"
        ),
        r"\1\2\3<removed>",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 <removed>"),
    # user:password@ in an address
    (re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+@"), "<removed>@"),
    # well-known shapes of keys
    (
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,}"
            r"|sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}"
            r"|AIza[A-Za-z0-9_-]{30,}|glpat-[A-Za-z0-9_-]{16,}|pypi-[A-Za-z0-9_-]{16,}"
            r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)"
        ),
        "<removed>",
    ),
    (re.compile(r"\b(GPU|MIG)-[0-9a-fA-F]{4,}(?:-[0-9a-fA-F/-]*)?"), r"\1-<removed>"),
    (
        re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
        "<uuid removed>",
    ),
    (re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), "<mac removed>"),
    (re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{0,4}(?![\w:])"), "<ip removed>"),
    # long runs of letters and digits mixed: keys that nobody has listed (but no C++ symbols)
    (
        re.compile(
            r"(?<![\w/.+-])(?!_Z)(?=[A-Za-z0-9+_-]*[A-Z])(?=[A-Za-z0-9+_-]*[a-z])(?=[A-Za-z0-9+_-]*\d)"
            r"[A-Za-z0-9+_-]{32,}={0,2}(?![\w/.-])"
        ),
        "<removed>",
    ),
)

_NOBODYS_NAMES = frozenset(
    ("", "root", "localhost", "nvidia", "python", "lib", "bin", "numpy", "conda", "ubuntu", "user")
)
"""Names that tell nothing of anyone, and parts of every path and package name."""
_HARMLESS = re.compile(r"[a-z_.-]{0,15}|[\d.+]{0,9}|[a-z-]+ [\d.]{1,8}")
"""Short words and versions, which are most of a snapshot and cannot hold anything private."""
_IPV4 = re.compile(
    r"(?<![\w.:<>~=-])(?!127\.0\.0\.1|0\.0\.0\.0)"
    r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:(?=[:/]\d)|(?![\w.-]))"
)
_BEFORE_VERSION = re.compile(
    r"(?i)(?:\bv|versions?|release|[<>=~!]=|cu\d\d|\b(?:nvidia|cu|jax|torch|tensorflow|keras|tf|"
    r"lib|numpy|protobuf|triton|python|pip|nccl|runtime|driver|plugin|pjrt)[\w.-]*)[\s:=\"'(]*$"
)
_VERSION_FIELDS = frozenset(
    ("version", "requires", "requirement", "owner", "found", "cuda", "cudnn")
)
"""Fields that hold versions: NVIDIA's packages have four numbers (12.9.2.10), as addresses do."""


def _address(match: re.Match[str]) -> str:
    """Four numbers are an address, unless they start with 0 or the words before name software."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    is_version = match.group().startswith("0.") or _BEFORE_VERSION.search(before)
    return match.group() if is_version else "<ip removed>"


def _tells_something(name: str) -> bool:
    """A machine may be called gpu and its user nvidia; a snapshot without these words is none."""
    return len(name) > 1 and name not in _NOBODYS_NAMES | vocabulary(Snapshot)


class Redactor:
    """Cleans text. Knows whose machine it is, to recognise its user and its name in paths."""

    def __init__(self, platform: Platform) -> None:
        rules: list[tuple[re.Pattern[str], str]] = []
        home = platform.home.rstrip("/")
        if len(home) > 1:
            rules.append((re.compile(rf"(?<![\w.-]){re.escape(home)}(?![\w.-])"), "~"))
        rules += [(_HOMES, "~"), (_ROOT_HOME, "~")]
        host_name = platform.host_name.partition(".")[0]
        if _tells_something(platform.user):
            name = re.escape(platform.user)
            # Only where a path or an address names a person: prose may use the same word.
            rules.append((re.compile(rf"(?<=[/\\]){name}(?=[/\\:;,'\")\s]|$)"), "<user>"))
            rules.append((re.compile(rf"(?<![\w.-]){name}(?=@)"), "<user>"))
        if len(host_name) > 2 and _tells_something(host_name):
            name = re.escape(host_name)
            # With its domain, whether or not the machine itself knows it.
            rules.append((re.compile(rf"(?<![\w-]){name}(?:\.[A-Za-z][\w-]*)*(?![\w-])"), "<host>"))
        self._rules = (*rules, *_RULES)
        self._cleaned: dict[tuple[str, bool], str] = {}
        names = {platform.user: "<user>", host_name: "<host>", platform.host_name: "<host>"}
        self._names = {name: word for name, word in names.items() if _tells_something(name)}

    def text(self, text: str, *, versions: bool = False) -> str:
        """`versions`: four numbers with dots are a version here, not an address."""
        if text in self._names:
            return self._names[text]
        if _HARMLESS.fullmatch(text):
            return text
        # Two thirds of a snapshot's strings are said more than once.
        cleaned = self._cleaned.get((text, versions))
        if cleaned is None:
            cleaned = self._cleaned[text, versions] = self._clean(text, versions)
        return cleaned

    def _clean(self, text: str, versions: bool) -> str:
        for pattern, replacement in self._rules:
            text = pattern.sub(replacement, text)
        return text if versions else _IPV4.sub(_address, text)

    def tree(self, value: object, field: str = "") -> object:
        """A JSON value with every string cleaned; the keys of objects stay as they are."""
        if isinstance(value, str):
            return self.text(value, versions=field in _VERSION_FIELDS)
        if isinstance(value, list):
            return [self.tree(item, field) for item in value]
        if isinstance(value, dict):
            return {
                key: self.tree(item, field if key == "known" else key)
                for key, item in value.items()
            }
        return value

    def value(self, value: T) -> T:
        """A frozen value of the model, cleaned."""
        return decode(type(value), self.tree(encode(value)))
