"""Names of TensorFlow's interface: what left with 1.x, what came with 2.x, what there ever was.

Read out of the installed packages tensorflow-gpu 1.15.5 and tensorflow 2.21.0 (dir() of each
module).
"""

from __future__ import annotations

from whygpu.tables.tensorflow_1_names import BEFORE_1_0
from whygpu.tables.tensorflow_1_names import REMOVED as _GONE

SOURCE = "https://www.tensorflow.org/api_docs/python/tf"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


REMOVED = _GONE["tensorflow"] - BEFORE_1_0 - {"estimator"}
"""Names that TensorFlow 2 has only under tf.compat.v1, or not at all; tf.estimator until 2.15."""
REMOVED_TRAIN = _GONE["train"]
"""The same for tf.train."""
KERAS_SESSION = frozenset(f"tensorflow.keras.backend.{verb}_session" for verb in ("get", "set"))
"""What tf.keras lost at the same time."""


def is_removed(path: str) -> bool:
    """Whether this full name, such as tensorflow.train.AdamOptimizer, left with TensorFlow 1."""
    top, _, rest = path.partition(".")
    if top != "tensorflow":
        return False
    first, _, second = rest.partition(".")
    if first == "train":
        return second.partition(".")[0] in REMOVED_TRAIN
    return first in REMOVED or path in KERAS_SESSION


SESSION_API = _names(
    """
    ConfigProto GPUOptions InteractiveSession RunOptions RunMetadata Session contrib
    get_default_graph get_default_session global_variables_initializer initialize_all_variables
    placeholder placeholder_with_default reset_default_graph
    """
)
"""The removed names that create and feed sessions."""

SINCE_2 = frozenset(
    {
        "config.list_physical_devices",
        "config.list_logical_devices",
        "config.set_visible_devices",
        "config.get_visible_devices",
        "config.set_logical_device_configuration",
        "config.LogicalDeviceConfiguration",
        "config.run_functions_eagerly",
        "random.set_seed",
        "keras.utils.set_random_seed",
        "distribute.TPUStrategy",
        "distribute.MultiWorkerMirroredStrategy",
        "summary.create_file_writer",
        "data.AUTOTUNE",
        "keras.optimizers.legacy",
    }
)
"""Names that TensorFlow 1.15 does not have: a file that uses them is written for 2.x."""

EVER: dict[str, frozenset[str]] = {
    "config": _names(
        """
        LogicalDevice LogicalDeviceConfiguration PhysicalDevice experimental
        experimental_connect_to_cluster experimental_connect_to_host
        experimental_functions_run_eagerly experimental_list_devices
        experimental_run_functions_eagerly functions_run_eagerly get_logical_device_configuration
        get_soft_device_placement get_visible_devices list_logical_devices list_physical_devices
        optimizer run_functions_eagerly set_logical_device_configuration set_soft_device_placement
        set_visible_devices threading
        """
    ),
    "config.experimental": _names(
        """
        ClusterDeviceFilters VirtualDeviceConfiguration disable_mlir_bridge enable_mlir_bridge
        enable_op_determinism enable_tensor_float_32_execution get_device_details
        get_device_policy get_memory_growth get_memory_info get_memory_usage
        get_synchronous_execution get_virtual_device_configuration get_visible_devices
        list_logical_devices list_physical_devices reset_memory_stats set_device_policy
        set_memory_growth set_synchronous_execution set_virtual_device_configuration
        set_visible_devices tensor_float_32_execution_enabled
        """
    ),
    "errors": _names(
        """
        ABORTED ALREADY_EXISTS AbortedError AlreadyExistsError CANCELLED CancelledError DATA_LOSS
        DEADLINE_EXCEEDED DataLossError DeadlineExceededError FAILED_PRECONDITION
        FailedPreconditionError INTERNAL INVALID_ARGUMENT InternalError InvalidArgumentError
        NOT_FOUND NotFoundError OK OUT_OF_RANGE OpError OperatorNotAllowedInGraphError
        OutOfRangeError PERMISSION_DENIED PermissionDeniedError RESOURCE_EXHAUSTED
        ResourceExhaustedError UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED UNKNOWN
        UnauthenticatedError UnavailableError UnimplementedError UnknownError
        error_code_from_exception_type exception_type_from_error_code
        raise_exception_on_not_ok_status
        """
    ),
    "test": _names(
        """
        Benchmark StubOutForTesting TestCase assert_equal_graph_def benchmark_config
        compute_gradient compute_gradient_error create_local_cluster disable_with_predicate
        experimental get_temp_dir gpu_device_name is_built_with_cuda is_built_with_gpu_support
        is_built_with_rocm is_built_with_xla is_cpu_target_available is_gpu_available main mock
        test_src_dir_path with_eager_op_as_function
        """
    ),
    "distribute": _names(
        """
        CrossDeviceOps DistributedDataset DistributedIterator DistributedValues
        HierarchicalCopyAllReduce InputContext InputOptions InputReplicationMode MirroredStrategy
        MultiWorkerMirroredStrategy NcclAllReduce OneDeviceStrategy ParameterServerStrategy
        ReduceOp ReductionToOneDevice ReplicaContext RunOptions Server Strategy StrategyExtended
        TPUStrategy cluster_resolver coordinator experimental experimental_set_strategy
        get_loss_reduction get_replica_context get_strategy has_strategy in_cross_replica_context
        """
    ),
    "sysconfig": _names(
        """
        CXX11_ABI_FLAG CXX_VERSION MONOLITHIC_BUILD get_build_info get_compile_flags get_include
        get_lib get_link_flags
        """
    ),
}
"""Every name of these modules in 1.15.5 or in 2.21.0."""
