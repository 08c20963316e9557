"""Codecs of chunks: checked once for an array, decoded within bounds, and encoded.

Every step is decoded to the number of bytes that it must have; a frame that declares more, or has
more without declaring it, is refused before memory is allocated for it.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from functools import partial
from math import isfinite, prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt, RaconvertError, Unsupported

from .tables import SHUFFLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Literal

    from raconvert.files.limits import Limits

    from .header import Codec

    Values = np.ndarray[Any, Any]
    Step = Callable[[Any], Any]

HEADROOM = 1 << 16  # an encoded chunk may have one eighth and so many bytes more than its elements
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
NUMBER = re.compile(
    r"[<>|=]?(?:[iu][1248]|f[248]|c(?:8|16)|b1|\?|[mM]8(?:\[[0-9]{0,10}[A-Za-z\u03bc]{1,8}\])?)"
    r"|bool|u?int(?:8|16|32|64)|float(?:16|32|64)|complex(?:64|128)"
)
VARIABLE = ("vlen-utf8", "vlen-bytes")
FEW_BYTES = 512  # of a further member of a gzip file, at first


class Pipeline:
    """The steps from the bytes under a key to the elements of a chunk, each with its bounds.

    `shape` is that of the chunk, slowest axis first; `variable` is the most bytes that a chunk
    of texts of variable length may have, 0 for all other chunks. `most` is the number of bytes that
    a stored chunk has at most, `needs` that of the largest decoded step. Raises `Unsupported` for
    codecs that are not known, `Corrupt` for wrong settings.
    """

    def __init__(
        self, codecs: Sequence[Codec], shape: tuple[int, ...], dtype: np.dtype[Any], path: str,
        limits: Limits, *, variable: int = 0,
    ) -> None:  # fmt: skip
        self.shape = shape
        self.dtype = dtype
        self.limits = limits
        self.variable = variable
        self._order: tuple[int, ...] = tuple(range(len(shape)))
        self._steps: list[Step] = []
        self.most = self.needs = variable or prod(shape) * dtype.itemsize
        self._exact = not variable
        for codec in codecs:
            try:
                self._add(codec.name, codec.settings, path)
            except RaconvertError as error:
                error.path = error.path or path
                raise

    def _add(self, name: str, settings: dict[str, Any], path: str) -> None:
        """Add a step that decodes to at most, or exactly, `most` bytes; set `most` to its input."""
        if name == "transpose" and not (self.variable and len(self.shape) > 1):
            self._transpose(settings, path)
        elif name == "bytes":
            if settings.get("endian", "little") not in ("little", "big"):
                raise Corrupt("metadata field 'endian' is wrong", expected="little or big")
        elif name in VARIABLE and self.variable:
            self._exact = False
        elif name in CHECKSUMS:
            self._steps.append(partial(_checked, name, _location(name, settings)))
            self.most += CHECKSUMS[name]
        elif name in FILTERS:
            step, nbytes, needs = _filter(name, settings, self.most, exact=self._exact)
            self._steps.append(step)
            self.most = nbytes
            self.needs = max(self.needs, needs)
        elif name in COMPRESSORS:
            size = self.most if self._exact else None
            decode = COMPRESSORS[name][0]
            if name == "lzma":
                decode = partial(decode, self.limits)
            self._steps.append(partial(decode, settings, size, self.most))
            self._exact = False
            self.most += self.most // 8 + HEADROOM
        else:
            raise Unsupported(f"array is encoded by '{name[:80]}', which is not known here")

    def _transpose(self, settings: dict[str, Any], path: str) -> None:
        """Apply an order of axes to the one by which elements are stored."""
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
        """Decode a chunk: its elements, or the bytes of its texts of variable length.

        Raises `Corrupt` for bytes that are not a chunk.
        """
        value: Any = data
        try:
            for step in reversed(self._steps):
                value = step(value)
        except (RuntimeError, ArithmeticError, ValueError, TypeError, EOFError, OSError,
                zlib.error, lzma.LZMAError, LookupError) as error:  # fmt: skip
            if isinstance(error, RaconvertError):
                raise
            raise Corrupt(f"cannot be decoded: {error}"[:200]) from error
        raw = _raw(value)
        if self.variable:
            return raw
        nbytes = prod(self.shape) * self.dtype.itemsize
        if raw.size != nbytes:
            raise Corrupt("has another size than a chunk", expected=f"{nbytes} bytes", got=raw.size)
        stored_shape = tuple(self.shape[axis] for axis in self._order)
        values = raw.view(self.dtype).reshape(stored_shape)
        inverse = sorted(range(len(stored_shape)), key=self._order.__getitem__)
        return values.transpose(inverse)


def _raw(value: Any) -> Values:
    """View bytes, or an array, as an array of bytes."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return np.frombuffer(value, np.uint8)


# Checksums and filters ----------------------------------------------------------------------------


def _location(name: str, settings: dict[str, Any]) -> str:
    """Return the side of the chunk that the checksum is on: start or end."""
    usual = "end" if name in ("crc32c", "fletcher32", "jenkins_lookup3") else "start"
    location = settings.get("location", usual)
    if location not in ("start", "end"):
        raise Corrupt(f"codec '{name}' has a wrong location", expected="start or end")
    return str(location)


def _checked(name: str, location: str, value: Any) -> Any:
    """Verify the checksum of bytes; return them without it. Raises `Corrupt`."""
    data = _raw(value)
    if data.size < CHECKSUMS[name]:
        raise Corrupt("is too short for its checksum", got=f"{data.size} bytes")
    if name in ("fletcher32", "jenkins_lookup3"):
        import numcodecs

        return numcodecs.get_codec({"id": name}).decode(data)
    stored, rest = (data[:4], data[4:]) if location == "start" else (data[-4:], data[:-4])
    if name == "crc32c":
        import google_crc32c

        computed = google_crc32c.value(rest.tobytes())
    else:
        computed = (zlib.crc32 if name == "crc32" else zlib.adler32)(rest.tobytes())
    if computed != int.from_bytes(stored.tobytes(), "little"):
        raise Corrupt(f"has a wrong checksum ({name})")
    return rest


def _filter(
    name: str, settings: dict[str, Any], nbytes: int, *, exact: bool
) -> tuple[Step, int, int]:
    """Return a filter that decodes to `nbytes` bytes: the step, its input bytes, and its memory."""
    types = FILTERS[name]
    for key, value in settings.items():
        if key not in types or isinstance(value, bool) or not isinstance(value, types[key]):
            if value is None and key == "astype":
                continue
            raise Corrupt(f"codec '{name}' has a wrong setting '{key[:40]}'", got=repr(value)[:80])
        if isinstance(value, str):
            _check_number(name, value)
        elif key == "elementsize" and isinstance(value, int) and not 0 < value < 1 << 16:
            raise Corrupt(f"codec '{name}' has a wrong setting '{key}'", got=value)
        elif key in ("scale", "offset") and not _is_usable(value, zero=key == "offset"):
            raise Corrupt(
                f"codec '{name}' has a wrong setting '{key}'", got=repr(value)[:80],
                expected="a finite number" + ", not 0" * (key == "scale"),
            )  # fmt: skip
    import numcodecs

    try:
        codec = numcodecs.get_codec({"id": name, **settings})
    except (TypeError, ValueError, OverflowError) as error:
        raise Corrupt(f"codec '{name}' lacks a setting: {error}"[:200]) from error
    before, count, decoded = _sizes(name, settings, nbytes, exact=exact)
    # A value that no integer can have is an error, not the result of the processor's conversion.
    invalid: Literal["raise", "ignore"] = "raise" if decoded.kind in "iub" else "ignore"

    def step(value: Any) -> Any:
        with np.errstate(divide="raise", invalid=invalid, over="ignore", under="ignore"):
            return codec.decode(_raw(value))

    working = 16 * count if name == "fixedscaleoffset" else 0  # numbers of double precision
    return step, before, max(before, nbytes, working)


def _is_usable(value: Any, *, zero: bool) -> bool:
    """True for a finite number; for 0 only if `zero`."""
    try:
        return isfinite(value) and (zero or value != 0)
    except OverflowError:
        return False


def _sizes(
    name: str, settings: dict[str, Any], nbytes: int, *, exact: bool
) -> tuple[int, int, np.dtype[Any]]:
    """The bytes of input of a filter, and count and type of its numbers, for `nbytes` of output."""
    if name == "packbits":
        return 1 + -(-nbytes // 8), nbytes, np.dtype("?")
    if name not in ("delta", "fixedscaleoffset", "quantize", "astype"):
        return nbytes, nbytes, np.dtype("u1")
    keys = ("decode_dtype", "encode_dtype") if name == "astype" else ("dtype", "astype")
    decoded = np.dtype(settings[keys[0]])
    encoded = np.dtype(settings.get(keys[1]) or decoded)
    if encoded.kind == "c" and decoded.kind != "c":
        raise Corrupt(
            f"codec '{name}' makes real numbers of complex ones", expected=decoded, got=encoded
        )
    count, rest = divmod(nbytes, decoded.itemsize)
    if rest and exact:
        raise Corrupt(
            f"codec '{name}' does not fill a chunk", got=f"{nbytes} bytes",
            expected=f"a multiple of {decoded.itemsize}",
        )  # fmt: skip
    return (count + bool(rest)) * encoded.itemsize, count, decoded


def _check_number(name: str, declared: str) -> None:
    """Raise `Corrupt` if a setting is not the name of a type of numbers."""
    if NUMBER.fullmatch(declared[:64]) is None or len(declared) > 64:
        raise Corrupt(f"codec '{name}' has a type that is not a number", got=declared[:80])
    try:
        np.dtype(declared)
    except (TypeError, ValueError) as error:
        raise Corrupt(f"codec '{name}' has a type that is not a number", got=declared) from error


# Compressors --------------------------------------------------------------------------------------


def _too_long(limit: int, got: object = "more") -> Corrupt:
    return Corrupt("decodes to more than a chunk", expected=f"at most {limit} bytes", got=got)


def _inflated(wrapping: int, _: dict[str, Any], size: int | None, limit: int, data: Any) -> bytes:
    """Inflate a zlib stream, or the members of a gzip file, one after the other."""
    raw, pieces, left = memoryview(bytes(_raw(data))), [], limit
    step = len(raw)  # nearly all files have one member
    while raw:
        decoder, nbytes = zlib.decompressobj(wrapping), step
        while not decoder.eof:
            if not raw:
                raise Corrupt("ends inside its deflated bytes")
            piece = decoder.decompress(raw[:nbytes], left + 1)
            left -= len(piece)
            if left < 0:
                raise _too_long(limit)
            pieces.append(piece)
            raw = raw[min(nbytes, len(raw)) - len(decoder.unused_data) :]
            nbytes *= 2
        if wrapping <= zlib.MAX_WBITS:
            break
        step = FEW_BYTES  # zlib copies the bytes behind a member: few, as there may be many members
    return b"".join(pieces)


def _bunzipped(_: dict[str, Any], size: int | None, limit: int, data: Any) -> bytes:
    return _by_decoder(bz2.BZ2Decompressor(), limit, data)


def _unlzma(
    limits: Limits, settings: dict[str, Any], size: int | None, limit: int, data: Any
) -> bytes:
    form, filters = settings.get("format", 1), settings.get("filters")
    if form not in (0, 1, 2, 3) or (filters is not None and not isinstance(filters, list)):
        raise Corrupt("codec 'lzma' has a wrong setting", got=repr(settings)[:80])
    if form == lzma.FORMAT_RAW:
        sizes = [row.get("dict_size", 0) for row in filters or () if isinstance(row, dict)]
        if any(nbytes > limits.lzma_dictionary_bytes for nbytes in sizes):
            raise Corrupt("codec 'lzma' asks for a very large dictionary")
        return _by_decoder(lzma.LZMADecompressor(form, None, filters), limit, data)
    return _by_decoder(lzma.LZMADecompressor(form, limit + limits.lzma_decoder_bytes), limit, data)


def _by_decoder(decoder: Any, limit: int, data: Any) -> bytes:
    """Decompress bytes of one stream to at most `limit` bytes. Raises `Corrupt`."""
    decoded: bytes = decoder.decompress(bytes(_raw(data)), limit + 1)
    if len(decoded) > limit:
        raise _too_long(limit)
    if not decoder.eof:
        raise Corrupt("ends inside its compressed bytes")
    return decoded


def _unzstd(_: dict[str, Any], size: int | None, limit: int, data: Any) -> Any:
    """Decompress frames of Zstandard. Raises `Unsupported` if neither they nor `size` tell a size.

    numcodecs adds up the declared sizes of several frames.
    """
    from numcodecs.zstd import Zstd

    raw = _raw(data)
    declared = frame_size(raw[:18].tobytes())
    if declared is None and size is None:
        raise Unsupported("is a Zstandard frame that does not declare its size")
    # One frame needs no more than it declares; several are refused if `limit` is not enough.
    lengths = {limit} if size is not None or declared is None else {min(declared, limit), limit}
    for buffer in (np.empty(length, np.uint8) for length in sorted(lengths)):
        try:
            Zstd().decode(raw, buffer)
        except ValueError as error:
            if buffer.size == limit:
                raise _too_long(limit) from error
            continue
        return buffer if declared in (None, buffer.size) else Zstd().decode(raw)
    raise _too_long(limit)


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


def spans_of(data: memoryview, count: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the begin and the end of each text of variable length in a chunk.

    The chunk has the number of its texts, then each with its length. Raises `Corrupt` for other
    bytes.
    """
    declared = int.from_bytes(data[:4], "little")
    if len(data) < 4 or declared != count:
        raise Corrupt("has another number of texts", expected=count, got=declared)
    if 4 + 4 * count > len(data):
        raise Corrupt("ends inside a text")
    at = 4
    for _ in range(count):
        begin = at + 4
        at = begin + int.from_bytes(data[at:begin], "little")
        if at > len(data):
            raise Corrupt("ends inside a text")
        yield begin, at


# Encoding -----------------------------------------------------------------------------------------


def _gzip(level: int, width: int, inner: str) -> Step:
    def encode(data: Any) -> bytes:
        stream = zlib.compressobj(level, wbits=zlib.MAX_WBITS | 16)
        return stream.compress(data) + stream.flush()

    return encode


def _zstd(level: int, width: int, inner: str) -> Step:
    from numcodecs.zstd import Zstd

    encode: Step = Zstd(level=level).encode
    return encode


def _blosc(level: int, width: int, inner: str) -> Step:
    from numcodecs import blosc

    codec = blosc.Blosc(inner, level, SHUFFLES["shuffle"])

    def encode(data: Any) -> Any:
        return codec.encode(np.frombuffer(data, f"V{width}") if width < 256 else data)

    return encode


# Decoder, and maker of the encoder; None for a codec that is only read. A decoder takes the
# settings, the exact size if it is known, the most bytes, and the data; `lzma` the limits first.
COMPRESSORS: dict[str, tuple[Callable[..., Any], Callable[[int, int, str], Step] | None]] = {
    "gzip": (partial(_inflated, zlib.MAX_WBITS | 16), _gzip),
    "zlib": (partial(_inflated, zlib.MAX_WBITS), None),
    "bz2": (_bunzipped, None),
    "lzma": (_unlzma, None),
    "zstd": (_unzstd, _zstd),
    "blosc": (_unblosc, _blosc),
    "lz4": (_unlz4, None),
}


def encoder(name: str, level: int, width: int, inner: str) -> Step | None:
    """Return the function that compresses chunks of elements of `width` bytes; None for "none"."""
    make = COMPRESSORS[name][1] if name in COMPRESSORS else None
    return None if make is None else make(level, width, inner)


def with_crc32c(data: Any) -> bytes:
    """The bytes followed by their checksum (CRC-32C)."""
    import google_crc32c

    raw = bytes(data)
    return raw + int(google_crc32c.value(raw)).to_bytes(4, "little")
