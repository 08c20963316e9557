"""`Bundle`: named arrays in order, with attributes and groups, which closes their files."""

from __future__ import annotations

from collections.abc import Mapping

from raconvert.arrays.array import Array
from raconvert.declared import Record, Shown
from raconvert.errors import Unsupported, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn, TypeVar

    from pandas import DataFrame
    from xarray import Dataset

    from raconvert.files.source import Source

    Default = TypeVar("Default")


def some_sound(arrays: list[Array]) -> list[Array]:
    """Return the arrays as they are; if none can be read, raise the problem of the first."""
    problems = [array.problem for array in arrays]
    if problems and None not in problems:
        raise problems[0]  # type: ignore[misc]
    return arrays


def masks_of(arrays: Sequence[Array]) -> dict[int, Array]:
    """The mask of each array that has one here (`Metadata.companions`), by the array's identity."""
    by_name = {array.name: array for array in arrays}
    masks: dict[int, Array] = {}
    for array in arrays:
        if array.meta is None or not array.described:
            continue
        for name, what in array.meta.companions.items():
            groups = array.name.split("/")[:-1]
            ways = ("/".join([*groups[:n], name]) for n in range(len(groups), -1, -1))
            beside = "/".join([*groups, name.rpartition("/")[2]])
            mask = next((by_name[way] for way in (*ways, beside) if way in by_name), None)
            fits = mask is not None and mask.element.kind == "bool" and mask.dims == array.dims
            if what == "nulls" and fits and mask is not None:
                masks[id(array)] = mask
    return masks


def _state(arrays: list[Array]) -> tuple[int, int]:
    """Return a fingerprint that changes when arrays of a list are added, left out or renamed."""
    return len(arrays), Array.renamed


def _above(paths: list[str]) -> set[str]:
    """Return all groups around these paths."""
    groups: set[str] = set()
    for path in paths:
        while "/" in path and (path := path.rpartition("/")[0]) not in groups:
            groups.add(path)
    return groups


class Group(Mapping[str, Array]):
    """The arrays of a bundle in one group, by the names that they have there.

    The arrays keep their own names, those of the bundle.

    >>> with raconvert.open("groups.npz") as bundle:
    ...     list(bundle["subj"]), bundle["subj"]["x"].shape
    (['x', 'y'], (2, 3))
    """

    __slots__ = ("bundle", "path")

    def __init__(self, bundle: Bundle, path: str) -> None:
        self.bundle: Bundle = bundle
        self.path: str = path

    @property
    def names(self) -> list[str]:
        """The names in the group, in order."""
        inside = f"{self.path}/"
        return [name.removeprefix(inside) for name in self.bundle.names if name.startswith(inside)]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the group."""
        return self.bundle.groups.get(self.path, {})

    def __getitem__(self, name: str) -> Any:
        """The array, or group, of this name in the group; raises `KeyError`."""
        return self.bundle[f"{self.path}/{name}"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        from raconvert.arrays.summary import tree

        inside = f"{self.path}/"
        arrays = {name: self.bundle.get(inside + name) for name in self.names}
        groups = [
            path.removeprefix(inside) for path in self.bundle.groups if path.startswith(inside)
        ]
        return tree(f"Group {self.path!r} of {counted(len(arrays), 'array')}", arrays, groups)


class Bundle(Shown, Mapping[str, Array]):
    """Named arrays in order, the attributes of the file and of its groups, and notes.

    It is a mapping from the names of all arrays, groups included, to `Array`; ``bundle["subj"]`` is
    the `Group` of that name, a mapping of what lies in it. It owns what its arrays need open, and
    closes it at the end of a ``with`` block. `attributes` are those of the file; `groups` maps the
    path of each group that has attributes, or that no array lies in, to its attributes; `formats`
    holds one namespace per format about the file as a whole, as `Metadata.formats` does about an
    array. `aliases` maps further names that the file has for arrays and groups to their own.
    `more` are arrays that are read only if they are named, such as the lower levels of an image.
    `alike` returns how to find the elements in files that begin and end as this one (`Alike`), or
    None; it is left out if the bytes between may hold more than the elements of one array.

    >>> with raconvert.open("two.npz") as bundle:
    ...     print(bundle)
    ...     [(name, array.shape) for name, array in bundle.items()]
    Bundle of 2 arrays, npz file 'two.npz'
    ├── a  float64 (2, 3)
    └── b  float64 (2,)
    [('a', (2, 3)), ('b', (2,))]
    """

    __slots__ = (
        "_above", "_closers", "_known", "_places", "aliases", "alike", "arrays", "attributes",
        "decoded", "format", "formats", "groups", "more", "named", "notes", "path",
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
        alike: Callable[[], Alike | None] | None = None,
    ) -> None:
        self.arrays: list[Array] = arrays
        self.attributes: dict[str, Any] = {} if attributes is None else attributes
        self.groups: dict[str, dict[str, Any]] = {} if groups is None else groups
        self.formats: dict[str, dict[str, Any]] = {} if formats is None else formats
        self.notes: list[str] = [] if notes is None else notes  # may grow while data is read
        self.aliases: dict[str, str] = {} if aliases is None else aliases
        self.alike: Callable[[], Alike | None] | None = alike
        # Set by a plugin, for `--unscale`: decodes the values of an array that is stored as blocks.
        self.decoded: Callable[[Array], Array | None] | None = None
        self.more: list[Array] = []
        self.named: bool = False  # True if the user names its one array: ``FILE#NAME``
        self._closers = [] if closers is None else closers
        self._places: dict[str, int] = {}  # the index of each array by name, for the state `_known`
        self._known: tuple[Any, ...] = ()
        self._above: tuple[Any, ...] = (None, set())  # a state, and all groups around names then
        # Set by the core: where the bundle comes from, and the name of the format it is in.
        self.path: str = ""
        self.format: str = ""

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return [array.name for array in self.arrays]

    def __getitem__(self, name: str) -> Any:
        """The array of this name, as `get` finds it, else the `Group`; raises `KeyError`.

        Raises `TypeError` for anything but a text.
        """
        if not isinstance(name, str):
            raise TypeError(
                f"arrays of a Bundle have names, not {type(name).__name__}: "
                f"{', '.join(map(repr, self.names[:5]))}"
            )
        array = self.get(name)
        if array is not None:
            return array
        group = self.group(name)
        if group is None:
            raise KeyError(name)
        return group

    def group(self, path: str) -> Group | None:
        """Return the group of this path, or None. Raises nothing.

        >>> with raconvert.open("groups.npz") as bundle:
        ...     bundle.group("subj").names
        ['x', 'y']
        """
        path = self.without_aliases(path.strip("/"))
        if path not in self.groups:
            state = self.arrays, *_state(self.arrays), len(self.groups)
            if self._above[0] is not state[0] or self._above[1:-1] != state[1:]:
                self._above = (*state, _above([*self.names, *self.groups]))
            if path not in self._above[-1]:
                return None
        return Group(self, path)

    def get(  # type: ignore[override] # one signature for all that are overloaded
        self, name: str, default: Default | None = None
    ) -> Array | Default | None:
        """Return the array of this name, the first if there are several, or the default.

        An alias stands for its array; of two that share a name, the array's own goes first.

        >>> with raconvert.open("two.npz") as bundle:
        ...     bundle.get("b").nbytes, bundle.get("c")
        (16, None)

        Raises nothing.
        """
        array = self._own(name)
        if array is None and self.aliases and (real := self.without_aliases(name)) != name:
            array = self._own(real)
        return default if array is None else array

    def without_aliases(self, path: str) -> str:
        """Return a path with every alias in it replaced by the group or array that it stands for.

        Raises nothing.
        """
        real = ""
        for part in path.split("/"):
            real = f"{real}/{part}" if real else part
            real = self.aliases.get(real, real)
        return real

    def _own(self, name: str) -> Array | None:
        """Return the first array of this name, aliases aside, or None."""
        for _ in range(2):
            index = self._index(name)
            if index is None:
                return None
            if self.arrays[index].name == name:
                return self.arrays[index]
            self._known = ()  # the list was sorted, or an array in it replaced
        return None

    def _index(self, name: str) -> int | None:
        """Return the index of the array of this name; names are indexed again if they changed."""
        known = self._known
        if not known or known[0] is not self.arrays or known[1:] != _state(self.arrays):
            self._places = {}
            for index, array in enumerate(self.arrays):
                self._places.setdefault(array.name, index)
            self._known = (self.arrays, *_state(self.arrays))
        return self._places.get(name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refuse (`TypeError`) to be an array for numpy."""
        first = f": np.asarray(bundle[{self.names[0]!r}])" if self.arrays else ""
        raise TypeError(f"a Bundle of {counted(len(self.arrays), 'array')} is not an array{first}")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            self.get(name) is not None or self.group(name) is not None
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def unreadable(self) -> list[Array]:
        """The arrays whose elements cannot be read (`Array.problem`), in order."""
        return [array for array in self.arrays if array.problem is not None]

    def check_names(self, source: Source) -> None:
        """Refuse names in groups so deep that their paths take very much memory.

        A name of 20 KB can lie in 10,000 groups, whose paths have 100 MB. The limits are those of
        the source, and looked up only if there are groups. Raises `Unsupported`.
        """
        total = 0
        for name in (*self.names, *self.groups, *self.aliases):
            depth = name.count("/")
            if not depth:
                continue
            limits = source.limits
            total += len(name) * depth // 2
            if depth > limits.group_levels or total > limits.group_bytes:
                raise Unsupported(
                    "names of arrays lie in too many groups to be read safely",
                    path=self.path or None,
                    where=f"'{name[:80]}{'...' if len(name) > 80 else ''}'",
                    expected=f"at most {limits.group_levels} groups inside each other, of which "
                    f"all paths together have at most {limits.group_bytes} bytes",
                    got=f"{depth} groups",
                )

    def explicit_groups(self) -> dict[str, dict[str, Any]]:
        """Return the groups with attributes, and those in which no array and no group lies.

        Raises nothing.
        """
        if not self.groups:
            return {}
        shown = _above([*self.names, *self.groups])
        return {path: own for path, own in self.groups.items() if own or path not in shown}

    @property
    def forms(self) -> dict[str, str]:
        """The forms of groups that their members do not show, such as an array of structs, by path.

        All mappings `forms` of the namespaces together, for groups of this bundle.
        """
        spaces = [space.get("forms") for space in self.formats.values() if isinstance(space, dict)]
        forms_by_path = {path: form for forms in spaces if isinstance(forms, dict)
                 for path, form in forms.items() if isinstance(form, str)}  # fmt: skip
        if not forms_by_path:
            return {}
        existing = {*self.groups, *_above([*self.names, *self.groups])}
        return {path: form for path, form in forms_by_path.items() if path in existing}

    def only(self) -> Array:
        """Return the one array, which from now on closes the bundle when it is closed.

        >>> array = raconvert.open("grid.ra")  # by `only`
        >>> array.name, array.close()
        ('grid', None)

        Raises `IndexError` for a bundle without arrays.
        """
        array = self.arrays[0]
        array.owner = self
        return array

    def like(self, arrays: list[Array]) -> Bundle:
        """Return a bundle of other arrays with the same metadata of the file; it closes nothing.

        Raises nothing.
        """
        other = Bundle(
            arrays,
            attributes=self.attributes,
            groups=self.groups,
            formats=self.formats,
            notes=self.notes,
            aliases=self.aliases,
        )
        other.path, other.format, other.named = self.path, self.format, self.named
        return other

    def to_xarray(self) -> Dataset:
        """Return a Dataset of all arrays, which reads their elements when they are asked for.

        Axes of one name are one dimension; see `Array.to_xarray`. It can be used as long as the
        bundle is open.

        >>> with raconvert.open("two.npz") as bundle:
        ...     dict(bundle.to_xarray().sizes)
        {'a_dim_0': 2, 'a_dim_1': 3, 'b_dim_0': 2}

        Raises `MissingDependency` without xarray, and the `problem` of what cannot be read.
        """
        from raconvert.arrays.interop.xarray_objects import opened

        return opened(self.arrays, self.attributes, self.formats)

    def to_dataframe(self, *, index: bool = True) -> DataFrame:
        """Return arrays over the same axes as columns of a long table; see `Array.to_dataframe`.

        Raises what that raises, and `UsageError` for arrays over other axes.
        """
        from raconvert.arrays.interop.pandas_tables import table_of

        return table_of(self.arrays, index=index)

    def add_notes_of(self, other: Bundle) -> None:
        """Take over the notes of another bundle, and the duty to close it. Raises nothing."""
        self.notes += [f"'{other.path}': {note}" for note in other.notes]
        self.close_with(other.close)

    def close_with(self, closer: Callable[[], None]) -> None:
        """Call `closer` when the bundle is closed; the last one goes first. Raises nothing."""
        self._closers.append(closer)

    def close(self) -> None:
        """Close whatever the arrays need open. Raises what the closers raise."""
        for array in self.arrays:
            array.close()
        while self._closers:
            self._closers.pop()()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle: the arrays are opened again, nothing open is included."""
        left_out = {"_above", "_closers", "_known", "_places", "alike"}
        state = {name: getattr(self, name) for name in self.__slots__ if name not in left_out}
        empty = Bundle([])
        return {**state, **{name: getattr(empty, name) for name in left_out}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        from raconvert.arrays.summary import tree

        head = f"Bundle of {counted(len(self.arrays), 'array')}"
        head += f", {self.format} file {self.path!r}" if self.path else ""
        return tree(head, {array.name: array for array in self.arrays}, list(self.groups))


# Files that differ in nothing but elements, as a `Converter` finds them ------------------------


class Alike(Record):
    """A beginning and an end that many files share, and the way to their elements (`Bundle.alike`).

    `elements` takes the bytes between the two ends, and returns the elements, slowest axis first
    and little-endian; None if anything is odd, so that the file must be read the usual way. It
    raises nothing, and never needs more memory than reading does.
    """

    begin: bytes
    end: bytes
    elements: Callable[[bytes], bytes | None]


def raw_alike(source: Source, array: Array) -> Callable[[], Alike | None]:
    """`Bundle.alike` for a file in which the elements of the one array follow a header, to its end.

    The plugin promises that the header alone says all but the elements and the name. Raises
    nothing; what it returns raises what `Source.read_at` does.
    """

    def alike() -> Alike | None:
        extent = array.extent
        if extent is None or extent.checksum is not None:
            return None
        nbytes, width = extent.nbytes, extent.swap
        if extent.offset + nbytes != source.size:
            return None

        def elements(data: bytes) -> bytes | None:
            if len(data) != nbytes:
                return None
            return data if width == 1 else _swapped(data, width)

        return Alike(source.read_at(0, extent.offset), b"", elements)

    return alike


def _swapped(elements: bytes, width: int) -> bytes:
    """Return elements with the bytes of each number reversed."""
    from raconvert.files.copy import swap_in_place

    swapped = bytearray(elements)
    swap_in_place(memoryview(swapped), width)
    return bytes(swapped)
