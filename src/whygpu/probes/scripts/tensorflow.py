"""What TensorFlow does: eagerly in TensorFlow 2, in a session in TensorFlow 1."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .harness import Report, Sums


def probe(report: "Report", sums: "Sums") -> None:
    report.stage("import")
    import tensorflow as tf

    report.version(tf.__version__)
    report.fact("location", tf.__file__)
    report.stage("build")
    report.ask("built with cuda", tf.test.is_built_with_cuda)
    for key, value in sorted(build_info(tf).items()):
        report.fact("build " + key, value)
    if getattr(tf, "executing_eagerly", bool)():
        probe_eagerly(report, sums, tf)
    else:
        probe_in_sessions(report, sums, getattr(getattr(tf, "compat", None), "v1", tf))


def build_info(tf: "Any") -> "dict[str, object]":
    get_build_info = getattr(tf.sysconfig, "get_build_info", None)
    if get_build_info is not None:
        return dict(get_build_info())
    try:
        from tensorflow.python.platform import build_info as module
    except ImportError:
        return {}
    return {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_") and isinstance(value, (bool, str))
    }


def probe_eagerly(report: "Report", sums: "Sums", tf: "Any") -> None:
    report.stage("devices")
    config = tf.config if hasattr(tf.config, "list_physical_devices") else tf.config.experimental
    report.devices(
        [
            (short(device.name), describe(config, device))
            for device in config.list_physical_devices()
        ]
    )
    report.stage("initialise")
    logical = config.list_logical_devices()
    for device in logical:
        if device.device_type in ("CPU", "GPU"):
            operate_eagerly(report, sums, tf, short(device.name))

    # Soft placement is the default for programs. Above, it would hide a fallback to the CPU.
    tf.config.set_soft_device_placement(True)
    report.operate("matmul", "default", lambda: eager_product(sums, tf))


def describe(config: "Any", device: "Any") -> str:
    get_details = getattr(getattr(config, "experimental", None), "get_device_details", None)
    if device.device_type != "GPU" or get_details is None:
        return ""
    try:
        details = get_details(device)
    except Exception:  # the probe continues without a description
        return ""
    parts = [details.get("device_name", "")]
    if "compute_capability" in details:
        parts.append("compute capability %d.%d" % details["compute_capability"])
    return ", ".join(part for part in parts if part)


def operate_eagerly(report: "Report", sums: "Sums", tf: "Any", device: str) -> None:
    tf.config.set_soft_device_placement(False)

    def matmul() -> "tuple[str, bool]":
        with tf.device("/device:" + device):
            return eager_product(sums, tf)

    def convolution() -> "tuple[str, bool]":
        with tf.device("/device:" + device):
            image, kernel = tf.constant(sums.image), tf.constant(sums.kernel)
            result = tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME")
        return landed(result, sums, "convolution")

    report.operate("matmul", device, matmul)
    report.operate("convolution", device, convolution)


def eager_product(sums: "Sums", tf: "Any") -> "tuple[str, bool]":
    return landed(tf.matmul(tf.constant(sums.left), tf.constant(sums.right)), sums, "matmul")


def landed(result: "Any", sums: "Sums", operation: str) -> "tuple[str, bool]":
    # numpy() waits for the device to finish.
    return short(result.device), sums.agrees(operation, result.numpy().tolist())


def probe_in_sessions(report: "Report", sums: "Sums", tf: "Any") -> None:
    from tensorflow.python.client import device_lib

    report.stage("devices")
    devices = device_lib.list_local_devices(session_config(tf, soft=False))
    report.devices([(short(device.name), device.physical_device_desc) for device in devices])
    for device in devices:
        if device.device_type in ("CPU", "GPU"):
            for operation in ("matmul", "convolution"):
                in_session(report, sums, tf, operation, short(device.name))
    in_session(report, sums, tf, "matmul", None)


def session_config(tf: "Any", soft: bool) -> "Any":
    config = tf.ConfigProto(allow_soft_placement=soft)
    # Releases before 1.14 do not know the environment variable for this.
    config.gpu_options.allow_growth = True
    return config


def in_session(
    report: "Report", sums: "Sums", tf: "Any", operation: str, device: "str | None"
) -> None:
    def work() -> "tuple[str, bool]":
        with tf.Graph().as_default():
            result, values = graph(sums, tf, operation, device)
            options = tf.RunOptions(output_partition_graphs=True)
            metadata = tf.RunMetadata()
            with tf.Session(config=session_config(tf, soft=device is None)) as session:
                numbers = session.run(
                    result, feed_dict=values, options=options, run_metadata=metadata
                )
        return final_device(metadata, result.op.name), sums.agrees(operation, numbers.tolist())

    report.operate(operation, device or "default", work)


def graph(
    sums: "Sums", tf: "Any", operation: str, device: "str | None"
) -> "tuple[Any, dict[Any, Any]]":
    """The result's tensor and what to feed; placeholders, because constants would be folded."""
    first, second = {
        "matmul": (sums.left, sums.right),
        "convolution": (sums.image, sums.kernel),
    }[operation]
    with tf.device(device and "/device:" + device):
        one = tf.placeholder(tf.float32, shape_of(first))
        other = tf.placeholder(tf.float32, shape_of(second))
        if operation == "matmul":
            result = tf.matmul(one, other)
        else:
            result = tf.nn.conv2d(one, other, [1, 1, 1, 1], "SAME")
    return result, {one: first, other: second}


def shape_of(numbers: "Any") -> "list[int]":
    shape = []
    while isinstance(numbers, list):
        shape.append(len(numbers))
        numbers = numbers[0]
    return shape


def final_device(metadata: "Any", name: str) -> str:
    for partition in metadata.partition_graphs:
        for node in partition.node:
            if node.name == name:
                return short(node.device)
    raise LookupError("no partition graph has the node " + name)


def short(name: str) -> str:
    """GPU:0, from /physical_device:GPU:0 or /job:localhost/replica:0/task:0/device:GPU:0."""
    return name.rpartition("device:")[2].upper()
