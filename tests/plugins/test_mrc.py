"""What is special to MRC: mrcfile is the oracle for fields and values, SimpleITK for places."""

from __future__ import annotations

import io
import struct
import warnings
from pathlib import Path
from typing import Any

import mrcfile
import numpy as np
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import Pairs, little, nothing_said

import raconvert
from raconvert import Axis, Metadata, Space
from raconvert.errors import Corrupt, RaconvertError, Unsupported, WouldLose

TYPES = ("i1", "i2", "u2", "f2", "f4", "c8")


def load(path: Path) -> np.ndarray:
    with mrcfile.open(path) as file:
        return little(np.asarray(file.data))


def save(path: Path, values: np.ndarray, **fields: Any) -> None:
    """Write by mrcfile; `fields` of the header, of which `extended` is the extended header."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of complex numbers that are not finite
        with mrcfile.new(path, overwrite=True) as file:
            file.set_data(values)
            if "extended" in fields:
                file.set_extended_header(np.frombuffer(fields.pop("extended"), "V1"))
            if "voxel" in fields:
                file.voxel_size = fields.pop("voxel")
            for name, value in fields.items():
                setattr(file.header, name, value)


IN_PAIRS = (
    Pairs(
        name="mrc",
        suffix=".mrc",
        read=load,
        write=save,
        can_write=lambda values: (
            values.dtype.str[1:] in TYPES and values.ndim in (2, 3, 4) and values.size > 0
        ),
        order="C",
        guest=True,
        usual="float32",
        says_more=True,  # a label with the date
        types="= int8 int16 int16_big uint16 uint16_big float16 float32 float32_big complex64 x *",
        shapes="= * ~ () 5 x 0 4,0 0,4 2,0,3 3,0,2",
        said=nothing_said,
    ),
)  # fmt: skip


def said(report: Any) -> str:
    """All that a report names."""
    return "\n".join(map(str, report.equivalent))


def is_valid(path: Path) -> bool:
    with io.StringIO() as said:
        fine = mrcfile.validate(path, print_file=said)
        assert fine, said.getvalue()
        return fine


@every("kind", TYPES)
@every("shape", [(3, 4), (2, 3, 5), (2, 3, 4, 5)])
def test_both_ways_with_mrcfile(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    values = (np.arange(np.prod(shape)) % 11 - 7).astype(kind).reshape(shape)
    save(tmp_path / "theirs.mrc", values)

    with raconvert.open(tmp_path / "theirs.mrc") as array:
        assert array.extent is not None
        assert array.dtype == values.dtype
        assert np.array_equal(array[...], values)
        assert np.array_equal(array[..., 1:3], values[..., 1:3])
    raconvert.convert(
        tmp_path / "theirs.mrc", tmp_path / "ours.mrc", out_opts={"statistics": "yes"}
    )
    assert is_valid(tmp_path / "ours.mrc")
    assert np.array_equal(load(tmp_path / "ours.mrc"), values)
    raconvert.write(tmp_path / "plain.mrc", values)
    assert is_valid(tmp_path / "plain.mrc")
    assert np.array_equal(load(tmp_path / "plain.mrc"), values)


def test_kinds_are_those_of_mrcfile(tmp_path: Path) -> None:
    values = np.arange(24, dtype="f4").reshape(2, 3, 4)
    raconvert.write(tmp_path / "x.mrc", values, out_opts={"kind": "stack"})
    with mrcfile.open(tmp_path / "x.mrc") as file:
        assert file.is_image_stack()
        assert file.header.mz == 1
    raconvert.convert(tmp_path / "x.mrc", tmp_path / "again.mrc")
    with mrcfile.open(tmp_path / "again.mrc") as file:
        assert file.is_image_stack()
    raconvert.convert(tmp_path / "x.mrc", tmp_path / "volume.mrc", out_opts={"kind": "volume"})
    with mrcfile.open(tmp_path / "volume.mrc") as file:
        assert file.is_volume()
    for shape in ((2, 3), (2, 3, 4, 5)):
        raconvert.write(tmp_path / "y.mrc", np.zeros(shape, "f4"), overwrite=True)
        with mrcfile.open(tmp_path / "y.mrc") as file:
            assert (file.is_single_image(), file.is_volume_stack()) == (
                len(shape) == 2, len(shape) == 4,
            )  # fmt: skip
            assert file.data.shape == shape


def positions(meta: Metadata, index: tuple[int, ...]) -> list[float]:
    """Where an element lies, by the vectors of the axes."""
    at = np.array(meta.space.origin)
    for k, axis in zip(index, meta.axes, strict=True):
        at = at + k * np.array(axis.vector)
    return at.tolist()


def test_a_place_is_that_of_itk(tmp_path: Path) -> None:
    SimpleITK = pytest.importorskip("SimpleITK")
    save(tmp_path / "x.mrc", np.zeros((2, 3, 4), "f4"), voxel=(1.1, 2, 3), origin=(-5.3, 6, 7))
    seen = SimpleITK.ReadImage(str(tmp_path / "x.mrc"))

    with raconvert.open(tmp_path / "x.mrc") as array:
        meta = array.meta
    assert [axis.spacing for axis in meta.axes] == [3, 2, 1.1]
    assert {axis.units for axis in meta.axes} == {"angstrom"}
    assert meta.space == Space(None, (-5.3, 6.0, 7.0))
    for index in np.ndindex(2, 3, 4):
        theirs = seen.TransformIndexToPhysicalPoint([*index[::-1]])
        assert np.allclose(positions(meta, index), theirs, rtol=1e-6)

    # Written from a place in LPS; from RAS, too, where that is the same place.
    for frame, sign in (("LPS", 1), ("RAS", -1)):
        axes = [Axis(spacing=0.5, units="nm", direction=(0, 0, 1)),
                Axis(spacing=0.2, units="nm", direction=(0, sign, 0)),
                Axis(spacing=0.3, units="nm", direction=(sign, 0, 0))]  # fmt: skip
        meta = Metadata(axes=axes, space=Space(frame, (1.0 * sign, -2.5 * sign, 3.0)))
        report = raconvert.write(
            tmp_path / "y.mrc", np.zeros((2, 3, 4), "f4"), meta=meta, overwrite=True
        )
        seen = SimpleITK.ReadImage(str(tmp_path / "y.mrc"))
        assert np.allclose(seen.GetSpacing(), (3, 2, 5))
        assert np.allclose(seen.GetOrigin(), (10, -25, 30))
        assert f"frame of the space ({frame}" in said(report)
        assert "units nm: written as angstrom" in said(report)


def test_directions_that_no_cell_has_are_named_and_spacings_kept(tmp_path: Path) -> None:
    axes = [Axis(spacing=2.0, direction=(0, 1, 0), units="angstrom"),
            Axis(spacing=3.0, direction=(-1, 0, 0), units="angstrom")]  # fmt: skip
    meta = Metadata(axes=axes, space=Space(None, (1.0, 2.0, 3.0)))
    report = raconvert.write(tmp_path / "x.mrc", np.zeros((2, 3), "f4"), meta=meta)

    assert "space (no cell of MRC has such directions)" in said(report)
    with mrcfile.open(tmp_path / "x.mrc") as file:
        assert (file.voxel_size.x, file.voxel_size.y) == (3, 2)
        assert file.header.origin.x == 0


@every("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_mapc_gives_directions_and_comes_back(order: tuple[int, ...], tmp_path: Path) -> None:
    save(tmp_path / "x.mrc", np.zeros((2, 3, 4), "i2"))
    data = bytearray((tmp_path / "x.mrc").read_bytes())
    size = [0, 0, 0]
    for at, length in zip(order, (4, 3, 2), strict=True):
        size[at - 1] = length
    cell = [n * step for n, step in zip(size, (1.5, 2.0, 4.0), strict=True)]
    struct.pack_into("<3i3i", data, 16, 7, -8, 9, *size)
    struct.pack_into("<3f", data, 40, *cell)
    struct.pack_into("<3i", data, 64, *order)
    (tmp_path / "x.mrc").write_bytes(data)

    with raconvert.open(tmp_path / "x.mrc") as array:
        meta = array.meta
    unit = np.diag([1.5, 2.0, 4.0])
    assert [axis.vector for axis in meta.axes[::-1]] == [tuple(unit[at - 1]) for at in order]
    start = dict(zip(order, (7, -8, 9), strict=True))  # of the axis X, Y, Z
    assert meta.space.origin == (1.5 * start[1], 2.0 * start[2], 4.0 * start[3])
    raconvert.convert(tmp_path / "x.mrc", tmp_path / "y.mrc")
    assert (tmp_path / "y.mrc").read_bytes()[16:76] == bytes(data[16:76])
    # A part lies elsewhere: then it is ORIGIN that says so.
    raconvert.convert(tmp_path / "x.mrc", tmp_path / "part.mrc", slice="1:,:,1:")
    with raconvert.open(tmp_path / "part.mrc") as part:
        assert part.meta.space.origin == tuple(positions(meta, (1, 0, 1)))
    with mrcfile.open(tmp_path / "part.mrc") as file:
        assert (file.header.nxstart, file.header.mapc) == (0, order[0])


def test_a_cell_that_is_not_right_angled(tmp_path: Path) -> None:
    save(tmp_path / "x.mrc", np.zeros((2, 3, 4), "i2"), voxel=(1, 2, 3), ispg=4)
    with mrcfile.open(tmp_path / "x.mrc", "r+") as file:
        file.header.cellb.alpha, file.header.cellb.beta, file.header.cellb.gamma = 80, 100, 60
    with raconvert.open(tmp_path / "x.mrc") as array:
        c, b, a = (np.array(axis.vector) for axis in array.meta.axes)

    def angle(v: np.ndarray, w: np.ndarray) -> float:
        return float(np.degrees(np.arccos(v @ w / np.linalg.norm(v) / np.linalg.norm(w))))

    assert np.allclose([angle(b, c), angle(a, c), angle(a, b)], [80, 100, 60])
    assert np.allclose([np.linalg.norm(v) for v in (a, b, c)], [1, 2, 3])
    raconvert.convert(tmp_path / "x.mrc", tmp_path / "x.ra", meta="sidecar")
    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.mrc")
    first, second = ((tmp_path / name).read_bytes() for name in ("x.mrc", "y.mrc"))
    assert first[16:76] == second[16:76]
    assert first[88:92] == second[88:92]  # ISPG


@every("order", "<>")
def test_the_extended_header_stays_byte_for_byte(order: str, tmp_path: Path) -> None:
    values, extended = np.arange(12, dtype="i2").reshape(3, 4), bytes(range(256)) * 3
    save(tmp_path / "x.mrc", values.astype(order + "i2"), extended=extended, exttyp=b"FEI1")
    raconvert.convert(tmp_path / "x.mrc", tmp_path / "x.ra", meta="sidecar")
    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.mrc")

    assert is_valid(tmp_path / "y.mrc")
    with mrcfile.open(tmp_path / "y.mrc") as file:
        assert file.header.nsymbt == len(extended)
        assert file.header.exttyp == b"FEI1"
        assert file.extended_header.tobytes() == extended
        assert np.array_equal(file.data, values)
        assert file.data.dtype == np.dtype(order + "i2")  # the numbers of the header stay readable


def test_labels_are_the_description_and_no_date_is_written(tmp_path: Path) -> None:
    meta = Metadata("first line\nsecond line")
    for name in ("x.mrc", "y.mrc"):
        raconvert.write(tmp_path / name, np.zeros((2, 3), "i1"), meta=meta)
    assert (tmp_path / "x.mrc").read_bytes() == (tmp_path / "y.mrc").read_bytes()
    with mrcfile.open(tmp_path / "x.mrc") as file:
        assert file.get_labels() == ["first line", "second line"]
    with raconvert.open(tmp_path / "x.mrc") as array:
        assert array.meta.description == meta.description
    for text in ("x" * 81, "\n".join("abcdefghijk"), "größer", "a\n\nb"):
        report = raconvert.write(
            tmp_path / "z.mrc", np.zeros((2, 3), "i1"), meta=Metadata(text), overwrite=True
        )
        assert "description" in said(report)


@every("nx", [1, 4, 5])
def test_four_bits_are_unpacked(nx: int, tmp_path: Path) -> None:
    values = np.random.default_rng(nx).integers(0, 16, (3, 4, nx), "u1")
    save(tmp_path / "x.mrc", values.astype("i1"))
    data = bytearray((tmp_path / "x.mrc").read_bytes()[:1024])
    struct.pack_into("<i", data, 12, 101)
    padded = np.pad(values, ((0, 0), (0, 0), (0, nx % 2)))
    (tmp_path / "x.mrc").write_bytes(data + (padded[..., ::2] | padded[..., 1::2] << 4).tobytes())

    with raconvert.open(tmp_path / "x.mrc") as array:
        assert array.dtype == np.uint8
        assert np.array_equal(array[...], values)
        assert np.array_equal(array[1:, 2], values[1:, 2])
    raconvert.convert(tmp_path / "x.mrc", tmp_path / "x.npy", max_memory=1 << 20)
    assert np.array_equal(np.load(tmp_path / "x.npy"), values)
    with pytest.raises(WouldLose, match="uint8"):
        raconvert.convert(tmp_path / "x.npy", tmp_path / "y.mrc")
    raconvert.convert(tmp_path / "x.npy", tmp_path / "y.mrc", dtype="uint16")
    assert np.array_equal(load(tmp_path / "y.mrc"), values)


def changed(path: Path, *changes: tuple[int, bytes], extra: int = 0) -> Path:
    """A file with bytes at some offsets changed, and shorter or longer."""
    save(path, np.arange(12, dtype="i1").reshape(3, 4) - 3)
    data = bytearray(path.read_bytes())
    for at, piece in changes:
        data[at : at + len(piece)] = piece
    path.write_bytes(data[:extra] if extra < 0 else data + bytes(extra))
    return path


def word(number: int) -> bytes:
    return struct.pack("<i", number)


def test_unsigned_bytes_of_imod(tmp_path: Path) -> None:
    stamp = (152, word(1146047817))
    with raconvert.open_bundle(changed(tmp_path / "x.mrc", stamp)) as bundle:
        assert bundle.arrays[0].dtype == np.uint8
        assert any("unsigned" in note for note in bundle.notes)
    assert raconvert.read(changed(tmp_path / "y.mrc", stamp, (156, word(1)))).dtype == np.int8
    with pytest.raises(Unsupported, match="4 bits"):
        raconvert.read(changed(tmp_path / "z.mrc", stamp, (156, word(16))))


@every("stamp", [b"\0\0\0\0", b"\x11\x11\0\0", b"DA\0\0", b"\x44\x41\0\0"])
def test_broken_machine_stamps(stamp: bytes, tmp_path: Path) -> None:
    path = changed(tmp_path / "x.mrc", (212, stamp))
    with raconvert.open_bundle(path) as bundle:
        assert np.array_equal(bundle.arrays[0], np.arange(12).reshape(3, 4) - 3)
        assert any("machine stamp" in note for note in bundle.notes) == (stamp[:1] != b"D")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with mrcfile.open(path, permissive=True) as file:
            assert stamp[:1] == b"\x11" or file.data.shape == (3, 4)


# What is wrong with a file -> (the changes, how much longer it is, words of the error)
HOSTILE: dict[str, tuple[tuple[tuple[int, bytes], ...], int, str]] = {
    "no columns": (((0, word(0)),), 0, "sizes"),
    "negative rows": (((4, word(-3)),), 0, "sizes"),
    "negative sections": (((8, word(-1)),), 0, "sizes"),
    "columns of 2**31 - 1": (((0, word((1 << 31) - 1)),), 0, "cut off"),
    "all sizes of 2**31 - 1": (((0, word((1 << 31) - 1) * 3),), 0, "cut off"),
    "mode of complex int16": (((12, word(3)),), 0, "complex numbers of two int16"),
    "mode of RGB": (((12, word(16)),), 0, "RGB"),
    "mode of nothing": (((12, word(5)),), 0, "mode"),
    "negative mode": (((12, word(-1)),), 0, "mode"),
    "negative extended header": (((92, word(-4)),), 0, "negative length"),
    "extended header beyond the end": (((92, word(1 << 30)),), 0, "cut off"),
    "extended header of 2**31 - 1": (((92, word((1 << 31) - 1)),), 0, "cut off"),
    "one byte less": ((), -1, "cut off"),
    "no data": ((), -12, "cut off"),
    "half a header": ((), -600, "ends inside the header"),
    "wider than it is long": (((12, word(2)),), 0, "cut off"),
    "negative mode of the other order": (((12, word(-1)[::-1]),), 0, "mode"),
    "no sections": (((8, word(0)),), 0, "sizes"),
    "volume stack of 2**62 elements": (
        ((0, word((1 << 31) - 1) * 2), (88, word(401))),
        0,
        "cut off",
    ),
    "extended header up to the end": (((92, word(12)),), 0, "cut off"),
    "sizes of text": (((0, b"ABCDEFGHIJKL"),), 0, "cut off"),
    "nothing but zeros": (((0, bytes(224)),), 0, "sizes"),
    "packed and too short": (((12, word(101)), (8, word(3))), 0, "cut off"),
}


@every("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    changes, extra, words = HOSTILE[name]
    with pytest.raises((Corrupt, Unsupported), match=words) as caught:
        raconvert.info(changed(tmp_path / "x.mrc", *changes, extra=extra), from_="mrc")
    assert "x.mrc" in str(caught.value)


NAN = struct.pack("<f", float("nan"))
ODD = {  # headers that say nonsense of what is not needed to read the values
    "intervals of 0": ((28, bytes(12)),),
    "negative intervals": ((28, word(-4) * 3),),
    "cell of NaN": ((40, NAN * 3),),
    "angles of NaN": ((40, struct.pack("<6f", *[1.0] * 3, *[float("nan")] * 3)),),
    "angles of no cell": ((40, struct.pack("<6f", 1, 1, 1, 10, 10, 170)),),
    "axes 1 1 1": ((64, word(1) * 3),),
    "origin of infinity": ((40, struct.pack("<3f", 1, 1, 1)),
                           (196, struct.pack("<3f", *[float("inf")] * 3))),
    "a million labels": ((220, word(1_000_000)),),
    "minus one label": ((220, word(-1)),),
    "labels of 0xff": ((220, word(10)), (224, b"\xff" * 800)),
    "volumes of no sections": ((88, word(401)), (36, word(0))),
    "volumes of sections that do not divide": ((88, word(401)), (36, word(7))),
    "an unknown space group": ((88, word(-5)),),
    "an extended header of a strange type": ((104, b"\0\xff\n\x1b"),),
}  # fmt: skip


@every("name", ODD)
def test_odd_headers_give_the_values(name: str, tmp_path: Path) -> None:
    path = changed(tmp_path / "x.mrc", *ODD[name])
    values = np.asarray(raconvert.read(path))
    assert np.array_equal(values.reshape(3, 4), np.arange(12).reshape(3, 4) - 3)
    raconvert.convert(path, tmp_path / "y.mrc")
    assert is_valid(tmp_path / "y.mrc")
    assert np.array_equal(raconvert.read(tmp_path / "y.mrc"), values)


def test_namespace_made_by_anybody(tmp_path: Path) -> None:
    strange = {
        "place": {"map": "x"}, "extended": "no hex", "extra": 5, "exttyp": 7, "ispg": "P1",
        "byteorder": [], "kind": 3, "more": 1,
    }  # fmt: skip
    meta = Metadata(formats={"mrc": strange})
    report = raconvert.write(tmp_path / "x.mrc", np.zeros((2, 3, 4), "f4"), meta=meta)
    for name in ("place", "extended", "extra", "more"):
        assert f"mrc {name}" in said(report)
    assert is_valid(tmp_path / "x.mrc")


def test_digits_that_are_lost_are_named(tmp_path: Path) -> None:
    for spacing, named in ((0.1, False), (1 / 3, True)):
        axes = [
            Axis(spacing=spacing, units="angstrom", direction=d) for d in ((0, 1, 0), (1, 0, 0))
        ]
        meta = Metadata(axes=axes, space=Space(None, (0.0, 0.0, 0.0)))
        path = tmp_path / f"{named}.mrc"
        report = raconvert.write(path, np.zeros((3, 7), "f4"), meta=meta)
        assert ("digits of spacings" in said(report)) == named
        with raconvert.open(path) as array:
            assert (array.meta.axes == tuple(axes)) == (not named)


@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    kind=st.sampled_from(TYPES),
    order=st.sampled_from("<>"),
    voxel=st.lists(st.integers(1, 900), min_size=3, max_size=3),
    origin=st.lists(st.integers(-900, 900), min_size=3, max_size=3),
    axes=st.permutations([1, 2, 3]),
    seed=st.integers(0, 999),
)
def test_any_file_of_mrcfile_comes_back(
    shape: list[int], kind: str, order: str, voxel: list[int], origin: list[int], axes: list[int],
    seed: int, tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("mrc")
    values = np.random.default_rng(seed).integers(-100, 100, shape).astype(kind)
    axes = [1, 2, 3] if len(shape) == 4 else axes  # MZ counts the sections of a volume
    save(folder / "x.mrc", values.astype(values.dtype.newbyteorder(order)),
         voxel=tuple(n / 100 for n in voxel), origin=tuple(n / 10 for n in origin),
         mapc=axes[0], mapr=axes[1], maps=axes[2])  # fmt: skip
    raconvert.convert(folder / "x.mrc", folder / "x.ra", meta="sidecar")
    raconvert.convert(folder / "x.ra", folder / "y.mrc")
    assert np.array_equal(load(folder / "y.mrc"), load(folder / "x.mrc"))
    with mrcfile.open(folder / "x.mrc") as one, mrcfile.open(folder / "y.mrc") as two:
        for name in ("mx", "my", "mz", "cella", "cellb", "mapc", "mapr", "maps", "origin", "ispg"):
            assert one.header[name].tolist() == two.header[name].tolist(), name
    with raconvert.open(folder / "x.mrc") as one, raconvert.open(folder / "y.mrc") as two:
        assert (one.meta.axes, one.meta.space) == (two.meta.axes, two.meta.space)
    assert is_valid(folder / "y.mrc")


def test_refusals_name_the_flag(tmp_path: Path) -> None:
    for kind, wanted in (
        ("u1", "uint16"),
        ("f8", "float32"),
        ("i4", "float32"),
        ("c16", "complex64"),
    ):
        with pytest.raises(RaconvertError, match=f'dtype="{wanted}"'):
            raconvert.write(tmp_path / "x.mrc", np.zeros((2, 3), kind))
    with pytest.raises(WouldLose, match="4 axes"):
        raconvert.write(tmp_path / "x.mrc", np.zeros((1,) * 5, "f4"))
