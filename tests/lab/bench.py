"""The machine of one scenario, under construction: its environment, its folders, its packages."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tests.lab.cuda import CUDA_12, StubLibrary, Wheel
from tests.lab.wheels import wheel
from tests.targets import folder as targets_folder
from tests.targets import python_of

_KEPT_VARIABLES = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "PYTHONDONTWRITEBYTECODE",
    "ONEDNN_MAX_CPU_ISA",
)
"""All that a scenario takes over from whoever runs it."""


class Bench:
    """Where `lay_out` of a scenario works. `site` is a copy, made when it is first asked for.

    Files of the copy are hard links to the shared target's: replace them, never write into them.
    The methods here do so. A `whole` copy has no folder in common with the shared target, so that
    pip can work in it.
    """

    def __init__(self, target: str, folder: Path, *, whole: bool = False) -> None:
        self.folder = folder
        self._whole = whole
        self._target = Path(python_of(target)).parent.parent
        self._copy: Path | None = None
        home = folder / "home"
        home.mkdir(parents=True)
        self.environ = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        self.environ["HOME"] = str(home)
        if whole:
            _ = self.site

    # --- variables ---

    def set(self, **variables: str) -> None:
        self.environ.update(variables)

    def prepend(self, variable: str, folder: Path) -> None:
        """Put a folder first on a search path."""
        before = self.environ.get(variable)
        self.environ[variable] = f"{folder}:{before}" if before else str(folder)

    # --- the target ---

    @property
    def environment(self) -> Path:
        return self._copy or self._target

    @property
    def python(self) -> str:
        return str(self.environment / "bin" / "python")

    @functools.cached_property
    def site(self) -> Path:
        """The folder with the packages of a target of our own."""
        near = self._target.resolve().parent / ".whygpu-lab"
        near.mkdir(exist_ok=True)
        _remove_leftovers(near)
        self._copy = Path(tempfile.mkdtemp(dir=near))
        _link_environment(self._target, self._copy, whole=self._whole)
        (site,) = self._copy.glob("lib/python3*/site-packages")
        return site

    def close(self) -> None:
        if self._copy is not None:
            shutil.rmtree(self._copy)

    # --- packages ---

    def replace(self, file: str, content: bytes | str) -> Path:
        """A file of the target with other content, or a new one."""
        place = self.site / file
        _make_own(self.site, place)
        if place.suffix == ".py":
            # Its byte code is of the other content, and shared.
            code = place.parent / "__pycache__"
            _make_own(self.site, code / "any")
            for compiled in code.glob(f"{place.stem}.*.pyc"):
                compiled.unlink()
        return _write(place, content)

    def remove(self, distribution: str, *, keep_metadata: bool = False) -> None:
        """Uninstall, by the distribution's own list of files."""
        folders: set[Path] = set()
        for path in self.distribution_files(distribution):
            if keep_metadata and ".dist-info/" in path:
                continue
            file = self.site / path
            _make_own(self.site, file)
            file.unlink(missing_ok=True)
            folders.add(file.parent)
        _sweep(self.site, folders)

    def install(self, name: str) -> None:
        """Install one of wheels.PINNED; what it replaces goes first."""
        file = self._wheel(name)
        distribution = file.name.split("-")[0]
        if any(_infos(self.site, distribution)):
            self.remove(distribution)
        with zipfile.ZipFile(file) as archive:
            for path in archive.namelist():
                if not path.endswith("/"):
                    self.replace(path, archive.read(path))

    def unpack(self, name: str, place: Path) -> None:
        """Put one of wheels.PINNED into a folder outside the target."""
        with zipfile.ZipFile(self._wheel(name)) as archive:
            archive.extractall(place)

    def _wheel(self, name: str) -> Path:
        return wheel(name, str(self._target / "bin" / "python"))

    def add_distribution(
        self,
        name: str,
        version: str,
        files: Mapping[str, bytes],
        requires: Collection[str] = (),
    ) -> None:
        """A package of our own making, with the metadata that pip would have left."""
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-manylinux2014_x86_64\n"
        record = [*files, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"]
        content: dict[str, bytes | str] = {
            **files,
            f"{info}/METADATA": metadata,
            f"{info}/WHEEL": tags,
            f"{info}/RECORD": "".join(f"{path},,\n" for path in record),
        }
        for path, text in content.items():
            self.replace(path, text)

    def distribution_files(self, distribution: str) -> list[str]:
        text = (self._info(distribution) / "RECORD").read_text()
        return [line.split(",")[0] for line in text.splitlines()]

    def _info(self, distribution: str) -> Path:
        (info,) = _infos(self.site, distribution)
        return info

    # --- CUDA ---

    def cuda_wheels(
        self, wheels: Mapping[str, Wheel] = CUDA_12, *, without: Collection[str] = ()
    ) -> None:
        """Install stub nvidia-* wheels, but not those of the folders `without`."""
        for wheel_ in wheels.values():
            if wheel_.folder not in without:
                self.cuda_wheel(wheel_)

    def cuda_wheel(self, stub: Wheel) -> None:
        base = f"nvidia/{stub.folder}"
        files = {
            f"{base}/lib/{library.soname}": library.build(cache()).read_bytes()
            for library in stub.libraries
        }
        files |= {f"{base}/{path}": content for path, content in stub.other_files.items()}
        self.add_distribution(stub.distribution, stub.version, files)

    def search_cusolver(self) -> None:
        """What users of TensorFlow 2.21 have to do: it does not search this folder by itself."""
        self.prepend("LD_LIBRARY_PATH", self.site / "nvidia" / "cusolver" / "lib")

    def library(self, stub: StubLibrary, place: Path) -> Path:
        """A stub library in any folder."""
        return _write(place / stub.soname, stub.build(cache()).read_bytes())


def site_of(target: str) -> Path:
    """The packages of a shared target, to be left as they are."""
    (site,) = Path(python_of(target)).parent.parent.glob("lib/python3*/site-packages")
    return site


def cache() -> Path:
    """Where compiled stubs are kept from one run to the next."""
    place = targets_folder() / "stubs"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _remove_leftovers(folder: Path) -> None:
    """Copies of runs that were killed. No run takes an hour."""
    for place in folder.iterdir():
        # Another process may be done with its own just now.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - place.stat().st_mtime > 3600:
                shutil.rmtree(place, ignore_errors=True)


def _write(file: Path, content: bytes | str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    # A hard link's content is also the shared target's.
    file.unlink(missing_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def _sweep(site: Path, folders: set[Path]) -> None:
    """Remove byte code, and folders that are empty without it, as pip does."""
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        code = folder / "__pycache__"
        if code.is_symlink():
            code.unlink()
        shutil.rmtree(code, ignore_errors=True)
        while folder != site and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def _infos(site: Path, distribution: str) -> Iterator[Path]:
    wanted = _plain(distribution)
    for info in site.glob("*.dist-info"):
        if _plain(info.name.split("-")[0]) == wanted:
            yield info


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _link_environment(source: Path, place: Path, *, whole: bool) -> None:
    """A virtual environment with paths of its own that takes no space and no time.

    Folders with shared objects are real ones with hard links in them, because the loader resolves
    $ORIGIN/.. by the folder's real place; all others are links to the shared target's folders,
    unless the copy is to be `whole`.
    """
    (place / "bin").mkdir()
    interpreter = source / "bin" / "python"
    real = os.readlink(interpreter) if interpreter.is_symlink() else str(interpreter)
    (place / "bin" / "python").symlink_to(os.path.join(interpreter.parent, real))
    shutil.copy(source / "pyvenv.cfg", place)
    (site,) = source.glob("lib/python3*/site-packages")
    own = place / site.relative_to(source)
    own.parent.mkdir(parents=True)
    _link_folder(str(site), str(own), _folders(str(site), with_libraries=not whole))


def _link_folder(source: str, place: str, real_ones: Collection[str] = ()) -> None:
    os.mkdir(place)
    with os.scandir(source) as entries:
        for entry in entries:
            target = os.path.join(place, entry.name)
            if entry.path in real_ones:
                _link_folder(entry.path, target, real_ones)
            elif entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            elif entry.is_dir():
                os.symlink(entry.path, target)
            else:
                os.link(entry.path, target)


@functools.cache
def _folders(site: str, *, with_libraries: bool) -> frozenset[str]:
    """Every folder, or those that have a shared object in them or in a folder below."""
    found: set[str] = set()
    for folder, _, files in os.walk(site):
        if not with_libraries or any(".so" in name for name in files):
            while folder != site and folder not in found:
                found.add(folder)
                folder = os.path.dirname(folder)
    return frozenset(found)


def _make_own(site: Path, path: Path) -> None:
    """Turn links on the way to a path into folders of the copy."""
    for folder in reversed(path.relative_to(site).parents):
        place = site / folder
        if place.is_symlink():
            source = os.readlink(place)
            place.unlink()
            _link_folder(source, str(place))
