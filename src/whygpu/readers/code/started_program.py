"""What a Python program needs from the machine, as far as single statements show it.

Only statements that leave no choice count: a program that asks whether there is a GPU, or that
names the CPU anywhere, works without one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygpu.model.deployment import StartedProgram
from whygpu.model.requirement_file import FileLine

_LARGEST = 1 << 20
_HAS_A_CHOICE = re.compile(
    r"is_available|device_count|list_physical_devices|list_logical_devices|is_gpu_available"
    r"|['\"]cpu['\"]|no[_-]cuda|use[_-]cuda|device_name\b|jax\.devices"
)
_SIGNS = ("cuda", "num_workers")
_IMAGES = re.compile(
    r"ImageFolder|Resize\(|RandomResizedCrop|CocoDetection|VOC(?:Detection|Segmentation)|ImageNet"
    r"|cv2\.imread|Image\.open|decode_video|VideoReader"
)
_SMALL_IMAGES = re.compile(r"MNIST|CIFAR|(?:Resize|Crop)\(\(?(?:28|32|64)\b", re.IGNORECASE)
"""A few batches of these fit into 64 MB."""


def started_program(path: str, text: str) -> StartedProgram | None:
    """None if the text is not a Python 3 program, or shows nothing of this."""
    if len(text) > _LARGEST or not any(sign in text for sign in _SIGNS):
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = text.split("\n")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    needs = None if _HAS_A_CHOICE.search(text) else next(_gpu_calls(_always_run(tree)), None)
    loader = next((call for call in calls if _has_workers(call)), None)
    if needs is None and loader is None:
        return None

    def place(node: ast.Call | None) -> FileLine | None:
        if node is None:
            return None
        return FileLine(path, node.lineno, lines[node.lineno - 1].strip())

    loads_images = bool(_IMAGES.search(text)) and not _SMALL_IMAGES.search(text)
    return StartedProgram(path, place(needs), place(loader), loads_images)


def _always_run(tree: ast.AST) -> list[ast.Call]:
    """The calls that depend on no condition, in the order of the file."""
    found: list[ast.Call] = []
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Call):
            found.append(node)
        if isinstance(node, ast.If) and not _is_main(node):
            nodes.append(node.test)
        elif isinstance(node, ast.IfExp) or (isinstance(node, ast.Try) and _goes_on(node)):
            continue
        else:
            nodes += reversed(list(ast.iter_child_nodes(node)))
    return found


def _goes_on(node: ast.Try) -> bool:
    """Whether an error in it may be caught: not by `finally`, nor where it waits for Ctrl-C."""
    return any(getattr(each.type, "id", "") != "KeyboardInterrupt" for each in node.handlers)


def _is_main(node: ast.If) -> bool:
    """if __name__ == "__main__":"""
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test))


def _gpu_calls(calls: list[ast.Call]) -> Iterator[ast.Call]:
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        first = call.args[0] if call.args else None
        moves = name == "cuda" or (name in ("to", "device") and _is_cuda(first))
        if moves or (name == "set_device" and "cuda" in ast.dump(call.func)):
            yield call


def _is_cuda(node: ast.expr | None) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text and bool(re.fullmatch(r"cuda(:\d+)?", str(getattr(node, "value", ""))))


def _has_workers(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name == "DataLoader" and any(
        word.arg == "num_workers"
        and isinstance(word.value, ast.Constant)
        and isinstance(word.value.value, int)
        and word.value.value > 0
        for word in call.keywords
    )
