"""What JAX does, and why a backend is missing: the error that JAX raises last is misleading."""

import logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .harness import Report, Sums


class Listener(logging.Filter):
    """Reports the messages of JAX's backend discovery, including those that are not printed.

    It is a filter that lets everything pass and not a handler: with a handler, Python would no
    longer print JAX's warnings.
    """

    def __init__(self, report: "Report") -> None:
        logging.Filter.__init__(self)
        self._report = report

    def filter(self, record: "logging.LogRecord") -> bool:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text += " (%s: %s)" % (type(error).__name__, error)
        self._report.fact("backend message", " ".join(text.split()))
        return True


def probe(report: "Report", sums: "Sums") -> None:
    logger, listener = logging.getLogger("jax._src.xla_bridge"), Listener(report)
    logger.setLevel(logging.INFO)
    logger.addFilter(listener)
    report.stage("import")
    import jax
    import jaxlib

    report.version(jax.__version__)
    report.fact("location", jax.__file__)
    report.ask("jaxlib", lambda: jaxlib.version.__version__)
    report.ask("jax_platforms", lambda: jax.config.jax_platforms)

    report.stage("devices")
    devices = list(jax.devices())
    report.fact("default backend", jax.default_backend())
    for device in cpu_devices(jax):
        if device not in devices:
            devices.append(device)
    report.devices([(name_of(device), device.device_kind) for device in devices])

    for device in devices:
        operate(report, sums, jax, device)
    report.operate("matmul", "default", lambda: product(sums, jax, jax.numpy.asarray))
    # What follows in this process is not part of this probe.
    logger.removeFilter(listener)
    logger.setLevel(logging.NOTSET)


def cpu_devices(jax: "Any") -> "list[Any]":
    try:
        return jax.devices("cpu")
    except RuntimeError:  # JAX_PLATFORMS can leave the CPU out
        return []


def operate(report: "Report", sums: "Sums", jax: "Any", device: "Any") -> None:
    import numpy

    def put(numbers: "list[Any]") -> "Any":
        # From NumPy: a jax.numpy array would be made on the default device first.
        return jax.device_put(numpy.asarray(numbers, dtype="float32"), device)

    report.operate("matmul", name_of(device), lambda: product(sums, jax, put))
    report.operate("convolution", name_of(device), lambda: convolution(sums, jax, put))


def product(sums: "Sums", jax: "Any", put: "Callable[[list[Any]], Any]") -> "tuple[str, bool]":
    result = jax.numpy.dot(put(sums.left), put(sums.right))
    return landed(result, sums, "matmul")


def convolution(sums: "Sums", jax: "Any", put: "Callable[[list[Any]], Any]") -> "tuple[str, bool]":
    result = jax.lax.conv_general_dilated(
        put(sums.image),
        put(sums.kernel),
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return landed(result, sums, "convolution")


def landed(result: "Any", sums: "Sums", operation: str) -> "tuple[str, bool]":
    result.block_until_ready()
    # devices() came with the arrays of JAX 0.4; before, there was device().
    devices = result.devices() if hasattr(result, "devices") else [result.device()]
    where = ", ".join(sorted(name_of(device) for device in devices))
    return where, sums.agrees(operation, result.tolist())


def name_of(device: "Any") -> str:
    return "%s:%d" % (device.platform, device.id)
