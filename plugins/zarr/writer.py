"""Writing: from a bundle to a folder: chunks in stored order, then metadata, the root last."""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from math import prod
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import Feed, block_bytes, blocks, region_of
from raconvert.arrays.dtypes import ML_DTYPES, code_of, dtype_of, flattened, is_float8, little
from raconvert.arrays.interop.conventions import Coordinates
from raconvert.arrays.interop.times import NOT_A_TIME
from raconvert.arrays.memory import check_memory
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.files.threads import Threads
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY

from . import metadata
from .codecs import encoder, with_crc32c
from .form import codecs_of, compressor_of
from .tables import (
    AXES_OF_V2,
    OWN,
    TEXT,
    TEXT_CODEC,
    V2_ALL,
    V2_ARRAY,
    V2_ATTRIBUTES,
    V2_GROUP,
    V3_FILE,
)
from .values import NOT_THERE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from raconvert.files.folder_target import Folder
    from raconvert.plugin import Array, Bundle, Element

    from .form import Form, Options

    Values = np.ndarray[Any, Any]
    Box = tuple[tuple[int, ...], tuple[int, ...]]  # start and lengths

_LENGTH = Struct("<I")
THREADS = 2
TASKS = 32  # chunks that are handed to the threads at once


class Writer:
    """One hierarchy being written; `documents` are its metadata files, by their keys."""

    def __init__(
        self, bundle: Bundle, target: Folder, options: Options, forms: list[Form],
        groups: dict[str, str], apart: dict[str, set[str]] | None = None,
        coordinates: Coordinates | None = None,
    ) -> None:  # fmt: skip
        """`apart`: the names of axes that are not names of dimensions, by array.

        `coordinates`: those that are read back with the arrays; by default, only of the arrays.
        """
        self.bundle = bundle
        self.target = target
        self.options = options
        self.forms = forms
        self.groups = groups
        self.apart = apart or {}
        keys = [form.key for form in forms]
        self.coordinates = coordinates or Coordinates(bundle.arrays, keys, DEFAULT)
        self.documents: dict[str, dict[str, Any]] = {}
        self.widths: dict[str, list[int]] = {}  # bytes of the longest text of each chunk, by key

    def run(self, scales: Sequence[tuple[Form, str, Array]]) -> None:
        """Write the whole hierarchy; `scales`: (form, name of the axis's array, coordinate)."""
        self.nodes(scales)
        for name, key in self.groups.items():
            attributes, rest = metadata.json_and_rest(self.bundle.groups.get(name, {}))
            record: dict[str, Any] = {"attributes": rest} if rest else {}
            if name != key:
                record["name"] = name
            self._group(key, attributes, record)
        self._root()
        for key, fields in self.documents.items():
            if key not in (V3_FILE, V2_GROUP):
                self._document(key, fields)
        self._finish()

    def group(self, key: str) -> None:
        """Add the documents of a group without attributes."""
        self._group(key, {}, {})

    def nodes(self, scales: Sequence[tuple[Form, str, Array]]) -> None:
        """Write the elements of all arrays and coordinates, and make their documents."""
        for array, form in zip(self.bundle.arrays, self.forms, strict=True):
            self._array(array, form)
        for array, form in zip(self.bundle.arrays, self.forms, strict=True):
            self._describe(array, form)
        for form, name, scale in scales:
            self._scale(form, name, scale)

    def _scale(self, form: Form, name: str, scale: Array) -> None:
        """Write a coordinate in one chunk; its record names the array with the axis."""
        part = _ordered(scale.data, form.order)
        # In a thread, as all chunks are encoded (see `_array`).
        with Threads(1) as threads:
            ((_, data),) = threads.results(self._encoder(scale.element.nbytes, form), [part], 1)
        self._put(form, (0,), data)
        self._describe(scale, form, {"axis_of": name})

    # metadata

    def _document(self, key: str, fields: dict[str, Any]) -> None:
        text = json.dumps(fields, indent=2, ensure_ascii=True, allow_nan=False)
        self.target.put(key, [text.encode()])

    def _group(self, key: str, attributes: dict[str, Any], record: dict[str, Any]) -> None:
        """Add the documents of a group."""
        if record:
            attributes = {**attributes, KEY: roundtrip.text_of(record)}
        if self.options.version == 3:
            fields = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
            self.documents[_below(key, V3_FILE)] = fields
            return
        self.documents[_below(key, V2_GROUP)] = {"zarr_format": 2}
        if attributes:
            self.documents[_below(key, V2_ATTRIBUTES)] = attributes

    def _root(self) -> None:
        """Add the documents of the root, with the record of the file."""
        record = roundtrip.record_of_file(self.bundle)
        record.pop("groups", None)
        attributes, rest = metadata.json_and_rest(record.pop("attributes", {}))
        if rest:
            record["attributes"] = rest
        self._group("", attributes, record)

    def _finish(self) -> None:
        """Write the documents of the root, with all metadata for readers that cannot list files."""
        if self.options.version == 3:
            root = self.documents.pop(V3_FILE)
            nodes = {key.rpartition("/")[0]: fields for key, fields in self.documents.items()}
            nodes = _by_group(nodes)
            root["consolidated_metadata"] = {
                "kind": "inline", "must_understand": False, "metadata": nodes
            }  # fmt: skip
            self._document(V3_FILE, root)
            return
        everything = {"zarr_consolidated_format": 1, "metadata": self.documents}
        self._document(V2_ALL, everything)
        self._document(V2_GROUP, self.documents[V2_GROUP])

    def _describe(self, array: Array, form: Form, more: dict[str, Any] | None = None) -> None:
        """Add the documents of an array; `more` are further fields of its record."""
        if array.described:
            array.meta = array.meta.completed()
        attributes, names, record = metadata.divided(
            array, form.key, self.options.version, self.coordinates, self.apart.get(array.name, ())
        )
        if more is not None:
            record = {**record, **more}
        elif form.key != array.name:
            record["name"] = array.name
        width = max(1, *self.widths.get(form.key, ()), 0)
        if _is_text(form):  # the data type has the encoding
            record.pop("encoding", None)
        if (
            _is_text(form) and width != array.element.nbytes
        ):  # texts are read as wide as the longest
            record["was"] = {"type": code_of(array.element)}
        own = array.meta.formats.get(OWN, {}) if array.described else {}
        missing = metadata.json_number(metadata.missing_of(array))
        fill = _fill(own.get("fill_value", missing), array.element)
        if self.options.version == 2:
            # xarray takes the fill value of version 2 for that of missing elements.
            fill = None if missing is None else missing
            if "fill_value" in own:
                remembered = record.setdefault("formats", {}).setdefault(OWN, {})
                remembered["fill_value"] = own["fill_value"]
        if record:
            attributes[KEY] = roundtrip.text_of(record)
        shape = list(array.dims[::-1])
        if self.options.version == 2:
            fields = {
                "zarr_format": 2, "shape": shape, "chunks": list(form.chunk),
                "dtype": _in_order(form), "compressor": compressor_of(self.options),
                "fill_value": fill, "order": "C",
                "dimension_separator": self.options.separator,
                "filters": [{"id": TEXT_CODEC}] if _is_text(form) else None,
            }  # fmt: skip
            self.documents[_below(form.key, V2_ARRAY)] = fields
            self.documents[_below(form.key, V2_ATTRIBUTES)] = {**attributes, AXES_OF_V2: names}
            return
        self.documents[_below(form.key, V3_FILE)] = {
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": form.data_type,
            "chunk_grid": _regular(form.unit),
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill, "codecs": self._codecs(array, form), "attributes": attributes,
            "dimension_names": names, "storage_transformers": [],
        }  # fmt: skip

    def _codecs(self, array: Array, form: Form) -> list[dict[str, Any]]:
        """The codecs of an array in version 3; if there are shards, inside the codec of these."""
        listed = codecs_of(self.options, max(1, array.element.nbytes), form)
        if self.options.shards is None:
            return listed
        index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
        return [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": list(form.chunk), "codecs": listed, "index_codecs": index,
            "index_location": "end",
        }}]  # fmt: skip

    # elements

    def _array(self, array: Array, form: Form) -> None:
        """Write the chunks of an array, in slabs of whole ones or, if those are large, singly."""
        if not array.count:
            return
        encode = self._encoder(array.element.nbytes, form)
        shape, item = array.dims[::-1], array.element.nbytes
        if not shape:
            (block,) = self.target.counted(blocks(array))
            self._put(form, (), encode(_ordered(block, form.order).reshape(())))
            return
        budget = block_bytes(self.target.max_memory)
        axis = _slab_axis(shape, form.unit, item, budget)
        row = form.unit[axis] * prod(shape[axis + 1 :]) * item
        what = f"array '{array.name}': a row of its chunks"
        if 2 * row > self.target.max_memory and _reads_regions(array):
            check_memory(2 * prod(form.unit) * item, self.target.max_memory, what)
            self._one_by_one(array, form, encode)
            return
        check_memory(2 * row, self.target.max_memory, what)
        dtype = dtype_of(little(array.element))
        feed = Feed(self.target.counted(blocks(array, budget)), dtype, f"array '{array.name}'")
        buffer = np.empty(0, dtype)
        with Threads(THREADS) as threads:
            for start, count in _slabs(shape, axis, form.unit[axis] * max(1, budget // row)):
                size = prod(count)
                if size > buffer.size:
                    buffer = np.empty(size, dtype)
                slab = _ordered(feed.into(buffer[:size]).reshape(count), form.order)
                corners = product(*(range(0, n, c) for n, c in zip(count, form.unit, strict=True)))
                cut = partial(_cut, slab, form.unit, encode)
                # Blosc gives the same bytes again only outside of the main thread.
                is_single = all(n <= c for n, c in zip(count, form.unit, strict=True))
                if is_single and self.options.compressor != "blosc":
                    done = ((index, cut(index)) for index in corners)
                else:
                    done = threads.results(cut, corners, TASKS)
                for index, data in done:
                    low = tuple(a + b for a, b in zip(start, index, strict=True))
                    self._put(form, low, data)
        if feed.more():
            raise Corrupt(f"array '{array.name}' is longer than its dims say")

    def _one_by_one(self, array: Array, form: Form, encode: Callable[[Values], Any]) -> None:
        """Write each chunk by the region of the array that it holds."""
        shape, dtype = array.dims[::-1], dtype_of(little(array.element))

        def pieces() -> Iterator[Values]:
            for low in product(*(range(0, n, c) for n, c in zip(shape, form.unit, strict=True))):
                ends = (
                    slice(a, min(a + c, n)) for a, c, n in zip(low, form.unit, shape, strict=True)
                )
                values = flattened(region_of(array, tuple(ends))).astype(dtype, copy=False)
                part = _ordered(np.ascontiguousarray(values), form.order)
                self._put(form, low, encode(_whole(part, form.unit)))
                yield values

        for _ in self.target.counted(pieces()):
            pass

    def _put(self, form: Form, low: tuple[int, ...], data: Any) -> None:
        """Write the file of the chunk or shard that begins at an index of the array."""
        index = [a // c for a, c in zip(low, form.unit, strict=True)]
        if self.options.version == 3:
            key = "/".join(["c", *map(str, index)])
        else:
            key = self.options.separator.join(map(str, index)) or "0"
        self.target.put(f"{form.key}/{key}", [data])

    def _encoder(self, width: int, form: Form) -> Callable[[Values], Any]:
        """Return the function that encodes the elements of a chunk, or shard, for its file."""
        text = _is_text(form)
        width = 1 if text else width
        compress = encoder(self.options.compressor, self.options.level, width, self.options.inner)

        def encode(values: Values) -> Any:
            data: Any = self._texts(values, form) if text else values.tobytes()
            data = data if compress is None else compress(data)
            return with_crc32c(data) if self.options.checksum else data

        return encode if self.options.shards is None else partial(_shard, form.chunk, encode)

    def _texts(self, values: Values, form: Form) -> bytes:
        """Encode texts of fixed width as texts of their own lengths."""
        texts = values.view(f"S{values.dtype.itemsize}").reshape(-1).tolist()
        self.widths.setdefault(form.key, []).append(max(map(len, texts), default=0))
        data = _encoded_texts(texts)
        try:
            b"".join(texts).decode()
        except UnicodeDecodeError as error:
            raise Unsupported(
                f"array '{form.key}' has strings that are not UTF-8, as its metadata says they are",
                path=self.target.path,
                remedy="write them in a fixed width, as bytes, with `--out-opt strings=fixed`",
            ) from error
        return data


def _is_text(form: Form) -> bool:
    """True for texts of variable length."""
    return form.data_type in (TEXT, "|O")


def _encoded_texts(texts: list[bytes]) -> bytes:
    """Texts as the codec vlen-utf8 stores them: their number, then the length and bytes of each."""
    parts = [_LENGTH.pack(len(texts))]
    for text in texts:
        parts += (_LENGTH.pack(len(text)), text)
    return b"".join(parts)


def _by_group(nodes: dict[str, Any]) -> dict[str, Any]:
    """Order nodes so that each group is beside the arrays of its own group, whose order stays.

    zarr-python 3.1 lists, at each depth, only the last run of nodes of one group.
    """
    groups: dict[str, list[str]] = {}
    for key, fields in nodes.items():
        if fields["node_type"] == "group":
            groups.setdefault(key.rpartition("/")[0], []).append(key)
    listed = []
    for key, fields in nodes.items():
        if fields["node_type"] != "group":
            listed += [*groups.pop(key.rpartition("/")[0], ()), key]
    listed += [key for inside in groups.values() for key in inside]
    return {key: nodes[key] for key in listed}


def _below(key: str, name: str) -> str:
    return f"{key}/{name}" if key else name


def _regular(shape: tuple[int, ...]) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def _in_order(form: Form) -> Any:
    """The type of NumPy, in the byte order of the chunks."""
    code = form.data_type
    return form.order + code[1:] if isinstance(code, str) and form.order in "<>" else code


def _fill(kept: Any, element: Element) -> Any:
    """The fill value: `kept`, that of the file, if an element can have it; else zarr-python's."""
    kind = element.kind
    if type(kept) is int and kind in ("int", "uint"):
        bits = 8 * element.nbytes
        low = -(1 << bits - 1) if kind == "int" else 0
        if low <= kept < low + (1 << bits):
            return kept
    floats = ("NaN", "Infinity", "-Infinity")
    if kind == "float" and (type(kept) in (int, float) or kept in floats):
        return kept
    if kind == "user" and not is_float8(element):
        return _fill_of_bytes(element)
    usual = {"bool": False, "int": 0, "uint": 0, "complex": [0.0, 0.0]}
    return usual.get(kind, 0.0)


def _fill_of_bytes(element: Element) -> Any:
    """The fill value of dates, texts and bytes, as zarr-python has it."""
    from base64 import b64encode

    letter = element.descr[1] if isinstance(element.descr, str) else "V"
    if letter in "mM":
        return NOT_A_TIME
    return "" if letter in "SU" else b64encode(bytes(element.nbytes)).decode()


# Slabs and chunks ---------------------------------------------------------------------------------


def _reads_regions(array: Array) -> bool:
    """True unless all elements of the array are decoded before a region is cut out of them."""
    return array.extent is not None or not isinstance(array.data, Decoded)


def _slab_axis(shape: tuple[int, ...], unit: tuple[int, ...], item: int, budget: int) -> int:
    """The axis along which slabs are cut: the slowest with rows of chunks within `budget` bytes."""
    axis = 0
    while axis < len(shape) - 1 and unit[axis] == 1 and prod(shape[axis + 1 :]) * item > budget:
        axis += 1
    return axis


def _slabs(shape: tuple[int, ...], axis: int, high: int) -> Iterator[Box]:
    """Yield start and lengths of slabs of at most `high` along an axis, in stored order."""
    rest = shape[axis + 1 :]
    for outer in product(*(range(n) for n in shape[:axis])):
        for low in range(0, shape[axis], high):
            count = min(high, shape[axis] - low)
            yield (*outer, low, *(0 for _ in rest)), ((1,) * axis + (count, *rest))


def _ordered(values: Values, order: str) -> Values:
    """Return numbers in the byte order of the file; texts, dates and structures have their own."""
    if order == ">" and values.dtype.kind in "iufc":
        return values.astype(values.dtype.newbyteorder(">"))
    if order == ">" and values.dtype.itemsize > 1 and values.dtype.name in ML_DTYPES:
        return values.view(f"<u{(width := values.dtype.itemsize)}").astype(f">u{width}")
    return values


def _cut(
    slab: Values, unit: tuple[int, ...], encode: Callable[[Values], Any], at: tuple[int, ...]
) -> Any:
    """Encode the chunk, or shard, of a slab that begins at an index."""
    part = slab[tuple(slice(low, low + n) for low, n in zip(at, unit, strict=True))]
    return encode(_whole(part, unit))


def _whole(part: Values, unit: tuple[int, ...]) -> Values:
    """The elements of a chunk, or shard, as bytes without a type; zeros beyond the border."""
    part = part.view(f"V{part.dtype.itemsize}") if part.dtype.itemsize else part
    if part.shape == unit:
        return part
    whole = np.zeros(unit, part.dtype)
    whole[tuple(slice(n) for n in part.shape)] = part
    return whole


def _shard(chunk: tuple[int, ...], encode: Callable[[Values], Any], values: Values) -> bytes:
    """Encode a shard: its chunks in C order, then their index."""
    counts = tuple(a // b for a, b in zip(values.shape, chunk, strict=True))
    index = np.full((*counts, 2), NOT_THERE, "<u8")
    chunks, offset = [], 0
    for part in product(*map(range, counts)):
        low = (slice(a * n, (a + 1) * n) for a, n in zip(part, chunk, strict=True))
        data = bytes(encode(values[tuple(low)]))
        index[part] = offset, len(data)
        offset += len(data)
        chunks.append(data)
    return b"".join([*chunks, with_crc32c(index.tobytes())])
