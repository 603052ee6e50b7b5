"""slim.model_analyzer: the sizes of a model's variables and of the outputs of a graph."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]

_RULE = "---------"


def tensor_description(var: "Any") -> str:
    sizes = "x".join(str(size) for size in var.get_shape())
    return "(%s %s)" % (var.dtype.name, sizes)


def analyze_ops(graph: "Any", print_info: bool = False) -> int:
    """The number of elements that all operations give; an unknown shape counts as none."""
    lines = [_RULE, "Operations: name -> (type shapes) [size]", _RULE]
    total = 0
    for op in graph.get_operations():
        size = sum(output.get_shape().num_elements() or 0 for output in op.outputs)
        shapes = [tensor_description(output) for output in op.outputs if output.get_shape()]
        lines.append("%s \t-> %s [%d]" % (op.name, ", ".join(shapes), size))
        total += size
    _print(lines, print_info)
    return total


def analyze_vars(variables: "Any", print_info: bool = False) -> "tuple[int, int]":
    """The number of elements of all variables, and their bytes."""
    lines = [_RULE, "Variables: name (type shape) [size]", _RULE]
    total, total_bytes = 0, 0
    for var in variables:
        size = var.get_shape().num_elements() or 0
        size_bytes = size * var.dtype.size
        lines.append(
            "%s %s [%d, bytes: %d]" % (var.name, tensor_description(var), size, size_bytes)
        )
        total += size
        total_bytes += size_bytes
    lines.append("Total size of variables: %d" % total)
    lines.append("Total bytes of variables: %d" % total_bytes)
    _print(lines, print_info)
    return total, total_bytes


def _print(lines: "list[str]", wanted: bool) -> None:
    if wanted:
        print("\n".join(lines))
