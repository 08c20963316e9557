"""Damaged files of every parser: a sample of what `python -m tests.damage` judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import FULL, rounds
from damage import CHANGES, CUTS, HERE, changed, cut, good, problems

# Formats of many kinds of records, of which a few changes reach few.
CHANGED = {"har": 200, "mat": 150, "nrrd": 100}
REAL = ["nus333_default.prm", "harpy_test.har"]


@pytest.mark.parametrize("name", HERE)
def test_damaged_files(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Errors of ours alone, bounded, in silence; a file that was cut off is never another one."""
    files, outcomes = good(name), Counter[str]()
    found = [
        *problems(name, changed(files, rounds(CHANGES, CHANGED.get(name, 50)), name), outcomes),
        *problems(name, cut(files, CUTS if FULL else 80, name), outcomes),
    ]
    assert found == []
    assert outcomes["Corrupt"] > 9, outcomes
    assert capfd.readouterr() == ("", "")  # not a word, from libraries neither


@pytest.mark.parametrize("name", REAL)
def test_damaged_real_files(name: str, corpus: Callable[..., Path]) -> None:
    whole = corpus("har", name).read_bytes()
    outcomes = Counter[str]()
    assert [*problems("har", changed([whole], rounds(1500, 60)), outcomes)] == []
    assert len(outcomes) > 1, outcomes
