"""Compare arrays by index, whatever file format and memory order they are stored in.

`diff` compares two files, `verify` decodes a whole file and compares it with its sources. Shape,
element type (with its description) and every element by logical index count; byte order and memory
order do not. Data is read in blocks, side by side, so that memory stays bounded.
"""

from __future__ import annotations

import os

import numpy as np

from raconvert import registry
from raconvert.adapt import in_order
from raconvert.blocks import block_bytes, blocks
from raconvert.digest import digest_array
from raconvert.elements import little, type_name
from raconvert.errors import Corrupt, UsageError
from raconvert.info import plain
from raconvert.pipeline import open_bundle
from raconvert.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from raconvert.model import Array, Bundle

    Values = np.ndarray[Any, Any]

_NUMBERS = ("int", "uint", "float", "complex", "bool", "bfloat")
_LARGEST_EXACT = 2.0**63  # floats from here on are no int64


# Two files -------------------------------------------------------------------------------------


def diff(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    bitwise: bool = False,
    ignore_meta: bool = False,
    max_memory: int = DEFAULT_MAX_MEMORY,
    **reading: Any,
) -> dict[str, Any]:
    """Return how two files differ; ``same`` tells whether they do.

    NaN equals NaN at the same place. Two numbers differ if ``abs(x - y) > atol + rtol * max(abs(x),
    abs(y))``; `bitwise` compares bytes instead, so that -0.0 is not 0.0 and NaN payloads count.
    Containers are compared by name, two single arrays whatever their names are. `reading` as in
    `raconvert.pipeline.open_bundle`. Arrays whose elements cannot be compared (text with numbers)
    and files whose arrays cannot be paired raise `UsageError`.
    """
    if bitwise and (atol or rtol):
        raise UsageError("a bitwise comparison has no tolerance")
    if not (atol >= 0 and rtol >= 0):
        raise UsageError("a tolerance is not negative", got=f"atol {atol}, rtol {rtol}")
    rule = Rule(atol, rtol, bitwise, max_memory)
    with (
        open_bundle(a, max_memory=max_memory, **reading) as left,
        open_bundle(b, max_memory=max_memory, **reading) as right,
    ):
        pairs, only_a, only_b = _pairs(left, right)
        arrays = [compare_arrays(x, y, rule, ignore_meta=ignore_meta) for x, y in pairs]
        metadata = [] if ignore_meta else meta_differences(left.attributes, right.attributes)
        same = all(item["same"] for item in arrays) and not (only_a or only_b or metadata)
        return {
            "a": os.fspath(a),
            "b": os.fspath(b),
            "same": same,
            "arrays": arrays,
            "only_in_a": only_a,
            "only_in_b": only_b,
            "metadata": metadata,
        }


class Rule:
    """How elements are compared: tolerances, or bytes, and how much memory that may take."""

    __slots__ = ("atol", "bitwise", "max_memory", "rtol")

    def __init__(
        self,
        atol: float = 0.0,
        rtol: float = 0.0,
        bitwise: bool = False,
        max_memory: int = DEFAULT_MAX_MEMORY,
    ) -> None:
        self.atol = atol
        self.rtol = rtol
        self.bitwise = bitwise
        self.max_memory = max_memory


def _pairs(a: Bundle, b: Bundle) -> tuple[list[tuple[Array, Array]], list[str], list[str]]:
    """Return which arrays to compare, and the names that only one side has."""
    many = [registry.by_name(bundle.format).many for bundle in (a, b)]
    if not all(many) and len(a.arrays) == len(b.arrays) == 1:
        return [(a.arrays[0], b.arrays[0])], [], []
    pairs = [(array, b[array.name]) for array in a.arrays if array.name in b]
    if not all(many) and not pairs:
        single, other = (b, a) if many[0] else (a, b)
        raise UsageError(
            f"has {len(other.arrays)} arrays, none of them called '{single.names[0]}'",
            path=other.path,
            remedy=f"choose with FILE#NAME: {', '.join(other.names)}",
        )
    only_a = [name for name in a.names if name not in b]
    only_b = [name for name in b.names if name not in a]
    return pairs, only_a, only_b


def compare_arrays(a: Array, b: Array, rule: Rule, *, ignore_meta: bool = True) -> dict[str, Any]:
    """Return how two arrays differ in type, shape, elements and, unless ignored, metadata.

    ``data`` is None where the shapes differ, and elements cannot be compared by index.
    """
    same_type = little(a.element) == little(b.element)
    same_shape = a.shape == b.shape
    data: dict[str, Any] | None = None
    differ = 0
    if same_shape:
        _check_comparable(a, b)
        data = _compare_data(a, b, rule)
        differ = data["differ"]
    metadata = [] if ignore_meta else meta_differences(_meta_of(a), _meta_of(b))
    return {
        "name": a.name,
        "name_b": b.name,
        "type": [_type_text(a), _type_text(b)],
        "same_type": same_type,
        "shape": [list(a.shape), list(b.shape)],
        "same_shape": same_shape,
        "data": data,
        "metadata": metadata,
        "same": same_type and same_shape and not differ and not metadata,
    }


def _type_text(array: Array) -> str:
    """Return the type with its description where the plain name hides it."""
    element = little(array.element)
    return str(element.descr) if isinstance(element.descr, tuple) else type_name(element)


def _check_comparable(a: Array, b: Array) -> None:
    kinds = a.element.kind, b.element.kind
    if all(kind in _NUMBERS for kind in kinds):
        return
    if kinds == ("user", "user"):
        letters = {_letter(a), _letter(b)}
        same_width = a.element.nbytes == b.element.nbytes
        if same_width and ("V" in letters or len(letters) == 1):
            return
        if len(letters) == 1 and "V" not in letters:
            return
    raise UsageError(
        f"elements of '{a.name}' and '{b.name}' cannot be compared",
        expected="two numeric types, or two other types of one kind",
        got=f"{_type_text(a)} and {_type_text(b)}",
    )


def _letter(array: Array) -> str:
    """Return numpy's letter for what user elements are: S, U, M, m or V."""
    descr = array.element.descr
    return descr[1] if isinstance(descr, str) else "V"


# Elements --------------------------------------------------------------------------------------


def _compare_data(a: Array, b: Array, rule: Rule) -> dict[str, Any]:
    """Compare elements block by block; both sides in one stored order."""
    order: Literal["C", "F"] = "F" if a.index_order == b.index_order == "F" else "C"
    sides = in_order(a, order), in_order(b, order)
    if rule.bitwise and little(a.element) != little(b.element):
        raise UsageError(
            f"elements of '{a.name}' cannot be compared bit by bit",
            expected="one type on both sides",
            got=f"{_type_text(a)} and {_type_text(b)}",
        )
    equal = _same_bytes if _by_bytes(a, b, rule) else _same_values
    found = _Findings(a.shape, order)
    for start, x, y in _side_by_side(*sides, block_bytes(rule.max_memory)):
        if x.dtype == y.dtype and _same_bytes_all(x, y):
            continue
        odd = np.flatnonzero(~equal(x, y))
        if odd.size:
            found.add(start, odd, x[odd], y[odd], rule)
    return found.to_dict()


def _by_bytes(a: Array, b: Array, rule: Rule) -> bool:
    """Tell whether elements are equal only if their bytes are; always so for user types."""
    return rule.bitwise or (
        a.element.kind == "user"
        and a.element.nbytes == b.element.nbytes
        and (a.element.descr == b.element.descr or "V" in (_letter(a), _letter(b)))
    )


def _side_by_side(a: Array, b: Array, max_bytes: int) -> Iterator[tuple[int, Values, Values]]:
    """Yield (first element, values of a, values of b): flat pieces of equal length, in order."""
    if a.count == 0:
        return
    left, right = blocks(a, max_bytes), blocks(b, max_bytes)
    x = y = np.empty(0)
    done = 0
    while done < a.count:
        if not x.size:
            x = _next(left, a, done)
        if not y.size:
            y = _next(right, b, done)
        count = min(x.size, y.size)
        yield done, x[:count], y[:count]
        x, y = x[count:], y[count:]
        done += count


def _next(pieces: Iterator[Values], array: Array, done: int) -> Values:
    for piece in pieces:
        if piece.size:
            return piece.reshape(-1)
    raise Corrupt(f"array '{array.name}' ended early", expected=f"{array.count} elements", got=done)


def _as_bytes(values: Values) -> Values:
    """Return the bytes of each element as one row."""
    values = np.ascontiguousarray(values)
    return values.view(np.uint8).reshape(values.size, values.itemsize)


def _same_bytes_all(x: Values, y: Values) -> bool:
    return np.array_equal(
        np.ascontiguousarray(x).view(np.uint8), np.ascontiguousarray(y).view(np.uint8)
    )


def _same_bytes(x: Values, y: Values) -> Values:
    return (_as_bytes(x) == _as_bytes(y)).all(axis=1)


def _same_values(x: Values, y: Values) -> Values:
    """Tell per element whether two values are equal, exactly, NaN with NaN.

    numpy compares integers with floats in float64, which rounds beyond 2**53: there the float is
    turned into an integer instead, if it is one.
    """
    x, y = _widened(x), _widened(y)
    if x.dtype.kind in "iu" and y.dtype.kind in "fc":
        return _same_integer(x, y)
    if y.dtype.kind in "iu" and x.dtype.kind in "fc":
        return _same_integer(y, x)
    if "c" in (x.dtype.kind, y.dtype.kind):
        return _same_float(x.real, y.real) & _same_float(x.imag, y.imag)
    if x.dtype.kind == y.dtype.kind == "f":
        return _same_float(x, y)
    same = x == y
    if x.dtype.kind in "mM" and y.dtype.kind in "mM":
        same |= np.isnat(x) & np.isnat(y)
    return same


def _widened(values: Values) -> Values:
    """Return bfloat16 as float32 and bool as uint8; anything else as it is."""
    if values.dtype.name == "bfloat16":
        return values.astype(np.float32)
    return values.view(np.uint8) if values.dtype.kind == "b" else values


def _same_float(x: Values, y: Values) -> Values:
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _same_integer(integers: Values, floats: Values) -> Values:
    real = floats.real.astype(np.float64)
    top = _LARGEST_EXACT * (2 if integers.dtype.kind == "u" else 1)
    low = 0.0 if integers.dtype.kind == "u" else -_LARGEST_EXACT
    whole = (real >= low) & (real < top) & (np.floor(real) == real)
    wide = np.uint64 if integers.dtype.kind == "u" else np.int64
    return whole & (np.where(whole, real, 0).astype(wide) == integers) & (floats.imag == 0)


class _Findings:
    """Counts what differs, and keeps the largest difference and where it is."""

    def __init__(self, shape: tuple[int, ...], order: Literal["C", "F"]) -> None:
        self._shape = shape
        self._order = order
        self.differ = 0
        self.nan_only = [0, 0]
        self.first: list[int] | None = None
        self.largest: dict[str, tuple[float, list[int]] | None] = {"abs": None, "rel": None}

    def add(self, start: int, odd: Values, x: Values, y: Values, rule: Rule) -> None:
        """Take in the elements at `start` + `odd`, whose values `x` and `y` are not equal."""
        beyond = np.ones(odd.size, bool)
        x, y = _widened(x), _widened(y)
        if x.dtype.kind in "iufc" and y.dtype.kind in "iufc":
            with np.errstate(all="ignore"):
                distance, scale = _distance(x, y), np.maximum(np.abs(_real(x)), np.abs(_real(y)))
                if rule.atol or rule.rtol:  # a distance may round to 0 between unequal values
                    close = distance <= rule.atol + rule.rtol * scale
                    beyond = ~close | np.isinf(distance)
                self._keep_largest("abs", distance, start, odd)
                self._keep_largest("rel", distance / scale, start, odd)
            nan_x, nan_y = np.isnan(x), np.isnan(y)
            self.nan_only[0] += int((nan_x & ~nan_y).sum())
            self.nan_only[1] += int((nan_y & ~nan_x).sum())
        self.differ += int(beyond.sum())
        if self.first is None and beyond.any():
            self.first = self._index(start + int(odd[beyond][0]))

    def _keep_largest(self, name: str, values: Values, start: int, odd: Values) -> None:
        numbers = np.where(np.isnan(values), -1.0, values)
        place = int(numbers.argmax())
        best = self.largest[name]
        if numbers[place] >= 0 and (best is None or numbers[place] > best[0]):
            self.largest[name] = float(numbers[place]), self._index(start + int(odd[place]))

    def _index(self, flat: int) -> list[int]:
        """Return the logical index of the element at this place in the compared order."""
        return [int(i) for i in np.unravel_index(flat, self._shape, order=self._order)]

    def to_dict(self) -> dict[str, Any]:
        count = 1
        for length in self._shape:
            count *= length
        found: dict[str, Any] = {"count": count, "differ": self.differ, "first": self.first}
        for name, best in self.largest.items():
            found[f"max_{name}"] = None if best is None else plain(best[0])
            found[f"max_{name}_index"] = None if best is None else best[1]
        found["nan_only_in_a"], found["nan_only_in_b"] = self.nan_only
        return found


def _real(values: Values) -> Values:
    """Return values in which a magnitude fits: float64, or complex128."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _distance(x: Values, y: Values) -> Values:
    """Return abs(x - y) as float64; between integers of one signedness it is exact first."""
    if x.dtype.kind == y.dtype.kind and x.dtype.kind in "iu":
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        x, y = x.astype(wide), y.astype(wide)
        high, low = np.maximum(x, y).view(np.uint64), np.minimum(x, y).view(np.uint64)
        return (high - low).astype(np.float64)
    return np.abs(_real(x) - _real(y))


# Metadata --------------------------------------------------------------------------------------


def _meta_of(array: Array) -> dict[str, Any]:
    fields = array.meta.to_dict()
    trailer = fields.get("formats", {}).get("ra", {}).get("trailer")
    if hasattr(trailer, "offset"):
        own = {**fields["formats"]["ra"], "trailer": _trailer_digest(trailer)}
        fields = {**fields, "formats": {**fields["formats"], "ra": own}}
    return fields


def _trailer_digest(trailer: Any) -> str:
    """Return what identifies bytes that stay in their file."""
    import hashlib

    from raconvert.digest import hash_extent

    state = hashlib.sha256()
    hash_extent(state, trailer)
    return f"{trailer.nbytes} bytes, SHA-256 {state.hexdigest()}"


def meta_differences(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields that differ: their dotted name, and both values (absent: only one)."""
    left, right = dict(flat(a)), dict(flat(b))
    found = []
    for name in [*left, *(name for name in right if name not in left)]:
        if name in left and name in right and left[name] == right[name]:
            continue
        found.append(
            {"field": name}
            | ({"a": left[name]} if name in left else {})
            | ({"b": right[name]} if name in right else {})
        )
    return found


def flat(fields: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, plain value) of nested metadata; lists of plain values stay whole."""
    if isinstance(fields, dict) and (fields or not name):
        for key, value in fields.items():
            yield from flat(value, f"{name}.{key}" if name else str(key))
    elif isinstance(fields, (list, tuple)) and any(isinstance(item, dict) for item in fields):
        for number, item in enumerate(fields):
            yield from flat(item, f"{name}[{number}]")
    else:
        yield name, plain(fields)


# Verification ----------------------------------------------------------------------------------


def verify(
    path: str | os.PathLike[str],
    against: Sequence[str] | None = None,
    *,
    max_memory: int = DEFAULT_MAX_MEMORY,
    gathering: dict[str, Any] | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """Check a file, and with `against` compare it with the sources it was made from.

    Every array is read and decoded to its end; damage raises `Corrupt`. The sidecar must describe
    the file (checked when it is opened) and have one entry per item. The sources are gathered and
    stacked as `convert` would, with the arguments in `gathering` (`raconvert.gather.gather`);
    ``ok``, ``changed``, ``missing`` and ``extra`` count what was compared, ``examples`` names the
    first of each.
    """
    with open_bundle(path, max_memory=max_memory, **reading) as bundle:
        many = registry.by_name(bundle.format).many
        found: dict[str, Any] = {
            "path": os.fspath(path),
            "same": True,
            "arrays": [
                {
                    "name": array.name,
                    "type": _type_text(array),
                    "shape": list(array.shape),
                    "digest": digest_array(array, max_memory),
                }
                for array in bundle.arrays
            ],
            "container": many,
            "notes": list(bundle.notes),
        }
        for array in bundle.arrays:
            _check_items(array, bundle.path)
        if against is not None:
            compared = _against(bundle, against, many, max_memory, gathering or {})
            found["against"] = compared
            found["same"] = not (compared["changed"] or compared["missing"] or compared["extra"])
    return found


def _check_items(array: Array, path: str) -> None:
    """Check that per-item metadata has one line for every item of the stack."""
    if array.meta.items is None:
        return
    lines = sum(1 for _ in array.meta.items())
    length = array.shape[0] if array.shape else 0
    if lines != length:
        raise Corrupt(
            "per-item metadata does not fit the array",
            path=path,
            expected=f"{length} items",
            got=lines,
        )


def _against(
    bundle: Bundle,
    specs: Sequence[str],
    many: bool,
    max_memory: int,
    gathering: dict[str, Any],
) -> dict[str, Any]:
    """Compare an open file with its sources: a stack, one named array each, or one file."""
    from raconvert.gather import gather

    gathered = gather(specs, **gathering)
    result = _Verdict()
    if gathered.many and not many:
        _against_stack(bundle, gathered.paths, max_memory, result)
    elif gathered.many:
        _against_named(bundle, gathered.paths, max_memory, result)
    else:
        with open_bundle(gathered.paths[0], max_memory=max_memory) as source:
            _against_bundle(bundle, source, max_memory, result)
    return result.to_dict()


class _Verdict:
    """Counts of what is as in the sources and what is not, with the first of each kind."""

    def __init__(self) -> None:
        self._counts = {"ok": 0, "changed": 0, "missing": 0, "extra": 0}
        self._examples: dict[str, str] = {}

    def add(self, what: str, example: str) -> None:
        self._counts[what] += 1
        if what != "ok":
            self._examples.setdefault(what, example)

    def to_dict(self) -> dict[str, Any]:
        return {**self._counts, "examples": self._examples}


def _against_bundle(bundle: Bundle, source: Bundle, max_memory: int, result: _Verdict) -> None:
    pairs, only_source, only_file = _pairs(source, bundle)
    rule = Rule(bitwise=True, max_memory=max_memory)
    for x, y in pairs:
        result.add(*_judge_pair(x, y, rule))
    for name in only_file:
        result.add("missing", f"{source.path}#{name}")
    for name in only_source:
        result.add("extra", f"{source.path}#{name}")


def _judge_pair(source: Array, array: Array, rule: Rule) -> tuple[str, str]:
    """Return (ok or changed, where) for an array and what it was made from."""
    if little(source.element) != little(array.element):
        return "changed", f"{source.name}: type {_type_text(source)}, now {_type_text(array)}"
    if source.shape != array.shape:
        return "changed", f"{source.name}: shape {source.shape}, now {array.shape}"
    data = _compare_data(source, array, rule)
    if data["differ"]:
        return "changed", f"{source.name}: {data['differ']} elements, first at {data['first']}"
    return "ok", source.name


def _against_named(bundle: Bundle, paths: Sequence[str], max_memory: int, result: _Verdict) -> None:
    """Compare a container with files that each became one array of their stem's name."""
    rule = Rule(bitwise=True, max_memory=max_memory)
    seen = set()
    for path in paths:
        stem = os.path.splitext(os.path.basename(path))[0]
        with open_bundle(path, max_memory=max_memory) as source:
            for array in source.arrays:
                name = stem if len(source.arrays) == 1 else f"{stem}/{array.name}"
                seen.add(name)
                if name in bundle:
                    what, _ = _judge_pair(array, bundle[name], rule)
                    result.add(what, path)
                else:
                    result.add("extra", path)
    for name in bundle.names:
        if name not in seen:
            result.add("missing", name)


def _against_stack(bundle: Bundle, paths: list[str], max_memory: int, result: _Verdict) -> None:
    """Compare an array, item by item along its first axis, with one file per item."""
    if len(bundle.arrays) != 1:
        raise UsageError(
            f"has {len(bundle.arrays)} arrays; a stack is one",
            path=bundle.path,
            remedy=f"choose with FILE#NAME: {', '.join(bundle.names)}",
        )
    array = in_order(bundle.arrays[0], "C")
    if array.ndim == 0:
        raise UsageError("a stack has at least one axis", path=bundle.path, got="none")
    with open_stack(paths, max_memory) as source:
        stack = in_order(source.arrays[0], "C")
        now = f"{_type_text(array)} {array.shape[1:]}"
        was = f"{_type_text(stack)} {stack.shape[1:]}"
        if now != was:
            for path in paths:
                result.add("changed", f"{path}: {was}, now {now}")
            return
        kept = list(item_digests(array, max_memory))
        fresh = list(item_digests(stack, max_memory))
    names = _item_names(bundle.arrays[0])
    _align(kept, fresh, paths, names, result)


def open_stack(paths: list[str], max_memory: int = DEFAULT_MAX_MEMORY) -> Bundle:
    """Open files as the stack that `convert` would make of them, in this order."""
    from raconvert.pipeline import open_sources

    return open_sources([], max_memory=max_memory, files_from=paths)


def item_digests(array: Array, max_memory: int = DEFAULT_MAX_MEMORY) -> Iterator[bytes]:
    """Yield a digest of each item along the slowest axis, in order; items may exceed memory."""
    import hashlib

    length = array.dims[-1]
    nbytes = array.nbytes // length if length else 0
    if nbytes == 0:
        yield from [b""] * length
        return
    state, have = hashlib.sha256(), 0
    for block in blocks(array, block_bytes(max_memory)):
        piece = block.reshape(-1).view(np.uint8).data
        while piece:
            part = piece[: nbytes - have]
            state.update(part)
            have += len(part)
            piece = piece[len(part) :]
            if have == nbytes:
                yield state.digest()
                state, have = hashlib.sha256(), 0


def _item_names(array: Array) -> list[str]:
    """Return the file names of the items as the sidecar kept them; empty where it did not."""
    if array.meta.items is None:
        return []
    return [str(item.get("file", "")) for item in array.meta.items()]


def _align(
    kept: list[bytes], fresh: list[bytes], paths: list[str], names: list[str], result: _Verdict
) -> None:
    """Pair the items of a file with its sources, in order, when some may be missing or extra.

    Where a pair differs and the lengths differ too, the nearest equal one within that slack
    decides: sources skipped over are extra, items skipped over are missing.
    """
    i = j = 0
    while i < len(kept) and j < len(fresh):
        if kept[i] == fresh[j]:
            result.add("ok", paths[j])
            i, j = i + 1, j + 1
            continue
        slack = (len(kept) - i) - (len(fresh) - j)
        gone = _distance_to(fresh[j], kept, i, slack)
        added = _distance_to(kept[i], fresh, j, -slack)
        for item in range(i, i + gone):
            result.add("missing", _missing_name(item, i, i + gone, j, paths, names))
        for path in paths[j : j + added]:
            result.add("extra", path)
        if gone or added:
            i, j = i + gone, j + added
        else:
            result.add("changed", paths[j])
            i, j = i + 1, j + 1
    for item in range(i, len(kept)):
        result.add("missing", _missing_name(item, i, len(kept), j, paths, names))
    for path in paths[j:]:
        result.add("extra", path)


def _distance_to(wanted: bytes, digests: list[bytes], start: int, slack: int) -> int:
    """Return how far behind `start` the wanted digest is, up to `slack`; 0 if it is not there."""
    for step in range(1, slack + 1):
        if digests[start + step] == wanted:
            return step
    return 0


def _missing_name(
    item: int, first: int, stop: int, following: int, paths: list[str], names: list[str]
) -> str:
    """Return the name of the source that an item had, one of `first` to `stop` that are missing.

    As the sidecar kept it; else counted on from the numbered source before the gap, or back from
    the one after it; else the number of the item. `following` is the source after the gap.
    """
    if item < len(names) and names[item]:
        return names[item]
    if following:
        name = _numbered(paths[following - 1], item - first + 1)
    else:
        name = _numbered(paths[0], item - stop) if paths else None
    if name is None or (following < len(paths) and name == paths[following]):
        return f"item {item}"
    return name


def _numbered(path: str, shift: int) -> str | None:
    """Return the path with the last number of its name changed by `shift`, in the same width."""
    folder, name = os.path.split(path)
    stem, suffix = os.path.splitext(name)
    text = stem.rstrip("0123456789")
    digits = stem[len(text) :]
    if not digits.isdecimal() or int(digits) + shift < 0:
        return None
    number = f"{int(digits) + shift:0{len(digits)}d}"
    return os.path.join(folder, f"{text}{number}{suffix}")
