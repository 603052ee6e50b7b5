"""The simulated loader does what the real one does, on small libraries made for the purpose."""

from __future__ import annotations

import functools
import os
import pathlib
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from tests.elfwriter import Library, write
from tests.patience import PATIENCE
from tests.real_loader import RealLoader, Request
from whygpu.collectors.cuda_files import LibraryFolder
from whygpu.collectors.loader import LoaderProcess
from whygpu.host.base import Completed, Host
from whygpu.host.local import LocalHost
from whygpu.host.replay import RecordingHost, ReplayHost
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Known, Observed, Undetermined

T = TypeVar("T")

pytestmark = pytest.mark.skipif(
    os.uname().machine != "x86_64" or os.uname().sysname != "Linux",
    reason="the libraries made here are for x86-64 Linux",
)


@functools.cache
def real_loader(environ: frozenset[tuple[str, str]]) -> RealLoader:
    """One process for all tests with the same environment: it forks for each question."""
    return RealLoader(sys.executable, dict(environ))


@functools.cache
def completed(command: tuple[str, ...]) -> Observed[Completed]:
    return LocalHost().run(command, timeout=PATIENCE)


class CommandsOnce(LocalHost):
    """This machine, on which each command runs once: the loader always says the same of itself."""

    def run(
        self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
    ) -> Observed[Completed]:
        assert env is None
        return completed(tuple(command))


class World:
    """A folder with libraries, and both loaders to ask about it."""

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._monkeypatch = monkeypatch

    def add(self, path: str, content: Library | bytes | None = None, **words: Any) -> str:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            content = Library(**words)
        place.write_bytes(content if isinstance(content, bytes) else write(content))
        return str(place)

    def set(self, name: str, value: str) -> None:
        self._monkeypatch.setenv(name, value)

    def ask(
        self, *requests: Request, folders: Sequence[str] = ()
    ) -> tuple[list[Resolution], list[dict[str, Any]]]:
        """What the simulated and the real loader make of the same requests in one process."""
        real = real_loader(frozenset(os.environ.items())).open(requests)
        return simulate(requests, [str(self.root / folder) for folder in folders]), real

    def agreed(self, *requests: Request, folders: Sequence[str] = ()) -> Resolution:
        """The last resolution, after both loaders were found to agree on all of them."""
        simulated, real = self.ask(*requests, folders=folders)
        assert [differences(*pair) for pair in zip(simulated, real, strict=True)] == [""] * len(
            real
        )
        return simulated[-1]


def simulate(
    requests: Sequence[Request], folders: Sequence[str] = (), program: str = sys.executable
) -> list[Resolution]:
    known = [LibraryFolder(folder, "wheel") for folder in folders]
    process = LoaderProcess(CommandsOnce(), program, known)
    return [
        process.open(library, requester=requester or program) for library, requester in requests
    ]


def differences(simulated: Resolution, real: Mapping[str, Any]) -> str:
    """Empty when both say the same; a crash of the real loader must be foretold."""
    if "path" in real:
        same = simulated.outcome == "loads" and simulated.path == os.path.normpath(real["path"])
    elif "error" in real:
        same = simulated.outcome != "loads" and simulated.detail == real["error"]
    else:
        same = simulated.outcome == "broken-file"
    return "" if same else f"{simulated} is not {real}"


@pytest.fixture
def world(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    return World(tmp_path, monkeypatch)


def test_runpath_of_the_requester_is_searched_after_ld_library_path(world: World) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/own")
    world.add("own/libcux.so")
    preferred = world.add("preferred/libcux.so")
    world.set("LD_LIBRARY_PATH", str(world.root / "preferred"))
    found = world.agreed((asker, None), ("libcux.so", asker), folders=["own", "preferred"])
    assert found.path == preferred
    assert [(each.kind, each.result) for each in found.searched] == [("ld-library-path", "found")]
    (other,) = found.other_copies
    assert other.path == str(world.root / "own" / "libcux.so")
    assert other.reason == f"its folder comes after {world.root}/preferred on the search path"


def test_rpath_of_the_requester_is_searched_before_ld_library_path(world: World) -> None:
    asker = world.add("asker.so", rpath="$ORIGIN/own")
    own = world.add("own/libcux.so")
    world.add("preferred/libcux.so")
    world.set("LD_LIBRARY_PATH", str(world.root / "preferred"))
    assert world.agreed((asker, None), ("libcux.so", asker)).path == own


def test_rpath_serves_what_the_library_needs_and_runpath_does_not(world: World) -> None:
    world.add("deep/libculeaf.so")
    world.add("libcumiddle.so", needed=["libculeaf.so"])
    by_rpath = world.add("rpath.so", needed=["libcumiddle.so"], rpath="$ORIGIN:$ORIGIN/deep")
    by_runpath = world.add("runpath.so", needed=["libcumiddle.so"], runpath="$ORIGIN:$ORIGIN/deep")
    assert world.agreed((by_rpath, None)).outcome == "loads"
    broken = world.agreed((by_runpath, None), folders=["deep"])
    assert broken.outcome == "dependency-missing"
    assert broken.chain == (by_runpath, "libcumiddle.so", "libculeaf.so")
    assert broken.path == by_runpath
    assert broken.other_copies[0].reason == "its folder is not on a search path"


def test_a_file_with_a_runpath_ignores_the_rpath_of_its_ancestors(world: World) -> None:
    world.add("deep/libculeaf.so")
    world.add("libcumiddle.so", needed=["libculeaf.so"], runpath="/nowhere")
    top = world.add("top.so", needed=["libcumiddle.so"], rpath="$ORIGIN:$ORIGIN/deep")
    assert world.agreed((top, None)).outcome == "dependency-missing"


def test_a_library_that_is_loaded_answers_by_its_soname(world: World) -> None:
    first = world.add("somewhere/file.so", soname="libcux.so.1")
    asker = world.add("asker.so", runpath="$ORIGIN/own")
    world.add("own/libcux.so.1")
    found = world.agreed(
        (asker, None), (first, None), ("libcux.so.1", asker), folders=["own", "somewhere"]
    )
    assert found.path == first
    assert found.searched[0].kind == "loaded"
    assert found.other_copies[0].reason == f"{first} was loaded before"


def test_what_a_failed_open_brought_in_is_gone_afterwards(world: World) -> None:
    world.add("own/libcufirst.so")
    broken = world.add(
        "broken.so", needed=["libcufirst.so", "libcumissing.so"], runpath="$ORIGIN/own"
    )
    asker = world.add("asker.so")
    last = world.agreed((broken, None), (asker, None), ("libcufirst.so", asker))
    assert last.outcome == "not-found"


UNUSABLE: dict[str, tuple[Library | bytes, str]] = {
    "of another class": (Library(machine="i386", bits=32), "it is for i386, 32 bits"),
    "of another machine": (Library(machine="aarch64"), "it is for aarch64, 64 bits"),
    "with only a foreign header": (write(Library(machine="aarch64"))[:64], "it is for aarch64"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_copy_for_another_machine_is_passed_over(world: World, kind: str) -> None:
    content, reason = UNUSABLE[kind]
    asker = world.add("asker.so", runpath="$ORIGIN/first:$ORIGIN/second")
    world.add("first/libcux.so", content)
    second = world.add("second/libcux.so")
    found = world.agreed((asker, None), ("libcux.so", asker), folders=["first", "second"])
    assert found.path == second
    assert [each.result for each in found.searched] == ["other-architecture", "found"]
    assert found.other_copies[0].reason.startswith(reason)


@pytest.mark.parametrize("kind", UNUSABLE)
def test_copies_for_other_machines_only(world: World, kind: str) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/first")
    world.add("first/libcux.so", UNUSABLE[kind][0])
    assert world.agreed((asker, None), ("libcux.so", asker)).outcome == "not-found"
    path = str(world.root / "first" / "libcux.so")
    assert world.agreed((path, None)).outcome == "not-found"


WHOLE = write(Library(soname="libcux.so", defines=[f"symbol{i}" for i in range(2000)]))
BROKEN: dict[str, bytes] = {
    "empty": b"",
    "shorter than a header": WHOLE[:40],
    "only a header": WHOLE[:64],
    "cut in the middle": WHOLE[: len(WHOLE) // 2],
    "a linker script": b"GROUP ( /usr/lib/libcux.so.1 )" + b" " * 60,
    "big-endian": WHOLE[:5] + b"\2" + WHOLE[6:],
    "an object file": WHOLE[:16] + b"\1\0" + WHOLE[18:],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_copy_ends_the_search(world: World, kind: str) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/first:$ORIGIN/second")
    world.add("first/libcux.so", BROKEN[kind])
    world.add("second/libcux.so")
    found = world.agreed((asker, None), ("libcux.so", asker), folders=["first", "second"])
    assert found.outcome == "broken-file"
    assert found.path == str(world.root / "first" / "libcux.so")
    assert found.searched[-1].result == "broken"
    reasons = {copy.path: copy.reason for copy in found.other_copies}
    assert reasons == {
        str(world.root / "second" / "libcux.so"): (
            f"its folder comes after {world.root}/first on the search path"
        )
    }


def test_a_folder_in_the_place_of_a_library_ends_the_search(world: World) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/first:$ORIGIN/second")
    (world.root / "first" / "libcux.so").mkdir(parents=True)
    world.add("second/libcux.so")
    found = world.agreed((asker, None), ("libcux.so", asker))
    assert found.outcome == "broken-file"
    assert found.detail.endswith("cannot read file data: Is a directory")


def test_a_link_to_nowhere_is_not_there(world: World) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/first:$ORIGIN/second")
    (world.root / "first").mkdir()
    (world.root / "first" / "libcux.so").symlink_to("libcux.so.1.2.3")
    second = world.add("second/libcux.so")
    found = world.agreed((asker, None), ("libcux.so", asker), folders=["first", "second"])
    assert found.path == second
    assert found.other_copies[0].reason == "it is a link to a file that does not exist"


def test_a_link_in_a_circle_ends_its_list_only(world: World) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/second")
    (world.root / "first").mkdir()
    (world.root / "first" / "libcux.so").symlink_to("libcux.so")
    world.add("skipped/libcux.so")
    second = world.add("second/libcux.so")
    world.set("LD_LIBRARY_PATH", f"{world.root}/first:{world.root}/skipped")
    assert world.agreed((asker, None), ("libcux.so", asker)).path == second


def test_a_file_without_the_link_that_is_asked_for(world: World) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/first")
    world.add("first/libcux.so.9.1.0", soname="libcux.so.9")
    found = world.agreed((asker, None), ("libcux.so.9", asker), folders=["first"])
    assert found.outcome == "not-found"
    assert found.other_copies[0].reason == ("it has no link named libcux.so.9, the requested name")


@pytest.fixture
def for_everybody() -> Iterator[pathlib.Path]:
    """A folder that other users may enter. pytest closes those above its own, also while we run."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="whygpu-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_file_that_may_not_be_read_is_passed_over(for_everybody: pathlib.Path) -> None:
    nobody = 65534

    def place(name: str, **words: Any) -> pathlib.Path:
        path = for_everybody / name
        path.parent.mkdir(exist_ok=True)
        path.parent.chmod(0o755)
        path.write_bytes(write(Library(**words)))
        path.chmod(0o644)
        return path

    asker = place("asker.so", runpath="$ORIGIN/first:$ORIGIN/second")
    place("first/libcux.so").chmod(0)
    place("first/libcuy.so").chmod(0)
    second = place("second/libcux.so")
    requests: list[Request] = [
        (str(asker), None),
        ("libcux.so", str(asker)),
        ("libcuy.so", str(asker)),
        (str(for_everybody / "first" / "libcuy.so"), None),
    ]
    if not as_user(nobody, lambda: os.access(asker, os.R_OK, effective_ids=True)):
        pytest.skip(f"nobody may not read what is in {for_everybody}")
    with RealLoader(sys.executable, os.environ) as loader:
        real = loader.open(requests, user=nobody)
    # The interpreter may lie in a home folder that this user may not enter.
    simulated = as_user(nobody, lambda: simulate(requests, program="/bin/sh"))
    assert [differences(*pair) for pair in zip(simulated, real, strict=True)] == [""] * 4
    assert simulated[1].path == str(second)
    assert simulated[1].searched[0].result == "broken"
    assert simulated[3].detail.endswith("Permission denied")


def as_user(user: int, work: Callable[[], T]) -> T:
    """Do something with another user's rights on files."""
    os.seteuid(user)
    try:
        return work()
    finally:
        os.seteuid(0)


def test_an_empty_entry_means_the_current_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker = world.add("asker.so")
    world.add("here/libcux.so")
    monkeypatch.chdir(world.root / "here")
    world.set("LD_LIBRARY_PATH", "/nowhere:")
    simulated, real = world.ask((asker, None), ("libcux.so", asker))
    assert simulated[1].path == real[1]["path"] == "libcux.so"


def test_semicolons_separate_folders_too(world: World) -> None:
    asker = world.add("asker.so")
    second = world.add("second/libcux.so")
    world.set("LD_LIBRARY_PATH", f"{world.root}/first;{world.root}/second/")
    assert world.agreed((asker, None), ("libcux.so", asker)).path == second


@pytest.mark.parametrize("text", ["$ORIGIN/own", "${ORIGIN}/own", "$ORIGIN/../w/own//"])
def test_origin_is_the_folder_of_the_file(world: World, text: str) -> None:
    asker = world.add("w/asker.so", runpath=text)
    own = world.add("w/own/libcux.so")
    assert world.agreed((asker, None), ("libcux.so", asker)).path == own


@pytest.mark.parametrize("text", ["$ORIGINAL/own", "${ORIGIN/own", "$NOTHING/own"])
def test_what_only_looks_like_a_token_is_text(world: World, text: str) -> None:
    asker = world.add("asker.so", runpath=text)
    world.add("own/libcux.so")
    assert world.agreed((asker, None), ("libcux.so", asker)).outcome == "not-found"


@pytest.mark.parametrize("token", ["$LIB", "$PLATFORM"])
def test_tokens_of_the_machine(world: World, token: str) -> None:
    asker = world.add("asker.so", runpath=f"$ORIGIN/{token}")
    for folder in ("lib", "lib64", "lib/x86_64-linux-gnu", "x86_64", "haswell"):
        world.add(f"{folder}/libcux.so")
    assert world.agreed((asker, None), ("libcux.so", asker)).outcome == "loads"


@pytest.mark.parametrize(
    "subfolder", ["glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v9", "tls", "x86_64", "tls/x86_64"]
)
def test_subfolders_for_better_processors(world: World, subfolder: str) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/own")
    world.add("own/libcux.so")
    world.add(f"own/{subfolder}/libcux.so")
    world.agreed((asker, None), ("libcux.so", asker))


def test_no_default_folders(world: World) -> None:
    ordinary = world.add("ordinary.so")
    strict = world.add("strict.so", no_default_folders=True)
    name = (
        "libpanel.so.6" if os.path.exists("/lib/x86_64-linux-gnu/libpanel.so.6") else "librt.so.1"
    )
    world.agreed((ordinary, None), (name, ordinary))
    world.agreed((strict, None), (name, strict))


def test_preloaded_libraries_come_first(world: World) -> None:
    asker = world.add("asker.so", runpath="$ORIGIN/own")
    world.add("own/libcux.so")
    preloaded = world.add("pre/any.so", soname="libcux.so")
    world.set("LD_PRELOAD", f"{preloaded}:/nowhere/gone.so")
    assert world.agreed((asker, None), ("libcux.so", asker)).path == preloaded


def test_a_version_that_the_provider_lacks(world: World) -> None:
    world.add("libcuold.so", soname="libcuold.so", defines=["f@V1"])
    top = world.add(
        "libcutop.so",
        needed=["libcuold.so"],
        runpath="$ORIGIN",
        version_needs={"libcuold.so": ["V2"]},
    )
    found = world.agreed((top, None))
    assert found.outcome == "version-missing"
    assert found.chain == (top, "libcuold.so")


def test_a_glibc_that_is_too_old(world: World) -> None:
    top = world.add("top.so", needed=["libc.so.6"], version_needs={"libc.so.6": ["GLIBC_2.99"]})
    found = world.agreed((top, None))
    assert found.outcome == "version-missing"
    assert "version `GLIBC_2.99' not found" in found.detail


def test_an_older_library_found_first_lacks_a_symbol(world: World) -> None:
    new = Library(soname="libcublas.so.12", defines=["old@libcublas.so.12", "new@libcublas.so.12"])
    old = Library(soname="libcublas.so.12", defines=["old@libcublas.so.12"])
    world.add("wheel/libcublas.so.12", new)
    shadow = world.add("older/libcublas.so.12", old)
    solver = world.add(
        "wheel/libcusolver.so.11",
        needed=["libcublas.so.12"],
        runpath="$ORIGIN",
        requires=["old@libcublas.so.12", "new@libcublas.so.12"],
    )
    assert world.agreed((solver, None)).outcome == "loads"
    world.set("LD_LIBRARY_PATH", str(world.root / "older"))
    found = world.agreed((solver, None), folders=["wheel", "older"])
    assert found.outcome == "symbol-missing"
    assert found.path == solver
    assert found.chain == (solver, "libcublas.so.12")
    assert found.searched[-1].path == os.path.dirname(shadow)
    assert [copy.path for copy in found.other_copies] == [
        str(world.root / "wheel" / "libcublas.so.12")
    ]


def test_a_symbol_without_a_version(world: World) -> None:
    world.add("libnccl.so.2", soname="libnccl.so.2", defines=["ncclInit"])
    fine = world.add(
        "libcufine.so",
        needed=["libnccl.so.2", "libc.so.6"],
        rpath="$ORIGIN",
        requires=["ncclInit", "puts"],
    )
    broken = world.add(
        "libcubroken.so", needed=["libnccl.so.2"], rpath="$ORIGIN", requires=["ncclInit", "ncclNew"]
    )
    assert world.agreed((fine, None)).outcome == "loads"
    assert world.agreed((broken, None)).outcome == "symbol-missing"


def test_a_weak_symbol_may_be_missing(world: World) -> None:
    path = world.add("libcux.so", wishes=["nobody_has_this"])
    assert world.agreed((path, None)).outcome == "loads"


def test_a_requester_that_cannot_be_loaded_asks_all_the_same(world: World) -> None:
    asker = world.add("asker.so", needed=["libcugone.so", "libcux.so"], rpath="$ORIGIN/own")
    own = world.add("own/libcux.so")
    gone, there = simulate([("libcugone.so", asker), ("libcux.so", asker)])
    assert gone.outcome == "not-found"
    assert there.path == own


def test_a_recorded_machine_gives_the_same_answers(world: World) -> None:
    asker = world.add("asker.so", needed=["libc.so.6"], runpath="$ORIGIN/first:$ORIGIN/second")
    world.add("first/libcux.so", b"")
    world.add("second/libcuy.so", needed=["libm.so.6"], requires=["cos@GLIBC_2.2.5"])
    names = ("libcux.so", "libcuy.so", "libcugone.so")

    def ask(host: Host) -> list[Resolution]:
        folders = [LibraryFolder(f"{world.root}/first", "wheel")]
        process = LoaderProcess(host, sys.executable, folders)
        return [process.open(name, requester=asker) for name in names]

    recording = RecordingHost(LocalHost())
    resolutions = ask(recording)
    assert [each.outcome for each in resolutions] == ["broken-file", "loads", "not-found"]
    replayed = ReplayHost(recording.transcript)
    assert ask(replayed) == resolutions
    replayed.assert_consumed()


@pytest.mark.parametrize(
    ("interpreter", "reason"),
    [(None, "not dynamically linked"), ("/lib/ld-musl-x86_64.so.1", "musl")],
)
def test_a_program_without_the_gnu_loader_cannot_be_followed(
    world: World, interpreter: str | None, reason: str
) -> None:
    program = world.add("program", interpreter=interpreter)
    with pytest.raises(Undetermined, match=reason):
        LoaderProcess(LocalHost(), program)


def test_a_program_that_does_not_start_cannot_be_followed(world: World) -> None:
    facts = LocalHost().elf(sys.executable)
    assert isinstance(facts, Known)
    program = world.add("program", needed=["libcugone.so"], interpreter=facts.value.interpreter)
    with pytest.raises(Undetermined, match=r"does not start: libcugone\.so: cannot open"):
        LoaderProcess(LocalHost(), program)


def test_a_program_that_is_no_elf_file_cannot_be_followed(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\n" + 'exec python3 "$@"\n' * 5)
    with pytest.raises(Undetermined, match="invalid ELF header"):
        LoaderProcess(LocalHost(), str(script))


FOLDERS = ("a", "b", "c", "d")
NAMES = tuple(f"libcu{letter}.so" for letter in "pqrst")
SYMBOLS = ("f", "g", "h", "i@V1", "j@V1", "k@V1", "k@V2")


def random_library(dice: random.Random, name: str) -> Library:
    def path() -> str | None:
        if dice.random() < 0.4:
            return None
        choices = [f"$ORIGIN/../{folder}" for folder in FOLDERS] + ["$ORIGIN", "/nowhere"]
        return ":".join(dice.sample(choices, dice.randint(1, 3)))

    rpath, runpath = path(), path()
    others = [other for other in NAMES if other != name]
    needed = dice.sample(others, dice.choice((0, 0, 1, 1, 2)))
    wanted = [symbol for symbol in SYMBOLS if needed and dice.random() < 0.25]
    return Library(
        soname=dice.choice((name, name, None, dice.choice(NAMES))),
        needed=needed,
        rpath=rpath if dice.random() < 0.5 else None,
        runpath=runpath if dice.random() < 0.5 else None,
        defines=[symbol for symbol in SYMBOLS[:6] if dice.random() < 0.8],
        requires=wanted,
        provider={"V1": needed[0], "V2": needed[0]} if needed else {},
    )


def furnish(dice: random.Random, world: World) -> list[Request]:
    """Put random files into the folders, and make up requests."""
    for folder in FOLDERS:
        for name in NAMES:
            place = world.root / folder / name
            kind = dice.random()
            if kind < 0.35:
                continue
            if kind < 0.85:
                world.add(f"{folder}/{name}", random_library(dice, name))
            elif kind < 0.88:
                world.add(f"{folder}/{name}", dice.choice(list(BROKEN.values())))
            elif kind < 0.94:
                world.add(f"{folder}/{name}", dice.choice(list(UNUSABLE.values()))[0])
            elif kind < 0.95:
                place.mkdir()
            else:
                place.symlink_to(world.root / dice.choice(FOLDERS) / dice.choice(NAMES))
    asker = world.add("asker.so", runpath=f"$ORIGIN/{dice.choice(FOLDERS)}", rpath="$ORIGIN/d")
    names = [dice.choice(NAMES) for _ in range(3)]
    return [(asker, None), *((name, asker) for name in names)]


def empty(folder: pathlib.Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            empty(entry)
            entry.rmdir()
        else:
            entry.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("searched", ["", "a:b", "d:c:"], ids=["nothing", "two", "with here"])
def test_random_folders(world: World, monkeypatch: pytest.MonkeyPatch, searched: str) -> None:
    """Many small worlds, one real process: it forks for each of them."""
    for folder in FOLDERS:
        (world.root / folder).mkdir()
    monkeypatch.chdir(world.root)
    separators = searched.split(":")
    folders = [f"{world.root}/{name}" if name else "" for name in separators] if searched else []
    world.set("LD_LIBRARY_PATH", ":".join(folders))
    outcomes: set[str] = set()
    with RealLoader(sys.executable, os.environ) as loader:
        for seed in range(25):
            for folder in FOLDERS:
                empty(world.root / folder)
            requests = furnish(random.Random(f"{searched} {seed}"), world)
            real = loader.open(requests)
            simulated = simulate(requests)
            for one, other in zip(simulated, real):  # noqa: B905 - a crash ends the real list
                assert not differences(one, other), f"seed {seed}"
            outcomes.update(each.outcome for each in simulated)
    assert outcomes >= {"loads", "not-found", "broken-file", "dependency-missing"}
    assert outcomes & {"symbol-missing", "version-missing"}


@pytest.fixture(autouse=True)
def _small_limits() -> Iterator[None]:
    """Crashes of the real loader are expected here: leave no core files behind."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)
