"""Run whygpu, and keep what the processes of a profiled run recorded.

python -I benchmarks/idle/keeping.py FOLDER run --profile -- python train.py

FOLDER then has record.json.gz and the file of the framework's profiler, as the recordings in
tests/profiling/recorded: a test can judge them again, without the GPU. With "-" nothing is kept.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import pathlib
import sys
from typing import Any

if importlib.util.find_spec("whygpu") is None:
    # A machine with a GPU may have no network to install it from: then this checkout is used.
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src"))

from whygpu.cli.start import main
from whygpu.launch import profile_records
from whygpu.model.profile import ProcessProfile

NOTHING_KEPT = "-"


def keep(data: dict[str, Any], folder: pathlib.Path) -> bool:
    """Whether there was a recording of a framework's profiler to keep."""
    recording = data.get("recording", {})
    files = [pathlib.Path(each) for each in recording.get("files", ())]
    if not files or not files[0].is_file():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    name = "kineto.json.gz" if recording.get("kind") == "kineto" else "xplane.pb.gz"
    (folder / name).write_bytes(gzip.compress(files[0].read_bytes()))
    (folder / "record.json.gz").write_bytes(gzip.compress(json.dumps(data).encode()))
    return True


def keeping(place: pathlib.Path) -> None:
    """From now on, keep each recording that is read. Of several processes, the last one's stays."""
    read = profile_records.decoded

    def decoded(data: dict[str, Any], folder: str) -> tuple[ProcessProfile, tuple[str, ...]]:
        keep(data, place)
        return read(data, folder)

    profile_records.decoded = decoded


if __name__ == "__main__":
    if sys.argv[1] != NOTHING_KEPT:
        keeping(pathlib.Path(sys.argv[1]))
    sys.argv[:2] = ["whygpu"]
    sys.exit(main())
