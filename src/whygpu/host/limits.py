"""Every limit on what is read from a machine and on what its commands may use.

whygpu does not control files, folders and commands. Each limit is many times what real machines
have. If a limit is reached, the answer is `Unknown` and the reason names the limit.
"""

from __future__ import annotations

TEXT_FILE = 1 << 20
"""Bytes of a text file, unless the caller gives another limit. Files of /proc, settings and package
metadata are far smaller."""
BINARY_FILE = 1 << 24
"""Bytes of a binary file that is read as a whole. The loader's cache of a large workstation has
about 200 kB."""
FOLDER_ENTRIES = 200_000
"""Names in a folder. A site-packages folder has a few hundred, /usr/lib64 some ten thousand."""

COMMAND_OUTPUT = 1 << 20
"""Bytes that a short command may print, on each of its two streams."""
COMMAND_MEMORY = 2 << 30
"""Bytes of main memory for a short command and its descendants. An interpreter whose sitecustomize
imports a framework needs less than half of that."""

ELF_STRING = 1 << 16
"""Bytes of one name in an ELF file. The longest real ones are search paths with many folders."""
ELF_STRINGS = 1 << 27
"""Total bytes of the names read from one ELF file. TensorFlow's largest library has 88 MB. In a
hostile file, a million records can point to one long name."""
ELF_RECORDS = 1 << 16
"""Records of one kind (needed libraries, versions) in an ELF file."""
ELF_SYMBOLS = 1 << 20
"""Dynamic symbols of one ELF file. TensorFlow's largest library has 483,000."""
GPU_CODE_ENTRIES = 1 << 20
"""Pieces of GPU code in an ELF file; libcublasLt has about 60,000."""
GPU_ARCHITECTURES = 1024
"""Different architectures among them; fewer than 100 exist."""
CACHE_ENTRIES = 200_000
"""Libraries in the loader's cache; a large workstation has some thousands."""
CACHE_STRING = 4096
"""Bytes of a name or path in the loader's cache: PATH_MAX of Linux."""
CACHE_STRINGS = 1 << 25
"""Bytes of all names and paths of the loader's cache together."""

RESERVE_PART = 0.05
LEAST_RESERVE = 512 << 20
"""Free memory that stays reserved for other programs while a process runs the user's code. Memory
is measured every 20 ms. A process fills at most 4 GB/s, so this is more than it can take between
two measurements, even if the machine is busy and a measurement is late."""


def spare(available: int) -> int:
    """How much of the free memory a process that runs the user's code may take."""
    reserve = max(int(RESERVE_PART * available), LEAST_RESERVE)
    # If the memory is nearly full, allow half of the rest.
    return available - min(reserve, available // 2)
