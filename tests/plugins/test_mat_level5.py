"""Level 5 of MAT at its limits: what just fits is read, one byte or one member less is refused."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from mat_bytes import body, deflated, doubles, element, fields, ints, matrix, saved
from raconvert.plugins import mat

from raconvert.errors import Corrupt, RaconvertError
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from raconvert.arrays.bundle import Bundle

X = matrix(6, (1, 1), b"x", doubles(1.5))
EMPTY = struct.pack("<2I", 14, 0)
FLAGS = element(6, struct.pack("<2I", 6, 0))
PLAIN_OR_DEFLATED = pytest.mark.parametrize("pack", [bytes, deflated], ids=["plain", "deflated"])


def read(tmp_path: Path, contents: bytes, *, max_memory: int = 1 << 26) -> Bundle:
    return mat.read(Source(str(saved(tmp_path, contents)), max_memory=max_memory))


def problem(tmp_path: Path, contents: bytes) -> RaconvertError | None:
    """Why the second variable cannot be read, or None; the first one is."""
    with read(tmp_path, X + contents) as bundle:
        assert np.asarray(bundle["x"]).tolist() == [[1.5]]
        return bundle.arrays[1].problem


def cell(count: int, members: bytes) -> bytes:
    return matrix(1, (1, count), b"c", members)


def small(code: int, data: bytes, claim: int | None = None) -> bytes:
    """An element of at most four bytes inside its own tag."""
    nbytes = len(data) if claim is None else claim
    return struct.pack("<I", nbytes << 16 | code) + data.ljust(4, b"\0")


# --- the end of a file ---------------------------------------------------------------------------


def test_an_empty_variable_at_the_end_is_a_whole_one(tmp_path: Path) -> None:
    with read(tmp_path, X + EMPTY) as bundle:
        assert bundle.names == ["x"]
        assert not bundle.unreadable
        assert not bundle.notes


@pytest.mark.parametrize("count", range(1, 8))
def test_bytes_behind_the_last_variable(count: int, tmp_path: Path) -> None:
    with read(tmp_path, X + bytes(count)) as bundle:
        (note,) = bundle.notes
        assert f"{count} zero bytes after the last variable" in note
        assert not bundle.unreadable
    with read(tmp_path, X + bytes(count - 1) + b"\1") as bundle:
        (array,) = bundle.unreadable
        assert "file ends inside a tag" in str(array.problem)
        assert f"byte {128 + len(X)}; expected 8 bytes, got {count}" in str(array.problem)


# --- members -------------------------------------------------------------------------------------


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("count", [1, 3, 20])
def test_a_cell_has_as_many_members_as_there_is_room_for(
    count: int, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """A member takes eight bytes at least: an empty one exactly these."""
    with read(tmp_path, pack(cell(count, EMPTY * count))) as bundle:
        assert bundle.names == [f"c/{n}" for n in range(1, count + 1)]
        assert all(array.shape == (0, 0) for array in bundle.arrays)
    for members in (EMPTY * (count - 1), EMPTY * count + bytes(7)):
        claimed = count + (len(members) > 8 * count)
        found = problem(tmp_path, pack(cell(claimed, members)))
        assert "declares more members than there are" in str(found)
        assert f"expected at most {len(members) // 8}, got {claimed}" in str(found)


@PLAIN_OR_DEFLATED
def test_a_struct_has_as_many_members_as_fields_and_elements(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """2 x 2 elements of 3 fields are 12 members."""
    names = fields(b"a", b"b", b"c")
    for count in (11, 12):
        packed = pack(matrix(2, (2, 2), b"s", names, EMPTY * count))
        if count == 12:
            with read(tmp_path, packed) as bundle:
                assert bundle.names == [f"s/{n}/{f}" for n in range(1, 5) for f in "abc"]
        else:
            assert "at most 11, got 12" in str(problem(tmp_path, packed))


@pytest.mark.parametrize(
    ("width", "text", "names"),
    [(1, b"abc", ["a", "b", "c"]), (2, b"a\0b\0", ["a", "b"]), (4, b"abcd", ["abcd"]),
     (3, b"abcd", None), (0, b"abcd", None), (-1, b"abcd", None), (8, b"abcd", None)],
)  # fmt: skip
def test_names_of_fields(width: int, text: bytes, names: list[str] | None, tmp_path: Path) -> None:
    members = matrix(6, (1, 1), b"", doubles(2.5)) * 4
    packed = matrix(2, (1, 1), b"s", ints(width), element(1, text), members)
    if names is None:
        found = problem(tmp_path, packed)
        assert "have a wrong length" in str(found)
        assert f"expected a multiple of {width}, got {len(text)}" in str(found)
    else:
        with read(tmp_path, packed) as bundle:
            assert bundle.names == [f"s/{name}" for name in names]


# --- tags and lengths ----------------------------------------------------------------------------


def variable(*parts: bytes) -> bytes:
    return element(14, b"".join(parts))


@pytest.mark.parametrize("length", range(1, 5))
def test_data_inside_tags(length: int, tmp_path: Path) -> None:
    name = b"name"[:length]
    inside = small(2, b"\1\2\3\4"[:length])
    packed = variable(FLAGS, ints(1, length), small(1, name), inside)
    with read(tmp_path, packed) as bundle:
        assert np.asarray(bundle[name.decode()]).tolist() == [[1, 2, 3, 4][:length]]


@pytest.mark.parametrize("claim", [5, 8, 200])
def test_more_data_than_a_tag_has_room_for(claim: int, tmp_path: Path) -> None:
    packed = variable(FLAGS, ints(1, 1), small(1, b"name", claim), doubles(1))
    found = problem(tmp_path, packed)
    assert "wrong tag of the name" in str(found)
    assert f"expected at most 4 bytes, got {claim}" in str(found)


def test_a_variable_that_ends_inside_a_tag(tmp_path: Path) -> None:
    """An element of no bytes is a whole tag, which may be the last eight bytes."""
    parts = FLAGS, ints(0, 0), element(1, b"empty"), doubles()
    with read(tmp_path, variable(*parts)) as bundle:
        assert np.asarray(bundle["empty"]).shape == (0, 0)
    data = b"".join(parts)
    for less in (1, 4, 7):
        short = struct.pack("<2I", 14, len(data) - less) + data[: len(data) - less]
        assert "variable ends before 'empty'" in str(problem(tmp_path, short))


@pytest.mark.parametrize("pad", [0, 1, 3])
def test_the_last_element_need_not_be_padded(pad: int, tmp_path: Path) -> None:
    """Of three bytes, five more would be; the next variable begins where the length says."""
    data = FLAGS + ints(1, 9) + element(1, b"bytes") + struct.pack("<2I", 2, 9) + bytes(range(9))
    packed = struct.pack("<2I", 14, len(data) + pad) + data + bytes(pad)
    with read(tmp_path, packed + X) as bundle:
        assert bundle.names == ["bytes", "x"]
        assert np.asarray(bundle["bytes"]).tolist() == [list(range(9))]


@PLAIN_OR_DEFLATED
def test_lengths_in_messages_are_those_that_are_left(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    lead = FLAGS + ints(1, 2) + element(1, b"long")
    data = lead + struct.pack("<2I", 9, 24) + bytes(16)
    found = problem(tmp_path, pack(element(14, data)))
    assert "expected at most 16, got 24" in str(found)


@pytest.mark.parametrize(
    ("dims", "is_read"), [(b"", False), (b"\1\0\0\0", True), (b"\1\0\0\0\1", False), (b"\1", False)]
)
def test_dims_of_whole_numbers(dims: bytes, is_read: bool, tmp_path: Path) -> None:
    found = problem(tmp_path, variable(FLAGS, element(5, dims), element(1, b"y"), doubles(2)))
    assert (found is None) == is_read
    assert is_read or f"expected 4 bytes each, got {len(dims)} bytes" in str(found)


@pytest.mark.parametrize("nbytes", [0, 4, 7, 9, 16])
def test_array_flags_of_another_length(nbytes: int, tmp_path: Path) -> None:
    flags = element(6, struct.pack("<2I", 6, 0).ljust(16, b"\0")[:nbytes])
    found = problem(tmp_path, variable(flags, ints(1, 1), element(1, b"y"), doubles(2)))
    assert isinstance(found, Corrupt)
    assert "array flags" in str(found)


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("length", [63, 64, 4095, 4096, 4097])
def test_names_up_to_their_limit(
    length: int, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    name = b"n" * length
    packed = pack(matrix(6, (1, 1), name, doubles(2)))
    if length <= 4096:
        with read(tmp_path, packed) as bundle:
            assert bundle.names == [name.decode()]
    else:
        found = problem(tmp_path, packed)
        assert "the name is too long" in str(found)
        assert "expected at most 4096 bytes, got 4097" in str(found)


# --- numbers -------------------------------------------------------------------------------------


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("count", [5, 6, 7])
@pytest.mark.parametrize("imaginary", [None, 5, 6, 7])
def test_as_many_numbers_as_the_dims_say(
    count: int, imaginary: int | None, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    parts = [doubles(*range(count))]
    if imaginary is not None:
        parts.append(doubles(*range(imaginary)))
    flags = 0 if imaginary is None else 0x0800
    found = problem(tmp_path, pack(matrix(6, (2, 3), b"y", *parts, flags=flags)))
    if count == 6 and imaginary in (None, 6):
        assert found is None
    else:
        wrong = count if count != 6 else imaginary
        assert f"expected 6 numbers, got {wrong}" in str(found)


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize(("code", "width"), [(1, 1), (3, 2), (5, 4), (7, 4), (9, 8), (12, 8)])
def test_numbers_that_end_inside_one(
    code: int, width: int, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    packed = pack(matrix(6, (1, 3), b"y", element(code, bytes(3 * width))))
    assert problem(tmp_path, packed) is None
    if width > 1:
        packed = pack(matrix(6, (1, 3), b"y", element(code, bytes(3 * width - 1))))
        found = problem(tmp_path, packed)
        assert "ends inside a number" in str(found)
        assert f"got {3 * width - 1} bytes" in str(found)


@pytest.mark.parametrize("nbytes", [0, 8, 1 << 20, (1 << 20) + 8, 3 << 20])
@pytest.mark.parametrize("is_complex", [False, True])
def test_large_compressed_numbers(nbytes: int, is_complex: bool, tmp_path: Path) -> None:
    """Small ones are decoded when the file is opened, larger ones where they lie."""
    count = nbytes // 8
    parts = [np.random.default_rng(n).standard_normal(count) for n in range(1 + is_complex)]
    data = body(6, (1, count), b"y", *(element(9, part.tobytes()) for part in parts),
                flags=0x0800 * is_complex)  # fmt: skip
    for max_memory in (1 << 30, 16 << 20):
        with read(tmp_path, deflated(element(14, data)) + X, max_memory=max_memory) as bundle:
            found = np.asarray(bundle["y"])
            assert found.shape == (1, count)
            assert np.array_equal(found.real[0], parts[0])
            assert not is_complex or np.array_equal(found.imag[0], parts[1])
            assert np.asarray(bundle["x"]).tolist() == [[1.5]]


# --- messages and odd writers --------------------------------------------------------------------


@pytest.mark.parametrize("code", [1, 13, 15, 16])
def test_only_variables_are_compressed(code: int, tmp_path: Path) -> None:
    packed = deflated(element(code, bytes(16)))
    with read(tmp_path, X + packed) as bundle:
        (array,) = bundle.unreadable
        told = str(array.problem)
    assert "compressed element is not a variable" in told
    assert f"expected 14, got {code}" in told
    assert f"at byte {128 + len(X) + 8}, decoded byte 8;" in told


@PLAIN_OR_DEFLATED
def test_numbers_that_are_empty_keep_their_type(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    with read(tmp_path, pack(matrix(6, (0, 3), b"e", doubles()))) as bundle:
        assert bundle["e"].storage["stored"] == "f8"
        assert np.asarray(bundle["e"]).shape == (0, 3)
    found = problem(tmp_path, pack(matrix(4, (1, 3), b"t", doubles())))
    assert "another length than the dims say" in str(found)
    assert "expected 3 units, got 0" in str(found)


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("behind", range(0, 25, 4))
def test_what_is_behind_logical_integers(
    behind: int, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Octave writes sparse logical matrices as full ones; another element must have a tag."""
    inside = body(9, (1, 2), b"l", element(5, struct.pack("<2i", 1, 0)), flags=0x200)
    packed = pack(element(14, inside + bytes(behind)))
    found = problem(tmp_path, packed)
    assert (found is None) == (behind < 8)
    if found:
        assert "columns of 'l' is of unknown type" in str(found)


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("cls", [5, 9], ids=["sparse", "full, as Octave writes it"])
@pytest.mark.parametrize("code", [2, 9])
def test_sparse_logical_matrices(
    cls: int, code: int, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Values are bytes, also under the type of doubles."""
    rows, starts = struct.pack("<3i", 0, 1, 0), struct.pack("<4i", 0, 2, 2, 3)
    parts = element(5, rows), element(5, starts), element(code, bytes([1, 1, 1]))
    packed = pack(matrix(cls, (2, 3), b"s", *parts, flags=0x200))
    with read(tmp_path, packed + X) as bundle:
        assert np.asarray(bundle["s"]).tolist() == [[1, 0, 1], [1, 0, 0]]
        assert np.asarray(bundle["x"]).tolist() == [[1.5]]


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("dims", [(2, 3), (1, 2, 3), (1, 1, 2, 3)])
def test_sparse_matrices_have_two_axes(
    dims: tuple[int, ...], pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    found = problem(tmp_path, pack(matrix(5, dims, b"s", ints(0), ints(0, 1, 1, 1), doubles(2))))
    if len(dims) == 2:
        assert found is None
    else:
        assert "sparse 's' is not a matrix" in str(found)
        assert "expected 2 dims" in str(found)


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("dims", [(0, 0), (1, 0), (1, 1), (2, 3)])
def test_texts_whose_data_is_left_out(
    dims: tuple[int, int], pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Some writers leave it out where it is empty, and nowhere else."""
    for parts in ((), (element(4, b""),)):
        found = problem(tmp_path, pack(matrix(4, dims, b"t", *parts)))
        assert (found is None) == (0 in dims)
        if found and not parts:
            assert "variable ends before text of 't'" in str(found)
        elif found:
            assert f"expected {dims[0] * dims[1]} units, got 0" in str(found)


@pytest.mark.parametrize("count", [10, 200_000])
@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("inside", [False, True])
def test_imaginary_parts_of_compressed_members(
    count: int, more: int, inside: bool, tmp_path: Path
) -> None:
    """Of the same length as the real part, also where neither is kept."""
    real, imaginary = (np.random.default_rng(n).bytes(8 * (count + n * more)) for n in (0, 1))
    name = b"" if inside else b"y"
    number = matrix(6, (1, count), name, element(9, real), element(9, imaginary), flags=0x0800)
    packed = deflated(cell(2, number + matrix(6, (1, 1), b"", doubles(7))) if inside else number)
    for room in (1 << 30, 16 << 20):
        with read(tmp_path, X + packed + X.replace(b"x", b"z"), max_memory=room) as bundle:
            assert np.asarray(bundle["z"]).tolist() == [[1.5]]
            array = bundle["c/1" if inside else "y"]
            if inside:
                assert np.asarray(bundle["c/2"]).tolist() == [[7]]
            if more:
                with pytest.raises(Corrupt, match=f"expected {count} numbers, got {count + more}|"
                                                  "imaginary part"):  # fmt: skip
                    np.asarray(array)
            else:
                assert np.asarray(array).real.tobytes() == real
                assert np.asarray(array).imag.tobytes() == imaginary


@PLAIN_OR_DEFLATED
@pytest.mark.parametrize("nbytes", [0, 1, 4, 5, 8, 12, 13, 16])
def test_members_begin_where_those_before_are_padded(
    nbytes: int, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Up to eight bytes, whether their data is in the tag or behind it."""
    inside = small(2, bytes(range(nbytes))) if 0 < nbytes <= 4 else element(2, bytes(range(nbytes)))
    one = matrix(9, (1, nbytes), b"", inside)
    with read(tmp_path, pack(cell(3, one + EMPTY + one)) + X) as bundle:
        for name in ("c/1", "c/3"):
            assert np.asarray(bundle[name]).tolist() == [list(range(nbytes))]
        assert np.asarray(bundle["x"]).tolist() == [[1.5]]


@PLAIN_OR_DEFLATED
def test_a_damaged_member_hides_no_other(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Unless its own length is what is damaged: then all behind it are named as lost."""
    good = matrix(6, (1, 1), b"", doubles(7))
    wrong = matrix(6, (1, 2), b"", doubles(7))
    long = struct.pack("<2I", 14, 1 << 20) + good[8:]
    other = element(9, bytes(len(good) - 8))
    for bad, lost in ((wrong, 1), (long, 3), (other, 3)):
        with read(tmp_path, pack(cell(4, good + bad + good + good)) + X) as bundle:
            names = [f"c/{n}" for n in range(1, 5)]
            found = [bundle[name].problem is None for name in names]
            assert found == [True, *[False] * lost, *[True] * (3 - lost)]
            for name, is_read in zip(names, found, strict=True):
                if is_read:
                    assert np.asarray(bundle[name]).tolist() == [[7]]
            if lost > 1:
                assert "behind a member of unknown length" in str(bundle["c/4"].problem)
            assert np.asarray(bundle["x"]).tolist() == [[1.5]]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("code", ["u1", "<i2", "<f4", "<f8"])
@pytest.mark.parametrize("is_complex", [False, True])
def test_compressed_numbers_beyond_what_is_kept(
    inside: bool, code: str, is_complex: bool, tmp_path: Path
) -> None:
    """Decoded when the file is opened, of several variables only some are kept; all are the same."""
    kind = {"u1": 2, "<i2": 3, "<f4": 7, "<f8": 9}[code]
    counts = [100, 3000, 4000, 4096, 4097, 9000, 5]
    name = b"" if inside else b"v%d"
    made, packed = [], []
    for n, count in enumerate(counts):
        parts = [np.random.default_rng(2 * n + p).integers(1, 99, count).astype(code)
                 for p in range(1 + is_complex)]  # fmt: skip
        made.append(parts[0] + 1j * parts[1].astype("f8") if is_complex else parts[0])
        label = name % n if name else b""
        packed.append(matrix(6, (1, count), label, *(element(kind, p.tobytes()) for p in parts),
                             flags=0x0800 * is_complex))  # fmt: skip
    data = (
        deflated(cell(len(packed), b"".join(packed))) if inside else b"".join(map(deflated, packed))
    )
    for room in (1 << 30, 1 << 20, 1 << 18):
        with read(tmp_path, data + X, max_memory=room) as bundle:
            for n, values in enumerate(made):
                found = np.asarray(bundle[f"c/{n + 1}" if inside else f"v{n}"])
                assert np.array_equal(found[0], values), (room, n)
            assert np.asarray(bundle["x"]).tolist() == [[1.5]]
