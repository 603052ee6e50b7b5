"""Every limit on what is read from a source file, a log or a snapshot.

whygpu does not control them: a few hundred bytes can describe a value of gigabytes. If
something exceeds a limit, it is unknown, or the file is reported as not checked.
"""

from __future__ import annotations

SOURCE_FILE = 8 << 20
"""Bytes of a source file or notebook."""
SOURCE_TOKENS = 200_000
"""Tokens in the code of a file. Each takes up to 900 bytes in the syntax tree; the largest modules
of TensorFlow have about 130,000."""
JSON_VALUES = 1_200_000
"""Values in a notebook or snapshot. Each takes up to 120 bytes once it is parsed."""

TEXT_VALUE = 10_000
"""Characters of a string that is followed through a program. Device names and flags are short."""
NAME_LENGTH = 500
"""Characters of an imported name with all its parts: tensorflow.config.list_physical_devices."""
VALUE_PARTS = 2_000
"""Parts of a compound value. `b = (a, a)`, repeated, doubles them with each line."""
VALUE_DEPTH = 40
"""How deep such a value may nest: two of them are compared recursively."""
FOLLOWED_NODES = 1_000_000
"""Expressions that are evaluated before calls are no longer followed into their functions."""
CONTEXT_FRAMES = 2_000_000
"""Total number of conditions of all events of a file. Every `assert` adds one condition to all
events after it."""

SNAPSHOT = 1 << 24
"""Bytes of a snapshot. With all probes and what they printed, one has less than 1 MiB."""
UNPACKED_LOG = 2 << 30
"""Unpacked bytes of a compressed log that are read, which takes some ten seconds."""
UNPACKING_MEMORY = 1 << 27
"""Bytes of memory for a decompressor; enough for xz -9 and zstd --long=27."""
