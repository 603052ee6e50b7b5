"""Names of TensorFlow's interface: what left with 1.x, what came with 2.x, what there ever was.

Read out of the installed packages tensorflow-gpu 1.15.5 and tensorflow 2.21.0 (dir() of each
module); tf.estimator, which TensorFlow 2 had until 2.15, is not counted as removed.
"""

from __future__ import annotations

SOURCE = "https://www.tensorflow.org/api_docs/python/tf"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


REMOVED = _names(
    """
    AUTO_REUSE AttrValue COMPILER_VERSION CXX11_ABI_FLAG ConditionalAccumulator
    ConditionalAccumulatorBase ConfigProto Dimension Event FIFOQueue FixedLenFeature
    FixedLenSequenceFeature FixedLengthRecordReader GIT_VERSION GPUOptions GRAPH_DEF_VERSION
    GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER GraphDef GraphKeys GraphOptions
    HistogramProto IdentityReader InteractiveSession LMDBReader LogMessage MONOLITHIC_BUILD
    MetaGraphDef NameAttrList NoGradient NodeDef NotDifferentiable OpError OptimizerOptions
    PaddingFIFOQueue Print PriorityQueue QUANTIZED_DTYPES QueueBase RandomShuffleQueue ReaderBase
    RunMetadata RunOptions Session SessionLog SparseConditionalAccumulator SparseFeature
    SparseTensorValue Summary SummaryMetadata TFRecordReader TensorInfo TextLineReader VERSION
    VarLenFeature VariableScope WholeFileReader accumulate_n add_check_numerics_ops
    add_to_collection add_to_collections all_variables angle app arg_max arg_min
    assert_greater_equal assert_integer assert_less_equal assert_near assert_negative
    assert_non_negative assert_non_positive assert_none_equal assert_positive
    assert_proper_iterable assert_rank_at_least assert_rank_in assert_same_float_dtype
    assert_scalar assert_type assert_variables_initialized assign assign_add assign_sub
    batch_gather batch_scatter_update batch_to_space_nd betainc bincount ceil check_numerics
    cholesky cholesky_solve clip_by_average_norm colocate_with confusion_matrix conj container
    contrib control_flow_v2_enabled convert_to_tensor_or_indexed_slices
    convert_to_tensor_or_sparse_tensor count_nonzero count_up_to create_partitioned_variables
    cross cumprod decode_base64 decode_compressed decode_csv decode_json_example decode_raw
    delete_session_tensor depth_to_space dequantize deserialize_many_sparse diag diag_part digamma
    dimension_at_index dimension_value disable_control_flow_v2 disable_eager_execution
    disable_resource_variables disable_tensor_equality disable_v2_behavior disable_v2_tensorshape
    distributions div div_no_nan enable_control_flow_v2 enable_eager_execution
    enable_resource_variables enable_tensor_equality enable_v2_behavior enable_v2_tensorshape
    encode_base64 erf erfc expm1 extract_image_patches fake_quant_with_min_max_args
    fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars
    fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel
    fake_quant_with_min_max_vars_per_channel_gradient fft fft2d fft3d fixed_size_partitioner flags
    floor_div floordiv floormod get_collection get_collection_ref get_default_graph
    get_default_session get_local_variable get_seed get_session_handle get_session_tensor
    get_variable get_variable_scope gfile global_norm global_variables
    global_variables_initializer glorot_normal_initializer glorot_uniform_initializer ifft ifft2d
    ifft3d igamma igammac imag initialize_all_tables initialize_all_variables
    initialize_local_variables initialize_variables invert_permutation is_finite is_inf is_nan
    is_non_decreasing is_numeric_tensor is_strictly_increasing is_variable_initialized layers
    lbeta lgamma lin_space load_file_system_library local_variables local_variables_initializer
    log log1p log_sigmoid logging logical_xor make_template manip matching_files matrix_band_part
    matrix_determinant matrix_diag matrix_diag_part matrix_inverse matrix_set_diag matrix_solve
    matrix_solve_ls matrix_transpose matrix_triangular_solve min_max_variable_partitioner mod
    model_variables moving_average_variables multinomial no_regularizer op_scope
    orthogonal_initializer parse_example parse_single_example parse_single_sequence_example
    parse_tensor placeholder placeholder_with_default polygamma py_func python_io qr quantize
    quantize_v2 quantized_concat random_crop random_gamma random_normal random_poisson
    random_shuffle random_uniform read_file real reciprocal reduce_join regex_replace
    report_uninitialized_variables reset_default_graph resource_variables_enabled reverse_v2 rint
    rsqrt scatter_add scatter_div scatter_max scatter_min scatter_mul scatter_nd_add
    scatter_nd_sub scatter_nd_update scatter_sub scatter_update segment_max segment_mean
    segment_min segment_prod segment_sum self_adjoint_eig self_adjoint_eigvals
    serialize_many_sparse serialize_sparse serialize_tensor set_random_seed setdiff1d
    space_to_depth sparse_add sparse_concat sparse_fill_empty_rows sparse_mask sparse_matmul
    sparse_maximum sparse_merge sparse_minimum sparse_placeholder sparse_reduce_max
    sparse_reduce_max_sparse sparse_reduce_sum sparse_reduce_sum_sparse sparse_reorder
    sparse_reset_shape sparse_reshape sparse_retain sparse_segment_mean sparse_segment_sqrt_n
    sparse_segment_sum sparse_slice sparse_softmax sparse_split sparse_tensor_dense_matmul
    sparse_tensor_to_dense sparse_to_dense sparse_to_indicator sparse_transpose spectral
    squared_difference string_join string_split string_strip string_to_hash_bucket
    string_to_hash_bucket_fast string_to_hash_bucket_strong string_to_number substr svd
    tables_initializer tensor_scatter_add tensor_scatter_sub tensor_scatter_update to_bfloat16
    to_complex128 to_complex64 to_double to_float to_int32 to_int64 trace trainable_variables
    truncated_normal truncated_normal_initializer uniform_unit_scaling_initializer
    unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
    unsorted_segment_sqrt_n unsorted_segment_sum variable_axis_size_partitioner variable_op_scope
    variable_scope variables_initializer variance_scaling_initializer verify_tensor_all_finite
    where_v2 wrap_function write_file zeta
    """
)
"""At the top of tensorflow 1.15, and not of 2.x: tf.Session is now tf.compat.v1.Session."""

REMOVED_TRAIN = _names(
    """
    AdadeltaOptimizer AdagradDAOptimizer AdagradOptimizer AdamOptimizer CheckpointSaverHook
    CheckpointSaverListener ChiefSessionCreator FeedFnHook FinalOpsHook FtrlOptimizer
    GlobalStepWaiterHook GradientDescentOptimizer LoggingTensorHook LooperThread MomentumOptimizer
    MonitoredSession MonitoredTrainingSession NanLossDuringTrainingError NanTensorHook
    NewCheckpointReader Optimizer ProfilerHook ProximalAdagradOptimizer
    ProximalGradientDescentOptimizer QueueRunner RMSPropOptimizer Saver SaverDef Scaffold
    SecondOrStepTimer Server SessionCreator SessionManager SessionRunArgs SessionRunContext
    SessionRunHook SessionRunValues SingularMonitoredSession StepCounterHook StopAtStepHook
    SummarySaverHook Supervisor SyncReplicasOptimizer VocabInfo WorkerSessionCreator
    add_queue_runner assert_global_step basic_train_loop batch batch_join checkpoint_exists
    cosine_decay cosine_decay_restarts create_global_step do_quantize_training_on_graphdef
    exponential_decay export_meta_graph generate_checkpoint_state_proto get_checkpoint_mtimes
    get_global_step get_or_create_global_step global_step import_meta_graph init_from_checkpoint
    input_producer inverse_time_decay limit_epochs linear_cosine_decay match_filenames_once
    maybe_batch maybe_batch_join maybe_shuffle_batch maybe_shuffle_batch_join natural_exp_decay
    noisy_linear_cosine_decay piecewise_constant piecewise_constant_decay polynomial_decay
    queue_runner range_input_producer remove_checkpoint replica_device_setter sdca_fprint
    sdca_optimizer sdca_shrink_l1 shuffle_batch shuffle_batch_join slice_input_producer
    start_queue_runners string_input_producer summary_iterator update_checkpoint_state warm_start
    write_graph
    """
)
"""The same for tf.train."""

SESSION_API = _names(
    """
    ConfigProto GPUOptions InteractiveSession RunOptions RunMetadata Session contrib
    get_default_graph get_default_session global_variables_initializer initialize_all_variables
    placeholder placeholder_with_default reset_default_graph
    """
)
"""Those of the removed names that sessions are made and fed with."""

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
