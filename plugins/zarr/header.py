"""Metadata documents: JSON of both versions, checked, as one record of an array."""

from __future__ import annotations

import os
import re
from base64 import b64decode
from math import prod

from raconvert.arrays.dtypes import FLOATS, MAX_SPAN, ml_name, spanned
from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.metadata.json import parsed
from raconvert.plugin import Element

from .datatypes import Fields, short, type_of_2, type_of_3
from .tables import KNOWN_2, KNOWN_3, NAMED_BY_NUMCODECS, UNSAFE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits


NUMBERS_AS_TEXT = ("int", "uint", *FLOATS)
NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)


class Codec(Record):
    """One step of how chunks are encoded, by the name under which `tables` lists it."""

    name: str
    settings: dict[str, Any]


class Node(Record):
    """An array as its metadata describes it; shapes slowest axis first.

    `grid` is the shape of a chunk, or of a shard, which one key has; `codecs` are applied in order
    when a chunk is written. `fill` is as the document has it. `variable` is "utf8" or "bytes" for
    elements of variable length, whose `element` has no width yet.
    """

    version: int
    shape: tuple[int, ...]
    grid: tuple[int, ...]
    element: Element
    codecs: tuple[Codec, ...]
    fill: Any
    separator: str
    default_keys: bool  # "c/0/0", not "0.0"
    attributes: dict[str, Any]
    names: list[str | None] | None
    variable: str = ""
    data_type: Any = None

    def key(self, index: tuple[int, ...]) -> str:
        """The key of a chunk, below that of the array."""
        if self.default_keys:
            return self.separator.join(["c", *map(str, index)])
        return self.separator.join(map(str, index)) if index else "0"

    def index_of(self, key: str) -> tuple[int, ...] | None:
        """The index in the grid of the chunk with a key; None if no chunk has it."""
        parts = key.split(self.separator) if self.shape or self.default_keys else []
        if self.default_keys:
            parts = parts[1:]
        if not all(part.isdecimal() and part.isascii() and len(part) < 20 for part in parts):
            return None
        index = tuple(map(int, parts))
        if len(index) != len(self.shape) or self.key(index) != key:
            return None
        inside = (
            n * high < size for n, high, size in zip(index, self.grid, self.shape, strict=True)
        )
        return index if all(inside) else None


def document(text: bytes, path: str, limits: Limits) -> dict[str, Any]:
    """Parse the JSON object of a metadata file. Raises `Corrupt` for anything else.

    Raises `TooLarge` if its values need more than `Limits.memory`, counted before it is parsed.
    """
    try:
        fields = parsed(text, limits.memory, f"metadata '{os.path.basename(path)}'", _unique)
        _check_nesting(fields, limits.nesting_levels)
    except ValueError as error:
        raise Corrupt(f"metadata is not JSON as Zarr has it: {error}"[:300], path=path) from error
    if not isinstance(fields, dict):
        raise Corrupt("metadata is not a JSON object", path=path, got=short(fields))
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("an object has a key twice")
    return mapping


def _check_nesting(value: Any, most: int) -> None:
    """Raise ValueError for objects and lists nested more than `most` levels deep."""
    level: list[Any] = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {most} levels deep")


def is_array(fields: dict[str, Any], path: str) -> bool:
    """True for the document of an array in version 3, False for that of a group."""
    version, kind = fields.get("zarr_format"), fields.get("node_type")
    if version != 3:
        raise _version(version, 3, path)
    if kind not in ("array", "group"):
        raise Corrupt(
            "metadata field 'node_type' is wrong", path=path, expected="array or group",
            got=short(kind),
        )  # fmt: skip
    return bool(kind == "array")


def _version(version: Any, expected: int, path: str) -> RaconvertError:
    if type(version) is int and version > 3:
        return Unsupported(f"is Zarr version {version}", path=path, expected="version 2 or 3")
    return Corrupt(
        "metadata field 'zarr_format' is wrong", path=path, expected=expected, got=short(version)
    )


def attributes_of(fields: dict[str, Any], path: str) -> dict[str, Any]:
    """The attributes in a document of version 3. Raises `Corrupt`."""
    attributes = fields.get("attributes", {})
    if not isinstance(attributes, dict):
        raise Fields(fields, path).wrong("attributes", "a mapping")
    return attributes


# Version 3 ----------------------------------------------------------------------------------------


def node_of_3(fields: dict[str, Any], path: str, limits: Limits) -> Node:
    """Check the ``zarr.json`` of an array. Raises `Corrupt`, `Unsupported` or `Unsafe`."""
    checks = Fields(fields, path)
    grid = _grid_of_3(checks)
    _refuse_extensions(fields, path)
    element, variable = type_of_3(fields.get("data_type"), path, limits)
    codecs = codecs_of_3(fields.get("codecs"), path, limits)
    if "fill_value" not in fields:
        raise checks.wrong("fill_value", "a value")
    names = fields.get("dimension_names")
    are_names = isinstance(names, list) and all(n is None or isinstance(n, str) for n in names)
    if names is not None and (not are_names or len(names) != len(grid.shape)):
        raise checks.wrong("dimension_names", "a name or null for each axis")
    node = grid._replace(
        element=_ordered(element, codecs), codecs=codecs, fill=fields["fill_value"],
        attributes=attributes_of(fields, path), names=names, variable=variable,
        data_type=fields.get("data_type"),
    )  # fmt: skip
    return _checked(node, path)


def _grid_of_3(checks: Fields) -> Node:
    """Parse shape, chunks and keys of an array of version 3, and nothing else."""
    fields, path = checks.fields, checks.path
    shape = checks.lengths("shape", 0)
    name, settings = checks.named("chunk_grid")
    if name != "regular":
        raise Unsupported(f"array has a chunk grid '{name[:80]}'", path=path, expected="regular")
    grid = Fields(settings, path, "chunk_grid.").lengths("chunk_shape", 1)
    name, settings = checks.named("chunk_key_encoding")
    if name not in ("default", "v2"):
        raise Unsupported(f"array has chunk keys '{name[:80]}'", path=path, expected="default, v2")
    separator = settings.get("separator", "/" if name == "default" else ".")
    if separator not in ("/", "."):
        raise Fields(settings, path, "chunk_key_encoding.").wrong("separator", "/ or .")
    return Node(
        3, shape, grid, _NOTHING, (), fields.get("fill_value"), separator,
        default_keys=name == "default", attributes={}, names=None,
    )  # fmt: skip


_NOTHING = Element("user", 0, "|")  # of a node whose data type is not parsed


def grid_of(fields: dict[str, Any], path: str) -> Node | None:
    """Parse a document as far as the keys of chunks depend on it; None for a group.

    Raises `Corrupt` or `Unsupported` if that part is not valid.
    """
    if fields.get("zarr_format") != 2:
        return _checked(_grid_of_3(Fields(fields, path)), path) if is_array(fields, path) else None
    return _checked(_grid_of_2(Fields(fields, path)), path)


_FIELDS_OF_3 = {
    "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs",
    "fill_value", "attributes", "dimension_names", "storage_transformers", "consolidated_metadata",
}  # fmt: skip


def _refuse_extensions(fields: dict[str, Any], path: str) -> None:
    """Raise `Unsupported` for fields that must be understood, and are not of the specification."""
    if fields.get("storage_transformers"):
        raise Unsupported("array has storage transformers", path=path)
    for name, value in fields.items():
        optional = isinstance(value, dict) and value.get("must_understand") is False
        if name not in _FIELDS_OF_3 and not optional:
            raise Unsupported(
                f"metadata has a field '{name[:80]}' that must be understood", path=path
            )


def _ordered(element: Element, codecs: tuple[Codec, ...]) -> Element:
    """Return the element in the byte order of the codecs, also for texts and dates."""
    order, descr = _order_of(codecs), element.descr
    if element.order in "<>":
        return element._replace(order=order)
    if isinstance(descr, str) and descr[0] == "<" and order == ">":
        return element._replace(descr=f">{descr[1:]}")
    return element


def _order_of(codecs: tuple[Codec, ...]) -> str:
    """The byte order that the codecs give elements."""
    for codec in codecs:
        if codec.name == "bytes":
            return ">" if codec.settings.get("endian") == "big" else "<"
        if codec.name == "sharding_indexed":
            return _order_of(codec.settings["codecs"])
    return "<"


def codecs_of_3(listed: Any, path: str, limits: Limits, depth: int = 0) -> tuple[Codec, ...]:
    """The checked codecs of a list; the settings of shards hold `Codec`s, too."""
    if not isinstance(listed, list) or not 0 < len(listed) <= limits.chained_codecs:
        raise Corrupt(
            "metadata field 'codecs' is wrong", path=path, got=short(listed),
            expected=f"1 to {limits.chained_codecs} codecs",
        )  # fmt: skip
    codecs = []
    for entry in listed:
        name, settings = Fields({"codec": entry}, path).named("codec")
        short_name = name.removeprefix("numcodecs.")
        if short_name != name and short_name in NAMED_BY_NUMCODECS:
            name = short_name
        _check_codec(name, KNOWN_3, path)
        if name == "sharding_indexed":
            settings = _shards(settings, path, limits, depth)
        codecs.append(Codec(name, settings))
    return tuple(codecs)


def _check_codec(name: str, known: frozenset[str], path: str) -> None:
    """Raise `Unsafe` or `Unsupported` for a codec that is not in the table of its version."""
    if name.removeprefix("numcodecs.") in UNSAFE:
        raise Unsafe(
            f"array is encoded by '{name}', which makes objects of bytes", path=path,
            remedy="no option allows this; write it with another codec",
        )  # fmt: skip
    if name not in known:
        raise Unsupported(
            f"array is encoded by '{name[:80]}'", path=path,
            expected="one of the codecs of numcodecs",
        )  # fmt: skip


def _shards(settings: dict[str, Any], path: str, limits: Limits, depth: int) -> dict[str, Any]:
    """Check the settings of the codec of shards; return them with `Codec`s in place of lists."""
    if depth >= limits.shard_levels:
        raise Unsupported(
            "array has shards inside shards", path=path, expected=f"{limits.shard_levels}"
        )
    location = settings.get("index_location", "end")
    if location not in ("start", "end"):
        raise Corrupt(
            "metadata field 'index_location' is wrong", path=path, expected="start or end",
            got=short(location),
        )  # fmt: skip
    return {
        "chunk_shape": Fields(settings, path, "sharding_indexed.").lengths("chunk_shape", 1),
        "codecs": codecs_of_3(settings.get("codecs"), path, limits, depth + 1),
        "index_codecs": codecs_of_3(
            settings.get("index_codecs"), path, limits, limits.shard_levels
        ),
        "index_location": location,
    }


# Version 2 ----------------------------------------------------------------------------------------


def node_of_2(
    fields: dict[str, Any], attributes: dict[str, Any], path: str, limits: Limits
) -> Node:
    """Check the ``.zarray`` of an array; `attributes` are those of its ``.zattrs``."""
    if fields.get("zarr_format") != 2:
        raise _version(fields.get("zarr_format"), 2, path)
    checks = Fields(fields, path)
    grid, order = _grid_of_2(checks), fields.get("order", "C")
    if order not in ("C", "F"):
        raise checks.wrong("order", "C or F")
    codecs = _codecs_of_2(checks, order, len(grid.shape), limits)
    element, variable = type_of_2(
        fields.get("dtype"), {codec.name for codec in codecs}, path, limits
    )
    node = grid._replace(
        element=element, codecs=codecs, attributes=attributes, variable=variable,
        data_type=fields.get("dtype"), fill=_fill_of_2(grid.fill, element.kind),
    )  # fmt: skip
    return _checked(node, path)


def _fill_of_2(fill: Any, kind: str) -> Any:
    """The fill value; as a number if it is the text of one, as jzarr (bioformats2raw) has it."""
    if isinstance(fill, str) and kind in NUMBERS_AS_TEXT and NUMBER.fullmatch(fill):
        return int(fill) if fill.lstrip("-").isdecimal() else float(fill)
    return fill


def _grid_of_2(checks: Fields) -> Node:
    """Parse shape, chunks and keys of an array of version 2, and nothing else."""
    shape, grid = checks.lengths("shape", 0), checks.lengths("chunks", 1)
    separator = checks.fields.get("dimension_separator", ".")
    if separator not in ("/", "."):
        raise checks.wrong("dimension_separator", "/ or .")
    return Node(
        2, shape, grid, _NOTHING, (), checks.fields.get("fill_value"), separator,
        default_keys=False, attributes={}, names=None,
    )  # fmt: skip


def _codecs_of_2(checks: Fields, order: str, rank: int, limits: Limits) -> tuple[Codec, ...]:
    filters, compressor = checks.fields.get("filters"), checks.fields.get("compressor")
    entries = [*(filters if isinstance(filters, list) else ())]
    if filters is not None and not isinstance(filters, list):
        raise checks.wrong("filters", "a list, or null")
    entries += [] if compressor is None else [compressor]
    if len(entries) > limits.chained_codecs:
        raise checks.wrong("filters", f"at most {limits.chained_codecs}")
    codecs = []
    if order == "F" and rank > 1:
        codecs.append(Codec("transpose", {"order": "F"}))
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise checks.wrong("filters" if entry is not compressor else "compressor", "an id")
        _check_codec(entry["id"], KNOWN_2, checks.path)
        codecs.append(Codec(entry["id"], {k: v for k, v in entry.items() if k != "id"}))
    return tuple(codecs)


# Both ---------------------------------------------------------------------------------------------


def _checked(node: Node, path: str) -> Node:
    """Return a node; raises `Corrupt` for chunks of another rank, and for sizes beyond 2**63."""
    for chunk in _grids(node):
        if len(chunk) != len(node.shape):
            raise Corrupt(
                "chunks have another number of axes than the array", path=path,
                expected=len(node.shape), got=len(chunk),
            )  # fmt: skip
    width = max(1, node.element.nbytes)
    for what, lengths in (("array", node.shape), ("chunk", node.grid)):
        if spanned(lengths, width) > MAX_SPAN:
            raise Corrupt(
                f"{what} spans more bytes than anything can count", path=path,
                expected="less than 2**63", got=f"{short(lengths)} of {width} bytes",
            )  # fmt: skip
    return node


def chunk_count(node: Node) -> int:
    """Return the number of chunks of the array, present or absent; with shards, of shards."""
    return prod(-(-n // high) for n, high in zip(node.shape, node.grid, strict=True))


def part_count(node: Node) -> int:
    """Return the number of chunks of the array; with shards, of the chunks inside them."""
    return prod(-(-n // high) for n, high in zip(node.shape, inner_of(node), strict=True))


def absent_note(name: str, absent: int, total: int, node: Node) -> str:
    """The note on the chunks of an array that are absent. Raises nothing."""
    fill = "0" if node.fill is None else short(node.fill)
    chunks = "chunk" if total == 1 else "chunks"
    return f"array '{name}': {absent} of {total} {chunks} absent: fill value {fill}"


def inner_of(node: Node) -> tuple[int, ...]:
    """The shape of the chunks that are decoded at once; with shards, of the innermost ones."""
    return _grids(node)[-1]


def _grids(node: Node) -> list[tuple[int, ...]]:
    """The shapes of the chunks, the outermost first: of shards, and of the chunks in them."""
    grids, codecs = [node.grid], node.codecs
    while codecs and codecs[0].name == "sharding_indexed":
        grids.append(codecs[0].settings["chunk_shape"])
        codecs = codecs[0].settings["codecs"]
    return grids


def words_of(codecs: tuple[Codec, ...]) -> list[str]:
    """The codecs as `info` names them."""
    words: list[str] = []
    for codec in codecs:
        if codec.name == "sharding_indexed":
            words += words_of(codec.settings["codecs"])
        elif codec.name != "bytes" or codec.settings.get("endian") == "big":
            big = " big-endian" if codec.name == "bytes" else ""
            level = codec.settings.get("level", codec.settings.get("clevel"))
            inner = codec.settings.get("cname")
            suffix = f" {inner}" * isinstance(inner, str) + f" {level}" * isinstance(level, int)
            words.append(codec.name[:40] + big + suffix)
    return words


# Fill values: the elements of absent chunks ------------------------------------------------------


ODD_FLOATS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def fill_of(node: Node, path: str) -> Any:
    """The fill value as a NumPy array of one element, of the array's type; zeros without one.

    Raises `Corrupt` for a value that no element can have.
    """
    import numpy as np

    from raconvert.plugin import dtype_of

    dtype, value = dtype_of(node.element), node.fill
    raw = np.zeros(1, dtype)
    if value is None:
        return raw
    try:
        _set(raw, value, node.element, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise Corrupt(
            "metadata field 'fill_value' is wrong", path=path,
            expected=f"a value of type {dtype.name}", got=short(value),
        ) from error  # fmt: skip
    return raw


def _set(raw: Any, value: Any, element: Element, dtype: Any) -> None:
    """Set an array of one element to a value of JSON. Raises TypeError, ValueError, …."""
    kind = element.kind
    if kind == "bool":
        if value not in (True, False, 0, 1):
            raise ValueError
        raw[0] = bool(value)
    elif kind in ("int", "uint"):
        _set_whole(raw, value)
    elif kind in FLOATS or ml_name(element):
        _set_float(raw, value)
    elif kind == "complex":
        _set_pair(raw.view(np_float(dtype)), value)
    elif dtype.kind in "mM":
        raw.view(dtype.str[0] + "i8")[0] = -(1 << 63) if value == "NaT" else _whole(value)
    elif dtype.kind == "U":
        if not isinstance(value, (str, int)) or len(str(value)) > element.nbytes // 4:
            raise ValueError
        raw[0] = "" if value == 0 else value
    else:
        _set_bytes(raw, value, element)


def _set_whole(raw: Any, value: Any) -> None:
    """Set an element to a whole number. Raises `ValueError` if its type cannot hold it exactly."""
    if isinstance(value, bool) or int(value) != value:
        raise ValueError
    raw[0] = int(value)
    if int(raw[0]) != value:
        raise ValueError


def _set_pair(pair: Any, value: Any) -> None:
    parts = value if isinstance(value, list) else [value, 0.0]
    if len(parts) != 2:
        raise ValueError
    for index, part in enumerate(parts):
        _set_float(pair[index : index + 1], part)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError
    return value


def np_float(dtype: Any) -> Any:
    """The type of the parts of a complex number."""
    import numpy as np

    return np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")


def _set_float(raw: Any, value: Any) -> None:
    if isinstance(value, str) and value.startswith("0x"):
        bits = int(value, 16)
        kind = "<u" if raw.dtype.byteorder != ">" else ">u"
        raw.view(f"{kind}{raw.dtype.itemsize}")[0] = bits
        return
    if isinstance(value, str):
        if value not in ODD_FLOATS:
            raise ValueError
        value = ODD_FLOATS[value]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError
    raw[0] = float(value)


def _set_bytes(raw: Any, value: Any, element: Element) -> None:
    """Set bytes or a structure by base64, or a list of numbers; 0 and "" leave it zeros."""
    if value in (0, ""):
        return
    if isinstance(value, list) and all(type(n) is int and 0 <= n < 256 for n in value):
        data = bytes(value)
    elif isinstance(value, str):
        data = b64decode(value, validate=True)
    else:
        raise TypeError
    if len(data) > element.nbytes:
        raise ValueError
    raw.view("u1")[: len(data)] = list(data)
