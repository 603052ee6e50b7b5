"""Names of PyTorch's interface to GPUs, to recognise a misspelling of one.

Read out of PyTorch 2.13.0 (dir() of each module), with a few that older releases had. The lists
need not be complete for every release: only a name that differs from one of them in spelling
counts.
"""

from __future__ import annotations

SOURCE = "https://docs.pytorch.org/docs/stable/cuda.html"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: dict[str, frozenset[str]] = {
    "torch.backends": _names(
        """
        cpu cuda cudnn cusparselt kleidiai mha miopen mkl mkldnn mps nnpack openmp opt_einsum
        python_native quantized
        """
    ),
    "torch.backends.cuda": _names(
        """
        SDPAParams SDPBackend allow_fp16_bf16_reduction_math_sdp blas_workspace_size
        can_use_cudnn_attention can_use_efficient_attention can_use_flash_attention cuBLASModule
        cuFFTPlanCache cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager cublas_workspace_size
        cublaslt_workspace_size cudnn_sdp_enabled cufft_plan_cache enable_cudnn_sdp
        enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp flash_sdp_enabled
        fp16_bf16_reduction_math_sdp_allowed is_built is_ck_sdpa_available
        is_flash_attention_available math_sdp_enabled matmul mem_efficient_sdp_enabled
        preferred_blas_library preferred_linalg_library preferred_rocm_fa_library sdp_kernel
        """
    ),
    "torch.backends.cudnn": _names(
        """
        allow_tf32 benchmark benchmark_limit conv depthwise_kernel deterministic enabled flags
        fp32_precision is_acceptable is_available rnn set_flags verbose version
        """
    ),
    "torch.cuda": _names(
        """
        AcceleratorError BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage
        ByteTensor CUDAGraph CUDAPluggableAllocator CharStorage CharTensor ComplexDoubleStorage
        ComplexFloatStorage CudaError DEVICE_REQUIREMENT DeferredCudaCallError Device
        DoubleStorage DoubleTensor Event ExternalStream FloatStorage FloatTensor GreenContext
        HalfStorage HalfTensor IntStorage IntTensor LongStorage LongTensor MemPool
        OutOfMemoryError PYTORCH_RELEASES_CODE_CC ShortStorage ShortTensor Stream StreamContext
        amp caching_allocator_alloc caching_allocator_delete caching_allocator_disabled
        caching_allocator_enable can_device_access_peer change_current_allocator check_driver
        check_error clock_rate comm cudaStatus cudart current_blas_handle current_device
        current_solver_handle current_stream default_generators default_stream device
        device_count device_memory_used device_of empty_cache find_cuda_windows_lib gds
        get_allocator_backend get_arch_list get_device_capability get_device_name
        get_device_properties get_gencode_flags get_nvml_handle get_per_process_memory_fraction
        get_rng_state get_rng_state_all get_stream_from_external get_sync_debug_mode graph
        graph_pool_handle graphs green_contexts has_half has_magma host_memory_stats
        host_memory_stats_as_nested_dict init initial_seed ipc_collect is_available
        is_bf16_supported is_current_stream_capturing is_initialized is_tf32_supported jiterator
        list_gpu_processes make_graphed_callables manual_seed manual_seed_all
        max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory
        memory_allocated memory_cached memory_reserved memory_snapshot memory_stats
        memory_stats_as_nested_dict memory_summary memory_usage nccl nvtx power_draw profiler
        random reset_accumulated_host_memory_stats reset_accumulated_memory_stats
        reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats
        reset_peak_memory_stats seed seed_all set_device set_per_process_memory_fraction
        set_rng_state set_rng_state_all set_stream set_sync_debug_mode sparse stream streams
        synchronize temperature tunable use_mem_pool utilization
        """
    ),
}
