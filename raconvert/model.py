"""The RA core in memory: `Array`, `Bundle`, `Metadata`, `Axis`, `Extent`.

Two words that are never mixed: `dims` is what an RA header lists, fastest axis first; `shape` is
the logical shape in the array's index order (C or unknown: dims reversed; F: dims as they stand).
`Array.data` is always seen slowest axis first, in C order, whatever the index order is.

Plain classes with slots instead of dataclasses: the command line starts with this module, and
`import dataclasses` alone would cost half a bare interpreter start.
"""

from __future__ import annotations

from math import prod

from raconvert.elements import Element, dtype_of, needs_swap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar

    import numpy as np

    from raconvert.errors import RaconvertError
    from raconvert.plugin import Fit

UNKNOWN = Element("user", 0, "|", None)  # of an array of which nothing can be read


class Extent:
    """Where an array's bytes lie contiguous and in stored order inside one local file.

    `offset` and `nbytes` are bytes; `swap` is the width of the numbers that must be reversed to
    become little-endian (1: none). `identity` is what the file was when it was first opened
    (`raconvert.source`): it is refused when it is not the same any more. Made by `Source.extent`.
    """

    __slots__ = ("identity", "nbytes", "offset", "path", "swap")

    def __init__(
        self,
        path: str,
        offset: int,
        nbytes: int,
        swap: int = 1,
        identity: tuple[int, int, int, int] | None = None,
    ) -> None:
        self.path = path
        self.offset = offset
        self.nbytes = nbytes
        self.swap = swap
        self.identity = identity

    def part(self, start: int, nbytes: int) -> Extent:
        """Return a stretch of this extent that begins `start` bytes into it."""
        return Extent(self.path, self.offset + start, nbytes, self.swap, self.identity)

    def open(self) -> int:
        """Return a descriptor of the file; `Corrupt` if it is not the one that it was."""
        from raconvert.source import open_regular

        return open_regular(self.path, self.identity)


class Axis:
    """What is known of one axis: name, labels, spacing and origin in `units`, and its kind."""

    __slots__ = ("kind", "labels", "name", "origin", "spacing", "units")
    TYPES: ClassVar[dict[str, type | tuple[type, ...]]] = {
        "name": str,
        "kind": str,
        "units": str,
        "spacing": (int, float),
        "origin": (int, float),
        "labels": list,
    }
    FIELDS = tuple(TYPES)

    def __init__(
        self,
        name: str | None = None,
        kind: str | None = None,
        units: str | None = None,
        spacing: float | None = None,
        origin: float | None = None,
        labels: list[Any] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.units = units
        self.spacing = spacing
        self.origin = origin
        self.labels = labels

    @classmethod
    def takes(cls, field: str, value: object) -> bool:
        """Tell whether a value is of the type that the field has."""
        return isinstance(value, cls.TYPES.get(field, ())) and not isinstance(value, bool)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set."""
        return {f: getattr(self, f) for f in self.FIELDS if getattr(self, f) is not None}


class Metadata:
    """Common fields that every plugin may read, and one namespace per format in `formats`.

    `axes` is parallel to `dims` (fastest axis first) or empty, and so is a list `axes` in any
    namespace: both are permuted together with the data. A plugin reads the common fields
    and its own namespace; the others travel through untouched. `encoding` says how bytes are text
    (``utf-8``; None: they are bytes, or ASCII). `items` is set on stacks whose
    sources differ in metadata: a callable that returns an iterator of one mapping per item.
    """

    __slots__ = ("attributes", "axes", "description", "encoding", "formats", "items", "units")
    FIELDS = ("description", "units", "encoding", "axes", "attributes", "formats")

    def __init__(
        self,
        description: str | None = None,
        units: str | None = None,
        axes: list[Axis] | None = None,
        attributes: dict[str, Any] | None = None,
        formats: dict[str, dict[str, Any]] | None = None,
        encoding: str | None = None,
    ) -> None:
        self.description = description
        self.units = units
        self.encoding = encoding
        self.axes = axes or []
        self.attributes = attributes or {}
        self.formats = formats or {}
        self.items: Callable[[], Iterator[dict[str, Any]]] | None = None

    @property
    def companions(self) -> dict[str, str]:
        """The other arrays of its file that the array is not whole without, and what they tell.

        All mappings `companions` of the namespaces together: from the name of an array, as this
        file has it, to what is lost without it, ``nulls`` or ``elements`` (see ``--allow``).
        """
        found = {}
        for space in self.formats.values():
            named = space.get("companions")
            if isinstance(named, dict):
                found.update({k: v for k, v in named.items() if v in ("nulls", "elements")})
        return found

    def copy(self) -> Metadata:
        """Return metadata of its own: changing its fields leaves these as they are."""
        other = Metadata(
            self.description,
            self.units,
            list(self.axes),
            dict(self.attributes),
            {name: dict(space) for name, space in self.formats.items()},
            self.encoding,
        )
        other.items = self.items
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return plain YAML-safe values of the fields that are set; empty when there is nothing."""
        fields: dict[str, Any] = {}
        if self.description:
            fields["description"] = self.description
        if self.units:
            fields["units"] = self.units
        if self.encoding:
            fields["encoding"] = self.encoding
        if any(axis.to_dict() for axis in self.axes):
            fields["axes"] = [axis.to_dict() for axis in self.axes]
        if self.attributes:
            fields["attributes"] = self.attributes
        formats = {name: space for name, space in self.formats.items() if space}
        if formats:
            fields["formats"] = formats
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Metadata:
        """Return the metadata that `to_dict` described; unknown fields are ignored."""
        known = {name: fields[name] for name in cls.FIELDS if name in fields}
        if "axes" in known:
            known["axes"] = [
                Axis(**{f: axis[f] for f in Axis.FIELDS if f in axis}) for axis in known["axes"]
            ]
        return cls(**known)

    def __bool__(self) -> bool:
        return bool(self.to_dict()) or self.items is not None

    def __repr__(self) -> str:
        return f"Metadata({self.to_dict()})"


class Array:
    """One N-dimensional array: type and dimensions known, data lazy, metadata beside it.

    `name` is the path of the array in its file: the groups it lies in, and its own name, with
    ``/`` between them. `data` is an array source (anything with `shape`, `dtype` and basic slicing,
    slowest axis first) or a callable without arguments that opens one when it is first needed.
    Without it the data is mapped from `extent`. `storage` says in plain values how the file stores
    the array (layout, chunks, filters, stored bytes), for people to read. `parted` are its
    companions (`Metadata.companions`) that were not chosen with it. `problem` is the error why its
    elements cannot be read, raised when they are asked for; None for nearly all arrays.
    """

    __slots__ = (
        "_data", "_name", "dims", "element", "extent", "index_order", "late", "meta", "owner",
        "parted", "problem", "storage",
    )  # fmt: skip
    renamed = 0  # how often any array got another name: what bundles know of names may be stale

    def __init__(
        self,
        element: Element,
        dims: tuple[int, ...],
        *,
        name: str = "",
        index_order: str | None = None,
        meta: Metadata | None = None,
        extent: Extent | None = None,
        data: Any = None,
        storage: dict[str, Any] | None = None,
    ) -> None:
        self.element = element
        self.dims = tuple(dims)
        self.index_order = index_order
        self._name = name
        self.meta = Metadata() if meta is None else meta
        self.extent = extent
        self.storage = {} if storage is None else storage
        self.late: Any = None  # an array source that knows some metadata only at its end
        self.owner: Bundle | None = None  # closed together with an array handed out alone
        self.parted: dict[str, str] = {}
        self.problem: RaconvertError | None = None
        self._data = data

    @classmethod
    def unreadable(cls, name: str, problem: RaconvertError) -> Array:
        """Return an array that cannot be read, and of which nothing is known but its name.

        Its elements have no bytes. Where type and dims are known, set `problem` instead.
        """
        array = cls(UNKNOWN, (), name=name)
        array.problem = problem
        return array

    @property
    def name(self) -> str:
        """The path of the array in its file."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name
        Array.renamed += 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape, in the array's index order."""
        return self.dims if self.index_order == "F" else self.dims[::-1]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements, uncompressed."""
        return self.count * self.element.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of the elements, byte order included."""
        return dtype_of(self.element)

    @property
    def data(self) -> Any:
        """The array source: slowest axis first, C order; opened or mapped on first use."""
        if self.problem is not None:
            raise self.problem
        if self._data is None:
            self._data = _map_extent(self)
        elif callable(self._data):
            self._data = self._data()
        return self._data

    def replace(self, **changes: Any) -> Array:
        """Return a copy with some fields changed; give `extent` and `data` anew with `dims`."""
        fields = {
            "element": self.element,
            "dims": self.dims,
            "name": self.name,
            "index_order": self.index_order,
            "meta": self.meta,
            "extent": self.extent,
            "data": self._data,
            "storage": self.storage,
        }
        fields.update(changes)
        other = Array(fields.pop("element"), fields.pop("dims"), **fields)
        other.owner, other.late, other.parted = self.owner, self.late, self.parted
        other.problem = self.problem
        return other

    def take_late(self) -> bool:
        """Take over the metadata that the source knows now that all data was read; True if any.

        `late` has `common` (what all items of a stack share) and `items` (what differs).
        """
        if self.late is None:
            return False
        found = Metadata.from_dict(self.late.common)
        self.meta.attributes = {**found.attributes, **self.meta.attributes}
        self.meta.formats = {**found.formats, **self.meta.formats}
        self.meta.items = self.late.items
        return bool(self.meta)

    def __getitem__(self, key: Any) -> Any:
        """Return a region as an ndarray, indexed in logical order."""
        import numpy as np

        if isinstance(key, tuple) and any(part is Ellipsis for part in key):
            at = next(i for i, part in enumerate(key) if part is Ellipsis)
            rest = [slice(None)] * (self.ndim - len(key) + 1)
            key = (*key[:at], *rest, *key[at + 1 :])
        data = self.data
        if self.index_order == "F":
            data = data.T if isinstance(data, np.ndarray) else self.__array__()
        return np.asarray(data[key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the whole array in logical order (a view where the data is mapped)."""
        import numpy as np

        values = self.data
        if not isinstance(values, np.ndarray):
            values = values[()] if self.dims == () else values[:]
        values = np.asarray(values)
        if self.index_order == "F":
            values = values.T
        return np.array(values, dtype=dtype, copy=copy)

    def close(self) -> None:
        """Drop the data; a mapped file is closed when no view of it is left."""
        self._data = None
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.close()

    def __enter__(self) -> Array:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        from raconvert.elements import type_name

        return f"Array({self.name!r}, {type_name(self.element)}, shape={self.shape})"


def _map_extent(array: Array) -> np.ndarray[Any, Any]:
    """Map an array's extent read-only: the same bytes, no copy."""
    import os

    import numpy as np

    from raconvert.blocks import check_rank
    from raconvert.source import changed

    check_rank(array)
    extent = array.extent
    shape = array.dims[::-1]
    if array.count == 0 or array.element.nbytes == 0:
        return np.zeros(shape, array.dtype)
    if extent is None:
        raise TypeError(f"array {array.name!r} has neither data nor an extent")
    if extent.swap != needs_swap(array.element):
        from raconvert.blocks import as_ndarray

        return as_ndarray(array)
    # A memmap of its own kind would keep `np.memmap` semantics in every result; a plain ndarray
    # over the map is what `np.asarray` gives.
    with open(extent.open(), "rb") as file:
        if os.fstat(file.fileno()).st_size < extent.offset + extent.nbytes:
            raise changed(extent.path, shorter=True)
        return np.asarray(np.memmap(file, array.dtype, mode="r", offset=extent.offset, shape=shape))


def _state(arrays: list[Array]) -> tuple[int, int]:
    """Return what changes when arrays are added to a list, left out or renamed."""
    return len(arrays), Array.renamed


class Bundle:
    """Named arrays in order, what the file says of itself and of its groups, and notes.

    It behaves as a read-only mapping from name to `Array`, owns what its arrays need open, and
    closes it at the end of a ``with`` block. `attributes` are those of the file; `groups` maps the
    path of each group that has attributes, or that no array lies in, to its attributes; `formats`
    holds one namespace per format about the file as a whole, as `Metadata.formats` does about an
    array. `aliases` maps further names that the file has for arrays and groups to their own.
    """

    __slots__ = (
        "_closers", "_known", "_places", "aliases", "allow", "arrays", "attributes", "format",
        "formats", "groups", "lost", "notes", "path", "reason", "seen", "used",
    )  # fmt: skip

    def __init__(
        self,
        arrays: list[Array],
        *,
        attributes: dict[str, Any] | None = None,
        groups: dict[str, dict[str, Any]] | None = None,
        formats: dict[str, dict[str, Any]] | None = None,
        notes: list[str] | None = None,
        closers: list[Callable[[], None]] | None = None,
        aliases: dict[str, str] | None = None,
    ) -> None:
        self.arrays = arrays
        self.attributes = {} if attributes is None else attributes
        self.groups = {} if groups is None else groups
        self.formats = {} if formats is None else formats
        self.notes = [] if notes is None else notes  # may grow while data is read
        self.aliases = {} if aliases is None else aliases
        self._closers = [] if closers is None else closers
        self._places: dict[str, int] = {}  # of the arrays, by name, as they were when `_known`
        self._known: tuple[Any, ...] = ()
        # Set by the core: where the bundle comes from, all files that are read for it, what those
        # were that were opened (`Source.seen`), and why it was taken for that format.
        self.path = ""
        self.used: set[str] = set()
        self.seen: dict[str, tuple[int, int, int, int]] = {}
        self.format = ""
        self.reason = ""
        # What the user allows to be lost, by the words of --allow; and what a plugin lost by that,
        # since it met values that the destination cannot hold while it wrote.
        self.allow: list[str] = []
        self.lost: list[Fit] = []

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return [array.name for array in self.arrays]

    def keys(self) -> list[str]:
        """The names, in order."""
        return self.names

    def items(self) -> list[tuple[str, Array]]:
        """The pairs of name and array, in order."""
        return [(array.name, array) for array in self.arrays]

    def __getitem__(self, name: str) -> Array:
        array = self.get(name)
        if array is None:
            raise KeyError(name)
        return array

    def get(self, name: str) -> Array | None:
        """Return the array of this name, the first if there are several, or None.

        An alias stands for its array; of two that share a name, the array's own goes first.
        """
        found = self._own(name)
        if found is None and self.aliases and (real := self.without_aliases(name)) != name:
            found = self._own(real)
        return found

    def without_aliases(self, path: str) -> str:
        """Return a path with every alias on its way replaced by what it stands for."""
        here = ""
        for part in path.split("/"):
            here = f"{here}/{part}" if here else part
            here = self.aliases.get(here, here)
        return here

    def _own(self, name: str) -> Array | None:
        for _ in range(2):
            place = self._place(name)
            if place is None:
                return None
            if self.arrays[place].name == name:
                return self.arrays[place]
            self._known = ()  # the list was sorted, or an array in it replaced
        return None

    def _place(self, name: str) -> int | None:
        """Return where the array of this name is, as far as the names are known to have changed."""
        known = self._known
        if not known or known[0] is not self.arrays or known[1:] != _state(self.arrays):
            self._places = {}
            for place, array in enumerate(self.arrays):
                self._places.setdefault(array.name, place)
            self._known = (self.arrays, *_state(self.arrays))
        return self._places.get(name)

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def unreadable(self) -> list[Array]:
        """The arrays whose elements cannot be read (`Array.problem`), in order."""
        return [array for array in self.arrays if array.problem is not None]

    def telling_groups(self) -> dict[str, dict[str, Any]]:
        """Return the groups that have attributes, or that nothing else shows to be there."""
        shown: set[str] = set()
        for path in [*self.names, *self.groups]:
            while "/" in path and (path := path.rpartition("/")[0]) not in shown:
                shown.add(path)
        return {path: own for path, own in self.groups.items() if own or path not in shown}

    def only(self) -> Array:
        """Return the one array, which from now on closes the bundle when it is closed."""
        array = self.arrays[0]
        array.owner = self
        return array

    def like(self, arrays: list[Array]) -> Bundle:
        """Return a bundle of other arrays that says the same of itself; it closes nothing."""
        other = Bundle(
            arrays,
            attributes=self.attributes,
            groups=self.groups,
            formats=self.formats,
            notes=self.notes,
            aliases=self.aliases,
        )
        other.path, other.format, other.reason = self.path, self.format, self.reason
        other.used, other.seen = self.used, self.seen
        return other

    def allows(self, loss: str) -> bool:
        """Tell whether the user allows this loss, while the bundle is written."""
        return loss in self.allow or "all" in self.allow

    def add_notes_of(self, other: Bundle) -> None:
        """Take over the notes of another bundle, what it uses, and the duty to close it."""
        self.notes += [f"'{other.path}': {note}" for note in other.notes]
        self.used |= other.used
        self.seen |= other.seen
        self._closers.append(other.close)

    def close(self) -> None:
        """Close whatever the arrays need open."""
        for array in self.arrays:
            array.close()
        while self._closers:
            self._closers.pop()()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Bundle({self.arrays!r})"
