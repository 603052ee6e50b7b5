"""The copy of an environment: the same content, and no change of it reaches the original."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fixing.small import content, environment
from whygpu.fixing.copying import (
    LINKED_FROM,
    NotCopied,
    copy_tree,
    different_files,
    linked_files,
    replace_in_text_files,
    size_of,
    start_up_files,
    written_files,
)


def test_the_copy_has_the_same_content(tmp_path: Path) -> None:
    source = environment(tmp_path / "env", "one")
    copied = copy_tree(str(source), str(tmp_path / "copy"))
    assert content(tmp_path / "copy") == content(source)
    assert 0 < copied < 10_000


def test_large_files_are_links_and_small_ones_are_not(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    copy_tree(str(source), str(tmp_path / "copy"))

    def same(name: str) -> bool:
        return os.path.samefile(source / name, tmp_path / "copy" / name)

    assert same("lib/numbers/large.so")
    assert not same("lib/numbers/small.py")


def test_modes_and_times_are_kept(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    closed = source / "lib" / "numbers"
    os.utime(closed / "small.py", ns=(1, 2))
    closed.chmod(0o555)
    copy_tree(str(source), str(tmp_path / "copy"))
    now = os.stat(tmp_path / "copy" / "lib" / "numbers" / "small.py")
    assert now.st_mtime_ns == 2
    assert os.stat(tmp_path / "copy" / "lib" / "numbers").st_mode & 0o777 == 0o555
    assert os.stat(tmp_path / "copy" / "bin" / "python").st_mode & 0o777 == 0o755


def test_an_absolute_link_into_the_environment_leads_into_the_copy(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    (source / "bin" / "again").symlink_to(source / "bin" / "python")
    (source / "bin" / "other").symlink_to(f"{source}-2")
    (tmp_path / "name").symlink_to(source)
    (source / "lib" / "named").symlink_to(tmp_path / "name" / "lib" / "numbers")
    copy_tree(str(source), str(tmp_path / "copy"))
    assert os.readlink(tmp_path / "copy" / "lib" / "named") == str(tmp_path / "copy/lib/numbers")
    assert os.readlink(tmp_path / "copy" / "bin" / "again") == str(tmp_path / "copy/bin/python")
    assert os.readlink(tmp_path / "copy" / "bin" / "other") == f"{source}-2"


def test_a_link_to_a_folder_outside_becomes_a_folder(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    outside = tmp_path / "project"
    outside.mkdir()
    (outside / "module.py").write_text("mine = 1")
    (source / "lib" / "project").symlink_to(outside)
    assert size_of(str(source)).outside == ("lib/project",)
    copy_tree(str(source), str(tmp_path / "copy"))
    copied = tmp_path / "copy" / "lib" / "project"
    assert not copied.is_symlink()
    (copied / "module.py").unlink()
    assert (outside / "module.py").read_text() == "mine = 1"


def test_a_link_to_a_folder_that_contains_it_is_refused(tmp_path: Path) -> None:
    source = environment(tmp_path / "home" / "env")
    (source / "lib" / "home").symlink_to(tmp_path / "home")
    with pytest.raises(NotCopied, match="a folder that contains it"):
        size_of(str(source))


def test_the_size_counts_what_is_copied(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    size = size_of(str(source))
    files = [path for path in source.rglob("*") if path.is_file() and not path.is_symlink()]
    small = [path for path in files if path.stat().st_size < LINKED_FROM]
    # The content of lib/link is that of lib/numbers, and is counted once.
    files = [path for path in files if "link" not in path.parts]
    assert size.files == len(files)
    assert size.small_bytes == sum(p.stat().st_size for p in small if "link" not in p.parts)
    assert size.size_bytes - size.small_bytes == 100_000


def test_a_path_is_replaced_in_text_and_reported_in_binaries(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    copy = tmp_path / "copy"
    copy_tree(str(source), str(copy))
    (copy / "bin" / "tool").write_text(f"#!{copy}/bin/python\n")
    (copy / "bin" / "tool").chmod(0o755)
    (copy / "lib" / "built.so").write_bytes(b"\0" + str(copy).encode())
    new = sorted(different_files(str(copy), str(source)))
    assert new == ["bin/tool", "lib/built.so"]
    binary = replace_in_text_files(str(copy), iter(new), str(copy), str(source))
    assert binary == ("lib/built.so",)
    assert (copy / "bin" / "tool").read_text() == f"#!{source}/bin/python\n"
    assert (copy / "bin" / "tool").stat().st_mode & 0o777 == 0o755


def test_a_path_that_only_begins_in_the_same_way_stays(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    (source / "lib" / "two.pth").write_text(f"{source}-sources/src\n{source}/src\n{source}\n")
    replace_in_text_files(str(source), iter(["lib/two.pth"]), str(source), "/copy")
    assert (source / "lib" / "two.pth").read_text() == f"{source}-sources/src\n/copy/src\n/copy\n"


def test_replacing_in_a_linked_file_does_not_change_the_original(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    text = f"{source}/lib\n" + "#" * LINKED_FROM
    (source / "lib" / "here.pth").write_text(text)
    copy = tmp_path / "copy"
    copy_tree(str(source), str(copy))
    assert list(start_up_files(str(copy))) == ["lib/here.pth"]
    replace_in_text_files(str(copy), start_up_files(str(copy)), str(source), str(copy))
    assert (copy / "lib" / "here.pth").read_text().startswith(f"{copy}/lib")
    assert (source / "lib" / "here.pth").read_text() == text


def test_writing_into_a_file_that_is_shared_is_found_out(tmp_path: Path) -> None:
    source = environment(tmp_path / "env")
    copy = tmp_path / "copy"
    copy_tree(str(source), str(copy))
    linked = linked_files(str(copy), str(source))
    if not linked:
        pytest.skip("this file system copies files by sharing their blocks")
    assert list(linked) == ["lib/numbers/large.so"]
    (copy / "lib" / "numbers" / "small.py").write_text("changed")
    assert written_files(str(source), linked) == []
    with open(copy / "lib" / "numbers" / "large.so", "ab") as file:
        file.write(b"more")
    assert written_files(str(source), linked) == ["lib/numbers/large.so"]
