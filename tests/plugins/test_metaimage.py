"""What is special to MetaImage: SimpleITK is the oracle, in both directions."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest
import SimpleITK
from pairs import Pairs, little

import raconvert
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Corrupt, Unsafe, Unsupported, WouldLose

itk = SimpleITK
# After the table of MetaIO
TYPES = {
    "MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4",
    "MET_UINT": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}  # fmt: skip


def load(path: Path) -> np.ndarray:
    """Read as MetaIO does; where ITK takes the number of axes, it finds the same."""
    data = path.read_bytes()
    fields, at = {}, 0
    while "ElementDataFile" not in fields:
        end = data.index(b"\n", at)
        key, _, value = data[at:end].decode().partition(" = ")
        fields[key], at = value, end + 1
    assert fields["BinaryDataByteOrderMSB"] == "False"
    dims = [int(word) for word in fields["DimSize"].split()]
    values = np.frombuffer(data, "<" + TYPES[fields["ElementType"]], offset=at).reshape(dims[::-1])
    if 2 <= len(dims) <= 4:
        assert np.array_equal(
            itk.GetArrayFromImage(itk.ReadImage(path)), values, equal_nan=values.dtype.kind == "f"
        )
    return values.T if fields.get("RaconvertIndexOrder") == "F" else values


def save(path: Path, values: np.ndarray) -> None:
    """Write as MetaIO does."""
    kind = next(name for name, code in TYPES.items() if values.dtype.str[1:] == code)
    lines = {
        "ObjectType": "Image", "NDims": values.ndim, "BinaryData": "True",
        "BinaryDataByteOrderMSB": values.dtype.str[0] == ">", "ElementType": kind,
        "DimSize": " ".join(map(str, values.shape[::-1])), "ElementDataFile": "LOCAL",
    }  # fmt: skip
    text = "".join(f"{key} = {value}\n" for key, value in lines.items())
    path.write_bytes(text.encode() + values.tobytes())


IN_PAIRS = (
    Pairs(
        name="metaimage",
        suffix=".mha",
        read=load,
        write=save,
        can_write=lambda values: values.dtype.str[1:] in TYPES.values() and values.ndim > 0
        and values.size > 0,
        guest=True,
        types="""
            = int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 int16_big
              uint16_big int64_big float32_big
            ~ bool
            x *
        """,
        shapes="= * ~ () x 0 4,0 0,4 2,0,3 3,0,2",
        most_axes={"float32": 10},
    ),
)  # fmt: skip

VALUES = np.arange(24, dtype="i2").reshape(2, 3, 4) - 7
DIRECTION = (0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def image_of(values: np.ndarray) -> itk.Image:
    image = itk.GetImageFromArray(values)
    image.SetSpacing((0.5, 1.25, 3.0))
    image.SetOrigin((-10.5, 20.25, 0.125))
    image.SetDirection(DIRECTION)
    return image


@pytest.mark.parametrize("suffix", [".mha", ".mhd"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_itk_writes_comes_back(suffix: str, packed: bool, tmp_path: Path) -> None:
    """ITK to us to ITK, and by RA and its sidecar; values, spacing, origin and directions."""
    itk.WriteImage(image_of(VALUES), tmp_path / f"a{suffix}", packed)
    out_opts = {"compress": "zlib"} if packed else None
    raconvert.convert(
        tmp_path / f"a{suffix}", tmp_path / f"b{suffix}", strict=True, out_opts=out_opts
    )
    raconvert.convert(tmp_path / f"a{suffix}", tmp_path / "c.ra", strict=True)
    raconvert.convert(tmp_path / "c.ra", tmp_path / f"c{suffix}", strict=True, out_opts=out_opts)
    with raconvert.open(tmp_path / f"a{suffix}") as array:
        assert [axis.spacing for axis in array.meta.ra_axes] == [0.5, 1.25, 3.0]
        assert array.shape == (2, 3, 4)
        assert array[1, 2, 3] == VALUES[1, 2, 3]
    for name in "bc":
        got = itk.ReadImage(tmp_path / f"{name}{suffix}")
        assert np.array_equal(itk.GetArrayFromImage(got), VALUES)
        assert got.GetSpacing() == (0.5, 1.25, 3.0)
        assert got.GetOrigin() == (-10.5, 20.25, 0.125)
        assert got.GetDirection() == DIRECTION
        assert (tmp_path / f"{name}.{'zraw' if packed else 'raw'}").exists() == (suffix == ".mhd")


def test_channels_are_the_fastest_axis_and_stay_channels(tmp_path: Path) -> None:
    values = np.arange(36, dtype="f4").reshape(3, 4, 3)
    itk.WriteImage(itk.GetImageFromArray(values, isVector=True), tmp_path / "a.mha")
    assert np.array_equal(raconvert.read(tmp_path / "a.mha"), values)
    raconvert.convert(tmp_path / "a.mha", tmp_path / "b.mha", strict=True)
    got = itk.ReadImage(tmp_path / "b.mha")
    assert got.GetNumberOfComponentsPerPixel() == 3
    assert np.array_equal(itk.GetArrayFromImage(got), values)
    report = raconvert.convert(tmp_path / "a.mha", tmp_path / "c.mha", axes="2,0,1")
    assert any("channels" in str(fit) for fit in report.equivalent)
    assert itk.ReadImage(tmp_path / "c.mha").GetDimension() == 3


def test_permuted_axes_take_their_directions_along(tmp_path: Path) -> None:
    itk.WriteImage(image_of(VALUES), tmp_path / "a.mha")
    raconvert.convert(tmp_path / "a.mha", tmp_path / "b.mha", axes="2,0,1")
    before, after = itk.ReadImage(tmp_path / "a.mha"), itk.ReadImage(tmp_path / "b.mha")
    # ITK counts x, y, z: the voxel [1, 2, 3] of NumPy is (3, 2, 1), that at [3, 1, 2] is (2, 1, 3).
    assert after[2, 1, 3] == before[3, 2, 1]
    point = before.TransformIndexToPhysicalPoint((3, 2, 1))
    assert np.allclose(after.TransformIndexToPhysicalPoint((2, 1, 3)), point)


@pytest.mark.parametrize("code", TYPES.values())
def test_both_byte_orders_and_header_size(code: str, tmp_path: Path) -> None:
    values = np.arange(6).reshape(2, 3).astype(f">{code}")
    save(tmp_path / "x.mha", values)
    raconvert.convert(tmp_path / "x.mha", tmp_path / "y.mha", strict=True)
    assert np.array_equal(itk.GetArrayFromImage(itk.ReadImage(tmp_path / "y.mha")), little(values))
    (tmp_path / "z.bin").write_bytes(b"some header" + values.tobytes())
    text = (tmp_path / "x.mha").read_bytes().partition(b"ElementDataFile")[0]
    (tmp_path / "z.mhd").write_bytes(text + b"HeaderSize = -1\nElementDataFile = z.bin\n")
    assert np.array_equal(raconvert.read(tmp_path / "z.mhd"), values)
    assert np.array_equal(itk.GetArrayFromImage(itk.ReadImage(tmp_path / "z.mhd")), values)


def test_compressed_by_gzip_too_and_damage_is_found(tmp_path: Path) -> None:
    save(tmp_path / "x.mha", VALUES)
    text = (tmp_path / "x.mha").read_bytes().partition(b"ElementDataFile")[0]
    text = text + b"CompressedData = True\nElementDataFile = LOCAL\n"
    (tmp_path / "g.mha").write_bytes(text + gzip.compress(VALUES.tobytes()))
    assert np.array_equal(raconvert.read(tmp_path / "g.mha"), VALUES)
    packed = bytearray(zlib.compress(VALUES.tobytes()))
    packed[-1] ^= 1
    (tmp_path / "d.mha").write_bytes(text + packed)
    with pytest.raises(Corrupt, match="zlib|inflated"):
        raconvert.read(tmp_path / "d.mha")


def test_what_is_said_is_kept_or_named(tmp_path: Path) -> None:
    axes = [
        Axis(spacing=0.1, units="mm"),
        Axis(spacing=2.0, units="mm"),
        Axis(spacing=3, units="mm"),
    ]
    report = raconvert.write(tmp_path / "a.mha", VALUES, meta=Metadata("a comment", ra_axes=axes))
    assert not report.equivalent
    image = itk.ReadImage(tmp_path / "a.mha")
    assert image.GetSpacing() == (0.1, 2.0, 3.0)
    assert b"Comment = a comment\n" in (tmp_path / "a.mha").read_bytes()
    with raconvert.open(tmp_path / "a.mha") as array:
        assert [axis.to_dict() for axis in array.meta.ra_axes] == [axis.to_dict() for axis in axes]
    meta = Metadata("two\nlines", ra_axes=[Axis(name="x"), *axes[1:]], attributes={"k": 1})
    (said,) = map(str, raconvert.write(tmp_path / "b.mha", VALUES, meta=meta).equivalent)
    assert all(
        word in said for word in ("description", "axes (name)", "axes (spacing)", "attributes")
    )


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="complex64"):
        raconvert.write(tmp_path / "x.mha", np.zeros((2, 2), "c8"))


HEAD = (b"ObjectType = Image\nNDims = 2\nBinaryData = True\nDimSize = 3 2\nElementType = MET_UCHAR\n"
        b"ElementDataFile = LOCAL\n")  # fmt: skip
ODD = {
    "zero": (b"3 2", b"3 0", Corrupt), "negative": (b"3 2", b"-3 -2", Corrupt),
    "few": (b"3 2", b"6", Corrupt), "huge": (b"3 2", b"4294967296 4294967296", Corrupt),
    "text": (b"BinaryData = True", b"BinaryData = False", Unsupported),
    "type": (b"MET_UCHAR", b"MET_STRING", Unsupported), "end": (b"ElementDataFile", b"X", Corrupt),
    "list": (b"LOCAL", b"LIST\nx.raw", Unsupported), "pattern": (b"LOCAL", b"x%d.raw 1 2 1", Unsupported),
    "elsewhere": (b"LOCAL", b"../x.raw", Unsafe), "absolute": (b"LOCAL", b"/etc/hostname", Unsafe),
    "twice": (b"NDims = 2", b"NDims = 2\nNDims = 2", Corrupt), "rank": (b"NDims = 2", b"NDims = 99", Unsupported),
    "no line": (b"NDims = 2", b"NDims = 2\nwhat", Corrupt), "tube": (b"Image", b"Tube", Unsupported),
    "nothing": (b"LOCAL", b"", Corrupt),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_headers_are_refused(name: str, tmp_path: Path) -> None:
    old, new, error = ODD[name]
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "x.raw").write_bytes(b"secret")
    (folder / "good.mha").write_bytes(HEAD + b"123456")
    (folder / "x.mha").write_bytes(HEAD.replace(old, new, 1) + b"123456")
    assert raconvert.read(folder / "good.mha").tolist() == [[49, 50, 51], [52, 53, 54]]
    with pytest.raises(error):
        raconvert.read(folder / "x.mha")
