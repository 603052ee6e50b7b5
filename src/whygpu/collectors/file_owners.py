"""Which distribution installed a library file, according to the records of the installers."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from whygpu.host.base import Host
from whygpu.model.observed import Known
from whygpu.model.target import Interpreter
from whygpu.tables.distributions import normalised

_LISTED = re.compile(r"^([^,\n]+\.so(?:\.[\d.]+)?),[^,\n]*,(\d*)\r?$", re.M)
_DIST_INFO = re.compile(r"((?:nvidia|tensorrt|torch)[\w.]*)-([^-]+)\.dist-info")
_CONDA_PACKAGE = re.compile(r"((?:cuda|libcu|libnv|cudnn|nccl)[\w-]*)-([^-]+)-[^-]+\.json")
_RECORD_LIMIT = 1 << 22


class Owner(NamedTuple):
    distribution: str
    version: str
    record: str
    """The file that says so."""
    size: int | None
    """The file's size when it was installed, if it is recorded."""


class Owners:
    """Reads an installer's records on the first request for a file of its folder."""

    def __init__(self, host: Host, target: Interpreter) -> None:
        self._host = host
        self._sites = sorted(target.paths, key=len, reverse=True)
        self._prefix = target.prefix
        self._known: dict[str, dict[str, Owner]] = {}

    def of(self, path: str) -> Owner | None:
        site = next((site for site in self._sites if site and path.startswith(f"{site}/")), None)
        if site is not None:
            return self._wheels(site).get(os.path.relpath(path, site))
        if path.startswith(f"{self._prefix}/"):
            return self._conda().get(os.path.relpath(path, self._prefix))
        return None

    def _wheels(self, site: str) -> dict[str, Owner]:
        if site not in self._known:
            self._known[site] = {}
            for folder in self._entries(site):
                match = _DIST_INFO.fullmatch(folder)
                if match is not None:
                    name = normalised(match[1])
                    record = os.path.join(site, folder, "RECORD")
                    self._known[site].update(self._recorded(record, name, match[2]))
        return self._known[site]

    def _recorded(self, record: str, name: str, version: str) -> dict[str, Owner]:
        text = self._host.read(record, _RECORD_LIMIT)
        if not isinstance(text, Known):
            return {}
        return {
            path: Owner(name, version, record, int(size) if size else None)
            for path, size in _LISTED.findall(text.value)
        }

    def _conda(self) -> dict[str, Owner]:
        if self._prefix not in self._known:
            found: dict[str, Owner] = {}
            metadata = os.path.join(self._prefix, "conda-meta")
            for name in self._entries(metadata):
                match = _CONDA_PACKAGE.fullmatch(name)
                record = os.path.join(metadata, name)
                text = self._host.read(record, _RECORD_LIMIT) if match is not None else None
                if match is not None and isinstance(text, Known):
                    for path in re.findall(r'"(lib/[^"]+\.so[^"]*)"', text.value):
                        found[path] = Owner(match[1], match[2], record, None)
            self._known[self._prefix] = found
        return self._known[self._prefix]

    def _entries(self, folder: str) -> tuple[str, ...]:
        answer = self._host.list(folder)
        return answer.value if isinstance(answer, Known) else ()
