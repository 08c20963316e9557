"""`Metadata`, `Axis` and `Space`: all about an array beyond its elements, as immutable values.

They list axes in the order of `shape` and have no index order of their own. An array and its
metadata are turned together, by `raconvert.arrays.transpose` and `Array.listed` alone: a value that
nobody can change cannot be turned twice.
"""

from __future__ import annotations

from raconvert.declared import Record
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, ClassVar, NoReturn

    import numpy as np

    _Dict = dict[str, Any]
else:
    _Dict = dict

RA = "ra"  # the namespace of the core itself: see the end of this module


class Frozen(_Dict):
    """A dict that cannot be changed; ``dict(frozen)`` is one that can."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "metadata cannot be changed in place; make other metadata: "
            "array.meta = array.meta.replace(attributes={**array.meta.attributes, ...})"
        )

    if not TYPE_CHECKING:  # to type checkers it is a dict
        __setitem__ = __delitem__ = __ior__ = _refuse
        clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (dict(self),)


_EMPTY = Frozen()
_PLAIN = frozenset({bool, bytes, float, int, str, type(None)})
_MAX_DEPTH = 64  # levels of lists and mappings in which values of NumPy are looked for


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value with Python's numbers, texts and lists in place of those of NumPy.

    The two are equal, and formats need only know the first. A time that Python's dates and times do
    not hold exactly, and a duration, stay as they are (`spelled`).
    """
    kind = type(value)
    if kind in _PLAIN or depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        if any(type(part) not in _PLAIN for item in value.items() for part in item):
            return {_plain(k, depth + 1): _plain(v, depth + 1) for k, v in value.items()}
    elif kind in (list, tuple):
        if any(type(item) not in _PLAIN for item in value):
            return kind(_plain(item, depth + 1) for item in value)
    elif kind.__module__ == "numpy" and hasattr(value, "tolist"):
        if value.dtype.kind in "mM":
            return _time(value) if value.ndim == 0 else [_plain(item, depth + 1) for item in value]
        plain = value.tolist()
        return plain if type(plain) is kind else _plain(plain, depth + 1)
    return value


def _time(value: Any) -> Any:
    """Convert a time of NumPy to an equal `date` or `datetime`, or return it unchanged."""
    value = value[()]
    if value.dtype.kind == "M":
        for unit, kind in (("M8[D]", "date"), ("M8[us]", "datetime")):
            converted = value.astype(unit)
            time = converted.item()
            fits = unit == "M8[us]" or value.dtype.str[3:] in _DAYS
            exact = converted.astype(value.dtype) == value == converted
            if fits and exact and type(time).__name__ == kind:
                return time
    return value


_DAYS = ("[Y]", "[M]", "[W]", "[D]")  # units of NumPy without a time of day


_TIMES = ("datetime64", "timedelta64", "timedelta")  # types that no format of metadata has


def spelled(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return attributes with texts for times and durations that no format has a type for.

    Returned with them: a note about each such attribute. Raises nothing.
    """
    texts = {key: _in_words(value) for key, value in attributes.items() if _has_times(value)}
    notes = [f"attribute '{key}' is written as text: {value}" for key, value in texts.items()]
    return {**attributes, **texts}, notes


def _has_times(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_times, value))
    if isinstance(value, dict):
        return any(map(_has_times, value.values()))
    return type(value).__name__ in _TIMES


def _in_words(value: Any) -> Any:
    """Return a value with texts in place of the times and durations in it."""
    if isinstance(value, dict):
        return {key: _in_words(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_in_words, value))
    return str(value) if type(value).__name__ in _TIMES else value


class _Value:
    """Base of values whose fields are set once, by `__init__`."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        kind = type(self).__name__
        raise AttributeError(
            f"{kind} cannot be changed; make another one: {kind.lower()}.replace({name}=...)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")


_set = object.__setattr__


class Axis(_Value):
    """Metadata of one axis: name, labels, spacing and origin in `units`, and its kind.

    `direction` is the unit vector, in the world of `Metadata.space`, along which the axis runs:
    one step moves by ``spacing * direction``. An axis without it is not spatial, as time or
    channels, or its orientation is unknown.

    >>> axes = [Axis("time", spacing=0.5, units="s"), Axis("place", labels=["here", "there"])]
    >>> report = raconvert.write("named.ra", np.zeros((3, 2)), meta=Metadata(axes=axes))
    >>> raconvert.open("named.ra").meta.axes[1].labels
    ('here', 'there')
    """

    __slots__ = ("direction", "kind", "labels", "name", "origin", "spacing", "units")
    TYPES: ClassVar[dict[str, type | tuple[type, ...]]] = {
        "name": str,
        "kind": str,
        "units": str,
        "spacing": (int, float),
        "origin": (int, float),
        "labels": (list, tuple),
        "direction": (list, tuple),
    }
    FIELDS: ClassVar[tuple[str, ...]] = tuple(TYPES)

    def __init__(
        self,
        name: str | None = None,
        kind: str | None = None,
        units: str | None = None,
        spacing: float | None = None,
        origin: float | None = None,
        labels: Sequence[Any] | None = None,
        direction: Sequence[float] | None = None,
    ) -> None:
        _set(self, "name", name)
        _set(self, "kind", kind)
        _set(self, "units", units)
        _set(self, "spacing", _plain(spacing))
        _set(self, "origin", _plain(origin))
        _set(self, "labels", labels if labels is None else tuple(_in_words(_plain(labels))))
        _set(self, "direction", direction if direction is None else tuple(_plain(direction)))

    if TYPE_CHECKING:
        name: str | None
        kind: str | None
        units: str | None
        spacing: float | None
        origin: float | None
        labels: tuple[Any, ...] | None
        direction: tuple[float, ...] | None

    def replace(self, **fields: Any) -> Axis:
        """Return the axis with other values of some fields.

        >>> Axis("time", units="s").replace(units="ms")
        Axis(time, ms)

        Raises `TypeError` for a field that an axis does not have.
        """
        return Axis(**{**{field: getattr(self, field) for field in self.FIELDS}, **fields})

    def __eq__(self, other: object) -> bool:
        """True for an axis with equal fields.

        >>> Axis("time", units="s") == Axis("time", units="s")
        True
        """
        if not isinstance(other, Axis):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in self.FIELDS)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, field) for field in self.FIELDS))

    def __reduce__(self) -> tuple[Any, ...]:
        return Axis, tuple(getattr(self, field) for field in self.FIELDS)

    @classmethod
    def takes(cls, field: str, value: object) -> bool:
        """True if a value is of the type that the field has. Raises nothing."""
        if field == "direction" and isinstance(value, list | tuple):
            return all(cls.takes("spacing", number) for number in value)
        return isinstance(value, cls.TYPES.get(field, ())) and not isinstance(value, bool)

    @property
    def vector(self) -> tuple[float, ...] | None:
        """The step of the axis in the world, ``spacing * direction``; None if it is not known.

        >>> Axis(spacing=2.0, direction=(0, 0, -1)).vector
        (0.0, 0.0, -2.0)
        """
        if self.spacing is None or self.direction is None:
            return None
        return tuple(self.spacing * part for part in self.direction)

    def sliced(self, part: range) -> Axis:
        """Return the axis of the indices of a range: labels cut, origin moved, spacing multiplied.

        >>> Axis("t", spacing=0.5, origin=1.0).sliced(range(2, 8, 3))
        Axis(t, spacing=1.5, origin=2.0)

        Raises nothing.
        """
        labels = self.labels
        if labels is not None:
            labels = tuple(labels[index] for index in part if index < len(labels))
        first, step = (part.start, part.step) if len(part) else (0, 1)
        spacing, origin, direction = self.spacing, self.origin, self.direction
        if direction is not None and step < 0:  # in the world the axis runs the other way
            direction, step = tuple(0.0 - number for number in direction), -step
        if spacing is None and isinstance(origin, int) and (first or step != 1):
            spacing = 1  # as `values` has it
        if spacing is not None:
            if first and (origin is not None or direction is None):
                origin = (origin or 0) + first * spacing
            spacing = spacing * step
        return self.replace(labels=labels, spacing=spacing, origin=origin, direction=direction)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set. Raises nothing.

        >>> Axis(name="time", units="s", spacing=0.5).to_dict()
        {'name': 'time', 'units': 's', 'spacing': 0.5}
        """
        fields = {f: getattr(self, f) for f in self.FIELDS if getattr(self, f) is not None}
        for field in ("labels", "direction"):
            if field in fields:
                fields[field] = list(fields[field])
        return fields

    def __bool__(self) -> bool:
        """True if anything is known of the axis.

        >>> bool(Axis())
        False
        """
        return any(getattr(self, field) is not None for field in self.FIELDS)

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
                return one_type if one_type.tolist() == list(self.labels) else values
            return values
        spacing, origin = self.spacing, 0 if self.origin is None else self.origin
        if spacing is None:
            if not isinstance(self.origin, int):
                return None
            spacing = 1  # an integer origin alone is the number of the first index
        numbers = (origin, spacing, length)
        if all(isinstance(number, int) and abs(number) < 1 << 31 for number in numbers):
            return np.arange(length, dtype=np.int64) * spacing + origin
        with np.errstate(over="ignore", invalid="ignore"):  # of absurd steps: infinity
            return origin + np.arange(length, dtype=np.float64) * spacing

    def __repr__(self) -> str:
        from raconvert.arrays.summary import axis_text

        return f"Axis({axis_text(self)})"


NO_AXIS = Axis()  # shared by all axes without metadata


class Space(Record):
    """The world in which the spatial axes of an array lie.

    `frame` names its axes (``LPS``: left, posterior, superior; ``RAS``; any other name stays as it
    is); None: unknown. `origin` is where the first element lies (its centre), in world units: a
    number for each axis of the world; None: unknown.

    >>> Space("LPS", (0.0, 0.0, -12.5)).origin
    (0.0, 0.0, -12.5)
    """

    frame: str | None = None
    origin: tuple[float, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set. Raises nothing."""
        fields: dict[str, Any] = {} if self.frame is None else {"frame": self.frame}
        return fields if self.origin is None else {**fields, "origin": list(self.origin)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Space:
        """Make the space that `to_dict` described; unknown fields are ignored.

        Raises `TypeError` for an origin that is not a list.
        """
        origin = fields.get("origin")
        return cls(fields.get("frame"), None if origin is None else tuple(origin))

    @classmethod
    def takes(cls, value: object) -> bool:
        """True if a value is of the form that `from_dict` reads. Raises nothing."""
        if not isinstance(value, dict) or not isinstance(value.get("frame", ""), str):
            return False
        return Axis.takes("direction", value.get("origin", []))


class Metadata(_Value):
    """Common fields that every plugin may read, and one namespace per format in `formats`.

    `axes` has an entry for each axis in the order of `shape`, or is empty; so does a list `axes` in
    any namespace: all are permuted together with the data. `space` is the world in which the axes
    that have a direction lie. A plugin reads the common fields and its own namespace; the others
    travel through untouched. `encoding` is the encoding of text in bytes (``utf-8``; None: they are
    bytes, or ASCII). `items` is set on stacks whose sources differ in metadata: a callable that
    returns an iterator of one mapping for each index of the first axis, in the form of a sidecar.
    `later` is an array source that has more metadata when all elements have been read
    (`completed`): `common`, a mapping as of `to_dict`, and `items`.

    It cannot be changed; `replace` makes other metadata.

    >>> meta = Metadata("a test", units="K", attributes={"by": "hand"})
    >>> report = raconvert.write("noted.ra", np.zeros((3, 2)), meta=meta)
    >>> raconvert.open("noted.ra").meta.attributes
    {'by': 'hand'}
    """

    __slots__ = (
        "attributes", "axes", "description", "encoding", "formats", "items", "later", "space",
        "units",
    )  # fmt: skip
    FIELDS: ClassVar[tuple[str, ...]] = (
        "description",
        "units",
        "encoding",
        "axes",
        "space",
        "attributes",
        "formats",
    )

    def __init__(
        self,
        description: str | None = None,
        units: str | None = None,
        axes: Iterable[Axis] | None = None,
        attributes: Mapping[str, Any] | None = None,
        formats: Mapping[str, Mapping[str, Any]] | None = None,
        encoding: str | None = None,
        space: Space | None = None,
        *,
        items: Callable[[], Iterator[dict[str, Any]]] | None = None,
        later: Any = None,
    ) -> None:
        _set(self, "description", description)
        _set(self, "units", units)
        _set(self, "encoding", encoding)
        _set(self, "axes", tuple(axes) if axes else ())
        _set(self, "space", space)
        _set(self, "attributes", Frozen(_plain(dict(attributes))) if attributes else _EMPTY)
        _set(
            self,
            "formats",
            Frozen({name: Frozen(own) for name, own in formats.items()}) if formats else _EMPTY,
        )
        _set(self, "items", items)
        _set(self, "later", later)

    if TYPE_CHECKING:
        description: str | None
        units: str | None
        encoding: str | None
        axes: tuple[Axis, ...]
        space: Space | None
        attributes: Mapping[str, Any]
        formats: Mapping[str, Mapping[str, Any]]
        items: Callable[[], Iterator[dict[str, Any]]] | None
        later: Any

    def replace(self, **fields: Any) -> Metadata:
        """Return the metadata with other values of some fields; all others stay.

        >>> meta = Metadata(units="m")
        >>> meta.replace(units="km").units, meta.units
        ('km', 'm')

        Raises `TypeError` for a field that metadata does not have.
        """
        return Metadata(**{**{field: getattr(self, field) for field in self.__slots__}, **fields})

    def with_format(self, name: str, **fields: Any) -> Metadata:
        """Return the metadata with further fields in the namespace of a format.

        >>> Metadata().with_format("nrrd", number=1).formats
        {'nrrd': {'number': 1}}

        Raises nothing.
        """
        own = {**self.formats.get(name, {}), **fields}
        return self.replace(formats={**self.formats, name: own})

    def without_format(self, name: str, *fields: str) -> Metadata:
        """Return the metadata without some fields of a namespace, or without the namespace.

        >>> Metadata(formats={"nrrd": {"min": 0, "max": 9}}).without_format("nrrd", "min").formats
        {'nrrd': {'max': 9}}

        Raises nothing.
        """
        own = {k: v for k, v in self.formats.get(name, {}).items() if fields and k not in fields}
        others = {key: space for key, space in self.formats.items() if key != name}
        return self.replace(formats={**others, name: own} if own else others)

    @property
    def companions(self) -> dict[str, str]:
        """The other arrays of its file without which the array is not complete, and what they hold.

        All mappings `companions` of the namespaces together: from the name of an array, as this
        file has it, to what is lost without it, ``nulls`` or ``elements`` (see ``--allow``).
        """
        losses = {}
        for own in self.formats.values():
            companions = own.get("companions")
            if isinstance(companions, dict):
                losses.update({k: v for k, v in companions.items() if v in ("nulls", "elements")})
        return losses

    # The order and the number of axes

    def permuted(self, order: Sequence[int]) -> Metadata:
        """Return the metadata of an array whose axes are taken in this order, as by transpose.

        The items are dropped if another axis becomes the first.

        >>> Metadata(axes=[Axis("y"), Axis("x")]).permuted((1, 0)).axes
        (Axis(x), Axis(y))

        Raises nothing.
        """
        return self._with_axes(
            lambda listed: [listed[axis] for axis in order],
            len(order),
            items=self.items if list(order[:1]) in ([], [0]) else None,
        )

    def with_axis(self, at: int, axis: Axis, ndim: int) -> Metadata:
        """Return the metadata of an array of `ndim` axes with one more, before axis `at`.

        >>> Metadata(axes=[Axis("x")]).with_axis(0, Axis("y"), 1).axes
        (Axis(y), Axis(x))

        Raises nothing.
        """
        meta = self._with_axes(lambda listed: [*listed[:at], None, *listed[at:]], ndim)
        if not meta.axes and axis:
            meta = meta.replace(axes=[Axis()] * (ndim + 1))
        if not meta.axes:
            return meta
        return meta.replace(axes=[*meta.axes[:at], axis, *meta.axes[at + 1 :]])

    def without_axis(self, at: int, ndim: int) -> Metadata:
        """Return the metadata of an array of `ndim` axes without axis `at`.

        >>> Metadata(axes=[Axis("y"), Axis("x")]).without_axis(0, 2).axes
        (Axis(x),)

        Raises nothing.
        """
        return self._with_axes(lambda listed: [*listed[:at], *listed[at + 1 :]], ndim)

    def sliced(self, key: Sequence[int | range]) -> Metadata:
        """Return the metadata of a part: `key` has an index or a range for each axis.

        The axis of an index is dropped. Labels are cut; origins move, those of the space too; a
        step multiplies the spacing, and a negative one turns a direction. The entry of a namespace
        for an axis that is cut is dropped, except for ``pixels``: the number of the axis in its
        file, the first index there and the step. Items are those of the part; for an index on the
        first axis, the metadata of its item is merged in.

        >>> meta = Metadata(axes=[Axis("y", labels="abc"), Axis("x", spacing=0.5)])
        >>> meta.sliced([range(1, 3), range(0, 6, 2)]).axes
        (Axis(y, labels=['b', 'c']), Axis(x, spacing=1.0))

        Raises nothing but what reading the items raises.
        """
        axes, space = [*self.axes], self.space
        if len(axes) == len(key):
            for axis, part in zip(self.axes, key, strict=True):
                first = part if isinstance(part, int) else part.start if len(part) else 0
                if space is not None and space.origin is not None and axis.vector is not None:
                    parts = zip(space.origin, axis.vector, strict=False)
                    moved = tuple(position + first * step for position, step in parts)
                    space = Space(space.frame, moved)
            axes = [
                axis.sliced(part)
                for axis, part in zip(self.axes, key, strict=True)
                if not isinstance(part, int)
            ]
        cut = self._with_axes(
            lambda listed: [
                entry if part.start == 0 and part.step == 1 else _part_of(entry, part)
                for entry, part in zip(listed, key, strict=True)
                if not isinstance(part, int)
            ],
            len(key),
        )
        meta = cut.replace(axes=axes if any(axes) else (), space=space, items=None, later=None)
        if self.items is None or not key:
            return meta
        if isinstance(key[0], range):
            return meta.replace(items=_chosen(self.items, key[0]))
        own = next(iter(_chosen(self.items, range(key[0], key[0] + 1))()), {})
        return meta._with_item(own, sum(isinstance(part, range) for part in key))

    def of_item(self, number: int, shape: Sequence[int], own: Mapping[str, Any]) -> Metadata:
        """Return the metadata of item `number` of a stack of `shape`.

        `own` is the metadata of this item alone, in the form of a sidecar. Raises nothing.
        """
        common = self if self.items is None else self.replace(items=None)
        return common.sliced([number, *map(range, shape[1:])])._with_item(own, len(shape) - 1)

    def _with_item(self, own: Mapping[str, Any], ndim: int) -> Metadata:
        """Return the metadata of an item of `ndim` axes: merged with `own`, that of it alone."""
        item = Metadata.from_dict(in_dims_order(own, "C"))
        return self.merged(item if len(item.axes) == ndim else item.without_axes())

    def merged(self, more: Metadata) -> Metadata:
        """Return the metadata with the additions and changes of a record, or of an item.

        >>> Metadata(units="m", description="a").merged(Metadata(units="km")).to_dict()
        {'description': 'a', 'units': 'km'}

        Raises nothing.
        """
        axes = more.axes or self.axes
        if len(self.axes) == len(more.axes):
            pairs = zip(self.axes, more.axes, strict=True)
            axes = tuple(Axis(**{**a.to_dict(), **b.to_dict()}) for a, b in pairs)
        return self.replace(
            description=more.description or self.description,
            units=more.units or self.units,
            encoding=more.encoding or self.encoding,
            axes=axes,
            space=more.space or self.space,
            attributes={**self.attributes, **more.attributes},
            formats={
                **self.formats,
                **{k: {**self.formats.get(k, {}), **own} for k, own in more.formats.items()},
            },
        )

    def without_axes(self) -> Metadata:
        """Return the metadata without its axes, those in namespaces too, and without the space.

        >>> Metadata(units="m", axes=[Axis("y")]).without_axes().to_dict()
        {'units': 'm'}

        Raises nothing.
        """
        formats = {
            name: {k: v for k, v in own.items() if k != "axes" or not isinstance(v, list)}
            for name, own in self.formats.items()
        }
        return self.replace(axes=(), space=None, formats=formats)

    def _with_axes(
        self, change: Callable[[list[Any]], list[Any]], ndim: int, **more: Any
    ) -> Metadata:
        """Change every list of axes of `ndim` entries; None in the result is an empty entry."""
        axes: Iterable[Axis] = self.axes
        if len(self.axes) == ndim:
            axes = [Axis() if axis is None else axis for axis in change(list(self.axes))]
            axes = axes if any(axes) else ()
        formats: dict[str, Mapping[str, Any]] = {}
        for name, own in self.formats.items():
            listed = own.get("axes")
            if isinstance(listed, list) and len(listed) == ndim:
                changed = [{} if entry is None else entry for entry in change(listed)]
                own = {**own, "axes": changed}  # noqa: PLW2901
            formats[name] = own
        return self.replace(axes=axes, formats=formats, **more)

    # Metadata that is complete after all elements have been read

    def without_later(self) -> Metadata:
        """Return metadata for other values, whose reading adds nothing. Raises nothing."""
        return self if self.later is None else self.replace(later=None)

    def completed(self) -> Metadata:
        """Return the metadata with that of `later`, after all elements have been read.

        Raises nothing but what `later` raises.
        """
        if self.later is None:
            return self
        complete = Metadata.from_dict(self.later.common)
        return self.replace(
            attributes={**complete.attributes, **self.attributes},
            formats={**complete.formats, **self.formats},
            items=self.later.items,
            later=None,
        )

    # As plain values

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, as plain values that YAML can hold.

        >>> Metadata(units="m", axes=[Axis(), Axis(name="x")]).to_dict()
        {'units': 'm', 'axes': [{}, {'name': 'x'}]}

        Raises nothing.
        """
        fields: dict[str, Any] = {}
        if self.description:
            fields["description"] = self.description
        if self.units:
            fields["units"] = self.units
        if self.encoding:
            fields["encoding"] = self.encoding
        if any(self.axes):
            fields["axes"] = [axis.to_dict() for axis in self.axes]
        if self.space is not None and (space := self.space.to_dict()):
            fields["space"] = space
        if self.attributes:
            fields["attributes"] = dict(self.attributes)
        formats = {name: dict(own) for name, own in self.formats.items() if own}
        if formats:
            fields["formats"] = formats
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Metadata:
        """Return the metadata that `to_dict` described; unknown fields are ignored.

        >>> Metadata.from_dict({"units": "m"}).units
        'm'

        Raises `TypeError` for axes that are not a list of mappings.
        """
        given = {name: fields[name] for name in cls.FIELDS if name in fields}
        if "axes" in given:
            given["axes"] = [
                Axis(**{f: axis[f] for f in Axis.FIELDS if f in axis}) for axis in given["axes"]
            ]
        if "space" in given:
            given["space"] = Space.from_dict(given["space"])
        return cls(**given)

    def __eq__(self, other: object) -> bool:
        """True for metadata with equal fields."""
        if not isinstance(other, Metadata):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in self.__slots__)

    __hash__: ClassVar[None]  # type: ignore[assignment]  # its attributes may be lists

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, ({field: getattr(self, field) for field in self.__slots__},)

    def __bool__(self) -> bool:
        """True if any field is set."""
        return bool(
            self.description
            or self.units
            or self.encoding
            or self.attributes
            or self.items is not None
            or any(self.axes)
            or (self.space is not None and self.space.to_dict())
            or any(self.formats.values())
        )

    def __repr__(self) -> str:
        return f"Metadata({self.to_dict()})"


NOTHING = Metadata()  # shared by all arrays without metadata


def _made(fields: dict[str, Any]) -> Metadata:
    """Unpickle metadata."""
    return Metadata(**fields)


def _part_of(entry: Any, part: range) -> Any:
    """Return the entry of a namespace for a part of its axis: ``pixels``, moved; else None."""
    pixels = entry.get("pixels") if isinstance(entry, dict) else None
    if not isinstance(pixels, dict):
        return None
    first, step = (pixels.get(key) for key in ("first", "step"))
    if type(first) is not int or type(step) is not int:
        return None
    start = part.start if len(part) else 0
    return {"pixels": {**pixels, "first": first + start * step, "step": step * part.step}}


def _chosen(
    items: Callable[[], Iterator[dict[str, Any]]], part: range
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Return a function that iterates over the items of a range of indices, in its order."""
    from itertools import islice

    def chosen() -> Iterator[dict[str, Any]]:
        if not part:
            return iter(())
        if part.step > 0:
            return islice(items(), part.start, part.stop, part.step)
        ascending = part[::-1]
        return iter([*islice(items(), ascending.start, ascending.stop, ascending.step)][::-1])

    return chosen


def in_dims_order(fields: Mapping[str, Any], index_order: str | None) -> dict[str, Any]:
    """Return `Metadata.to_dict` with axes in the order of `dims`, or back: fastest axis first.

    Sidecars and records list axes as an RA header lists its dims; an array in column-major order
    has its shape in that order already. Lists `axes` in namespaces go with it. Raises nothing.
    """
    turned = dict(fields)
    if index_order == "F":
        return turned
    if isinstance(turned.get("axes"), list):
        turned["axes"] = turned["axes"][::-1]
    formats = turned.get("formats")
    if isinstance(formats, dict):
        turned["formats"] = {
            name: {**own, "axes": own["axes"][::-1]}
            if isinstance(own, dict) and isinstance(own.get("axes"), list)
            else own
            for name, own in formats.items()
        }
    return turned


# The namespace of the core itself: what .ra files say of an array and NumPy cannot ---------------
# ``eltype`` and ``elbyte`` are the type in the file if NumPy lacks it, such as 128-bit integers
# and complex32; ``trailer`` is what follows the data: an `Extent`, or the bytes to be written.


NAME = RA
PAIR_BYTES = 4  # of complex32, carried as pairs of float16 on a new fastest axis


def own_of(meta: Metadata) -> Mapping[str, Any]:
    """Return the namespace of RA; empty if missing."""
    return meta.formats.get(NAME, {})


def own_only(meta: Metadata) -> dict[str, Mapping[str, Any]]:
    """Return namespaces that consist of that of RA alone."""
    return {NAME: own_of(meta)}


def trailer_of(meta: Metadata) -> Any:
    """Return the trailer, or None."""
    return own_of(meta).get("trailer")


def with_trailer(meta: Metadata, trailer: bytes) -> Metadata:
    """Return metadata with this trailer, which replaces any other."""
    return meta.with_format(NAME, trailer=trailer)


def without_trailer(meta: Metadata) -> Metadata:
    """Return metadata without its trailer."""
    return meta.without_format(NAME, "trailer") if "trailer" in own_of(meta) else meta


def without_pairs(meta: Metadata) -> Metadata:
    """Return metadata without the note that the fastest axis holds the parts of complex32."""
    pairs = own_of(meta).get("elbyte") == PAIR_BYTES
    return meta.without_format(NAME, "eltype", "elbyte") if pairs else meta


def take_trailer(fields: dict[str, Any]) -> Any:
    """Take the trailer out of metadata in the form of `Metadata.to_dict`; None without one."""
    return fields.get("formats", {}).get(NAME, {}).pop("trailer", None)


def replaced_trailer(fields: dict[str, Any], trailer: Any) -> dict[str, Any]:
    """Return metadata in the form of `Metadata.to_dict` with another trailer."""
    formats = fields["formats"]
    return {**fields, "formats": {**formats, NAME: {**formats[NAME], "trailer": trailer}}}


def carried(meta: Metadata) -> tuple[Any, Any]:
    """Return the type in the file if NumPy lacks it: RA's eltype and elbyte; else two None."""
    own = own_of(meta)
    return own.get("eltype"), own.get("elbyte")


# Metadata that is given for an array: refused if it does not fit ---------------------------------


def meta_for(array: Any, meta: Metadata) -> Metadata:
    """Return metadata that is given for an array, if it fits.

    Raises `UsageError` if it is not a `Metadata`, its axes are of another number, or labels of
    another length.
    """
    if not isinstance(meta, Metadata):
        raise UsageError(
            f"the metadata for array '{array.name}' is of the wrong type",
            expected="raconvert.Metadata, such as array.meta",
            got=type(meta).__name__,
            remedy="keys and values of your own: raconvert.Metadata(attributes={...})",
        )
    check_axes(array, meta.axes)
    return meta


def check_axes(array: Any, axes: Sequence[Axis]) -> None:
    """Refuse (`UsageError`) axes, in the order of `shape`, that do not fit those of an array."""
    if len(axes) != array.ndim and any(axis.to_dict() for axis in axes):
        raise _misfit(array, f"names {len(axes)} axes", array.ndim)
    for number, (axis, length) in enumerate(zip(axes, array.shape, strict=False)):
        if axis.labels is not None and len(axis.labels) != length:
            where = f"axis {number}" + (f" {axis.name!r}" if axis.name else "")
            raise _misfit(array, f"has {len(axis.labels)} labels for {where}", length)


def _misfit(array: Any, what: str, expected: Any) -> UsageError:
    return UsageError(
        f"the metadata for array '{array.name}' of shape {array.shape} {what}",
        expected=expected,
        remedy="change its `axes`, or leave them out: meta.replace(axes=[])",
    )
