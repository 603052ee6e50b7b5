"""The calls for JAX: what its environment variables do not cover."""

from whygpu_bootstrap.policy import xla_flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_WITH_DETERMINISTIC_OPS = (0, 3)


def add_xla_flag(jax: "Any", flag: str) -> None:
    xla_flags.add(flag, jax.__version__, FIRST_WITH_DETERMINISTIC_OPS)


def update_config(jax: "Any", name: str, value: "Any") -> None:
    """For a variable that JAX has read already; it heeds its configuration until it starts."""
    jax.config.update(name, value)
