"""What a log as a whole is about: the system that wrote it, and the framework."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.log import read_text


@each(
    ("text", "platform"),
    [
        (r'File "C:\Users\kim\train.py", line 3', "windows"),
        # PyCharm and Git write slashes, and WSL has the drives of Windows in a folder.
        ('File "C:/Users/kim/train.py", line 3', "windows"),
        ('File "/c/Users/kim/train.py", line 3', "windows"),
        ('File "/mnt/c/Users/kim/train.py", line 3', "linux"),
        ('File "/Users/kim/train.py", line 3', "macos"),
        ("see https://example.org/Users/guide", "unknown"),
        ("s3:/bucket/train.py", "unknown"),
        ("I have Windows 11 and an RTX 3060", "windows"),
        ("I have a MacBook Pro M2, macOS 14.2", "macos"),
        ("I'm on a mac mini M2", "macos"),
        ("is False normal on a Mac?", "macos"),
        ("Python 3.10.11 [MSC v.1929 64 bit (AMD64)] on win32", "windows"),
        ("PS C:\\> python a.py", "windows"),
        # platform.platform()
        ("Windows-10-10.0.19045-SP0", "windows"),
        ("Linux-6.8.0-45-generic-x86_64-with-glibc2.35", "linux"),
        ("Linux-5.15.90.1-microsoft-standard-WSL2-x86_64-with-glibc2.35", "linux"),
        ("macOS-14.2-arm64-arm-64bit", "macos"),
        ("OS: Microsoft Windows 11 Pro", "windows"),
        ("MPS needs macOS 12.3+ or a newer one", "macos"),
        ("this needs macOS 12.3+", "unknown"),
        # The program may not run in the system that a person names.
        ("Windows 11 with WSL2", "unknown"),
        ("Windows 11, in Docker", "unknown"),
        ("on Colab, from my MacBook", "unknown"),
        ("my MacBook, and a PC with Windows 10", "unknown"),
        ("my MacBook, and File /home/kim/train.py", "linux"),
    ],
)
def test_the_system_that_wrote_it(text: str, platform: str) -> None:
    assert read_text(text).platform == platform


@each(
    ("text", "framework"),
    [
        ("Found cuDNN version 8600, but JAX was built against version 8904", "jax"),
        ("Could not find 'cudart64_90.dll'. TensorFlow requires this DLL", "tensorflow"),
        ("import torch  # not TensorFlow", "torch"),
        ("faster than TensorFlow and JAX", ""),
    ],
)
def test_the_framework_that_a_sentence_names(text: str, framework: str) -> None:
    assert read_text(text).framework == framework


def test_of_several_records_on_a_line_the_worst_is_quoted() -> None:
    bar = "Epoch 0:   6%|#   | 55/500 [5:05:05<55:05:05,  1.55it/s]"
    log = read_text(f"{bar}[E ProcessGroupNCCL.cpp:458] Watchdog caught a timeout")
    assert [each.text for each in log.evidence(1)] == ["Watchdog caught a timeout"]
