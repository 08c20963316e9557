"""What is special to MetaImage: SimpleITK is the oracle, in both directions."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import SimpleITK
from cases import every
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs import Pairs, little

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.metadata import Axis, Metadata, Space
from raconvert.errors import Corrupt, ReadFailed, Unsafe, Unsupported, WouldLose

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "volumes"

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
        assert [axis.spacing for axis in array.ra_axes] == [0.5, 1.25, 3.0]
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
    report = raconvert.write(
        tmp_path / "a.mha", VALUES, meta=Metadata("a comment", axes=axes[::-1])
    )
    assert not report.equivalent
    image = itk.ReadImage(tmp_path / "a.mha")
    assert image.GetSpacing() == (0.1, 2.0, 3.0)
    assert b"Comment = a comment\n" in (tmp_path / "a.mha").read_bytes()
    with raconvert.open(tmp_path / "a.mha") as array:
        assert [axis.to_dict() for axis in array.ra_axes] == [axis.to_dict() for axis in axes]
    meta = Metadata("two\nlines", axes=[Axis(name="x"), *axes[1:]][::-1], attributes={"k": 1})
    (said,) = map(str, raconvert.write(tmp_path / "b.mha", VALUES, meta=meta).equivalent)
    assert all(
        word in said
        for word in ("description", "axis 2 'x' (spacing unknown: written as 1", "attributes")
    )


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="complex64"):
        raconvert.write(tmp_path / "x.mha", np.zeros((2, 2), "c8"))


HEAD = (b"ObjectType = Image\nNDims = 2\nBinaryData = True\nDimSize = 3 2\nElementType = MET_UCHAR\n"
        b"ElementDataFile = LOCAL\n")  # fmt: skip
ODD = {
    "zero": (b"3 2", b"3 0", Corrupt), "negative": (b"3 2", b"-3 -2", Corrupt),
    "few": (b"3 2", b"6", Corrupt), "huge": (b"3 2", b"4294967296 4294967296", Corrupt),
    "text": (b"BinaryData = True", b"BinaryData = False", Corrupt),
    "packed text": (b"= True", b"= False\nCompressedData = True", Unsupported),
    "end of text": (b"= True", b"= False\nHeaderSize = -1", Corrupt),
    "type": (b"MET_UCHAR", b"MET_STRING", Unsupported), "end": (b"ElementDataFile", b"X", Corrupt),
    "list": (b"LOCAL", b"LIST\nx.raw", ReadFailed), "short list": (b"LOCAL", b"LIST\n", Corrupt),
    "blank in a list": (b"LOCAL\n", b"LIST\n\n\n", Corrupt), "listed": (b"LOCAL", b"LISTED.raw", Unsupported),
    "list of words": (b"LOCAL", b"LIST all\nx", Corrupt), "list of a list": (b"LOCAL", b"LIST 1 1\nx", Corrupt),
    "list elsewhere": (b"LOCAL\n", b"LIST\n../x.raw\n../x.raw\n", Unsafe),
    "pattern": (b"LOCAL", b"x%d.raw 1 2 1", ReadFailed), "two numbers": (b"LOCAL", b"x%d%d.raw 1 2 1", Corrupt),
    "pattern of text": (b"LOCAL", b"x%s.raw 1 2 1", Corrupt), "no step": (b"LOCAL", b"x%d.raw 1 2 0", Corrupt),
    "too many": (b"LOCAL", b"x%d.raw 1 3 1", Corrupt), "too few": (b"LOCAL", b"x%d.raw 1 2 2", Corrupt),
    "long number": (b"LOCAL", b"x%099d.raw 1 2 1", ReadFailed),
    "words": (b"LOCAL", b"x%d.raw a b c", Corrupt), "huge number": (b"LOCAL", b"x%0999d.raw 1 2 1", Corrupt),
    "pattern elsewhere": (b"LOCAL", b"../x%d.raw 1 2 1", Unsafe),
    "elsewhere": (b"LOCAL", b"../x.raw", Unsafe), "absolute": (b"LOCAL", b"/etc/hostname", Unsafe),
    "twice": (b"NDims = 2", b"NDims = 2\nNDims = 2", Corrupt), "rank": (b"NDims = 2", b"NDims = 99", Unsupported),
    "no line": (b"NDims = 2", b"NDims = 2\nwhat", Corrupt), "tube": (b"Image", b"Tube", Unsupported),
    "nothing": (b"LOCAL", b"", Corrupt),
}  # fmt: skip


@every("name", ODD)
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


def header_of(path: Path, values: np.ndarray, behind: str = "", **more: object) -> None:
    """Write a header as MetaIO does; the last field is among `more`."""
    kind = next(name for name, code in TYPES.items() if values.dtype.str[1:] == code)
    lines = {
        "ObjectType": "Image", "NDims": values.ndim, "BinaryData": "True",
        "BinaryDataByteOrderMSB": values.dtype.str[0] == ">",
        "DimSize": " ".join(map(str, values.shape[::-1])), "ElementType": kind, **more,
    }  # fmt: skip
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()) + behind)


def judged(path: Path) -> np.ndarray:
    """What we read, which is what ITK reads; also row after row, and written again."""
    got = np.asarray(raconvert.read(path))
    assert np.array_equal(itk.GetArrayFromImage(itk.ReadImage(path)), little(got))
    with raconvert.open(path) as array:
        assert np.array_equal(array[-1:], got[-1:])
    raconvert.convert(path, path.with_name("again.mha"), strict=True, overwrite=True)
    assert np.array_equal(itk.GetArrayFromImage(itk.ReadImage(path.with_name("again.mha"))), got)
    return got


@pytest.mark.parametrize("code", TYPES.values())
def test_numbers_as_text(code: str, tmp_path: Path) -> None:
    """Behind the header and beside it; ITK goes through doubles, so that 53 bits are for both."""
    values = np.array([[0, 1, 100], [5, 7, 120]], code)
    if code not in ("u1", "i1"):
        values[1] = [30000, 12345, 32767]
    if code[0] == "i":
        values[0] *= -1
    if code[0] == "f":
        values = (values / 7).astype(code)
    text = "\n".join(" ".join(map(str, row)) for row in values.tolist()) + "\n"
    header_of(tmp_path / "a.mha", values, text, BinaryData="False", ElementDataFile="LOCAL")
    header_of(tmp_path / "b.mhd", values, BinaryData="False", ElementDataFile="b.txt")
    (tmp_path / "b.txt").write_text(text)
    for name in ("a.mha", "b.mhd"):
        assert np.array_equal(judged(tmp_path / name), values)


def test_text_is_taken_exactly_or_not_at_all(tmp_path: Path) -> None:
    def read(text: str, code: str = "i8") -> list[int]:
        values = np.zeros((1, 2), code)
        header_of(tmp_path / "x.mha", values, text, BinaryData="False", ElementDataFile="LOCAL")
        return raconvert.read(tmp_path / "x.mha").tolist()[0]

    assert read("9007199254740993 -9223372036854775808") == [(1 << 53) + 1, -(1 << 63)]
    assert read("1.23457e+07 5.0", "i4") == [12345700, 5]  # as MetaIO writes 12345678
    assert read("1 2 3 4\n") == [1, 2]
    for text, code in (
        ("1,2 3", "i4"), ("1.5 2", "i4"), ("1e400 2", "i4"), ("40000 1", "i2"), ("nan 1", "i4"),
        ("1e999999999 1", "i4"), ("1_0 1", "i4"), ("-1 1", "u1"), ("one two", "f4"), ("1 ", "f4"),
    ):  # fmt: skip
        with pytest.raises(Corrupt):
            read(text, code)


FILES = {
    "LIST": ["s1.raw", "s2.raw", "s3.raw"], "LIST 2": ["s1.raw", "s2.raw", "s3.raw"],
    "LIST 1": [f"r{n}.raw" for n in range(12)], "s%d.raw": ["s1.raw", "s2.raw", "s3.raw"],
    "sub/s%03d.raw 7": ["sub/s007.raw", "sub/s008.raw", "sub/s009.raw"],
    "s%02d.raw 0 9 4": ["s00.raw", "s04.raw", "s08.raw"],
}  # fmt: skip


@pytest.mark.parametrize("code", ["u1", "<i2", ">f8"])
@pytest.mark.parametrize("word", FILES)
def test_lists_and_patterns_of_files(word: str, code: str, tmp_path: Path) -> None:
    values = (np.arange(60) * 5).astype(code).reshape(3, 4, 5)
    (tmp_path / "sub").mkdir()
    names = FILES[word]
    for name, piece in zip(names, values.reshape(len(names), -1), strict=True):
        (tmp_path / name).write_bytes(piece.tobytes())
    listed = "\n".join(names) + "\n" if word.startswith("LIST") else ""
    header_of(tmp_path / "x.mhd", values, listed, ElementDataFile=word)
    assert np.array_equal(judged(tmp_path / "x.mhd"), values)
    assert raconvert.info(tmp_path / "x.mhd")["arrays"][0]["storage"]["data_files"] == len(names)
    (tmp_path / names[-1]).write_bytes(b"1")
    with pytest.raises(Corrupt, match="cut off"):
        raconvert.read(tmp_path / "x.mhd")


@pytest.mark.parametrize("form", ["zlib", "text", "skip", "end"])
def test_files_of_every_form(form: str, tmp_path: Path) -> None:
    values = np.arange(60, dtype="<i2").reshape(3, 4, 5)
    more: dict[str, object] = {
        "zlib": {"CompressedData": "True"}, "text": {"BinaryData": "False"},
        "skip": {"HeaderSize": 3}, "end": {"HeaderSize": -1},
    }[form]  # fmt: skip
    for n, piece in enumerate(values, 1):
        made = {
            "zlib": zlib.compress(piece.tobytes(), 0),
            "text": " ".join(map(str, [*piece.ravel(), ""])).encode(),
        }
        data = made.get(form, b"xyz" + piece.tobytes())
        (tmp_path / f"s{n}.raw").write_bytes(data)
    header_of(tmp_path / "x.mhd", values, **more, ElementDataFile="s%d.raw 1 3 1")
    assert np.array_equal(judged(tmp_path / "x.mhd"), values)


def test_fixtures() -> None:
    wanted = (np.arange(24) * 1829).astype("i2").reshape(2, 3, 4)
    assert np.array_equal(raconvert.read(FIXTURES / "text_list.mhd"), wanted)
    assert np.array_equal(itk.GetArrayFromImage(itk.ReadImage(FIXTURES / "text_list.mhd")), wanted)
    with raconvert.open(FIXTURES / "itk_turned.mha") as array:
        assert np.array_equal(array, (np.arange(24) * 1829).astype("i2").reshape(2, 3, 4))
        assert [axis.spacing for axis in array.ra_axes] == [0.5, 1.25, 3.0]
        assert array.meta.space == Space("LPS", (-10.5, 20.25, 0.125))
        directions = [axis.direction for axis in array.ra_axes]
        assert directions == [(0, -1, 0), (1, 0, 0), (0, 0, 1)]
    got = raconvert.read(FIXTURES / "itk_channels.mhd")
    assert np.array_equal(got, (np.arange(60) * 4).reshape(4, 5, 3))


# --- headers as others write them ------------------------------------------------------------------

PLAIN = (
    "ObjectType = Image\nNDims = 2\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
    "CompressedData = False\nElementSpacing = 2 3\nOffset = 5 6\nDimSize = 3 2\n"
    "ElementType = MET_UCHAR\nElementDataFile = LOCAL\n"
)
KEYS = ("dim[0] = 3", "0008|0005 = ISO", "qto_xyz = 1 2", "NRRD_kinds[0] = domain", "a.b-c = 4",
        "_x = 5", "9 = 6", "a b = 7", "pixdim[4]=0.5", "expr = a=b:c", "k" * 200 + " = 3")  # fmt: skip
ODDITIES = {
    "keys": (PLAIN.replace("ElementType", "\n".join(KEYS) + "\nElementType"), None),
    "windows": (PLAIN.replace("\n", "\r\n"), None),
    "no blanks": (PLAIN.replace(" = ", "="), None),
    "colons": (PLAIN.replace(" = ", " : "), None),
    "tabs": (PLAIN.replace(" = ", "\t=\t"), None),
    "leading blanks": ("  " + PLAIN.replace("\n", "\n\t")[:-1], None),
    "trailing blanks": (PLAIN.replace("\n", "  \n"), None),
    "blank lines": (PLAIN.replace("\n", "\n \n\n", 3), None),
    "small words": (PLAIN.replace("True", "true").replace("False", "FALSE"), None),
    "one letter": (PLAIN.replace("True", "T").replace("False", "0"), None),
    "no type of object": (PLAIN.partition("\n")[2], None),
    "another order": ("BinaryData = True\n" + PLAIN.replace("BinaryData = True\n", ""), None),
    "size alone": (PLAIN.replace("ElementSpacing", "ElementSize"), None),
    "size and spacing": (PLAIN.replace("DimSize", "ElementSize = 7 8\nDimSize"), None),
    "negative spacing": (PLAIN.replace("2 3\n", "-2 3\n", 1), None),
    "negative and turned": (
        PLAIN.replace("2 3\n", "-2 -3\nTransformMatrix = 0 1 -1 0\n", 1),
        None,
    ),
    "position": (PLAIN.replace("Offset", "Position"), None),
    "small key": (PLAIN.replace("ElementSpacing", "elementspacing"), None),
    "utf-8": (PLAIN.replace("DimSize", "Name = \u00c5 \u3042 \u00e0\nDimSize"), "\u00c5 \u3042 \u00e0"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODDITIES)
def test_headers_as_others_write_them(name: str, tmp_path: Path) -> None:
    """ITK sees the same in the file, in what we make of it, and by RA and its sidecar."""
    text, own = ODDITIES[name]
    (tmp_path / "a.mha").write_bytes(text.encode() + bytes(range(6)))
    raconvert.convert(tmp_path / "a.mha", tmp_path / "b.mha", strict=True)
    raconvert.convert(tmp_path / "a.mha", tmp_path / "c.ra", strict=True)
    raconvert.convert(tmp_path / "c.ra", tmp_path / "c.mhd", strict=True)
    wanted = itk.ReadImage(tmp_path / "a.mha")
    with raconvert.open(tmp_path / "a.mha") as array:
        assert np.array_equal(array, [[0, 1, 2], [3, 4, 5]])
        spacings = [axis.spacing or 1 for axis in array.ra_axes] or [1, 1]
        assert tuple(spacings) == wanted.GetSpacing()
        fields = array.meta.formats.get("metaimage", {}).get("fields", {})
        assert own is None or fields["Name"] == own
    for copy in ("b.mha", "c.mhd"):
        got = itk.ReadImage(tmp_path / copy)
        assert np.array_equal(itk.GetArrayFromImage(got), itk.GetArrayFromImage(wanted))
        assert told(got) == told(wanted)


def told(image: itk.Image) -> tuple[object, ...]:
    """What ITK knows of an image beyond its elements, but for what it says of its own reading."""
    ours = ("ITK_", "Raconvert")
    keys = [key for key in image.GetMetaDataKeys() if not key.startswith(ours)]
    return (
        image.GetSpacing(), image.GetOrigin(), image.GetDirection(),
        {key: image.GetMetaData(key) for key in keys},
    )  # fmt: skip


@pytest.mark.parametrize("suffix", [".nii", ".nrrd"])
def test_dictionaries_of_other_formats_in_a_metaimage(suffix: str, tmp_path: Path) -> None:
    """ITK writes all that it knows of a NIfTI or NRRD as fields; they stay."""
    itk.WriteImage(image_of(VALUES), tmp_path / f"a{suffix}")
    image = itk.ReadImage(tmp_path / f"a{suffix}")
    assert any("[" in key for key in image.GetMetaDataKeys())
    itk.WriteImage(image, tmp_path / "a.mha")
    raconvert.convert(tmp_path / "a.mha", tmp_path / "b.mha", strict=True)
    got, wanted = itk.ReadImage(tmp_path / "b.mha"), itk.ReadImage(tmp_path / "a.mha")
    assert told(got) == told(wanted)
    assert any("[" in key for key in got.GetMetaDataKeys())


def test_fields_that_are_wrong_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a.mha").write_bytes(
        PLAIN.replace("2 3\n", "2,3\n", 1).replace("5 6", "5").encode() + bytes(6)
    )
    notes = raconvert.convert(tmp_path / "a.mha", tmp_path / "b.mha").notes
    assert [note.split(" was ")[0] for note in notes] == ["ElementSpacing", "Offset"]
    (tmp_path / "a.mha").write_bytes(PLAIN.replace("2 3\n", "0 3\n", 1).encode() + bytes(6))
    report = raconvert.convert(tmp_path / "a.mha", tmp_path / "c.mha")
    assert report.notes == ["a spacing of 0 was ignored"]


@every("word", ["2_0", "٢", "1e400", "0x2", "inf", "2\xa0"])
def test_words_that_only_python_takes_for_numbers_are_noted(word: str, tmp_path: Path) -> None:
    text = PLAIN.replace("2 3\n", f"{word} 3\n", 1)
    (tmp_path / "a.mha").write_bytes(text.encode() + bytes(6))
    with raconvert.open_bundle(tmp_path / "a.mha") as bundle:
        assert [note.split(" was ")[0] for note in bundle.notes] == ["ElementSpacing"]
        assert {axis.spacing for axis in bundle.arrays[0].ra_axes} == {1}


def test_names_of_data_files_are_bytes(tmp_path: Path) -> None:
    """Bytes of letters that Latin-1 takes for blanks and ends of lines are none."""
    for name in ("\u00c5", "voil\u00e0", "\u3042\u3000"):
        raconvert.write(tmp_path / f"{name}.mhd", VALUES)
        assert np.array_equal(raconvert.read(tmp_path / f"{name}.mhd"), VALUES)
    text = (tmp_path / "\u00c5.mhd").read_bytes()
    kept = b"".join(line for line in text.splitlines(True) if b"Seal" not in line)
    plane = VALUES.astype("<i2").reshape(2, 12)
    for n in (1, 2):
        (tmp_path / f"\u00e0{n}.raw").write_bytes(plane[n - 1].tobytes())
    (tmp_path / "p.mhd").write_bytes(
        kept.replace("\u00c5.raw".encode(), "\u00e0%d.raw 1 2 1".encode())
    )
    assert np.array_equal(raconvert.read(tmp_path / "p.mhd"), VALUES)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.text(max_size=12), st.text(max_size=20), max_size=5), st.text(max_size=9))
def test_texts_come_back_or_are_named(fields: dict[str, str], comment: str) -> None:
    """Any key and any text of a namespace, and any description."""
    meta = Metadata(comment or None, formats={"metaimage": {"fields": fields}})
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.mha")
        report = raconvert.write(path, VALUES, meta=meta)
        said = "".join(map(str, report.equivalent))
        with raconvert.open(path) as array:
            assert np.array_equal(array, VALUES)
            got = array.meta.formats.get("metaimage", {}).get("fields", {})
            assert {*got.items()} <= {*fields.items()}
            assert bool(fields.keys() - got.keys()) == ("metaimage " in said)
            assert array.meta.description == (comment or None) or "description" in said


def test_a_spacing_is_named_as_unknown_where_the_space_is_left_out(tmp_path: Path) -> None:
    """One number is written for each axis, and no matrix says which of them are places."""
    oblique = Axis(spacing=2.0, direction=(0.0, 0.6, 0.8))
    meta = Metadata(axes=[Axis("t"), oblique], space=Space("LPS", (1.0, 2.0, 3.0)))
    report = raconvert.write(tmp_path / "x.mha", np.zeros((3, 2), "u1"), meta=meta)
    (fit,) = map(str, report.equivalent)
    assert "space (its axes do not lie in" in fit
    assert "axis 0 't' (name, spacing unknown: written as 1)" in fit


def test_a_step_of_one_beside_an_axis_that_runs_backwards_is_named(tmp_path: Path) -> None:
    """What runs backwards is written as 1, so that a header of ones says nothing of the other."""
    axes = [Axis("time", spacing=-3.0), Axis("row", spacing=1.0)]
    array = Array(np.zeros((2, 3), "f4"), meta=Metadata(axes=axes))
    (fit,) = raconvert.write(tmp_path / "x.mha", array).equivalent
    assert "axis 1 'row' (spacing of 1 without units)" in fit.reason
