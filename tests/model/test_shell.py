"""Commands for POSIX shells are translated for Windows, or left out."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.shell import for_windows


@each(
    ("posix", "windows"),
    [
        ("python3.11 -m pip install torch==2.8.0", "py -3.11 -m pip install torch==2.8.0"),
        ("python -m pip install 'numpy<2'", 'python -m pip install "numpy<2"'),
        (
            "pip install 'jax[cuda12]==0.7' && pip check",
            'pip install "jax[cuda12]==0.7" && pip check',
        ),
        ("export A=1", None),
        ("echo $HOME", None),
        ("echo '%PATH%'", None),
        ("echo 'a\"b'", None),
    ],
)
def test_a_command(posix: str, windows: str | None) -> None:
    assert for_windows(posix) == windows
