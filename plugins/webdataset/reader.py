"""Samples of shards as arrays: one for each extension, with the samples along the first axis."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial

from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle, some_sound
from raconvert.arrays.memory import check_memory
from raconvert.errors import (
    RaconvertError,
    TooLarge,
    Unsupported,
    UsageError,
    counted,
    did_you_mean,
    listed,
    worded,
)
from raconvert.plugin import Axis, Metadata, Source

from .plan import array_name, kind_of
from .samples import Column, Samples, samples_of
from .tables import (
    ARRAY,
    BYTE,
    FORMATS,
    INT64,
    NUMBER,
    NUMBER_BYTES,
    OTHER,
    TEXT,
    counted_keys,
    text_element,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.files.source import Identity
    from raconvert.plugin import Element, Plugin

__all__ = ["read_shards"]


class _Wanted:
    """The options `only`, `raw` and `apart`, each a list of extensions that some sample has."""

    def __init__(self, samples: Samples, only: str, raw: str, apart: str) -> None:
        self.only: list[str] = _words(samples, only, "only")
        self.raw: list[str] = _words(samples, raw, "raw")
        self.apart: list[str] = _words(samples, apart, "apart")

    def kind(self, column: Column) -> str:
        """Return the kind as which the members of an extension are read."""
        return OTHER if column.word in self.raw else kind_of(column.word)

    def reads(self, column: Column) -> bool:
        """True if an extension is read: it is named, or of a known kind and `only` is empty."""
        named = column.word in (*self.only, *self.raw)
        return named or (not self.only and kind_of(column.word) != OTHER)


def _words(samples: Samples, text: str, option: str) -> list[str]:
    """Return the extensions of an option. Raises `UsageError` for one that no sample has."""
    words = [word.strip().lstrip(".").lower() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in samples.columns:
            known = [*samples.columns]
            raise UsageError(
                f"option {option} names '{word}', which no sample has{did_you_mean(word, known)}",
                expected=listed(known) or "samples, which the archive has not",
            )
    return words


def read_shards(sources: list[Source], *, only: str, raw: str, apart: str) -> Bundle:
    """Read the arrays of the samples of shards, in the order of the first of each extension."""
    samples = samples_of(sources)
    wanted = _Wanted(samples, only, raw, apart)
    columns = [column for column in samples.columns.values() if wanted.reads(column)]
    if not columns:
        raise _no_array(samples, sources[0])
    notes = samples.notes
    labels = _labels(samples, notes)
    arrays: list[Array] = []
    for column, name in zip(columns, _names(columns), strict=True):
        kind = wanted.kind(column)
        if column.word in wanted.apart:
            arrays += _apart(column, name, kind, notes)
            continue
        try:
            arrays.append(_array(column, name, kind, labels, notes))
        except RaconvertError as error:
            arrays.append(Array.unreadable(name, error))
    left = [c for c in samples.columns.values() if c not in columns]
    if left:
        names = ", ".join(f"{len(c.sizes)} of '{c.extension}'" for c in left[:10])
        more = f", and {len(left) - 10} more" if len(left) > 10 else ""
        how = f"; `--in-opt raw={left[0].word}` reads the bytes of one" * (not wanted.only)
        notes.append(worded(f"members left out: {names}{more}{how}"))
    return Bundle(some_sound(arrays), notes=notes)


def _no_array(samples: Samples, source: Source) -> Unsupported:
    """Return the error for shards of which no extension is read."""
    if not samples.keys:
        return Unsupported(
            "holds no sample", path=source.path, expected="files named KEY.EXTENSION",
        )  # fmt: skip
    word = next(iter(samples.columns))
    return Unsupported(
        "holds no member of a kind that is read as an array", path=source.path,
        expected="npy, images, numbers (cls) or texts (txt, json)",
        got=listed([*samples.columns]),
        remedy=f"read the bytes of an extension with `--in-opt raw={word}`",
    )  # fmt: skip


def _labels(samples: Samples, notes: list[str]) -> tuple[str, ...] | None:
    """Return the keys as labels of the samples; None if they only count, or cannot be labels."""
    keys = samples.keys
    if keys == counted_keys(len(keys)):
        return None
    most = samples.shards[0].limits.table_labels
    if len(keys) > most:
        notes.append(f"the keys of {len(keys)} samples are left out: labels are at most {most}")
        return None
    if len(set(keys)) < len(keys):
        notes.append("the keys are left out, as they begin anew in another shard")
        return None
    return tuple(keys)


def _names(columns: list[Column]) -> list[str]:
    """Return the names of the arrays; those that would have one name have their whole extension."""
    names = [array_name(column.extension) for column in columns]
    often = Counter(names)
    pairs = zip(names, columns, strict=True)
    return [column.extension if often[name] > 1 else name for name, column in pairs]


# One array of an extension ------------------------------------------------------------------------


def _array(
    column: Column, name: str, kind: str, labels: tuple[str, ...] | None, notes: list[str]
) -> Array:
    """Return the array of all samples. Raises the error for which it cannot be read."""
    number = column.missing()
    if number is not None:
        raise Unsupported(
            f"sample '{column.samples.keys[number][:200]}' has no member '{column.word}'",
            path=column.shard(number).path, expected="one for each sample",
            remedy=_without(column),
        )  # fmt: skip
    array = _MAKERS[kind](column, name, notes)
    axes = [*(array.meta.axes or (Axis(),) * array.ndim)]
    if labels is not None:
        axes[0] = axes[0].replace(labels=labels)
        array.meta = array.meta.replace(axes=axes)
    return array


def _without(column: Column) -> str:
    """Return the remedy that leaves an extension out."""
    rest = ",".join(word for word in column.samples.columns if word != column.word)
    return f"leave it out with `--in-opt only={rest or 'EXTENSIONS'}`"


def _numbers(column: Column, name: str, notes: list[str]) -> Array:
    """Return the array of numbers in decimal digits, as int64."""
    number = next((n for n, size in enumerate(column.sizes) if size > NUMBER_BYTES), None)
    if number is not None:
        raise Unsupported(
            f"member '{column.member(number)}' is too long for a number",
            path=column.shard(number).path, expected=f"at most {NUMBER_BYTES} bytes",
            got=column.sizes[number], remedy=_without(column),
        )  # fmt: skip

    def data() -> Any:
        from .rows import Numbers

        return Numbers(column)

    return Array(INT64, (len(column.sizes),), name=name, index_order="C", data=data)


def _texts(column: Column, name: str, notes: list[str]) -> Array:
    """Return the array of texts, each as wide as the longest; `TooLarge` if that is too much."""
    from .rows import Texts, check_text

    longest = max(range(len(column.sizes)), key=column.sizes.__getitem__)
    check_text(column, longest)
    element, limits = text_element(column.sizes[longest]), column.shard(0).limits
    nbytes = element.nbytes * len(column.sizes)
    if nbytes > max(limits.memory, limits.absent_ratio * sum(column.sizes)):
        raise TooLarge(
            f"texts '{column.word}' would all be as long as '{column.member(longest)}'",
            path=column.shard(longest).path, expected=f"at most {limits.memory} bytes together",
            got=nbytes, remedy=_without(column),
        )  # fmt: skip
    return Array(
        element, (len(column.sizes),), name=name, index_order="C", data=partial(Texts, column),
        meta=Metadata(encoding="utf-8"),
    )  # fmt: skip


def _bytes(column: Column, name: str, notes: list[str]) -> Array:
    """Return the array of the bytes of members, which must all be of one length."""
    size = column.sizes[0]
    odd = next((n for n, other in enumerate(column.sizes) if other != size), None)
    if odd is not None:
        raise Unsupported(
            f"the members '{column.word}' have different lengths, first '{column.member(odd)}' "
            f"({_apart_hint(column)})", path=column.shard(odd).path,
            expected=f"{size} bytes, as '{column.member(0)}'", got=column.sizes[odd],
            remedy=_without(column),
        )  # fmt: skip
    return _alike(column, name, BYTE, (size,), 0)


def _apart_hint(column: Column) -> str:
    """Return the option that reads the members of an extension apart, for messages."""
    return f"`--in-opt apart={column.word}` makes each an array of its own"


def _alike(
    column: Column, name: str, element: Element, dims: tuple[int, ...], offset: int
) -> Array:
    """Return the array of elements that lie at one offset in every member; `dims` are of one."""

    def data() -> Any:
        from .rows import Alike

        return Alike(column, dims[::-1], element, offset)

    all_dims = (*dims, len(column.sizes))
    return Array(element, all_dims, name=name, index_order="C", data=data)


def _stacked(column: Column, name: str, notes: list[str]) -> Array:
    """Return the array of members of one shape and type: where they lie, or else as a stack."""
    if column.word.rpartition(".")[2] == "npy":
        array = _npy_alike(column, name)
        if array is not None:
            return array
    from raconvert.arrays.stack import stack

    paths = {f"{column.shard(n).path}: {column.member(n)}": n for n in range(len(column.sizes))}
    names = [*paths]
    shard = column.shard(0)

    counts: dict[str, int] = {}  # of members, by their notes

    def open_member(path: str) -> _Item:
        item = _Item(column, paths[path])
        for note in item.bundle.notes:
            counts[note] = counts.get(note, 0) + 1
        return item

    try:
        array = stack(names, open_member(names[0]), open_member, shard.max_memory)
    except UsageError as error:
        odd = paths.get(error.path or "", 0)
        raise Unsupported(
            f"the arrays '{column.word}' of the samples differ, first in '{column.member(odd)}' "
            f"({_apart_hint(column)})", path=column.shard(odd).path, expected=error.expected,
            got=error.got, remedy=_without(column),
        ) from error  # fmt: skip
    notes += [f"'{column.word}': {note}" for note in array.source.notes]
    notes += [f"'{column.word}': {note} (in {count} of them)" for note, count in counts.items()]
    array.name = name
    return array


def _npy_alike(column: Column, name: str) -> Array | None:
    """Return the array of NPY members that begin with the same header, in C order; else None."""
    from ..npy.header import nbytes_of, read_header

    first = column.window(0)
    header = read_header(first)
    end = header.offset + nbytes_of(header)
    if header.index_order != "C" or end != first.size:
        return None
    begin = first.read_at(0, header.offset)
    for number in range(1, len(column.sizes)):
        shard, offset = column.shard(number), column.offsets[number]
        if column.sizes[number] != end or shard.read_at(offset, header.offset) != begin:
            return None
    return _alike(column, name, header.element, header.dims, header.offset)


_MAKERS: dict[str, Callable[[Column, str, list[str]], Array]] = {
    NUMBER: _numbers, TEXT: _texts, ARRAY: _stacked, OTHER: _bytes,
}  # fmt: skip


class _Item:
    """The array of one member, open as long as the context is."""

    def __init__(self, column: Column, number: int) -> None:
        self._column, self._number = column, number
        self.bundle: Bundle = _read(column, number)
        self.array: Array = self.bundle.arrays[0]
        self.seen: dict[str, Identity] = column.shard(number).seen

    def __enter__(self) -> _Item:
        return self

    def __exit__(self, *raised: object) -> None:
        self.bundle.close()
        for error in raised:
            if isinstance(error, RaconvertError):
                _located(error, self._column, self._number)


def _read(column: Column, number: int) -> Bundle:
    """Read one member by the format of its extension."""
    plugin = _plugin(FORMATS[column.word.rpartition(".")[2]])
    try:
        return plugin.read(column.window(number))
    except RaconvertError as error:
        raise _located(error, column, number) from error.__cause__


@cache
def _plugin(name: str) -> Plugin:
    """Return the plugin of a format, loaded once for all members: loading imports its packages."""
    return registry.load(registry.by_name(name))


def _located(error: RaconvertError, column: Column, number: int) -> RaconvertError:
    """Add the member to an error about its shard, and return the error."""
    where = f"'{column.member(number)[:200]}'"
    if error.path == column.shard(number).path and where not in (error.where or ""):
        error.where = where + (f", {error.where}" if error.where else "")
    return error


# An array of each sample --------------------------------------------------------------------------


def _apart(column: Column, name: str, kind: str, notes: list[str]) -> list[Array]:
    """Return an array for each member, in a group with the name of the extension."""
    shard = column.shard(0)
    if len(column.sizes) > shard.limits.nodes:
        raise TooLarge(
            f"has {len(column.sizes)} members '{column.word}', too many for an array of each",
            path=shard.path, expected=f"at most {shard.limits.nodes}",
        )  # fmt: skip
    if column.missing() is not None:
        raise Unsupported(
            f"'{column.word}' is missing from samples, and cannot be read apart", path=shard.path,
            got=f"{len(column.sizes)} of {counted(len(column.samples.keys), 'sample')}",
            remedy=_without(column),
        )  # fmt: skip
    if len(set(column.samples.keys)) < len(column.samples.keys):
        raise Unsupported(
            "keys begin anew in another shard, so that arrays of each would have one name",
            path=shard.path, remedy="read the shards one by one",
        )  # fmt: skip
    return [_single(column, name, kind, n, notes) for n in range(len(column.sizes))]


def _single(column: Column, name: str, kind: str, number: int, notes: list[str]) -> Array:
    """Return the array of one member, named after its key; unreadable if reading it raises."""
    path = f"{name}/{column.samples.keys[number]}"
    try:
        if kind == ARRAY:
            bundle = _read(column, number)
            notes += [f"'{column.member(number)}': {note}" for note in bundle.notes]
            return bundle.arrays[0].replace(name=path)
        return _whole(column, path, number)
    except RaconvertError as error:
        return Array.unreadable(path, error)


def _whole(column: Column, path: str, number: int) -> Array:
    """Return the array of the bytes of one member."""
    size, window = column.sizes[number], column.window(number)
    check_memory(size, window.max_memory, f"member '{column.member(number)}'")
    return Array(BYTE, (size,), name=path, index_order="C", extent=window.extent(0, size))
