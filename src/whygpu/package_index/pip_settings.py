"""Which package index pip uses: its environment variables, its configuration, or the public one."""

from __future__ import annotations

import base64
import os
import re
import shutil
import sys
import urllib.parse
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.host.local import LocalHost
from whygpu.model.observed import Known

PUBLIC_INDEX = "https://pypi.org/simple"
_TIME_LIMIT_SECONDS = 30.0
_SETTING = re.compile(r"(?:global|install|:env:)\.(index-url|cert)='(.*)'")


class IndexSettings(NamedTuple):
    url: str
    """Without a user name and password, and without a slash at the end."""
    authorization: str = ""
    """The value of the Authorization header for this index; empty if it needs none."""
    certificates: str = ""
    """A file with the certificates to trust; empty for those of the system."""


def configured_index() -> IndexSettings:
    """The index that pip is configured for."""
    url, certificates = os.environ.get("PIP_INDEX_URL"), os.environ.get("PIP_CERT")
    if url is None or certificates is None:
        stored = _pip_config()
        url = url or stored.get("index-url")
        certificates = certificates or stored.get("cert")
    return settings_of(url or PUBLIC_INDEX, certificates or "")


def settings_of(url: str, certificates: str = "") -> IndexSettings:
    """The settings for a URL, which may contain a user name and a password."""
    try:
        parts = urllib.parse.urlsplit(url.strip())
    except ValueError:
        # Without the message of Python, which may quote the user name and the password.
        raise UsageError(
            "the address of pip's package index is not valid; `pip config list` shows it, unless "
            "PIP_INDEX_URL sets it"
        ) from None
    place = parts.netloc.rpartition("@")[2]
    plain = urllib.parse.urlunsplit((parts.scheme, place, parts.path, "", "")).rstrip("/")
    if parts.username is None:
        return IndexSettings(plain, "", certificates)
    user, password = (urllib.parse.unquote(part or "") for part in (parts.username, parts.password))
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return IndexSettings(plain, f"Basic {token}", certificates)


def _pip_config() -> dict[str, str]:
    """The settings that `pip config list` prints; none if there is no pip."""
    commands: list[tuple[str, ...]] = [(sys.executable, "-I", "-m", "pip", "config", "list")]
    if found := shutil.which("pip"):
        commands.append((found, "config", "list"))
    for command in commands:
        answer = LocalHost().run(command, timeout=_TIME_LIMIT_SECONDS)
        if isinstance(answer, Known) and answer.value.code == 0:
            return dict(_SETTING.findall(answer.value.stdout))
    return {}
