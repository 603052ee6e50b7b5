"""A device policy for JAX: what its variables do not cover.

JAX reads most of them when it is imported; where they come later than that, its configuration can
be changed until it starts a backend.
"""

from whygpu_bootstrap import process_record
from whygpu_bootstrap.policy import xla_flags

FIRST_DETERMINISTIC = (0, 3)

VARIABLES = {
    "JAX_PLATFORMS": "jax_platforms",
    "JAX_DEFAULT_MATMUL_PRECISION": "jax_default_matmul_precision",
}


def apply(jax, settings):
    if settings["policy"]["deterministic"]:
        xla_flags.add_deterministic("jax", jax.__version__, FIRST_DETERMINISTIC)
    for variable, value in settings.get("late_variables", {}).items():
        if variable in VARIABLES:
            jax.config.update(VARIABLES[variable], value)
            process_record.applied("jax", "%s = %s" % (VARIABLES[variable], value))
