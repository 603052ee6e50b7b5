"""Operations in the wrong place, numbers that do not exist, platforms that are left out."""

from __future__ import annotations

from tests.cases import each
from tests.kit import explained

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def first(log: str) -> str:
    explanation = explained(log)
    assert explanation.root_causes, explanation
    return explanation.root_causes[0].cause


def eager(asked: str, supported: str, available: str) -> str:
    return (
        f"InvalidArgumentError: Could not satisfy device specification '{asked}'. "
        f"enable_soft_placement=0. Supported device types [{supported}]. "
        f"All available devices [{available}]. [Op:Fill]"
    )


def op_kernel(op: str, registered: str, kernels: str) -> str:
    return (
        f"InvalidArgumentError: No OpKernel was registered to support Op '{op}' used by node "
        f"{op} with these attrs: [T=DT_FLOAT]\nRegistered devices: [{registered}]\n"
        f"Registered kernels:\n  {kernels}"
    )


@each(
    ("log", "cause"),
    [
        (eager(GPU, "GPU, CPU", CPU), "device-placement-nonexistent"),
        (eager(GPU, "CPU", f"{CPU}, {GPU}"), "device-placement-no-gpu-kernel"),
        (eager(f"{GPU[:-1]}7", "GPU", f"{CPU}, {GPU}"), "device-placement-nonexistent"),
        (eager(GPU, "GPU", f"{CPU}, {GPU[:-5]}XLA_GPU:0"), "device-placement-nonexistent"),
        (
            eager("/job:chief/replica:0/task:0/device:GPU:0", "GPU", f"{CPU}, {GPU}"),
            "device-placement-nonexistent",
        ),
        (op_kernel("Census", "CPU, XLA_GPU", "device='GPU'"), "device-placement-nonexistent"),
        (op_kernel("CudnnRNN", "CPU", "<no registered kernels>"), "device-placement-nonexistent"),
        (
            op_kernel("AllToAll", "CPU, GPU", "<no registered kernels>"),
            "device-placement-no-gpu-kernel",
        ),
        (
            op_kernel("TPUReplicate", "CPU, GPU", "<no registered kernels>"),
            "device-placement-nonexistent",
        ),
    ],
)
def test_whether_the_device_or_the_code_is_missing(log: str, cause: str) -> None:
    assert first(log) == cause


def test_a_library_that_was_not_loaded_is_no_matter_of_devices() -> None:
    log = (
        "tensorflow.python.framework.errors_impl.NotFoundError: Op type not registered "
        "'CombinedNonMaxSuppression' in binary running on box."
    )
    causes = [root.cause for root in explained(log).root_causes]
    assert "device-placement-no-gpu-kernel" not in causes
    assert "device-placement-nonexistent" not in causes


def test_the_reason_why_the_device_is_missing_comes_first() -> None:
    explanation = explained(
        "failed call to cuInit: CUDA_ERROR_UNKNOWN\n"
        "kernel version seems to match DSO: 387.26.0\n"
        "InvalidArgumentError: Cannot assign a device for operation w: node w was explicitly "
        f"assigned to /device:GPU:0 but available devices are [ {CPU} ]."
    )
    assert explanation.root_causes[0].cause == "nvidia-kernel-module-state"
    assert [symptom.cause for symptom in explanation.symptoms] == ["device-placement-nonexistent"]


def test_the_numbers_of_the_message_are_the_answers() -> None:
    (root,) = explained(
        "RuntimeError: Attempting to deserialize object on CUDA device 3 but "
        "torch.cuda.device_count() is 2."
    ).root_causes
    assert "GPU 3" in root.message
    assert "sees 2" in root.message
    assert "map_location" in root.remedies[0].text


def test_a_launcher_gets_its_remedy_first() -> None:
    (root,) = explained(
        "$ torchrun --nproc_per_node=8 train.py\nRuntimeError: CUDA error: invalid device ordinal"
    ).root_causes
    assert "nproc_per_node" in root.remedies[0].text


def test_a_count_of_no_gpu_at_all_is_not_the_numbers_fault() -> None:
    (root,) = explained(
        "MisconfigurationException: You requested GPUs: [1]\n But your machine only has: []"
    ).root_causes
    assert root.confidence == "possible"
    assert root.ask


def test_code_101_of_cuinit_is_no_ordinal() -> None:
    causes = [
        root.cause
        for root in explained(
            "failed call to cuInit: CUDA_ERROR_INVALID_DEVICE: invalid device ordinal"
        ).root_causes
    ]
    assert "invalid-device-ordinal" not in causes


def test_jax_proposes_the_variable_to_people_who_never_set_it() -> None:
    explanation = explained(
        "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found "
        "for platform CUDA (you may need to uninstall the failing plugin package, or set "
        "JAX_PLATFORMS=cpu to skip this backend.)"
    )
    causes = [root.cause for root in explanation.root_causes]
    assert "platform-variable-excludes-gpu" not in causes


def test_a_found_gpu_that_is_not_used_is_told() -> None:
    log = (
        "Created TensorFlow device (/device:GPU:0) -> (device: 0, name: GeForce GTX 1080 Ti, "
        "pci bus id: 0000:01:00.0)\n"
        "Device mapping:\n"
        "/job:localhost/replica:0/task:0/device:CPU:0 -> device: 0, name: GeForce GTX 1080 Ti\n"
        f"add: (Add): {CPU}"
    )
    root = explained(log).root_causes[0]
    assert root.cause == "gpu-unused"
    assert "GeForce GTX 1080 Ti" in root.message


def test_a_library_that_passes_the_code_on_asked_for_no_number() -> None:
    log = "RuntimeError: radix_sort: failed on 1st step: cudaErrorInvalidDevice: invalid device"
    assert "invalid-device-ordinal" not in [root.cause for root in explained(log).root_causes]


def test_what_the_optimizer_of_graphs_leaves_on_the_cpu_is_a_remark() -> None:
    log = (
        "2021-01-01 01:01:01.000000: W tensorflow/core/grappler/utils/graph_view.cc:830] No "
        "registered 'MultiDeviceIteratorInit' OpKernel for GPU devices compatible with node "
        "{{node MultiDeviceIteratorInit}}\n\t.  Registered:  device='CPU'\n\n"
        "Epoch 1/10\n 10/10 [==============================] - 3s - loss: 1.4"
    )
    assert explained(log).root_causes == ()


@each(
    ("device", "operation", "remedies"),
    [("GPU", "CudnnRNNV3", 2), ("CPU", "ResizeNearestNeighborGrad", 1)],
)
def test_an_operation_that_xla_cannot_compile_is_not_called_pinned(
    device: str, operation: str, remedies: int
) -> None:
    (finding,) = explained(
        "InvalidArgumentError: Detected unsupported operations when trying to compile graph "
        f"__inference_step_8942[_XlaMustCompile=true] on XLA_{device}_JIT: {operation} (No "
        f"registered '{operation}' OpKernel for XLA_{device}_JIT devices compatible with node x)"
    ).root_causes
    assert finding.message.startswith(f"XLA has no kernel for the operation {operation}")
    assert finding.remedies[0].text.endswith(f"It still runs on the {device}.")
    assert len(finding.remedies) == remedies
