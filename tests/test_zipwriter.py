"""Archives are, byte for byte, what Python's zipfile writes."""

from __future__ import annotations

import io
import random
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest

from raconvert.files import zips
from raconvert.files.inflate import ZIP_STORED
from raconvert.files.zips import Archive

if TYPE_CHECKING:
    from pathlib import Path

DEFLATED = zipfile.ZIP_DEFLATED
Member = tuple[str, list[bytes], int, int]


def by_zipfile(path: Path, members: list[Member]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, pieces, method, header in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type, info.create_system = method, 3
            info.external_attr = 0o644 << 16
            if method == ZIP_STORED:
                begin = archive.start_dir + header + 30 + len(name.encode()) + 6 + 20
                zeros = -begin % 64
                info.extra = b"\x35\xd9" + bytes([2 + zeros, 0, 64, 0]) + bytes(zeros)
            with archive.open(info, "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
            info.extra = b""


def by_us(path: Path, members: list[Member]) -> list[int]:
    with io.FileIO(path, "w+") as file:
        archive = Archive(file)
        offsets = [
            archive.add(name, pieces, method, header) for name, pieces, method, header in members
        ]
        archive.finish()
    return offsets


def compared(folder: Path, members: list[Member]) -> None:
    by_zipfile(folder / "a.zip", members)
    offsets = by_us(folder / "b.zip", members)
    data = (folder / "b.zip").read_bytes()
    assert data == (folder / "a.zip").read_bytes()
    for (_, pieces, method, header), offset in zip(members, offsets, strict=True):
        if method == ZIP_STORED:
            assert data[offset:].startswith(b"".join(pieces)[:1000])
            assert (offset + header) % 64 == 0


@pytest.mark.parametrize("seed", range(8))
def test_members_of_any_size_and_name(seed: int, tmp_path: Path) -> None:
    random.seed(seed)
    limit = zips.HELD_BYTES
    sizes = [0, 1, 63, 64, 1000, limit - 200, limit, limit + 1, 3 * limit]
    members = []
    for number in range(random.randint(0, 12)):
        name = f"{number}{random.choice(['', 'é', '/x', 'long' * 40])}"
        pieces = [random.randbytes(random.choice(sizes)) for _ in range(random.randint(0, 3))]
        members.append(
            (name, pieces, random.choice([ZIP_STORED, DEFLATED]), random.choice([0, 56, 64]))
        )
    compared(tmp_path, members)


@pytest.mark.long
def test_more_members_than_an_end_record_counts(tmp_path: Path) -> None:
    compared(tmp_path, [(f"{n}", [], ZIP_STORED, 0) for n in range(0x10000 + 3)])


def test_beyond_two_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 5000)
    monkeypatch.setattr(zips, "_LARGEST", 5000)
    pieces = [bytes(range(256)) * 40]
    compared(tmp_path, [(f"{n}", pieces, n % 2 * DEFLATED, 0) for n in range(4)])


def test_pieces_may_be_arrays(tmp_path: Path) -> None:
    piece = np.arange(7, dtype=np.uint8)
    by_us(tmp_path / "a.zip", [("x", [b"ab", piece, piece[:0]], ZIP_STORED, 0)])
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.read("x") == b"ab" + bytes(range(7))
