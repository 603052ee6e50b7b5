"""How much is read from a machine and what its commands may take: every limit of this layer.

Files, folders and commands are input that whygpu does not control. Each limit is many times what
real machines have. When one is hit, the answer is `Unknown` and the reason names the limit.
"""

from __future__ import annotations

TEXT_FILE = 1 << 20
"""Bytes of a text file, unless the caller names another limit. Files of /proc, settings and
package metadata are far smaller."""
BINARY_FILE = 1 << 24
"""Bytes of a binary file that is read as a whole. The loader's cache of a large workstation has
about 200 kB."""
FOLDER_ENTRIES = 200_000
"""Names in a folder. A site-packages folder has a few hundred, /usr/lib64 some ten thousand."""

COMMAND_OUTPUT = 1 << 20
"""Bytes that a short command may print, on each of its two streams."""
COMMAND_MEMORY = 2 << 30
"""Bytes of main memory for a short command and its descendants. Starting an interpreter that
imports a framework in its sitecustomize takes less than half of that."""

ELF_STRING = 1 << 16
"""Bytes of one name in an ELF file. The longest real ones are search paths with many folders."""
ELF_STRINGS = 1 << 27
"""Bytes of all names that are taken from one ELF file together. TensorFlow's largest library has
88 MB; in a hostile file, a million records point at one long name."""
ELF_RECORDS = 1 << 16
"""Records of one kind (needed libraries, versions) in an ELF file."""
ELF_SYMBOLS = 1 << 20
"""Dynamic symbols of one ELF file. TensorFlow's largest library has 483,000."""
GPU_CODE_ENTRIES = 1 << 20
"""Pieces of GPU code in an ELF file; libcublasLt has about 60,000."""
GPU_ARCHITECTURES = 1024
"""Different architectures among them; there are not 100 in the world."""
CACHE_ENTRIES = 200_000
"""Libraries in the loader's cache; a large workstation has some thousands."""
CACHE_STRING = 4096
"""Bytes of a name or path in the loader's cache: PATH_MAX of Linux."""
CACHE_STRINGS = 1 << 25
"""Bytes of all names and paths of the loader's cache together."""

RESERVE_PART = 0.05
LEAST_RESERVE = 512 << 20
"""Of the memory that is free, kept free for other programs while a process runs the user's code.
Memory is looked at every 20 ms; a process fills 4 GB/s at most, so this is more than it can take
between two looks, even when the machine is busy and a look comes late."""


def spare(available: int) -> int:
    """How much of the free memory a process that runs the user's code may take."""
    reserve = max(int(RESERVE_PART * available), LEAST_RESERVE)
    # On a machine that is nearly full, half of the rest is better than nothing.
    return available - min(reserve, available // 2)
