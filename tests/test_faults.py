"""A sample of the faults of ``python -m tests.faults``, which injects every one of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.disk, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = 500


def test_no_fault_of_the_system_leaves_half_a_result(tool: Callable[..., str]) -> None:
    tool("gcc")
    if sys.platform != "linux":
        pytest.skip("faults are injected on Linux only")
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--sample", str(SAMPLE), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["injected"] >= SAMPLE - 1
    assert result["possible"] >= 5000
    assert result["cases"] >= 60
    outcomes = result["outcomes"]
    assert min(outcomes.get(how, 0) for how in ("done", "error", "killed")) > SAMPLE // 10
