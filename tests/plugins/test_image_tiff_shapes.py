"""TIFF: shape, order, type and values of random files, with tifffile as the judge.

A file has a codec, a predictor, strips or tiles, an order of bytes, planes of samples or pixels,
pages, and nothing, a note of its shape, ImageJ's axes or OME-XML as its description.
"""

from __future__ import annotations

import tempfile
import warnings
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from hypothesis import assume, event, given, reject, settings
from hypothesis import strategies as st

import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.arrays.metadata import Axis

TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "?")
CODECS = (None, "zlib", "lzw", "packbits", "zstd", "lzma")
DESCRIBED: dict[str, dict[str, Any]] = {
    "none": {"metadata": None}, "shape": {}, "imagej": {"imagej": True}, "ome": {"ome": True},
    "text": {"metadata": None, "description": "a picture"},
}  # fmt: skip
REFUSED = (ValueError, KeyError, tifffile.TiffFileError, tifffile.OmeXmlError)  # no such file


def native(values: Any) -> np.ndarray:
    """Return the values in C order and the byte order of this machine."""
    values = np.asarray(values)
    return np.ascontiguousarray(values, values.dtype.newbyteorder("=")).reshape(values.shape)


def file_of(values: np.ndarray, words: dict[str, Any]) -> bytes:
    """Return the file that tifffile writes, if there is one."""
    file = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ImageJ above 4 GiB, which does not conform
        try:
            tifffile.imwrite(file, values, **words)
        except REFUSED:
            reject()
    return file.getvalue()


@st.composite
def written(draw: st.DrawFn) -> tuple[np.ndarray, dict[str, Any], str]:
    """Values, tifffile's arguments for them, and the kind of description."""
    described = draw(st.sampled_from([*DESCRIBED]))
    code = draw(st.sampled_from(TYPES))
    planar = draw(st.sampled_from(["contig", "separate", None]))
    samples = draw(st.sampled_from([1, 2, 3, 4, 5])) if planar else 1
    if code == "?" and planar == "contig":
        samples = 1  # tifffile puts each pixel of more into a byte of its own, which no reader does
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    outer = draw(st.lists(st.integers(1, 3), max_size=3))
    size = {"contig": (height, width, samples), "separate": (samples, height, width)}
    shape = (*outer, *size.get(planar or "", (height, width)))
    rgb = planar is not None and samples >= 3 and draw(st.booleans())
    words: dict[str, Any] = {
        "byteorder": draw(st.sampled_from("<>")), "bigtiff": draw(st.booleans()),
        "compression": draw(st.sampled_from(CODECS)), "planarconfig": planar,
        "photometric": "rgb" if rgb else draw(st.sampled_from(["minisblack", "miniswhite"])),
        **DESCRIBED[described],
    }  # fmt: skip
    if draw(st.booleans()):
        words["tile"] = draw(st.sampled_from([(16, 16), (16, 32), (32, 16)]))
    else:
        words["rowsperstrip"] = draw(st.sampled_from([None, 1, 3, 16]))
    if words["compression"] not in (None, "packbits") and draw(st.booleans()):
        words["predictor"] = {"u": 2, "i": 2, "f": 3}.get(code[0])
    noise = np.random.default_rng(draw(st.integers(0, 9))).bytes(prod(shape) * 16)
    count, dtype = prod(shape), np.dtype(code if code == "?" else words["byteorder"] + code)
    if code == "?":
        values = np.frombuffer(noise, "u1", count) > 100
    else:
        values = np.frombuffer(noise, dtype, count)
    return values.reshape(shape), words, described


@settings(max_examples=400, deadline=None)
@given(made=written(), data=st.data())
def test_shape_order_type_and_values_are_those_of_tifffile(
    made: tuple[np.ndarray, dict[str, Any], str], data: st.DataObject
) -> None:
    values, words, described = made
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.tif")
        path.write_bytes(file_of(values, words))
        with tifffile.TiffFile(path) as file:
            series, page = file.series[0], file.pages.first
            expected = series.asarray()
            planes = page.samplesperpixel > 1 and page.planarconfig == 2
        event(f"{described}, {words['planarconfig']}")

        with raconvert.open(path) as array:
            got = native(array)
            names = [axis.name for axis in array.axes] if array.axes else []
            kind = array.axes[-3].kind if planes else "list"
            if described == "ome":  # axes of length 1 are there
                got = got.reshape(expected.shape) if got.size == expected.size else got
            assert got.shape == expected.shape
            expected = native(expected)
            assert got.dtype == expected.dtype
            assert got.tobytes() == expected.tobytes()
            parts = [native(block).reshape(-1).copy() for block in blocks(array, 500)]
            flat = np.concatenate(parts)
            assert flat.tobytes() == got.tobytes()
            if planes:
                assert names[-3:] == ["S", "Y", "X"]
                assert described == "ome" or kind in ("RGB-color", "RGBA-color", "list")
            key = tuple(data.draw(st.slices(length)) for length in array.shape)
            part = native(got.reshape(array.shape)[key])
            assert native(array[key]).tobytes() == part.tobytes()


@settings(max_examples=150, deadline=None)
@given(
    code=st.sampled_from(TYPES[:-1]),
    shape=st.lists(st.integers(1, 6), min_size=3, max_size=4),
    colours=st.booleans(),
    compression=st.sampled_from(["none", "deflate"]),
)
def test_planes_of_samples_are_written_as_such(
    code: str, shape: list[int], colours: bool, compression: str
) -> None:
    """Tifffile has the same elements in the same order, and the axes come back."""
    samples = shape[-3]
    assume(samples > 1 and shape[:-3] != [1])
    values = np.frombuffer(np.random.default_rng(3).bytes(prod(shape) * 16), code, prod(shape))
    values = values.reshape(shape)
    kind = {3: "RGB-color", 4: "RGBA-color"}.get(samples, "list") if colours else "list"
    axes = [*[Axis()] * (len(shape) - 3), Axis("S", kind=kind), Axis("Y"), Axis("X")]
    meta = raconvert.Metadata(axes=axes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.tif")
        report = raconvert.write(path, values, meta=meta, out_opts={"compression": compression})

        assert not report.equivalent
        with tifffile.TiffFile(path) as file:
            assert file.series[0].axes.endswith("SYX")
            assert file.pages.first.planarconfig == 2
            assert file.series[0].asarray().tobytes() == values.tobytes()
            assert file.series[0].shape == values.shape
        with raconvert.open(path) as array:
            assert np.asarray(array).tobytes() == values.tobytes()
            assert [*array.axes] == axes
