"""Large files: the disk begins to write before all is there, where the system has a call for it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.conversion import write
from raconvert.files import target

pytestmark = pytest.mark.disk


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 3 MiB, for which 1 MiB is large."""
    monkeypatch.setattr(write, "LARGE", 1 << 20)
    monkeypatch.setattr(target, "EVERY", 1 << 20)
    np.save(tmp_path / "a.npy", np.arange(3 << 17, dtype="f8"))
    return tmp_path / "a.npy"


def test_the_disk_begins_while_more_is_written(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    monkeypatch.setattr(
        target, "_sync_file_range", lambda: lambda *call: begun.append(call[3]) or 0
    )
    seen: list[int] = []
    raconvert.convert(large, large.with_suffix(".ra"), progress=lambda now: seen.append(now.done))

    assert begun == [target._WRITE] * len(begun)
    assert 2 <= len(begun) <= 3
    assert seen[-1] == 3 << 20


@pytest.mark.parametrize("sync", [True, False])
def test_a_system_without_the_call_writes_the_same(
    sync: bool, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raconvert.convert(large, large.with_suffix(".ra"))
    monkeypatch.setattr(target.sys, "platform", "win32")
    raconvert.convert(large, large.with_name("b.ra"), sync=sync)

    assert target._sync_file_range() is None
    assert large.with_name("b.ra").read_bytes() == large.with_suffix(".ra").read_bytes()


def test_without_a_wait_for_the_disk_nothing_is_begun(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "_sync_file_range", lambda: pytest.fail("asked for"))
    raconvert.convert(large, large.with_suffix(".ra"), sync=False)

    assert large.with_suffix(".ra").stat().st_size == (3 << 20) + 48 + 8


def test_progress_is_passed_on() -> None:
    seen: list[int] = []
    call = target.WriteBack(io.FileIO(0, closefd=False), seen.append)
    for nbytes in (1, 2, 3):
        call(nbytes)

    assert seen == [1, 2, 3]
