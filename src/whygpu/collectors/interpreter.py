"""The target's Python: which one it is, and where it looks for packages."""

from __future__ import annotations

import json
import os.path
import re
from typing import Any

from whygpu.host.base import Completed, Host
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.target import Interpreter

TIME_LIMIT = 10.0
OLDEST = (3, 6)

# Runs in the target, which may be Python 3.6: standard library only, and as little of it as
# possible. Its answer is one line among others, because sitecustomize and .pth files may print.
_SCRIPT = r"""
import sys
sys.path[:] = [path for path in sys.path if path]  # the current folder may hold a json.py
import json, os
site = sys.modules.get("site")
enabled = bool(getattr(site, "ENABLE_USER_SITE", False))
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (AttributeError, OSError, ValueError):
    libc = ""
if sys.platform == "linux":
    platform = "linux_" + (os.uname().machine if sys.maxsize > 2 ** 32 else "i686")
else:
    import sysconfig
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
print("\n" + json.dumps({
    "executable": sys.executable,
    "version": sys.version.split()[0],
    "numbers": sys.version_info[:2],
    "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
    "prefix": sys.prefix,
    "base_prefix": getattr(sys, "base_prefix", sys.prefix),
    "user_site": site.getusersitepackages() if enabled else None,
    "paths": sys.path,
    "abi_flags": getattr(sys, "abiflags", ""),
    "platform": platform,
    "libc": libc,
}))
"""

_FACTS = set(re.findall(r'^    "(\w+)":', _SCRIPT, re.MULTILINE))
LONGEST_REASON = 160
LOST_BASE = "was made from a Python that is no longer there: make the environment anew"


class NoInterpreter(Exception):
    """What was named as the target, or what stands in for it, is not a Python interpreter."""


def find_default(host: Host) -> str:
    """The interpreter a user means without saying so: the active environment's, else PATH's."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = host.environ.get(variable)
        python = _in_environment(host, folder) if folder else None
        if python is not None:
            return python
        if folder and _lost_base(host, folder):
            # The next Python on PATH would be another environment than the one that is meant.
            raise NoInterpreter(f"the active environment, {folder}, {LOST_BASE}")
    python = on_path(host, "python") or on_path(host, "python3")
    if python is None:
        raise NoInterpreter(
            "no Python to examine: no virtual or conda environment is active and PATH has neither "
            "python nor python3; name one with --python"
        )
    return python


def resolve(host: Host, given: str) -> str:
    """The interpreter meant by --python: a file, an environment's folder, or a command's name."""
    path = os.path.expanduser(given)
    facts = host.stat(path)
    if isinstance(facts, Known) and facts.value.kind == "folder":
        python = _in_environment(host, path)
        if python is None and _lost_base(host, path):
            raise NoInterpreter(f"{given} {LOST_BASE}")
        if python is None:
            inside = host.stat(os.path.join(path, "bin", "python"))
            if isinstance(inside, Unknown):
                raise NoInterpreter(inside.reason)
            raise NoInterpreter(f"{given} is a folder without bin/python: no Python environment")
        return python
    if isinstance(facts, Known) and (os.sep in given or on_path(host, given) is None):
        if not _is_program(host, path):
            raise NoInterpreter(f"{given} is not an executable file")
        return os.path.abspath(path)
    if os.sep in given and _lost_base(host, os.path.dirname(os.path.dirname(path))):
        raise NoInterpreter(f"{given} {LOST_BASE}")
    if os.sep in given:
        missing = f"{given}: there is no such file"
        raise NoInterpreter(facts.reason if isinstance(facts, Unknown) else missing)
    python = on_path(host, given)
    if python is None:
        raise NoInterpreter(f"{given}: there is no such file or folder, nor a command on PATH")
    return python


def collect(host: Host, python: str) -> Observed[Interpreter]:
    """Start the target once and let it tell about itself."""
    answer = host.run([python, "-c", _SCRIPT], timeout=TIME_LIMIT)
    if isinstance(answer, Absent):
        return Unknown(f"{python} does not exist")
    if isinstance(answer, Unknown):
        return answer
    facts = _parse(answer.value)
    if facts is None:
        return Unknown(f"{python} does not start: {_failure(answer.value)}")
    if tuple(facts["numbers"]) < OLDEST:
        return Unknown(f"{python} is Python {facts['version']}; whygpu examines 3.6 and later")
    # What was started may be a wrapper, such as pyenv's shims.
    return Known(_interpreter(host, facts["executable"] or python, facts), python)


def layout(host: Host, python: str) -> Observed[Interpreter]:
    """What the files around an interpreter that does not start still tell."""
    prefix = os.path.dirname(os.path.dirname(python))
    library = os.path.join(prefix, "lib")
    names = host.list(library)
    if not isinstance(names, Known):
        return Unknown(f"{python} does not start, and {library} cannot be read either")
    versions = [name for name in names.value if re.fullmatch(r"python\d\.\d+", name)]
    if len(versions) != 1:
        return Unknown(f"{python} does not start, and {library} has {len(versions)} Pythons in it")
    settings = pyvenv(host, prefix)
    major, minor = (int(number) for number in versions[0][len("python") :].split("."))
    facts = {
        "version": settings.get("version_info") or settings.get("version") or f"{major}.{minor}",
        "numbers": (major, minor),
        "implementation": settings.get("implementation", "cpython").lower(),
        "prefix": prefix,
        "base_prefix": os.path.dirname(settings["home"]) if "home" in settings else prefix,
        "user_site": None,
        "paths": [os.path.join(library, versions[0], "site-packages")],
        "abi_flags": "",
        "platform": f"linux_{host.platform.machine}",
        "libc": "",
    }
    return Known(_interpreter(host, python, facts), f"files under {prefix}")


def _interpreter(host: Host, python: str, facts: dict[str, Any]) -> Interpreter:
    prefix = facts["prefix"]
    conda = host.stat(os.path.join(prefix, "conda-meta"))
    return Interpreter(
        path=python,
        version=facts["version"],
        implementation=facts["implementation"],
        prefix=prefix,
        isolated=prefix != facts["base_prefix"] or isinstance(conda, Known),
        user_site=_user_site(facts["user_site"], facts["paths"]),
        paths=tuple(facts["paths"]),
        wheel_tags=_wheel_tags(facts),
    )


def _user_site(folder: str | None, paths: list[str]) -> Observed[str]:
    if folder is None:
        return Absent("site.ENABLE_USER_SITE, which is off")
    if folder not in paths:
        return Absent(f"{folder}, which is not on sys.path")
    return Known(folder, "site.getusersitepackages()")


def _wheel_tags(facts: dict[str, Any]) -> tuple[str, ...]:
    major, minor = facts["numbers"]
    prefix = {"cpython": "cp", "pypy": "pp"}.get(facts["implementation"], facts["implementation"])
    python = f"{prefix}{major}{minor}"
    tags = [python]
    if facts["abi_flags"]:
        tags.append(python + facts["abi_flags"])
    if prefix == "cp" and "t" not in facts["abi_flags"]:
        tags.append("abi3")
    tags.append(f"py{major}")
    platform = facts["platform"]
    glibc = re.fullmatch(r"glibc (\d+)\.(\d+).*", facts["libc"])
    if glibc and platform.startswith("linux_"):
        tags.append(f"manylinux_{glibc[1]}_{glibc[2]}_{platform[len('linux_') :]}")
    tags.append(platform)
    return tuple(tags)


def _parse(completed: Completed) -> dict[str, Any] | None:
    if completed.code != 0 or completed.timed_out:
        return None
    # What is registered to run at the exit may print as well.
    for line in reversed(completed.stdout.splitlines()):
        try:
            facts = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(facts, dict) and facts.keys() == _FACTS:
            return facts
    return None


def _failure(completed: Completed) -> str:
    if completed.timed_out:
        return f"no answer in {TIME_LIMIT:g} s"
    if completed.code == 0:
        return "its answer is not the one a Python interpreter gives"
    told = _telling_line(completed.stderr)
    ended = f"signal {-completed.code}" if completed.code < 0 else f"exit code {completed.code}"
    return f"{ended}: {told[:LONGEST_REASON]}" if told else ended


def _telling_line(text: str) -> str:
    """Python ends with the exception, or nearly; other programs begin with what is wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return errors[-1] if errors else lines[0] if lines else ""


def pyvenv(host: Host, prefix: str) -> dict[str, str]:
    """What a virtual environment's pyvenv.cfg says of how it was made."""
    text = host.read(os.path.join(prefix, "pyvenv.cfg"))
    if not isinstance(text, Known):
        return {}
    pairs = (line.partition("=") for line in text.value.splitlines())
    return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}


def _lost_base(host: Host, folder: str) -> bool:
    """Whether an environment has links named python and none of them leads anywhere."""
    programs = os.path.join(folder, "bin")
    names = host.list(programs)
    pythons = [
        name for name in ("python", "python3") if isinstance(names, Known) and name in names.value
    ]
    return bool(pythons) and all(
        isinstance(host.stat(os.path.join(programs, name)), Absent) for name in pythons
    )


def _in_environment(host: Host, folder: str) -> str | None:
    names = ("python", "python3")
    paths = (os.path.join(os.path.abspath(folder), "bin", name) for name in names)
    return next((path for path in paths if _is_program(host, path)), None)


def on_path(host: Host, name: str) -> str | None:
    """The file that a shell starts for a command's name."""
    folders = host.environ.get("PATH", "").split(os.pathsep)
    paths = (os.path.join(folder, name) for folder in folders if folder)
    return next((path for path in paths if _is_program(host, path)), None)


def _is_program(host: Host, path: str) -> bool:
    facts = host.stat(path)
    return isinstance(facts, Known) and facts.value.kind == "file" and "x" in facts.value.mode
