"""Edges of the causes that are seen in code: other spellings, guards, wrappers, and innocents."""

from __future__ import annotations

from tests.cases import each
from tests.kit import lint

TF = "import tensorflow as tf\n"
OS_TF = "import os\nimport tensorflow as tf\n"
TORCH = "import torch\n"
GPUS = TF + "gpus = tf.config.list_physical_devices('GPU')\n"
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"


def codes(text: str, path: str = "example.py") -> list[str]:
    return [found.finding.code for found in lint(text, path=path)]


FIRES = {
    "log level after import": (
        OS_TF + "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\ntf.constant(1)\n",
        "WG710",
    ),
    "variable after the device list of device_lib": (
        "import os\nfrom tensorflow.python.client import device_lib\n"
        "print(device_lib.list_local_devices())\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n",
        "WG710",
    ),
    "variable in a function, import at the top": (
        "import os\nimport jax\ndef main():\n    os.environ['JAX_PLATFORMS'] = 'cpu'\n"
        "if __name__ == '__main__':\n    main()\n",
        "WG710",
    ),
    "XLA flags after the first array": (
        "import os\nimport jax.numpy as jnp\nx = jnp.ones(3)\n"
        "os.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level=0'\n",
        "WG710",
    ),
    "allocator settings after the first tensor": (
        "import os\nimport torch\nx = torch.ones(3).cuda()\n"
        "os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'\n",
        "WG710",
    ),
    "backend after tf.keras": (
        "import os\nfrom tensorflow import keras\nos.environ['KERAS_BACKEND'] = 'jax'\n"
        "model = keras.Sequential()\n",
        "WG710",
    ),
    "growth after a strategy": (
        GPUS + "s = tf.distribute.MirroredStrategy()\n"
        "for g in gpus:\n    tf.config.experimental.set_memory_growth(g, True)\n",
        "WG701",
    ),
    "configuration in a class, too late": (
        TF + "class Trainer:\n    def __init__(self):\n        self.x = tf.zeros(3)\n"
        "        self.configure()\n    def configure(self):\n"
        "        tf.config.set_visible_devices([], 'GPU')\nTrainer()\n",
        "WG701",
    ),
    "aliases": (
        "from tensorflow import config, constant\nx = constant(1)\n"
        "config.set_visible_devices([], 'GPU')\n",
        "WG701",
    ),
    "one CPU": (
        TF + "cpu = tf.config.list_physical_devices('CPU')[0]\n"
        "tf.config.set_visible_devices(cpu, 'CPU')\n",
        "WG712",
    ),
    "a list of one CPU": (
        TF + "c = tf.config.list_physical_devices('CPU')\n"
        "tf.config.set_visible_devices([c[0]], device_type='CPU')\n",
        "WG712",
    ),
    "built with CUDA, in a variable": (
        TF + "gpu_available = tf.test.is_built_with_cuda()\n",
        "WG713",
    ),
    "built with CUDA, asserted": (
        TF + "assert tf.test.is_built_with_cuda(), 'No GPU found'\n",
        "WG713",
    ),
    "cuDNN's switch": (TORCH + "if torch.backends.cudnn.enabled:\n    model.cuda()\n", "WG713"),
    "version.cuda": (
        TORCH + "device = 'cuda' if torch.version.cuda is not None else 'cpu'\n",
        "WG713",
    ),
    "not called, negated": (
        TORCH + "if not torch.cuda.is_available:\n    raise SystemExit\n",
        "WG729",
    ),
    "device scope around a helper": (
        TF + "def build():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "with tf.device('/CPU:0'):\n    model = build()\n"
        "model.compile('adam', 'mse')\nmodel.fit(x, y)\n",
        "WG716",
    ),
    "functional model in a scope": (
        TF + "with tf.device('/GPU:1'):\n    i = tf.keras.Input((3,))\n"
        "    m = tf.keras.Model(i, tf.keras.layers.Dense(1)(i))\nm.compile()\nm.fit(x)\n",
        "WG716",
    ),
    "config made with options and dropped": (
        TF + "def go():\n    config = tf.compat.v1.ConfigProto(\n"
        "        gpu_options=tf.compat.v1.GPUOptions(allow_growth=True))\n"
        "    with tf.compat.v1.Session() as s:\n        s.run(x)\n",
        "WG717",
    ),
    "an unknown name": (TF + "tf.config.hide_gpus()\n", "WG711"),
    "misplaced": (TF + "tf.config.experimental.set_logical_device_configuration(a, b)\n", "WG711"),
    "through compat": (
        "import tensorflow.compat.v1 as tf\n"
        "gpus = tf.config.experimental.list_physical_devices('GPU')\nprint(gpus[0])\n",
        "WG719",
    ),
    "TensorFlow 1's seed beside TensorFlow 2": (
        TF + "gpus = tf.config.list_physical_devices('GPU')\ntf.set_random_seed(1)\n",
        "WG704",
    ),
    "a session for tf.keras": (
        TF + "tf.keras.backend.set_session(tf.compat.v1.Session())\n",
        "WG704",
    ),
    "the last GPU": (GPUS + "print(gpus[-1])\n", "WG719"),
    "the wrong guard": (GPUS + "if len(gpus) >= 1:\n    print(gpus[1])\n", "WG719"),
    "another list's guard": (
        GPUS + "cpus = tf.config.list_physical_devices('CPU')\nif len(cpus) > 1:\n"
        "    print(gpus[1])\n",
        "WG719",
    ),
    "jax's second GPU": ("import jax\nd = jax.devices('gpu')[1]\n", "WG719"),
    "full device name": (TF + "with tf.device('/device:GPU:3'):\n    pass\n", "WG720"),
    "device in a variable": (TORCH + "device = torch.device('cuda:1')\n", "WG720"),
    "a number": (TORCH + "torch.cuda.set_device(2)\n", "WG720"),
    "device_ids": (TORCH + "m = torch.nn.DataParallel(net, device_ids=[2, 3])\n", "WG720"),
    "a strategy": (TF + "s = tf.distribute.MirroredStrategy(['/gpu:2', '/gpu:3'])\n", "WG720"),
    "hidden and asked for": (
        "import os\nimport torch\nos.environ['CUDA_VISIBLE_DEVICES'] = '3'\n"
        "torch.cuda.set_device(3)\n",
        "WG720",
    ),
    "a session in a helper, swallowed": (
        "import tensorflow.compat.v1 as tf\ndef make():\n    return tf.Session()\n"
        "def main():\n    try:\n        make()\n    except Exception as e:\n        print(e)\n",
        "WG722",
    ),
    "bare and silent": (
        TORCH + "try:\n    model.cuda()\nexcept:\n    pass\n",
        "WG722",
    ),
    "out of memory, tried again": (
        TORCH
        + "try:\n    loss = step(x)\nexcept torch.OutOfMemoryError:\n    loss = step(x[:2])\n",
        "WG723",
    ),
    "moved in a loop over a loader": (
        TORCH + "loader = torch.utils.data.DataLoader(d)\n"
        "for i, (x, y) in enumerate(loader):\n    x.to('cuda')\n",
        "WG726",
    ),
    "a module and a tensor": (
        TORCH + "m = torch.nn.Sequential(torch.nn.Linear(2, 2)).to('cuda')\nm(torch.ones(1, 2))\n",
        "WG702",
    ),
    "two tensors in a function of torch": (
        TORCH + "a = torch.rand(3, 3, device='cuda')\nb = torch.rand(3, 3)\ntorch.matmul(a, b)\n",
        "WG702",
    ),
    "a pool after a look": (
        TORCH + "import multiprocessing as mp\ndef f(x):\n    return x.cuda()\n"
        "torch.zeros(1).cuda()\npool = mp.Pool(2)\npool.map(f, xs)\n",
        "WG703",
    ),
    "pinned data on the GPU": (
        TORCH + "from torch.utils.data import DataLoader, TensorDataset\n"
        "d = TensorDataset(x.cuda())\nl = DataLoader(d, pin_memory=True)\n",
        "WG725",
    ),
    "data of torchvision": (
        TORCH + "from torchvision import datasets\nx = datasets.MNIST('.').data.to('cuda')\n",
        "WG725",
    ),
    "a pool of trainings": (
        TF + "from multiprocessing import Pool\ndef train(n):\n    m = tf.keras.Sequential()\n"
        "    m.compile('adam', 'mse')\n    m.fit(x)\nwith Pool(4) as p:\n    p.map(train, [1])\n",
        "WG724",
    ),
}


@each(("text", "code"), FIRES.values(), ids=FIRES.keys())
def test_it_is_found(text: str, code: str) -> None:
    assert code in codes(text)


FIRES |= {
    "a field of GPUOptions that is a keyword": (
        TF + "tf.compat.v1.GPUOptions(per_process_memory_fraction=0.4)\n",
        "WG701",
    ),
    "a field of GPUOptions that is set": (
        TF + "options = tf.compat.v1.GPUOptions()\noptions.allow_grow = True\n",
        "WG701",
    ),
    "a field of GPUOptions given to ConfigProto": (
        TF + "tf.compat.v1.ConfigProto(allow_growth=True)\n",
        "WG701",
    ),
    "a percentage of the memory": (
        TF + "c = tf.compat.v1.ConfigProto()\nc.gpu_options.per_process_gpu_memory_fraction = 80\n",
        "WG701",
    ),
    "targets of a class": (
        TORCH + "class T:\n    def __init__(self):\n        self.loss = torch.nn.MSELoss()\n"
        "    def run(self, device='cuda'):\n        for x, y in loader:\n"
        "            x = x.to(self.device)\n            out = self.model(x)\n"
        "            self.loss(out, y).backward()\n            loss = self.loss(out, y)\n"
        "            loss.backward()\n",
        "WG702",
    ),
    "targets of an input that is moved in the call": (
        TORCH
        + "for x, y in loader:\n    loss = torch.nn.functional.cross_entropy(net(x.cuda()), y)\n"
        "    loss.backward()\n",
        "WG702",
    ),
    "targets that are unpacked in the loop": (
        TORCH + "for batch in loader:\n    x, y = batch\n    x = x.cuda()\n"
        "    loss = torch.nn.CrossEntropyLoss()(net(x), y)\n    loss.backward()\n",
        "WG702",
    ),
    "the result of a moved model as an array": (
        TORCH + "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "model = model.to(device)\nout = model(x.to(device))\nout.numpy()\n",
        "WG702",
    ),
    "one sample as a slice": (
        TF + "m = tf.keras.models.load_model('m')\nfor i in range(len(x)):\n"
        "    m.predict(x[i:i + 1])\n",
        "WG742",
    ),
    "a model that a function makes outside the scope": (
        TF + "def make():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "s = tf.distribute.MirroredStrategy()\nm = make()\nwith s.scope():\n"
        "    m.compile('adam', 'mse')\nm.fit(x)\n",
        "WG737",
    ),
}

VARIABLES = {
    "an option of the allocator": ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size:128"),
    "a list in brackets": ("CUDA_VISIBLE_DEVICES", "[0, 1]"),
    "a name with two slips": ("PYTORCH_CUDA_ALLOC_CONFIG", "backend:native"),
    "a name without a row": ("CUBLAS_WORKSPACE_CONFG", ":4096:8"),
}


@each(("name", "value"), VARIABLES.values(), ids=VARIABLES.keys())
def test_a_variable_that_has_no_effect_is_found(name: str, value: str) -> None:
    assert codes(f"import os\nos.environ[{name!r}] = {value!r}\n") == ["WG405"]


SCALED = (
    "import torch\nclass Scaled(torch.nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n        self.scale = {}\n"
    "    def forward(self, x):\n        return x * self.scale\nmodel = Scaled().cuda()\n{}"
)
QUIET = {
    "a plain attribute that is a single number": SCALED.format("torch.ones([])", ""),
    "a plain attribute that is set to one on the GPU": SCALED.format(
        "torch.ones(3)", "model.scale = torch.full((3,), 2.0, device='cuda')\n"
    ),
    "a module that is made below a default device": SCALED.format(
        "torch.ones(3)", "with torch.device('cuda'):\n    other = Scaled()\n"
    ),
    "a plain attribute, and a forward method that moves its input": SCALED.format(
        "torch.ones(3)", ""
    ).replace("x * self", "x.cpu() * self.scale + x * self"),
    "an attribute of another object": SCALED.format("torch.ones(3)", "").replace(
        "self.scale =", "config.scale ="
    ),
    "a number of a GPU with thousands of digits": (
        "import os\nimport torch\nos.environ['CUDA_VISIBLE_DEVICES'] = '" + 5000 * "1" + "'\n"
    ),
    "a training that asks for CUDA and uses the CPU": (
        TORCH + "use_cuda = torch.cuda.is_available()\nfor x in loader:\n"
        "    loss = model(x).mean()\n    loss.backward()\n    print(loss.item())\n"
    ),
    "a log level above the highest": "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '4'\n",
    "a name that the program reads itself": (
        "import os\nos.environ['CUDA_VISIBLE_DEVICE'] = '1'\nos.environ['CUDA_VISIBLE_DEVICE']\n"
    ),
    "a name of one's own beside the known one": (
        "import os\nos.environ['CUDA_VISIBLE_DEVICES_2'] = '1'\n"
    ),
    "fields of GPUOptions and ConfigProto": (
        TF + "o = tf.compat.v1.GPUOptions(per_process_gpu_memory_fraction=0.9, allow_growth=True)\n"
        "c = tf.compat.v1.ConfigProto(gpu_options=o, device_count={'GPU': 1}, **more)\n"
        "c.gpu_options.CopyFrom(o)\ntf.compat.v1.Session(config=c)\n"
    ),
    "growth that was also set in time": (
        GPUS + "for g in gpus:\n    tf.config.experimental.set_memory_growth(g, True)\n"
        "tf.constant(1)\nfor g in gpus:\n    tf.config.experimental.set_memory_growth(g, True)\n"
    ),
    "batches that a statement has moved": (
        TORCH + "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "for batch in loader:\n    batch = [each.to(device) for each in batch]\n"
        "    x, y = batch\n    x = x.to(device)\n    loss = torch.nn.MSELoss()(net(x), y)\n"
        "    loss.backward()\n"
    ),
    "the result of a model that was moved back": (
        TORCH + "model = model.to('cuda')\nmodel = model.to('cpu')\nmodel(x).numpy()\n"
    ),
    "what a collate function makes": (
        TORCH + "from torch.utils.data import DataLoader\n"
        "for x, y in DataLoader(d, collate_fn=f):\n    x.to('cuda')\n"
    ),
    "a mapping that moves its tensors": (
        TORCH + "from torch.utils.data import DataLoader\n"
        "for x, y in DataLoader(d):\n    x.to('cuda')\n    model(**x)\n"
    ),
    "two GPUs, the first by its default": (
        TORCH + "a = torch.nn.Linear(1, 1).cuda()\nb = torch.nn.Linear(1, 1).to('cuda:1')\n"
    ),
    "a device that another object gets": (TORCH + "other.device = torch.device('cuda', 1)\n"),
    "an index below a condition about the length": (
        TF + "def f(n):\n    gpus = tf.config.list_physical_devices('GPU')\n"
        "    n = min(n, len(gpus))\n    if n:\n        return gpus[0]\n"
    ),
    "variables before the imports": (
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"
        "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nos.environ['KERAS_BACKEND'] = 'tensorflow'\n"
        + TF
    ),
    "variable after the import, which is early enough": (
        "import os\nimport torch\nprint(torch.cuda.device_count())\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"
    ),
    "jax's memory after the import": (
        "import os\nimport jax\nos.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'\n"
        "x = jax.numpy.ones(3)\n"
    ),
    "determinism works late": (
        OS_TF + "tf.constant(1)\nos.environ['TF_DETERMINISTIC_OPS'] = '1'\n"
    ),
    "only in the other branch": (
        OS_TF + "if x:\n    tf.config.list_physical_devices()\nelse:\n"
        "    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"
    ),
    "a look that may not have happened": (
        OS_TF + "def look():\n    tf.config.list_physical_devices()\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0'\nlook()\n"
    ),
    "the log level of TensorFlow 1": (
        "# TensorFlow 1.15\n" + OS_TF + "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\ntf.Session()\n"
    ),
    "graph mode makes operations without starting": (
        "import tensorflow.compat.v1 as tf\ntf.disable_eager_execution()\nx = tf.constant(1)\n"
        "tf.config.set_visible_devices([], 'GPU')\n"
    ),
    "growth for each of two": (
        GPUS + "if len(gpus) > 1:\n    tf.config.experimental.set_memory_growth(gpus[0], True)\n"
        "    tf.config.experimental.set_memory_growth(gpus[1], True)\n"
    ),
    "growth for the only one": (
        GPUS + "if len(gpus) == 1:\n    tf.config.experimental.set_memory_growth(gpus[0], True)\n"
    ),
    "official guide": (
        GPUS + "if gpus:\n  try:\n    for gpu in gpus:\n"
        "      tf.config.experimental.set_memory_growth(gpu, True)\n"
        "    logical = tf.config.list_logical_devices('GPU')\n"
        "    print(len(gpus), 'Physical', len(logical), 'Logical')\n"
        "  except RuntimeError as e:\n    print(e)\n"
    ),
    "official guide, one GPU": (
        GPUS + "if gpus:\n  try:\n    tf.config.set_visible_devices(gpus[0], 'GPU')\n"
        "    logical = tf.config.list_logical_devices('GPU')\n"
        "  except RuntimeError as e:\n    print(e)\n"
    ),
    "official guide, a limit": (
        GPUS + "if gpus:\n  try:\n    tf.config.set_logical_device_configuration(gpus[0], "
        "[tf.config.LogicalDeviceConfiguration(memory_limit=1024)])\n"
        "  except RuntimeError as e:\n    print(e)\n"
    ),
    "all CPUs and no type hides GPUs": (
        TF + "tf.config.set_visible_devices(tf.config.list_physical_devices('CPU'))\n"
    ),
    "built with CUDA, said so": TF + "print('CUDA build:', tf.test.is_built_with_cuda())\n",
    "cuDNN switched on": TORCH + "torch.backends.cudnn.enabled = True\n",
    "handed over": TORCH + "skip = pytest.mark.skipif(not torch.cuda.is_available(), reason='x')\n",
    "the check as a value": TORCH + "register(torch.cuda.is_available)\n",
    "a scope with its training": (
        TF + "with tf.device('/CPU:0'):\n    " + MODEL + "    model.compile('adam', 'mse')\n"
        "    model.fit(x, y)\n"
    ),
    "a scope elsewhere for training": (
        TF + "with tf.device('/CPU:0'):\n    " + MODEL + "with tf.device('/GPU:0'):"
        "\n    model.fit(x, y)\n"
    ),
    "a config that Keras gets": (
        "import tensorflow.compat.v1 as tf\nconfig = tf.ConfigProto()\n"
        "config.gpu_options.allow_growth = True\n"
        "tf.keras.backend.set_session(tf.Session(config=config))\n"
    ),
    "a config of the object": (
        "import tensorflow.compat.v1 as tf\nclass A:\n    def __init__(self):\n"
        "        self.config = tf.ConfigProto()\n"
        "        self.config.gpu_options.allow_growth = True\n"
    ),
    "somebody else's config": (
        "from mylib import config\nconfig.set_memory_growth(1)\nconfig.list_gpus()\n"
    ),
    "an old name that did exist": TF + "tf.config.experimental_run_functions_eagerly(False)\n",
    "both interfaces tried": (
        TF + "try:\n    s = tf.Session()\nexcept AttributeError:\n    s = tf.compat.v1.Session()\n"
    ),
    "contrib where it is": (
        "import tensorflow.compat.v1 as tf\ntry:\n    from tensorflow.contrib import quantize\n"
        "except ImportError:\n    pass\ndef f():\n    quantize.rewrite(tf.Session())\n"
    ),
    "compat inside": TF
    + "tf = tf.compat.v1\ntf.disable_v2_behavior()\nwith tf.Session():\n    pass\n",
    "if gpus": GPUS + "if gpus:\n    print(gpus[0])\n",
    "early return": (
        TF + "def f():\n    gpus = tf.config.list_physical_devices('GPU')\n"
        "    if len(gpus) < 2:\n        return\n    print(gpus[1])\n"
    ),
    "a wrapper's guard": (
        TF + "def gpus():\n    return tf.config.list_physical_devices('GPU')\n"
        "if len(gpus()) > 1:\n    print(gpus()[1])\n"
    ),
    "asked twice": (
        TF + "if len(tf.config.list_physical_devices('GPU')) > 0:\n"
        "    d = tf.config.experimental.list_physical_devices('GPU')[0]\n"
    ),
    "caught": GPUS + "try:\n    g = gpus[1]\nexcept IndexError:\n    g = None\n",
    "by number from outside": GPUS + "print(gpus[args.gpu])\n",
    "any device": TF + "d = tf.config.list_physical_devices()[0]\n",
    "jax's first": "import jax\nd = jax.devices()[0]\n",
    "first GPU": TORCH + "d = torch.device('cuda:0')\n",
    "counted": (
        TORCH + "n = torch.cuda.device_count()\nif n > 1:\n    d = torch.device('cuda:1')\n"
    ),
    "as a default of an option": (
        TORCH + "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--device', default='cuda:1')\nd = torch.device(p.parse_args().device)\n"
    ),
    "raised again": (
        TORCH + "try:\n    model.cuda()\nexcept Exception as e:\n    print(e)\n    raise\n"
    ),
    "a fallback": (TORCH + "try:\n    model.cuda()\nexcept Exception:\n    device = 'cpu'\n"),
    "freed before": (
        TORCH + "try:\n    step(x)\nexcept torch.OutOfMemoryError:\n    del x\n    step(y)\n"
    ),
    "a batch skipped": (
        TORCH + "for x in loader:\n    try:\n        step(x)\n"
        "    except torch.OutOfMemoryError:\n        print('skipped')\n"
    ),
    "a loader's own class": (
        TORCH + "for batch in torch.utils.data.DataLoader(d):\n    batch.to('cuda')\n"
    ),
    "a module moved in place": TORCH + "m = torch.nn.Linear(1, 1)\nm.cuda()\nm.to('cpu')\n",
    "moved and kept": TORCH + "x = torch.ones(3)\nx = x.cuda()\ny = x + torch.ones(3).cuda()\n",
    "perhaps moved": (
        TORCH + "m = torch.nn.Linear(2, 2)\nif torch.cuda.is_available():\n    m = m.cuda()\n"
        "m(torch.ones(1, 2))\n"
    ),
    "inside of a device": (
        TORCH
        + "with torch.device('cuda'):\n    a = torch.ones(3)\nb = torch.ones(3, device='cuda')\n"
        "c = a + b\n"
    ),
    "spawned": (
        TORCH + "import torch.multiprocessing as mp\ndef f(rank):\n    torch.ones(1).cuda(rank)\n"
        "torch.cuda.is_available()\nmp.spawn(f, nprocs=2)\n"
    ),
    "batches moved": (
        TORCH + "from torch.utils.data import DataLoader, TensorDataset\n"
        "for x, in DataLoader(TensorDataset(a)):\n    x = x.cuda()\n"
    ),
    "a large array that fits": "import numpy as np\nimport torch\nx = np.ones((1000, 1000, 100))\n",
}


@each("text", QUIET.values(), ids=QUIET.keys())
def test_nothing_is_said(text: str) -> None:
    assert codes(text) == []


@each("text", [text for text, _ in FIRES.values()], ids=FIRES.keys())
def test_a_name_of_ones_own_is_innocent(text: str) -> None:
    """The same code over modules of one's own has none of these defects."""
    for module in ("tensorflow", "torchvision", "torch", "jax", "keras"):
        text = text.replace(f"import {module}", f"import my_{module}").replace(
            f"from {module}", f"from my_{module}"
        )
    own = text.replace("my_torchvision", "my_vision")
    assert codes(own) == []


def test_a_plain_attribute_that_stays_behind_is_found() -> None:
    assert codes(SCALED.format("torch.ones(3)", "")) == ["WG702"]


def test_a_check_in_a_variable_is_called_once() -> None:
    text = TORCH + "use_cuda = torch.cuda.is_available\nif use_cuda:\n    model.cuda()\n"
    (found,) = lint(text)
    assert [edit.text for edit in found.edits] == ["()"]
    assert found.place.start[0] == 2


def test_a_check_that_another_name_calls_is_called_where_it_is_tested() -> None:
    text = TORCH + "use = check = torch.cuda.is_available\nif use:\n    print(check())\n"
    assert [found.place.start[0] for found in lint(text)] == [3]


def test_what_a_module_computes_may_be_elsewhere() -> None:
    text = TORCH + (
        "def step(net, batch):\n    net = net.to('cuda')\n    batch = batch.to('cuda')\n"
        "    return net(batch) + torch.rand(4, 10)\n"
    )
    (found,) = lint(text)
    assert found.finding.confidence == "likely"
