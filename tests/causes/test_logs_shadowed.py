"""Tracebacks that show which copy of a framework Python imports."""

from __future__ import annotations

from tests.cases import each
from tests.kit import command_of, explained


def traceback(*frames: str, error: str) -> str:
    shown = "".join(f'  File "{frame}", line 3, in <module>\n    x\n' for frame in frames)
    return f"Traceback (most recent call last):\n{shown}{error}\n"


NO_C = "ModuleNotFoundError: No module named 'torch._C'"
NO_CUDA = (
    "AttributeError: partially initialized module 'torch' has no attribute 'cuda' (most likely "
    "due to a circular import)"
)


@each(
    ("log", "where", "confidence"),
    [
        (traceback("/home/me/pytorch/torch/__init__.py", error=NO_C), "/pytorch/torch", "likely"),
        (traceback("a.py", "/home/me/torch.py", error=NO_CUDA), "/home/me/torch.py", "certain"),
        (
            traceback("C:\\work\\torch.py", error=NO_CUDA),
            "C:/work/torch.py",
            "certain",
        ),
        (
            "ImportError: cannot import name 'nn' from 'torch' (/home/me/torch/__init__.py)",
            "/home/me/torch",
            "likely",
        ),
        (
            traceback(
                "/src/tensorflow/tensorflow/__init__.py",
                "/src/tensorflow/tensorflow/python/__init__.py",
                error="ImportError: cannot import name pywrap_tensorflow",
            ),
            "/src/tensorflow/tensorflow",
            "likely",
        ),
        (
            "ImportError: Failed to load PyTorch C extensions:\n    It appears that PyTorch has "
            "loaded the `torch/_C` folder\n    of the PyTorch repository",
            "another folder",
            "likely",
        ),
        ("ImportError: cannot import name 'nn' from 'torch' (unknown location)", "", "likely"),
    ],
)
def test_the_copy_is_named(log: str, where: str, confidence: str) -> None:
    (finding,) = explained(log).root_causes
    assert (finding.code, finding.severity, finding.effect) == ("WG312", "error", "broken")
    assert finding.confidence == confidence
    assert where in finding.message
    assert command_of(finding.remedies[1]) == (
        "python -c 'import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1]))' "
        f"{finding.subject}"
    )


@each(
    "log",
    [
        traceback("/x/lib/python3.9/site-packages/torch/__init__.py", error=NO_C),
        traceback("/home/me/torch/train.py", error=NO_C),
        traceback("/home/me/torch.py", error="RuntimeError: module 'torch' has no attribute 'x'"),
        traceback("/home/me/torch.py", error="ModuleNotFoundError: No module named 'yaml'"),
        traceback(
            "/home/me/torch.py",
            "/x/lib/python3.9/site-packages/torch/__init__.py",
            error=NO_C,
        ),
        "ImportError: cannot import name 'a' from 'tensorflow.keras.layers' (unknown location)",
        "ImportError: cannot import name 'a' from 'torch' (/x/site-packages/torch/__init__.py)",
        "Error importing yaml: you should not try to import yaml from its source directory",
        traceback("/home/me/torch.py", error=NO_CUDA)
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + "ValueError: bad value",
    ],
)
def test_nothing_shows_another_copy(log: str) -> None:
    assert "WG312" not in [finding.code for finding in explained(log).root_causes]
