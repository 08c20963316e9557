"""Ancillary chunks as metadata fields, and back (PNG 3, clause 11.3).

The fields of the namespace ``png`` are plain YAML-safe values under lower-case names of the chunks
that the file has. Numbers are the integers of the file: nothing is rounded or applied.

==============  ======================================================================
``gama srgb``   an integer: gamma x 100000; rendering intent
``chrm cicp``   a list of integers, as ``mdcv clli phys`` (x, y, unit)
``sbit bkgd``   a list of integers, one per channel, as ``hist`` (one per palette entry)
``iccp``        ``name`` and ``profile`` (base64, uncompressed)
``splt``        a list of ``name``, ``depth``, ``entries`` (base64)
``text``        a list of [keyword, text, chunk] or [keyword, text, iTXt, language, translated]
``time``        ``2001-02-03T04:05:06``, in UTC
``exif``        base64
``other``       a list of [chunk, base64]: unknown chunks that declare themselves safe to copy
==============  ======================================================================

The fields of the pixels (``bit_depth color_type palette trns native``) are those of `pixel_fields`.
"""

from __future__ import annotations

import struct
import zlib
from binascii import a2b_base64, b2a_base64
from collections import namedtuple
from functools import partial
from struct import Struct

from raconvert.errors import Unsupported, worded
from raconvert.files.inflate import inflated

from .tables import GREY, PALETTE, RGB, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.files.limits import Limits

    from .header import Header, Png
    from .tables import Chunk

    Fields = dict[str, Any]
    Chunks = list[tuple[bytes, bytes]]

KEYWORD_BYTES = 79  # clause 11.3.3.2
LONG_TEXT = 1024  # longer international texts are written compressed
SPLT_ENTRY_BYTES = {8: 6, 16: 10}


# ------------------------------------------------------------------------- single chunk kinds


class _Room:
    """Inflates the texts and profiles of one file, up to a limit of all of them."""

    def __init__(self, limits: Limits) -> None:
        self._left, self._most = limits.metadata_bytes, limits.metadata_chunk_bytes

    def inflate(self, data: bytes) -> bytes:
        """The inflated bytes. Raises ValueError if they are damaged or too many."""
        content = inflated(data, min(self._left, self._most))
        self._left -= len(content)
        return content


def _split(data: bytes, parts: int) -> list[bytes]:
    """Split at the first NUL bytes into exactly `parts`. Raises ValueError."""
    pieces = data.split(b"\0", parts - 1)
    if len(pieces) < parts:
        raise ValueError("a separator is missing")
    return pieces


def _keyword(data: bytes) -> str:
    if not 1 <= len(data) <= KEYWORD_BYTES:
        raise ValueError(f"a keyword of {len(data)} bytes")
    return data.decode("latin-1")


def _bytes(text: str) -> bytes:
    """The bytes of base64 text. Raises ValueError for other text."""
    return a2b_base64(text, strict_mode=True)


def _b64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def _method(data: bytes) -> bytes:
    """The bytes behind the compression method. Raises ValueError if that is not 0."""
    if data[:1] != b"\0":
        raise ValueError("unknown compression method")
    return data[1:]


def _parse_text(chunk: Chunk, png: Png, room: _Room) -> list[str]:
    keyword, data = _split(chunk.data, 2)
    fields = [_keyword(keyword), "", chunk.kind.decode("ascii")]
    if chunk.kind == b"iTXt":
        compressed, data = data[:1], _method(data[1:])
        language, translated, data = _split(data, 3)
        fields += [language.decode("latin-1"), translated.decode("utf-8")]
        fields[1] = (room.inflate(data) if compressed == b"\1" else data).decode("utf-8")
    elif chunk.kind == b"zTXt":
        fields[1] = room.inflate(_method(data)).decode("latin-1")
    else:
        fields[1] = data.decode("latin-1")
    return fields


def _format_text(value: list[str]) -> tuple[bytes, bytes]:
    keyword, text, kind, *international = value
    lead = keyword.encode("latin-1") + b"\0"
    if not 1 < len(lead) <= KEYWORD_BYTES + 1 or kind not in ("tEXt", "zTXt", "iTXt"):
        raise ValueError("a keyword has 1 to 79 characters, a kind is tEXt, zTXt or iTXt")
    if kind == "tEXt":
        return b"tEXt", lead + text.encode("latin-1")
    if kind == "zTXt":
        return b"zTXt", lead + b"\0" + zlib.compress(text.encode("latin-1"))
    language, translated = international
    data = text.encode("utf-8")
    compressed = len(data) > LONG_TEXT
    lead += bytes([compressed, 0]) + language.encode("latin-1") + b"\0"
    lead += translated.encode("utf-8") + b"\0"
    return b"iTXt", lead + (zlib.compress(data) if compressed else data)


def _parse_profile(chunk: Chunk, png: Png, room: _Room) -> Fields:
    name, data = _split(chunk.data, 2)
    return {"name": _keyword(name), "profile": _b64(room.inflate(_method(data)))}


def _format_profile(value: Fields) -> bytes:
    profile = zlib.compress(_bytes(value["profile"]))
    return value["name"].encode("latin-1") + b"\0\0" + profile


def _parse_suggested(chunk: Chunk, png: Png, room: _Room) -> Fields:
    name, data = _split(chunk.data, 2)
    depth = data[0] if data else 0
    if depth not in SPLT_ENTRY_BYTES or (len(data) - 1) % SPLT_ENTRY_BYTES[depth]:
        raise ValueError("its entries are not whole")
    return {"name": _keyword(name), "depth": depth, "entries": _b64(data[1:])}


def _format_suggested(value: Fields) -> tuple[bytes, bytes]:
    lead = value["name"].encode("latin-1") + b"\0" + bytes([value["depth"]])
    return b"sPLT", lead + _bytes(value["entries"])


def _parse_time(chunk: Chunk, png: Png, room: _Room) -> str:
    year, month, day, hour, minute, second = fields = _TIME.unpack(chunk.data)
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
        raise ValueError(f"time is out of range: {fields}")
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"


def _format_time(value: str) -> bytes:
    date, clock = value.split("T")
    return _TIME.pack(*map(int, date.split("-")), *map(int, clock.split(":")))


_TIME = Struct(">H5B")


def _parse_exif(chunk: Chunk, png: Png, room: _Room) -> str:
    return _b64(chunk.data)


# -------------------------------------------------------------------------------- the tables

# Chunks that are nothing but numbers.
NUMBERS = {
    b"cHRM": Struct(">8I"),
    b"cICP": Struct(">4B"),
    b"cLLI": Struct(">2I"),
    b"gAMA": Struct(">I"),
    b"mDCV": Struct(">8H2I"),
    b"pHYs": Struct(">2IB"),
    b"sRGB": Struct(">B"),
}
# Chunks whose count of numbers depends on the colour type: the code of one number.
SAMPLES = {b"sBIT": "B", b"bKGD": "H", b"hIST": "H"}

Codec = namedtuple("Codec", "parse format")
SINGLE: dict[bytes, Codec] = {
    b"eXIf": Codec(_parse_exif, _bytes),
    b"iCCP": Codec(_parse_profile, _format_profile),
    b"tIME": Codec(_parse_time, _format_time),
}
LISTS: dict[bytes, Codec] = {
    b"sPLT": Codec(_parse_suggested, _format_suggested),
    b"iTXt": Codec(_parse_text, _format_text),
    b"tEXt": Codec(_parse_text, _format_text),
    b"zTXt": Codec(_parse_text, _format_text),
}
LIST_KEYS = {b"sPLT": "splt", b"iTXt": "text", b"tEXt": "text", b"zTXt": "text"}

# The order of writing: before PLTE, after PLTE (clause 5.6).
BEFORE_PALETTE = (b"cICP", b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"sBIT", b"mDCV", b"cLLI")
AFTER_PALETTE = (b"bKGD", b"hIST", b"pHYs", b"eXIf", b"tIME")


def samples_struct(kind: bytes, header: Header, entries: int) -> Struct:
    """The layout of sBIT, bKGD or hIST for an image whose palette has so many `entries`."""
    if kind == b"hIST":
        count = entries
    elif header.color_type == PALETTE:
        return Struct(">3B" if kind == b"sBIT" else ">B")
    else:
        # The background of an image with alpha has no alpha itself.
        count = header.channels - (kind == b"bKGD" and header.channels in (2, 4))
    return Struct(f">{count}{SAMPLES[kind]}")


# -------------------------------------------------------------------------- chunks to fields


def fields_of(png: Png) -> Fields:
    """The metadata of the ancillary chunks; a note names each chunk that cannot be parsed."""
    fields: Fields = {}
    room = _Room(png.limits)
    for chunk in png.ancillary:
        if chunk.kind == b"acTL":
            continue
        try:
            _add_field(fields, chunk, png, room)
        except (ValueError, struct.error) as error:
            name = chunk.kind.decode("ascii")
            png.note(f"the chunk {name} at byte {chunk.offset} was ignored: {error}")
    return fields


def _add_field(fields: Fields, chunk: Chunk, png: Png, room: _Room) -> None:
    """Parse an ancillary chunk into its field. Raises ValueError and `struct.error`."""
    kind = chunk.kind
    if kind in LISTS:
        fields.setdefault(LIST_KEYS[kind], []).append(LISTS[kind].parse(chunk, png, room))
    elif kind in RULES:
        fields[_key(kind)] = _parse_single(chunk, png, room)
    elif kind[3] & 0x20:
        fields.setdefault("other", []).append([kind.decode("ascii"), _b64(chunk.data)])
    else:
        raise ValueError("unknown, and not safe to copy")


def _key(kind: bytes) -> str:
    return kind.decode("ascii").lower()


def _parse_single(chunk: Chunk, png: Png, room: _Room) -> Any:
    kind = chunk.kind
    if kind in SINGLE:
        return SINGLE[kind].parse(chunk, png, room)
    if kind in NUMBERS:
        values = list(NUMBERS[kind].unpack(chunk.data))
        return values[0] if len(values) == 1 else values
    return list(samples_struct(kind, png.header, len(png.palette or b"") // 3).unpack(chunk.data))


def pixel_fields(png: Png, *, palette: str, depth: str, trns: str) -> Fields:
    """The fields about the pixels that the array does not show, for these options of `read`."""
    header = png.header
    fields: Fields = {}
    if header.bit_depth < 8:
        fields["bit_depth"] = header.bit_depth
    if header.color_type == PALETTE:
        fields["color_type"] = PALETTE
    elif header.bit_depth < 8 and depth == "native":
        fields["native"] = True
    if png.palette is not None:
        colors = png.palette.hex()
        fields["palette"] = [f"#{colors[i : i + 6]}" for i in range(0, len(colors), 6)]
    if png.trns is not None:
        if header.color_type == PALETTE:
            fields["trns"] = list(png.trns)
        elif trns == "keep":
            key = Struct(f">{len(png.trns) // 2}H").unpack(png.trns)
            fields["trns"] = [sample & ((1 << header.bit_depth) - 1) for sample in key]
    return fields


def animation_notes(png: Png) -> list[str]:
    """The notes on an animation if only its default image is read."""
    control = png.first(b"acTL")
    if control is None:
        return ["animation chunks without an acTL chunk were ignored"] if png.frames else []
    count = Struct(">I").unpack_from(control)[0]
    if count < 2 and (not png.frames or png.frames[0].spans is png.idat):
        return []
    what = f"animated PNG of {count} frames: only its default image is read"
    return [worded(f"{what} (`--in-opt frames=all` reads them all)")]


# -------------------------------------------------------------------------- fields to chunks


def chunks_of(fields: Fields, header: Header, entries: int, path: str) -> tuple[Chunks, Chunks]:
    """The ancillary chunks before PLTE and after it (before IDAT), in legal order.

    Fields of another colour type or depth than that of `header` are left out: the array was changed
    since. Raises `Unsupported` for a field of the wrong form.
    """
    early = list(_singles(BEFORE_PALETTE, fields, header, entries, path))
    late = list(_singles(AFTER_PALETTE, fields, header, entries, path))
    for key, form in (("splt", _format_suggested), ("text", _format_text), ("other", _other)):
        values = _formatted(key, list, fields.get(key, []), path)
        late.extend(_formatted(key, form, value, path) for value in values)
    return early, late


def _other(value: list[str]) -> tuple[bytes, bytes]:
    """Kind and payload of an unknown chunk. Raises ValueError."""
    kind = value[0].encode("ascii")
    if len(kind) != 4 or not kind.isalpha() or not (kind[0] & kind[3] & 0x20) or kind in RULES:
        raise ValueError("an unknown ancillary chunk that is safe to copy was expected")
    return kind, _bytes(value[1])


def _singles(
    kinds: tuple[bytes, ...], fields: Fields, header: Header, entries: int, path: str
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the chunks of these kinds that the fields hold, each once."""
    for kind in kinds:
        key = _key(kind)
        if key in fields:
            form = partial(_format, kind, header=header, entries=entries)
            data = _formatted(key, form, fields[key], path)
            if data is not None:
                yield kind, data


def _format(kind: bytes, value: Any, header: Header, entries: int) -> bytes | None:
    """The payload of a chunk that occurs once; None if it belongs to another image."""
    if kind in SINGLE:
        return SINGLE[kind].format(value)
    if kind in NUMBERS:
        return NUMBERS[kind].pack(*(value if isinstance(value, list) else [value]))
    layout = samples_struct(kind, header, entries)
    lowest, highest = _sample_range(kind, header, entries)
    fits = len(value) == len(layout.unpack(bytes(layout.size))) and value
    if not fits or min(value) < lowest or max(value) > highest:
        return None
    return layout.pack(*value)


def _sample_range(kind: bytes, header: Header, entries: int) -> tuple[int, int]:
    """The least and the greatest number that sBIT, bKGD or hIST may have."""
    if kind == b"sBIT":
        return 1, 8 if header.color_type == PALETTE else header.bit_depth
    if kind == b"bKGD":
        return 0, (entries if header.color_type == PALETTE else 1 << header.bit_depth) - 1
    return 0, 0xFFFF


def _formatted(key: str, form: Callable[[Any], Any], value: Any, path: str) -> Any:
    """The result of `form` for the value of a field. Raises `Unsupported` if it is not valid."""
    try:
        return form(value)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, struct.error) as error:
        raise Unsupported(
            f"the metadata field png.{key} cannot be written: {error}",
            path=path,
            got=repr(value)[:80],
            remedy="correct the field, or leave the metadata out with `--meta drop`",
        ) from error


def palette_of(fields: Fields, path: str) -> tuple[bytes, bytes | None] | None:
    """PLTE and tRNS of the fields ``palette`` and ``trns``, or None without a palette."""
    if "palette" not in fields:
        return None
    colors = _formatted("palette", _palette_bytes, fields["palette"], path)
    if fields.get("color_type") != PALETTE or "trns" not in fields:
        return colors, None
    form = partial(_alpha_bytes, entries=len(colors) // 3)
    return colors, _formatted("trns", form, fields["trns"], path)


def _alpha_bytes(alpha: Any, entries: int) -> bytes | None:
    """The tRNS of a palette of so many entries; None if it is empty. Raises TypeError."""
    if not isinstance(alpha, list):  # bytes(N) would be N zeros
        raise TypeError("a list of numbers was expected")
    return bytes(alpha[:entries]) or None


def _palette_bytes(colors: list[str]) -> bytes:
    if not 1 <= len(colors) <= 256 or any(len(c) != 7 or c[0] != "#" for c in colors):
        raise ValueError("1 to 256 colours of the form #rrggbb were expected")
    return bytes.fromhex("".join(color[1:] for color in colors))


def color_key_of(fields: Fields, header: Header, scale: int, path: str) -> bytes | None:
    """The tRNS payload of a grey or RGB image, or None without a colour key that fits.

    The field holds the samples of the file; `scale` is the factor from these to the values.
    """
    if "trns" not in fields or fields.get("color_type") == PALETTE:
        return None
    channels = {GREY: 1, RGB: 3}.get(header.color_type, 0)

    def pack(key: list[int]) -> bytes | None:
        if len(key) != channels or max(key) * scale >= 1 << header.bit_depth:
            return None
        return Struct(f">{channels}H").pack(*(sample * scale for sample in key))

    return _formatted("trns", pack, fields["trns"], path)
