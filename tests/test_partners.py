"""Files beside a file, in both directions: a target and a source find the same partner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raconvert.files.source import Source
from raconvert.files.target import Target


@pytest.mark.parametrize("appended", [False, True])
def test_source_and_target_agree(appended: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.b.c"
    with Target(str(path)) as target:
        other = target.beside(".d", appended=appended)
        target.open().write(b"one")
        other.open().write(b"two")
        written = {os.path.realpath(other.path): other.temp}
        early = Source(target.temp, stand_ins=written, place=target.place)
        assert early.beside(".d", "the partner", appended=appended).head == b"two"
        target.commit()
    found = Source(str(path)).beside(".d", "the partner", appended=appended)
    assert found.head == b"two"
    assert found.name == ("a.b.c.d" if appended else "a.b.d")
