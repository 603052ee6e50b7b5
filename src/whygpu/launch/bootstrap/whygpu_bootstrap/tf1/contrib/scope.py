"""tf.contrib.framework's arg_scope: default arguments for functions within a block."""

import contextlib
import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

__all__ = ["add_arg_scope", "arg_scope", "arg_scoped_arguments", "current_arg_scope"]
__all__ += ["arg_scope_func_key", "has_arg_scope"]

# The innermost scope is the last: {key of a function: {argument: value}}.
_stack: "Any" = [{}]
_arguments_of: "dict[Any, Any]" = {}


def arg_scope_func_key(op: "Any") -> "Any":
    return getattr(op, "_arg_scope_key", None)


def has_arg_scope(func: "Any") -> bool:
    return arg_scope_func_key(func) in _arguments_of


def arg_scoped_arguments(func: "Any") -> "Any":
    return _arguments_of[arg_scope_func_key(func)]


def current_arg_scope() -> "Any":
    return _stack[-1]


def add_arg_scope(func: "Any") -> "Any":
    """Make a function take its defaults from the arg_scope around the call."""

    @functools.wraps(func)
    def with_defaults(*args: "Any", **kwargs: "Any") -> "Any":
        defaults = _stack[-1].get(arg_scope_func_key(with_defaults), {})
        if defaults:
            given = names[: len(args)]
            kwargs = dict({k: v for k, v in defaults.items() if k not in given}, **kwargs)
        return func(*args, **kwargs)

    code = func.__code__
    names = code.co_varnames[: code.co_argcount]
    key = "%s.%s" % (func.__module__, func.__name__)
    vars(with_defaults)["_arg_scope_key"] = key
    count = len(func.__defaults__ or ())
    optional = names[len(names) - count :] if count else ()
    optional += code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    _arguments_of[key] = optional
    return with_defaults


@contextlib.contextmanager
def arg_scope(list_ops_or_scope: "Any", **kwargs: "Any") -> "Iterator[Any]":
    """Within it the listed functions have these defaults; or a scope kept earlier is back."""
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError(
                "When attempting to re-use a scope by suppling a dictionary, kwargs must be empty."
            )
        scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise TypeError(
                "list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)"
            )
        scope = {key: dict(values) for key, values in _stack[-1].items()}
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise ValueError("%s is not decorated with @add_arg_scope" % (function,))
            scope.setdefault(arg_scope_func_key(function), {}).update(kwargs)
    _stack.append(scope)
    try:
        yield scope
    finally:
        _stack.pop()
