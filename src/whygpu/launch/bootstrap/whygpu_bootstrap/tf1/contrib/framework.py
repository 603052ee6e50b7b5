"""Variables and checkpoints as tf.contrib.framework and tf.contrib.slim had them."""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.contrib.scope import add_arg_scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = [
    "add_model_variable",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values_fn",
    "filter_variables",
    "get_local_variables",
    "get_model_variables",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "model_variable",
    "variable",
    "with_shape",
]


@add_arg_scope
def variable(
    name: "Any",
    shape: "Any" = None,
    dtype: "Any" = None,
    initializer: "Any" = None,
    regularizer: "Any" = None,
    trainable: bool = True,
    collections: "Any" = None,
    caching_device: "Any" = None,
    device: "Any" = None,
    partitioner: "Any" = None,
    custom_getter: "Any" = None,
    use_resource: "Any" = None,
    **options: "Any",
) -> "Any":
    """tf.get_variable, with a device of its own."""
    names = set(collections if collections is not None else [tf.GraphKeys.GLOBAL_VARIABLES])
    with tf.device(device or ""):
        return tf.get_variable(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=sorted(names),
            caching_device=caching_device,
            partitioner=partitioner,
            custom_getter=custom_getter,
            use_resource=use_resource,
            **options,
        )


@add_arg_scope
def model_variable(
    name: "Any",
    shape: "Any" = None,
    dtype: "Any" = tf.float32,
    initializer: "Any" = None,
    regularizer: "Any" = None,
    trainable: bool = True,
    collections: "Any" = None,
    **options: "Any",
) -> "Any":
    """A variable of the model: one that a checkpoint of it is about."""
    names = list(collections or ())
    names += [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]
    return variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=names,
        **options,
    )


def add_model_variable(var: "Any") -> None:
    if var not in tf.get_collection_ref(tf.GraphKeys.MODEL_VARIABLES):
        tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, var)


def get_variables(
    scope: "Any" = None, suffix: "Any" = None, collection: "Any" = tf.GraphKeys.GLOBAL_VARIABLES
) -> "Any":
    if isinstance(scope, tf.VariableScope):
        scope = scope.name
    if suffix is not None:
        scope = (scope or "") + ".*" + suffix
    return tf.get_collection(collection, scope)


def get_model_variables(scope: "Any" = None, suffix: "Any" = None) -> "Any":
    return get_variables(scope, suffix, tf.GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: "Any" = None, suffix: "Any" = None) -> "Any":
    return get_variables(scope, suffix, tf.GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: "Any" = None, suffix: "Any" = None) -> "Any":
    return get_variables(scope, suffix, tf.GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: "Any", scope: "Any" = None) -> "Any":
    return get_variables(scope=scope, suffix=suffix)


def get_variables_by_name(given_name: "Any", scope: "Any" = None) -> "Any":
    pattern = "/" + given_name + ":|^" + given_name + ":"
    return get_variables(scope=scope, suffix=pattern)


def get_unique_variable(var_op_name: "Any") -> "Any":
    for candidate in get_variables(scope=var_op_name):
        if candidate.op.name == var_op_name:
            return candidate
    raise ValueError("Variable %s does not uniquely identify a variable" % var_op_name)


def get_variables_to_restore(include: "Any" = None, exclude: "Any" = None) -> "Any":
    found = []
    for scope in [None] if include is None else include:
        found += [each for each in get_variables(scope) if each not in found]
    for scope in exclude or ():
        left_out = get_variables(scope)
        found = [each for each in found if not any(each is other for other in left_out)]
    return found


def filter_variables(
    var_list: "Any",
    include_patterns: "Any" = None,
    exclude_patterns: "Any" = None,
    reg_search: bool = True,
) -> "Any":
    import re

    match = re.search if reg_search else re.match
    chosen = var_list
    if include_patterns:
        chosen = [v for v in chosen if any(match(p, v.op.name) for p in include_patterns)]
    if exclude_patterns:
        chosen = [v for v in chosen if not any(match(p, v.op.name) for p in exclude_patterns)]
    return chosen


def assign_from_values_fn(var_names_to_values: "Any") -> "Callable[..., Any]":
    assignments, feed = [], {}
    for name, value in var_names_to_values.items():
        target = get_unique_variable(name)
        given = tf.placeholder(target.dtype.base_dtype, value.shape)
        assignments.append(tf.assign(target, given))
        feed[given] = value
    together = tf.group(*assignments)
    return lambda session: session.run(together, feed)


def assign_from_checkpoint(
    model_path: "Any", var_list: "Any", ignore_missing_vars: bool = False
) -> "tuple[Any, Any]":
    """The operation and the feed that set variables to what a checkpoint has for them."""
    reader = tf.train.load_checkpoint(model_path)
    assignments, feed = [], {}
    for name, target in _named(var_list).items():
        if not reader.has_tensor(name):
            if ignore_missing_vars:
                continue
            raise ValueError("Checkpoint is missing variable [%s]" % name)
        given = tf.placeholder(target.dtype.base_dtype, target.shape)
        assignments.append(tf.assign(target, given))
        feed[given] = reader.get_tensor(name).reshape(target.shape.as_list())
    return tf.group(*assignments), feed


def assign_from_checkpoint_fn(
    model_path: "Any",
    var_list: "Any",
    ignore_missing_vars: bool = False,
    reshape_variables: bool = False,
) -> "Callable[..., Any] | None":
    named = _named(var_list)
    if ignore_missing_vars:
        reader = tf.train.load_checkpoint(model_path)
        named = {name: each for name, each in named.items() if reader.has_tensor(name)}
    if not named:
        return None
    saver = tf.train.Saver(named, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def _named(var_list: "Any") -> "Any":
    return var_list if isinstance(var_list, dict) else {each.op.name: each for each in var_list}


def with_shape(expected_shape: "Any", tensor: "Any") -> "Any":
    tensor.set_shape(expected_shape)
    return tensor
