"""Programs that use the GPU the wrong way, in the words of each framework and year."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import explained


def roots(log: str) -> list[str]:
    explanation = explained(log)
    assert not explanation.crashed
    return [finding.cause for finding in explanation.root_causes]


@each(
    "log",
    [
        "RuntimeError: Expected object of type torch.FloatTensor but found type "
        "torch.cuda.FloatTensor for argument #3 'other'",
        "RuntimeError: Expected object of backend CPU but got backend CUDA for argument #2 'x'",
        "RuntimeError: Expected object of device type cuda but got device type cpu for argument #1",
        "RuntimeError: expected device cuda:0 but got device cpu",
        "RuntimeError: Expected tensor for argument #1 'a' to be on the same device, but got cpu",
        "RuntimeError: Input and parameter tensors are not at the same device, found input tensor "
        "at cpu and parameter tensor at cuda:0",
        "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.FloatTensor) "
        "should be the same",
        "TypeError: can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor",
        "RuntimeError: module must have its parameters and buffers on device cuda:1 "
        "(device_ids[0]) but found one of them on device: cuda:0",
        "RuntimeError: indices should be either on cpu or on the same device as the indexed "
        "tensor (cpu)",
        "RuntimeError: arguments are located on different GPUs at /pytorch/aten/src/THC/x.cu:269",
        "ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)",
    ],
)
def test_tensors_on_two_devices(log: str) -> None:
    assert roots(log)[0] == "tensor-device-mismatch"


@pytest.mark.parametrize(
    "log",
    [
        "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) "
        "should be the same",
        "RuntimeError: Expected object of type torch.LongTensor but found type torch.IntTensor",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x4 and 3x3)",
    ],
)
def test_types_and_shapes_are_another_matter(log: str) -> None:
    assert "tensor-device-mismatch" not in roots(log)


def test_the_two_devices_are_named() -> None:
    finding = explained(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!"
    ).root_causes[0]
    assert "(cuda:0 and cpu)" in finding.message


@each(
    "log",
    [
        "RuntimeError: Visible devices cannot be modified after being initialized",
        "RuntimeError: Virtual devices cannot be modified after being initialized",
        "ValueError: Memory growth cannot differ between GPU devices",
        "ValueError: Cannot set memory growth on device when virtual devices configured",
        "tensorflow.python.framework.errors_impl.AlreadyExistsError: TensorFlow device (GPU:0) is "
        "being mapped to multiple CUDA devices (0 now, and 1 previously), which is not supported.",
        "RuntimeError: jax.distributed.initialize() must be called before any JAX computations are "
        "executed.",
    ],
)
def test_configuration_that_comes_too_late_or_differs(log: str) -> None:
    assert roots(log)[0] == "gpu-config-misuse"


NOT_INITIALIZED = (
    "E tensorflow/stream_executor/cuda/cuda_driver.cc:1368] could not retrieve CUDA device count: "
    "CUDA_ERROR_NOT_INITIALIZED: initialization error"
)


@pytest.mark.parametrize(
    ("before", "confidence"),
    [
        ("Process ForkPoolWorker-3:", "likely"),
        ('  File "/usr/lib/python3.8/multiprocessing/pool.py", line 125, in worker', "likely"),
        ("hello", "possible"),
    ],
)
def test_not_initialized_means_a_fork_where_there_are_workers(before: str, confidence: str) -> None:
    findings = explained(f"{before}\n{NOT_INITIALIZED}").root_causes
    found = next(f for f in findings if f.cause == "cuda-fork-multiprocessing")
    assert found.confidence == confidence


@each("name", ["Session", "ConfigProto", "placeholder", "contrib", "GPUOptions"])
def test_names_of_tensorflow_1(name: str) -> None:
    log = f"AttributeError: module 'tensorflow' has no attribute '{name}'"
    assert roots(log) == ["session-api-removed-in-tf2"]


@each(
    "log",
    [
        "RuntimeError: The Session graph is empty. Add operations to the graph before running.",
        "RuntimeError: tf.placeholder() is not compatible with eager execution.",
        "ModuleNotFoundError: No module named 'tensorflow.contrib'",
        "AttributeError: module 'tensorflow._api.v2.train' has no attribute 'AdamOptimizer'",
        "AttributeError: module 'tensorflow_core._api.v2.config' has no attribute 'x'\n"
        "AttributeError: module 'tensorflow_core.compat.v1' has no attribute 'contrib'",
    ],
)
def test_other_ways_to_say_so(log: str) -> None:
    assert "session-api-removed-in-tf2" in roots(log)


@pytest.mark.parametrize(
    "log",
    [
        # TensorFlow 1 itself does not have it: then it is something else.
        "tensorflow version: 1.15.0\n"
        "AttributeError: module 'tensorflow' has no attribute 'contrib'",
        # What every release has is missing: the installation is broken.
        "AttributeError: module 'tensorflow' has no attribute 'keras'",
        "WARNING:tensorflow:The name tf.Session is deprecated. Please use tf.compat.v1.Session.",
    ],
)
def test_what_is_not_the_old_interface(log: str) -> None:
    assert "session-api-removed-in-tf2" not in roots(log)


READY = (
    "I tensorflow/core/common_runtime/gpu/gpu_device.cc:1120] Creating TensorFlow device "
    "(/device:GPU:0) -> (device: 0, name: GeForce GTX 1050, pci bus id: 0000:01:00.0, compute "
    "capability: 6.1)"
)
START = (
    "I tensorflow/core/platform/cpu_feature_guard.cc:137] Your CPU supports instructions that this "
    "TensorFlow binary was not compiled to use: AVX2"
)


@pytest.mark.parametrize(("gpu", "cpu", "slow"), [(4.1, 0.5, True), (0.5, 4.1, False)])
def test_two_runs_of_one_program_are_compared(gpu: float, cpu: float, slow: bool) -> None:
    log = f"{START}\n{READY}\npredict_time: {gpu}\n{START}\npredict_time: {cpu}\n"
    assert ("slow-small-or-input-bound" in roots(log)) is slow


def test_slowness_is_not_said_of_a_program_that_failed() -> None:
    log = f"{READY}\nCPU time: 0.4 s\nGPU time: 1.8 s\nKeyError: 'x'"
    assert "slow-small-or-input-bound" not in roots(log)


STEP = "Epoch 1/10: loss 0.41"
BUSY = "|  6012MiB / 40960MiB |      {}%      Default |"


def idle(samples: list[str], *before: str) -> list[str]:
    return roots("\n".join([*before, *(f"{STEP}\n{sample}" for sample in samples), ""]))


@each(
    "samples",
    [
        ["GPU utilization: 3%", "GPU utilization: 5%", "GPU utilization: 2%"],
        ["gpu_util=3.2%", "gpu_util=19.9%", "gpu_util=0.0%"],
        ["GPU 0 utilisation: 3 %"] * 3,
        [BUSY.format(3), BUSY.format(0), BUSY.format(19)],
        ["3 %, 10 %", "0 %, 10 %", "7 %, 10 %"],
    ],
)
def test_a_gpu_that_waits_in_every_sample_gets_too_little_work(samples: list[str]) -> None:
    assert idle(samples) == ["slow-small-or-input-bound"]


@each(
    "samples",
    [
        # Too few, or busy at least once, or exactly at the limit.
        ["GPU utilization: 3%", "GPU utilization: 5%"],
        ["GPU utilization: 3%", "GPU utilization: 95%", "GPU utilization: 2%"],
        ["GPU utilization: 20%"] * 3,
        # Nothing of the program is on this GPU.
        [BUSY.format(0).replace("6012", "4")] * 3,
        [BUSY.format(0).replace("6012", "299")] * 3,
        # The share of the memory, and of the CPU.
        ["GPU memory utilization: 3%"] * 3,
        ["CPU utilization: 3%"] * 3,
    ],
)
def test_other_samples_show_no_gpu_that_waits(samples: list[str]) -> None:
    assert idle(samples) == []


def test_a_gpu_is_idle_before_the_first_step_and_after_the_end() -> None:
    three = ["GPU utilization: 0%"] * 3
    log = "\n".join
    assert roots(log([*three, STEP])) == []
    assert roots(log([STEP, "Training finished.", *three])) == []
    assert roots(log([STEP, *three, "Training finished."])) == ["slow-small-or-input-bound"]
    again = log([STEP, "Training finished.", STEP, *three])
    assert roots(again) == ["slow-small-or-input-bound"], "another training has begun"
    assert roots(log(three)) == []


def test_an_idle_gpu_is_not_spoken_of_where_a_program_failed() -> None:
    assert "slow-small-or-input-bound" not in idle(["GPU utilization: 0%"] * 3 + ["KeyError: 'x'"])


OTHER = "/opt/lib/a.py:98: UserWarning: Protobuf gencode version 5.28.3 is older than the runtime"


@each(
    ("lines", "message"),
    [
        ([OTHER], "a package warns about something other than the GPU"),
        ([OTHER, OTHER], "a package warns about something other than the GPU (on 2 lines)"),
        ([OTHER.replace("User", "Resource")], "a package warns about something other than the GPU"),
    ],
)
def test_a_warning_about_something_else_is_harmless(lines: list[str], message: str) -> None:
    (noise,) = explained("\n".join(lines)).noise
    assert (noise.code, noise.message) == ("WG927", message)


@each(
    "line",
    [
        "/opt/lib/a.py:98: UserWarning: CUDA initialization: unknown error",
        "/opt/lib/a.py:98: UserWarning: out of memory",
        "UserWarning: a warning without a place",
        "/opt/lib/a.py:98: ValueError: no warning",
    ],
)
def test_other_warnings_are_not_called_so(line: str) -> None:
    assert "WG927" not in [finding.code for finding in explained(line).noise]


def test_the_evidence_of_many_warnings_is_short() -> None:
    (noise,) = explained("\n".join([OTHER] * 9)).noise
    assert [evidence.line for evidence in noise.evidence] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert "on 9 lines" in noise.message


DEMANDED = "but you set 'torch.use_deterministic_algorithms(True)'. You can turn off determinism"


@each(
    ("log", "said"),
    [
        (
            f"RuntimeError: scatter_add_cuda_kernel does not have a deterministic implementation, "
            f"{DEMANDED}",
            "scatter_add_cuda_kernel has no deterministic implementation on the GPU",
        ),
        (
            f"RuntimeError: put_ does not have a deterministic implementation, {DEMANDED}",
            "put_ has no deterministic implementation",
        ),
        (
            "UnimplementedError: Deterministic GPU implementation of unsorted segment reduction op "
            "not available. [Op:UnsortedSegmentSum]",
            "unsorted segment reduction op has no deterministic implementation on the GPU",
        ),
        (
            "UnimplementedError: A deterministic GPU implementation of fused batch-norm backprop, "
            "when training is disabled, is not currently available.",
            "fused batch-norm backprop, when training is disabled has no deterministic "
            "implementation on the GPU",
        ),
        (
            "UnimplementedError: Determinism is not yet supported for Dilation2DBackpropInput.",
            "Dilation2DBackpropInput has no deterministic implementation on the GPU",
        ),
    ],
)
def test_the_operation_without_deterministic_code_is_named(log: str, said: str) -> None:
    (finding,) = explained(log).root_causes
    assert finding.cause == "no-deterministic-kernel"
    assert finding.message.endswith(f"every run, and {said}")


@each(
    ("raised", "switch"),
    [
        ("jaxlib.xla_extension.XlaRuntimeError: UNIMPLEMENTED:", "XLA_FLAGS"),
        (
            "tensorflow.python.framework.errors_impl.UnimplementedError:",
            "enable_op_determinism",
        ),
    ],
)
def test_the_switch_is_that_of_the_framework_that_uses_xla(raised: str, switch: str) -> None:
    (finding,) = explained(
        f"{raised} HLO instruction %scatter.4 does not have a deterministic implementation, but "
        "run-to-run determinism is required."
    ).root_causes
    assert switch in finding.remedies[0].text


def test_a_program_that_worked_on_was_not_stopped_by_the_demand() -> None:
    refused = (
        "UnimplementedError: Deterministic GPU implementation of unsorted segment reduction op "
        "not available."
    )
    assert "no-deterministic-kernel" in roots(refused)
    assert roots(f"{refused}\nEpoch 1: loss 0.71\nEpoch 2: loss 0.60") == []


@each(
    "sentence",
    [
        "The GPU usage fluctuates between 0% and 60% while I train",
        "When I train, the gpu-util is 15% and the CPU is at 90%",
        "My GPU memory is full, but its utilization is only 12 %",
        "I train on a P100 and the GPU utilization drops to 0-10 % every few seconds",
        "In my training, as nvidia-smi shows\nthe GPU-Util is just (0~20%) here",
    ],
)
def test_a_gpu_that_is_said_to_be_busy_now_and_then_waits(sentence: str) -> None:
    assert roots(sentence) == ["slow-small-or-input-bound"]


@each(
    "sentence",
    [
        "The GPU usage is 0% but the CPU is at 45%",
        "My GPU is at 5%, which may be the desktop",
        "I see that the GPU is idle 20% of the time",
        "The GPU usage is at 95 % and the memory at 10 %",
        "The GPU utilization drops to 0%",
    ],
)
def test_an_idle_gpu_may_as_well_be_unused(sentence: str) -> None:
    assert roots(sentence) == []
    assert explained(sentence).verdict == "unknown"


def test_a_sentence_over_two_lines_is_one_persons() -> None:
    text = "I have a question, since when I watch it\nthe gpu-util is at 2 % only\n5/100 [=>..]\n"
    assert explained(text).verdict == "unknown"


TF1 = "- **TensorFlow version (use command below)**: 1.7.0"
NO_SESSION = "AttributeError: module 'tensorflow' has no attribute 'Session'"


def test_a_form_that_states_tensorflow_1_rules_out_what_tensorflow_2_removed() -> None:
    assert roots(NO_SESSION) == ["session-api-removed-in-tf2"]
    assert roots(f"{NO_SESSION}\n{TF1}") == []


@each(
    "line",
    [
        "cannot re-initialize cuda in forked subprocess. ",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess.",
        "Cannot reinitialize CUDA in a forked subprocess",
    ],
)
def test_a_forked_process_however_it_is_written(line: str) -> None:
    assert roots(line) == ["cuda-fork-multiprocessing"]


STARTS = (
    "2018-05-05 05:05:05.000001: I tensorflow/core/platform/cpu_feature_guard.cc:140] Your CPU "
    "supports instructions that this TensorFlow binary was not compiled to use: AVX2 FMA"
)
MAPPED = (
    "2018-05-05 05:05:05.000002: I tensorflow/core/common_runtime/direct_session.cc:284] Device "
    "mapping: no known devices."
)
NO_DRIVER = "E tensorflow/stream_executor/cuda/cuda_driver.cc:406] failed call to cuInit: {}"


def test_a_session_that_does_not_look_for_a_gpu_is_of_a_build_without() -> None:
    assert roots(f"{STARTS}\n{MAPPED}") == ["cpu-only-build"]
    error = NO_DRIVER.format("CUDA_ERROR_NO_DEVICE")
    assert "cpu-only-build" not in roots(f"{STARTS}\n{error}\n{MAPPED}")
    wanted = "config = tf.ConfigProto(device_count={'GPU': 0})"
    assert "cpu-only-build" not in roots(f"{wanted}\n{STARTS}\n{MAPPED}")
    assert "cpu-only-build" not in roots(MAPPED), "messages may be filtered out"
