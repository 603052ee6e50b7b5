"""Nested lists, tuples and dictionaries, traversed in their own order."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def flat(tree: "Any", is_leaf: "Callable[[Any], bool]") -> "list[Any]":
    """The leaves; anything that is neither a leaf nor a structure is left out."""
    if is_leaf(tree):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (list, tuple)):
        return []
    return [leaf for each in tree for leaf in flat(each, is_leaf)]


def replaced(
    tree: "Any", is_leaf: "Callable[[Any], bool]", change: "Callable[[Any], Any]"
) -> "Any":
    """The structure with each leaf replaced by `change(leaf)`, in the order of `flat`."""
    if is_leaf(tree):
        return change(tree)
    if isinstance(tree, dict):
        return {key: replaced(each, is_leaf, change) for key, each in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[replaced(each, is_leaf, change) for each in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)([replaced(each, is_leaf, change) for each in tree])
    return tree


def in_key_order(tree: "Any") -> "Any":
    """The structure with dictionaries sorted by key, as JAX returns them."""
    if isinstance(tree, dict):
        return {key: in_key_order(tree[key]) for key in sorted(tree, key=str)}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[in_key_order(each) for each in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)([in_key_order(each) for each in tree])
    return tree


def without_fields(tree: "Any") -> "Any":
    """The structure with named tuples as plain tuples: only some backends name the fields."""
    if isinstance(tree, dict):
        return {key: without_fields(each) for key, each in tree.items()}
    if isinstance(tree, tuple):
        return tuple(without_fields(each) for each in tree)
    if isinstance(tree, list):
        return [without_fields(each) for each in tree]
    return tree
