"""What an import finds decides which framework is there, whatever the metadata describe."""

from __future__ import annotations

import pathlib

from tests.collectors.frameworks.scenes import no_loader
from tests.collectors.sites import install, interpreter, write
from whygpu.collectors import frameworks, packages
from whygpu.host.local import LocalHost
from whygpu.model.observed import Absent, Known, Observed, Unknown, need
from whygpu.model.target import FoundModule, Framework


def collected(folder: pathlib.Path, **places: Observed[str]) -> Observed[tuple[Framework, ...]]:
    modules = tuple(FoundModule(name, place) for name, place in places.items())
    python = interpreter(folder)._replace(modules=Known(modules, "test"))
    found = packages.collect(LocalHost(), python)
    return frameworks.collect(LocalHost(), Known(python, "test"), found, no_loader)


def installed(folder: pathlib.Path) -> pathlib.Path:
    install(folder, "torch", "2.8.0+cpu")
    write(folder / "torch/__init__.py", "")
    write(folder / "torch/version.py", "cuda = None\n__version__ = '2.8.0+cpu'\n")
    return folder / "torch"


def test_the_installed_copy_is_described_by_its_metadata(tmp_path: pathlib.Path) -> None:
    place = installed(tmp_path)
    (torch,) = need(collected(tmp_path, torch=Known(str(place), "finder")))
    assert torch.build.kind == Known("cpu", str(tmp_path / "torch/version.py"))


def test_of_a_copy_that_comes_before_the_installed_one_the_metadata_say_nothing(
    tmp_path: pathlib.Path,
) -> None:
    installed(tmp_path / "site")
    write(tmp_path / "checkout/torch/__init__.py", "")
    place = str(tmp_path / "checkout/torch")
    (torch,) = need(collected(tmp_path / "site", torch=Known(place, "finder")))
    assert torch.location == place
    assert isinstance(torch.build.kind, Unknown)


def test_without_metadata_the_version_file_of_torch_says_what_it_was_built_for(
    tmp_path: pathlib.Path,
) -> None:
    write(tmp_path / "torch/__init__.py", "")
    version = tmp_path / "torch/version.py"
    place = str(tmp_path / "torch")
    for written, kind in (
        ("__version__ = '2.8.0+cpu'\ncuda: Optional[str] = None\nhip = None\n", "cpu"),
        ("__version__ = '2.8.0+cu128'\ncuda: Optional[str] = '12.8'\nhip = None\n", "cuda"),
    ):
        write(version, written)
        (torch,) = need(collected(tmp_path, torch=Known(place, "finder")))
        assert torch.build.kind == Known(kind, str(version))
        assert torch.version == written.split("'")[1]


def test_a_version_file_that_no_build_of_torch_wrote_says_nothing(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "torch/__init__.py", "")
    write(tmp_path / "torch/version.py", "__version__ = '0.1'\n")
    (torch,) = need(collected(tmp_path, torch=Known(str(tmp_path / "torch"), "finder")))
    assert torch.build.kind == Unknown(f"{tmp_path / 'torch'} has no package metadata")


def test_an_editable_install_is_where_its_finder_leads(tmp_path: pathlib.Path) -> None:
    install(tmp_path / "site", "keras", "3.11.3")
    write(tmp_path / "source/keras/__init__.py", "")
    place = str(tmp_path / "source/keras")
    (keras,) = need(collected(tmp_path / "site", keras=Known(place, "finder")))
    assert (keras.name, keras.version, keras.location) == ("keras", "3.11.3", place)
    assert keras.keras is not None


def test_a_framework_in_an_archive_is_one(tmp_path: pathlib.Path) -> None:
    tmp_path.joinpath("site").mkdir()
    (keras,) = need(collected(tmp_path / "site", keras=Known("/x/all.zip/keras", "finder")))
    assert (keras.name, keras.version) == ("keras", "unknown")


def test_a_finder_that_fails_leaves_it_open_which_frameworks_there_are(
    tmp_path: pathlib.Path,
) -> None:
    tmp_path.joinpath("site").mkdir()
    seen = collected(tmp_path / "site", jax=Unknown("KeyError: 'x'"), torch=Absent("torch"))
    assert seen == Unknown("whether jax is installed: KeyError: 'x'")
    assert need(collected(tmp_path / "site", jax=Absent("jax"), torch=Absent("torch"))) == ()
