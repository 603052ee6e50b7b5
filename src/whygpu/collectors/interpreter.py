"""The target's Python interpreter, and where it looks for packages."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from whygpu.errors import Option, UsageError
from whygpu.host.base import Completed, FileFacts, Host
from whygpu.host.local import LocalHost
from whygpu.host.own_environment import made_for_whygpu, own_python
from whygpu.model.codec import decode
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.outside_text import excerpt
from whygpu.model.target import FoundModule, Interpreter

TIME_LIMIT = 10.0
OLDEST = (3, 6)

# Runs in the target, which may be Python 3.6: standard library only, and as little of it as
# possible. Its answer is one line among others, because sitecustomize and .pth files may print.
_SCRIPT = r"""
import sys
sys.path[:] = [path for path in sys.path if path]  # the current folder may hold a json.py
import importlib.util, json, os
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
def place_of(name):
    # The target's own finders know archives, editable installs and whatever else there is. A
    # package without an origin is a mere folder of that name, and no framework.
    try:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin in (None, "namespace"):
            return {"absent": name}
        found = list(spec.submodule_search_locations or [spec.origin])
        return {"known": str(found[0]), "source": "the target's import system"}
    except Exception as error:
        return {"unknown": "%s: %s" % (type(error).__name__, error)}
print("\n" + json.dumps({
    "executable": sys.executable,
    "version": sys.version.split()[0],
    "numbers": sys.version_info[:2],
    "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
    "prefix": sys.prefix,
    "base_prefix": getattr(sys, "base_prefix", sys.prefix),
    "user_site": site.getusersitepackages() if enabled else None,
    "paths": [path for path in sys.path if isinstance(path, str)],
    "abi_flags": getattr(sys, "abiflags", ""),
    "platform": platform,
    "libc": libc,
    "modules": [{"name": name, "place": place_of(name)} for name in (
        "tensorflow", "keras", "jax", "torch", "numpy"
    )],
}))
"""


class _Facts(NamedTuple):
    """The script's answer. Its types are checked, because the started program may be anything."""

    executable: str | None
    version: str
    numbers: tuple[int, int]
    implementation: str
    prefix: str
    base_prefix: str
    user_site: str | None
    paths: tuple[str, ...]
    abi_flags: str
    platform: str
    libc: str
    modules: tuple[FoundModule, ...]


_START_UP = re.compile(
    r"^Error (?:in (?P<module>\w+customize)|processing line (?P<line>\d+) of (?P<file>.+?))[:;]"
)
"""What Python's site module prints about a start-up file that fails."""
_MOST_COMPLAINTS = 8
_NOT_ASKED = Unknown("the interpreter was not queried")
_LIBRARY = re.compile(r"python\d\.\d+t?")
"""The folder of the standard library; t is for free-threaded builds."""
_VERSIONED = re.compile(r"python3\.(\d{1,3})")
LONGEST_REASON = 160
LOST_BASE = "was created from a Python that no longer exists: create the environment again"


class NoInterpreter(UsageError):
    """The target, named or default, is not a Python interpreter."""


def find(host: Host, python: str | None) -> str:
    """The interpreter that `python` names; None means that of the active environment."""
    return find_default(host) if python is None else resolve(host, python)


def find_default(host: Host) -> str:
    """The default interpreter: that of the active environment, else whygpu's own, if its
    environment has a framework, else the one on PATH."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = host.environ.get(variable)
        python = _in_environment(host, folder) if folder else None
        if python is not None:
            return python
        if folder and _lost_base(host, folder):
            # The next Python on PATH would belong to another environment.
            raise NoInterpreter(f"the active environment, {folder}, {LOST_BASE}")
        if folder and _hides_its_python(host, folder, variable):
            raise NoInterpreter(
                f"{variable} names {folder} as the active environment, which has no Python that "
                "can be started; deactivate it, or name another with ",
                Option("python"),
            )
    is_local = isinstance(host, LocalHost)
    python = own_python() if is_local else None
    if python is None:
        passed_over = made_for_whygpu() if is_local else None
        names = ("python", "python3", *_names_with_version(host))
        python = next(filter(None, (on_path(host, name, passed_over) for name in names)), None)
    if python is None:
        raise NoInterpreter(
            "no Python to examine: no virtual or conda environment is active and PATH has no "
            "Python; name one with ",
            Option("python"),
        )
    return python


def _names_with_version(host: Host) -> Iterator[str]:
    """python3.12 before python3.9: a system may have the name with the version alone."""
    folders = host.environ.get("PATH", "").split(os.pathsep)
    listed = (host.list(folder) for folder in folders if folder)
    names = (name for found in listed if isinstance(found, Known) for name in found.value)
    numbers = {int(match[1]) for name in names if (match := _VERSIONED.fullmatch(name))}
    return (f"python3.{number}" for number in sorted(numbers, reverse=True))


def _hides_its_python(host: Host, folder: str, variable: str) -> bool:
    """Whether an environment exists, but its Python cannot be seen or started.

    If the environment was deleted, the Python on PATH is the right one. A conda environment may
    have no Python of its own; a virtual environment always has one.
    """
    if variable == "VIRTUAL_ENV" and isinstance(host.stat(folder), Known):
        return True
    return isinstance(host.stat(_pythons(host, folder)[0]), Unknown)


def resolve(host: Host, given: str) -> str:
    """The interpreter that was named: a file, an environment's folder, or a command's name."""
    path = os.path.expanduser(given)
    facts = host.stat(path)
    if isinstance(facts, Known) and facts.value.kind == "folder":
        python = _in_environment(host, path)
        if python is None and _lost_base(host, path):
            raise NoInterpreter(f"{given} {LOST_BASE}")
        if python is None:
            expected = _pythons(host, path)[0]
            inside = host.stat(expected)
            if isinstance(inside, Unknown):
                raise NoInterpreter(inside.reason)
            missing = os.path.relpath(expected, path)
            raise NoInterpreter(f"{given} is a folder without {missing}: not a Python environment")
        return python
    has_folder = bool(os.path.dirname(given))
    if isinstance(facts, Known) and (has_folder or on_path(host, given) is None):
        if not _is_program(host, path):
            raise NoInterpreter(f"{given} is not an executable file")
        return os.path.abspath(path)
    if has_folder and _lost_base(host, os.path.dirname(os.path.dirname(path))):
        raise NoInterpreter(f"{given} {LOST_BASE}")
    if has_folder:
        missing = f"{given}: there is no such file"
        raise NoInterpreter(facts.reason if isinstance(facts, Unknown) else missing)
    python = on_path(host, given)
    if python is None:
        raise NoInterpreter(f"{given}: there is no such file or folder, nor a command on PATH")
    return python


def collect(host: Host, python: str) -> Observed[Interpreter]:
    """Start the target once and let it describe itself."""
    answer = host.run([python, "-c", _SCRIPT], timeout=TIME_LIMIT)
    if isinstance(answer, Absent):
        return Unknown(f"{python} does not exist")
    if isinstance(answer, Unknown):
        return answer
    facts = _parse(answer.value)
    if facts is None:
        return Unknown(f"{python} does not start: {_failure(answer.value)}")
    if facts.numbers < OLDEST:
        return Unknown(f"{python} is Python {facts.version}; whygpu examines 3.6 and later")
    unseen = _out_of_sight(host, python, facts)
    if unseen is not None:
        return unseen
    # The started program may be a wrapper, such as one of pyenv's shims.
    found = _interpreter(host, facts.executable or python, facts)
    target = found._replace(
        modules=Known(facts.modules, "the target's import system"),
        complaints=Known(_complaints(answer.value.stderr), f"standard error of {python}"),
        in_current_folder=Known(_in_current_folder(host, facts.modules), "the current folder"),
    )
    return Known(target, python)


def _in_current_folder(host: Host, modules: tuple[FoundModule, ...]) -> tuple[FoundModule, ...]:
    """Modules that Python would find before those that are installed, as the path begins with the
    folder of the program. A mere folder of that name, without __init__.py, comes after them."""
    found = []
    for module in modules:
        for file in (os.path.join(module.name, "__init__.py"), f"{module.name}.py"):
            near = host.stat(os.path.join(os.curdir, file))
            if not isinstance(near, Known) or near.value.kind == "folder":
                continue  # a folder of data may be called torch.py
            if isinstance(module.place, Known):
                path = near.value.real_path
                place = os.path.dirname(path) if os.path.dirname(file) else path
                if not _same(host, place, module.place.value):
                    found.append(FoundModule(module.name, Known(place, "the current folder")))
                break
    return tuple(found)


def _same(host: Host, one: str, other: str) -> bool:
    first, second = host.stat(one), host.stat(other)
    return (
        isinstance(first, Known)
        and isinstance(second, Known)
        and first.value.identity == second.value.identity
    )


def _out_of_sight(host: Host, python: str, facts: _Facts) -> Unknown | None:
    """Whether the environment has packages that this interpreter does not see.

    Python silently leaves out a folder that it cannot read. It treats a virtual environment without
    pyvenv.cfg as the installation that the environment was created from. "No framework is
    installed" would then be true of what Python sees, but not of the environment.
    """
    around = os.path.dirname(os.path.dirname(python))
    lost = around != facts.prefix and around != os.path.join(host.platform.home, ".local")
    for prefix in dict.fromkeys((facts.prefix, *((around,) if lost else ()))):
        folder = os.path.join(prefix, "lib", _library_name(facts), "site-packages")
        seen = host.stat(folder)
        if isinstance(seen, Unknown):
            return Unknown(f"the packages of {python} cannot be read: {seen.reason}")
        # A system's own Python may keep its packages elsewhere.
        own = lost or facts.prefix != facts.base_prefix
        if own and isinstance(seen, Known) and not _leads_to(host, facts.paths, seen.value):
            return Unknown(
                f"{python} does not search {folder}: "
                f"{_why_out_of_sight(host, around)}; create the environment again"
            )
    return None


def _library_name(facts: _Facts) -> str:
    suffix = "t" if "t" in facts.abi_flags else ""
    return "python{}.{}".format(*facts.numbers) + suffix


def _leads_to(host: Host, paths: tuple[str, ...], folder: FileFacts) -> bool:
    return any(
        isinstance(facts, Known) and facts.value.identity == folder.identity
        for facts in map(host.stat, paths)
    )


def _why_out_of_sight(host: Host, environment: str) -> str:
    if host.environ.get("PYTHONHOME"):
        return "PYTHONHOME points it to another folder"
    settings = host.stat(os.path.join(environment, "pyvenv.cfg"))
    if isinstance(settings, Known):
        return "the folder is not on its sys.path"
    return f"{environment} has no pyvenv.cfg, so it is not an environment"


def _complaints(errors: str) -> tuple[str, ...]:
    """Start-up files that fail, each with its exception. Python continues without them."""
    return tuple(_complaints_in(errors.splitlines()))[:_MOST_COMPLAINTS]


def _complaints_in(lines: list[str]) -> Iterator[str]:
    starts = [number for number, line in enumerate(lines) if _START_UP.match(line)]
    for start, end in pairwise([*starts, len(lines)]):
        match = _START_UP.match(lines[start])
        assert match is not None
        what = match["module"] or f"line {match['line']} of {match['file']}"
        error = _error_line("\n".join(line.strip() for line in lines[start + 1 : end]))
        yield f"{what}: {excerpt(error, LONGEST_REASON)}" if error else what


def layout(host: Host, python: str) -> Observed[Interpreter]:
    """What the files around an interpreter show if it does not start."""
    prefix = os.path.dirname(os.path.dirname(python))
    library = os.path.join(prefix, "lib")
    names = host.list(library)
    if not isinstance(names, Known):
        return Unknown(f"{python} does not start, and {library} cannot be read")
    versions = [name for name in names.value if _LIBRARY.fullmatch(name)]
    if len(versions) != 1:
        return Unknown(f"{python} does not start, and {library} contains {len(versions)} Pythons")
    settings = pyvenv(host, prefix)
    numbers, free_threaded, _ = versions[0].removeprefix("python").partition("t")
    major, minor = map(int, numbers.split("."))
    facts = _Facts(
        executable=python,
        version=settings.get("version_info") or settings.get("version") or f"{major}.{minor}",
        numbers=(major, minor),
        implementation=settings.get("implementation", "cpython").lower(),
        prefix=prefix,
        base_prefix=os.path.dirname(settings["home"]) if "home" in settings else prefix,
        user_site=None,
        paths=(os.path.join(library, versions[0], "site-packages"),),
        abi_flags=free_threaded,
        platform=f"linux_{host.platform.machine}",
        libc="",
        modules=(),
    )
    return Known(_interpreter(host, python, facts), f"files under {prefix}")


def _interpreter(host: Host, python: str, facts: _Facts) -> Interpreter:
    conda = host.stat(os.path.join(facts.prefix, "conda-meta"))
    return Interpreter(
        path=python,
        version=facts.version,
        implementation=facts.implementation,
        prefix=facts.prefix,
        isolated=facts.prefix != facts.base_prefix or isinstance(conda, Known),
        user_site=_user_site(host, facts),
        paths=facts.paths,
        wheel_tags=_wheel_tags(facts),
        modules=_NOT_ASKED,
        complaints=_NOT_ASKED,
        in_current_folder=_NOT_ASKED,
    )


def _user_site(host: Host, facts: _Facts) -> Observed[str]:
    folder = facts.user_site
    if folder is None:
        return Absent("site.ENABLE_USER_SITE, which is off")
    if folder not in facts.paths:
        there = host.stat(folder)
        return there if isinstance(there, Unknown) else Absent(f"{folder}, not on sys.path")
    return Known(folder, "site.getusersitepackages()")


def _wheel_tags(facts: _Facts) -> tuple[str, ...]:
    major, minor = facts.numbers
    prefix = {"cpython": "cp", "pypy": "pp"}.get(facts.implementation, facts.implementation)
    python = f"{prefix}{major}{minor}"
    tags = [python]
    if facts.abi_flags:
        tags.append(python + facts.abi_flags)
    if prefix == "cp" and "t" not in facts.abi_flags:
        tags.append("abi3")
    tags.append(f"py{major}")
    platform = facts.platform
    glibc = re.fullmatch(r"glibc (\d+)\.(\d+).*", facts.libc)
    if glibc and platform.startswith("linux_"):
        tags.append(f"manylinux_{glibc[1]}_{glibc[2]}_{platform[len('linux_') :]}")
    tags.append(platform)
    return tuple(tags)


def _parse(completed: Completed) -> _Facts | None:
    if completed.code != 0 or completed.timed_out:
        return None
    # Functions that run at exit may print as well.
    for line in reversed(completed.stdout.splitlines()):
        try:
            answer = json.loads(line)
            decode(_Facts, answer)
        except (ValueError, RecursionError):
            continue
        # Not the decoded text, which is made printable: a path must name its file exactly.
        return _facts_of(answer)
    return None


def _facts_of(answer: dict[str, Any]) -> _Facts:
    lists: dict[str, Any] = {
        "numbers": tuple(answer["numbers"]),
        "paths": tuple(answer["paths"]),
        "modules": decode(tuple[FoundModule, ...], answer["modules"]),
    }
    return _Facts(**{**answer, **lists})


def _failure(completed: Completed) -> str:
    if completed.timed_out:
        return f"no answer in {TIME_LIMIT:g} s"
    if completed.code == 0:
        return "it does not answer like a Python interpreter"
    message = _error_line(completed.stderr)
    ended = f"signal {-completed.code}" if completed.code < 0 else f"exit code {completed.code}"
    return f"{ended}: {excerpt(message, LONGEST_REASON)}" if message else ended


def _error_line(text: str) -> str:
    """The line that says what is wrong: near the end for Python, the first for other programs."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return errors[-1] if errors else lines[0] if lines else ""


def pyvenv(host: Host, prefix: str) -> dict[str, str]:
    """The settings in a virtual environment's pyvenv.cfg."""
    text = host.read(os.path.join(prefix, "pyvenv.cfg"))
    if not isinstance(text, Known):
        return {}
    pairs = (line.partition("=") for line in text.value.splitlines())
    return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}


def _lost_base(host: Host, folder: str) -> bool:
    """Whether an environment has links named python, all of them broken."""
    programs = os.path.join(folder, "bin")
    names = host.list(programs)
    pythons = [
        name for name in ("python", "python3") if isinstance(names, Known) and name in names.value
    ]
    return bool(pythons) and all(
        isinstance(host.stat(os.path.join(programs, name)), Absent) for name in pythons
    )


def _pythons(host: Host, folder: str) -> tuple[str, ...]:
    """Where the Python of an environment may be: a virtual one's first, then conda's on Windows."""
    on_windows = host.platform.system == "Windows"
    names = (r"Scripts\python.exe", "python.exe") if on_windows else ("bin/python", "bin/python3")
    return tuple(os.path.join(os.path.abspath(folder), name) for name in names)


def _in_environment(host: Host, folder: str) -> str | None:
    return next((path for path in _pythons(host, folder) if _is_program(host, path)), None)


def on_path(host: Host, name: str, passed_over: str | None = None) -> str | None:
    """The file that a shell starts for a command's name, if one folder were not on PATH."""
    folders = [
        folder
        for folder in host.environ.get("PATH", "").split(os.pathsep)
        if passed_over is None or os.path.normpath(folder) != passed_over
    ]
    ending = ".exe" if host.platform.system == "Windows" and not name.endswith(".exe") else ""
    paths = (os.path.join(folder, name + ending) for folder in folders if folder)
    return next((path for path in paths if _is_program(host, path)), None)


def _is_program(host: Host, path: str) -> bool:
    facts = host.stat(path)
    return isinstance(facts, Known) and facts.value.kind == "file" and "x" in facts.value.mode
