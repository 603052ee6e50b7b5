"""Seeds for what frameworks draw from besides their own generators."""

from whygpu_bootstrap import hook


def install(settings):
    seed = settings["policy"]["seed"]
    hook.after_import("random", lambda module: module.seed(seed))
    hook.after_import("numpy.random", lambda module: module.seed(seed))
