"""Encoded frames: the offsets of their fragments, and their decoding by pydicom."""

from __future__ import annotations

import struct
from importlib.util import find_spec

from raconvert.errors import Corrupt, MissingDependency, TooLarge, Unsupported
from raconvert.files.source import Source

from .tables import (
    ENCODINGS,
    EXTENDED_OFFSETS,
    ITEM,
    OF_CODEC,
    RGB,
    RLE,
    SEQUENCE_END,
    YBR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from .form import Form
    from .header import Header

    Values = np.ndarray[Any, Any]
    Fragments = list[tuple[int, int]]  # offset and length of each

MODULES = {  # the module by which pydicom finds a package
    "pydicom": "pydicom", "pylibjpeg": "pylibjpeg", "pylibjpeg-libjpeg": "libjpeg",
    "pylibjpeg-openjpeg": "openjpeg", "pyjpegls": "jpeg_ls",
}  # fmt: skip
# Decoders of pydicom, in order of preference; for RLE its own one, as pylibjpeg-rle panics.
PREFERRED = ("pylibjpeg", "pyjpegls", "pillow", "pydicom", "gdcm")
EXTRA, LIBJPEG = "'raconvert[dicom]'", "pylibjpeg-libjpeg"
START, SCAN, END = b"\xff\xd8", b"\xff\xda", b"\xff\xd9"  # markers of JPEG; END of all of them
PADDED = 64  # last bytes of a frame, which have to hold END
RLE_RATIO = 64  # bytes that RLE makes of one at most: two bytes stand for 128


# Fragments ---------------------------------------------------------------------------------------


def fragments_of(header: Header, frames: int) -> list[Fragments]:
    """The fragments of each frame. Raises `Corrupt`, `TooLarge` and `Unsupported`."""
    source, at = header.source, header.image().offset
    nbytes, at = _item(header, at)
    table = source.read_exact(at, nbytes, "the table of offsets") if nbytes else b""
    at += nbytes
    begin, parts = at, []
    while True:
        length, offset = _item(header, at)
        if length < 0:
            break
        if len(parts) >= source.limits.header_elements:
            raise TooLarge(
                "has very many fragments", path=header.path, where=f"byte {at}",
                expected=f"at most {source.limits.header_elements}",
                remedy="let another program write it with a fragment for each frame",
            )  # fmt: skip
        parts.append((offset, length))
        at = offset + length
    if len(parts) < frames:
        raise Corrupt(
            "has fewer fragments than frames", path=header.path, expected=frames, got=len(parts)
        )
    if frames == 1:
        return [parts]
    if len(parts) == frames:
        return [[part] for part in parts]
    offsets = [*struct.unpack(f"<{len(table) // 4}I", table[: len(table) // 4 * 4])]
    if not offsets:
        offsets = [int(number) for number in header.numbers(EXTENDED_OFFSETS)]
    return _by_offsets(header, parts, offsets, begin, frames)


def _by_offsets(
    header: Header, parts: Fragments, offsets: list[int], begin: int, frames: int
) -> list[Fragments]:
    """The fragments of each frame by a table of offsets. Raises `Unsupported` if it is wrong."""
    starts = {offset - 8 - begin: n for n, (offset, _) in enumerate(parts)}
    firsts = [starts.get(offset, -1) for offset in offsets]
    if len(firsts) != frames or firsts != sorted(set(firsts)) or firsts[0] != 0:
        raise Unsupported(
            "fragments cannot be assigned to frames", path=header.path,
            expected=f"a table of {frames} offsets", got=f"{len(parts)} fragments",
            remedy="let another program write it with a table of offsets",
        )  # fmt: skip
    return [parts[a:b] for a, b in zip(firsts, [*firsts[1:], len(parts)], strict=True)]


def _item(header: Header, at: int) -> tuple[int, int]:
    """Length of the fragment at an offset (-1 behind the last), and offset of its bytes."""
    source = header.source
    tag = source.read_exact(at, 8, "the fragments of its pixels")
    group, number, nbytes = struct.unpack("<HHI", tag)
    if group << 16 | number == SEQUENCE_END:
        return -1, at + 8
    if group << 16 | number != ITEM:
        raise Corrupt("has something else than a fragment", path=header.path, where=f"byte {at}")
    if nbytes > source.size - at - 8:
        raise Corrupt(
            "a fragment ends behind the file", path=header.path, where=f"byte {at}", got=nbytes,
            expected=f"at most {source.size - at - 8} bytes",
        )  # fmt: skip
    return nbytes, at + 8


# Decoding ----------------------------------------------------------------------------------------


def check_decoder(syntax: str, path: str) -> None:
    """Raise `MissingDependency` unless a decoder of the transfer syntax is installed."""
    name, packages = ENCODINGS[syntax]
    missing = [package for package in packages if find_spec(MODULES[package]) is None]
    if "pydicom" in missing or (missing and not _is_available(syntax)):
        raise MissingDependency(
            f"{name} needs a package that is not installed: {', '.join(missing)}", path=path,
            remedy="pip install " + (" ".join(missing) if LIBJPEG in missing else EXTRA),
        )  # fmt: skip


def _is_available(syntax: str) -> bool:
    """True if pydicom has another decoder, such as those of Pillow and GDCM."""
    from pydicom.pixels.decoders.base import get_decoder

    return bool(get_decoder(syntax).is_available)


def decoded(source: Source, syntax: str, form: Form, parts: Fragments) -> Values:
    """The elements of an encoded frame, in the type of their array and with all their bits.

    Raises `Corrupt` for a frame that cannot be decoded, or contradicts the header.
    """
    nbytes = sum(length for _, length in parts)
    data = b"".join(source.read_exact(at, length, "a fragment") for at, length in parts)
    whole = form.size * form.allocated // 8
    if syntax == RLE and whole > RLE_RATIO * nbytes:
        raise Corrupt("an encoded frame is too short", path=source.path, expected=whole, got=nbytes)
    if syntax != RLE:
        _check_codestream(source, form, data)
    import warnings

    from pydicom.encaps import encapsulate
    from pydicom.pixels.decoders.base import get_decoder

    decoder: Any = get_decoder(syntax)
    available = decoder.available_plugins
    preferred = ("pydicom",) if syntax == RLE else PREFERRED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values, facts = decoder.as_array(
                encapsulate([data]), index=0, raw=True, rows=form.rows, columns=form.columns,
                samples_per_pixel=form.samples, photometric_interpretation=form.stored_as,
                pixel_representation=int(form.signed), bits_allocated=form.allocated,
                bits_stored=form.stored, number_of_frames=1, pixel_keyword="PixelData",
                planar_configuration=int(form.planar),
                decoding_plugin=next((name for name in preferred if name in available), ""),
            )  # fmt: skip
        except MemoryError as error:
            raise TooLarge("an encoded frame needs too much memory", path=source.path) from error
        except Exception as error:  # decoders raise any kind for damaged data
            reason = " ".join(str(error).split())[:300]
            raise Corrupt(
                f"an encoded frame cannot be decoded: {reason or type(error).__name__}",
                path=source.path, where=f"byte {parts[0][0] if parts else 0}",
            ) from error  # fmt: skip
    if values.size != form.size:
        raise Corrupt(
            "an encoded frame has another size", path=source.path, expected=form.size,
            got=values.size,
        )  # fmt: skip
    colours = str(facts.get("photometric_interpretation", form.stored_as))
    return _coloured(values.reshape(form.shape), colours, form)


def _coloured(values: Values, colours: str, form: Form) -> Values:
    """The values in the colours of `form`, from a decoder's `colours`. Raises `Unsupported`."""
    if form.samples == 3 and form.photometric == RGB and colours in YBR:
        return rgb_of(values)
    if colours in OF_CODEC and form.photometric != RGB:
        raise Unsupported("a decoder left colours undone", got=colours)
    return values


def rgb_of(values: Values) -> Values:
    """RGB of YBR_FULL by the numbers of PS3.3 C.7.6.3.1.2, exactly; halves are rounded upwards.

    >>> rgb_of(np.array([[76, 85, 255]], np.uint8))
    array([[254,   0,   0]], dtype=uint8)
    """
    import numpy as np

    y, cb, cr = (values[..., n].astype(np.int32) for n in range(3))
    cb, cr = cb - 128, cr - 128
    # In units of 1 / 587000, as 0.587 is the part of green in the brightness.
    parts = (y * 587000 + 587 * 1402 * cr, y * 587000 - 114 * 1772 * cb - 299 * 1402 * cr,
             y * 587000 + 587 * 1772 * cb)  # fmt: skip
    rgb: Values = np.clip((np.stack(parts, -1) + 293500) // 587000, 0, 255).astype(np.uint8)
    return rgb


def _check_codestream(source: Source, form: Form, data: bytes) -> None:
    """Raise `Corrupt` for a frame whose own header has another size, before memory is allocated."""
    size = _size_of_jpeg2000(data) or _size_of_jpeg(data)
    if size is None:
        raise Corrupt("an encoded frame has no header", path=source.path)
    if data.find(END, -PADDED) < 0 or (data[:2] == START and SCAN not in data):
        raise Corrupt(
            "an encoded frame has no end, or nothing before it", path=source.path,
            remedy="copy the file again; it is cut off, or damaged",
        )  # fmt: skip
    if size != (form.rows, form.columns, form.samples):
        raise Corrupt(
            "an encoded frame contradicts the header", path=source.path,
            expected=f"{form.rows} rows, {form.columns} columns, {form.samples} samples",
            got=f"{size[0]}, {size[1]}, {size[2]}",
        )  # fmt: skip


def _size_of_jpeg2000(data: bytes) -> tuple[int, int, int] | None:
    """Rows, columns and samples of the header of JPEG 2000, or None."""
    at = data.find(b"\xff\x4f\xff\x51", 0, 4096)
    if at < 0 or len(data) < at + 42:
        return None
    x1, y1, x0, y0 = struct.unpack_from(">4I", data, at + 8)
    (samples,) = struct.unpack_from(">H", data, at + 40)
    return y1 - y0, x1 - x0, samples


def _size_of_jpeg(data: bytes) -> tuple[int, int, int] | None:
    """Rows, columns and samples of the frame header of JPEG and JPEG-LS, or None."""
    at = 2
    if data[:2] != START:
        return None
    while at + 10 <= len(data):
        if data[at] != 0xFF:
            return None
        kind = data[at + 1]
        if kind == 0xFF:
            at += 1
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        if kind == 0xF7 or (0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC)):
            rows, columns = struct.unpack_from(">HH", data, at + 5)
            return rows, columns, data[at + 9]
        at += 2 + max(length, 2)
    return None
