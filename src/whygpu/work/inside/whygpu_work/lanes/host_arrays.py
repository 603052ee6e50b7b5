"""Arrays of any framework in nested structures: their names, their numbers, their device."""

import sys

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator


class NotAnArray(Exception):
    """There is something else where an array was expected; the message says what."""


def named(tree: "Any", name: str) -> "list[tuple[str, Any]]":
    """[(name, leaf)] of nested lists, tuples, dictionaries and objects with fields.

    `name` is that of the whole: output, output[1], output.logits. None is left out.
    """
    if tree is None:
        return []
    if is_array(tree):
        return [(name, tree)]
    if isinstance(tree, dict):
        items = [("%s.%s" % (name, key), each) for key, each in tree.items()]
    elif isinstance(tree, tuple) and hasattr(tree, "_fields"):
        items = [("%s.%s" % (name, key), each) for key, each in zip(tree._fields, tree)]
    elif isinstance(tree, (list, tuple)):
        items = [("%s[%d]" % (name, i), each) for i, each in enumerate(tree)]
    else:
        items = [("%s.%s" % (name, key), each) for key, each in _fields(tree).items()]
        if not items:
            raise NotAnArray("%s is of type %s" % (name, type(tree).__name__))
    return [pair for inner, each in items for pair in named(each, inner)]


def _fields(thing: "Any") -> "dict[str, Any]":
    """The fields of an object: a dataclass, an output of transformers, a Flax structure."""
    fields = getattr(thing, "__dict__", None)
    if not isinstance(fields, dict) or isinstance(thing, type) or callable(thing):
        return {}
    return {key: each for key, each in fields.items() if not key.startswith("_")}


def replaced(tree: "Any", leaves: "Iterator[Any]") -> "Any":
    """The structure with arrays from the iterator `leaves`, in the order of `named`."""
    if tree is None:
        return None
    if is_array(tree):
        return next(leaves)
    if isinstance(tree, dict):
        return type(tree)((key, replaced(each, leaves)) for key, each in tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[replaced(each, leaves) for each in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)(replaced(each, leaves) for each in tree)
    return tree


def mapped(change: "Callable[[Any], Any]", tree: "Any") -> "Any":
    """The structure with each array replaced by `change(array)`."""
    return replaced(tree, iter([change(leaf) for _, leaf in named(tree, "")]))


def is_array(thing: "Any") -> bool:
    if isinstance(thing, (numpy.ndarray, numpy.generic, bool, int, float, complex, str, bytes)):
        return True
    return is_device_array(thing)


def is_device_array(thing: "Any") -> bool:
    """Whether it is a tensor of a framework, which may be on a GPU."""
    return _framework(thing) is not None


def _framework(thing: "Any") -> "str | None":
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor") and isinstance(thing, torch.Tensor):
        return "torch"
    jax = sys.modules.get("jax")
    if jax is not None and hasattr(jax, "Array") and isinstance(thing, jax.Array):
        return "jax"
    tensorflow = sys.modules.get("tensorflow")
    kinds = tuple(getattr(tensorflow, name, ()) for name in ("Tensor", "Variable"))
    if isinstance(thing, kinds):
        return "tensorflow"
    keras = sys.modules.get("keras")
    if keras is not None and hasattr(keras, "Variable") and isinstance(thing, keras.Variable):
        return "keras"
    return None


def on_host(leaf: "Any") -> "tuple[numpy.ndarray, str | None]":
    """(array, the name of its type if NumPy does not know it). Waits until it is computed."""
    framework = _framework(leaf)
    if framework == "keras":
        return on_host(leaf.value)
    if framework == "torch":
        return _torch_on_host(leaf)
    if framework == "tensorflow":
        return numpy.asarray(leaf.numpy()), None
    return numpy.asarray(leaf), None


def all_on_host(tree: "Any", name: str) -> "list[tuple[Any, ...]]":
    """[(name, array, dtype)] of a whole structure, dtype as on_host gives it."""
    return [(inner,) + on_host(leaf) for inner, leaf in named(tree, name)]


def _torch_on_host(tensor: "Any") -> "tuple[numpy.ndarray, str | None]":
    import torch

    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(numpy.uint16), "bfloat16"
    if str(tensor.dtype).startswith("torch.float8"):
        return tensor.float().numpy(), str(tensor.dtype).partition(".")[2]
    return tensor.numpy(), None


def plain(leaf: "Any") -> "numpy.ndarray":
    """Like on_host, for arrays that are fed again: bfloat16 becomes float32, which is exact."""
    array, dtype = on_host(leaf)
    if dtype == "bfloat16":
        return (array.astype(numpy.uint32) << numpy.uint32(16)).view(numpy.float32)
    if array.dtype.name == "bfloat16":
        return array.astype(numpy.float32)
    return array


def device_of(leaf: "Any") -> "str | None":
    """cpu or gpu; None for an array that does not belong to a framework."""
    framework = _framework(leaf)
    if framework == "keras":
        return device_of(leaf.value)
    if framework == "torch":
        return "cpu" if leaf.device.type == "cpu" else "gpu"
    if framework == "jax":
        platforms = {device.platform for device in leaf.devices()}
        return "cpu" if platforms == {"cpu"} else "gpu"
    if framework == "tensorflow":
        return "gpu" if ":GPU:" in str(leaf.device) else "cpu"
    return None


def wait_for(tree: "Any") -> None:
    """Wait until the device has computed all of it; nothing is copied."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    jax: "Any" = sys.modules.get("jax")
    tensorflow: "Any" = sys.modules.get("tensorflow")
    for _, leaf in named(tree, ""):
        framework = _framework(leaf)
        if framework == "jax":
            jax.block_until_ready(leaf)
        elif framework == "tensorflow" and ":GPU:" in str(leaf.device):
            # Copying one element is enough: the device works in order.
            tensorflow.reshape(leaf, [-1])[:1].numpy()
