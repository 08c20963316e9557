"""Adding or replacing arrays: a new file, in which all other variables are as they were.

The header grows, so that all data moves; the bytes of names, attributes and elements stay. The file
keeps its version unless a new array needs a larger one. The new array shares a dimension of the
name of its axis, if that has the same length and a coordinate that says the same (or if the axis
says nothing); along the unlimited dimension it lies in the records.
"""

from __future__ import annotations

from raconvert.arrays.reinterpret import big_endian
from raconvert.errors import Unsupported, UsageError
from raconvert.plugin import Plan, array_exists, not_an_array

from .header import beyond, laid_out, laid_out_if, read_header, smallest
from .metadata import Draft
from .plan import check_version, fits_of, version_fits
from .reader import array_of, is_coordinate, parts_of, read_variables, records_of
from .structure import Existing, Free, Structure, key_of, stored
from .writer import write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.plugin import Array, Bundle, Source, Target

    from .header import Header, Variable
    from .reader import ReadVariable


def add(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool, version: str = "auto",
    unlimited: str = "auto",
) -> Plan:  # fmt: skip
    """Plan a file with the arrays in it, all other variables as they are; see `Add`."""
    check_version(version)
    header = read_header(source, [])
    variables = read_variables(source, header, [])
    names = {read.array.name: read for read in variables if not read.axis_of}
    for name in bundle.names:
        _check_name(name, names, variables, held, source.path, overwrite=overwrite)
    replaced = {names[name].variable.name for name in bundle.names if name in names}
    kept, lengths = _kept(header, variables, replaced)
    _check_whole(kept, source.path)
    growing = _growing(header, lengths, unlimited, source.path)
    if growing is not None:
        lengths[growing] = records_of(source, header, [])
    taken = [read.variable.name for read in kept]
    keys = _keys(bundle.names, names, taken)
    scales = {read.variable.name: read.array for read in kept if is_coordinate(read)}
    structure = Structure(bundle, keys, Existing(lengths, scales, taken, growing, source.limits))
    draft = Draft(bundle, structure, "5" if header.version == 5 else version)

    def whole(*, with_axes: bool) -> Header:
        """Return the header of the new file; for ``auto`` never of an older version than before."""
        variables = [read.variable for read in kept]
        made = _joined(header, variables, draft.header(with_axes=with_axes))
        if version == "auto":
            fitting = smallest(made)
            older = laid_out_if(made._replace(version=header.version))
            return fitting if fitting.version > header.version else older
        return laid_out_if(made._replace(version=int(version)))

    made = whole(with_axes=False)
    fits = [*structure.fits, *fits_of(bundle, keys, draft.hidden)]
    fits += version_fits(made, str(made.version), keys, bundle.names)
    notes = []
    if made.version != header.version:
        notes.append(f"the file was CDF-{header.version}, and becomes CDF-{made.version}")

    def write(target: Target) -> None:
        parts = {part.variable.name: part for part in parts_of(source, header, [])}
        record = header.record_bytes()
        arrays: list[Array] = [
            big_endian(array_of(source, parts[read.variable.name], record, 0)) for read in kept
        ]
        arrays += [stored(form, target.path) for form in structure.forms]
        done = laid_out(whole(with_axes=True))
        for _, reason in beyond(done):
            raise Unsupported(
                f"CDF-{done.version} has {reason}", path=target.path,
                remedy="write another version with `--out-opt version=5`; nothing was written",
            )  # fmt: skip
        write_file(done, arrays, target)

    return Plan(fits, write, names=bundle.names, notes=notes)


def _check_name(
    name: str, names: dict[str, ReadVariable], variables: list[ReadVariable], held: Bundle,
    path: str, *, overwrite: bool,
) -> None:  # fmt: skip
    """Refuse (`TargetExists`) a name that is taken, unless its array is to be replaced."""
    if name not in names:
        if any(read.axis_of and read.variable.name == name for read in variables):
            raise not_an_array(path, name, "a coordinate made from an axis")
        return
    if name in held.names and not overwrite:
        raise array_exists(path, name)
    own = names[name]
    if is_coordinate(own) and any(
        own.variable.name in read.dims for read in variables if read is not own
    ):
        raise not_an_array(path, name, "a coordinate, along which other arrays lie,")


def _check_whole(kept: list[ReadVariable], path: str) -> None:
    """Refuse a file with a variable that is cut off: it cannot be copied as it is."""
    for read in kept:
        if read.array.problem is not None and "cut off" in read.array.problem.what:
            raise Unsupported(
                f"data of '{read.variable.name}' is cut off, and cannot be copied as it is",
                path=path, remedy="convert what can be read to a new file first",
            )  # fmt: skip


def _growing(header: Header, lengths: dict[str, int], asked: str, path: str) -> str | None:
    """Return the dimension of the records, or None; `UsageError` if another one is asked for."""
    unlimited = [dim.name for dim in header.dims if dim.length is None and dim.name in lengths]
    growing = unlimited[0] if unlimited else None
    if asked not in ("auto", growing):
        raise UsageError(
            f"option unlimited={asked} is about a new file", path=path,
            expected=f"auto, or {growing}" if growing else "auto",
        )  # fmt: skip
    return growing


def _kept(
    header: Header, variables: list[ReadVariable], replaced: set[str]
) -> tuple[list[ReadVariable], dict[str, int]]:
    """Return the variables that stay, and the lengths of the dimensions that do.

    A coordinate that was made from an axis goes where no other variable has its dimension.
    """
    gone = [read for read in variables if read.variable.name in replaced]
    kept = [read for read in variables if read.variable.name not in replaced]
    of_arrays = {number for read in kept if not read.axis_of for number in read.variable.dims}
    lost = {number for read in gone for number in read.variable.dims} - of_arrays
    orphans = [read for read in kept if read.axis_of and lost.issuperset(read.variable.dims[:1])]
    kept = [read for read in kept if read not in orphans]
    used = {number for read in kept for number in read.variable.dims}
    lost |= {number for read in orphans for number in read.variable.dims}
    lengths = {
        dim.name: dim.length or 0
        for number, dim in enumerate(header.dims)
        if number in used or number not in lost
    }
    return kept, lengths


def _keys(names: Sequence[str], read: dict[str, ReadVariable], taken: Sequence[str]) -> list[str]:
    """Return the variable of each array: that of the array it replaces, else a free name."""
    replaced = {name: read[name].variable.name for name in names if name in read}
    free = Free([*taken, *replaced.values()])
    return [replaced[name] if name in replaced else free.take(key_of(name)) for name in names]


def _joined(header: Header, kept: list[Variable], new: Header) -> Header:
    """Return the header of a file with the variables that stay and new ones, not laid out."""
    before = {dim.name: dim for dim in header.dims}
    dims = [
        before[dim.name]._replace(length=dim.length) if dim.name in before else dim
        for dim in new.dims
    ]
    numbers = {dim.name: number for number, dim in enumerate(dims)}
    variables = [
        variable._replace(
            dims=tuple(numbers[header.dims[number].name] for number in variable.dims), begin=0
        )
        for variable in kept
    ]
    return new._replace(
        dims=dims, attributes=header.attributes, variables=[*variables, *new.variables]
    )
