"""``python -m raconvert``: the command line."""

import sys

from raconvert.cli import main

if __name__ == "__main__":
    sys.exit(main())
