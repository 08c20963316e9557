"""`Metadata` and `Axis`: what is known of an array beyond its elements."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, ClassVar

    import numpy as np


RA = "ra"  # the namespace of the core itself (`raconvert.arrays.namespace`)
PAIR_BYTES = 4  # of complex32, carried as pairs of float16 on a new fastest axis


class Axis:
    """What is known of one axis: name, labels, spacing and origin in `units`, and its kind.

    >>> axes = [Axis("time", spacing=0.5, units="s"), Axis("place", labels=["here", "there"])]
    >>> report = raconvert.write("named.ra", np.zeros((3, 2)), meta=Metadata(axes=axes))
    >>> raconvert.open("named.ra").meta.axes[1].labels
    ['here', 'there']
    """

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
        self.name: str | None = name
        self.kind: str | None = kind
        self.units: str | None = units
        self.spacing: float | None = spacing
        self.origin: float | None = origin
        self.labels: list[Any] | None = labels

    def __eq__(self, other: object) -> bool:
        """True for an axis that says the same.

        >>> Axis("time", units="s") == Axis("time", units="s")
        True
        """
        if not isinstance(other, Axis):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in self.FIELDS)

    __hash__: ClassVar[None]  # type: ignore[assignment]  # its fields can be changed

    @classmethod
    def takes(cls, field: str, value: object) -> bool:
        """True if a value is of the type that the field has. Raises nothing."""
        return isinstance(value, cls.TYPES.get(field, ())) and not isinstance(value, bool)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set. Raises nothing.

        >>> Axis(name="time", units="s", spacing=0.5).to_dict()
        {'name': 'time', 'units': 's', 'spacing': 0.5}
        """
        return {f: getattr(self, f) for f in self.FIELDS if getattr(self, f) is not None}

    def values(self, length: int) -> np.ndarray[Any, Any] | None:
        """Return the labels, or the regular numbers, along the axis; None if it has neither.

        Without an origin the numbers begin at 0.

        >>> Axis(spacing=0.5, origin=1).values(3)
        array([1. , 1.5, 2. ])

        Raises nothing.
        """
        import numpy as np

        if self.labels is not None and len(self.labels) == length:
            values = np.empty(length, object)
            values[:] = self.labels
            kinds = set(map(type, self.labels))
            if len(kinds) == 1 and kinds <= {str, bytes, bool, float, int}:
                one_type = np.array(self.labels)  # too large numbers stay objects
                return one_type if one_type.tolist() == self.labels else values
            return values
        spacing, origin = self.spacing, 0 if self.origin is None else self.origin
        if spacing is None:
            if not isinstance(self.origin, int):
                return None
            spacing = 1  # the number of the first place
        if all(isinstance(one, int) and abs(one) < 1 << 31 for one in (origin, spacing, length)):
            return np.arange(length, dtype=np.int64) * spacing + origin
        return origin + np.arange(length, dtype=np.float64) * spacing

    def __repr__(self) -> str:
        from raconvert.arrays.shown import axis_text

        return f"Axis({axis_text(self)})"


class Metadata:
    """Common fields that every plugin may read, and one namespace per format in `formats`.

    `axes` has an entry for each axis in the order of `shape`, or is empty. `ra_axes` are the same
    entries in the order of `dims`, fastest axis first, as an RA header and a sidecar list them, and
    so does a list `axes` in any namespace: all are permuted together with the data. `index_order`
    is that of the array (`Array.meta` sets it; None: of no array yet), so that each entry is put on
    its axis of any other array that is given the metadata. A plugin reads
    the common fields and its own namespace; the others travel through untouched. `encoding` says
    how bytes are text (``utf-8``; None: they are bytes, or ASCII). `items` is set on stacks whose
    sources differ in metadata: a callable that returns an iterator of one mapping per item. `later`
    is an array source that knows more when all elements have been read (`complete`): `common`, a
    mapping as of `to_dict`, and `items`.

    >>> meta = Metadata("a test", units="K", attributes={"by": "hand"})
    >>> report = raconvert.write("told.ra", np.zeros((3, 2)), meta=meta)
    >>> raconvert.open("told.ra").meta.attributes
    {'by': 'hand'}
    """

    __slots__ = (
        "_in_shape_order", "_listed", "attributes", "description", "encoding", "formats",
        "index_order", "items", "later", "units",
    )  # fmt: skip
    FIELDS = ("description", "units", "encoding", "axes", "attributes", "formats")

    def __init__(
        self,
        description: str | None = None,
        units: str | None = None,
        axes: Iterable[Axis] | None = None,
        attributes: dict[str, Any] | None = None,
        formats: dict[str, dict[str, Any]] | None = None,
        encoding: str | None = None,
        *,
        ra_axes: list[Axis] | None = None,
    ) -> None:
        self.description: str | None = description
        self.units: str | None = units
        self.encoding: str | None = encoding
        self.index_order: str | None = None
        self._listed: list[Axis] = list(axes) if axes is not None else ra_axes or []
        self._in_shape_order: bool = axes is not None  # not known yet in which order the dims are
        self.attributes: dict[str, Any] = attributes or {}
        self.formats: dict[str, dict[str, Any]] = formats or {}
        self.items: Callable[[], Iterator[dict[str, Any]]] | None = None
        self.later: Any = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is known of each axis, in the order of `shape`; nothing if it is empty.

        >>> meta = Metadata(axes=[Axis("row"), Axis("column", units="m")])
        >>> [axis.name for axis in meta.axes], [axis.name for axis in meta.ra_axes]
        (['row', 'column'], ['column', 'row'])
        """
        same = self._in_shape_order or self.index_order == "F"
        return tuple(self._listed if same else self._listed[::-1])

    @axes.setter
    def axes(self, axes: Iterable[Axis]) -> None:
        self._listed, self._in_shape_order = list(axes), True
        if self.index_order is not None:
            self.belongs_to(self.index_order)

    @property
    def ra_axes(self) -> list[Axis]:
        """What is known of each axis, in the order of `dims`: the fastest first."""
        if self._in_shape_order:
            self.belongs_to(self.index_order)
        return self._listed

    @ra_axes.setter
    def ra_axes(self, axes: list[Axis]) -> None:
        self._listed, self._in_shape_order = axes, False

    def belongs_to(self, index_order: str | None) -> None:
        """Take the index order of an array; axes that were given keep their place in its shape.

        Raises nothing.
        """
        if self._in_shape_order:
            self._in_shape_order = False
            if index_order != "F":
                self._listed = self._listed[::-1]
        self.index_order = index_order

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
        """Return metadata of its own: changing its fields leaves these as they are. Raises nothing.

        >>> meta = Metadata(units="m")
        >>> other = meta.copy()
        >>> other.units = "km"
        >>> meta.units
        'm'
        """
        other = Metadata(
            self.description,
            self.units,
            None,
            dict(self.attributes),
            {name: dict(space) for name, space in self.formats.items()},
            self.encoding,
            ra_axes=list(self._listed),
        )
        other._in_shape_order = self._in_shape_order
        other.items, other.later, other.index_order = self.items, self.later, self.index_order
        return other

    def permuted(self, axes: tuple[int, ...]) -> Metadata:
        """Return metadata for an array whose axes, slowest first, are taken in this order.

        Items go once another axis is the slowest, and the name of complex32 for pairs of float16
        once another axis is the fastest. Raises nothing.
        """
        meta = self.copy()
        own = meta.formats.get(RA, {})
        if axes[0] != 0:
            meta.items = None
        if axes[-1] != len(axes) - 1 and own.get("elbyte") == PAIR_BYTES:
            del own["eltype"], own["elbyte"]
        if meta.ra_axes:
            meta.ra_axes = _permuted_list(meta.ra_axes, axes)
        for space in meta.formats.values():
            listed = space.get("axes")
            if isinstance(listed, list) and len(listed) == len(axes):
                space["axes"] = _permuted_list(listed, axes)
        return meta

    def without_later(self) -> Metadata:
        """Return metadata of its own, for other values: those tell nothing more. Raises nothing."""
        other = self.copy()
        other.later = None
        return other

    def complete(self) -> bool:
        """Take over what is known now that all elements have been read; True if there is any.

        Raises nothing but what `later` raises.
        """
        if self.later is None:
            return False
        found = Metadata.from_dict(self.later.common)
        self.attributes = {**found.attributes, **self.attributes}
        self.formats = {**found.formats, **self.formats}
        self.items = self.later.items
        self.later = None
        return bool(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain YAML-safe values of the fields that are set; empty when there is nothing.

        Axes are listed as in a sidecar, in the order of `dims`.

        >>> Metadata(units="m", axes=[Axis(), Axis(name="x")]).to_dict()
        {'units': 'm', 'axes': [{'name': 'x'}, {}]}

        Raises nothing.
        """
        fields: dict[str, Any] = {}
        if self.description:
            fields["description"] = self.description
        if self.units:
            fields["units"] = self.units
        if self.encoding:
            fields["encoding"] = self.encoding
        if any(axis.to_dict() for axis in self._listed):
            fields["axes"] = [axis.to_dict() for axis in self.ra_axes]
        if self.attributes:
            fields["attributes"] = self.attributes
        formats = {name: space for name, space in self.formats.items() if space}
        if formats:
            fields["formats"] = formats
        return fields

    def shown(self) -> dict[str, Any]:
        """Return the fields as `to_dict` does, but with the axes in the order of `shape`.

        Raises nothing.
        """
        fields = self.to_dict()
        if "axes" in fields:
            fields["axes"] = [axis.to_dict() for axis in self.axes]
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Metadata:
        """Return the metadata that `to_dict` described; unknown fields are ignored.

        >>> Metadata.from_dict({"units": "m"}).units
        'm'

        Raises `TypeError` for axes that are not a list of mappings.
        """
        known = {name: fields[name] for name in cls.FIELDS if name in fields}
        if "axes" in known:
            known["ra_axes"] = [
                Axis(**{f: axis[f] for f in Axis.FIELDS if f in axis}) for axis in known.pop("axes")
            ]
        return cls(**known)

    def __bool__(self) -> bool:
        return bool(self.to_dict()) or self.items is not None

    def __repr__(self) -> str:
        return f"Metadata({self.to_dict()})"


def _permuted_list(listed: list[Any], axes: tuple[int, ...]) -> list[Any]:
    """The axes of metadata, fastest first, for data whose axes `axes` permutes."""
    seen = listed[::-1]
    return [seen[axis] for axis in axes][::-1]
