"""Run the fuzzer; see `python -m tests.fuzz --help`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the helper modules of the tests

from tests.fuzz.run import main

sys.exit(main(sys.argv[1:]))
