"""The one table of calls: what each call of a plan does to a framework.

A function is called as function(module, **arguments) right after the import of the framework. A
function of DEFERRED waits for the framework to start its devices. It also gets the attempt, and
uses it where it makes the call.

A program that imports `random` and no framework loads this module: nothing here may import more of
the standard library than that program does.
"""

from whygpu_bootstrap.policy import attempts, jax, keras, tensorflow, torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from whygpu_bootstrap.policy.attempts import Attempt


def _seed(module: "Any", seed: int) -> None:
    module.seed(seed)


TABLE: "dict[tuple[str, str], Callable[..., None]]" = {
    ("tensorflow", "set_log_level"): tensorflow.set_log_level,
    ("tensorflow", "set_seed"): tensorflow.set_seed,
    ("tensorflow", "seed_every_graph"): tensorflow.seed_every_graph,
    ("tensorflow", "add_xla_flag"): tensorflow.add_xla_flag,
    ("tensorflow", "disable_tf32"): tensorflow.disable_tf32,
    ("torch", "disable_cudnn"): torch.disable_cudnn,
    ("torch", "disable_tf32"): torch.disable_tf32,
    ("torch", "use_deterministic_algorithms"): torch.use_deterministic_algorithms,
    ("torch", "set_seed"): torch.set_seed,
    ("jax", "add_xla_flag"): jax.add_xla_flag,
    ("jax", "update_config"): jax.update_config,
    ("keras", "disable_jit"): keras.disable_jit,
    ("keras", "disable_cudnn"): keras.disable_cudnn,
    ("keras", "set_seed"): keras.set_seed,
    ("random", "set_seed"): _seed,
    ("numpy.random", "set_seed"): _seed,
}

DEFERRED: "dict[tuple[str, str], Callable[..., None]]" = {
    ("tensorflow", "set_memory_limit"): tensorflow.set_memory_limit,
    ("tensorflow", "refuse_at_once"): tensorflow.refuse_at_once,
    ("torch", "set_memory_limit"): torch.set_memory_limit,
}


def make(framework: str, module: "Any", calls: "list[dict[str, Any]]") -> None:
    """Make the calls of the plan for a framework that has just been imported."""
    for call in calls:
        if call["framework"] != framework:
            continue
        attempt = attempts.Attempt(framework, call["name"])
        key = (framework, call["name"])
        if key in DEFERRED:
            _defer(DEFERRED[key], module, attempt, call["arguments"])
            continue
        with attempt:
            TABLE[key](module, **call["arguments"])


def _defer(
    function: "Callable[..., None]", module: "Any", attempt: "Attempt", arguments: "dict[str, Any]"
) -> None:
    try:
        function(module, attempt, **arguments)
    except Exception as error:
        # What failed is the preparation: the call itself will not be reached.
        with attempt:
            raise error
