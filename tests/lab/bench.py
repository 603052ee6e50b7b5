"""The machine of one scenario, under construction: its environment, its folders, its packages."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tests.lab.cuda import CUDA_12, StubLibrary, Wheel
from tests.lab.wheels import wheel
from tests.targets import folder as targets_folder
from tests.targets import python_of

_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONDONTWRITEBYTECODE")
"""All that a scenario takes over from whoever runs it."""


class Bench:
    """Where `lay_out` of a scenario works. `site` is a copy, made when it is first asked for.

    Files of the copy are hard links to the shared target's: replace them, never write into them.
    The methods here do so.
    """

    def __init__(self, target: str, folder: Path) -> None:
        self.folder = folder
        self._target = Path(python_of(target)).parent.parent
        self._copy: Path | None = None
        home = folder / "home"
        home.mkdir(parents=True)
        self.environ = {
            name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ
        }
        self.environ["HOME"] = str(home)

    # --- variables ---

    def set(self, **variables: str) -> None:
        self.environ.update(variables)

    def prepend(self, variable: str, folder: Path) -> None:
        """Put a folder first on a search path."""
        before = self.environ.get(variable)
        self.environ[variable] = f"{folder}:{before}" if before else str(folder)

    # --- the target ---

    @property
    def python(self) -> str:
        return str((self._copy or self._target) / "bin" / "python")

    @functools.cached_property
    def site(self) -> Path:
        """The folder with the packages of a target of our own."""
        near = self._target.resolve().parent / ".whygpu-lab"
        near.mkdir(exist_ok=True)
        self._copy = Path(tempfile.mkdtemp(dir=near))
        _link_environment(self._target, self._copy)
        (site,) = self._copy.glob("lib/python3*/site-packages")
        return site

    @property
    def _own_site(self) -> Path | None:
        return None if self._copy is None else self.site

    def close(self) -> None:
        if self._copy is not None:
            shutil.rmtree(self._copy)

    # --- packages ---

    def replace(self, file: str, content: bytes | str) -> Path:
        """A file of the target with other content, or a new one."""
        _make_own(self.site, self.site / file)
        return _write(self.site / file, content)

    def remove(self, distribution: str) -> None:
        """Uninstall, by the distribution's own list of files."""
        info = self._info(distribution)
        for path in self.distribution_files(distribution):
            _make_own(self.site, self.site / path)
            (self.site / path).unlink(missing_ok=True)

    def install(self, name: str) -> None:
        """Install one of wheels.PINNED; what it replaces goes first."""
        self.unpack(name, self.site)

    def unpack(self, name: str, place: Path) -> None:
        """Put one of wheels.PINNED into any folder."""
        file = wheel(name, str(self._target / "bin" / "python"))
        if place == self._own_site:
            distribution = file.name.split("-")[0]
            if list(_infos(self.site, distribution)):
                self.remove(distribution)
        with zipfile.ZipFile(file) as archive:
            if place == self._own_site:
                for name in archive.namelist():
                    _make_own(self.site, self.site / name)
                    if not name.endswith("/"):
                        (self.site / name).unlink(missing_ok=True)
            archive.extractall(place)

    def add_distribution(
        self,
        name: str,
        version: str,
        files: Mapping[str, bytes],
        requires: Collection[str] = (),
    ) -> None:
        """A package of our own making, with the metadata that pip would have left."""
        for path, content in files.items():
            self.replace(path, content)
        place = self.site
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        _write(place / info / "METADATA", metadata)
        _write(
            place / info / "WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-manylinux2014_x86_64\n",
        )
        record = [*files, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"]
        _write(place / info / "RECORD", "".join(f"{path},,\n" for path in record))

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


def cache() -> Path:
    """Where compiled stubs are kept from one run to the next."""
    place = targets_folder() / "stubs"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _write(file: Path, content: bytes | str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    # A hard link's content is also the shared target's.
    file.unlink(missing_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def _infos(site: Path, distribution: str) -> Iterator[Path]:
    wanted = _plain(distribution)
    for info in site.glob("*.dist-info"):
        if _plain(info.name.split("-")[0]) == wanted:
            yield info


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _link_environment(source: Path, place: Path) -> None:
    """A virtual environment with paths of its own that takes no space and no time.

    Folders with shared objects are real ones with hard links in them, because the loader resolves
    $ORIGIN/.. by the folder's real place; all others are links to the shared target's folders.
    """
    (place / "bin").mkdir()
    interpreter = source / "bin" / "python"
    real = os.readlink(interpreter) if interpreter.is_symlink() else str(interpreter)
    (place / "bin" / "python").symlink_to(os.path.join(interpreter.parent, real))
    shutil.copy(source / "pyvenv.cfg", place)
    (site,) = source.glob("lib/python3*/site-packages")
    own = place / site.relative_to(source)
    own.parent.mkdir(parents=True)
    _link_folder(str(site), str(own), _folders_with_libraries(str(site)))


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
def _folders_with_libraries(site: str) -> frozenset[str]:
    """Folders that have a shared object in them, or in a folder below."""
    found: set[str] = set()
    for folder, _, files in os.walk(site):
        if any(".so" in name for name in files):
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
