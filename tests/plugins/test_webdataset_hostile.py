"""Archives of samples that were made to do harm: each is refused, quickly and by one error."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attempts import PEAK
from webdataset_reader import FORMAT, npy_bytes

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported, WouldLose


def header(name: str, size: int = 0, kind: bytes = b"0", **fields: Any) -> bytes:
    """One header block as tarfile makes it, whatever its fields are."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def member(name: str, data: bytes = b"1") -> bytes:
    return header(name, len(data)) + data + bytes(-len(data) % 512)


def pax(fields: bytes, kind: bytes = b"x") -> bytes:
    return header("././@PaxHeader", len(fields), kind) + fields + bytes(-len(fields) % 512)


def record(key: str, value: bytes) -> bytes:
    body = b" " + key.encode() + b"=" + value + b"\n"
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return str(length).encode() + body


END = bytes(1024)
FIRST = member("a.cls")
NPY = npy_bytes(np.zeros(3, "u1"))
HUGE = NPY.replace(b"(3,)", b"(4000000000000,)").replace(b" " * 13, b"", 1)
HOSTILE: dict[str, tuple[type[RaconvertError], bytes]] = {
    "hard_link": (Unsafe, FIRST + header("b.cls", kind=b"1", linkname="a.cls") + END),
    "link_to_a_secret": (Unsafe, FIRST + header("b.cls", kind=b"2", linkname="/etc/passwd") + END),
    "character_device": (Unsafe, FIRST + header("b.cls", kind=b"3") + END),
    "block_device": (Unsafe, FIRST + header("b.cls", kind=b"4") + END),
    "pipe": (Unsafe, FIRST + header("b.cls", kind=b"6") + END),
    "absolute_name": (Unsafe, FIRST + member("/etc/b.cls") + END),
    "name_that_goes_up": (Unsafe, FIRST + member("../b.cls") + END),
    "name_that_goes_up_later": (Unsafe, FIRST + member("x/../../b.cls") + END),
    "drive": (Unsafe, FIRST + member("C:/b.cls") + END),
    "backslashes": (Unsafe, FIRST + member("..\\b.cls") + END),
    "name_not_utf8": (Unsupported, FIRST + member("\udcff.cls") + END),
    "sparse": (Unsupported, FIRST + pax(record("GNU.sparse.major", b"1") + record(
        "GNU.sparse.minor", b"0") + record("GNU.sparse.name", b"b.cls") + record(
        "GNU.sparse.realsize", b"99999999999")) + header("b.cls", 512) + b"1\n0\n1\n"
        + bytes(506) + END),
    "old_sparse": (Unsupported, FIRST + header("b.cls", 1, kind=b"S") + b"1" + bytes(511) + END),
    "huge_pax_header": (Unsupported, FIRST + header("p", 1 << 30, b"x") + bytes(1024)),
    "pax_of_digits": (Corrupt, FIRST + pax(b"9" * 100_000 + b" a=b\n") + member("b.cls") + END),
    "many_global_fields": (Unsupported, FIRST + pax(b"".join(
        record(f"k{n}", b"v") for n in range(5000)), b"g") + member("b.cls") + END),
    "pax_in_pax": (Corrupt, FIRST + pax(record("a", b"b")) * 2000 + END),
    "size_below_zero": (Corrupt, FIRST + pax(record("size", b"-1024")) + member("b.cls") + END),
    "size_of_an_exabyte": (Corrupt, FIRST + header("b.cls", 1 << 60) + b"1" + bytes(511) + END),
    "long_name_without_end": (Unsupported, FIRST + header("././@LongLink", 1 << 29, b"L") + END),
    "name_of_a_megabyte": (Unsupported, FIRST + pax(record("path", b"b" * 500_000 + b".cls"))
                           + member("b.cls") + END),
    "cut_in_a_member": (Corrupt, FIRST + member("b.x.npy", NPY)[:700]),
    "cut_in_a_header": (Corrupt, FIRST + member("b.cls")[:300]),
    "no_end": (Corrupt, FIRST + member("b.cls")),
    "damaged_header": (Corrupt, FIRST + member("b.cls").replace(b"b.cls", b"c.cls") + END),
    "extension_twice": (Corrupt, FIRST + member("a.cls") + END),
    "extension_twice_in_capitals": (Corrupt, FIRST + member("a.CLS") + END),
    "key_in_two_places": (Corrupt, FIRST + member("b.cls") + member("a.txt") + END),
    "missing_member": (WouldLose, FIRST + member("a.x.npy", NPY) + member("b.cls")
                       + member("c.x.npy", NPY) + member("c.cls") + END),
    "no_sample": (Unsupported, member("README") + member("LICENSE") + END),
    "empty_archive": (Unsupported, END),
    "only_pickles": (Unsupported, member("a.pyd", b"\x80\4N.") + END),
    "pickle_in_npy": (Unsafe, member("a.x.npy", npy_bytes(np.array([{}], object))) + END),
    "npy_of_terabytes": (Corrupt, member("a.x.npy", HUGE) + END),
    "npy_cut_off": (Corrupt, member("a.x.npy", NPY[:-1]) + END),
    "png_that_is_none": (Corrupt, member("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100)) + END),
}  # fmt: skip


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_files_are_refused(
    shape: str, tmp_path: Path, attempt: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one clear error, few seconds and little memory, and nothing is written."""
    kind, data = HOSTILE[shape]
    path = tmp_path / "x.tar"
    path.write_bytes(data)

    found = attempt(path, tmp_path / "y.npz", from_=FORMAT)

    assert found.kind == kind.__name__, found.text
    assert found.peak < PEAK
    assert "bug" not in found.text
    assert main([str(path), "--from", FORMAT, "-o", str(tmp_path / "y.npz")]) == kind.exit_code
    assert "Traceback" not in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["x.tar"]


def test_long_names_are_cut_in_messages(tmp_path: Path) -> None:
    for length, shown in ((200, "/" + "b" * 195 + ".cls'"), (201, "/" + "b" * 196 + ".cl...'")):
        path = tmp_path / "x.tar"
        path.write_bytes(
            pax(record("path", b"/" + b"b" * (length - 5) + b".cls")) + member("b.cls") + END
        )
        with pytest.raises(Unsafe) as raised:
            raconvert.open(path, from_=FORMAT)
        assert shown in str(raised.value)
