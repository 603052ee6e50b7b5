"""How whygpu itself starts: nothing that is meant for the user's program changes or breaks it."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from tests.kit import machine
from tests.patience import PATIENCE
from whygpu.cli.start import failed
from whygpu.model.codec import encode
from whygpu.version import VERSION

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "src"
HOSTILE = {
    "raises": "raise RuntimeError('a module of the user')\n",
    "exits": "import sys\nsys.exit(1)\n",
    "prints": "print('a module of the user')\n",
}
FATAL_VARIABLES = {
    "PYTHONHOME": "/nonexistent",
    "PYTHONIOENCODING": "garbage",
    "PYTHONHASHSEED": "garbage",
    "PYTHONMALLOC": "garbage",
    "PYTHONTRACEMALLOC": "garbage",
    "PYTHONUTF8": "garbage",
}
"""With each of them, Python ends before it executes any code."""
HARMFUL_VARIABLES = {
    "PYTHONDEVMODE": "1",
    "PYTHONINSPECT": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONPROFILEIMPORTTIME": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHONSTARTUP": "/nonexistent/startup.py",
    "PYTHONTRACEMALLOC": "20",
    "PYTHONVERBOSE": "1",
    "PYTHONWARNINGS": "error",
}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command `whygpu` in an environment that has what this one has."""
    prefix = tmp_path_factory.mktemp("installed")
    return str(install_into(prefix))


def install_into(prefix: pathlib.Path) -> pathlib.Path:
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    home = os.path.dirname(os.path.realpath(sys.executable))
    (prefix / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    (prefix / "lib").symlink_to(os.path.join(sys.prefix, "lib"))
    return pathlib.Path(shutil.copy(ROOT / "bin" / "whygpu", prefix / "bin" / "whygpu"))


def start(
    words: Sequence[str | pathlib.Path],
    *,
    cwd: pathlib.Path | None = None,
    variables: Mapping[str, str] | None = None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        words,
        env={**kept, **(variables or {}), **more},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def verbs(folder: pathlib.Path) -> Mapping[str, tuple[list[str], int]]:
    """Words for each verb that need no target, and their exit code."""
    saved, log, program = folder / "machine.json", folder / "train.log", folder / "train.py"
    saved.write_text(json.dumps(encode(machine(""))))
    log.write_text("RuntimeError: CUDA out of memory\n")
    program.write_text("import torch\nif torch.cuda.is_available:\n    print(1)\n")
    return {
        "help": (["--help"], 0),
        "check": (["check", "--snapshot", str(saved)], 0),
        "explain": (["explain", str(log)], 1),
        "lint": (["lint", str(program)], 1),
        "memory": (["memory", "--json", "--snapshot", str(saved)], 0),
        "plan": (["plan", "torch", "--snapshot", str(saved)], 0),
        "rule": (["rule", "WG203"], 0),
        "run": (["run", "--quiet", "--no-repair", "--", "sh", "-c", "exit 7"], 7),
    }


def modules_used(words: Sequence[str]) -> set[str]:
    """The names of all modules that whygpu has imported after these words."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from whygpu.cli.start import main\nmain()\n"
    )
    done = start([sys.executable, "-I", "-c", code, *words])
    names = {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}
    return names - {"whygpu", "__main__", "_distutils_hack"} - set(sys.builtin_module_names)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    folder = tmp_path_factory.mktemp("used")
    return frozenset().union(*(modules_used(words) for words, _ in verbs(folder).values()))


def hostile_folder(folder: pathlib.Path, names: frozenset[str], kind: str) -> pathlib.Path:
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(HOSTILE[kind])
    return folder


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_module_of_the_users_is_not_imported_instead_of_ours(
    kind: str, command: str, used: frozenset[str], tmp_path: pathlib.Path
) -> None:
    assert {"packaging", "typing", "enum", "json", "subprocess"} <= used
    folder = hostile_folder(tmp_path / "hostile", used, kind)
    for name, (words, code) in verbs(tmp_path).items():
        bare = start([command, *words], cwd=tmp_path)
        done = start([command, *words], cwd=folder, PYTHONPATH=str(folder))
        assert bare.returncode == code, (name, bare.stderr)
        assert (done.returncode, done.stdout) == (code, bare.stdout), (name, done.stderr)
        assert "of the user" not in done.stderr


@pytest.mark.parametrize("kind", HOSTILE)
def test_python_m_whygpu_imports_nothing_of_the_current_folder(
    kind: str, used: frozenset[str], tmp_path: pathlib.Path
) -> None:
    needed = "import runpy, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    before_us = frozenset(start([sys.executable, "-I", "-c", needed]).stdout.split())
    folder = hostile_folder(tmp_path / "hostile", used - before_us, kind)
    for name, (words, code) in verbs(tmp_path).items():
        done = start([sys.executable, "-m", "whygpu", *words], cwd=folder, PYTHONPATH=str(folder))
        assert done.returncode == code, (name, done.stderr)
        assert "of the user" not in done.stdout + done.stderr


@pytest.mark.parametrize(("name", "value"), (FATAL_VARIABLES | HARMFUL_VARIABLES).items())
def test_no_variable_of_python_changes_whygpu(
    name: str, value: str, command: str, tmp_path: pathlib.Path
) -> None:
    words, code = verbs(tmp_path)["check"]
    bare = start([command, *words])
    done = start([command, *words], variables={name: value})
    assert (done.returncode, done.stdout, done.stderr) == (code, bare.stdout, bare.stderr)


def test_a_broken_package_in_the_user_site_is_not_imported(
    command: str, tmp_path: pathlib.Path
) -> None:
    release = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = tmp_path / "lib" / release / "site-packages"
    site.mkdir(parents=True)
    for name in ("packaging", "resolvelib", "usercustomize"):
        (site / f"{name}.py").write_text(HOSTILE["exits"])
    words, code = verbs(tmp_path)["check"]
    assert start([command, *words], PYTHONUSERBASE=str(tmp_path)).returncode == code


def test_the_program_has_all_variables_of_the_user(command: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "helper.py").write_text("WORD = 'from PYTHONPATH'")
    code = (
        "import helper, os, sys; print(helper.WORD, sys.flags.optimize, os.environ['PYTHONHOME'])"
    )
    home = sys.base_prefix
    done = start(
        [command, "run", "--device", "cpu", "--quiet", "--", sys.executable, "-c", code],
        PYTHONPATH=str(tmp_path),
        PYTHONOPTIMIZE="1",
        PYTHONHOME=home,
    )
    assert (done.returncode, done.stdout) == (0, f"from PYTHONPATH 1 {home}\n"), done.stderr


def test_a_target_that_its_variables_keep_from_starting_is_no_finding(
    command: str, used: frozenset[str], tmp_path: pathlib.Path
) -> None:
    folder = hostile_folder(tmp_path / "hostile", used, "exits")
    done = start([command, "check", "--python", sys.executable], PYTHONPATH=str(folder))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_encoding_that_the_user_wants_is_used(command: str, tmp_path: pathlib.Path) -> None:
    words, code = verbs(tmp_path)["check"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    outputs = [
        subprocess.run([command, *words], env={**kept, "LC_ALL": "C.UTF-8", **wanted}, stdout=-1)
        for wanted in ({}, {"PYTHONIOENCODING": "utf-16-le"})
    ]
    assert [done.returncode for done in outputs] == [code, code]
    plain, wide = (done.stdout for done in outputs)
    assert wide.decode("utf-16-le") == plain.decode("utf-8")


@pytest.mark.parametrize("how", ["link", "other folder", "beside the shell", "without PATH"])
def test_the_command_finds_its_python(how: str, command: str, tmp_path: pathlib.Path) -> None:
    words: dict[str, list[str]] = {
        "link": [str(tmp_path / "link"), "--version"],
        "other folder": ["./whygpu", "--version"],
        "beside the shell": ["sh", "whygpu", "--version"],
        "without PATH": [command, "--version"],
    }
    (tmp_path / "link").symlink_to(command)
    path = "/nonexistent" if how == "without PATH" else os.environ["PATH"]
    done = start(words[how], cwd=pathlib.Path(command).parent, PATH=path)
    assert (done.returncode, done.stdout) == (0, f"whygpu {VERSION}\n"), done.stderr


@pytest.mark.parametrize(
    "layout", ["lib/python3.{minor}/site-packages", "lib/python3.99/site-packages", "."]
)
def test_the_command_works_beside_a_folder_of_packages(layout: str, tmp_path: pathlib.Path) -> None:
    """As `pip install` with --user, --prefix or --target leaves it."""
    packages = tmp_path / layout.format(minor=sys.version_info[1])
    packages.mkdir(parents=True, exist_ok=True)
    (packages / "whygpu").symlink_to(SOURCE / "whygpu")
    (tmp_path / "bin").mkdir()
    script = shutil.copy(ROOT / "bin" / "whygpu", tmp_path / "bin" / "whygpu")
    base = os.path.dirname(os.path.realpath(sys.executable))
    done = start([script, "--version"], PATH=f"{base}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (0, f"whygpu {VERSION}\n"), done.stderr


def test_a_command_without_its_package_or_python_says_so(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bin").mkdir()
    script = shutil.copy(ROOT / "bin" / "whygpu", tmp_path / "bin" / "whygpu")
    base = os.path.dirname(os.path.realpath(sys.executable))
    for words, code in ((["check"], 3), (["run", "--", "true"], 125)):
        no_package = start([script, *words], PATH=f"{base}:{os.environ['PATH']}")
        no_python = start([script, *words], PATH="/nonexistent")
        assert (no_package.returncode, no_python.returncode) == (code, code)
        assert "No module named 'whygpu'" in no_package.stderr
        assert "no Python found" in no_python.stderr


def test_a_copy_on_pythonpath_is_the_one_that_runs(tmp_path: pathlib.Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SOURCE / "whygpu", copy / "whygpu", ignore=shutil.ignore_patterns("*.pyc"))
    (copy / "whygpu" / "version.py").write_text("VERSION = '99'\n")
    (copy / "typing.py").write_text(HOSTILE["exits"])
    words = [sys.executable, "-m", "whygpu", "--version"]
    for done in (start(words, PYTHONPATH=str(copy)), start(words, cwd=copy)):
        assert (done.returncode, done.stdout) == (0, "whygpu 99\n"), done.stderr


@pytest.mark.parametrize(("words", "code"), [(["check"], 3), (["run", "--", "true"], 125)])
def test_a_package_of_ours_that_is_broken_is_a_bug_and_no_finding(
    words: list[str], code: int, tmp_path: pathlib.Path
) -> None:
    copy = tmp_path / "whygpu"
    shutil.copytree(SOURCE / "whygpu", copy, ignore=shutil.ignore_patterns("*.pyc"))
    (copy / "cli" / "process_setup.py").write_text("import a_module_that_is_not_there\n")
    done = start([sys.executable, "-m", "whygpu", *words], cwd=tmp_path)
    assert done.returncode == code
    assert "this is a bug in whygpu: ModuleNotFoundError" in done.stderr


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing can be said of it")


def test_a_report_that_cannot_be_made_is_a_message_still(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert failed(Unspeakable(), ["run", "--", "true"]) == 125
    assert capsys.readouterr().err.startswith("whygpu: this is a bug in whygpu: Unspeakable")
