"""Each remedy fits the machine or the log: its system, its versions, its kind of program."""

from __future__ import annotations

from tests.cases import each
from whygpu import explain
from whygpu.model.commands import shell_text
from whygpu.model.finding import Finding

GIGABYTES = "Tried to allocate 2.00 GiB (GPU 0; 11.00 GiB total capacity; 5.00 GiB already "
FRAGMENTED = (
    f"torch.cuda.OutOfMemoryError: CUDA out of memory. {GIGABYTES}allocated; 1.00 GiB free; "
    "9.50 GiB reserved in total by PyTorch)"
)
ON_WINDOWS = 'File "C:\\Users\\lee\\train.py", line 3, in <module>'
TRACEBACK = "Traceback (most recent call last):"


def found(log: str, slug: str) -> Finding:
    explanation = explain(log + "\n")
    every = (*explanation.root_causes, *explanation.symptoms, *explanation.noise)
    return next(finding for finding in every if finding.cause == slug)


def commands(log: str, slug: str) -> list[str]:
    """The commands of a finding as they are printed for this log."""
    installer = explain(log + "\n").installer
    texts = (shell_text(remedy.action, installer) for remedy in found(log, slug).remedies)
    return [text for text in texts if text is not None]


def advice(log: str, slug: str) -> str:
    return " ".join(remedy.text for remedy in found(log, slug).remedies)


_SPLIT = "max_split_size_mb:128"
_GROW = "expandable_segments:True"


@each(
    ("log", "command"),
    [
        (f"torch 1.13.1\n{FRAGMENTED}", f"export PYTORCH_CUDA_ALLOC_CONF={_SPLIT}"),
        (f"torch 2.0.1\n{FRAGMENTED}", f"export PYTORCH_CUDA_ALLOC_CONF={_SPLIT}"),
        (f"torch 2.1.0\n{FRAGMENTED}", f"export PYTORCH_CUDA_ALLOC_CONF={_GROW}"),
        (FRAGMENTED, f"export PYTORCH_CUDA_ALLOC_CONF={_SPLIT}"),
        (
            f"{FRAGMENTED} try setting PYTORCH_ALLOC_CONF=expandable_segments:True",
            f"export PYTORCH_ALLOC_CONF={_GROW}",
        ),
        (
            f"torch 2.4.0\n{TRACEBACK}\n  {ON_WINDOWS}\n{FRAGMENTED}",
            f"$env:PYTORCH_CUDA_ALLOC_CONF = '{_SPLIT}'",
        ),
        (
            "torch 2.4.0\n" + FRAGMENTED.replace("CUDA out", "HIP out"),
            f"export PYTORCH_HIP_ALLOC_CONF={_SPLIT}",
        ),
    ],
)
def test_segments_grow_only_where_pytorch_has_that_setting(log: str, command: str) -> None:
    assert command in commands(log, "oom-leak-or-fragmentation")


MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: "
    "384.00 KB, max allowed: 18.13 GB). Tried to allocate 2.00 GB on private pool."
)


def test_a_mac_gets_no_tool_of_nvidia() -> None:
    root = found(MPS, "oom-model-too-big")
    assert "nvidia" not in str(root.remedies)
    assert "nvidia" not in (root.ask or "")
    assert "CUDA" not in str(root.remedies)


BIG = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
    "total capacity of 11.00 GiB of which 1.00 GiB is free. Of the allocated memory 9.80 GiB is "
    "allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated."
)


@each(
    ("frame", "trains"),
    [
        ("loss.backward()", True),
        ("out = model.generate(ids)", False),
        ("image = pipeline(prompt)", False),
        ("loss = trainer.train(llama)", True),
    ],
)
def test_only_a_program_that_trains_is_told_to_accumulate_gradients(
    frame: str, trains: bool
) -> None:
    log = f'{TRACEBACK}\n  File "/srv/a.py", line 3, in <module>\n    {frame}\n{BIG}'
    text = advice(log, "oom-model-too-big")
    assert ("accumulate" in text) is trains
    assert ("inference_mode" in text) is not trains


BUS = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that"


@each(
    ("place", "command"),
    [
        ("docker run -it image", "docker run --shm-size=8g ..."),
        ("podman run -it image", "podman run --shm-size=8g ..."),
        ("kubectl logs train-0", None),
    ],
)
def test_shared_memory_grows_by_the_tool_that_runs_the_container(
    place: str, command: str | None
) -> None:
    log = f"$ {place}\n{BUS} dataloader's workers are out of shared memory."
    assert [c for c in commands(log, "host-oom") if "shm-size" in c] == (
        [command] if command else []
    )
    assert ("emptyDir" in advice(log, "host-oom")) is (command is None)
