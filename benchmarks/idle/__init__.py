"""Programs with planted bottlenecks, and how well `whygpu run --profile` names them."""

import importlib.util
import pathlib
import sys

if importlib.util.find_spec("whygpu") is None:
    # As in keeping.py, which runs in isolated mode and cannot import this.
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src"))
