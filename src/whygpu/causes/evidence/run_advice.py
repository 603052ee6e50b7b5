"""Remedies that start the program with `whygpu run`, which helps at once and installs nothing."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.remedy import command_line

REPAIRED_RUN = Remedy(
    "Start the program with whygpu, which repairs this for that one run.",
    command_line("whygpu run -- python PROGRAM.py"),
)
RUN_AS_TENSORFLOW_1 = Remedy(
    "Start the program with whygpu, which runs code for TensorFlow 1 on TensorFlow 2.",
    command_line("whygpu run --tf1 -- python FILE.py"),
)
