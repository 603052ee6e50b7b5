"""Distributions by their metadata folders: order, duplicates, and the odd ways to be installed."""

from __future__ import annotations

import pathlib

import pytest

from tests.collectors.sites import install, interpreter, write
from whygpu.collectors import packages
from whygpu.host.local import LocalHost
from whygpu.model.observed import Unknown, need
from whygpu.model.target import Package, active


def collect(*paths: pathlib.Path, python: str = "3.11.7") -> tuple[Package, ...]:
    return need(packages.collect(LocalHost(), interpreter(*paths, version=python)))


def versions(found: tuple[Package, ...]) -> dict[str, str]:
    return {package.name: package.version for package in found}


@pytest.mark.parametrize(
    ("entry", "name", "version"),
    [
        ("nvidia_cudnn_cu12-9.27.0.42.dist-info", "nvidia-cudnn-cu12", "9.27.0.42"),
        ("torch-2.13.0+cpu.dist-info", "torch", "2.13.0+cpu"),
        ("Keras_Applications-1.0.8.dist-info", "keras-applications", "1.0.8"),
        ("zope.interface-5.0.dist-info", "zope-interface", "5.0"),
        ("gast-0.2.2-py3.7.egg-info", "gast", "0.2.2"),
        ("dm-tree-0.1.8-py3.7-linux-x86_64.egg-info", "dm-tree", "0.1.8"),
    ],
)
def test_a_folder_s_name_gives_name_and_version(
    tmp_path: pathlib.Path, entry: str, name: str, version: str
) -> None:
    (tmp_path / entry).mkdir()
    assert versions(collect(tmp_path)) == {name: version}


def test_what_pip_left_half_removed_is_not_a_package(tmp_path: pathlib.Path) -> None:
    (tmp_path / "~ensorflow-2.20.0.dist-info").mkdir()
    (tmp_path / "notes-1.0.txt").touch()
    assert collect(tmp_path) == ()


def test_the_first_copy_on_the_path_hides_the_others(tmp_path: pathlib.Path) -> None:
    install(tmp_path / "user", "numpy", "1.26.4")
    install(tmp_path / "venv", "numpy", "2.4.6")
    found = collect(tmp_path / "user", tmp_path / "venv")
    assert [(each.version, each.shadowed) for each in found] == [("1.26.4", False), ("2.4.6", True)]
    assert versions(tuple(active(found))) == {"numpy": "1.26.4"}


def test_two_versions_in_one_folder_are_both_shown_as_active(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "keras", "2.15.0")
    install(tmp_path, "keras", "3.15.1")
    assert [(each.version, each.shadowed) for each in collect(tmp_path)] == [
        ("2.15.0", False),
        ("3.15.1", False),
    ]


def test_one_folder_under_two_names_is_read_once(tmp_path: pathlib.Path) -> None:
    install(tmp_path / "lib", "numpy", "2.4.6")
    (tmp_path / "lib64").symlink_to(tmp_path / "lib")
    assert len(collect(tmp_path / "lib", tmp_path / "lib64")) == 1


def test_entries_of_the_path_that_are_no_folders_are_passed_over(tmp_path: pathlib.Path) -> None:
    (tmp_path / "python311.zip").touch()
    assert collect(tmp_path / "python311.zip", tmp_path / "missing") == ()


def test_requirements_are_those_for_this_interpreter_without_extras(
    tmp_path: pathlib.Path,
) -> None:
    install(
        tmp_path,
        "tensorflow",
        "2.21.0",
        requires=[
            "numpy>=1.26.0",
            'h5py>=3.11.0; python_version >= "3.10"',
            'mock (>=2.0.0); python_version < "3"',
            'nvidia-cublas-cu12<13.0; extra == "and-cuda"',
            'io>=1; (sys_platform != "win32" and python_version < "3.13") and extra == "gcs"',
        ],
    )
    (package,) = collect(tmp_path)
    assert package.requires == ("numpy>=1.26.0", 'h5py>=3.11.0; python_version >= "3.10"')


def test_markers_are_judged_by_the_target_s_python_and_not_by_ours(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow", "1.15.5", requires=['numpy; python_version < "3.8"'])
    assert collect(tmp_path, python="3.7.16")[0].requires
    assert not collect(tmp_path, python="3.8.1")[0].requires


def test_metadata_is_read_only_where_it_matters(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "flask", "3.0", requires=["numpy"], tags=["py3-none-any"])
    install(tmp_path, "jaxlib", "0.12.0", tags=["cp312-cp312-manylinux_2_27_x86_64"])
    flask, jaxlib = collect(tmp_path)
    assert (flask.requires, flask.wheel_tags) == ((), ())
    assert jaxlib.wheel_tags == ("cp312-cp312-manylinux_2_27_x86_64",)


def test_a_project_linked_from_its_source_is_found_there(tmp_path: pathlib.Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    write(source / "keras_nightly.egg-info/PKG-INFO", "Name: keras-nightly\nVersion: 3.16.dev0\n")
    write(site / "keras-nightly.egg-link", f"{source}\n.")
    (package,) = collect(site)
    assert (package.name, package.version) == ("keras-nightly", "3.16.dev0")
    assert package.location == str(source)


def test_metadata_that_is_one_file_is_read_as_such(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "numpy-1.16.0-py3.6.egg-info", "Name: numpy\nVersion: 1.16.0\n")
    assert versions(collect(tmp_path)) == {"numpy": "1.16.0"}


def test_an_egg_on_the_path_is_a_package_itself(tmp_path: pathlib.Path) -> None:
    egg = tmp_path / "h5py-2.10.0-py3.6-linux-x86_64.egg"
    write(egg / "EGG-INFO/PKG-INFO", "Name: h5py\nVersion: 2.10.0\n")
    assert versions(collect(egg)) == {"h5py": "2.10.0"}


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(tmp_path: pathlib.Path) -> None:
    class Denied(LocalHost):
        def list(self, path: str) -> Unknown:
            return Unknown(f"{path}: permission denied")

    seen = packages.collect(Denied(), interpreter(tmp_path))
    assert seen == Unknown(f"{tmp_path}: permission denied")
