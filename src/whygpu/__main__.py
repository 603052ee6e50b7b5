"""`python -m whygpu` is `whygpu`, and so is `python -I` on this file."""

import sys


def _import_whygpu_from(file: str) -> None:
    """Import this copy, whichever other is installed, and look for its dependencies beside it.

    The folder may hold modules of any name, so that it comes last afterwards. The same holds for
    PYTHONPATH, which is looked at only if this copy is on it, and its dependencies may be.
    """
    import os

    root = os.path.dirname(os.path.dirname(os.path.abspath(file)))
    sys.path.insert(0, root)
    import whygpu  # noqa: F401

    del sys.path[0]
    if root not in sys.path:
        folders = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        sys.path.append(root)
        if root in map(os.path.abspath, folders):
            sys.path += folders


if __name__ == "__main__":
    if sys.flags.isolated and not __package__:
        _import_whygpu_from(__file__)
    from whygpu.cli.start import isolate, main

    if not sys.flags.isolated:
        isolate(__file__)
    sys.exit(main())
