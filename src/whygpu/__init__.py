"""Why does this program use (or not use) the GPU?"""

from whygpu import version as _version

__version__ = _version.VERSION
__all__ = ["__version__"]
