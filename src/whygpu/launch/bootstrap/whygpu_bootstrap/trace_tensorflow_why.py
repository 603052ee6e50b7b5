"""Why TensorFlow put an operation on the CPU, from its request, its types and the kernels."""

from whygpu_bootstrap import trace_common as common

HOST_ONLY_TYPES = ("string", "variant", "resource")
"""Types whose values cannot lie in a GPU's memory."""


class Sight:
    """One operation that was seen on the CPU, with what could have put it there."""

    def __init__(self, op, types, requested, colocated):
        self.op = op
        self.types = types
        self.requested = requested
        self.colocated = colocated

    def key(self):
        return (self.op, self.types, self.requested, self.colocated)


def sight_of_node(node, requested):
    """From a node of a graph, and the device that the program asked for, "" if for none."""
    types = tuple(
        sorted((name, value.type) for name, value in node.attr.items() if _is_type(value))
    )
    classes = node.attr["_class"].list.s if "_class" in node.attr else ()
    colocated = tuple(sorted(name.decode()[5:] for name in classes if name[:5] == b"loc:@"))
    return Sight(node.op, types, requested or "", colocated)


def _is_type(value):
    return value.WhichOneof("value") == "type"


def kind(device):
    """What a device's name asks for, in any of TensorFlow's spellings: cpu, gpu or nothing."""
    last = device.rpartition("/")[2].lower()
    if last.startswith("device:"):
        last = last[len("device:") :]
    return last.partition(":")[0] if last.partition(":")[0] in ("cpu", "gpu") else ""


def explain(sight, kernels, type_name, gpus):
    """(reason, detail) of a sight.

    `kernels` are the operation's registered ones, `type_name` turns a type's number into its name,
    `gpus` are the labels of the GPUs that TensorFlow has.
    """
    if kind(sight.requested) == "cpu":
        return common.EXPLICIT, "asked for %s, as with tf.device" % sight.requested
    on_gpu = [kernel for kernel in kernels if kernel.device_type in ("GPU", "DEFAULT")]
    if not on_gpu:
        return common.NO_KERNEL, "TensorFlow has no GPU kernel for it"
    usable = [kernel for kernel in on_gpu if not _refused(sight.types, kernel)]
    if not usable:
        return _no_kernel_for_types(sight.types, on_gpu, type_name)
    if kind(sight.requested) == "gpu" and _label(sight.requested) not in gpus:
        missing = "asked for %s; TensorFlow has %s" % (sight.requested, ", ".join(gpus))
        return common.SOFT, missing
    if sight.colocated:
        return common.CPU_RESOURCE, "placed together with %s" % ", ".join(sight.colocated)
    if any(type_name(number) == "resource" for _, number in sight.types):
        return common.CPU_RESOURCE, "it works on a resource, and goes where that is"
    if all(kernel.host_memory_arg for kernel in usable):
        kept = ", ".join(usable[0].host_memory_arg)
        return common.UNEXPLAINED, "its GPU kernel, too, keeps %s in the host's memory" % kept
    return common.UNEXPLAINED, "a GPU kernel is there; TensorFlow chose the CPU"


def _label(device):
    return device.rpartition("/")[2].lower().replace("device:", "")


def _no_kernel_for_types(types, kernels, type_name):
    nearest = min((_refused(types, kernel) for kernel in kernels), key=len)
    names = sorted({type_name(number) for number in nearest})
    text = "TensorFlow has no GPU kernel for it with %s" % ", ".join(names)
    if any(name in HOST_ONLY_TYPES for name in names):
        return common.HOST_DTYPE, text
    return common.NO_KERNEL, text


def _refused(types, kernel):
    """The operation's types that the kernel was not made for."""
    given = dict(types)
    return [
        given[constraint.name]
        for constraint in kernel.constraint
        if constraint.name in given
        and given[constraint.name] not in constraint.allowed_values.list.type
    ]
