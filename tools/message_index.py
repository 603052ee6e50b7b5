"""Write docs/messages.md: messages as people search for them, and what `explain` says of each.

The search of the site puts a heading that has all words of the query first. So each message is a
heading. The answers below it are those of whygpu itself, made by `make docs`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import whygpu
from whygpu.causes import catalogue
from whygpu.model.cause import Cause
from whygpu.model.commands import shell_text
from whygpu.model.explanation import Explanation
from whygpu.render.text_page import sentence

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "messages.md"


class Link(NamedTuple):
    title: str
    file: str
    """Relative to docs."""


class Message(NamedTuple):
    """A message or a symptom in the words that people type."""

    words: str
    """The heading, and what `explain` is asked."""
    variants: tuple[str, ...] = ()
    """The same in other words, or with the names of other files."""
    page: Link | None = None
    """The page that leads further, besides those of causes."""


class Topic(NamedTuple):
    title: str
    messages: tuple[Message, ...]


_EMPTY_LIST = Link("The list of GPUs is empty", "tutorials/empty-list.md")

TOPICS = (
    Topic(
        "The framework sees no GPU",
        (
            Message(
                "tf.config.list_physical_devices('GPU') is empty: []",
                (
                    "Num GPUs Available: 0",
                    "tensorflow does not detect the GPU",
                    "tf.test.is_gpu_available() is False",
                ),
                _EMPTY_LIST,
            ),
            Message(
                "How do I check if TensorFlow, Keras, PyTorch or JAX uses the GPU?",
                ("how to check if tensorflow uses gpu", "check whether pytorch uses the gpu"),
                _EMPTY_LIST,
            ),
            Message(
                "TensorFlow is not using my GPU",
                ("the training runs on the CPU", "no GPU usage"),
                _EMPTY_LIST,
            ),
            Message(
                "torch.cuda.is_available() returns False",
                ("torch.cuda.device_count() is 0", "Torch not compiled with CUDA enabled"),
            ),
            Message("Could not find cuda drivers on your machine, GPU will not be used."),
            Message(
                "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not "
                "installed. Falling back to cpu.",
                ("No GPU/TPU found, falling back to CPU", "jax not using the GPU, CPU fallback"),
            ),
            Message(
                "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
            ),
            Message("failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error"),
            Message("CUDA driver version is insufficient for CUDA runtime version"),
            Message("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"),
            Message("nvidia-smi: command not found"),
            Message("Failed to initialize NVML: Driver/library version mismatch"),
            Message('could not select device driver "" with capabilities: [[gpu]]'),
            Message(
                "Keras does not see my GPU, TensorFlow does",
                ("keras not using the GPU",),
                Link("Keras does not use the GPU", "tutorials/keras-without-gpu.md"),
            ),
            Message(
                "PyTorch does not use the GPU of my Mac (Apple M1, M2, M3; MPS)",
                ("TensorFlow does not use the GPU of my Mac, Metal",),
                Link("Systems and GPUs: other vendors", "systems.md"),
            ),
        ),
    ),
    Topic(
        "Libraries",
        (
            Message(
                "libcudnn.so.8: cannot open shared object file: No such file or directory",
                (
                    "libcudnn.so.9",
                    "Could not load dynamic library 'libcudnn.so.8'",
                    "Could not load library libcudnn_ops_infer.so.8",
                ),
            ),
            Message(
                "Could not load dynamic library 'cudnn64_8.dll'; dlerror: cudnn64_8.dll not found",
                ("cudnn64_7.dll", "cudnn64_9.dll"),
            ),
            Message(
                "Could not load dynamic library 'cudart64_110.dll'; dlerror: cudart64_110.dll not"
                " found",
                ("cudart64_101.dll", "cublas64_11.dll", "libcudart.so.11.0", "libcublas.so.12"),
            ),
            Message(
                "Could not load dynamic library 'libcusolver.so.11'; dlerror: libcusolver.so.11: "
                "cannot open shared object file: No such file or directory",
                ("libcusolver.so.10", "libcusparse.so.12", "libcufft.so.11"),
            ),
            Message(
                "Cannot dlopen some GPU libraries. Please make sure the missing libraries "
                "mentioned above are installed properly"
            ),
            Message("Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.6.0"),
            Message("libdevice not found at ./libdevice.10.bc"),
            Message(
                "Unable to register cuDNN factory: Attempting to register factory for plugin "
                "cuDNN when one has already been registered"
            ),
            Message("TF-TRT Warning: Could not find TensorRT"),
        ),
    ),
    Topic(
        "The GPU and the build do not fit",
        (
            Message(
                "CUDA error: no kernel image is available for execution on the device",
                ("sm_120 is not compatible with the current PyTorch installation",),
            ),
            Message(
                "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)"
            ),
            Message("Illegal instruction (core dumped)"),
            Message("CUDA error: device-side assert triggered"),
            Message("CUDA error: an illegal memory access was encountered"),
        ),
    ),
    Topic(
        "Memory",
        (
            Message(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
                ("RuntimeError: CUDA out of memory",),
                Link("Who holds GPU memory", "memory.md"),
            ),
            Message(
                "ResourceExhaustedError: OOM when allocating tensor with shape[32,64,224,224]",
                page=Link("Who holds GPU memory", "memory.md"),
            ),
            Message("CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
            Message("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes"),
            Message(
                "Failed to get convolution algorithm. This is probably because cuDNN failed to "
                "initialize",
                ("Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR",),
            ),
            Message(
                "tensorflow InternalError: Failed to create session",
                ("InternalError: Failed to create session.",),
                Link("Failed to create session", "tutorials/session-fails.md"),
            ),
            Message(
                "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",
                ("Killed", "exit status 137"),
            ),
            Message(
                "DataLoader worker (pid 1234) is killed by signal: Bus error. It is possible that"
                " dataloader's workers are out of shared memory"
            ),
        ),
    ),
    Topic(
        "Programs",
        (
            Message("module 'tensorflow' has no attribute 'Session'"),
            Message(
                "Expected all tensors to be on the same device, but found at least two devices, "
                "cuda:0 and cpu!"
            ),
            Message("Physical devices cannot be modified after being initialized"),
            Message("Cannot re-initialize CUDA in forked subprocess"),
            Message(
                "Deterministic behavior was enabled, but this operation is not deterministic "
                "because it uses CuBLAS"
            ),
        ),
    ),
    Topic(
        "Slow, idle, or other results",
        (
            Message(
                "GPU idle: utilization is only 10% during training",
                ("low GPU usage", "nvidia-smi shows 0% GPU utilization"),
                Link("Why is the GPU idle?", "profile.md"),
            ),
            Message(
                "My results on the GPU differ from those on the CPU",
                page=Link("Do the devices agree?", "compare.md"),
            ),
            Message(
                "How can I disable the GPU, or cuDNN?",
                page=Link("Without cuDNN", "tutorials/without-cudnn.md"),
            ),
        ),
    ),
)


def page() -> str:
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Error messages"
    yield ""
    yield (
        "Messages as people search for them, and what `whygpu explain` says of the message alone. "
        "With the whole output it can say more: `python train.py 2>&1 | whygpu explain`. "
        "Made by `make docs`."
    )
    for topic in TOPICS:
        yield from ("", f"## {topic.title}")
        for message in topic.messages:
            yield from ("", f"### {message.words}", "")
            yield from _answer(message)
    yield ""


def _answer(message: Message) -> Iterator[str]:
    explanation = whygpu.explain(f"{message.words}\n")
    if message.variants:
        yield f"Also: {', '.join(f'`{words}`' for words in message.variants)}."
        yield ""
    yield from _said(explanation)
    for cause in causes_of(explanation):
        yield f"- [{cause.code}](causes/{cause.code}-{cause.slug}.md): {cause.title}."
    if message.page:
        yield f"- [{message.page.title}]({message.page.file})"


def _said(explanation: Explanation) -> Iterator[str]:
    guidance = explanation.guidance
    if guidance is None:
        yield from (f"{sentence(explanation.headline.rstrip('.'))}.", "")
        return
    if guidance.candidates:
        yield f"The message alone does not say why. It may be: {'; '.join(guidance.candidates)}."
        yield ""
    for step in guidance.steps:
        command = shell_text(step.action)
        yield f"- {step.text}" + (f" `{command}`" if command else "")


def causes_of(explanation: Explanation) -> list[Cause]:
    """The causes that the answer names, the first one first."""
    codes = [finding.code for finding in (*explanation.root_causes, *explanation.noise)]
    by_code = {cause.code: cause for cause in catalogue()}
    return [by_code[code] for code in dict.fromkeys(codes)]


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
