"""The form of an array in a hierarchy: key, chunks, shards and codecs, and the options for them."""

from __future__ import annotations

from math import prod

from raconvert.declared import Record
from raconvert.errors import UsageError
from raconvert.files.names import folded, paths_of
from raconvert.plugin import Option

from .tables import TEXT, TEXT_CODEC, WRITTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from raconvert.plugin import Bundle

_UNNAMED = "__xarray_dataarray_variable__"  # xarray's name of an array without one
_DOCUMENTS = ("zarr.json", "bundle.yaml")  # files that mark a folder as one of a format


def keys_of(bundle: Bundle) -> tuple[list[str], dict[str, str]]:
    """The key of each array, and of each group: names that folders cannot have are escaped."""
    shown = [*bundle.names, *(f"{group}/x" for group in bundle.groups if group)]
    keys = paths_of([_unreserved(name) for name in shown], "")
    groups: dict[str, str] = {}
    for name, key in zip(shown, keys, strict=True):
        names, parts = name.split("/")[:-1], key.split("/")[:-1]
        for depth in range(1, len(names) + 1):
            groups.setdefault("/".join(names[:depth]), "/".join(parts[:depth]))
    return keys[: len(bundle.arrays)], groups


def key_of(name: str, known: Mapping[str, str]) -> str:
    """The key of a further array; `known` are the keys of existing arrays, by name."""
    return paths_of([_unreserved(name)], "", known=known)[0]


def key_beside(key: str, name: str) -> str | None:
    """The key of an array called `name` in the group of another; None if it would be escaped.

    Readers find a coordinate by the name of its axis, which must be the last part of its key.
    """
    if "/" in name or paths_of([_unreserved(name)], "") != [name]:
        return None
    group = key.rpartition("/")[0]
    return f"{group}/{name}" if group else name


def same_on_disk(key: str) -> str:
    """The form of a key that is the same for keys that are one folder on some system."""
    return folded(key)


def _unreserved(name: str) -> str:
    """The name with an escape before parts that have a meaning in a hierarchy."""
    return "/".join(
        f" {part}"
        if part.lower() in _DOCUMENTS or (part.startswith("__") and part != _UNNAMED)
        else part
        for part in name.split("/")
    )


CHUNK_BYTES = 1 << 20
NAMES = ("none", *WRITTEN)
INNER = ("zstd", "lz4", "lz4hc", "blosclz", "zlib")
MAX_CHUNK_BYTES = (1 << 31) - 1  # limit of Blosc, and of readers of 32 bits

WRITE_OPTIONS = (
    Option("format", "3", ("3", "2"), "version of Zarr"),
    Option("chunks", "auto", str, "auto, none, or a length for each axis as 64,64"),
    Option("shards", "none", str, "none, or a length for each axis, multiples of the chunks"),
    Option("compress", "zstd", str, f"{', '.join(NAMES)}; with :LEVEL, blosc:lz4:LEVEL"),
    Option("checksum", False, bool, "a CRC-32C behind each chunk (version 3)"),
    Option("strings", "auto", ("auto", "fixed"), "fixed: bytes of one width, no UTF-8 texts"),
    Option("endian", "auto", ("auto", "little", "big"), "byte order of numbers; auto: as it was"),
)


class Options(Record):
    """The options in terms of Zarr; `chunks` and `shards` are "auto", None or a shape."""

    version: int
    chunks: Any
    shards: Any
    compressor: str
    level: int
    inner: str
    checksum: bool
    endian: str
    strings: str
    separator: str = "."  # between the numbers of a chunk in version 2


class Form(Record):
    """The stored form of an array: its key, data type, chunks, and the shape under one file."""

    key: str
    data_type: Any  # None: Zarr has none for it
    order: str  # of its bytes: < or >; | if they have none
    chunk: tuple[int, ...]
    unit: tuple[int, ...]  # the shard, else the chunk


def options_of(
    version: str,
    chunks: str,
    shards: str,
    compress: str,
    endian: str,
    strings: str,
    *,
    checksum: bool,
) -> Options:
    """The options in terms of Zarr. Raises `UsageError` if one of them is not understood."""
    name, *words = compress.split(":")
    inner = words.pop(0) if name == "blosc" and words and not words[0].isdecimal() else "zstd"
    is_known = name in WRITTEN or (name == "none" and not words)
    if not is_known or len(words) > 1 or inner not in INNER:
        raise UsageError(
            f"option compress={compress} is not understood",
            expected=f"{', '.join(NAMES)}, with :LEVEL; blosc also with {', '.join(INNER)}",
        )
    least, most, level = WRITTEN[name].levels if name in WRITTEN else (0, 0, 0)
    if words:
        is_level = words[0].isascii() and words[0].isdecimal() and len(words[0]) < 3
        if not is_level or not least <= int(words[0]) <= most:
            raise UsageError(
                f"level of option compress={compress} is out of range",
                expected=f"{least} to {most}",
            )
        level = int(words[0])
    if version == "2" and (shards != "none" or checksum):
        raise UsageError("version 2 has neither shards nor checksums", expected="format=3")
    shard = None if shards == "none" else _shape(shards, "shards")
    return Options(
        int(version), _shape(chunks, "chunks"), shard, name, level, inner, checksum, endian, strings
    )


def _shape(text: str, name: str) -> Any:
    """The value of the option `chunks` or `shards`: "auto", None or a shape."""
    if text in ("auto", "none") and name == "chunks":
        return text if text == "auto" else None
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() and 0 < int(part) < 1 << 31 for part in parts):
        raise UsageError(
            f"option {name}={text} is not understood",
            expected=f"{'auto, ' * (name == 'chunks')}none, or a length for each axis as 64,64",
        )
    return tuple(map(int, parts))


def chunk_of(shape: tuple[int, ...], item: int, options: Options) -> tuple[int, ...]:
    """The shape of the chunks of an array: by default whole rows of about 1 MiB."""
    if isinstance(options.chunks, tuple):
        pairs = zip(options.chunks, shape, strict=True)
        if options.shards is not None:
            return options.chunks
        return tuple(max(1, min(pair)) for pair in pairs)
    chunk = [max(1, length) for length in shape]
    if options.chunks is None:
        return tuple(chunk)
    for axis, length in enumerate(chunk):
        inner = prod(chunk[axis + 1 :]) * item
        chunk[axis] = max(1, min(length, CHUNK_BYTES // max(1, inner)))
        if chunk[axis] > 1 or inner < CHUNK_BYTES:
            break
    if options.shards is not None:  # the largest chunk of which the shard is a multiple
        return tuple(_divisor(n, high) for n, high in zip(options.shards, chunk, strict=True))
    return tuple(chunk)


def _divisor(length: int, most: int) -> int:
    """The largest divisor of a length below 2**31 that is at most `most`."""
    best, low = 1, 1
    while low * low <= length:
        if length % low == 0:
            best = max([best, *(n for n in (low, length // low) if n <= most)])
        low += 1
    return best


def codecs_of(options: Options, width: int, form: Form) -> list[dict[str, Any]]:
    """The codecs of a chunk in version 3; an element has `width` bytes."""
    first: dict[str, Any] = {"name": "bytes"}
    if form.data_type == TEXT:
        first, width = {"name": TEXT_CODEC}, 1
    elif form.order != "|":
        first["configuration"] = {"endian": "big" if form.order == ">" else "little"}
    listed = [first]
    row = WRITTEN.get(options.compressor)
    if row is not None:
        listed.append({"name": row.name, "configuration": row.settings_3(options, width)})
    if options.checksum:
        listed.append({"name": "crc32c"})
    return listed


def compressor_of(options: Options) -> dict[str, Any] | None:
    """The compressor in version 2; None for chunks that are not compressed."""
    row = WRITTEN.get(options.compressor)
    return None if row is None else {"id": row.name, **row.settings_2(options)}
