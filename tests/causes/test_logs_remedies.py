"""What is advised for a log fits what the log says."""

from __future__ import annotations

from tests.cases import each
from tests.kit import command_of, explained

NO_DEVICE_DRIVER = (
    'docker: Error response from daemon: could not select device driver "" with capabilities: '
    "[[gpu]]."
)
BFLOAT16 = (
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your "
    "Tesla T4 GPU has compute capability 7.5. You can use float16 instead: --dtype=half."
)
NO_DLOPEN = (
    "W0000 00:00:1700000000.000000 1 gpu_device.cc:2365] Cannot dlopen some GPU libraries. Please "
    "make sure the missing libraries mentioned above are installed properly."
)


def test_the_container_toolkit_is_installed_before_it_is_registered() -> None:
    (root,) = explained(NO_DEVICE_DRIVER).root_causes
    texts = [f"{remedy.text} {command_of(remedy)}" for remedy in root.remedies]
    install = next(i for i, text in enumerate(texts) if "nvidia-container-toolkit" in text)
    register = next(i for i, text in enumerate(texts) if "nvidia-ctk" in text)
    assert "nvidia-smi" in texts[0]
    assert texts[install].startswith("If that works")
    assert install < register


def test_a_data_type_that_the_gpu_lacks_needs_another_type_and_no_older_release() -> None:
    (root,) = explained(BFLOAT16).root_causes
    assert root.confidence == "likely"
    advice = " ".join(remedy.text for remedy in root.remedies)
    assert "float16" in advice
    assert "half" in advice
    assert "older release" not in advice


def test_the_words_of_pytorch_name_it() -> None:
    (root,) = explained("AssertionError: Torch not compiled with CUDA enabled").root_causes
    assert root.message.startswith("PyTorch")
    assert root.subject == "torch"
    assert "pip install torch" in (command_of(root.remedies[0]) or "")


@each(
    ("version", "first"), [("2.21.0", "library-path-conflict"), ("2.20.0", "cuda-runtime-missing")]
)
def test_a_release_that_is_known_to_lose_its_libraries_is_told(version: str, first: str) -> None:
    root, *others = explained(f"tensorflow {version}\n{NO_DLOPEN}").root_causes
    assert (root.cause, root.confidence) == (first, "likely")
    assert [other.confidence for other in others] == ["possible"]


def test_and_the_library_is_named() -> None:
    assert "libcusolver.so" in explained(f"tensorflow 2.21.0\n{NO_DLOPEN}").headline
