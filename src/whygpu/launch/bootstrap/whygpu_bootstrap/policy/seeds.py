"""Seeds for what frameworks draw from besides their own generators."""

from whygpu_bootstrap import import_hook


def install(settings):
    seed = settings["policy"]["seed"]
    import_hook.after_import("random", lambda module: module.seed(seed))
    import_hook.after_import("numpy.random", lambda module: module.seed(seed))
