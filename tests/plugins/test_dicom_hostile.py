"""DICOM: hostile files are refused, by one clear error, in little time and memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dicom_files as made
import numpy as np
import pytest
from attempts import PEAK, REFUSALS

pytest.importorskip("pydicom")

RLE = "1.2.840.10008.1.2.5"
JPEG, JPEG_2000 = "1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.90"
PLANE = {"x00200032": b"0\\0\\0 ", "x00200037": b"1\\0\\0\\0\\1\\0 "}


def pixels(data: bytes, nbytes: int | None = None, vr: bytes = b"OW") -> bytes:
    return made.element(0x7FE00010, vr, data, nbytes)


def jpeg(rows: int, columns: int, samples: int = 1) -> bytes:
    frame = b"\xff\xc0\x00\x0b\x08" + rows.to_bytes(2, "big") + columns.to_bytes(2, "big")
    return b"\xff\xd8" + frame + bytes([samples]) + b"\x01\x11\x00" + bytes(64) + b"\xff\xd9"


def jpeg_2000(rows: int, columns: int) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in (columns, rows, 0, 0, columns, rows, 0, 0))
    return b"\xff\x4f\xff\x51\x00\x29\x00\x00" + sizes + b"\x00\x01\x0f\x01\x01" + bytes(80)


def deep(levels: int, nbytes: int = made.UNDEFINED) -> bytes:
    one = made.element(0x00290010, b"SQ", b"", nbytes) + made.item(b"", nbytes)
    return one * levels


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing behind the preamble": lambda: bytes(128) + b"DICM",
    "element that ends behind the file": lambda: made.raw()[:200],
    "length of 4 GiB": lambda: made.raw(made.element(0x00290010, b"OB", b"", 0xFFFFFFFE)),
    "pixels longer than the file": lambda: made.raw(pixels=pixels(bytes(12), 1 << 30)),
    "pixels shorter than the image": lambda: made.raw(pixels=pixels(bytes(8))),
    "no rows": lambda: made.raw(x00280010=None),
    "rows of nothing": lambda: made.raw(x00280010=b""),
    "zero columns": lambda: made.raw(x00280011=made.short(0)),
    "four billion pixels": lambda: made.raw(x00280010=b"\xff\xff", x00280011=b"\xff\xff"),
    "huge rows, deflated": lambda: made.deflated(
        made.raw(x00280010=b"\xff\xff", x00280011=b"\xff\xff")[160:]
    ),
    "frames without number": lambda: made.raw(x00280008=(b"IS", b"2147483647")),
    "frames that are negative": lambda: made.raw(x00280008=(b"IS", b"-3")),
    "frames in words": lambda: made.raw(x00280008=(b"IS", b"many")),
    "bits that are more than allocated": lambda: made.raw(x00280101=made.short(17)),
    "bits that are packed": lambda: made.raw(x00280100=made.short(12), x00280101=made.short(12)),
    "two samples": lambda: made.raw(x00280002=made.short(2)),
    "colours of one sample": lambda: made.raw(x00280004=b"RGB "),
    "photometric of nobody": lambda: made.raw(x00280004=b"PURPLE", x00280002=made.short(3)),
    "representation of nobody": lambda: made.raw(made.element(0x00290010, b"!!", bytes(8))),
    "item of no sequence": lambda: made.raw(made.item(bytes(8)) + made.item(bytes(8), 1 << 31)),
    "sequence of elements": lambda: made.raw(
        made.element(0x52009230, b"SQ", made.element(0x00280010, b"US", b"\2\0"))
    ),
    "sequence that never ends": lambda: made.raw(made.element(0x00290010, b"SQ", b"", made.UNDEFINED)),
    "text that never ends": lambda: made.raw(made.element(0x00290010, b"UT", b"", made.UNDEFINED)),
    "very deep sequences": lambda: made.raw(deep(100_000)),
    "groups of other frames": lambda: made.raw(made.element(0x52009230, b"SQ", made.item(b"") * 7)),
    "position of two numbers": lambda: made.raw(**{**PLANE, "x00200032": b"0\\0 "}),
    "position that is not a number": lambda: made.raw(**{**PLANE, "x00200032": b"0\\0\\nan"}),
    "directions that are not a corner": lambda: made.raw(
        **{**PLANE, "x00200037": b"1\\0\\0\\1\\0\\0 "}
    ),
    "spacing of nothing": lambda: made.raw(x00280030=b"0\\0 "),
    "slope of nothing": lambda: made.raw(x00281053=b"0 "),
    "text of a megabyte for a number": lambda: made.raw(
        made.element(0x00290010, b"UT", bytes(1 << 20))
        + made.element(0x30040002, b"UN", b"1" * (1 << 21))
    ),
    "encoded pixels of no encoding": lambda: made.raw(pixels=made.fragments(b"12")),
    "transfer syntax of nobody": lambda: made.raw(syntax="1.2.3.4"),
    "video": lambda: made.raw(syntax="1.2.840.10008.1.2.4.102", pixels=made.fragments(bytes(64))),
    "fragment behind the file": lambda: made.raw(
        syntax=RLE, pixels=made.element(0x7FE00010, b"OB", made.item(b"", 0) + made.item(b"x" * 8, 99),
                                        made.UNDEFINED)),
    "no fragment": lambda: made.raw(syntax=RLE, pixels=made.fragments()),
    "RLE of other segments": lambda: made.raw(syntax=RLE, pixels=made.fragments(b"\x09" + bytes(63))),
    "RLE bomb": lambda: made.raw(
        syntax=RLE, x00280010=b"\xff\xff", x00280011=b"\xff\xff",
        pixels=made.fragments(b"\2" + bytes(63) + b"\x81\0" * 4000)),
    "JPEG of another size": lambda: made.raw(
        syntax=JPEG, x00280100=made.short(8), x00280101=made.short(8), x00280102=made.short(7),
        pixels=made.fragments(jpeg(65535, 65535))),
    "JPEG of nothing": lambda: made.raw(
        syntax=JPEG, x00280100=made.short(8), x00280101=made.short(8), x00280102=made.short(7),
        pixels=made.fragments(jpeg(2, 3))),
    "JPEG 2000 of another size": lambda: made.raw(
        syntax=JPEG_2000, pixels=made.fragments(jpeg_2000(1 << 31, 1 << 31))),
    "JPEG 2000 of nothing": lambda: made.raw(
        syntax=JPEG_2000, pixels=made.fragments(jpeg_2000(2, 3))),
    "fragments of unknown frames": lambda: made.raw(
        syntax=RLE, x00280008=(b"IS", b"2 "), pixels=made.fragments(b"12", b"34", b"56")),
    "offsets of other fragments": lambda: made.raw(
        syntax=RLE, x00280008=(b"IS", b"2 "),
        pixels=made.fragments(b"12", b"34", b"56", table=bytes(4) + b"\x03\0\0\0")),
    "deflated bomb": lambda: made.deflated(
        made.element(0x00291010, b"OB", bytes(400 << 20)) + made.raw()[160:]),
    "deflated garbage": lambda: made.deflated(b"")[:-2] + bytes(range(255, 100, -1)) * 9,
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files_are_refused(what: str, attempt: Callable[..., Any], tmp_path: Path) -> None:
    """One clear error, in little time and memory, and nothing written."""
    path, target = tmp_path / "x.dcm", tmp_path / "x.ra"
    path.write_bytes(HOSTILE[what]())
    found = attempt(path, target)
    assert found.kind in REFUSALS, found
    assert found.peak < PEAK
    assert str(path) in found.text
    assert not target.exists()


def test_hostile_slices(attempt: Callable[..., Any], tmp_path: Path) -> None:
    """Slices that contradict each other: a thousand series, and as many orientations."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1000):
        uid = f"1.2.{number}".encode()
        uid += b"\0" * (len(uid) % 2)
        series = {"x0020000E": (b"UI", uid)} if number % 2 else {}
        angle = number / 700
        cosines = f"{np.cos(angle):.12f}\\{np.sin(angle):.12f}\\0\\{-np.sin(angle):.12f}\\"
        cosines += f"{np.cos(angle):.12f}\\0"
        plane = {
            "x00200032": b"0\\0\\0 ",
            "x00200037": cosines.encode() + b" " * (len(cosines) % 2),
        }
        (folder / f"{number}").write_bytes(made.raw(**plane, **series))
    found = attempt(folder, tmp_path / "x.nrrd")
    assert found.kind == "UsageError"
    assert "source has 1000 arrays" in found.text
    assert found.peak < PEAK
