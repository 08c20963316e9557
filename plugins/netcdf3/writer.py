"""Writing: the header, the variables of fixed size, then the records."""

from __future__ import annotations

from raconvert.arrays.blocks import Feed, block_bytes, blocks
from raconvert.errors import Corrupt, WouldLose
from raconvert.files.copy import copy_extent_to, reserve, write_all
from raconvert.files.limits import DEFAULT
from raconvert.files.paths import write_failed
from raconvert.metadata import roundtrip
from raconvert.metadata.attributes import common_names, divided
from raconvert.plugin import Axis

from .header import Dimension, Header, Variable, beyond, encoded, laid_out, padded, smallest
from .metadata import Writing, most_of, record_attribute, without_types
from .structure import Coordinates, read_element, stored
from .tables import CHAR, FILLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Bundle, Target

    from .header import Attribute
    from .structure import Form, Structure


class Draft:
    """A file to be written: variables with their attributes, and the version that is asked for.

    `unheld` has the names of attributes that only raconvert reads, by array; `unheld_of_file` those
    of the file.
    """

    def __init__(self, bundle: Bundle, structure: Structure, version: str) -> None:
        self.bundle = bundle
        self.structure = structure
        self.version = version
        most = most_of(version, [form.type for form in structure.forms])
        self._writing = Writing(most, large=version in ("auto", "5"))
        self._known: Coordinates | None = None
        self.unheld: dict[str, list[str]] = {}
        self._attributes = {form.key: self._divided(form) for form in structure.forms}
        self.unheld_of_file: list[str] = []
        self._of_file = self._whole()

    # the header

    def header(self, *, with_axes: bool) -> Header:
        """Return the header, not laid out; `with_axes`: with the axes that only a record keeps.

        For them the values of coordinates are read.
        """
        structure = self.structure
        names = {name: number for number, name in enumerate(structure.lengths)}
        dims = [
            Dimension(name, None if name == structure.unlimited else length, name.encode())
            for name, length in structure.lengths.items()
        ]
        variables = [
            Variable(
                form.key, tuple(names[name] for name in form.dims),
                self._attributes_of(form, with_axes=with_axes), form.type, 0, form.key.encode(),
            )
            for form in structure.forms
        ]  # fmt: skip
        records = structure.lengths[structure.unlimited] if structure.unlimited else 0
        return Header(1, records, dims, self._of_file, variables, 0)

    def sized(self, header: Header, path: str) -> Header:
        """Return a header laid out in the version that is asked for.

        Raises `WouldLose` if that has no room after all: the axes in records count, too.
        """
        if self.version == "auto":
            return smallest(header)
        made = laid_out(header._replace(version=int(self.version)))
        for key, reason in beyond(made):
            raise WouldLose(
                f"CDF-{self.version} has {reason}, which '{key}' needs", path=path,
                remedy="write another version with `--out-opt version=5`; nothing was written",
            )  # fmt: skip
        return made

    # attributes

    def _divided(self, form: Form) -> tuple[list[Attribute], dict[str, Any]]:
        """Return the attributes of a variable, and the record of what they do not hold."""
        if form.axis_of:
            values: dict[str, Any] = dict(form.said)
            units = form.array.meta.units
            values |= {"units": units} if units else {}
            return self._written(form, values)[0], {"axis_of": form.axis_of}
        array = form.array
        fields = roundtrip.record_of(array)
        common = common_names(fields)
        own, rest = divided(fields, common, frozenset(form.said))
        attributes, left = self._written(form, {**form.said, **own})
        record: dict[str, Any] = {
            field: fields[field] for name, field in common.items() if name in left
        }
        hidden = {name: value for name, value in left.items() if name not in common}
        rest = {**rest, **hidden}
        seen = {one.name for one in attributes}
        self.unheld[array.name] = [name for name in rest if name not in seen]
        formats = without_types(fields.get("formats", {}), attributes, form.type)
        record |= {"attributes": rest} if rest else {}
        record |= {"formats": formats} if formats else {}
        record |= {"space": fields["space"]} if "space" in fields else {}
        if fields.get("encoding") and not form.said:
            record["encoding"] = fields["encoding"]
        was = self._was(form)
        return attributes, {**record, **({"was": was} if was else {})}

    def _written(
        self, form: Form, values: dict[str, Any]
    ) -> tuple[list[Attribute], dict[str, Any]]:
        """Return attributes, and the values that are not read back as they are."""
        attributes, left = [], {}
        for name, value in values.items():
            made, same = self._writing.attribute(name, value, form.array.meta, form.type)
            attributes += [made] if made is not None else []
            left.update({} if same else {name: value})
        return attributes, left

    def _was(self, form: Form) -> dict[str, Any]:
        """Return the record of the name and the type that the array had."""
        array = form.array
        dims = (2, *array.dims) if array.element.kind == "complex" else array.dims
        back = array.replace(
            name=form.key, element=read_element(form), dims=dims, extent=None, data=None,
            meta=array.meta.without_axes(),
        )  # fmt: skip
        was = roundtrip.difference(array, array, back)
        is_bytes = form.type == CHAR and form.inner and not form.said
        return {**was, **({"type": array.element.descr} if is_bytes else {})}

    def _whole(self) -> list[Attribute]:
        """Return the attributes of the file, the record of what they do not hold among them."""
        bundle = self.bundle
        meta = _meta_of_file(bundle)
        attributes: list[Attribute] = []
        left: dict[str, Any] = {}
        for name, value in bundle.attributes.items():
            made, same = self._writing.attribute(name, value, meta)
            attributes += [made] if made is not None else []
            left.update({} if same else {name: value})
            self.unheld_of_file += [name] if made is None else []
        record = roundtrip.record_of_file(bundle)
        record.pop("attributes", None)
        formats = without_types(record.pop("formats", {}), attributes)
        record |= {"attributes": left} if left else {}
        record |= {"formats": formats} if formats else {}
        return [*attributes, *record_attribute(record)]

    def _attributes_of(self, form: Form, *, with_axes: bool) -> list[Attribute]:
        """Return the attributes of a variable, with a record of what they do not hold."""
        attributes, record = self._attributes[form.key]
        axes = self._axes_untold(form) if with_axes and not form.axis_of else None
        return [*attributes, *record_attribute({**record, **({"axes": axes} if axes else {})})]

    def _axes_untold(self, form: Form) -> list[dict[str, Any]] | None:
        """Return the axes of an array, fastest first; None if dimensions and coordinates say them.

        A coordinate that is an array may say more than an axis, which no record takes away.
        """
        array = form.array
        if not array.ndim:
            return None
        dims = form.dims[: array.ndim]
        found = self._coordinates().axes_of(form.key, dims, array.dims[::-1])
        axes = list(array.ra_axes[::-1]) or [Axis()] * array.ndim
        wanted = [axis.to_dict() for axis in axes]
        same = [
            one == said or (name in self.structure.scales and _says_more(one, said))
            for name, one, said in zip(dims, map(Axis.to_dict, found), wanted, strict=True)
        ]
        return None if all(same) else wanted[::-1]

    def _coordinates(self) -> Coordinates:
        """Return the coordinates as they will be read."""
        if self._known is None:
            made = {key: form.array for key, form in self.structure.made.items()}
            self._known = Coordinates({**self.structure.scales, **made}, DEFAULT)
        return self._known

    # the file

    def write(self, target: Target) -> None:
        """Write the whole file."""
        header = self.sized(self.header(with_axes=True), target.path)
        arrays = [stored(form, target.path) for form in self.structure.forms]
        write_file(header, arrays, target)


def _says_more(one: dict[str, Any], said: dict[str, Any]) -> bool:
    """True if the first axis has all that the second one says, and the same name."""
    return {**one, **said} == one and one.get("name") == said.get("name")


def _meta_of_file(bundle: Bundle) -> Any:
    """Return metadata whose namespaces remember the types of the attributes of the file."""
    from raconvert.plugin import Metadata

    formats = {name: space for name, space in bundle.formats.items() if isinstance(space, dict)}
    return Metadata(formats=formats)


# Data ---------------------------------------------------------------------------------------------


def write_file(header: Header, arrays: Sequence[Array], target: Target) -> None:
    """Write a file: `arrays` have the bytes of its variables, as they stand in it."""
    pairs = [*zip(header.variables, arrays, strict=True)]
    fixed = [pair for pair in pairs if not header.is_record(pair[0])]
    inside = [pair for pair in pairs if header.is_record(pair[0])]
    for array in arrays:  # refused before room is taken
        if array.extent is None and array.count:
            _ = array.data
    file = target.open()
    try:
        write_all(file, [encoded(header)])
        end = header.end
        for variable, array in fixed:
            row = header.row_of(variable)
            end = variable.begin + padded(row)
            _write_fixed(file, variable, array, row, target)
            file.seek(variable.begin + row)
            write_all(file, [_filling(variable, padded(row) - row)])
        if inside:
            _write_records(file, header, inside, target)
        else:
            file.truncate(end)
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_fixed(file: FileIO, variable: Variable, array: Array, row: int, target: Target) -> None:
    if array.extent is not None:
        copy_extent_to(array.extent, file, variable.begin, target.progress)
        return
    file.seek(variable.begin)
    done = 0
    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        data = block.reshape(-1).view("u1")
        done += data.nbytes
        if done > row:
            break
        write_all(file, [data])
    if done != row:
        what = f"array '{array.name}' is not as long as its dims say"
        raise Corrupt(what, expected=f"{row} bytes", got=done)


def _write_records(
    file: FileIO, header: Header, inside: list[tuple[Variable, Array]], target: Target
) -> None:
    """Write the records, several at once, or where one is large its parts piece by piece."""
    import numpy as np

    record, count = header.record_bytes(), header.records or 0
    budget = block_bytes(target.max_memory)
    most = max(1 << 16, budget // len(inside))
    rows = [header.row_of(variable) for variable, _ in inside]
    feeds = [_feed(array, most, target) for _, array in inside]
    first = inside[0][0].begin
    reserve(file, first + record * count)
    file.seek(first)
    alone = len(inside) == 1
    pads = [_filling(one, 0 if alone else padded(row) - row)
            for (one, _), row in zip(inside, rows, strict=True)]  # fmt: skip
    if record > budget:
        for _ in range(count):
            for feed, row, pad in zip(feeds, rows, pads, strict=True):
                write_all(file, feed.pieces(row))
                write_all(file, [pad])
    else:
        step = max(1, min(count, budget // max(1, record)))
        room = np.empty((step, record), np.uint8)
        at = 0
        places = []
        for row, pad in zip(rows, pads, strict=True):
            places.append(slice(at, at + row))
            room[:, at + row : at + row + len(pad)] = np.frombuffer(pad, np.uint8)
            at += row + len(pad)
        for start in range(0, count, step):
            high = min(step, count - start)
            for feed, place, row in zip(feeds, places, rows, strict=True):
                room[:high, place] = feed.take(high * row).reshape(high, row)
            write_all(file, [room[:high]])
    for feed, (_, array) in zip(feeds, inside, strict=True):
        if feed.more():
            raise Corrupt(f"array '{array.name}' is longer than its dims say")
    file.truncate(first + record * count)


def _feed(array: Array, most: int, target: Target) -> Feed:
    """The bytes of an array as many as are asked for at a time."""
    import numpy as np

    def pieces() -> Iterator[Any]:
        for block in target.counted(blocks(array, most)):
            yield block.reshape(-1).view(np.uint8)

    return Feed(pieces(), np.dtype(np.uint8), f"array '{array.name}'")


def _filling(variable: Variable, count: int) -> bytes:
    """The fill value that pads the data of a variable of a narrow type, `count` bytes of it."""
    own = next((one.raw for one in variable.attributes if one.name == "_FillValue"), b"")
    fill = own or FILLS.get(variable.type, b"\0")
    return (fill * count)[:count]
