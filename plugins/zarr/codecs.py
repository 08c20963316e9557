"""How chunks are encoded: checked once for an array, decoded within bounds, and encoded.

Every step is decoded to the number of bytes that it must have; a frame that says otherwise, or
would say nothing and go on, is refused before there is room for it.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported

from .tables import SHUFFLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .header import Codec

    Values = np.ndarray[Any, Any]
    Step = Callable[[Any], Any]

SLACK = 16  # times the bytes of a chunk: what a filter may make of it before it is compressed
CHECKSUMS = {"crc32c": 4, "crc32": 4, "adler32": 4, "fletcher32": 4, "jenkins_lookup3": 4}
# Filters of numcodecs between numbers and numbers: name -> its settings and their types.
FILTERS: dict[str, dict[str, tuple[type, ...]]] = {
    "shuffle": {"elementsize": (int,)},
    "delta": {"dtype": (str,), "astype": (str,)},
    "fixedscaleoffset": {"dtype": (str,), "astype": (str,), "scale": (int, float),
                         "offset": (int, float)},
    "quantize": {"dtype": (str,), "astype": (str,), "digits": (int,)},
    "bitround": {"keepbits": (int,)},
    "packbits": {},
    "astype": {"encode_dtype": (str,), "decode_dtype": (str,)},
}  # fmt: skip
UNSAFE = ("pickle", "json2", "msgpack2", "categorize", "vlen-array")
VARIABLE = ("vlen-utf8", "vlen-bytes")


class Pipeline:
    """The steps from the bytes under a key to the elements of a chunk.

    `shape` is that of the chunk, slowest axis first; `variable` is the most bytes that a chunk
    of texts of variable length may have, 0 for all other chunks. `Unsupported` for codecs that are
    not known, `Unsafe` for those that make objects of bytes.
    """

    def __init__(
        self, codecs: Sequence[Codec], shape: tuple[int, ...], dtype: np.dtype[Any], path: str,
        *, variable: int = 0,
    ) -> None:  # fmt: skip
        self.shape = shape
        self.dtype = dtype
        self.variable = variable
        self._order: tuple[int, ...] = tuple(range(len(shape)))
        self._steps: list[Step] = []
        whole = prod(shape) * dtype.itemsize
        size: int | None = None if variable else whole
        limit = variable or SLACK * whole + (1 << 16)
        for codec in codecs:
            name = codec.name.removeprefix("numcodecs.").lower()
            try:
                size = self._add(name, codec.settings, size, limit, path)
            except RaconvertError as error:
                error.path = error.path or path
                raise

    def _add(
        self, name: str, settings: dict[str, Any], size: int | None, limit: int, path: str
    ) -> int | None:
        """Add a step that decodes to `size` bytes (None: not known); how many it decodes from."""
        if name == "transpose" and not (self.variable and len(self.shape) > 1):
            self._transpose(settings, path)
            return size
        if name == "bytes":
            if settings.get("endian", "little") not in ("little", "big"):
                raise Corrupt("metadata field 'endian' is wrong", expected="little or big")
            return size
        if name in VARIABLE and self.variable:
            return None
        if name in UNSAFE:
            raise Unsafe(
                f"array is encoded by '{name}', which makes objects of bytes",
                remedy="no flag allows this; write it with another codec",
            )
        if name in CHECKSUMS:
            self._steps.append(partial(_checked, name, _location(name, settings)))
            return None if size is None else size + CHECKSUMS[name]
        if name in FILTERS:
            self._steps.append(_filter(name, settings))
            return size if name == "shuffle" else None
        if name in DECODERS:
            self._steps.append(partial(DECODERS[name], settings, size, size or limit))
            return None
        raise Unsupported(f"array is encoded by '{name[:80]}', which is not known here")

    def _transpose(self, settings: dict[str, Any], path: str) -> None:
        order, rank = settings.get("order"), len(self.shape)
        if self._steps:
            raise Unsupported("array is transposed after it was encoded", path=path)
        if order in ("C", "F"):
            order = [*range(rank)] if order == "C" else [*range(rank)][::-1]
        if not isinstance(order, list) or sorted(map(repr, order)) != sorted(
            map(repr, range(rank))
        ):
            raise Corrupt(
                "codec 'transpose' has a wrong order", path=path,
                expected=f"the numbers 0 to {rank - 1}", got=repr(order)[:80],
            )  # fmt: skip
        self._order = tuple(self._order[axis] for axis in order)

    def decoded(self, data: bytes) -> Values:
        """The elements of a chunk, or the bytes of one of texts of variable length.

        Raises `Corrupt` for bytes that are not a chunk.
        """
        value: Any = data
        try:
            for step in reversed(self._steps):
                value = step(value)
        except (RuntimeError, ValueError, TypeError, OverflowError, EOFError, OSError, zlib.error,
                lzma.LZMAError, IndexError, ZeroDivisionError) as error:  # fmt: skip
            if isinstance(error, RaconvertError):
                raise
            raise Corrupt(f"cannot be decoded: {error}"[:200]) from error
        raw = _raw(value)
        if self.variable:
            return raw
        nbytes = prod(self.shape) * self.dtype.itemsize
        if raw.size != nbytes:
            raise Corrupt("has another size than a chunk", expected=f"{nbytes} bytes", got=raw.size)
        there = tuple(self.shape[axis] for axis in self._order)
        values = raw.view(self.dtype).reshape(there)
        back = sorted(range(len(there)), key=self._order.__getitem__)
        return values.transpose(back)


def _raw(value: Any) -> Values:
    """Bytes or an array as bytes."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return np.frombuffer(value, np.uint8)


# Checksums and filters ----------------------------------------------------------------------------


def _location(name: str, settings: dict[str, Any]) -> str:
    """Where the checksum stands."""
    usual = "end" if name in ("crc32c", "fletcher32", "jenkins_lookup3") else "start"
    found = settings.get("location", usual)
    if found not in ("start", "end"):
        raise Corrupt(f"codec '{name}' has a wrong location", expected="start or end")
    return str(found)


def _checked(name: str, location: str, value: Any) -> Any:
    data = _raw(value)
    if data.size < CHECKSUMS[name]:
        raise Corrupt("is too short for its checksum", got=f"{data.size} bytes")
    if name in ("fletcher32", "jenkins_lookup3"):
        import numcodecs

        return numcodecs.get_codec({"id": name}).decode(data)
    stored, rest = (data[:4], data[4:]) if location == "start" else (data[-4:], data[:-4])
    if name == "crc32c":
        import google_crc32c

        found = google_crc32c.value(rest.tobytes())
    else:
        found = (zlib.crc32 if name == "crc32" else zlib.adler32)(rest.tobytes())
    if found != int.from_bytes(stored.tobytes(), "little"):
        raise Corrupt(f"has a wrong checksum ({name})")
    return rest


def _filter(name: str, settings: dict[str, Any]) -> Step:
    known = FILTERS[name]
    for key, value in settings.items():
        if key not in known or isinstance(value, bool) or not isinstance(value, known[key]):
            if value is None and key == "astype":
                continue
            raise Corrupt(f"codec '{name}' has a wrong setting '{key[:40]}'", got=repr(value)[:80])
        if isinstance(value, str):
            _check_number(name, value)
        elif key == "elementsize" and isinstance(value, int) and not 0 < value < 1 << 16:
            raise Corrupt(f"codec '{name}' has a wrong setting '{key}'", got=value)
    import numcodecs

    try:
        codec = numcodecs.get_codec({"id": name, **settings})
    except (TypeError, ValueError) as error:
        raise Corrupt(f"codec '{name}' lacks a setting: {error}"[:200]) from error
    return lambda value: codec.decode(_raw(value))


def _check_number(name: str, declared: str) -> None:
    try:
        good = np.dtype(declared).kind in "biufcmM"
    except (TypeError, ValueError, SyntaxError):
        good = False
    if not good:
        raise Corrupt(f"codec '{name}' has a type that is not a number", got=repr(declared)[:80])


# Compressors --------------------------------------------------------------------------------------


def _too_long(limit: int, got: object = "more") -> Corrupt:
    return Corrupt("decodes to more than a chunk", expected=f"at most {limit} bytes", got=got)


def _inflated(wrapping: int, _: dict[str, Any], size: int | None, limit: int, data: Any) -> bytes:
    rest, found, room = bytes(_raw(data)), [], limit
    while rest:
        decoder = zlib.decompressobj(wrapping)
        piece = decoder.decompress(rest, room + 1)
        room -= len(piece)
        if room < 0:
            raise _too_long(limit)
        if not decoder.eof:
            raise Corrupt("ends inside its deflated bytes")
        found.append(piece)
        rest = decoder.unused_data if wrapping > 15 else b""
    return b"".join(found)


def _bunzipped(_: dict[str, Any], size: int | None, limit: int, data: Any) -> bytes:
    return _by_decoder(bz2.BZ2Decompressor(), limit, data)


def _unlzma(settings: dict[str, Any], size: int | None, limit: int, data: Any) -> bytes:
    form, filters = settings.get("format", 1), settings.get("filters")
    if form not in (0, 1, 2, 3) or (filters is not None and not isinstance(filters, list)):
        raise Corrupt("codec 'lzma' has a wrong setting", got=repr(settings)[:80])
    if form == lzma.FORMAT_RAW:
        if any(isinstance(f, dict) and f.get("dict_size", 0) > 1 << 26 for f in filters or ()):
            raise Corrupt("codec 'lzma' asks for a very large dictionary")
        return _by_decoder(lzma.LZMADecompressor(form, None, filters), limit, data)
    return _by_decoder(lzma.LZMADecompressor(form, limit + (128 << 20)), limit, data)


def _by_decoder(decoder: Any, limit: int, data: Any) -> bytes:
    found: bytes = decoder.decompress(bytes(_raw(data)), limit + 1)
    if len(found) > limit:
        raise _too_long(limit)
    if not decoder.eof:
        raise Corrupt("ends inside its compressed bytes")
    return found


def _unzstd(_: dict[str, Any], size: int | None, limit: int, data: Any) -> Any:
    """Frames of known sizes, which numcodecs adds up, or of one that ends where it should."""
    from numcodecs.zstd import Zstd

    raw = _raw(data)
    declared = frame_size(raw[:18].tobytes())
    if declared is None and size is None:
        raise Unsupported("is a Zstandard frame that does not say its size, and neither can we")
    room = np.empty(limit, np.uint8)
    try:
        Zstd().decode(raw, room)  # refused by itself where the frames have more
    except ValueError as error:
        raise _too_long(limit) from error
    if declared is None or declared == size:
        return room
    return Zstd().decode(raw)


def frame_size(head: bytes) -> int | None:
    """The size that the first Zstandard frame declares (RFC 8878, 3.1.1.1); None if it has none."""
    if len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
        raise Corrupt("is not a Zstandard frame")
    flags = head[4]
    single = flags >> 5 & 1
    width = (1 if single else 0, 2, 4, 8)[flags >> 6]
    if not width:
        return None
    at = 5 + (not single) + (0, 1, 2, 4)[flags & 3]
    return int.from_bytes(head[at : at + width], "little") + (256 if width == 2 else 0)


def _unblosc(_: dict[str, Any], size: int | None, limit: int, data: Any) -> Any:
    from numcodecs.blosc import Blosc

    raw = _raw(data)
    if raw.size < 16:
        raise Corrupt("is too short for Blosc", got=f"{raw.size} bytes")
    nbytes, stored = (int(n) for n in raw[:16].view("<u4")[[1, 3]])
    if nbytes > limit:
        raise _too_long(limit, nbytes)
    if stored != raw.size:
        raise Corrupt("is cut, or too long", expected=f"{stored} bytes", got=raw.size)
    return Blosc().decode(raw)


def _unlz4(_: dict[str, Any], size: int | None, limit: int, data: Any) -> Any:
    from numcodecs.lz4 import LZ4

    raw = _raw(data)
    nbytes = int.from_bytes(raw[:4].tobytes(), "little")
    if raw.size < 4 or nbytes > limit:
        raise _too_long(limit, nbytes)
    return LZ4().decode(raw)


DECODERS: dict[str, Callable[[dict[str, Any], int | None, int, Any], Any]] = {
    "gzip": partial(_inflated, zlib.MAX_WBITS | 16),
    "zlib": partial(_inflated, zlib.MAX_WBITS),
    "bz2": _bunzipped,
    "lzma": _unlzma,
    "zstd": _unzstd,
    "blosc": _unblosc,
    "lz4": _unlz4,
}


def texts_of(raw: Values, count: int) -> list[bytes]:
    """The elements of variable length in a chunk: a number of them, then each with its length.

    Raises `Corrupt` for bytes that are not that.
    """
    data = raw.tobytes()
    declared = int.from_bytes(data[:4], "little")
    if len(data) < 4 or declared != count:
        raise Corrupt("has another number of texts", expected=count, got=declared)
    found, at = [], 4
    for _ in range(count):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data) or at + 4 > len(data):
            raise Corrupt("ends inside a text")
        found.append(data[at + 4 : end])
        at = end
    return found


# Encoding -----------------------------------------------------------------------------------------


def encoder(name: str, level: int | None, width: int, inner: str = "") -> Step | None:
    """What compresses the bytes of a chunk of elements of `width` bytes; None for nothing."""
    if name == "none":
        return None
    if name == "gzip":
        return partial(_gzipped, 6 if level is None else level)
    if name == "zstd":
        from numcodecs.zstd import Zstd

        zstd: Step = Zstd(level=0 if level is None else level).encode
        return zstd
    from numcodecs import blosc

    codec = blosc.Blosc(inner or "zstd", 5 if level is None else level, SHUFFLES["shuffle"])

    def encode(data: Any) -> Any:
        return codec.encode(np.frombuffer(data, f"V{width}") if width < 256 else data)

    return encode


def _gzipped(level: int, data: Any) -> bytes:
    made = zlib.compressobj(level, wbits=zlib.MAX_WBITS | 16)
    return made.compress(data) + made.flush()


def with_crc32c(data: Any) -> bytes:
    """The bytes with their checksum behind them."""
    import google_crc32c

    raw = bytes(data)
    return raw + int(google_crc32c.value(raw)).to_bytes(4, "little")
