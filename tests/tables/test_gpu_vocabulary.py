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
        ("LLVM ERROR: Cannot select: intrinsic", True),
        ("OSError: [Errno 28] No space left on device", False),
        ("RuntimeError: the device is gone", True),
        # Where a tensor or a node is says nothing about what is wrong with it.
        (
            'ValueError: shapes: Tensor("x:0", shape=(?, 3), dtype=float32, device=/device:GPU:0)',
            False,
        ),
        ('TypeError: Tensor("Cast:0", shape=(), dtype=int32) must be float32', False),
        ("TypeError: <tf.Tensor 'x:0' shape=() device=/gpu:0> is not a number", False),
        ("TypeError: <tf.Variable 'w:0' shape=(3,) device=/gpu:0> is not trainable", False),
        ("Incompatible shapes: [2] vs. [3] [[{{node loss/mul}} = Mul[T, _device=/gpu:0]]]", False),
        ("Incompatible shapes: [2] vs. [3] [[Node: mul = Mul[_device=/device:GPU:0]]]", False),
        ("Blas xGEMM launch failed [[{{node MatMul}}]]", True),
        ("device /gpu:0 is gone [[{{node MatMul}}]]", True),
        ('cuBLAS failed for Tensor("x:0", shape=(3,), dtype=float32)', True),
        # Not a tensor's description.
        ("RuntimeError: Tensor(device=cuda:0) is needed", True),
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
