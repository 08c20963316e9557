"""Contents of a MAT file, collected during the walk: arrays, groups, and what was left out.

Paths: a variable is its name; fields of a struct lie below it; elements of a cell or of a struct
array lie below their linear index, counted from 1 as MATLAB does: ``c/3`` is ``c{3}``,
``s/2/name`` is ``s(2).name``.
"""

from __future__ import annotations

from functools import partial
from math import prod

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import MAX_SPAN, Element, needs_swap, spanned
from raconvert.arrays.metadata import Metadata
from raconvert.errors import Changed, Corrupt, RaconvertError, Unsupported
from raconvert.files.source import Extent

from .header import element_of_class
from .parts import FilePart, MemoryPart
from .tables import (
    INDEX,
    VALUE_BYTES,
    WIDE_COMPLEX,
    Facts,
    in_variable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from raconvert.files.source import Source

NO_FACTS = Facts("struct", (1, 1))
NAME_LETTERS = 256  # letters of a path that count as one more value
MAX_NOTES = 200  # notes of one file
MAX_NAMED = 5  # left-out variables that an error lists
MAX_AXES = 64  # numpy's limit


class _Names:
    """Names of one struct or file, each once; `_next` is the next number to try for a name."""

    __slots__ = ("_next", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def add(self, name: str) -> str:
        """Add a name, with a number behind it if it exists already; return the added one."""
        chosen = name
        if name in self._used:
            number = self._next.get(name, 2)
            while (chosen := f"{name}~{number}") in self._used:
                number += 1
            self._next[name] = number + 1
        self._used.add(chosen)
        return chosen


class Tree:
    """Arrays, groups and notes of one file; `values` are facts that paths alone do not show.

    `char` is ``strings`` or ``units``, `sparse` is ``dense`` or ``parts``, `times` is ``exact``,
    ``nearest`` or ``milliseconds``, as the options of `read`.
    """

    def __init__(self, source: Source, *, char: str, sparse: str, times: str = "exact") -> None:
        self.source = source
        self.limits = source.limits
        self.char = char
        self.sparse = sparse
        self.times = times
        self.arrays: list[Array] = []
        self.groups: dict[str, dict[str, Any]] = {}
        self.values: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self.left_out: list[str] = []
        self._members: dict[str, list[str]] = {"": []}  # names in the file and in structs, in order
        self._variables = _Names()
        self._seen = 0
        self.again = 0  # number of repeated uses of structs, cells and objects
        self.full = False  # True once a variable exceeds a limit; it is given up as a whole
        self._given_up = 0
        self._parts: dict[tuple[str, str], list[str]] = {}  # groups that were objects, by class

    # --- names ------------------------------------------------------------------------------

    def variable(self, name: str) -> str:
        """Add the name of a variable; return its path."""
        self.count()
        path = self._component(name, self._variables, "variable")
        self._members[""].append(path)
        return path

    def fields(self, names: list[str], path: str) -> list[str]:
        """The names of the fields of a struct as parts of paths, in order."""
        used = _Names()
        return [self._component(name, used, f"field of '{path}'") for name in names]

    def _component(self, name: str, used: _Names, what: str) -> str:
        """A name as one part of a path: not empty, not repeated, without '/'; notes a change."""
        chosen = name.replace("%", "%25").replace("/", "%2F") if "/" in name else name
        chosen = used.add(chosen or "unnamed")
        if chosen != name:
            self.note(f"{what} {name!r} was read as '{chosen}'")
        return chosen

    def count(self, more: int = 1) -> None:
        """Count values; refuse more of them than the memory allows."""
        self._seen += more
        limit = max(1024, self.source.max_memory // (2 * VALUE_BYTES))
        if self._seen > limit:
            self.full = True
            raise Unsupported(
                "holds too many values in cells and structs for the memory allowed",
                path=self.source.path,
                expected=f"at most {limit} (`--max-memory`)",
                remedy="allow more with `--max-memory`",
            )

    def follow(self, other: Tree) -> None:
        """Take over the counts of another tree of the same file."""
        self._seen, self.again, self.full = other._seen, other.again, other.full

    def _count_name(self, path: str) -> None:
        """Count a long path as several values, since it repeats the names of all levels."""
        if len(path) > NAME_LETTERS:
            self.count(len(path) // NAME_LETTERS)

    def check_depth(self, depth: int, where: str) -> None:
        """Refuse values inside values beyond what any program writes."""
        if depth > self.limits.nesting_levels:
            raise Unsupported(
                "structs and cells lie too deep inside each other",
                path=self.source.path,
                where=where,
                expected=f"at most {self.limits.nesting_levels} levels",
            )

    # --- damage -----------------------------------------------------------------------------

    def mark(self) -> tuple[int, ...]:
        """The numbers of entries added so far, for `unreadable` and `give_up`."""
        return len(self.arrays), len(self.groups), len(self.values), len(self.notes), len(
            self.left_out
        ), self._seen, self.again  # fmt: skip

    def unreadable(self, path: str, error: RaconvertError, mark: tuple[int, ...]) -> None:
        """Replace all that was added since a mark by one unreadable array at the path."""
        in_variable(error, path, self.source.path)
        self._replace(path, error, mark)

    def _replace(self, path: str, error: RaconvertError, mark: tuple[int, ...]) -> None:
        if isinstance(error, Changed):  # all that was read before may be wrong, too
            raise error
        error.__context__ = error.__cause__ = None  # they would keep the whole walk in memory
        error.__traceback__ = None
        arrays, groups, values, notes, left_out, self._seen, self.again = mark
        del self.arrays[arrays:], self.notes[notes:], self.left_out[left_out:]
        for entries, count in ((self.groups, groups), (self.values, values)):
            while len(entries) > count:
                entries.popitem()
        self.arrays.append(Array.unreadable(path, error))

    def give_up(
        self, path: str, error: RaconvertError, mark: tuple[int, ...], offset: int = 0
    ) -> None:
        """Replace a variable by an unreadable array; raise if too many have exceeded limits.

        If not even its name can be read (`path` is empty), it is named by its `offset`.
        """
        self._given_up += self.full
        if self._given_up > self.limits.skipped_variables:
            raise error
        self.full = False
        in_variable(error, path, self.source.path)
        self._replace(path or self._variables.add(f"variable at byte {offset}"), error, mark)

    # --- values -----------------------------------------------------------------------------

    def leave_out(self, path: str, cls: str, reason: str = "is not an array") -> None:
        """Note a value that is not read, with its class and the reason."""
        self.left_out.append(f"'{path}' ({cls})")
        self.note(f"variable '{path}' of class {cls} was left out: it {reason}")

    def note(self, text: str) -> None:
        """Add a note, up to `MAX_NOTES` of them."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)
        elif len(self.notes) == MAX_NOTES:
            self.notes.append(f"there are more than {MAX_NOTES} notes, the others are not shown")

    def was_object(self, path: str, cls: str) -> None:
        """Note that a struct was an object; its class goes into the namespace."""
        facts = {"class": "struct", "dims": [1, 1]}
        self.values.setdefault(path, facts)["object"] = cls
        self.note(f"variable '{path}' of class {cls} was read as the struct of its fields")

    def was_class(self, path: str, cls: str, parts: str) -> None:
        """Note that a group was an object of one of MATLAB's classes, and which parts it has."""
        facts = {"class": "struct", "dims": [1, 1]}
        self.values.setdefault(path, facts)["object"] = cls
        self._parts.setdefault((cls, parts), []).append(path)

    def container(self, path: str, facts: Facts, fields: list[str] | None = None) -> None:
        """Record the facts of a cell or struct that the paths of its members do not show."""
        scalar = facts.cls == "struct" and facts.dims == (1, 1)
        if scalar and fields:
            self._members[path] = fields
        self._count_name(path)
        if self._is_hole(path, facts):
            return
        # The paths of its members show a struct of 1 x 1, unless they look like those of a cell.
        if not scalar or facts.is_global or not fields or all(map(INDEX.fullmatch, fields)):
            described = {"class": facts.cls, "dims": list(facts.dims), "fields": fields}
            self.values[path] = without_defaults({**described, "global": facts.is_global})
        if prod(facts.dims) == 0 or fields == []:
            self.groups[path] = {}

    def _is_hole(self, path: str, facts: Facts) -> bool:
        """True for ``{}`` in a cell or struct array, which is written for a missing member."""
        if facts.cls != "cell" or facts.dims != (0, 0) or facts.is_global:
            return False
        around = self.values.get(above(path))
        if around is not None:
            return bool(around["class"] == "cell")
        around = self.values.get(above(above(path)), {})
        return around.get("class") == "struct" and around["dims"] != [1, 1]

    def close_container(self, path: str, first: int, facts: Facts = NO_FACTS) -> None:
        """Add the group of a container without arrays; `first` is the index of its first array."""
        if len(self.arrays) == first and not self._is_hole(path, facts):
            self.groups.setdefault(path, {})

    def check_dims(self, dims: tuple[int, ...], itemsize: int, where: str) -> None:
        """Refuse too many axes, and dims that are negative or span too much."""
        if len(dims) > MAX_AXES:
            raise Unsupported("array has too many axes", path=self.source.path, where=where,
                              expected=f"at most {MAX_AXES}", got=len(dims))  # fmt: skip
        if any(n < 0 for n in dims) or spanned(dims, itemsize) > MAX_SPAN:
            raise Corrupt("dims that no array has", path=self.source.path, where=where, got=dims)

    def numeric(
        self, path: str, facts: Facts, parts: tuple[Any, ...], storage: dict[str, Any]
    ) -> None:
        """Add a full array of numbers; `parts` are the real and, if complex, the imaginary part."""
        element = element_of_class(facts)
        if element is None:
            self.leave_out(path, self.class_name(facts), "has no element type that could hold it")
            return
        extent = None
        first = parts[0]
        dtype = getattr(first, "dtype", "")
        real = element_of_class(facts._replace(complex=False)) if facts.complex else element
        if dtype[1:] == _code(real):
            element = _ordered(element, dtype[0])
            if len(parts) == 1 and isinstance(first, FilePart) and not facts.logical:
                extent = self.source.extent(first.offset, first.nbytes, needs_swap(element))
        data = partial(_numbers, path, self.source, element, facts.dims, parts)
        self.lazy(path, facts, element, data, storage, extent)

    def nothing(self, path: str, order: str) -> None:
        """Add the empty matrix, which is only a tag in a file of level 5."""
        nothing = MemoryPart(b"", order + "f8")
        self.numeric(path, Facts("double", (0, 0)), (nothing,), {"stored": "nothing"})

    def lazy(
        self,
        path: str,
        facts: Facts,
        element: Element,
        data: Any,
        storage: dict[str, Any],
        extent: Extent | None = None,
    ) -> None:
        """Add a full array of numbers; `data` opens its source when it is needed."""
        cls = facts.cls if facts.complex and facts.cls in WIDE_COMPLEX else None
        own = without_defaults({"class": cls, "global": facts.is_global})
        storage = {"class": self.class_name(facts), **storage}
        self._add(path, element, facts.dims, own, data=data, storage=storage, extent=extent)

    def text(self, path: str, facts: Facts, load: Callable[[], Any], storage: Any) -> None:
        """Add a char array; `load` returns its units in stored order."""
        dims, columns = facts.dims, facts.dims[-1]
        own = without_defaults({"class": "char", "global": facts.is_global})
        storage = {"class": "char", **storage}
        if self.char == "units":
            data = partial(_units, path, self.source, dims, load)
            self._add(path, Element("uint", 2, "<"), dims, own, data=data, storage=storage)
            return
        width = max(1, columns)
        element = Element("user", 4 * width, "|", f"<U{width}")
        data = partial(_chars, path, self.source, dims, load)
        own["columns"] = columns
        self._add(path, element, dims[:-1], own, data=data, storage=storage)

    def sparse_matrix(
        self, path: str, facts: Facts, load: Callable[[], Any], arrays: Any, storage: Any
    ) -> None:
        """Add a sparse matrix, dense or in parts.

        `load` reads column-major indices and values; `arrays` lists the parts: name, element,
        count, and how to read it.
        """
        element = element_of_class(facts)
        if element is None:
            self.leave_out(path, self.class_name(facts), "has no element type that could hold it")
            return
        storage = {"class": f"sparse {self.class_name(facts)}", **storage}
        own = without_defaults({"class": "sparse", "global": facts.is_global})
        if self.sparse == "dense":
            data = partial(_sparse, path, self.source, facts.dims, element, load)
            self._add(path, element, facts.dims, own, data=data, storage=storage)
            return
        self.groups[path] = {"sparse": "compressed columns, indices from 0",
                             "shape": list(facts.dims)}  # fmt: skip
        for name, kind, count, read in arrays(element):
            self._add(f"{path}/{name}", kind, (count,), {}, data=read, storage=storage)

    def of_class(
        self,
        path: str,
        cls: str,
        element: Element,
        dims: tuple[int, ...],
        *,
        data: Any,
        own: dict[str, Any] | None = None,
        attributes: dict[str, Any] | None = None,
        units: str | None = None,
    ) -> None:
        """Add an object of one of MATLAB's classes as an array; `own` goes into its namespace."""
        self.count()
        meta = Metadata(units=units, attributes=attributes)
        own = {"class": cls, **(own or {})}
        self._add(path, element, dims, own, data=data, storage={"class": cls}, meta=meta)

    def _add(
        self,
        path: str,
        element: Element,
        dims: tuple[int, ...],
        own: dict[str, Any],
        *,
        data: Any,
        storage: dict[str, Any],
        extent: Extent | None = None,
        meta: Metadata | None = None,
    ) -> None:
        """Add an array; `own` are the facts for its namespace."""
        self._count_name(path)
        meta = meta or Metadata()
        meta = meta.with_format("mat", **own) if own else meta
        self.arrays.append(
            Array(
                element,
                dims,
                name=path,
                index_order="F" if len(dims) > 1 else "C",
                meta=meta,
                extent=extent,
                data=data,
                storage=storage,
            )
        )

    def class_name(self, facts: Facts) -> str:
        """MATLAB's name of the class, after the word "complex" for complex numbers."""
        name = "logical" if facts.logical else facts.cls
        return f"complex {name}" if facts.complex else name

    def _note_bare(self) -> None:
        """Note the structs without fields, which hold nothing but their dims."""
        bare = [
            path
            for path, facts in self.values.items()
            if facts["class"] == "struct" and facts.get("fields") == [] and prod(facts["dims"])
        ]
        if bare:
            named = ", ".join(f"'{path}'" for path in bare[:MAX_NAMED])
            more = ", ..." if len(bare) > MAX_NAMED else ""
            self.note(f"structs without fields, kept as empty groups: {named}{more}")

    def _note_classes(self) -> None:
        """Note the groups that were objects of MATLAB's classes."""
        for (cls, parts), paths in self._parts.items():
            read = [path for path in paths if self.values.get(path, {}).get("object") == cls]
            if read:
                named = ", ".join(f"'{path}'" for path in read[:MAX_NAMED])
                more = f" and {len(read) - MAX_NAMED} more" if len(read) > MAX_NAMED else ""
                self.note(f"class {cls}, read as a group of {parts}: {named}{more}")

    def finish(self) -> dict[str, Any]:
        """Return the namespace of the file; refuse a file without any array.

        Groups without arrays come behind the arrays in a bundle. If they lay before them in the
        file, the namespace lists the order of all members.
        """
        self._check_arrays()
        self._note_bare()
        self._note_classes()
        empty = {path for path, attributes in self.groups.items() if not attributes}
        orders = {}
        for path in {above(group) for group in empty} & self._members.keys():
            prefix = f"{path}/" if path else ""
            members = self._members[path]
            if members != sorted(members, key=lambda name: prefix + name in empty):
                orders[path] = members
        variables = orders.pop("", None)
        for path, members in orders.items():
            self.values.setdefault(path, {"class": "struct", "dims": [1, 1]})["fields"] = members
        forms = forms_of(self.values, [array.name for array in self.arrays], self.groups)
        return without_defaults(
            {"variables": variables, "values": self.values or None, "forms": forms or None}
        )

    def _check_arrays(self) -> None:
        """Refuse a file without a readable array; raises the error of the first unreadable one."""
        problems = [array.problem for array in self.arrays]
        if None in problems:
            return
        if problems:
            raise problems[0]  # type: ignore[misc]
        named = ", ".join(self.left_out[:MAX_NAMED])
        more = ", ..." if len(self.left_out) > MAX_NAMED else ""
        empty = ", ".join(f"'{path}' (empty)" for path in list(self.groups)[:MAX_NAMED])
        raise Unsupported(
            "holds no array",
            path=self.source.path,
            expected="numeric, logical, char or sparse variables",
            got=(named + more) or empty or "no variables",
        )


def _code(element: Element | None) -> str:
    """The storage type of an element, as in `STORED`; empty without one."""
    letters = {"float": "f", "int": "i", "uint": "u", "bool": "u"}
    return f"{letters[element.kind]}{element.nbytes}" if element else ""


def _ordered(element: Element, order: str) -> Element:
    """The element in a byte order, if it has one."""
    return element if element.order == "|" else element._replace(order=order)


def _numbers(path: str, source: Source, element: Element, dims: Any, parts: Any) -> Any:
    from .sources import Numbers

    return Numbers(path, source.path, source.max_memory, element=element, dims=dims, parts=parts)


def _chars(path: str, source: Source, dims: Any, load: Any) -> Any:
    from .sources import Chars

    return Chars(path, source.path, source.max_memory, dims=dims, load=load)


def _units(path: str, source: Source, dims: Any, load: Any) -> Any:
    from .sources import Units

    return Units(path, source.path, source.max_memory, dims=dims, load=load)


def _sparse(path: str, source: Source, dims: Any, element: Element, load: Any) -> Any:
    from .sources import Sparse

    return Sparse(path, source.path, source.max_memory, dims=dims, element=element, load=load)


# The namespace `mat`: facts of structs and cells that paths alone do not show ---------------------
# Of a file: ``variables`` (their order, if the arrays alone do not show it) and ``values``, which
# maps the path of a struct or cell to ``class``, ``dims``, ``fields`` and ``global``; ``forms`` are
# the forms that targets without structs and cells report as lost. Of an array: ``class``,
# ``columns`` of a char array, ``global``.


def above(path: str) -> str:
    """The group in which a path lies; empty for the file itself."""
    return path.rpartition("/")[0]


def forms_of(
    values: dict[str, dict[str, Any]], arrays: list[str], groups: Iterable[str]
) -> dict[str, str]:
    """The form (class and dims) of each group that the paths of its members do not show."""
    if not values:
        return {}
    paths = set(groups)
    for name in arrays:
        path = name
        while path and path not in paths:
            paths.add(path)
            path = above(path)
    forms = {}
    for path, facts in values.items():
        cls, dims = facts["class"], facts["dims"]
        if cls == "cell":
            shown = len(dims) == 2 and dims[0] == 1 and f"{path}/{dims[1]}" in paths
        else:
            shown = dims == [1, 1] and not all(map(INDEX.fullmatch, facts.get("fields") or [""]))
        if not shown or facts.get("global"):
            forms[path] = f"{cls} {' x '.join(map(str, dims))}"
    return forms


def without_defaults(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without those that are None or False."""
    return {name: value for name, value in facts.items() if value not in (None, False)}
