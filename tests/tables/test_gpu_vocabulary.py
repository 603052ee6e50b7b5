"""The one vocabulary for "is this about a GPU"."""

from __future__ import annotations

import re

from tests.cases import each
from whygpu.readers.sieve import WORDS
from whygpu.tables import gpu_vocabulary
from whygpu.tables.gpu_vocabulary import code_is_about_gpu, message_is_about_gpu


@each(
    ("text", "expected"),
    [
        ("RuntimeError: CUDA error: invalid device ordinal", True),
        ("InternalError: Blas GEMM launch failed", True),
        ("ValueError: not enough GPU memory", True),
        ("at /pytorch/aten/src/ATen/native/cuda/Loss.cu:240", True),
        ("FileNotFoundError: '/home/cuda_user/gpu/data.csv'", False),
        ("KeyError: 'label'", False),
    ],
)
def test_messages(text: str, expected: bool) -> None:
    assert message_is_about_gpu(text) is expected


@each(
    ("text", "expected"),
    [
        ("torch.cuda.set_device(1)", True),
        ("with tf.device('/GPU:0'):", True),
        ("model.to(device)", False),
        ("open('/data/gpu/train.csv')", False),
    ],
)
def test_source_code(text: str, expected: bool) -> None:
    assert code_is_about_gpu(text) is expected


@each("word", [*gpu_vocabulary.UNMISTAKABLE, *gpu_vocabulary.HARDWARE, "rocm", "cudnn", "cublas"])
def test_the_sieve_keeps_lines_with_a_word_of_the_vocabulary(word: str) -> None:
    letters = re.sub(r"[^a-z]", "", word).encode()
    assert any(kept in letters for kept in WORDS)
