"""Build the source distribution and the wheel of the last commit twice, and check both.

The bytes depend on the commit only: files come from git, their times are the commit's, and the
umask is fixed. The two builds show it.
"""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def main() -> int:
    time = _output("git", "log", "-1", "--format=%ct").decode().strip()
    os.environ["SOURCE_DATE_EPOCH"] = time
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        first, second = (_built(pathlib.Path(folder, name), int(time)) for name in ("1", "2"))
        different = [file.name for file in first if file.read_bytes() != _twin(file, second)]
        if different:
            print(f"built twice, different bytes: {', '.join(different)}", file=sys.stderr)
            return 1
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(first[0].parent, DIST)
    files = sorted(map(str, DIST.iterdir()))
    _python("twine", "check", "--strict", *files)
    _python("check_wheel_contents", *(file for file in files if file.endswith(".whl")))
    return 0


def _built(folder: pathlib.Path, time: int) -> list[pathlib.Path]:
    source, dist = folder / "source", folder / "dist"
    with tarfile.open(fileobj=io.BytesIO(_output("git", "archive", "HEAD"))) as archive:
        archive.extractall(source)
    _python("build", "--outdir", str(dist), str(source), quiet=True)
    files = sorted(dist.iterdir())
    for file in files:
        if file.suffix == ".gz":
            _fix_metadata(file, time)
    return files


def _fix_metadata(path: pathlib.Path, time: int) -> None:
    """Write a source distribution again without the times and the users of this build."""
    with tarfile.open(path) as old, io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as new:
            for member in sorted(old.getmembers(), key=lambda member: member.name):
                member.mtime, member.pax_headers = time, {}
                member.uid = member.gid = 0
                member.uname = member.gname = ""
                new.addfile(member, old.extractfile(member) if member.isfile() else None)
        path.write_bytes(gzip.compress(buffer.getvalue(), mtime=time))


def _twin(file: pathlib.Path, others: list[pathlib.Path]) -> bytes:
    return next((other.read_bytes() for other in others if other.name == file.name), b"")


def _output(*command: str) -> bytes:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def _python(module: str, *arguments: str, quiet: bool = False) -> None:
    output = subprocess.DEVNULL if quiet else None
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, stdout=output)


if __name__ == "__main__":
    sys.exit(main())
