"""Reading: from an HDF5 file to a bundle."""

from __future__ import annotations

from collections import namedtuple
from functools import cache, lru_cache, partial
from math import prod

import numpy as np
from h5py import h5, h5a, h5d, h5o, h5p, h5t

from raconvert.arrays.dtypes import Element, element_of
from raconvert.arrays.interop import conventions
from raconvert.arrays.interop.times import take_times
from raconvert.errors import MissingDependency, RaconvertError, Unsupported
from raconvert.metadata import roundtrip
from raconvert.metadata.reals import doubles
from raconvert.metadata.roundtrip import KEY, take_common, take_record
from raconvert.plugin import Array, Bundle, Extent, Source

from . import anndata, dialects, scales
from .attributes import read_attributes, referred_by
from .chunks import Chunks, is_decoded
from .datatypes import BOOL_NAMES, element_size, fixed_dtype, is_text, kind_of, without_bools
from .descriptions import describe, little_endian, type_of_dtype, type_of_element
from .direct import chunks_of
from .files import (
    DATASET,
    FAILURES,
    GROUP,
    PROBLEMS,
    TYPE,
    File,
    Files,
    end_notes,
    guarded,
    info_of,
    key_of,
)
from .ondisk.chunk_indexes import check_index
from .ondisk.header import attribute_data
from .scales import (
    is_netcdf_file,
    take_provenance,
    without_single_lists,
    without_type_of_missing,
)
from .storage import (
    Storage,
    check_filters,
    check_size,
    declared_bytes,
    declared_space,
    extent_of,
    external_pieces,
    facts_of,
    filter_text,
    space_of,
    storage_of,
    stored_bytes,
    unwritten_bytes,
)
from .strings import fixed_width
from .tables import NAMESPACE, Attributes
from .values import Dataset
from .virtual import Assembled, Resolver, Virtual, check_external_type, stored_of
from .walk import Member, Walk, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits

    from .datatypes import Kind


NOTED_REASONS = 10  # reasons in the error of a file of which all objects are left out
NOTED_ALIASES = 5  # aliases noted one by one; the others are only counted
MAX_NOTES = 100  # notes per file; more would not be read
# State of reading one file.
#   files      `Files`: the file, and those that it names
#   walk       its objects and links
#   notes      of the bundle
#   julia      True for a file of JLD2 or JLD
#   places     name of an array by the key of its dataset
#   scaled     arrays, each with the scales of its axes
#   broken     errors of arrays that cannot be read
#   names      names in the bundle by the paths of objects
#   bools      "integers" reads bools as these
#   resolver   function that makes the `Resolver` of virtual datasets when first called
#   models     `Model` by file and header
#   numbers    `scales.Numbers`: the numbers that netCDF gives to dimensions
#   netcdf     True for a file of netCDF-4
#   pointing   by the path of a dataset, the key of the object to which its attribute
#              ``categories`` refers, as AnnData 0.7 has it
Context = namedtuple(
    "Context",
    "files walk notes julia places scaled broken names bools resolver models numbers netcdf "
    "pointing",
)
# Facts that datasets with the same header share; `facts`: the storage in plain values.
Model = namedtuple("Model", "element dims kind shape storage facts swap")


def read_file(source: Source, bools: str = "auto", *, labels: bool = False) -> Bundle:
    """The datasets of a file as lazy arrays; files stay open until the bundle is closed."""
    files = Files(source)
    try:
        with guarded(source.path):
            return _bundle(source, files, bools, labels)
    except BaseException:
        files.close()
        raise


def _bundle(source: Source, files: Files, bools: str, labels: bool) -> Bundle:
    walk = Walk(files)
    is_julia = files.main.userblock > 0 and dialects.is_julia(files.main)
    resolver = cache(partial(Resolver, files, walk))
    notes = end_notes(files.main)
    numbers, is_netcdf = scales.Numbers(), is_netcdf_file(files.main)
    context = Context(
        files, walk, notes, is_julia, {}, [], [], {}, bools, resolver, {}, numbers, is_netcdf, {}
    )
    bundle = Bundle([], notes=context.notes, closers=[files.close])
    space: dict[str, Any] = {}
    left_out = list(walk.left_out)
    for member in walk.members:
        if context.julia and member.path.split("/")[0] == dialects.TYPES:
            continue
        try:
            _take(member, bundle, space, context)
        except RaconvertError as error:
            left_out.append((member.path, error))
    for path, problem in left_out:
        if not isinstance(problem, Unsupported):
            bundle.arrays.append(Array.unreadable(path or "/", problem))
            context.broken.append(problem)
    _finish(bundle, space, context, labels=labels)
    _name_aliases(bundle, context)
    noted = [pair for pair in left_out if isinstance(pair[1], Unsupported)]
    context.notes.extend(_left_out(noted))
    but = " (only the link itself goes along, to HDF5)"
    context.notes.extend(_left_out(walk.dangling, but))
    _cap(context.notes)
    left_out += walk.dangling
    if not bundle.arrays or len(context.broken) == len(bundle.arrays):
        _refuse(source, context.broken, left_out, bool(bundle.arrays))
    return bundle


def _cap(notes: list[str]) -> None:
    """Cut a list of notes to the first ones and the number of the others."""
    if len(notes) > MAX_NOTES:
        more = len(notes) - MAX_NOTES
        notes[MAX_NOTES:] = [f"{more} more notes on objects and attributes of this file"]


def _left_out(problems: list[tuple[str, RaconvertError]], but: str = "") -> list[str]:
    """Make a note for each object that was left out; `but` is added to its reason."""
    return [f"'{path}' was left out: {_why(problem)}{but}" for path, problem in problems]


def _why(error: RaconvertError) -> str:
    return error.what + (f" ({error.got})" if error.got is not None else "")


def _refuse(
    source: Source,
    broken: list[RaconvertError],
    left_out: list[tuple[str, RaconvertError]],
    arrays: bool,
) -> None:
    """Raise the error of a file without a readable array: the first one, or one of all objects.

    Returns if `arrays` lack nothing but the library that decodes them.
    """
    errors = broken + [problem for _, problem in left_out]
    if arrays and any(isinstance(error, MissingDependency) for error in errors):
        return  # shapes and attributes are all there, only the data is not
    all_unsupported = all(isinstance(error, Unsupported) for error in errors)
    if len(errors) > 1 and all_unsupported and not broken:
        reasons = [f"'{path}': {_why(problem)}" for path, problem in left_out[:NOTED_REASONS]]
        more = [f"{len(left_out) - NOTED_REASONS} more"] * (len(left_out) > NOTED_REASONS)
        raise Unsupported(
            "holds no array that can be read",
            path=source.path,
            got="; ".join(reasons + more),
            remedy=errors[0].remedy,
        )
    if errors:
        raise errors[0]
    raise Unsupported("holds no array", path=source.path, expected="a dataset that is not empty")


# --- objects --------------------------------------------------------------------------------------


def _take(member: Member, bundle: Bundle, space: dict[str, Any], context: Context) -> None:
    """Add one object of the file to the bundle."""
    with guarded(member.file.path, f"object '/{member.path}'"):
        if member.kind == GROUP:
            _take_group(member, bundle, space, context)
        elif member.kind == TYPE:
            context.notes.append(f"'{member.path}' is a named datatype and was left out")
        elif member.kind == DATASET:
            array = _array_like(member, context)
            if array is None:
                _take_dataset(member, bundle, space, context)
                return
            context.names[member.path] = context.places[member.key] = member.path
            bundle.arrays.append(array)


def _names_of(oid: Any, plist: Any = None) -> list[bytes]:
    """The names of the attributes of an object, by creation where that is tracked, else sorted.

    (The names are listed, since the library counts none for objects of JLD2.)
    """
    names: list[bytes] = []
    if plist is None and hasattr(oid, "get_create_plist"):
        plist = oid.get_create_plist()
    tracked = plist is not None and plist.get_attr_creation_order() & h5p.CRT_ORDER_TRACKED
    index = h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME
    h5a.iterate(oid, names.append, index_type=index)
    return names


def _attributes(
    oid: Any,
    names: list[bytes],
    member: Member,
    context: Context,
    skip: frozenset[str] = frozenset(),
) -> tuple[Attributes, dict[str, Any]]:
    """The attributes of an object, and our record among them; a note for each one left out."""
    if not names:
        return Attributes({}, {}, []), {}
    attributes = read_attributes(oid, member.file, names, skip)
    if context.netcdf:
        without_single_lists(attributes)
    for name, reason in attributes.problems:
        if name == anndata.CATEGORIES and (key := referred_by(oid, member.file, name)) is not None:
            context.pointing[member.path] = key
            continue
        context.notes.append(f"attribute '{name}' of '/{member.path}' was left out: {reason}")
    record = take_record(attributes.values, member.file.path, member.file.source.limits)
    if record:
        attributes.types.pop(KEY, None)
    return attributes, record


def _take_group(member: Member, bundle: Bundle, space: dict[str, Any], context: Context) -> None:
    oid = h5o.open(member.file.fid, member.hard)
    attributes, record = _attributes(oid, _names_of(oid), member, context)
    if not member.path:
        if context.netcdf:
            space.update(take_provenance(attributes))
        bundle.attributes = attributes.values
        if record:
            roundtrip.apply_to_file(record, bundle, member.file.path)
        if attributes.types:
            space["attributes"] = attributes.types
        space["order"] = record.get("order")
        return
    context.names[member.path] = member.path
    bundle.groups[member.path] = {**attributes.values, **record.get("attributes", {})}
    if attributes.types:
        space.setdefault("groups", {})[member.path] = attributes.types


def _finish(bundle: Bundle, space: dict[str, Any], context: Context, *, labels: bool) -> None:
    """Set groups, links, order and scales of the bundle, when all objects are read."""
    names = set(bundle.names)
    bundle.groups = bundle.explicit_groups()
    links = [[link.path, link.kind, link.target] for link in context.walk.links]
    if links:
        space["links"], space["arrays"] = links, len(names)
    order = space.pop("order", None)
    if isinstance(order, list) and sorted(map(str, order)) == sorted(names):
        position = {name: index for index, name in enumerate(order)}
        bundle.arrays.sort(key=lambda array: position[array.name])
    context.numbers.apply()
    limits = context.walk.limits
    if context.scaled:
        made = context.numbers.made
        facts = partial(_facts_of_made, context)
        scales.apply(context.scaled, context.places, bundle.arrays, made, facts, limits)
    scales.settle(bundle.arrays, space, limits, netcdf=context.netcdf)
    _point(bundle, context)
    if bundle.groups or any(array.described for array in bundle.arrays):
        anndata.describe(bundle, NAMESPACE, limits, labels=labels)
    if space:
        bundle.formats[NAMESPACE] = space


def _take_made(
    member: Member, key: Any, of: Any, scale: str | None, units: Any, context: Context
) -> None:
    """Record a scale that this plugin made from an axis of the array `of`, for its array's axes."""
    last = member.path.rpartition("/")[2]
    context.numbers.made[key] = scales.axis_name_of(last, of)
    if scale is not None and not scale.startswith(scales.NO_VARIABLE):
        context.numbers.places[key] = member, units if isinstance(units, str) else None


def _facts_of_made(context: Context, key: Any, length: int) -> dict[str, Any]:
    """Read the facts of an axis from the scale made from it; only the units if it is unreadable."""
    if key not in context.numbers.places:  # the scale has no values
        return {}
    member, units = context.numbers.places[key]
    known_facts: dict[str, Any] = {"units": units} if units else {}
    try:
        dataset = h5d.open(member.file.fid, member.hard)
        plist, tid = dataset.get_create_plist(), dataset.get_type()
        shape, virtual, problem = _shape(member, dataset, plist, context)
        if shape != (length,):
            return known_facts
        array = _array(member, dataset, plist, tid, shape, virtual, problem, context)
        return {**known_facts, **conventions.facts_of(array, context.walk.limits)}
    except PROBLEMS:
        return known_facts


def _point(bundle: Bundle, context: Context) -> None:
    """Replace the references of datasets of AnnData 0.7 to their categories by paths."""
    by_name = {array.name: array for array in bundle.arrays} if context.pointing else {}
    for path, key in context.pointing.items():
        array, target = by_name.get(context.names.get(path, path)), context.places.get(key)
        what = f"attribute '{anndata.CATEGORIES}' of '/{path}'"
        if array is None or target is None:
            context.notes.append(f"{what} was left out: it refers to no array of the file")
            continue
        group = path.rpartition("/")[0] + "/"
        to = target.removeprefix(group) if target.startswith(group) else f"/{target}"
        context.notes.append(f"{what} refers to an array, and is read as its path: {to}")
        attributes = {**array.meta.attributes, anndata.CATEGORIES: to}
        array.meta = array.meta.replace(attributes=attributes)


def _name_aliases(bundle: Bundle, context: Context) -> None:
    """Set the further names of arrays and groups in the bundle, with notes of the first ones."""
    inner = (dialects.TYPES,) if context.julia else ()
    for path, target in context.walk.aliases.items():
        if target.split("/")[0] not in inner:
            bundle.aliases[path] = context.names.get(target, target)
    pairs = list(bundle.aliases.items())
    more = len(pairs) - NOTED_ALIASES if len(pairs) > NOTED_ALIASES + 1 else 0
    for path, target in pairs[: len(pairs) - more]:
        context.notes.append(f"'{path}' is another name of '{target or '/'}'")
    if more:
        context.notes.append(f"{more} more links are other names of objects of this file")


# --- datasets -------------------------------------------------------------------------------------


def _take_dataset(member: Member, bundle: Bundle, space: dict[str, Any], context: Context) -> None:
    try:
        dataset = h5d.open(member.file.fid, member.hard)
    except FAILURES:
        address = info_of(member.file.fid, member.hard).address
        packed = dialects.packed_of(member.file, address) if context.julia else None
        if packed is None:
            raise
        bundle.arrays.append(_packed_array(member, address, packed, context))
        return
    plist = dataset.get_create_plist()
    names = _names_of(dataset, plist)
    is_scale = bool(names) and scales.is_scale(dataset, member.file)
    scale = scales.scale_name(dataset, member.file) if is_scale else None
    skip = scales.ALWAYS | scales.ON_SCALES if is_scale else scales.ALWAYS
    attributes, record = _attributes(dataset, names, member, context, skip)
    if record.get("axis_of"):  # made by this plugin from an axis, whose array has its other facts
        units = attributes.values.get("units")
        _take_made(member, key_of(dataset), record["axis_of"], scale, units, context)
        return
    shape, virtual, problem = _shape(member, dataset, plist, context)
    if context.julia and shape is not None:
        shape = dialects.take_shape(shape, attributes)
    tid = dataset.get_type()
    if shape is None:
        empty = {"type": describe(tid, member.file.source.limits)}
        if attributes.values:
            empty.update(attributes=attributes.values, types=attributes.types)
        space.setdefault("empty", {})[member.path] = empty
        context.notes.append(f"'{member.path}' is empty (a null space), which is not an array")
        return
    if scale is not None and scale.startswith(scales.NO_VARIABLE):
        context.numbers.add(dataset, member)
        context.places[key_of(dataset)] = member.path
        space.setdefault("dimensions", {})[member.path] = {
            "type": describe(tid, member.file.source.limits),
            "length": prod(shape),
            "name": scale,
            "attributes": attributes.values,
            "types": attributes.types,
        }
        return
    array = _array(member, dataset, plist, tid, shape, virtual, problem, context)
    array = _described(array, attributes, record, member, context)
    context.names[member.path] = array.name
    context.places[key_of(dataset)] = array.name
    if scale is not None:
        array.meta = array.meta.with_format(NAMESPACE, scale=scale)
        context.numbers.add(dataset, member, array)
    if names and (attached := scales.attached_to(dataset, member.file)):
        context.scaled.append((array, attached))
    _remember(member, array, context, alone=not (names or context.julia))
    bundle.arrays.append(array)


def _remember(member: Member, array: Array, context: Context, *, alone: bool) -> None:
    """Cache the facts of a dataset for others with the same header, if the header decides them.

    `alone`: neither attributes nor the dialect of Julia add to them.
    """
    facts, extent, source = member.facts, array.extent, array.source
    if not alone or facts is None or extent is None or array.described or array.problem:
        return
    if not isinstance(source, partial) or source.func is not _contiguous:
        return
    _, kind, shape, storage, _, _ = source.args
    offset = facts.address + member.file.userblock
    stored = extent.path, extent.offset, storage.offset, extent.nbytes
    if kind.note or stored != (member.file.path, offset, offset, facts.nbytes):
        return
    model = Model(array.element, array.dims, kind, shape, storage, array.storage, extent.swap)
    context.models[member.file, facts.header] = model


def _array_like(member: Member, context: Context) -> Array | None:
    """The array of a dataset whose header is equal to a cached one; else None."""
    facts, file = member.facts, member.file
    model = facts and context.models.get((file, facts.header))
    if model is None:
        return None
    offset, nbytes = facts.address + file.userblock, facts.nbytes
    if facts.address + nbytes > file.end or offset + nbytes > file.source.size:
        return None  # outside the file, or without an address: to be reported as usual
    storage = model.storage._replace(offset=offset)
    source = partial(_contiguous, member, model.kind, model.shape, storage, model.element, nbytes)
    return Array(
        model.element,
        model.dims,
        name=member.path,
        index_order="C",
        extent=file.source.extent(offset, nbytes, model.swap),
        data=source,
        storage=dict(model.facts),
    )


def _shape(
    member: Member, dataset: h5d.DatasetID, plist: h5p.PropDCID, context: Context
) -> tuple[tuple[int, ...] | None, Virtual | None, RaconvertError | None]:
    """The shape of a dataset, its sources if it is virtual, and its error if it cannot be read."""
    if plist.get_layout() != h5d.VIRTUAL:
        return space_of(dataset), None, None
    try:
        with guarded(member.file.path, f"dataset '/{member.path}'"):
            virtual = context.resolver().virtual(dataset, member.file)
            return virtual.shape, virtual, None
    except RaconvertError as error:
        return declared_space(plist), None, error


def _array(
    member: Member,
    dataset: h5d.DatasetID,
    plist: h5p.PropDCID,
    tid: h5t.TypeID,
    shape: tuple[int, ...],
    virtual: Virtual | None,
    problem: RaconvertError | None,
    context: Context,
) -> Array:
    """The array of a dataset; with an error as its `problem` if it must not be read."""
    file = member.file
    kind = _kind(tid, file, info_of(dataset).address, context)
    if plist.get_layout() == h5d.CHUNKED:
        check_index(dataset, file)
    storage = storage_of(dataset, plist, file.userblock)
    item = stored_bytes(tid, file.source.limits)
    if virtual is not None:
        storage = stored_of(storage, virtual, item)
    nbytes = declared_bytes(shape, item)
    pieces: list[Extent] = []
    try:
        with guarded(file.path, f"dataset '/{member.path}'"):
            if storage.pieces:
                pieces = external_pieces(storage, nbytes, file)
                check_external_type(kind)
            check_filters(storage, file.path)
            check_size(storage, nbytes, max(item, element_size(kind)), file)
    except RaconvertError as error:
        problem = problem or error
    if problem is not None:
        context.broken.append(problem)
    if kind.note:
        context.notes.append(f"'{member.path}': {kind.note}")
    element = kind.element
    if element is None:
        element = element_of(fixed_dtype(kind.buffer, {}))
        if problem is None and prod(shape + kind.dims):
            values = _values(member, kind, shape, storage, element, virtual, [], tid)
            element = fixed_width(values, dataset, plist, storage, virtual and virtual.longest)
    extent = None if problem else extent_of(kind, element, storage, pieces, nbytes, file)
    if extent is not None and not pieces:  # usually, only the extent is used
        source = partial(_contiguous, member, kind, shape, storage, element, nbytes)
    else:
        values = _values(member, kind, shape, storage, element, virtual, pieces, tid)
        values.chunks = chunks_of(values, dataset, plist, storage)
        values.stored, values.offset = storage.stored, storage.offset
        values.unwritten = unwritten_bytes(storage, nbytes, file)
        source = partial(_itself, values)
    array = Array(
        element,
        (shape + kind.dims)[::-1],
        name=member.path,
        index_order="F" if context.julia else "C",
        extent=extent,
        data=source,
        storage=facts_of(storage, dataset, plist),
    )
    array.problem = problem
    _fill_value(array, plist, kind)
    _keep_type(array, tid, kind, file.source.limits)
    return array


def _values(
    member: Member,
    kind: Kind,
    shape: tuple[int, ...],
    storage: Storage,
    element: Element,
    virtual: Virtual | None,
    pieces: list[Extent],
    tid: h5t.TypeID,
) -> Dataset:
    """The source of the elements of a dataset."""
    if virtual is not None:
        return Assembled(member.file, member.hard, kind, shape, element, virtual, tid)
    if pieces:
        return Assembled(member.file, member.hard, kind, shape, element, pieces, tid)
    chunk = storage.chunk if shape else None
    return Dataset(member.file, member.hard, kind, shape, chunk, element)


def _contiguous(
    member: Member,
    kind: Kind,
    shape: tuple[int, ...],
    storage: Storage,
    element: Element,
    nbytes: int,
) -> Dataset:
    """The source of elements that have an extent, too."""
    values = Dataset(member.file, member.hard, kind, shape, None, element)
    values.stored = storage.stored
    values.unwritten = unwritten_bytes(storage, nbytes, member.file)
    return values


def _kind(tid: h5t.TypeID, file: File, address: int, context: Context) -> Kind:
    """Return the way to read the elements of an object."""
    if context.julia and dialects.is_opaque_bool(tid, file, address):
        tid = h5t.STD_B8LE
    if context.bools == "integers":
        return without_bools(kind_of(tid, file.source.limits))
    return kind_of(tid, file.source.limits, bits_are_bools=context.julia)


def _packed_array(member: Member, address: int, packed: dialects.Packed, context: Context) -> Array:
    """The array of a compressed dataset that the library does not open."""
    file = member.file
    kind = _kind(packed.tid, file, address, context)
    numbers = tuple(number for number, _ in packed.filters)
    if kind.element is None or kind.memory is not None or not is_decoded(numbers):
        filters = ", ".join(filter_text(*pair) for pair in packed.filters)
        raise Unsupported(
            f"is compressed ({filters}) in a form of JLD2 that HDF5 2.0 does not open",
            remedy="save it again without compression",
        )
    chunk, unit = packed.shape, element_size(kind)
    storage = Storage("chunked", packed.stored, chunk, packed.filters, None, ())
    nbytes = declared_bytes(chunk, unit)
    problem: RaconvertError | None = None
    try:
        with guarded(file.path, f"dataset '/{member.path}'"):
            check_size(storage, nbytes, unit, file)
    except RaconvertError as error:
        problem = error
        context.broken.append(problem)
    values = Dataset(file, member.hard, kind, packed.shape, chunk, kind.element)
    size = file.source.size
    values.chunks = Chunks(file.source, size, packed.shape, chunk, unit, numbers, bytes(unit))
    values.chunks.set_single(packed.offset, packed.stored, packed.mask)
    array = Array(
        kind.element,
        (packed.shape + kind.dims)[::-1],
        name=member.path,
        index_order="F",
        data=partial(_itself, values),
        storage={
            "layout": storage.layout,
            "stored_bytes": storage.stored,
            "chunks": list(chunk),
            "filters": [filter_text(*pair) for pair in packed.filters],
        },
    )
    array.problem = problem
    _keep_type(array, packed.tid, kind, file.source.limits)
    for name in attribute_data(file, address):
        if name != dialects.DIMENSIONS.encode():
            where = f"attribute '{shown(name)}' of '/{member.path}'"
            context.notes.append(f"{where} was left out: HDF5 2.0 does not open the dataset")
    context.names[member.path] = member.path
    return array


def _itself(values: Dataset) -> Dataset:
    return values


def _fill_value(array: Array, plist: h5p.PropDCID, kind: Kind) -> None:
    """Store the fill value of numbers in the metadata, if one was set."""
    if plist.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return
    if kind.buffer.kind in "iuf" and kind.element.kind in ("int", "uint", "float"):
        value = np.zeros((), kind.buffer)
        plist.get_fill_value(value)
        number = doubles(value).item() if value.dtype.kind == "f" else value.item()
        array.storage["fillvalue"] = number
        array.meta = array.meta.with_format(NAMESPACE, fillvalue=number)


def _keep_type(array: Array, tid: h5t.TypeID, kind: Kind, limits: Limits) -> None:
    """Store the HDF5 type in the metadata if the element alone would be written in another one."""
    if tid.get_class() == h5t.ENUM and kind.memory is not None:
        array.meta = array.meta.with_format(NAMESPACE, type=describe(tid, limits))
    if kind.memory is not None and (kind.element is not None or kind.buffer.names):
        return  # converted: written as NumPy's type
    if array.element.kind == "bool" and tid.get_class() in (h5t.BITFIELD, h5t.OPAQUE):
        return  # bools as only Julia writes them
    while kind.element is None and tid.get_class() == h5t.ARRAY:
        tid = tid.get_super()  # an array type of strings; its axes are ordinary ones
    has_no_descr = array.element.descr is None
    usual = _usual_type(array.element) if has_no_descr else type_of_element(array.element)
    if array.element == element_of(np.dtype("i1")) and tid == type_of_dtype(np.dtype("?")):
        description = {"class": "enum", "base": "|i1", "names": BOOL_NAMES}
        array.meta = array.meta.with_format(NAMESPACE, type=description)
    elif kind.element is None or kind.dims or usual != tid:
        description = describe(tid, limits)
        if array.element.kind != "user":
            description = little_endian(description)
        if not isinstance(description, str):
            is_utf8 = description.get("charset") == "utf-8" and array.element.kind == "user"
            meta = array.meta.with_format(NAMESPACE, type=description)
            array.meta = meta.replace(encoding="utf-8" if is_utf8 else None)


_usual_type = lru_cache(64)(type_of_element)  # cached, since it is only compared


# --- metadata -------------------------------------------------------------------------------------


def _described(
    array: Array,
    attributes: Attributes,
    record: dict[str, Any],
    member: Member,
    context: Context,
) -> Array:
    """Return an array with its attributes as metadata: common fields, the others, their types."""
    own = {}
    if context.netcdf:
        without_type_of_missing(attributes, array.element)
    values = attributes.values
    common: dict[str, Any] = {}
    if values:
        take_times(values, attributes.types, record)
        common = take_common(values)
    if attributes.types:
        own["attributes"] = attributes.types
    if own or values or common:
        array.meta = array.meta.with_format(NAMESPACE, **own).replace(attributes=values, **common)
    if record:
        array = roundtrip.apply(record, array, member.file.path, member.file.source.limits)
    if is_text(array.element):  # in the file it is UTF-8 bytes, a type that the array has not
        meta = array.meta.without_format(NAMESPACE, "type")
        array.meta = meta.replace(encoding=record.get("encoding"))
    if array.meta.formats.get(NAMESPACE) == {}:
        array.meta = array.meta.without_format(NAMESPACE)
    return array
