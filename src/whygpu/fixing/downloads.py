"""How much an installation would download, so that users can be told before it happens."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from whygpu.model.commands import install_words
from whygpu.model.remedy import Action, Install, steps_of
from whygpu.model.target import Installer

_TIME_LIMIT = 120.0
_ANSWER_SECONDS = 10.0
_AT_ONCE = 8


class Download(NamedTuple):
    packages: int
    size_bytes: int


def expected(
    action: Action, installer: Installer, python: str, environ: Mapping[str, str], folder: str
) -> Download | None:
    """What pip would download for the action; None if it does not say."""
    installs = [step for step in steps_of(action) if isinstance(step, Install)]
    wanted = [step for step in installs if step.requirements]
    if installer.tool != "pip" or not wanted:
        return None
    urls: list[str] = []
    for step in wanted:
        found = _resolved(step, python, environ, folder)
        if found is None:
            return None
        urls += found
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sizes = list(pool.map(_size, urls))
    known = [size for size in sizes if size is not None]
    return Download(len(urls), sum(known)) if len(known) == len(sizes) else None


def _resolved(
    step: Install, python: str, environ: Mapping[str, str], folder: str
) -> list[str] | None:
    """The addresses of the packages that pip chooses."""
    descriptor, listing = tempfile.mkstemp(dir=folder)
    os.close(descriptor)
    words = ("--dry-run", "--quiet", "--report", listing)
    try:
        done = subprocess.run(
            [python, "-m", "pip", *install_words(step), *words],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIME_LIMIT,
        )
        if done.returncode:
            return None
        with open(listing, encoding="utf-8") as file:
            return [item["download_info"]["url"] for item in json.load(file)["install"]]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        return None
    finally:
        os.unlink(listing)


def _size(url: str) -> int | None:
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, ValueError, TypeError):
        return None
