"""Messages that people typed by hand, with mistakes."""

from __future__ import annotations

import time

from tests.cases import each
from tests.kit import explained
from whygpu.readers.typed_messages import corrected
from whygpu.tables.typed_messages import MESSAGES

TYPED = (
    (
        "RuntimeErorr: The NVIDIA driver on your sytem is too old (found version 10010).",
        "driver-too-old-for-cuda",
    ),
    ("AssertionError: Torch not compiled with cuda enabled", "cpu-only-build"),
    ("Cuda error: no CUDA capable device is detected", "no-nvidia-driver"),
    ("CUDA error: invalid device ordnal", "invalid-device-ordinal"),
    ("cuda error: device side assert triggered", "device-assert-bad-input"),
    (
        "NVIDIA-SMI has failed because it couldnt comunicate with the NVIDIA driver",
        "nvidia-kernel-module-state",
    ),
    (
        "Loaded runtime cuDNN libary: 8.0.5 but source was compiled with: 8.1.0",
        "cudnn-version-mismatch",
    ),
    (
        "ResourceExhausedError: OOM when alocating tensor with shape[64,512,28,28] by alocator "
        "GPU_0_bfc",
        "oom-model-too-big",
    ),
    # A guess is better than no answer.
    ("CUDA eror: no kernel image is avaliable for execution on the device", "compute-capability"),
)


@each(("text", "root"), TYPED)
def test_a_message_with_mistakes_is_understood(text: str, root: str) -> None:
    assert explained(text).root_causes[0].cause.startswith(root)


@each("message", MESSAGES)
def test_a_message_without_mistakes_stays_as_it_is(message: str) -> None:
    line = f"RuntimeError: {message}: the rest of it"
    assert corrected([(1, line)]) is None


@each(
    "text",
    [
        # Each has a word that is another one, and no slip.
        "CUDA error: invalid device context",
        "CUDA error: invalid device function",
        "no display-capable device is detected",
        "The NVIDIA driver on your system is too new",
        "Torch now compiles with CUDA",
        "ValueError: shapes (3,4) and (5,6) not aligned",
        "x" * 10_000,
    ],
)
def test_other_messages_are_not_corrected(text: str) -> None:
    assert corrected([(1, text)]) is None


def test_what_is_correct_decides_first() -> None:
    answer = explained("Torch not compiled with cuda enabled\nCUDA error: invalid device ordinal")
    assert [root.cause for root in answer.root_causes] == ["invalid-device-ordinal"]


def test_hundreds_of_lines_take_little_time() -> None:
    lines = [(n, "cuda eror no kernel image is for on the devise " * 12) for n in range(200)]
    began = time.process_time()
    corrected(lines)
    assert time.process_time() - began < 5
