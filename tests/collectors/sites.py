"""Site-packages folders made by hand, for tests of what is read from them."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from whygpu.model.observed import Absent
from whygpu.model.target import Interpreter


def interpreter(*paths: pathlib.Path, version: str = "3.11.7") -> Interpreter:
    """An interpreter whose sys.path is these folders."""
    return Interpreter(
        path="/venv/bin/python",
        version=version,
        implementation="cpython",
        prefix="/venv",
        isolated=True,
        user_site=Absent("switched off"),
        paths=tuple(map(str, paths)),
        wheel_tags=("cp311", "abi3", "py3", "linux_x86_64"),
    )


def install(
    folder: pathlib.Path,
    name: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    tags: Sequence[str] = ("py3-none-any",),
) -> pathlib.Path:
    """The metadata that pip leaves for a wheel."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {r}" for r in requires)]
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\n" + "\n".join(lines) + "\n\nRequires-Dist: text-below-the-headers\n"
    )
    (metadata / "WHEEL").write_text(
        "Wheel-Version: 1.0\n" + "".join(f"Tag: {tag}\n" for tag in tags)
    )
    return metadata


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
