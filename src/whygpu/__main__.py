"""`python -m whygpu` is `whygpu`, and so is `python -I` on this file."""

import sys


def _import_whygpu_from(file: str) -> None:
    """Import the copy of whygpu that contains this file, even if another copy is installed.

    Afterwards its folder is the last entry of sys.path, so that its dependencies are found there,
    but no other module in it hides one of Python's. If the folder is on PYTHONPATH, the
    dependencies may be in other folders of PYTHONPATH, which are added behind it.
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
