"""The values of expressions that people are asked for, in sessions, commands and notebooks."""

from __future__ import annotations

import time

from tests.cases import each
from whygpu.readers.log import read_text

ALL_OF_TORCH = (
    "torch.__version__, torch.version.cuda, torch.cuda.is_available(), torch.cuda.device_count()"
)


def shown(text: str) -> list[tuple[str, str]]:
    return [(value.of, value.value) for value in read_text(text).shown]


@each(
    ("text", "values"),
    [
        (">>> torch.version.cuda\n'12.1'", [("torch-cuda", "12.1")]),
        (
            f'$ python -c "import torch; print({ALL_OF_TORCH})"\n2.3.1 None False 0',
            [
                ("torch-version", "2.3.1"),
                ("torch-cuda", "None"),
                ("gpu-there", "False"),
                ("gpu-count", "0"),
            ],
        ),
        (
            f">>> {ALL_OF_TORCH}\n('2.1.0+cu118', '11.8', True, 2)",
            [
                ("torch-version", "2.1.0+cu118"),
                ("torch-cuda", "11.8"),
                ("gpu-there", "True"),
                ("gpu-count", "2"),
            ],
        ),
        (
            "In [3]: torch.version.cuda, torch.cuda.is_available()\nOut[3]: (None, False)",
            [("torch-cuda", "None"), ("gpu-there", "False")],
        ),
        (
            "C:\\work> python -c 'import torch; print(torch.cuda.is_available())'\nFalse",
            [("gpu-there", "False")],
        ),
        (
            'print("CUDA", torch.version.cuda, "found:", torch.cuda.is_available())\n'
            "CUDA 12.4 found: False",
            [("torch-cuda", "12.4"), ("gpu-there", "False")],
        ),
        (
            'print(f"GPU: {torch.cuda.is_available()}")\nprint("for " + str(torch.version.cuda))'
            "\nGPU: False\nfor None",
            [("gpu-there", "False"), ("torch-cuda", "None")],
        ),
        (
            "import tensorflow as tf\nprint(tf.__version__)\nprint(tf.test.is_built_with_cuda())\n"
            "print(len(tf.config.list_physical_devices('GPU')))\n2.16.1\nTrue\n0",
            [("tensorflow-version", "2.16.1"), ("tensorflow-built", "True"), ("gpu-count", "0")],
        ),
        (
            ">>> tf.config.list_physical_devices('GPU')\n"
            "2024-01-01 10:00:00.000001: I x/cuda_executor.cc:1] a record\n"
            "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]",
            [("gpu-list", "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]")],
        ),
        (
            ">>> jax.devices(), jax.default_backend()\n([CudaDevice(id=0)], 'gpu')",
            [("devices", "[CudaDevice(id=0)]"), ("jax-backend", "gpu")],
        ),
        (">>> keras.backend.backend()\n'jax'", [("keras-backend", "jax")]),
        (
            ">>> torch.cuda.is_available()\n/env/torch/cuda/__init__.py:1: UserWarning: CUDA "
            "initialization: none\n  return torch._C._cuda_getDeviceCount() > 0\nFalse",
            [("gpu-there", "False")],
        ),
        ("False None", [("torch-cuda", "None"), ("gpu-there", "False")]),
        (
            "2.2.0+cu118 11.8 False 0",
            [("torch-version", "2.2.0+cu118"), ("torch-cuda", "11.8"), ("gpu-there", "False")],
        ),
    ],
)
def test_a_value_belongs_to_the_expression_that_was_printed(
    text: str, values: list[tuple[str, str]]
) -> None:
    assert shown(text) == values


def test_a_session_prints_nothing_for_none() -> None:
    session = ">>> torch.version.cuda\n>>> torch.cuda.is_available()\nFalse\n"
    assert shown(session) == [("torch-cuda", "None"), ("gpu-there", "False")]
    assert shown(">>> torch.version.cuda\n") == []


@each(
    "text",
    [
        "if torch.cuda.is_available():\n    x = 1\nFalse",
        ">>> torch.cuda.is_available()\n>>> model.training\nFalse",
        "print(torch.cuda.is_available())\nsome other output of the program\nFalse",
        "print(torch.cuda.is_available(), file=log)\nTrue story",
        "The option is False None of the time",
        "loss 0.5 False None",
        "print(((((torch.cuda.is_available(\nFalse",
    ],
)
def test_nothing_is_paired_that_does_not_belong_together(text: str) -> None:
    assert shown(text) == []


def test_an_expression_has_one_value() -> None:
    assert shown("torch.cuda.is_available()\nFalse\nFalse\n") == [("gpu-there", "False")]


def test_values_among_other_lines_are_not_guessed() -> None:
    lines = "\n".join(f"line of a program {letter}" for letter in "abcdefgh")
    assert shown(f"{lines}\nFalse None\n") == []


def test_text_may_stand_on_both_sides_of_a_value() -> None:
    joined = 'print("torch " + torch.__version__ + " for " + "everything")\n'
    assert shown(joined + "torch 2.1.0 for everything") == [("torch-version", "2.1.0")]
    formatted = 'print(f"<{torch.version.cuda}.>", torch.cuda.is_available())\n'
    assert shown(formatted + "<12.1.> False") == [("torch-cuda", "12.1"), ("gpu-there", "False")]


@each(
    ("asks", "answer"),
    [
        (f"print({', '.join(['torch.__version__'] * 40)})", "1" * 300 + "!"),
        (f"print('a', {(repr('') + ',') * 150} torch.__version__)", "a" + " " * 400 + "!"),
        (f"print(torch.__version__{(' + ' + repr('')) * 130})", "2.1.0!"),
        (f"{'-' * 700}torch.cuda.is_available()", "False"),
    ],
)
def test_a_strange_expression_takes_no_longer_than_another(asks: str, answer: str) -> None:
    begin = time.process_time()
    read_text(f">>> {asks}\n{answer}")
    assert time.process_time() - begin < 2
