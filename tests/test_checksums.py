"""Checksums that an archive holds are compared while its bytes pass: no damage goes on in silence."""

from __future__ import annotations

import bz2
import io
import lzma
import random
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files import inflate, zips
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ARRAYS = {
    "a": np.arange(600, dtype="<f8").reshape(20, 30),
    "big": np.arange(500, dtype=">i4").reshape(5, 100),
    "empty": np.zeros((0, 4), "<f4"),
    "text": np.array(["x", "yz"]),
}
METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}
FLIPS = 400
PIECE = inflate.MEMBER_CHUNK_BYTES


def npz(path: Path, arrays: dict[str, np.ndarray], method: int) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, values in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, values)
            archive.writestr(f"{name}.npy", buffer.getvalue())
        archive.writestr("README.txt", "no array")
    return path


def damages(data: bytes) -> Iterator[bytes]:
    """Yield the bytes with one bit flipped, in places of which every run has the same."""
    rng = random.Random(9)
    for bit in rng.sample(range(8 * len(data)), FLIPS):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


def facts(path: Path) -> dict[str, Any]:
    with open_bundle(path) as bundle:
        return {
            array.name: (array.dtype, array.shape, raconvert.read(path, array.name).tobytes(),
                         array.meta.to_dict(), array.index_order)
            for array in bundle.arrays
        }  # fmt: skip


def survivors(path: Path, read: Any) -> list[Any]:
    """Return what is read from damaged copies of a file that are not refused."""
    found = []
    for number, data in enumerate(damages(path.read_bytes())):
        damaged = path.parent / f"{number}{path.suffix}"
        damaged.write_bytes(data)
        try:
            found.append(read(damaged))
        except RaconvertError as error:
            assert damaged.name in str(error)  # noqa: PT017 - others are no error
        damaged.unlink()
    return found


@pytest.mark.parametrize("method", METHODS)
def test_npz(method: str, tmp_path: Path) -> None:
    """Refused, or all that was there: nothing is left out because it is damaged."""
    path = npz(tmp_path / "x.npz", ARRAYS, METHODS[method])
    expected = facts(path)
    assert set(expected) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert np.array_equal(raconvert.read(path, name), values)
    found = survivors(path, facts)
    assert len(found) < FLIPS // 2  # dates, modes and the like have no checksum
    assert all(one == expected for one in found)


def converted(path: Path) -> dict[str, Any]:
    out = path.with_suffix(".out.npz")
    raconvert.convert(path, out, overwrite=True)
    with np.load(out) as loaded:
        return {name: loaded[name].tobytes() for name in loaded.files}


@pytest.mark.parametrize("to", ["zip", "npz"])
def test_conversions(to: str, tmp_path: Path) -> None:
    npz(tmp_path / "x.npz", ARRAYS, zipfile.ZIP_STORED)
    path = tmp_path / f"y.{to}"
    raconvert.convert(tmp_path / "x.npz", path)
    expected = converted(path)
    assert all(one == expected for one in survivors(path, converted))


def test_a_bundle(tmp_path: Path) -> None:
    npz(tmp_path / "x.npz", ARRAYS, zipfile.ZIP_STORED)
    raconvert.convert(tmp_path / "x.npz", tmp_path / "x.zip")
    expected = facts(tmp_path / "x.zip")
    found = survivors(tmp_path / "x.zip", facts)
    assert all(one == expected for one in found)


@pytest.mark.parametrize("options", [{}, {"axes": "1,0"}, {"dtype": "float32"}], ids=str)
@pytest.mark.parametrize("to", ["x.ra", "x.npy", "x.h5", "x.nrrd", "x.mat"])
def test_data_of_a_bundle_by_every_way(options: dict[str, Any], to: str, tmp_path: Path) -> None:
    """File to file, by blocks, transposed: also the first and the last byte of the data."""
    np.save(tmp_path / "a.npy", ARRAYS["a"])
    raconvert.convert(tmp_path / "a.npy", tmp_path / "x.zip")
    data = (tmp_path / "x.zip").read_bytes()
    begin = data.index(ARRAYS["a"].tobytes())
    for place in (begin, begin + 2401, begin + 4799):
        damaged = bytearray(data)
        damaged[place] ^= 1
        (tmp_path / "y.zip").write_bytes(damaged)
        with pytest.raises(Corrupt, match=r"data is damaged, at member 'a\.ra'"):
            raconvert.convert(tmp_path / "y.zip", tmp_path / to, **options)
        assert not (tmp_path / to).exists()


@pytest.mark.parametrize("encoding", ["lz4", "leb128"])
def test_encoded_members(encoding: str, tmp_path: Path) -> None:
    raconvert.write(tmp_path / "e.ra", ARRAYS["a"].astype("<i8"), out_opts={"encoding": encoding})
    content = (tmp_path / "e.ra").read_bytes()
    text = b"raconvert_bundle: 1\narrays:\n- {name: e, file: e.ra}\n...\n"
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("bundle.yaml", text)
        archive.writestr("e.ra", content)
    assert np.array_equal(raconvert.read(tmp_path / "x.zip", "e"), ARRAYS["a"].astype("<i8"))
    data = bytearray((tmp_path / "x.zip").read_bytes())
    data[data.index(content) + len(content) - 1] ^= 1
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(Corrupt, match="data is damaged"):
        raconvert.convert(tmp_path / "x.zip", tmp_path / "y.npz")


@pytest.mark.parametrize("place", [0, 1, 5, 7, 40])
def test_a_damaged_member_is_not_left_out(place: int, tmp_path: Path) -> None:
    path = npz(tmp_path / "x.npz", ARRAYS, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(b"\x93NUMPY", 1000) + place] ^= 4
    path.write_bytes(data)
    with pytest.raises(RaconvertError, match="damaged|big"):
        raconvert.convert(path, tmp_path / "out.h5")


def test_lzma_dictionaries_are_bounded(tmp_path: Path) -> None:
    path = npz(tmp_path / "x.npz", {"a": np.zeros(100_000)}, zipfile.ZIP_LZMA)
    data = bytearray(path.read_bytes())
    head = data.index(bytes([5, 0, 0x5D]))
    data[head + 3 : head + 7] = b"\xff\xff\xff\xff"  # a dictionary of 4 GiB: as large as the data
    path.write_bytes(data)
    assert not raconvert.read(path, "a").any()
    with pytest.raises(TooLarge, match="max_memory"):
        raconvert.read(path, "a", max_memory=500_000)
    whole = 128 + 800_000
    assert len(decoded(path, max_memory=whole)) == whole
    with pytest.raises(TooLarge, match=f"dictionary of {whole} bytes"):
        decoded(path, max_memory=whole - 1)


def lzma_member(content: bytes, properties: tuple[int, int, int], dictionary: int) -> bytes:
    """A member as APPNOTE 5.8.8 has it, with these numbers of context, place and position bits."""
    lc, lp, pb = properties
    filters = [
        {"id": lzma.FILTER_LZMA1, "lc": lc, "lp": lp, "pb": pb, "dict_size": max(dictionary, 4096)}
    ]
    packed = lzma.compress(content, lzma.FORMAT_RAW, filters=filters)
    return struct.pack("<HHBI", 0x0904, 5, (pb * 5 + lp) * 9 + lc, dictionary) + packed


def decoded(path: Path, **options: Any) -> bytes:
    """All of the first member of an archive."""
    source = Source(str(path), **options)
    member = zips.members(source)[0]
    with closing(zips.Decoded(source, member)) as found:
        content = found.read_exact(0, member.size, "the member")
        found.finish()
        return content


@every("dictionary", [0, 1, 4096, 1 << 20])
@every("length", [0, 1, 4095, 4096, 4097, 100_000])
def test_lzma_of_any_dictionary(dictionary: int, length: int, tmp_path: Path) -> None:
    """A decoder takes 4096 bytes at least, whatever the header says."""
    content = random.Random(3).randbytes(5000)[: length - length % 2] * 21
    content = content[:length].ljust(length, b"x")
    packed = lzma_member(content, (3, 0, 2), dictionary)
    (tmp_path / "x.zip").write_bytes(archive_of(packed, content, zipfile.ZIP_LZMA))
    assert zipfile.ZipFile(tmp_path / "x.zip").read("x.npy") == content
    assert decoded(tmp_path / "x.zip") == content


def test_lzma_properties(tmp_path: Path) -> None:
    """Read where liblzma can (lc + lp up to 4, pb up to 4), damaged where they cannot be."""
    content = bytes(range(200)) * 5
    for code in range(256):
        rest, lc = divmod(code, 9)
        pb, lp = divmod(rest, 5)
        legal = lc + lp <= 4 and pb <= 4
        packed = lzma_member(content, (lc, lp, pb) if legal else (3, 0, 2), 4096)
        packed = packed[:4] + bytes([code]) + packed[5:]
        (tmp_path / "x.zip").write_bytes(archive_of(packed, content, zipfile.ZIP_LZMA))
        if legal:
            assert zipfile.ZipFile(tmp_path / "x.zip").read("x.npy") == content
            assert decoded(tmp_path / "x.zip") == content
        else:
            with pytest.raises(Corrupt, match="LZMA header is damaged"):
                decoded(tmp_path / "x.zip")


def test_lzma_headers_that_are_none(tmp_path: Path) -> None:
    packed = lzma_member(b"some text", (3, 0, 2), 4096)
    for data, words in (
        (packed[:8], "ends inside its header"),
        (packed[:9], "expected 9 bytes, got 0"),
        (packed[:2] + b"\4" + packed[3:], "header is damaged.*expected 5, got 4"),
        (packed[:2] + b"\6" + packed[3:], "header is damaged.*expected 5, got 6"),
    ):
        (tmp_path / "x.zip").write_bytes(archive_of(data, b"some text", zipfile.ZIP_LZMA))
        with pytest.raises(Corrupt, match=words):
            decoded(tmp_path / "x.zip")


@every("method", ["bzip2", "lzma", "deflated"])
@every("length", [0, 1, PIECE - 1, PIECE, 2 * PIECE])
@every("more", [-1, 0, 1, PIECE])
def test_a_stream_longer_or_shorter_than_its_member(
    method: str, length: int, more: int, tmp_path: Path
) -> None:
    """Also where the declared size ends with a piece: nothing behind it goes unnoticed."""
    pack = {
        "bzip2": bz2.compress,
        "lzma": lambda content: lzma_member(content, (3, 0, 2), 1 << 16),
        "deflated": deflated,
    }[method]
    content = (bytes(range(251)) * 3200)[: length + max(0, more)]
    packed = pack(content[: length + more] if more < 0 else content)
    content = content[:length].ljust(length, b"x")
    (tmp_path / "x.zip").write_bytes(archive_of(packed, content, METHODS[method]))
    if more == 0 or length + more < 0:
        assert decoded(tmp_path / "x.zip") == content
    else:
        with pytest.raises(Corrupt, match="the size that the directory declares|member ends"):
            decoded(tmp_path / "x.zip")


# What Python's zipfile takes as it is --------------------------------------------------------------


def archive_of(packed: bytes, content: bytes, method: int) -> bytes:
    """An archive of one member ``x.npy`` that declares `content`, and has `packed` in its place."""
    sizes = (zlib.crc32(content), len(packed), len(content), 5)
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 63, 0, method, 0, 33, *sizes, 0)
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 63, 63, 0, method, 0, 33, *sizes, *[0] * 6)
    front, directory = local + b"x.npy" + packed, entry + b"x.npy"
    return front + directory + struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(directory), len(front), 0
    )  # fmt: skip


def deflated(content: bytes, end: int = zlib.Z_FINISH) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return stream.compress(content) + stream.flush(end)


def contradictions() -> dict[str, tuple[bytes, str]]:
    buffer = io.BytesIO()
    np.save(buffer, ARRAYS["a"])
    content = buffer.getvalue()
    return {
        "more than declared": (
            archive_of(deflated(content + b"more"), content, zipfile.ZIP_DEFLATED),
            "got more",
        ),
        "bytes behind the stream": (
            archive_of(deflated(content) + b"more", content, zipfile.ZIP_DEFLATED),
            "does not end where its member ends",
        ),
        "a stream without an end": (
            archive_of(deflated(content, zlib.Z_SYNC_FLUSH), content, zipfile.ZIP_DEFLATED),
            "cut off",
        ),
    }


@pytest.mark.parametrize("name", contradictions())
def test_members_that_contradict_themselves(name: str, tmp_path: Path) -> None:
    """The library gives the declared bytes, and says nothing: decision 28."""
    data, message = contradictions()[name]
    (tmp_path / "x.npz").write_bytes(data)
    assert np.array_equal(np.load(io.BytesIO(zipfile.ZipFile(io.BytesIO(data)).read("x.npy"))),
                          ARRAYS["a"])  # fmt: skip
    with pytest.raises(Corrupt, match=message):
        raconvert.read(tmp_path / "x.npz")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_the_beginning_of_a_member_needs_no_more_memory_than_a_piece(
    method: int, tmp_path: Path
) -> None:
    """The library inflates 64 MiB of bzip2 to give sixteen bytes of them: decision 28."""
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("x", bytes(64 << 20))

    def peak(read: Callable[[], bytes]) -> int:
        tracemalloc.start()
        assert read() == bytes(16)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    def ours() -> bytes:
        source = Source(str(path))
        (member,) = zips.members(source)
        with closing(zips.Decoded(source, member)) as decoded:
            return decoded.read_exact(0, 16, "the beginning")

    def of_the_library() -> bytes:
        with zipfile.ZipFile(path) as archive, archive.open("x") as file:
            return file.read(16)

    assert peak(ours) < 12 << 20  # LZMA has a dictionary of 8 MiB
    if method == zipfile.ZIP_BZIP2:
        assert peak(of_the_library) > 64 << 20


@pytest.mark.parametrize("method", ["bzip2", "lzma", "deflated"])
@pytest.mark.parametrize("chunk", [0, 1, -1])
def test_bytes_behind_a_stream_that_has_an_end(
    method: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the piece that the stream ends in, and in the next one."""
    content = bytes(range(200))
    pack = {
        "bzip2": bz2.compress,
        "lzma": lambda content: lzma_member(content, (3, 0, 2), 4096),
        "deflated": deflated,
    }[method]
    packed = pack(content)
    monkeypatch.setattr(inflate, "CHUNK_BYTES", len(packed) + chunk)
    for more in (b"", b"m", b"more"):
        data = archive_of(packed + more, content, METHODS[method])
        (tmp_path / "x.zip").write_bytes(data)
        if not more:
            assert decoded(tmp_path / "x.zip") == content
            continue
        with pytest.raises(Corrupt, match="does not end where its member ends"):
            decoded(tmp_path / "x.zip")


@pytest.mark.parametrize("bit", range(16))
def test_flags_of_members(bit: int, tmp_path: Path) -> None:
    """APPNOTE 4.4.4: 0, 6 and 13 are kinds of encryption; 3: CRC and sizes come behind the data."""
    content = b"some text"
    data = bytearray(archive_of(content, content, zipfile.ZIP_STORED))
    entry = data.index(b"PK\1\2")
    flag = struct.pack("<H", 1 << bit)
    path = tmp_path / "x.zip"
    data[entry + 8 : entry + 10] = data[6:8] = flag
    path.write_bytes(data)
    if bit in (0, 6, 13):
        with pytest.raises(Unsupported, match="member is encrypted"):
            decoded(path)
    else:
        assert decoded(path) == content
    # Of the local header alone: no bit but 3 says that its CRC and its sizes do not count.
    data[entry + 8 : entry + 10] = bytes(2)
    for place, words in ((14, "CRC-32"), (18, "compressed size"), (22, "size")):
        wrong = bytearray(data)
        wrong[place] ^= 1
        path.write_bytes(wrong)
        if bit == 3:
            assert decoded(path) == content
        else:
            with pytest.raises(Corrupt, match=f"differ in the {words}"):
                decoded(path)


@pytest.mark.parametrize("name", ["x.npy", "\u00e9.npy", "\u65e5.npy"])
@pytest.mark.parametrize("utf8", [0, 0x0800])
def test_names_of_members_in_both_encodings(name: str, utf8: int, tmp_path: Path) -> None:
    if not utf8 and not name.isascii() and name[0] == "\u65e5":
        return  # has no place in code page 437
    raw = name.encode("utf-8" if utf8 else "cp437")
    data = archive_of(b"text", b"text", zipfile.ZIP_STORED).replace(b"x.npy", raw)
    data = bytearray(data)
    entry = data.index(b"PK\1\2")
    end = data.index(b"PK\5\6")
    struct.pack_into("<H", data, 26, len(raw))
    struct.pack_into("<H", data, entry + 28, len(raw))
    struct.pack_into("<2I", data, end + 12, end - entry, entry)
    data[7] = data[entry + 9] = utf8 >> 8
    (tmp_path / "x.zip").write_bytes(data)
    assert zipfile.ZipFile(tmp_path / "x.zip").namelist() == [name]
    assert [m.filename for m in zips.members(Source(str(tmp_path / "x.zip")))] == [name]
    assert decoded(tmp_path / "x.zip") == b"text"


def test_where_zip64_says_the_sizes(tmp_path: Path) -> None:
    """All ones in either field of the local header: both are in its extra field, and count there."""
    content = b"some text"
    data = bytearray(archive_of(content, content, zipfile.ZIP_STORED))
    for low, high in ((zips.ZIP64, 9), (9, zips.ZIP64), (zips.ZIP64, zips.ZIP64)):
        struct.pack_into("<2I", data, 18, low, high)
        (tmp_path / "x.zip").write_bytes(data)
        assert decoded(tmp_path / "x.zip") == content
    for low, high in ((zips.ZIP64 - 1, 9), (9, zips.ZIP64 - 1), (8, 9), (9, 10)):
        struct.pack_into("<2I", data, 18, low, high)
        (tmp_path / "x.zip").write_bytes(data)
        with pytest.raises(Corrupt, match="local header and central directory differ"):
            decoded(tmp_path / "x.zip")


@pytest.mark.parametrize("ratio", [1031, 1032, 1033])
def test_sizes_that_a_deflated_member_can_have(ratio: int, tmp_path: Path) -> None:
    """No byte of a deflated stream gives more than 1032."""
    content = bytes(100)
    packed = deflated(content)
    data = bytearray(archive_of(packed, content, zipfile.ZIP_DEFLATED))
    for place in (22, data.index(b"PK\1\2") + 24):
        struct.pack_into("<I", data, place, ratio * len(packed))
    (tmp_path / "x.zip").write_bytes(data)
    words = "cannot have" if ratio > 1032 else "size that the directory declares"
    with pytest.raises(Corrupt, match=words):
        decoded(tmp_path / "x.zip")


@pytest.mark.parametrize("comment", [0, 1, 22, 65535])
@pytest.mark.parametrize("before", [0, 1, 70_000])
def test_bytes_before_an_archive_and_a_comment_behind(
    comment: int, before: int, tmp_path: Path
) -> None:
    data = archive_of(b"text", b"text", zipfile.ZIP_STORED)[:-2]
    path = tmp_path / "x.zip"
    path.write_bytes(bytes(before) + data + struct.pack("<H", comment) + b"c" * comment)
    assert zipfile.ZipFile(path).read("x.npy") == decoded(path) == b"text"
    assert zips.trailing_bytes(Source(str(path))) == 0
    if comment < 65535:
        path.write_bytes(path.read_bytes() + b"!")
        assert zips.trailing_bytes(Source(str(path))) == 1


def test_an_offset_that_looks_like_the_end_record(tmp_path: Path) -> None:
    """The directory begins where the four bytes of its offset are the magic of the record."""
    data = bytearray(archive_of(b"text", b"text", zipfile.ZIP_STORED))
    directory = data.index(b"PK\1\2")
    start = int.from_bytes(b"PK\5\6", "little")
    struct.pack_into("<I", data, directory + 42, start - directory)
    struct.pack_into("<I", data, len(data) - 6, start)
    path = tmp_path / "x.zip"
    with path.open("wb") as file:
        file.seek(start - directory)  # a hole of 101 MB
        file.write(data)
    assert data.count(b"PK\5\6") == 2
    assert zipfile.ZipFile(path).read("x.npy") == decoded(path) == b"text"
    assert zips.trailing_bytes(Source(str(path))) == 0


def test_members_that_touch_and_overlap(tmp_path: Path) -> None:
    """One that begins where another ends is beside it; one byte before, it is inside."""
    first = archive_of(b"text", b"text", zipfile.ZIP_STORED)
    end = first.index(b"PK\1\2")
    path = tmp_path / "x.zip"
    path.write_bytes(first)
    assert decoded(path) == b"text"
    data = bytearray(first)
    for place in (18, 22, end + 20, end + 24):
        struct.pack_into("<I", data, place, 5)
    path.write_bytes(data)
    with pytest.raises(Corrupt, match=f"'x.npy' and the central directory overlap, at byte {end}"):
        decoded(path)


def test_what_is_read_of_the_beginning(tmp_path: Path) -> None:
    """Any part of it, as often as one likes; up to the end and no further."""
    content = bytes(range(50))
    path = tmp_path / "x.zip"
    path.write_bytes(archive_of(content, content, zipfile.ZIP_STORED))
    source = Source(str(path))
    (member,) = zips.members(source)
    with closing(zips.Decoded(source, member)) as found:
        for offset, nbytes in ((0, 5), (3, 10), (0, 2), (12, 1), (13, 37), (50, 0), (49, 1)):
            assert found.read_exact(offset, nbytes, "x") == content[offset : offset + nbytes]
        for offset, nbytes, left in ((0, 51, 50), (49, 2, 1), (50, 1, 0), (51, 0, 0), (60, 3, 0)):
            words = f"ends inside the part, at byte {offset}; expected {nbytes} bytes, got {left}"
            with pytest.raises(Corrupt, match=words):
                found.read_exact(offset, nbytes, "the part")


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("said", [-1, 0, 1])
def test_the_number_of_members_is_that_of_the_end_record(
    count: int, said: int, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for n in range(count):
            archive.writestr(f"{n}", b"text")
    data = bytearray((tmp_path / "x.zip").read_bytes())
    struct.pack_into("<H", data, data.rindex(b"PK\5\6") + 10, count + said)
    (tmp_path / "x.zip").write_bytes(data)
    if not said:
        assert len(zips.members(Source(str(tmp_path / "x.zip")))) == count
        return
    with pytest.raises(Corrupt, match=f"expected {count + said} members?\\b.*got {count}"):
        zips.members(Source(str(tmp_path / "x.zip")))


def test_more_members_than_the_end_record_counts(tmp_path: Path) -> None:
    """Some writers begin at 0 again behind 65535, without a ZIP64 record."""
    count = (1 << 16) + 1
    entry = archive_of(b"", b"", zipfile.ZIP_STORED)
    local, entry, end = entry[:35], entry[35:-22], entry[-22:]
    name = [b"%05d" % n for n in range(count)]
    data = b"".join(local[:30] + one for one in name)
    for n in range(count):
        data_entry = entry[:42] + struct.pack("<I", 35 * n) + name[n]
        name[n] = data_entry
    listed = b"".join(name)
    end = struct.pack("<4s4H2IH", end[:4], 0, 0, 1, 1, len(listed), len(data), 0)
    (tmp_path / "x.zip").write_bytes(data + listed + end)
    assert len(zipfile.ZipFile(tmp_path / "x.zip").namelist()) == count
    assert len(zips.members(Source(str(tmp_path / "x.zip")))) == count
    wrong = end.replace(b"\1\0\1\0", b"\0\0\0\0")
    (tmp_path / "x.zip").write_bytes(data + listed + wrong)
    with pytest.raises(Corrupt, match="expected 0 members"):
        zips.members(Source(str(tmp_path / "x.zip")))
