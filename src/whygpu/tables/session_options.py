"""The fields of ConfigProto and GPUOptions in TensorFlow 2.21; 1.12 has no other ones."""

from __future__ import annotations

SESSION_OPTIONS = frozenset(
    [
        "allow_soft_placement",
        "cluster_def",
        "device_count",
        "device_filters",
        "experimental",
        "gpu_options",
        "graph_options",
        "inter_op_parallelism_threads",
        "intra_op_parallelism_threads",
        "isolate_session_state",
        "log_device_placement",
        "operation_timeout_in_ms",
        "placement_period",
        "pluggable_device_options",
        "rpc_options",
        "session_inter_op_thread_pool",
        "share_cluster_devices_in_session",
        "use_per_session_threads",
    ]
)
GPU_OPTIONS = frozenset(
    [
        "allocator_type",
        "allow_growth",
        "deferred_deletion_bytes",
        "experimental",
        "force_gpu_compatible",
        "per_process_gpu_memory_fraction",
        "polling_active_delay_usecs",
        "polling_inactive_delay_msecs",
        "visible_device_list",
    ]
)
