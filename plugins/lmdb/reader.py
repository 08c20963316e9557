"""From a file to a bundle: values of one kind and shape as one array, else an array for each."""

from __future__ import annotations

import os
from collections.abc import Sequence

from raconvert.arrays.dtypes import little
from raconvert.arrays.metadata import in_dims_order
from raconvert.errors import Corrupt, TooLarge, Unsafe, Unsupported, counted
from raconvert.plugin import Array, Axis, Bundle, Metadata, element, first_of

from .tree import File
from .values import BYTES, DATUM, FLOATS, PICKLE, TEXT, Value, beginning_of, value_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Element, Source

    from .stacks import Members
    from .tree import Database

__all__ = ["DATA", "read"]

DATA = "data.mdb"  # the file in a folder
# kind -> the name of the array of all values of it; all other kinds are images
NAMES = {"npy": "arrays", BYTES: "values", TEXT: "texts", PICKLE: "pickles"}
IMAGES, LABELS, KEYS = "images", "labels", "keys"
LENGTHS = ("channels", "height", "width")  # the axes of a datum
BYTE, FLOAT, LABEL = element("uint", 1), element("float", 4), element("int", 4)
PADDED = 64  # the most bytes for each byte of texts, if all are made as long as the longest
SMALL = 1 << 20  # bytes that padded texts may take anyway
_REFUSED = (Corrupt, TooLarge, Unsafe, Unsupported)  # errors of one value: others can be read
_NOTES = 5  # notes of single values that are shown


def read(source: Source, values: str) -> Bundle:
    """Read the arrays of all databases of a file, or of the file in a folder.

    Raises `Corrupt`, `TooLarge` and `Unsupported`.
    """
    if os.path.isdir(source.path):
        path = os.path.join(source.path, DATA)
        source.used.add(path)
        source = source.at(path)
    databases = [(name, entries) for name, entries in File(source).databases() if len(entries)]
    if not databases:
        raise Unsupported("holds no values", path=source.path)
    arrays: list[Array] = []
    notes: list[str] = []
    for name, database in databases:
        reader = _Reader(source, database, f"{name}/" if name else "")
        arrays += reader.arrays(values)
        notes += reader.notes
        if len(arrays) > source.limits.nodes:
            raise reader.too_many(len(arrays))
    problems = [array.problem for array in arrays]
    if None not in problems:
        raise problems[0]  # type: ignore[misc]
    bundle = Bundle(arrays, notes=notes)
    bundle.close_with(source.close)
    return bundle


class _Keys(Sequence[str]):
    """The keys of values, in their order; each is read when it is asked for."""

    def __init__(self, database: Database, members: Members) -> None:
        self._database = database
        self._numbers = members.numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        return self._database.key(self._numbers[index])

    def __iter__(self) -> Iterator[str]:
        return (self._database.key(number) for number in self._numbers)


class _Reader:
    """The values of one database, sorted by kind."""

    def __init__(self, source: Source, database: Database, prefix: str) -> None:
        self.source = source
        self.database = database
        self.prefix = prefix
        self.notes: list[str] = []
        self._value_notes: list[str] = []
        if not database.text and not database.integers:
            self.notes.append(
                f"{prefix}: keys are not text, and named in hexadecimal".lstrip("/: ")
            )

    def too_many(self, count: int) -> TooLarge:
        """Return the error for more arrays than are read at once."""
        return TooLarge(
            "holds too many values of different shapes to be arrays", path=self.source.path,
            expected=f"at most {self.source.limits.nodes}", got=count,
            remedy="take out those that you want, in Python: import lmdb; "
            "lmdb.open(FILE, readonly=True, lock=False).begin().get(KEY)",
        )  # fmt: skip

    def arrays(self, asked: str) -> list[Array]:
        """Return the arrays of all kinds, in the order of their first values."""
        together: list[Array] = []
        apart: list[Array] = []
        for word, members in self._families(asked).items():
            if word == NAMES[PICKLE]:
                together.append(self._pickles(members))
            elif arrays := self._stacked(word, members):
                together += arrays
            else:
                apart += self._apart(members, asked)
        self.notes += self._value_notes[:_NOTES]
        if len(self._value_notes) > _NOTES:
            self.notes.append(f"{len(self._value_notes) - _NOTES} more notes about single values")
        names = {array.name for array in apart}
        for array in together:
            if array.name in names:
                array.name += " (all)"
        return [*together, *apart]

    def _families(self, asked: str) -> dict[str, Members]:
        """Return the values by the name of the array that they may become."""
        from .stacks import Members, merged

        families: dict[str, Members] = {}
        for number in range(len(self.database)):
            value = self._value(number, asked)
            word = NAMES.get(value.kind, IMAGES)
            families.setdefault(word, Members()).add(number, value)
        texts, others = families.get(NAMES[TEXT]), families.get(NAMES[BYTES])
        if texts and others:
            families[NAMES[BYTES]] = merged(texts, others)
            del families[NAMES[TEXT]]
        return families

    def _value(self, number: int, asked: str) -> Value:
        """Return the value of an entry, with its kind; `asked` is the option `values`."""
        begin, nbytes = self.database.span(number)
        if asked == BYTES:
            return Value(BYTES, begin, nbytes)
        return value_at(self.source, begin, nbytes)

    def _pickles(self, members: Members) -> Array:
        """Return the array that stands for pickles; it cannot be read."""
        keys = first_of([self.database.key(number) for number in members.numbers[:6]])
        error = Unsafe(
            f"{counted(len(members), 'pickle')} among its values would run code when read",
            path=self.source.path, where=f"keys {keys}",
            remedy="`--in-opt values=bytes` reads their bytes; where they come from, store images "
            "as PNG, and arrays by numpy.save",
        )  # fmt: skip
        return Array.unreadable(self.prefix + NAMES[PICKLE], error)

    # Values of one type and shape -----------------------------------------------------------------

    def _stacked(self, word: str, members: Members) -> list[Array]:
        """Return the array of all values, with labels and keys; an empty list if they differ."""
        from .stacks import Decoder, Stack

        keys = _Keys(self.database, members)
        agreed = self._agreed(members, keys)
        if agreed is None:
            return []
        kind, shape, meta = agreed
        labels = self._labels_of(members, keys)
        axis = Axis(labels=labels)
        array = Array(
            kind, (*shape[::-1], len(members)), name=self.prefix + word, index_order="C",
            meta=meta.with_axis(0, axis, len(shape)),
            data=lambda: Stack(Decoder(self.source, kind, shape), members, keys),
        )  # fmt: skip
        arrays = [array]
        if members.labels:
            arrays.append(self._classes(members, axis))
        if labels is None:
            arrays.append(self._all_keys(f"{self.prefix}{word}.{KEYS}", keys))
        return arrays

    def _labels_of(self, members: Members, keys: Sequence[str]) -> list[str] | None:
        """Return the keys as labels of an axis; None for too many."""
        limits = self.source.limits
        few = len(members) <= limits.table_labels and self.database.key_bytes <= limits.text_bytes
        return [*keys] if few else None

    def _all_keys(self, name: str, keys: Sequence[str]) -> Array:
        """Return the array of keys that are too many to be labels."""
        from .stacks import KeyTexts

        self.notes.append(f"{counted(len(keys), 'key')} are in the array '{name}', not labels")
        longest = self.database.longest_key
        return Array(
            _text(longest), (len(keys),), name=name, index_order="C",
            meta=Metadata(encoding="utf-8"),
            data=lambda: KeyTexts(self.source, keys, longest),
        )  # fmt: skip

    def _classes(self, members: Members, axis: Axis) -> Array:
        """Return the labels of data of Caffe, one for each value."""
        from .stacks import labels_of

        if members.unlabelled:
            count = counted(members.unlabelled, "value")
            self.notes.append(f"{count} have no label, which is 0 then, as Caffe reads them")
        return Array(
            LABEL, (len(members),), name=self.prefix + LABELS, index_order="C",
            data=lambda: labels_of(members), meta=Metadata(axes=[axis]) if axis else None,
        )  # fmt: skip

    def _agreed(
        self, members: Members, keys: Sequence[str]
    ) -> tuple[Element, tuple[int, ...], Metadata] | None:
        """Return the type, shape and metadata that all values have; None if they differ."""
        kind = members.kinds[0]
        if any(other in (BYTES, TEXT, DATUM, FLOATS) for other in members.kinds):
            shape = members.shape
            if len(members.kinds) > 1 or shape is None or not members.uniform:
                return None
            if kind in (DATUM, FLOATS):
                return BYTE if kind == DATUM else FLOAT, shape, _of_datum()
            shortest, longest = members.lengths
            if kind == TEXT:
                longest = max(1, longest)
                padded = len(members) * longest > PADDED * members.nbytes + SMALL
                return None if padded else (_text(longest), (), Metadata(encoding="utf-8"))
            return (BYTE, (longest,), Metadata()) if shortest == longest else None
        return self._agreed_images(members, keys)

    def _agreed_images(
        self, members: Members, keys: Sequence[str]
    ) -> tuple[Element, tuple[int, ...], Metadata] | None:
        """Return the same for values in a format of their own, by the header of each."""
        from raconvert.arrays.stack import ItemMetadata

        from .stacks import array_in

        items = ItemMetadata(keys)
        agreed: tuple[Element, tuple[int, ...]] | None = None
        value_notes: list[str] = []
        before: bytes | None = None  # the beginning of the image before, and its metadata
        fields: dict[str, Any] = {}
        for index in range(len(members)):
            value = members.value(index)
            beginning = beginning_of(self.source, value)
            if beginning is not None and beginning == before:
                items.add(fields)
                continue
            try:
                array, notes = array_in(self.source, value, keys[index])
            except _REFUSED:
                return None
            if array.problem is not None:
                return None
            own = little(array.element), array.dims[::-1]
            agreed = agreed or own
            if own != agreed:
                return None
            room = max(0, 1000 - len(value_notes))
            value_notes += [f"{keys[index]}: {note}" for note in notes[:room]]
            fields = in_dims_order(array.meta.to_dict(), "C")
            before = None if notes else beginning
            items.add(fields)
        self._value_notes += value_notes
        if agreed is None:
            return None
        meta = Metadata.from_dict(in_dims_order(items.common, "C"))
        return *agreed, meta.replace(items=items.items)

    # An array for each key ------------------------------------------------------------------------

    def _apart(self, members: Members, asked: str) -> list[Array]:
        """Return an array for each value; an unreadable one for a damaged value."""
        if len(members) > self.source.limits.nodes:
            raise self.too_many(len(members))
        arrays = []
        for number in members.numbers:
            key = self.database.key(number)
            value = self._value(number, asked)
            try:
                array = self._alone(value, key)
            except _REFUSED as error:
                array = Array.unreadable(key, error)
            if value.label:
                label = {"label": value.label[0]}
                array.meta = array.meta.replace(attributes={**array.meta.attributes, **label})
            array.name = self.prefix + key
            arrays.append(array)
        return arrays

    def _alone(self, value: Value, key: str) -> Array:
        """Return the array of one value."""
        from .stacks import Decoder, array_in

        shape: tuple[int, ...] = (value.nbytes,)
        kind, meta = BYTE, Metadata()
        if value.kind in (DATUM, FLOATS):
            kind, shape = BYTE if value.kind == DATUM else FLOAT, value.shape
            meta = _of_datum()
        elif value.kind == TEXT:
            kind, shape, meta = _text(max(1, value.nbytes)), (), Metadata(encoding="utf-8")
        elif value.kind != BYTES:
            array, notes = array_in(self.source, value, key)
            if array.problem is not None or array.extent is not None:
                return array
            self._value_notes += [f"{key}: {note}" for note in notes]
            kind, shape, meta = array.element, array.dims[::-1], array.meta
        if value.kind in (BYTES, DATUM):
            extent = self.source.extent(value.begin, value.nbytes)
            return Array(kind, shape[::-1], name=key, index_order="C", meta=meta, extent=extent)
        return Array(
            kind, shape[::-1], name=key, index_order="C", meta=meta,
            data=lambda: Decoder(self.source, kind, shape).elements(value, key),
        )  # fmt: skip


def _text(nbytes: int) -> Element:
    """Return the element type of texts of `nbytes` bytes."""
    return element("user", nbytes, "|", f"|S{nbytes}")


def _of_datum() -> Metadata:
    """Return the metadata of a datum of Caffe: the names of its axes."""
    return Metadata(axes=[Axis(name) for name in LENGTHS])
