"""`read`, `write` and `open`: arrays from and to files, from Python."""

from __future__ import annotations

import os

import numpy as np

from raconvert import registry
from raconvert.arrays.array import Array, values_of
from raconvert.arrays.blocks import as_ndarray
from raconvert.arrays.bundle import Bundle, Group
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.interop.conventions import following
from raconvert.arrays.interop.dask_arrays import Delayed, is_delayed
from raconvert.arrays.interop.from_libraries import array_among, bundle_of, kind_of, refuse_inside
from raconvert.arrays.memory import check_memory, machine_memory
from raconvert.arrays.metadata import Metadata, meta_for, spelled
from raconvert.conversion.combine import open_sources
from raconvert.conversion.inputs import is_pattern
from raconvert.conversion.options import Reading, Settings, Writing, options_of
from raconvert.conversion.outputs import prepare_target, stem_of, target_spec
from raconvert.conversion.reopened import open_here
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import write_bundle
from raconvert.declared import accepts
from raconvert.errors import RaconvertError, TooLarge, Unsupported, UsageError, counted, listed
from raconvert.files.streams import Kept, is_given, shown
from raconvert.plugin import equivalent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack, overload

    from raconvert.declared import Readable

    Sources = Readable | Sequence[str | os.PathLike[str]]

_ANY = 1 << 62  # bytes: as many as the machine has

# Without a name, the type of the result depends on the file, which type checkers cannot know: it is
# `Any`, as for numpy.load. `open_array` and `open_bundle` have a type.
if TYPE_CHECKING:

    @overload
    def open(path: Sources, array: str, **options: Unpack[Reading]) -> Array: ...  # noqa: A001
    @overload
    def open(  # noqa: A001
        path: Sources, array: None = None, **options: Unpack[Reading]
    ) -> Any: ...


@accepts(options_of(Reading))
def open(  # noqa: A001 - the verb that every array library uses
    path: Readable | Sequence[str | os.PathLike[str]],
    array: str | None = None,
    **options: Unpack[Reading],
) -> Array | Bundle:
    """Open a file lazily; nothing but headers is read.

    `path` is a path, ``FILE#name``, a URL, bytes, or a file that is open for bytes (content without
    a path is kept in a temporary file until it is closed); a glob, a folder or a list of paths is
    stacked on a new first axis, as `convert` does: index i is path i of a list, globs and folders
    are sorted naturally (2 before 10).

    Returns an `Array` for formats of one array and for a chosen `array` (or ``FILE#name``), a
    `Bundle` (a mapping of names to arrays) for containers. Both are context managers. An array is
    indexed in logical order: ``x[3]`` and ``x[...]`` read just that; ``numpy.asarray(x)`` maps data
    that is not encoded without copying it, and a map of a file that another program makes shorter
    ends the process, as any map does. With `mmap`, regions are views of such a map as well, and
    what cannot be mapped is refused. Both can be pickled, and used in a process that this one has
    started, however it was: there, the file is opened again.

    The options: `from_` names the format; `in_opts` are options of that format; ``meta="ignore"``
    does not look at sidecars; `index_order` ("C" or "F") is how a bare .ra is indexed;
    ``trust=["external"]`` reads files that a file names outside its own folder; `unscale` gives
    physical values: slope, intercept and fill value of the file are applied, which are gone from
    the metadata then; `max_memory` is the number of bytes that decoding may hold.

    >>> with raconvert.open("grid.ra") as lazy:
    ...     lazy.shape, lazy.dims, lazy[1, 2]
    ((3, 4), (4, 3), array(6, dtype=int32))
    >>> with raconvert.open("two.npz") as bundle:
    ...     bundle.names
    ['a', 'b']

    Raises `ReadFailed`, `UnknownFormat` or `Corrupt` for the file, `UsageError` for a name that is
    not there or matches several arrays, `Unsupported` for what `mmap` cannot map.
    """
    return _open(path, array, options)


@accepts(options_of(Reading))
def open_array(
    path: Readable | Sequence[str | os.PathLike[str]],
    array: str | None = None,
    **options: Unpack[Reading],
) -> Array:
    """Open one array lazily, by `array` or ``FILE#name`` if its file holds several.

    Type checkers know the result, which for `open` depends on the file. `path` and the options are
    those of `open`; `max_memory` is in bytes.

    >>> with raconvert.open_array("two.npz", "b") as lazy:
    ...     lazy.shape
    (2,)

    Raises what `open` does, and `UsageError` for a file that does not hold one array, if none was
    named.
    """
    opened = _open(path, array, options)
    if not isinstance(opened, Bundle):
        return opened
    if len(opened.arrays) == 1:
        return opened.only()
    opened.close()
    raise UsageError(
        f"holds {counted(len(opened.arrays), 'array')}",
        path=shown(path),
        expected="one array",
        remedy=f"name one of them: {listed(opened.names)}" if opened.arrays else None,
    )


@accepts(options_of(Reading))
def open_bundle(
    path: Readable | Sequence[str | os.PathLike[str]],
    **options: Unpack[Reading],
) -> Bundle:
    """Open a file lazily as a `Bundle`, a mapping of names to arrays, also if it holds only one.

    Type checkers know the result, which for `open` depends on the file. `path` and the options are
    those of `open`; `max_memory` is in bytes.

    >>> with raconvert.open_bundle("grid.ra") as bundle:
    ...     bundle.names
    ['grid']

    Raises what `open` does.
    """
    opened = _open(path, None, options)
    bundle: Bundle = opened if isinstance(opened, Bundle) else opened.owner
    return bundle


def _open(
    path: Readable | Sequence[str | os.PathLike[str]],
    array: str | None,
    options: Reading,
) -> Array | Bundle:
    """Open a file as `open` does, whose options have been checked."""
    reading: dict[str, Any] = {**options, "arrays": () if array is None else (array,)}
    mmap = reading.pop("mmap", False)
    if not isinstance(path, (str, os.PathLike)) and is_given(path):
        content = Kept(path)
        try:
            bundle = open_here(content.path, mmap=mmap, reading=reading)
        except BaseException as error:
            if isinstance(error, RaconvertError):
                content.rename(error)
            content.close()
            raise
        bundle.close_with(content.close)
        return _opened(bundle, content.path, array)
    if isinstance(path, (str, os.PathLike)):
        word = os.fspath(path)
        several = is_pattern(word) or (os.path.isdir(word) and not registry.is_one_source(word))
        if several:
            bundle = _stacked([word], reading, mmap=mmap)
        else:
            bundle = open_here(path, mmap=mmap, reading=reading)
    else:
        paths: Any = path
        word, bundle = "", _stacked([os.fspath(part) for part in paths], reading, mmap=mmap)
    return _opened(bundle, word, array)


def _stacked(words: list[str], reading: dict[str, Any], *, mmap: bool) -> Bundle:
    """Open several files as one stack; raises `Unsupported` with `mmap`."""
    if mmap:
        raise Unsupported("several files are not one map", remedy="open each of them with mmap")
    return open_sources(words, **reading)


def _opened(bundle: Bundle, path: str, array: str | None) -> Array | Bundle:
    """Return the one array of a bundle that was opened by `path`, or the bundle of a container.

    Raises `UsageError` if `array` matches several.
    """
    chosen = array is not None or not _is_container(bundle)
    if not chosen and len(bundle.arrays) == 1 and path != bundle.path:
        chosen = True  # FILE#name
    if not chosen:
        return bundle
    if len(bundle.arrays) != 1:
        raise UsageError(
            f"'{array}' matches {counted(len(bundle.arrays), 'array')}",
            path=path,
            remedy=f"name one of them: {listed(bundle.names)}",
        )
    return bundle.only()


def _is_container(bundle: Bundle) -> bool:
    """True if the format of a bundle holds many arrays."""
    return registry.by_name(bundle.format).many


if TYPE_CHECKING:

    @overload
    def read(path: Sources, array: str, **options: Unpack[Reading]) -> np.ndarray[Any, Any]: ...
    @overload
    def read(path: Sources, array: None = None, **options: Unpack[Reading]) -> Any: ...


@accepts(options_of(Reading, max_memory=_ANY))
def read(
    path: Readable | Sequence[str | os.PathLike[str]],
    array: str | None = None,
    **options: Unpack[Reading],
) -> np.ndarray[Any, Any] | dict[str, np.ndarray[Any, Any]]:
    """Read a file into memory: an ndarray, or a dict of them for a container.

    Shape is the logical one: for RA without a sidecar the dims reversed, for column-major sources
    the dims as they stand (the result is Fortran-ordered then, nothing is moved). Little-endian,
    own memory, writeable. With `mmap` nothing is read: what is returned are read-only views of the
    file, in its order of bytes, and what cannot be mapped is refused.

    >>> raconvert.read("grid.ra").sum(axis=0)
    array([12, 15, 18, 21])
    >>> raconvert.read("two.npz", "b")
    array([1., 1.])

    >>> raconvert.read(Path("two.npz").read_bytes(), "b")
    array([1., 1.])

    `path` and the options as in `open`. Raises what `open` does, and `TooLarge` if more bytes are
    needed than `max_memory`, or than the machine has.
    """
    max_memory = options["max_memory"] = min(options.get("max_memory", _ANY), machine_memory())
    try:
        with _open(path, array, options) as opened:
            if options.get("mmap"):
                return _views(opened)
            if not isinstance(opened, Bundle):
                return _in_memory(opened, max_memory)
            total = sum(member.nbytes for member in opened.arrays if member.problem is None)
            check_memory(total, 1 << 62, f"reading all {len(opened)} arrays")
            arrays: dict[str, np.ndarray[Any, Any]] = {}
            for member in opened.arrays:
                if member.name not in arrays:  # the first of two arrays of one name counts
                    arrays[member.name] = _in_memory(member, max_memory)
            return arrays
    except RaconvertError as error:
        if error.path is None or is_given(path):
            error.path = shown(path)
        raise
    except MemoryError as error:
        raise TooLarge("needs more memory than the system gives", path=shown(path)) from error


def _views(opened: Array | Bundle) -> np.ndarray[Any, Any] | dict[str, np.ndarray[Any, Any]]:
    """Return the arrays as views of the file."""
    if isinstance(opened, Array):
        return np.asarray(opened)
    return {name: np.asarray(array) for name, array in opened.items()}


def _in_memory(array: Array, max_memory: int) -> np.ndarray[Any, Any]:
    """Return an array in its logical shape, in memory of its own."""
    values = as_ndarray(array, max_memory)
    return values.T if array.index_order == "F" else values


@accepts(options_of(Writing, sync=False))
def write(
    path: str | os.PathLike[str],
    arrays: Any | Mapping[str, Any],
    *,
    meta: Metadata | str | None = None,
    **options: Unpack[Writing],
) -> Report:
    """Write an ndarray (or an `Array`, a `Bundle`, or a mapping of names to them) to a file.

    The same checks and the same atomic rename as `convert`; `sync` also waits for the disk.
    numpy arrays are written in C order, so that an RA file lists their shape reversed. `meta` is
    metadata, such as that of another array (``array.meta``), whose fields of an axis stay with the
    axis of that number; raises `UsageError` if they do not fit (another rank, labels of another
    length). As a word, such as ``meta="drop"``, it says where metadata goes; this and the other
    options are those of `convert`; `max_memory` is in bytes.

    A dask array, also that of a DataArray or Dataset, is computed block by block while it is
    written, and never held as a whole.

    A DataArray, Dataset, Series, DataFrame or Index keeps its dimensions, coordinates, attributes,
    columns and index (`raconvert.arrays.interop.from_libraries`); each node of a DataTree becomes
    a group. Metadata that the format cannot hold is refused or named in the report.

    >>> report = raconvert.write("new.npz", {"x": np.zeros((2, 3)), "y": np.arange(4)})
    >>> report.target_format, report.nbytes
    ('npz', 80)
    >>> raconvert.write("new.png", np.zeros((2, 3)))
    Traceback (most recent call last):
    ...
    raconvert.errors.WouldLose: 'new.png': png cannot hold this as it is...

    Raises `TargetExists`, `WouldLose` (type, names, metadata with `meta`), `UnknownFormat` for a
    suffix that no format has, `WriteFailed`; the destination is untouched then.
    """
    named = {"sync": False, **options, "meta": meta if isinstance(meta, str) else "auto"}
    settings = Settings(**named)
    metadata = None if isinstance(meta, str) else meta
    word = os.fspath(path)
    if "://" in word:
        from raconvert.conversion.remote import write_to_url

        local = settings.replace(overwrite=False, skip_existing=False, sync=False)
        return write_to_url(word, settings, lambda made: _write(made, arrays, metadata, local))
    return _write(word, arrays, metadata, settings)


def _write(word: str, arrays: Any, meta: Metadata | None, settings: Settings) -> Report:
    """Write arrays, as `write` does, to the local file that a word names."""
    path, name = target_spec(word, settings.to)
    row = registry.target_row(path, settings.to, container=bool(name or settings.name))
    stem = name or stem_of(path)
    changes: list[tuple[str, str]] = []
    if kind_of(arrays):
        bundle = bundle_of(arrays, stem, changes, several=row.many and name is None)
    elif isinstance(arrays, Bundle):  # keeps its attributes, groups and aliases
        bundle = arrays.like([array_of(array) for array in arrays.arrays])
    elif isinstance(arrays, Group):
        bundle = _bundle_of_group(arrays)
    elif hasattr(arrays, "keys") and not isinstance(arrays, Array):
        keys = list(arrays.keys())
        members = [_named_array(arrays[key], key, changes) for key in keys]
        bundle = Bundle(following(members, [("", _name_of(arrays[key], key)) for key in keys]))
    else:
        own_name = arrays.name if isinstance(arrays, Array) else ""
        bundle = Bundle([array_of(arrays, name or own_name or stem)])
    for array in bundle.arrays:
        array.meta = meta_for(array, array.meta if meta is None else meta)
        if array.meta.attributes:
            attributes, spelled_out = spelled(array.meta.attributes)
            if spelled_out:
                array.meta = array.meta.replace(attributes=attributes)
                changes += [(array.name, what) for what in spelled_out]
    changes += _spell_file(bundle)
    report = Report([])
    if not prepare_target(path, row, [], settings, report, name):
        return report
    report.equivalent.add(equivalent(owner, "metadata", what) for owner, what in changes)
    return write_bundle(Conversion(path, row, settings, report, name=name), bundle)


def _spell_file(bundle: Bundle) -> list[tuple[str, str]]:
    """Replace times in the attributes of file and groups by texts; return what was changed.

    No format has attributes of such types.
    """
    changes = []
    own, spelled_out = spelled(bundle.attributes)
    if spelled_out:
        bundle.attributes = own
        changes += [("", what) for what in spelled_out]
    for group, attributes in [*bundle.groups.items()]:
        own, spelled_out = spelled(attributes)
        if spelled_out:
            bundle.groups = {**bundle.groups, group: own}
            changes += [("", f"{group}: {what}") for what in spelled_out]
    return changes


def _bundle_of_group(group: Group) -> Bundle:
    """Return a bundle of a group: its arrays, and attributes, groups and aliases inside it."""
    inside = f"{group.path}/"
    groups, aliases = group.bundle.groups, group.bundle.aliases
    return Bundle(
        [array_of(group[name], name) for name in group.names],
        attributes=group.attributes,
        groups={
            path.removeprefix(inside): attributes
            for path, attributes in groups.items()
            if path.startswith(inside)
        },
        aliases={
            alias.removeprefix(inside): name.removeprefix(inside)
            for alias, name in aliases.items()
            if alias.startswith(inside) and name.startswith(inside)
        },
    )


def _name_of(values: Any, name: str) -> str:
    """Return the name that an object of another library has, else the one that it is given here."""
    own = getattr(values, "name", None)
    return own if isinstance(own, str) and own else name


def _named_array(values: Any, name: str, changes: list[tuple[str, str]]) -> Array:
    """Return one array of a mapping; changes of its metadata are added to `changes`."""
    if not isinstance(name, str):
        raise UsageError("names of arrays are texts", expected="str", got=repr(name)[:100])
    return array_among(values, name, changes) if kind_of(values) else array_of(values, name)


def array_of(values: Any, name: str = "") -> Array:
    """Return an `Array` over an ndarray (or what numpy makes of `values`); nothing is copied.

    The index order is C: the dims are the shape reversed. Raises `UsageError` for masked arrays,
    `Unsupported` for types without a place in RA (Python objects, long doubles).
    """
    if isinstance(values, Array):
        return values.replace(name=name or values.name)
    if is_delayed(values):
        return _delayed(values, name)
    given, values = values, values_of(values)
    refuse_inside(given, values.ndim)
    return Array(
        element_of(values.dtype),
        values.shape[::-1],
        name=name,
        index_order="C",
        data=values,
    )


def _delayed(values: Any, name: str) -> Array:
    """Return an `Array` over a dask array, whose blocks are computed when they are read.

    Raises `UsageError` for one of unknown shape.
    """
    if any(length != length for length in values.shape):  # noqa: PLR0124 - NaN: unknown
        raise UsageError(
            "the dask array does not know its shape", got=values.shape,
            remedy="call its compute_chunk_sizes() before",
        )  # fmt: skip
    source = Delayed(values)
    kind = element_of(source.dtype)
    return Array(kind, source.shape[::-1], name=name, index_order="C", data=source)
