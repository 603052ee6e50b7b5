"""Calls that start a framework's runtime, after which devices can no longer be configured.

TensorFlow's rows were tried one by one with 2.21.0, by asking the eager context whether it is
initialised. tf.device and the making of an optimizer do initialise it; list_physical_devices,
get_visible_devices, Session, is_gpu_available and set_random_seed do not, though some of them look
at the devices. A Keras layer creates its variables when it learns the shape of its input: a model
with an input does so at once, one without an input does not.
"""

from __future__ import annotations

from whygpu.model.lazy_regex import late

TENSORFLOW_LOOKS = frozenset(
    [
        "config.list_physical_devices",
        "config.list_logical_devices",
        "config.get_visible_devices",
        "config.set_memory_growth",
        "config.set_visible_devices",
        "config.get_device_details",
        "test.is_gpu_available",
        "test.gpu_device_name",
        "Session",
        "InteractiveSession",
        "python.client.device_lib.list_local_devices",
    ]
)
"""Calls that make TensorFlow query devices, so that CUDA reads its variables."""

TENSORFLOW_STARTS = frozenset(
    [
        "config.list_logical_devices",
        "config.get_memory_info",
        "distribute.MirroredStrategy",
        "distribute.OneDeviceStrategy",
        "distribute.MultiWorkerMirroredStrategy",
        "device",
        "constant",
        "Variable",
        "zeros",
        "ones",
        "eye",
        "fill",
        "range",
        "linspace",
        "one_hot",
        "convert_to_tensor",
        "cast",
        "zeros_like",
        "ones_like",
        "matmul",
        "add",
        "reduce_sum",
        "reduce_mean",
        "random.normal",
        "random.uniform",
        "random.truncated_normal",
        "random.shuffle",
        "random.Generator.from_seed",
        "math.reduce_sum",
        "summary.create_file_writer",
        "data.Dataset.range",
        "data.Dataset.from_tensor_slices",
        "data.Dataset.from_tensors",
    ]
)
"""Calls that initialise TensorFlow's runtime at once, in eager mode."""

KERAS_STARTS = late(
    r"(?:applications\.(?:\w+\.)?[A-Z]\w+|optimizers\.(?:legacy\.)?[A-Z]\w+|models\.load_model"
    r"|metrics\.(?:Mean|Sum|\w*Accuracy|AUC|Precision|Recall))"
)
"""Functions of Keras that create variables, which initialises the runtime."""

KERAS_LAYERS_WITH_VARIABLES = late(
    r"layers\.(?:Dense|EinsumDense|Embedding|(?:Separable|Depthwise)?Conv[123]D(?:Transpose)?"
    r"|LSTM|GRU|SimpleRNN|BatchNormalization|LayerNormalization|MultiHeadAttention)"
)
KERAS_INPUTS = frozenset({"Input", "layers.Input", "layers.InputLayer"})
KERAS_INPUT_ARGUMENTS = frozenset({"input_shape", "input_dim", "batch_input_shape"})

KERAS_RUNS = frozenset({"fit", "predict", "evaluate", "fit_generator", "train_on_batch"})
"""Methods of a Keras model that train or run it."""
KERAS_METHODS = KERAS_RUNS | {"build", "compile"}
"""Methods of a Keras model that initialise the runtime."""

JAX_STARTS = late(
    r"jax\.(?:devices|local_devices|device_count|local_device_count|device_put|default_backend"
    r"|process_index|process_count|random\.(?:PRNGKey|key)"
    r"|numpy\.(?:array|asarray|ones|zeros|eye|arange|linspace|full))"
)

TORCH_LOOKS = frozenset(
    [
        "torch.cuda.is_available",
        "torch.cuda.init",
        "torch.cuda.get_device_name",
        "torch.cuda.get_device_properties",
        "torch.cuda.get_device_capability",
        "torch.cuda.current_device",
        "torch.cuda.set_device",
        "torch.cuda.synchronize",
        "torch.cuda.mem_get_info",
    ]
)
"""Calls that start CUDA, which reads its variables; torch.cuda.device_count does not."""

SOURCE = "https://www.tensorflow.org/guide/gpu"
