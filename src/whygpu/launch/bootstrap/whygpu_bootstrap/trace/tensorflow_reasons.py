"""Why TensorFlow put an operation on the CPU, from the request, the types and the kernels."""

from whygpu_bootstrap.trace import results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

HOST_ONLY_TYPES = ("string", "variant", "resource")
"""Types whose values cannot be in GPU memory."""


class Sight:
    """One operation that was seen on the CPU, with what could have put it there.

    `types` are (attribute, number) pairs; None if they are not known.
    """

    def __init__(
        self, op: str, types: "tuple[Any, ...] | None", requested: str, colocated: "tuple[str, ...]"
    ) -> None:
        self.op = op
        self.types = types
        self.requested = requested
        self.colocated = colocated

    def key(self) -> "tuple[Any, ...]":
        return (self.op, self.types, self.requested, self.colocated)


def sight_of_node(node: "Any", requested: "str | None") -> "Sight":
    """From a node of a graph, and the device that the program asked for, "" if for none."""
    types = tuple(
        sorted((name, value.type) for name, value in node.attr.items() if _is_type(value))
    )
    classes = node.attr["_class"].list.s if "_class" in node.attr else ()
    colocated = tuple(sorted(name.decode()[5:] for name in classes if name[:5] == b"loc:@"))
    return Sight(node.op, types, requested or "", colocated)


def _is_type(value: "Any") -> bool:
    return value.WhichOneof("value") == "type"


def kind(device: str) -> str:
    """What a device's name asks for, in any of TensorFlow's spellings: cpu, gpu or nothing."""
    last = device.rpartition("/")[2].lower()
    if last.startswith("device:"):
        last = last[len("device:") :]
    return last.partition(":")[0] if last.partition(":")[0] in ("cpu", "gpu") else ""


class Knowledge:
    """What TensorFlow knows of one operation: its kernels, its definition, the names of types."""

    def __init__(
        self, kernels: "Any", definition: "Any", type_name: "Callable[[int], str]"
    ) -> None:
        self.on_gpu = [kernel for kernel in kernels if kernel.device_type in ("GPU", "DEFAULT")]
        self._results = [argument.name for argument in getattr(definition, "output_arg", ())]
        inputs = getattr(definition, "input_arg", ())
        self.type_name = type_name
        self.uses_resource = any(self._is_resource(argument) for argument in inputs)

    def _is_resource(self, argument: "Any") -> bool:
        return bool(argument.type) and self.type_name(argument.type) == "resource"

    def results_in_host_memory(self, kernel: "Any") -> bool:
        """The kernel is for a GPU, but leaves its results in host memory."""
        kept = kernel.host_memory_arg
        return bool(self._results) and all(name in kept for name in self._results)


def explain(sight: "Sight", known: "Knowledge", gpus: "list[str]") -> "tuple[str, str] | None":
    """(reason, detail) for an operation that was seen; None if too little is known of it.

    `gpus` are the labels of the GPUs that TensorFlow has.
    """
    if kind(sight.requested) == "cpu":
        return (
            results.EXPLICIT,
            "the program asked for %s, for example with tf.device" % sight.requested,
        )
    if not known.on_gpu:
        return results.NO_KERNEL, "TensorFlow has no GPU kernel for it"
    types = sight.types or ()
    usable = [kernel for kernel in known.on_gpu if not _refused(types, kernel)]
    if not usable:
        return _no_kernel_for_types(types, known)
    if kind(sight.requested) == "gpu" and not _is_there(sight.requested, gpus):
        missing = "the program asked for %s, but TensorFlow has %s" % (
            sight.requested,
            ", ".join(gpus),
        )
        return results.SOFT, missing
    if sight.types is None:
        return None
    if all(known.results_in_host_memory(kernel) for kernel in usable):
        return _stays_in_host_memory(sight.types, usable, known)
    if sight.colocated:
        return results.CPU_RESOURCE, "placed together with %s" % ", ".join(sight.colocated)
    if known.uses_resource:
        return results.CPU_RESOURCE, "it runs on the device of its variable or iterator"
    return results.UNEXPLAINED, "a GPU kernel exists, but TensorFlow chose the CPU"


def _stays_in_host_memory(
    types: "tuple[Any, ...]", usable: "Any", known: "Knowledge"
) -> "tuple[str, str]":
    if all(known.results_in_host_memory(kernel) for kernel in known.on_gpu):
        return results.HOST_RESULT, "on a GPU too, its result would be in host memory"
    constrained = {constraint.name for kernel in usable for constraint in kernel.constraint}
    names = sorted({known.type_name(number) for name, number in types if name in constrained})
    text = "with %s the GPU kernel works in host memory too" % ", ".join(names)
    return results.HOST_DTYPE, text


def _is_there(device: str, gpus: "list[str]") -> bool:
    label = device.rpartition("/")[2].lower().replace("device:", "")
    # "GPU" and "GPU:*" are any.
    return label in gpus or not label[-1].isdecimal()


def _no_kernel_for_types(types: "tuple[Any, ...]", known: "Knowledge") -> "tuple[str, str]":
    nearest = min((_refused(types, kernel) for kernel in known.on_gpu), key=len)
    names = sorted({known.type_name(number) for number in nearest})
    text = "TensorFlow has no GPU kernel for it with %s" % ", ".join(names)
    if any(name in HOST_ONLY_TYPES for name in names):
        return results.HOST_DTYPE, text
    return results.NO_KERNEL, text


def _refused(types: "tuple[Any, ...]", kernel: "Any") -> "list[Any]":
    """The types of the operation that the kernel does not support."""
    given = dict(types)
    return [
        given[constraint.name]
        for constraint in kernel.constraint
        if constraint.name in given
        and given[constraint.name] not in constraint.allowed_values.list.type
    ]
