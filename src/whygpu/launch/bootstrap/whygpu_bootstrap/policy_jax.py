"""A device policy for JAX, where it was imported before the variables were set.

JAX reads most of its variables when it is imported; its configuration can be changed until it
starts a backend.
"""

from whygpu_bootstrap import record

VARIABLES = {
    "JAX_PLATFORMS": "jax_platforms",
    "JAX_DEFAULT_MATMUL_PRECISION": "jax_default_matmul_precision",
}


def apply(jax, settings):
    for variable, value in settings.get("late_variables", {}).items():
        if variable in VARIABLES:
            jax.config.update(VARIABLES[variable], value)
            record.applied("jax", "%s = %s" % (VARIABLES[variable], value))
