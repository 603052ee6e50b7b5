"""`python -m whygpu` is `whygpu`."""

import sys

from whygpu.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
