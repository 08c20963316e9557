"""Chunked HDF5 datasets against h5py: every index, filter, border, fill value and resize.

Where a chunk lies is told by an index of one of six kinds, which the library and this plugin read
in different ways; h5py's ``[...]`` is the judge.
"""

from __future__ import annotations

import zlib
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every
from h5py import h5d, h5p, h5s, h5t, h5z
from raconvert.plugins import hdf5
from raconvert.plugins.hdf5 import chunks as hdf5_chunks
from raconvert.plugins.hdf5 import direct
from raconvert.plugins.hdf5.chunks import are_places_sure, checks_out, fletcher32

import raconvert
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.dtypes import element
from raconvert.errors import Corrupt
from raconvert.files.source import Source
from raconvert.plugin import Array, Bundle, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    Values = np.ndarray[Any, Any]

CASES = 2000
LIBVERS = ("earliest", "v108", "v110", "v112", "v114", "latest")
FILTERS: dict[str, tuple[str, ...]] = {
    "none": (),
    "gzip": ("gzip",),
    "shuffle": ("shuffle",),
    "shuffle gzip": ("shuffle", "gzip"),
    "lzf": ("lzf",),
    "fletcher32": ("fletcher32",),
    "gzip fletcher32": ("gzip", "fletcher32"),
    "shuffle fletcher32 gzip": ("shuffle", "fletcher32", "gzip"),
    "shuffle gzip fletcher32": ("shuffle", "gzip", "fletcher32"),
    "scaleoffset": ("scaleoffset",),
    "scaleoffset fletcher32": ("scaleoffset", "fletcher32"),
    "nbit": ("nbit",),
}
DTYPES = ("u1", "<i2", ">i4", "<u8", "<f4", ">f8", "<c8", "?", "S3", "V5", "pair", "31 bits")
PAIR = np.dtype([("a", "<i2"), ("b", ">f4")])


def read(path: Path) -> Any:
    return hdf5.read(Source(str(path)))


# --- where the chunks are -------------------------------------------------------------------------


def memory_type(dtype: str) -> np.dtype[Any]:
    return np.dtype({"pair": PAIR, "31 bits": "<i4"}.get(dtype, dtype))


def file_type(dtype: str) -> h5t.TypeID:
    if dtype == "31 bits":
        tid = h5t.STD_I32LE.copy()
        tid.set_precision(31)
        return tid
    return h5t.py_create(memory_type(dtype), logical=True)


def property_list(rng: Any, dtype: str, chunk: tuple[int, ...], name: str) -> h5p.PropDCID:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    add: dict[str, Callable[[], None]] = {
        "gzip": lambda: plist.set_deflate(1),
        "shuffle": plist.set_shuffle,
        "fletcher32": plist.set_fletcher32,
        "lzf": lambda: plist.set_filter(h5z.FILTER_LZF, 1),
        "scaleoffset": lambda: plist.set_scaleoffset(h5z.SO_INT, 0),
        "nbit": lambda: plist.set_filter(h5z.FILTER_NBIT, 0),
    }
    for part in FILTERS[name]:
        add[part]()
    if rng.random() < 0.3:
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    if rng.random() < 0.3 and memory_type(dtype).kind in "iuf":
        plist.set_fill_value(np.array(17, memory_type(dtype)))
    return plist


def some_values(rng: Any, dtype: str, shape: tuple[int, ...]) -> Values:
    if dtype == "31 bits":
        return rng.integers(-(1 << 30), 1 << 30, shape, dtype="i4")
    found = memory_type(dtype)
    if found.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    raw = rng.integers(1, 60, (*shape, found.itemsize), dtype="u1")
    return raw.view(found).reshape(shape)


def a_dataset(rng: Any, file: h5py.File, name: str) -> str:
    """Make a dataset of one random case, and return what it is."""
    rank = int(rng.integers(1, 4))
    shape = tuple(rng.integers(1, 10, rank).tolist())
    limits: list[int | None] = [
        None if kind == 0 else n + int(rng.integers(1, 7)) if kind == 1 else n
        for kind, n in zip(rng.integers(0, 4, rank).tolist(), shape, strict=True)
    ]
    chunk = tuple(
        min(int(rng.integers(1, 5)), n if most is not None else 9)
        for n, most in zip(shape, limits, strict=True)
    )
    if rng.random() < 0.1:  # one chunk
        limits, chunk = list(shape), shape
    dtype = str(rng.choice(DTYPES))
    for_all = [name for name in FILTERS if not name.startswith(("scaleoffset", "nbit"))]
    filters = str(rng.choice(list(FILTERS) if memory_type(dtype).kind in "iu" else for_all))
    plist = property_list(rng, dtype, chunk, filters)
    most = tuple(h5s.UNLIMITED if n is None else n for n in limits)
    space = h5s.create_simple(shape, most)
    dataset = h5py.Dataset(h5d.create(file.id, name.encode(), file_type(dtype), space, plist))
    for _ in range(int(rng.integers(0, 3))):
        part = tuple(slice(*sorted(rng.integers(0, n + 1, 2).tolist())) for n in dataset.shape)
        box = tuple(s.stop - s.start for s in part)
        if prod(box):
            dataset[part] = some_values(rng, dtype, box)
        if rng.random() < 0.4:
            dataset.resize(
                tuple(
                    min(max(1, n + int(rng.integers(-4, 6))), 99 if high is None else high)
                    for n, high in zip(dataset.shape, limits, strict=True)
                )
            )
    if rng.random() < 0.6:
        dataset[...] = some_values(rng, dtype, dataset.shape)
    return f"{shape} -> {dataset.shape} of {limits}, chunks {chunk}, {dtype}, {filters}"


def some_key(rng: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(
        int(rng.integers(0, n))
        if rng.random() < 0.3
        else slice(*sorted(rng.integers(0, n + 1, 2).tolist()), int(rng.integers(1, 4)))
        for n in shape
    )


@pytest.mark.parametrize("libver", LIBVERS)
def test_random_chunked_datasets(libver: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(LIBVERS.index(libver))
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=(libver, "latest")) as file:
        told = {f"d{n}": a_dataset(rng, file, f"d{n}") for n in range(-(-CASES // len(LIBVERS)))}
    with h5py.File(path) as file, read(path) as bundle:
        assert sorted(bundle.names) == sorted(told)
        for name, what in told.items():
            expected = file[name][...]
            if expected.dtype.byteorder == ">":
                expected = expected.astype(expected.dtype.newbyteorder("<"))
            array = bundle[name]
            whole = as_ndarray(array)
            assert whole.shape == expected.shape, what
            assert whole.astype(expected.dtype).tobytes() == expected.tobytes(), what
            pieces = b"".join(block.tobytes() for block in blocks(array, 64))
            assert pieces == whole.tobytes(), what
            key = some_key(rng, expected.shape)
            part = np.asarray(array.data[key]).astype(expected.dtype)
            assert part.tobytes() == np.ascontiguousarray(expected[(*key, ...)]).tobytes(), (
                what,
                key,
            )


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"compression": 1}, {"compression": 1, "shuffle": True}])
def test_one_unlimited_axis(axis: int, options: dict[str, Any], tmp_path: Path) -> None:
    most = tuple(None if index == axis else n for index, n in enumerate((6, 8, 10)))
    values = np.arange(480, dtype="f4").reshape(6, 8, 10)
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=values, chunks=(2, 2, 2), maxshape=most, **options)
    assert (raconvert.read(tmp_path / "x.h5")["x"] == values).all()


def test_an_unlimited_axis_that_is_not_the_first(corpus: Callable[..., Path]) -> None:
    path = corpus("review", "wrong", "hdf5_unlimited_last_axis.h5")
    expected = np.load(path.with_suffix(".expected.npy"))
    assert (raconvert.read(path)["adc"] == expected).all()


@pytest.mark.parametrize("name", ["h5fc_edge_v3", "hdf5_partial_edge_chunks_unfiltered"])
def test_chunks_at_the_border_without_filters(name: str, corpus: Callable[..., Path]) -> None:
    path = corpus("review", "wrong", f"{name}.h5")
    with h5py.File(path) as file, read(path) as bundle:
        assert bundle.names
        for array in bundle.arrays:
            assert as_ndarray(array).tobytes() == file[array.name][...].tobytes()
            assert array.data[...].tobytes() == file[array.name][...].tobytes()


def test_where_places_are_believed() -> None:
    most = h5s.UNLIMITED
    assert are_places_sure((6, 8), (most, 8), (2, 2), stored=False)
    assert are_places_sure((6, 8), (9, 8), (2, 4), stored=False)
    assert are_places_sure((6, 7), (9, 8), (2, 4), stored=False)  # no further chunk
    assert not are_places_sure((6, 8), (6, most), (2, 2), stored=False)
    assert not are_places_sure((6, 8), (6, 9), (2, 2), stored=False)
    assert are_places_sure((6, 8), (6, most), (2, 2), stored=True)


# --- damaged indexes ------------------------------------------------------------------------------


def with_key(path: Path, place: tuple[int, ...], new: tuple[int, ...]) -> None:
    """Change the place of a chunk in the keys of a B-tree of version 1."""
    raw = path.read_bytes()
    old = b"".join(n.to_bytes(8, "little") for n in (*place, 0))
    assert raw.count(old) == 1
    path.write_bytes(raw.replace(old, b"".join(n.to_bytes(8, "little") for n in (*new, 0))))


@pytest.mark.parametrize(
    ("new", "words"),
    [((3, 2), "no place for|bad coordinate"), ((2, 1 << 40), "no place for"), ((2, 4), "twice")],
)
def test_places_that_no_chunk_can_have(new: tuple[int, ...], words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(48.0).reshape(6, 8), chunks=(2, 2))
    with_key(path, (2, 2), new)
    with pytest.raises(Corrupt, match=words):
        raconvert.read(path)


@pytest.mark.parametrize("filters", [{}, {"compression": "lzf"}, {"fletcher32": True}])
def test_flipped_bits_in_the_keys_of_chunks(filters: dict[str, Any], tmp_path: Path) -> None:
    """The B-tree of old files has no checksum; no chunk gets lost, and none another place."""
    path = tmp_path / "x.h5"
    values = np.arange(1, 97, dtype="i4").reshape(8, 12)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(4, 4), **filters)
    raw = path.read_bytes()
    keys = raw.index(b"TREE\1") + 24
    outcomes = set()
    for n in range(6):
        for byte in range(8, 32):  # behind size and filter mask: the place
            for bit in (0, 2, 3, 6):
                changed = bytearray(raw)
                changed[keys + 40 * n + byte] ^= 1 << bit
                path.write_bytes(changed)
                try:
                    found = raconvert.read(path)["x"]
                except Corrupt:
                    outcomes.add("refused")
                else:
                    outcomes.add("read")
                    assert (found == values).all(), (n, byte, bit)
    assert "refused" in outcomes


# --- checksums ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 719, 720, 721, 8191, 8192, 8193, 100_001])
def test_fletcher32_is_that_of_the_library(size: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(size)
    kinds = [
        rng.integers(0, 256, size, dtype="u1"),
        np.zeros(size, "u1"),
        np.full(size, 255, "u1"),
        np.append(np.zeros(size - 1, "u1"), np.uint8(1)),
    ]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for n, data in enumerate(kinds):
            x = file.create_dataset(str(n), data=data, chunks=(size,), fletcher32=True)
            raw = x.id.read_direct_chunk((0,))[1]
            assert fletcher32(raw[:-4]) == int.from_bytes(raw[-4:], "little")
            assert checks_out(raw)
            # As libraries before 1.6.3 wrote it.
            assert checks_out(raw[:-4] + bytes((raw[-3], raw[-4], raw[-1], raw[-2])))


CHECKED = [name for name in FILTERS if "fletcher32" in name]


def checked_file(path: Path, filters: str, mask: int = 0, spoil: int | None = None) -> Values:
    """Write a dataset with checksums, one chunk of it with a filter mask or a flipped bit."""
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1000, (8, 300), dtype="i4")
    plist = property_list(np.random.default_rng(1), "S3", (4, 100), filters)
    with h5py.File(path, "w") as file:
        space = h5s.create_simple(values.shape)
        x = h5py.Dataset(h5d.create(file.id, b"x", h5t.STD_I32LE, space, plist))
        x[...] = values
        raw = bytearray(x.id.read_direct_chunk((4, 100))[1])
        if spoil is not None:
            raw[spoil % len(raw)] ^= 1
        x.id.write_direct_chunk((4, 100), bytes(raw), filter_mask=mask)
    return values


@pytest.mark.parametrize("filters", CHECKED)
@pytest.mark.parametrize("spoil", [0, 11, -1, -3])
def test_a_flipped_bit_in_a_checked_chunk(filters: str, spoil: int, tmp_path: Path) -> None:
    checked_file(tmp_path / "x.h5", filters, spoil=spoil)
    with read(tmp_path / "x.h5") as bundle:
        with pytest.raises(Corrupt) as caught:
            as_ndarray(bundle["x"])
        assert caught.value.where
        assert bundle["x"].data[:4, :].shape == (4, 300)  # the other chunks are whole


@every("filters", CHECKED)
@every("bit", [0, 1, 2])
@every("spoil", [None, 0, 11, -1])
def test_a_filter_mask_does_not_turn_checksums_off(
    filters: str, bit: int, spoil: int | None, tmp_path: Path
) -> None:
    """An index has no checksum of its own: a flipped bit in it says that a filter was skipped."""
    values = checked_file(tmp_path / "x.h5", filters, mask=1 << bit, spoil=spoil)
    try:
        found = raconvert.read(tmp_path / "x.h5")["x"]
    except Corrupt:
        return
    assert spoil is None
    assert (found == values).all()


@pytest.mark.parametrize("filters", ["fletcher32", "gzip fletcher32"])
def test_chunks_written_without_their_checksum(filters: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        gzip = {"compression": 1} if "gzip" in filters else {}
        x = file.create_dataset("x", (2, 64), "u1", chunks=(1, 64), fletcher32=True, **gzip)
        x[...] = 0
        _, raw = x.id.read_direct_chunk((0, 0))
        x.id.write_direct_chunk((0, 0), raw[:-4], filter_mask=2 if gzip else 1)
    assert not raconvert.read(tmp_path / "x.h5")["x"].any()


# --- chunks that the library decodes --------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"userblock_size": 512},
        {"libver": "latest", "maxshape": (4, None)},
        {"fletcher32": True, "userblock_size": 1024},
        {"shuffle": True, "userblock_size": 512},
        {"shuffle": True, "fletcher32": True, "userblock_size": 512},
    ],
)
def test_a_chunk_that_grows_in_the_library(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not decoded here inflates without a limit, so it is looked at first.

    Files with a user block are decoded here only with a library that counts it.
    """
    monkeypatch.setattr(direct, "COUNTS_USER_BLOCKS", (99, 0, 0))
    monkeypatch.setattr(hdf5_chunks, "LARGEST_UNCHECKED", 1 << 12)
    of_file = {key: options[key] for key in ("userblock_size", "libver") if key in options}
    rest = {key: value for key, value in options.items() if key not in of_file}
    values = np.random.default_rng(1).integers(0, 9, (4, 640), dtype="u1")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", **of_file) as file:
        file.create_dataset("x", data=values, chunks=(2, 64), compression=1, **rest)
    assert (raconvert.read(path)["x"] == values).all()
    with h5py.File(path, "r+") as file:
        bomb = zlib.compress(bytes(1 << 20))
        bomb += fletcher32(bomb).to_bytes(4, "little") if "fletcher32" in rest else b""
        file["x"].id.write_direct_chunk((2, 128), bomb)
    with read(path) as bundle, pytest.raises(Corrupt, match="inflates to more than 128 bytes"):
        as_ndarray(bundle["x"])


@pytest.mark.parametrize("size", [64, 100_000])
def test_a_checksum_that_is_there_counts_whatever_the_index_says(size: int, tmp_path: Path) -> None:
    """The index says that fletcher32 was left out, but four bytes follow the stream."""
    values = np.random.default_rng(4).integers(0, 9, size, dtype="u1")
    path = tmp_path / "x.h5"
    packed = zlib.compress(values.tobytes())
    right = fletcher32(packed).to_bytes(4, "little")
    for behind, sound in ((b"", True), (right, True), (right[:3] + bytes([right[3] ^ 1]), False)):
        with h5py.File(path, "w") as file:
            x = file.create_dataset("x", (size,), "u1", chunks=(size,), compression=1,
                                    fletcher32=True)  # fmt: skip
            x.id.write_direct_chunk((0,), packed + behind, filter_mask=2)
        if sound:
            assert (raconvert.read(path)["x"] == values).all()
            continue
        with read(path) as bundle, pytest.raises(Corrupt, match="not its checksum"):
            as_ndarray(bundle["x"])


@pytest.mark.parametrize(("count", "words"), [(11, "ended early"), (13, "longer than its dims")])
def test_pieces_that_are_not_the_array(count: int, words: str, tmp_path: Path) -> None:
    """A source that has fewer or more elements than its shape says gives no file."""

    class Source:
        shape, dtype = (4, 3), np.dtype("<i4")

        def stream(self, *_: int) -> Any:
            yield np.arange(count, dtype="<i4")

    array = Array(element("int", 4), (3, 4), name="x", data=Source)
    plan = hdf5.plan(Bundle([array]), compress="gzip", chunks="2,3")
    with Target(str(tmp_path / "x.h5")) as target, pytest.raises(Corrupt, match=words):
        plan.write(target)
    assert list(tmp_path.iterdir()) == []


# --- chunks that the library reads ----------------------------------------------------------------


class _Listed:
    """What a dataset of the library tells of its chunks, some of it wrong."""

    def __init__(self, *infos: tuple[int, int, int]) -> None:
        self._infos = infos

    def chunk_iter(self, note: Any) -> None:
        for n, (offset, size, mask) in enumerate(self._infos):
            note(
                SimpleNamespace(chunk_offset=(n,), byte_offset=offset, size=size, filter_mask=mask)
            )


def check_inflation(path: Path, nbytes: int, *infos: tuple[int, int, int], block: int = 0) -> None:
    source = Source(str(path))
    filters = (2, 1)
    chunks = hdf5_chunks.Chunks(source, source.size, (nbytes,), (nbytes,), 1, filters, b"\0")
    chunks.check_inflation(_Listed(*infos), block)  # type: ignore[arg-type]


def bomb(mib: int) -> bytes:
    """At least 32 KiB that inflate to this many MiB and no byte more."""
    stream = zlib.compressobj(9)
    return stream.compress(bytes(mib << 20)) + stream.flush()


@pytest.mark.parametrize("mask", range(4))
def test_chunks_that_were_not_deflated_are_not_inflated(mask: int, tmp_path: Path) -> None:
    """Even where their bytes would inflate; which filters were left out, its mask says."""
    content = bomb(40).ljust(50_000, b"x")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:  # an index that is not believed
        made = file.create_dataset(
            "x", (1, 50_000), "u1", chunks=(1, 50_000), maxshape=(1, None), shuffle=True,
            compression=1,
        )  # fmt: skip
        made.id.write_direct_chunk((0, 0), content, filter_mask=mask)
    if mask & 2:
        with h5py.File(path) as file:
            assert file["x"][0].tobytes() == content
        assert raconvert.read(path)["x"].tobytes() == content
    else:
        with pytest.raises(Corrupt, match="inflates to more than 50000 bytes"):
            raconvert.read(path)


def test_chunks_are_looked_at_wherever_the_library_says_that_they_are(tmp_path: Path) -> None:
    """Some leave the user block out of the place; and what ends with the file is looked at, too."""
    raw = bomb(40)
    path = tmp_path / "x"
    for before, offset, block in ((0, 0, 0), (512, 512, 512), (512, 0, 512), (1024, 512, 512)):
        path.write_bytes(bytes(before) + raw)
        with pytest.raises(Corrupt, match="inflates to more than 1000 bytes"):
            check_inflation(path, 1000, (offset, len(raw), 0), block=block)
        with pytest.raises(Corrupt, match="inflates to more than 1000 bytes"):
            check_inflation(path, 1000, (1, 1, 0), (offset, len(raw), 0), block=block)
        check_inflation(path, 1000, (offset + 1, len(raw), 0), block=block)  # beyond the end
        check_inflation(path, 1000, (offset, len(raw), 2), block=block)  # not deflated


def test_how_far_a_chunk_may_inflate(tmp_path: Path) -> None:
    """To its bytes and a checksum; also where these end with a piece of what is looked at."""
    whole = 40 << 20
    raw = bomb(40)
    path = tmp_path / "x"
    path.write_bytes(raw)
    for nbytes in (whole, whole - 4):
        check_inflation(path, nbytes, (0, len(raw), 0))
    for nbytes in (whole - 5, (32 << 20) - 4, (32 << 20) - 5, (32 << 20) - 3):
        with pytest.raises(Corrupt, match=f"inflates to more than {nbytes} bytes"):
            check_inflation(path, nbytes, (0, len(raw), 0))


def test_one_chunk_of_one_element(tmp_path: Path) -> None:
    """Arrays without axes have chunks, too, in files that the library did not write."""
    (tmp_path / "x").write_bytes(b"12" + zlib.compress(b"abcd"))
    source = Source(str(tmp_path / "x"))
    chunks = hdf5_chunks.Chunks(source, source.size, (), (), 4, (1,), b"none")
    out = np.empty((), "V4")
    chunks.fill(out, ())
    assert out.tobytes() == b"none"
    chunks.set_single(2, source.size - 2, 0)
    chunks.fill(out, ())
    assert out.tobytes() == b"abcd"
