"""The lines with which each TensorFlow release reports the same facts: no driver, a hidden GPU, a
GPU that works, an exception with its traceback.

Only TensorFlow's and Keras's own messages are theirs; times, paths, hosts and figures are made up.
"""

from __future__ import annotations

RELEASES = ("1.4", "1.8", "1.12", "1.15", "2.0", "2.4", "2.10", "2.16", "2.21")

_YEAR = {
    "1.4": "2017-12-04",
    "1.8": "2018-06-11",
    "1.12": "2018-12-03",
    "1.15": "2019-11-18",
    "2.0": "2019-12-02",
    "2.4": "2021-02-08",
    "2.10": "2022-10-17",
    "2.16": "2024-04-22",
}
_FOLDER = {"2.16": "external/local_xla/xla/stream_executor/cuda"}
_BARE_NAMES = "2.21"
"""From here on a record names the file without its folder."""


def record(release: str, level: str, file: str, line: int, text: str) -> str:
    """A record of TensorFlow's native code."""
    if release == _BARE_NAMES:
        return (
            f"{level}0000 00:00:1772000000.100200   41207 {file.rpartition('/')[2]}:{line}] {text}"
        )
    folder, _, name = file.rpartition("/")
    if folder == "stream_executor/cuda":
        folder = _FOLDER.get(release, "tensorflow/stream_executor/cuda")
    else:
        folder = f"tensorflow/{folder}"
    return f"{_YEAR[release]} 09:30:15.100200: {level} {folder}/{name}:{line}] {text}"


def old(release: str) -> bool:
    return release.startswith("1.")


def raised(release: str, statement: str, error: str, *inner: tuple[str, str]) -> str:
    """The end of a program: its statement, the frames of packages below it, the exception."""
    python = "python3.6" if old(release) else "python3.11"
    lines = ["Traceback (most recent call last):", '  File "train.py", line 12, in <module>']
    lines.append(f"    {statement}")
    for file, code in inner:
        lines.append(f'  File "/srv/env/lib/{python}/site-packages/{file}", line 480, in run')
        lines.append(f"    {code}")
    return "\n".join((*lines, error))


def tf_error(release: str, kind: str, text: str) -> str:
    return f"tensorflow.python.framework.errors_impl.{kind}: {text}"


def cu_init(release: str, error: str, meaning: str) -> str:
    """cuInit fails with an error that the driver names."""
    if release == "2.21":
        text = f"INTERNAL: CUDA error: Failed call to cuInit: {error}: {meaning}"
        return record(
            release,
            "E",
            "stream_executor/cuda/cuda_platform.cc",
            52,
            f"failed call to cuInit: {text}",
        )
    text = error if release in ("1.4", "1.8") else f"{error}: {meaning}"
    return record(
        release, "E", "stream_executor/cuda/cuda_driver.cc", 318, f"failed call to cuInit: {text}"
    )


def _diagnostics(release: str, *texts: str) -> list[str]:
    return [
        record(release, "I", "stream_executor/cuda/cuda_diagnostics.cc", 150 + index, text)
        for index, text in enumerate(texts)
    ]


NO_DEVICE = ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")


def no_driver(release: str) -> str:
    """A build with CUDA on a machine without an NVIDIA driver."""
    not_running = (
        "kernel driver does not appear to be running on this host (box): "
        "/proc/driver/nvidia/version does not exist"
    )
    if release in ("1.4", "1.8", "1.12"):
        # libcuda.so.1 is one of the libraries without which these cannot be imported.
        return "\n".join((cu_init(release, *NO_DEVICE), *_diagnostics(release, not_running)))
    if release in ("1.15", "2.0", "2.4", "2.10"):
        loader = "stream_executor/platform/default/dso_loader.cc"
        missing = (
            "Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open "
            "shared object file: No such file or directory"
        )
        lines = [record(release, "W", loader, 55, missing)]
        failed = "failed call to cuInit: UNKNOWN ERROR (303)"
        lines.append(record(release, "E", "stream_executor/cuda/cuda_driver.cc", 318, failed))
        return "\n".join((*lines, *_diagnostics(release, not_running)))
    unseen = "Could not find cuda drivers on your machine, GPU will not be used."
    lines = [record(release, "I", "stream_executor/cuda/cudart_stub.cc", 32, unseen)]
    failed = "failed call to cuInit: UNKNOWN ERROR (303)"
    if release == "2.21":
        failed = failed.replace("UNKNOWN", "INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN")
    lines.append(record(release, "E", "stream_executor/cuda/cuda_driver.cc", 282, failed))
    return "\n".join(lines)


def hidden(release: str) -> str:
    """The driver works, and CUDA_VISIBLE_DEVICES leaves no GPU."""
    version = "450.80.2" if old(release) else "550.54.15"
    texts = [
        "retrieving CUDA diagnostic information for host: box",
        "hostname: box",
        f"libcuda reported version is: {version}",
        f"kernel reported version is: {version}",
        f"kernel version seems to match DSO: {version}",
    ]
    if release == "2.21":
        texts[:0] = [
            'env: CUDA_VISIBLE_DEVICES="-1"',
            "CUDA_VISIBLE_DEVICES is set to -1 - this hides all GPUs from CUDA",
        ]
    return "\n".join((cu_init(release, *NO_DEVICE), *_diagnostics(release, *texts)))


def gpu(release: str, mb: int = 10409, number: int = 0) -> str:
    """TensorFlow has created the device of a GPU."""
    file = "core/common_runtime/gpu/gpu_device.cc"
    card = (
        f"name: GeForce GTX 1080 Ti, pci bus id: 0000:0{number + 1}:00.0, compute capability: 6.1"
    )
    path = f"/job:localhost/replica:0/task:0/device:GPU:{number}"
    if release == "1.4":
        text = f"Creating TensorFlow device (/device:GPU:{number}) -> (device: {number}, {card})"
    elif release in ("1.8", "1.12", "1.15", "2.0", "2.4"):
        text = (
            f"Created TensorFlow device ({path} with {mb} MB memory) -> physical GPU "
            f"(device: {number}, {card})"
        )
    else:
        text = f"Created device {path} with {mb} MB memory:  -> device: {number}, {card}"
    return record(release, "I", file, 1325, text)


def devices(*gpus: int) -> str:
    names = ["CPU:0", *(f"GPU:{number}" for number in gpus)]
    return ", ".join(f"/job:localhost/replica:0/task:0/device:{name}" for name in names)
