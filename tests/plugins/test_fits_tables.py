"""Tables and compressed tiles of FITS: astropy is the oracle, funpack another one, fitsverify the judge."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import fits_table

import raconvert
from raconvert.errors import Corrupt, RaconvertError, TargetExists, TooLarge, Unsupported, WouldLose
from raconvert.testing import same

fits = pytest.importorskip("astropy.io.fits")
RNG = np.random.default_rng(8)


def verified(path: Path, tool: Callable[..., str]) -> None:
    """Ask fitsverify; any warning is an error here."""
    done = subprocess.run([tool("fitsverify"), path], capture_output=True, text=True, check=False)
    assert "0 warning(s) and 0 error(s)" in done.stdout, done.stdout


def table(rows: int = 5) -> Any:
    """A table with a column of every kind."""
    some = np.arange(rows)
    columns = [
        fits.Column("byte", "B", array=some.astype("u1")),
        fits.Column("short", "I", array=some.astype("i2") - 2),
        fits.Column("unsigned", "J", bzero=1 << 31, array=(some + (1 << 31)).astype("u4")),
        fits.Column("huge", "K", bzero=1 << 63, array=(some.astype("u8") + (1 << 63))),
        fits.Column("signed", "B", bzero=-128, array=(some - 3).astype("i1")),
        fits.Column("long", "K", array=some << 40),
        fits.Column("single", "E", unit="K", array=some / np.float32(3)),
        fits.Column("double", "D", array=some / 7),
        fits.Column("complex", "C", array=(some + 1j).astype("c8")),
        fits.Column("wide", "M", array=some - 2j),
        fits.Column("fine", "L", array=some % 2 == 0),
        fits.Column("flags", "11X", array=(some[:, None] + np.arange(11)) % 3 == 0),
        fits.Column("name", "6A", array=np.array([f"n{n}" for n in some])),
        fits.Column("vector", "3E", array=np.arange(3 * rows, dtype="f4").reshape(rows, 3)),
        fits.Column("grid", "6I", dim="(3,2)", array=np.arange(6 * rows).reshape(rows, 2, 3)),
        fits.Column("words", "8A", dim="(4,2)", array=np.array([["ab", "cdef"]] * rows)),
    ]
    return fits.BinTableHDU.from_columns(columns, name="STARS")


def test_tables_are_those_of_astropy(tmp_path: Path) -> None:
    table().writeto(tmp_path / "x.fits", checksum=True)
    theirs = fits.getdata(tmp_path / "x.fits", "STARS")

    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        assert bundle.names == ["STARS"]
        ours = np.asarray(bundle["STARS"][...])
        part = bundle["STARS"][1:4]
        assert bundle["STARS"].meta.formats["fits"]["columns"]["single"] == {"TUNIT": "K"}
    assert ours.dtype.names == tuple(theirs.names)
    for name in theirs.names:
        wanted = np.asarray(theirs[name])
        values = ours[name].astype("U") if wanted.dtype.kind == "U" else ours[name]
        assert np.array_equal(values, wanted), name
        assert np.array_equal(part[name], ours[name][1:4]), name
    assert ours["unsigned"].dtype == "u4"
    assert ours["huge"][0] == 1 << 63
    assert ours["signed"].dtype == np.int8
    assert ours["fine"].dtype == ours["flags"].dtype == np.bool_
    raconvert.convert(f"{tmp_path / 'x.fits'}#STARS", tmp_path / "x.npy")
    again = np.load(tmp_path / "x.npy")
    assert all(np.array_equal(again[name], ours[name]) for name in ours.dtype.names)


def test_missing_logical_values_are_not_made_false(tmp_path: Path) -> None:
    made = fits.BinTableHDU.from_columns([fits.Column("l", "L", array=[True, False])], name="T")
    made.writeto(tmp_path / "x.fits")
    content = (tmp_path / "x.fits").read_bytes()
    (tmp_path / "x.fits").write_bytes(content[:5760] + content[5760:].replace(b"F", b"\0"))
    with pytest.raises(Unsupported, match="neither T nor F"):
        raconvert.read(tmp_path / "x.fits")


def test_a_table_comes_back_as_it_was(tmp_path: Path, tool: Callable[..., str]) -> None:
    made = table()
    made.header["OBJECT"] = ("M 31", "what it is of")
    made.columns["short"].null = -99
    made.columns["double"].disp = "F8.3"
    made.writeto(tmp_path / "x.fits")
    report = raconvert.convert(tmp_path / "x.fits", tmp_path / "y.fits")
    assert not report.equivalent
    raconvert.convert(tmp_path / "y.fits", tmp_path / "z.npy", allow=["names"])
    verified(tmp_path / "y.fits", tool)
    with (
        fits.open(tmp_path / "x.fits") as one,
        fits.open(tmp_path / "y.fits", checksum=True) as two,
    ):
        theirs, ours = one["STARS"], two["STARS"]
        assert ours.columns.names == theirs.columns.names
        for a, b in zip(theirs.columns, ours.columns, strict=True):
            assert (a.unit, a.null, a.disp, a.bzero, a.dim) == (
                b.unit,
                b.null,
                b.disp,
                b.bzero,
                b.dim,
            )
            assert a.format.lstrip("1") == b.format.lstrip("1")
            assert np.array_equal(theirs.data[a.name], ours.data[b.name])
        assert ours.header["OBJECT"] == "M 31"
        assert ours.header.comments["OBJECT"] == "what it is of"
    assert (
        raconvert.verify(tmp_path / "y.fits", against=[tmp_path / "x.fits"])["against"]["changed"]
        == 0
    )


FIELDS = [
    "?",
    "i1",
    "u1",
    ">i2",
    "<u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f4",
    "f8",
    "c8",
    "c16",
    "S1",
    "S7",
]


@settings(max_examples=40, deadline=None)
@given(
    fields=st.lists(
        st.tuples(st.sampled_from(FIELDS), st.lists(st.integers(1, 3), max_size=3)),
        min_size=1, max_size=6,
    ),
    rows=st.integers(0, 9),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_any_structures_for_astropy(
    fields: list[tuple[str, list[int]]], rows: int, seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("fits") / "x.fits"
    dtype = np.dtype([(f"f{n}", code, tuple(shape)) for n, (code, shape) in enumerate(fields)])
    raw = np.random.default_rng(seed).integers(65, 91, rows * dtype.itemsize).astype("u1")
    values = np.zeros(rows, dtype)
    values.view("u1")[...] = raw
    for name in dtype.names:
        if dtype[name].base.kind == "b":
            values[name] = values[name].view("u1") % 2
    raconvert.write(path, {"T": values})
    with raconvert.open_bundle(path) as bundle:
        assert same(bundle["T"][...], values.astype(bundle["T"].dtype))
    with fits.open(path, checksum=True) as file:
        for name in dtype.names if rows else ():
            theirs = np.asarray(file["T"].data[name])
            wanted = values[name].astype("U") if dtype[name].base.kind == "S" else values[name]
            assert np.array_equal(theirs.reshape(wanted.shape), wanted), name


def test_structures_that_no_table_holds(tmp_path: Path) -> None:
    for descr in ([("a", "f2")], [("a", [("b", "i4")])], [("a", "<M8[s]")], [("a", "U3")],
                  [("a", "i4"), ("A", "i4")], [("ä", "i4")]):  # fmt: skip
        with pytest.raises(WouldLose, match="FITS has no columns"):
            raconvert.write(tmp_path / "x.fits", {"T": np.zeros(3, descr)})
    with pytest.raises(WouldLose, match="one axis"):
        raconvert.write(tmp_path / "x.fits", {"T": np.zeros((3, 2), [("a", "i4")])})
    assert not any(tmp_path.iterdir())


@every("form", ["PJ()", "QD()", "PA()", "PL()", "PI()", "PC()"])
def test_columns_of_variable_length(form: str, tmp_path: Path) -> None:
    """The lengths are a column, the cells an array, in the order of the rows."""
    lengths = RNG.integers(0, 5, 40)
    kind = {"J": "i4", "D": "f8", "A": "U1", "L": "?", "I": "i2", "C": "c8"}[form[1]]
    cells = np.empty(40, object)
    for n, length in enumerate(lengths):
        some = RNG.integers(65, 91, length)
        cells[n] = some.astype("u1").view("S1").astype("U1") if kind == "U1" else some.astype(kind)
    columns = [fits.Column("n", "I", array=np.arange(40)),
               fits.Column("r", form, unit="K", array=cells)]  # fmt: skip
    fits.BinTableHDU.from_columns(columns, name="T").writeto(tmp_path / "x.fits")
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        assert bundle.names == ["T", "T.r"]
        assert np.array_equal(bundle["T"][...]["r"], lengths)
        found = bundle["T.r"][...]
        whole = np.concatenate(cells)
        assert np.array_equal(found.astype("U1") if kind == "U1" else found, whole)
        assert np.array_equal(bundle["T.r"][3:20], found[3:20])
        assert bundle["T.r"].meta.units == "K"
        assert "TUNIT" not in bundle["T"].meta.formats["fits"]["columns"]["r"]
    with pytest.raises(WouldLose, match="elements"):
        raconvert.convert(f"{tmp_path / 'x.fits'}#T.r", tmp_path / "y.npy")
    raconvert.convert(f"{tmp_path / 'x.fits'}#T.r", tmp_path / "y.npy", allow=["elements"])


def heap_of(*cells: tuple[int, int], heap: bytes = bytes(40), **cards: Any) -> Any:
    """A table of descriptors as they are given."""
    data = np.array(cells, ">i4")
    made = fits.BinTableHDU.from_columns([fits.Column("r", "2J", array=data)], name="T")
    text = made.header
    text["TFORM1"], text["PCOUNT"] = "PJ(9)", len(heap)
    text.update(cards)
    primary = fits.PrimaryHDU().header.tostring().encode()
    return primary + text.tostring().encode() + (data.tobytes() + heap).ljust(2880, b"\0")


HOSTILE: dict[str, tuple[bytes, str]] = {
    "cell behind the heap": (heap_of((1, 0), (1, 40)), "outside the heap.*row 1"),
    "cell over the end": (heap_of((11, 0)), "outside the heap"),
    "cell of a negative length": (heap_of((-1, 0)), "outside the heap"),
    "cell before the heap": (heap_of((1, -4)), "outside the heap"),
    "cell of 2**31 elements": (heap_of((2**31 - 1, 0)), "outside the heap"),
    "heap inside the table": (heap_of((1, 0), (1, 0), THEAP=8), "heap is not behind"),
    "heap behind the file": (heap_of((1, 0), THEAP=1 << 40), "heap is not behind"),
    "heap at a text": (heap_of((1, 0), THEAP="x"), "heap is not behind"),
    "two descriptors in a cell": (heap_of((1, 0), TFORM1="2PJ"), "malformed|do not fill"),
    "descriptor of nothing": (heap_of((1, 0), TFORM1="P"), "malformed"),
    "cells of descriptors": (heap_of((1, 0), TFORM1="PP"), "descriptors"),
    "compressed table": (heap_of((1, 0), ZTABLE=True), "compressed table"),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_heaps_are_refused(name: str, tmp_path: Path) -> None:
    content, words = HOSTILE[name]
    (tmp_path / "x.fits").write_bytes(content)
    with pytest.raises((Corrupt, Unsupported), match=words):
        raconvert.convert(tmp_path / "x.fits", tmp_path / "x.npz")
    assert [one.name for one in tmp_path.iterdir()] == ["x.fits"]


def test_cells_of_one_place_have_a_limit(tmp_path: Path) -> None:
    (tmp_path / "x.fits").write_bytes(heap_of(*[(10, 0)] * 300))
    raconvert.convert(tmp_path / "x.fits", tmp_path / "x.npz")
    from raconvert.files.limits import Limits
    from raconvert.files.source import Source
    from raconvert.registry import by_name, load

    source = Source(str(tmp_path / "x.fits"), limits=Limits(memory=1000, expansion_ratio=2))
    with pytest.raises(TooLarge, match="again and again"):
        load(by_name("fits")).read(source).arrays[0].data  # noqa: B018


def test_columns_of_no_width_are_named(tmp_path: Path) -> None:
    columns = [
        fits.Column("a", "J", array=[1, 2]),
        fits.Column("none", "0D", array=np.zeros((2, 0))),
    ]
    fits.BinTableHDU.from_columns(columns, name="T").writeto(tmp_path / "x.fits")
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        assert bundle["T"][...]["a"].tolist() == [1, 2]
        assert "array 'T': columns of no width are left out: none" in bundle.notes


def test_tables_of_characters(tmp_path: Path) -> None:
    columns = [fits.Column("n", "I6", array=[1, -20, 300]),
               fits.Column("x", "E15.7", unit="m", array=[1.5, -2e10, 1e-5]),
               fits.Column("y", "D25.17", array=[0.1, 1 / 3, -7e-100]),
               fits.Column("f", "F8.3", array=[0.125, -1.5, 99.0]),
               fits.Column("s", "A5", array=["ab", "c d", "xyz12"])]  # fmt: skip
    fits.TableHDU.from_columns(columns, name="T").writeto(tmp_path / "x.fits")
    theirs = fits.getdata(tmp_path / "x.fits", "T")
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        ours = bundle["T"][...]
        assert bundle["T"].meta.formats["fits"]["columns"]["x"]["TUNIT"] == "m"
    for name in theirs.names:
        values = ours[name].astype("U") if name == "s" else ours[name]
        assert np.array_equal(values, np.asarray(theirs[name])), name
    report = raconvert.convert(tmp_path / "x.fits", tmp_path / "y.fits")
    assert "fits kind" in "\n".join(map(str, report.equivalent))
    content = (tmp_path / "x.fits").read_bytes()
    for old, new, words in ((b"   -20", b"      ", "without a number"), (b"   -20", b" --  2", "without a number"),
                            (b"'I6      '", b"'I60     '", "outside the rows"),
                            (b"E+10", b"E399", "64 bits"), (b"D-100", b"D+999", "64 bits"),
                            (b"'I6      '", b"'Q6      '", "malformed")):  # fmt: skip
        assert content.count(old) == 1, old
        (tmp_path / "x.fits").write_bytes(content.replace(old, new))
        with pytest.raises(RaconvertError, match=words):
            raconvert.read(tmp_path / "x.fits")


# Compressed tiles ---------------------------------------------------------------------------------


def tiles(method: str, kind: str, **more: Any) -> tuple[np.ndarray, Any]:
    values = RNG.integers(0, 900, (33, 47)).astype(kind)
    if kind[0] == "f":
        values = (values / 7).astype(kind)
    return values, fits.CompImageHDU(values, name="T", compression_type=method, **more)


@every("method", ["RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1", "PLIO_1"])
@every("kind", ["u1", "i2", "u2", "i4", "f4", "f8"])
def test_tiles_are_those_of_astropy_and_funpack(
    method: str, kind: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    if method == "PLIO_1" and kind != "i2":
        return  # it has only masks
    if method == "HCOMPRESS_1" and kind not in ("i4", "f4"):
        return  # each region takes a process
    _, made = tiles(method, kind)
    made.header["OBJECT"] = "M 31"
    made.writeto(tmp_path / "x.fits.fz")
    theirs = fits.getdata(tmp_path / "x.fits.fz", "T")
    subprocess.run([tool("funpack"), "-O", tmp_path / "u.fits", tmp_path / "x.fits.fz"], check=True)
    unpacked = fits.getdata(tmp_path / "u.fits", "T")
    with raconvert.open_bundle(tmp_path / "x.fits.fz") as bundle:
        array = bundle["T"]
        assert array.dtype.newbyteorder("=") == np.dtype(kind)
        assert np.array_equal(array[...], theirs)
        assert np.array_equal(array[...], unpacked)
        keys = (np.s_[2:30:7, ::-3], np.s_[5], np.s_[-1, 3], np.s_[..., 40:], np.s_[4:4])
        for key in keys[: 1 if method == "HCOMPRESS_1" else 5]:
            assert np.array_equal(array[key], theirs[key])
        assert dict(array.meta.attributes) == {"OBJECT": "M 31"}
    raconvert.convert(f"{tmp_path / 'x.fits.fz'}#T", tmp_path / "y.fits")
    assert np.array_equal(fits.getdata(tmp_path / "y.fits"), theirs)


@every("shape", [(33, 47), (1, 47), (10, 9), (33, 1), (40, 60)])
def test_tiles_of_any_size(shape: tuple[int, int], tmp_path: Path) -> None:
    values, made = tiles("GZIP_2", "i4", tile_shape=shape)
    made.writeto(tmp_path / "x.fits")
    with raconvert.open_bundle(tmp_path / "x.fits", max_memory=20_000) as bundle:
        assert np.array_equal(np.concatenate([*bundle["T"].data.stream(1000)]), values.ravel())
        assert np.array_equal(bundle["T"][7:20, 30:], values[7:20, 30:])


def test_damaged_tiles_are_an_error_of_ours(tmp_path: Path) -> None:
    """In a process of its own: compiled code of astropy reads them."""
    program = tmp_path / "read.py"
    program.write_text(
        "import sys, raconvert\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        raconvert.read(path + '#T')\n"
        "        print('read')\n"
        "    except raconvert.RaconvertError as error:\n"
        "        print(type(error).__name__)\n"
    )
    paths = []
    for method in ("RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1"):
        _, made = tiles(method, "i4")
        made.writeto(tmp_path / "x.fits", overwrite=True)
        content = (tmp_path / "x.fits").read_bytes()
        begin = content.index(b"END     ", 2880) // 2880 * 2880 + 2880
        for n in range(12):
            data = bytearray(content)
            for at in RNG.integers(begin, begin + 33 * 8 + 2000, 1 + n):
                data[at] = int(RNG.integers(256))
            paths.append(tmp_path / f"{method}{n}.fits")
            paths[-1].write_bytes(data)
    done = subprocess.run(
        [sys.executable, program, *paths], capture_output=True, text=True, check=False, timeout=120
    )
    words = done.stdout.split()
    assert done.returncode == 0, done.stderr[-800:]
    assert len(words) == len(paths)
    assert set(words) <= {"read", "Corrupt", "TooLarge", "Unsupported"}
    assert "Corrupt" in words


def test_a_tile_that_becomes_far_more_is_refused(tmp_path: Path) -> None:
    """A quarter of a gigabyte from a tile of ten elements."""
    bomb = gzip.compress(bytes(1 << 28))
    lines = ("ZIMAGE  = T", "ZCMPTYPE= 'GZIP_1'", "ZBITPIX = 8", "ZNAXIS  = 1", "ZNAXIS1 = 10",
             "ZTILE1  = 10", "TFIELDS = 1", "TTYPE1  = 'COMPRESSED_DATA'",
             f"TFORM1  = 'PB({len(bomb)})'")  # fmt: skip
    data = np.array([len(bomb), 0], ">i4").tobytes() + bomb
    head = fits_table(8, 1, len(bomb), *lines)
    (tmp_path / "x.fits").write_bytes(head + data.ljust(-(-len(data) // 2880) * 2880, b"\0"))
    tracemalloc.start()
    with pytest.raises(Corrupt, match="more bytes than it can have"):
        raconvert.read(f"{tmp_path / 'x.fits'}#HDU1")
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


HOSTILE_TILES: dict[str, tuple[dict[str, Any], str]] = {
    "image of a zettabyte": ({"ZNAXIS1": 1 << 60}, "impossible sizes|a row for|more elements"),
    "other number of tiles": ({"ZNAXIS2": 34}, "a row for each tile"),
    "tile of nothing": ({"ZTILE1": 0}, "impossible sizes"),
    "rows of no bytes": ({"NAXIS1": 0}, "do not fill the rows"),
    "rows shorter than a column": ({"NAXIS1": 4}, "do not fill the rows"),
    "tile of a negative size": ({"ZTILE1": -1}, "ZTILE1"),
    "tile of a text": ({"ZTILE1": "x"}, "ZTILE1"),
    "no axes": ({"ZNAXIS": 0}, "ZNAXIS"),
    "very many axes": ({"ZNAXIS": 999}, "ZNAXIS"),
    "no type": ({"ZBITPIX": 7}, "ZBITPIX"),
    "elements of a gigabyte": ({"ZVAL2": 1_000_000_000}, "BYTEPIX"),
    "elements of 8 bytes": ({"ZVAL2": 8}, "BYTEPIX"),
    "elements of a negative width": ({"ZVAL2": -1}, "BYTEPIX"),
    "blocks of nothing": ({"ZVAL1": 0}, "BLOCKSIZE"),
    "blocks of very many": ({"ZVAL1": 1 << 40}, "BLOCKSIZE"),
    "floats without a scale": ({"ZBITPIX": -64}, "without a scale"),
    "another method": ({"ZCMPTYPE": "JPEG"}, "compressed by 'JPEG'"),
    "no method": ({"ZCMPTYPE": 7}, "compressed by"),
}  # fmt: skip


@every("name", HOSTILE_TILES)
def test_hostile_tiles_are_refused(name: str, tmp_path: Path) -> None:
    cards, words = HOSTILE_TILES[name]
    tiles("RICE_1", "i4")[1].writeto(tmp_path / "x.fits")
    content = (tmp_path / "x.fits").read_bytes()
    for key, value in cards.items():
        at = content.index(f"{key:8}=".encode())
        word = f"'{value}'" if isinstance(value, str) else str(value)
        content = content[:at] + f"{key:8}= {word:>20}".ljust(80).encode() + content[at + 80 :]
    (tmp_path / "x.fits").write_bytes(content)
    with pytest.raises(RaconvertError, match=words):
        raconvert.convert(f"{tmp_path / 'x.fits'}#T", tmp_path / "x.npy")
    assert [one.name for one in tmp_path.iterdir()] == ["x.fits"]


def test_astropy_that_is_missing_names_its_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiles("RICE_1", "i4")[1].writeto(tmp_path / "x.fits")
    monkeypatch.setitem(sys.modules, "astropy.io", None)
    with pytest.raises(raconvert.MissingDependency, match=r"raconvert\[fits\]"):
        raconvert.read(f"{tmp_path / 'x.fits'}#T")


# Adding -------------------------------------------------------------------------------------------


def test_adding_leaves_all_other_bytes(tmp_path: Path, tool: Callable[..., str]) -> None:
    path = tmp_path / "x.fits"
    hdus = [fits.PrimaryHDU(np.arange(6, dtype="i2")), table(), tiles("RICE_1", "i4")[1],
            fits.ImageHDU(np.ones((2, 2), "f4"), name="SCI", ver=2), fits.ImageHDU(name="ONLY")]  # fmt: skip
    fits.HDUList(hdus).writeto(path, checksum=True)
    before = path.read_bytes()
    np.save(tmp_path / "a.npy", np.arange(5, dtype="u2"))
    np.save(tmp_path / "t.npy", np.zeros(4, [("a", "i4"), ("b", "S3")]))
    raconvert.convert(tmp_path / "a.npy", f"{path}#NEW")
    assert path.read_bytes().startswith(before)
    raconvert.convert(tmp_path / "t.npy", f"{path}#ROWS,3")
    for name, kind in (("SCI,2", TargetExists), ("ONLY", TargetExists), ("STARS", TargetExists)):
        with pytest.raises(kind):
            raconvert.convert(tmp_path / "a.npy", f"{path}#{name}")
    raconvert.convert(tmp_path / "a.npy", f"{path}#SCI,2", overwrite=True)
    raconvert.convert(tmp_path / "a.npy", f"{path}#PRIMARY", overwrite=True)
    with pytest.raises(Unsupported, match="no table can replace"):
        raconvert.convert(tmp_path / "t.npy", f"{path}#PRIMARY", overwrite=True)
    with pytest.raises(TargetExists):
        raconvert.convert(tmp_path / "a.npy", f"{path}#ONLY", overwrite=True)
    verified(path, tool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fits.open(path, checksum=True) as file:
            names = [(hdu.name, hdu.ver) for hdu in file]
            assert names == [("PRIMARY", 1), ("STARS", 1), ("T", 1), ("SCI", 2), ("ONLY", 1),
                             ("NEW", 1), ("ROWS", 3)]  # fmt: skip
            assert np.array_equal(file["SCI", 2].data, np.arange(5))
            assert np.array_equal(file["NEW"].data, np.arange(5))
    at = before.index(b"XTENSION= 'BINTABLE'")
    end = before.index(b"XTENSION= 'IMAGE   '")
    assert before[at:end] in path.read_bytes()


def test_every_hdu_of_a_file_comes_back(tmp_path: Path, tool: Callable[..., str]) -> None:
    primary = fits.PrimaryHDU(np.arange(6, dtype="u4").reshape(2, 3))
    empty = fits.ImageHDU(name="INFO")
    empty.header["AUTHOR"] = "somebody"
    fits.HDUList(
        [primary, fits.ImageHDU(np.ones(3, "f8"), name="SCI", ver=2), empty, table()]
    ).writeto(tmp_path / "x.fits")
    report = raconvert.convert(tmp_path / "x.fits", tmp_path / "y.fits")
    assert not report.equivalent
    verified(tmp_path / "y.fits", tool)
    with fits.open(tmp_path / "y.fits") as file:
        assert [(hdu.name, hdu.ver) for hdu in file] == [
            ("PRIMARY", 1), ("SCI", 2), ("STARS", 1), ("INFO", 1)]  # fmt: skip
        assert np.array_equal(file[0].data, primary.data)
        assert file["INFO"].header["AUTHOR"] == "somebody"
    raconvert.verify(tmp_path / "y.fits", against=[tmp_path / "x.fits"])


def test_cards_that_are_no_plain_values_come_back(tmp_path: Path) -> None:
    lines = ["SIMPLE  =                    T", "BITPIX  = 8", "NAXIS   = 1", "NAXIS1  = 3",
             "UNDEF   =  / nobody knows", "CPLX    = (1.0, -2.5) / two numbers",
             "NOVALUE without an equals sign", "        blank", "COMMENT told",
             "GAIN    =              1.5E+02 / electrons", "GAIN    = 7", "FLAG    = T/yes",
             "EXPO    =               1.25D3", "END"]  # fmt: skip
    text = "".join(line.ljust(80) for line in lines).encode().ljust(2880)
    (tmp_path / "x.fits").write_bytes(text + bytes(2880))
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        meta = bundle.arrays[0].meta
        assert any("more than once" in note and "GAIN" in note for note in bundle.notes)
    assert dict(meta.attributes) == {
        "UNDEF": None, "CPLX": "(1.0, -2.5)", "NOVALUE": "without an equals sign".rjust(22),
        "BLANK CARDS": "blank", "COMMENT": "told", "GAIN": 150.0, "FLAG": True, "EXPO": 1250.0,
    }  # fmt: skip
    for source, copy in (("x.fits", "y.fits"), ("y.fits", "z.fits")):
        assert not raconvert.convert(tmp_path / source, tmp_path / copy).equivalent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the card that is not one of a keyword
        header = fits.getheader(tmp_path / "z.fits")
        theirs = fits.getheader(tmp_path / "x.fits")
        text = header.tostring()
    assert header["UNDEF"] is None
    assert header["CPLX"] == 1 - 2.5j
    assert header.comments["CPLX"] == "two numbers"
    assert header.comments["GAIN"] == "electrons"
    assert header["GAIN"] == 150
    assert str(header["COMMENT"]) == str(theirs["COMMENT"])
    assert "NOVALUE without an equals sign" in text


@every("name", ["images.fits", "tables.fits", "tiles.fits.fz"])
def test_fixtures_are_read_as_by_astropy(name: str) -> None:
    path = Path(__file__).resolve().parents[2] / "fixtures" / "fits" / name
    with fits.open(path) as file, raconvert.open_bundle(path) as bundle:
        theirs = {hdu.name: hdu for hdu in file if hdu.data is not None}
        for array in bundle.arrays:
            hdu = theirs.get(array.name.partition(",")[0])
            if hdu is None:
                assert array.name == "ROWS.cells"
                assert array[...].tolist() == [0, 0, 3]
            elif array.dtype.names is None:
                assert np.array_equal(array[...], hdu.data)
            else:
                rows = array[...]
                for column in array.dtype.names:
                    if column != "cells":
                        wanted = np.asarray(hdu.data[column])
                        found = (
                            rows[column].astype("U") if wanted.dtype.kind == "U" else rows[column]
                        )
                        assert np.array_equal(found, wanted), column
    raconvert.verify(path)
