"""Verify a file: decode it to its end, and compare it with the sources it was made from."""

from __future__ import annotations

import os

import numpy as np

from raconvert import registry
from raconvert.arrays.blocks import block_bytes, blocks
from raconvert.arrays.dtypes import described
from raconvert.arrays.metadata import Metadata
from raconvert.arrays.transpose import in_order
from raconvert.conversion.combine import open_sources
from raconvert.conversion.options import Opening, Settings, Verifying, normalized, options_of
from raconvert.conversion.outputs import lost_fields
from raconvert.conversion.read import open_bundle
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.unreadable import why
from raconvert.conversion.write import write_bundle
from raconvert.declared import accepts
from raconvert.errors import Corrupt, RaconvertError, UsageError, counted, listed
from raconvert.files.source import DEFAULT_MAX_MEMORY, Source
from raconvert.inspect.diff import pair_arrays, type_text
from raconvert.inspect.digest import digest_array
from raconvert.inspect.elements import Rule, compare_data
from raconvert.references import proof_beside
from raconvert.workers.interrupts import raise_interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias, Unpack

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.plugin import Check

    _Item: TypeAlias = "tuple[Callable[[], Metadata], dict[str, Any]]"


_BOTH = ("meta", "index_order", "max_memory")  # options of the file and of its sources


@accepts(options_of(Verifying, arrays=None))
def verify(
    path: str | os.PathLike[str],
    against: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    go_on: bool = False,
    **options: Unpack[Verifying],
) -> dict[str, Any]:
    """Check a file, and with `against` compare it with the sources it was made from.

    Every array is read and decoded to its end; damage raises `Corrupt`. With `go_on`, if other
    arrays of the file are sound, it is the ``problem`` of its array, and the file is not the
    ``same``. The sidecar must describe the file (checked when it is opened) and have one entry per
    item. The sources are gathered and stacked as `convert` would, with the same options, at most
    `max_memory` bytes at once; without `against` the options are about the file itself. Elements
    are compared by their index, whatever their order in the files; cast or permuted arrays differ.
    Metadata is compared, too, that of each item of a stack included, except for the changes that a
    conversion into the format reports; with ``meta="ignore"`` it is not.
    In ``against``, ``ok``, ``changed``, ``missing`` and ``extra`` are counts of arrays or files,
    ``examples`` names the first of each.

    For a view (`raconvert.refs`), the files that it names are compared with its proof; ``problems``
    lists those that have changed, ``references`` counts them.

    >>> raconvert.convert("grid.ra", "checked.npy").target
    'checked.npy'
    >>> found = raconvert.verify("checked.npy", against=["grid.ra"])
    >>> found["same"], found["against"]["ok"], found["against"]["changed"]
    (True, 1, 0)

    Raises `Corrupt` for damage, `ReadFailed` and `UnknownFormat` for files that cannot be opened.
    """
    gathering = normalized(options)
    arrays = gathering.pop("arrays", None)
    sources = {name: gathering.pop(name) for name in Opening.__annotations__ if name in gathering}
    max_memory = sources.setdefault("max_memory", DEFAULT_MAX_MEMORY)
    sources.setdefault("meta", "auto")
    if against is None and gathering.get("files_from") is not None:
        against = []
    if isinstance(against, (str, os.PathLike)):
        against = [against]
    if against is None and proof_beside(os.fspath(path)) is not None:
        from raconvert.references.check import verified

        trust = sources.get("trust", ())
        return verified(os.fspath(path), trust=trust, max_memory=max_memory)
    # With sources the other options say how to read those; the file speaks for itself.
    own = sources
    if against is not None:
        own = {name: sources[name] for name in _BOTH if name in sources}
    with open_bundle(path, arrays=arrays, **own) as bundle:
        plugin = registry.load(registry.by_name(bundle.format))
        damage = _checked(plugin.check, Source(bundle.path, max_memory=max_memory))
        if damage is not None and not go_on:
            raise damage
        many = registry.by_name(bundle.format).many
        result: dict[str, Any] = {
            "path": os.fspath(path),
            "arrays": _read_all(bundle, max_memory, go_on=go_on),
            "container": many,
            "notes": list(bundle.notes),
        }
        result["same"] = not bundle.unreadable
        if damage is not None and result["same"]:  # the damage is outside of the arrays
            raise damage
        for array in bundle.arrays:
            _check_items(array, bundle.path)
        if against is not None:
            specs = [os.fspath(source) for source in against]
            compared = _against(bundle, specs, many, sources, gathering, chosen=bool(arrays))
            result["against"] = compared
            differs = compared["changed"] or compared["missing"] or compared["extra"]
            result["same"] = result["same"] and not differs
    return result


def _checked(check: Check | None, source: Source) -> RaconvertError | None:
    """The problem that the format's own check of a whole file finds, or None."""
    try:
        if check is not None:
            check(source)
    except RaconvertError as error:
        return error
    return None


def _read_all(bundle: Bundle, max_memory: int, *, go_on: bool) -> list[dict[str, Any]]:
    """The name, type, shape and digest of each array, or its problem; reads all elements.

    Raises the first error without `go_on`, and if no array can be read.
    """
    results = []
    for array in bundle.arrays:
        facts: dict[str, Any] = {
            "name": array.name,
            "type": type_text(array),
            "shape": list(array.shape),
        }
        try:
            facts.update(digest=digest_array(array, max_memory), problem=None)
        except RaconvertError as error:
            if not go_on:
                raise
            raise_interruption(error)
            array.problem = error
            facts.update(digest=None, problem=why(error, bundle.path))
        results.append(facts)
    broken = bundle.unreadable
    if broken and len(broken) == len(results) and broken[0].problem is not None:
        raise broken[0].problem
    return results


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
    reading: dict[str, Any],
    gathering: dict[str, Any],
    *,
    chosen: bool,
) -> dict[str, Any]:
    """Compare an open file with its sources: a stack, files of one named array each, or one file.

    If only some arrays of the file are `chosen`, a single source may have others.
    """
    from raconvert.conversion.inputs import gather

    gathered = gather(specs, **gathering)
    if not gathered.paths:
        raise UsageError("no sources to compare with", path=bundle.path)
    result = _Verdict()
    if gathered.many and (not many or _is_stack_of(gathered.paths, bundle)):
        _against_stack(bundle, gathered.paths, reading, result)
    elif gathered.many:
        _against_named(bundle, gathered.paths, reading, result)
    else:
        with open_bundle(gathered.paths[0], **reading) as source:
            _against_bundle(
                bundle,
                source,
                reading["max_memory"],
                result,
                chosen=chosen,
                ignore_meta=reading["meta"] == "ignore",
            )
    return result.to_dict()


class _Verdict:
    """Counts of arrays or files that are as in the sources and that are not, with examples."""

    def __init__(self) -> None:
        self._counts = {"ok": 0, "changed": 0, "missing": 0, "extra": 0}
        self._examples: dict[str, str] = {}

    def add(self, verdict: str, example: str) -> None:
        """Count one; the first of each verdict but ``ok`` is its example."""
        self._counts[verdict] += 1
        if verdict != "ok":
            self._examples.setdefault(verdict, example)

    def to_dict(self) -> dict[str, Any]:
        """The counts by verdict, and the examples."""
        return {**self._counts, "examples": self._examples}


def _against_bundle(
    bundle: Bundle,
    source: Bundle,
    max_memory: int,
    result: _Verdict,
    *,
    chosen: bool,
    ignore_meta: bool,
) -> None:
    """Compare a file with its only source, array by array."""
    pairs, only_source, only_file = pair_arrays(source, bundle)
    rule = Rule(bitwise=True, max_memory=max_memory)
    changes = None if ignore_meta else Changes(source, bundle)
    for x, y in pairs:
        result.add(*_judge_pair(x, y, rule, changes))
    for name in only_file:
        result.add("missing", f"{source.path}#{name}")
    if not chosen:
        for name in only_source:
            result.add("extra", f"{source.path}#{name}")


# In the reason of a fit that concerns other programs only: raconvert reads the same metadata back.
_FOR_OTHERS = ("other programs see ", "only raconvert finds ")


class Changes:
    """The changes of metadata that a conversion of one file into another is known to make."""

    def __init__(self, source: Bundle, bundle: Bundle) -> None:
        self._source = source
        self._bundle = bundle
        self._named: set[str] | None = None
        self._asked = False

    def excuse(self, *names: str) -> bool:
        """True if a conversion reports that it changes the metadata of an array of these names.

        True, too, if a conversion cannot be planned: the format is only read, or takes no such
        arrays. It is planned at the first call, after the elements have been read.
        """
        if not self._asked:
            self._named, self._asked = _changes_named(self._source, self._bundle), True
        return self._named is None or not self._named.isdisjoint({"", *names})

    def unexpected(self, source: Array, array: Array) -> str:
        """List the metadata of an array that differs though no conversion reports it; or ""."""
        fields = lost_fields(source.meta.completed(), array.meta.completed())
        if source.shape != array.shape:
            fields = [field for field in fields if field not in ("axes", "space", "formats")]
        return _differing(fields) if fields and not self.excuse(source.name, array.name) else ""


def _differing(fields: list[str]) -> str:
    """Describe the fields of metadata that differ; empty without any."""
    return f"metadata differs in: {', '.join(fields)}" if fields else ""


def _changes_named(source: Bundle, bundle: Bundle) -> set[str] | None:
    """Return the names of arrays whose metadata a conversion reports to change; "" means all.

    None if a conversion cannot be planned: the format is only read, or takes no such arrays.
    """
    row = registry.by_name(bundle.format)
    if not row.writes or not source.arrays:
        return None
    settings = Settings(dry_run=True, allow=["all"])
    arrays = [array.replace(meta=array.meta.completed()) for array in source.arrays]
    try:
        run = Conversion(bundle.path, row, settings, Report([]))
        report = write_bundle(run, source.like(arrays))
    except RaconvertError:
        return None
    return {
        fit.array
        for fit in (*report.equivalent, *report.allowed)
        if fit.property in ("metadata", "names", "index order")
        and not any(words in fit.reason for words in _FOR_OTHERS)
    }


def _judge_pair(
    source: Array, array: Array, rule: Rule, changes: Changes | None
) -> tuple[str, str]:
    """Return the verdict on an array and the one it was made from, and an example for it.

    The verdict is ``ok`` or ``changed``. Without `changes`, metadata is not compared.
    """
    for side in (source, array):
        if side.problem is not None:
            return "changed", f"{side.name}: cannot be read: {why(side.problem)}"
    if described(source.element) != described(array.element):
        return "changed", f"{source.name}: type {type_text(source)}, now {type_text(array)}"
    if source.shape != array.shape:
        return "changed", f"{source.name}: shape {source.shape}, now {array.shape}"
    data = compare_data(source, array, rule)
    if data["differ"]:
        return (
            "changed",
            f"{source.name}: {counted(data['differ'], 'element')}, first at {data['first']}",
        )
    differ = changes.unexpected(source, array) if changes is not None else ""
    return ("changed", f"{source.name}: {differ}") if differ else ("ok", source.name)


def _against_named(
    bundle: Bundle, paths: Sequence[str], reading: dict[str, Any], result: _Verdict
) -> None:
    """Compare a container with files, each of which became an array with the name of its stem."""
    rule = Rule(bitwise=True, max_memory=reading["max_memory"])
    seen = set()
    for path in paths:
        stem = os.path.splitext(os.path.basename(path))[0]
        with open_bundle(path, **reading) as source:
            changes = None if reading["meta"] == "ignore" else Changes(source, bundle)
            for array in source.arrays:
                name = stem if len(source.arrays) == 1 else f"{stem}/{array.name}"
                seen.add(name)
                if name in bundle:
                    verdict, _ = _judge_pair(array, bundle[name], rule, changes)
                    result.add(verdict, path)
                else:
                    result.add("extra", path)
    for name in bundle.names:
        if name not in seen:
            result.add("missing", name)


def _is_stack_of(paths: Sequence[str], bundle: Bundle) -> bool:
    """True if a container has one array, which is not named after one of the files."""
    stems = {os.path.splitext(os.path.basename(path))[0] for path in paths}
    if len(bundle.arrays) != 1 or bundle.arrays[0].ndim == 0:
        return False
    return stems.isdisjoint({bundle.names[0], bundle.names[0].partition("/")[0]})


def _against_stack(
    bundle: Bundle, paths: list[str], reading: dict[str, Any], result: _Verdict
) -> None:
    """Compare an array, item by item along its first axis, with one file per item."""
    if len(bundle.arrays) != 1:
        raise UsageError(
            f"has {counted(len(bundle.arrays), 'array')}; a stack is one",
            path=bundle.path,
            remedy=f"choose with FILE#NAME: {listed(bundle.names)}",
        )
    max_memory = reading["max_memory"]
    array = in_order(bundle.arrays[0], "C", max_memory)
    if array.ndim == 0:
        raise UsageError("a stack has at least one axis", path=bundle.path, got="none")
    with open_sources([], files_from=paths, **reading) as source:
        stack = in_order(source.arrays[0], "C", max_memory)
        now = f"{type_text(array)} {array.shape[1:]}"
        was = f"{type_text(stack)} {stack.shape[1:]}"
        if now != was:
            for path in paths:
                result.add("changed", f"{path}: {was}, now {now}")
            return
        digests = list(item_digests(array, max_memory))
        source_digests = list(item_digests(stack, max_memory))
        names = _item_names(bundle.arrays[0])
        items = None if reading["meta"] == "ignore" else _Items(source, bundle)
        _align(digests, source_digests, paths, names, items, result)


class _Items:
    """The metadata of the items of a stack, compared with that of its sources."""

    def __init__(self, source: Bundle, bundle: Bundle) -> None:
        stack, array = source.arrays[0], bundle.arrays[0]
        was, now = stack.meta.completed(), array.meta.completed()
        self._common = [meta if meta.items is None else meta.replace(items=None)
                        for meta in (was, now)]  # fmt: skip
        fields = lost_fields(*self._common)
        if stack.shape == array.shape:
            of_first_axis = lost_fields(*(Metadata(axes=meta.axes[:1]) for meta in self._common))
        else:  # then the first axis and the common metadata are about other items
            of_first_axis = []
            fields = [field for field in fields if field not in ("axes", "space", "formats")]
        self._equal = not fields
        self._excused = self._items_excused = False
        if fields or was.items is not None:
            names = (stack.name, array.name)
            common = source.like([stack.replace(meta=self._common[0])])
            self._excused = Changes(common, bundle).excuse(*names)
            self._items_excused = self._excused or Changes(source, bundle).excuse(*names)
        self._common_differences = _differing(fields if self._items_excused else of_first_axis)
        self._was = _Rising(_items_of(was, stack.shape))
        self._now = _Rising(_items_of(now, array.shape))

    def unexpected(self, item: int, source: int) -> str:
        """List the metadata of an item that differs though no conversion reports it; or "".

        `item` is its index in the array, `source` that of its source; neither may fall from call
        to call.
        """
        if self._excused:
            return ""
        if self._items_excused or self._common_differences:
            return self._common_differences
        (was, own_before), (now, own_now) = self._was[source], self._now[item]
        if self._equal and own_before == own_now:
            return ""
        return _differing(lost_fields(was(), now()))


def _items_of(meta: Metadata, shape: tuple[int, ...]) -> Iterator[_Item]:
    """Yield, for each item, a function that makes its metadata, and the fields of it alone."""
    from functools import partial
    from itertools import repeat

    items: Iterator[dict[str, Any]] = repeat({}) if meta.items is None else meta.items()
    common = meta.replace(items=None)
    for number, own in zip(range(shape[0]), items, strict=False):
        alone = {key: value for key, value in own.items() if key not in ("item", "file")}
        yield partial(common.of_item, number, shape, alone), alone


class _Rising:
    """The items of an iterator by index; each index that is asked for is the last one or higher."""

    def __init__(self, items: Iterator[_Item]) -> None:
        self._items = enumerate(items)
        self._last: tuple[int, _Item] | None = None

    def __getitem__(self, number: int) -> _Item:
        while self._last is None or self._last[0] < number:
            self._last = next(self._items)
        return self._last[1]


def item_digests(array: Array, max_memory: int = DEFAULT_MAX_MEMORY) -> Iterator[bytes]:
    """Yield a digest of each item along the slowest axis, in order; items may exceed memory."""
    import hashlib

    length = array.dims[-1]
    nbytes = array.nbytes // length if length else 0
    if nbytes == 0:
        yield from [b""] * length
        return
    state, done = hashlib.sha256(), 0  # bytes of the item that are hashed
    for block in blocks(array, block_bytes(max_memory)):
        piece = block.reshape(-1).view(np.uint8).data
        while piece:
            part = piece[: nbytes - done]
            state.update(part)
            done += len(part)
            piece = piece[len(part) :]
            if done == nbytes:
                yield state.digest()
                state, done = hashlib.sha256(), 0


def _item_names(array: Array) -> list[str]:
    """Return the file names of items from the sidecar, "" for unnamed ones; [] without items."""
    if array.meta.items is None:
        return []
    return [str(item.get("file", "")) for item in array.meta.items()]


def _align(
    digests: list[bytes],
    source_digests: list[bytes],
    paths: list[str],
    names: list[str],
    items: _Items | None,
    result: _Verdict,
) -> None:
    """Pair the items of a file with its sources, in order, if some may be missing or extra.

    If a pair differs, and the numbers of items and sources that are left differ too, the nearest
    equal one within that slack decides: sources before it are extra, items before it are missing.
    """
    i = j = 0
    while i < len(digests) and j < len(source_digests):
        if digests[i] == source_digests[j]:
            differ = items.unexpected(i, j) if items is not None else ""
            result.add(*(("changed", f"{paths[j]}: {differ}") if differ else ("ok", paths[j])))
            i, j = i + 1, j + 1
            continue
        slack = (len(digests) - i) - (len(source_digests) - j)
        gone = _distance_to(source_digests[j], digests, i, slack)
        added = _distance_to(digests[i], source_digests, j, -slack)
        for item in range(i, i + gone):
            result.add("missing", _missing_name(item, i, i + gone, j, paths, names))
        for path in paths[j : j + added]:
            result.add("extra", path)
        if gone or added:
            i, j = i + gone, j + added
        else:
            result.add("changed", paths[j])
            i, j = i + 1, j + 1
    for item in range(i, len(digests)):
        result.add("missing", _missing_name(item, i, len(digests), j, paths, names))
    for path in paths[j:]:
        result.add("extra", path)


def _distance_to(wanted: bytes, digests: list[bytes], start: int, slack: int) -> int:
    """The distance of a digest behind `start`, at most `slack`; 0 if it is not among these."""
    for step in range(1, slack + 1):
        if digests[start + step] == wanted:
            return step
    return 0


def _missing_name(
    item: int, first: int, stop: int, following: int, paths: list[str], names: list[str]
) -> str:
    """Return the name of the missing source of an item, one of a gap from `first` to `stop`.

    It is from the sidecar; else made from the source before the gap, if the numbers of the sources
    on both sides leave just this gap; else it is the index of the item. `following` is the index of
    the source after the gap.
    """
    if item < len(names) and names[item]:
        return names[item]
    if 0 < following < len(paths):
        before = paths[following - 1]
        if _numbered(before, stop - first + 1) == paths[following]:
            return _numbered(before, item - first + 1) or f"item {item}"
    return f"item {item}"


def _numbered(path: str, shift: int) -> str | None:
    """Return a path with the last number of its stem changed by `shift`, in the same width.

    None without such a number, and if it would be negative.
    """
    folder, name = os.path.split(path)
    stem, suffix = os.path.splitext(name)
    text = stem.rstrip("0123456789")
    digits = stem[len(text) :]
    if not digits.isdecimal() or int(digits) + shift < 0:
        return None
    number = f"{int(digits) + shift:0{len(digits)}d}"
    return os.path.join(folder, f"{text}{number}{suffix}")
