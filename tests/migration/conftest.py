"""The source tree that most tests of migrations start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three folders with 60 arrays in all, a damaged file and a text."""
    root = tmp_path / "source"
    for number in range(60):
        folder = root / ("a", "b/c", "d")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"x{number}.npy", np.arange(number + 1.0))
    (root / "bad.npy").write_bytes(b"hello")
    (root / "readme.txt").write_text("hello")
    return root
