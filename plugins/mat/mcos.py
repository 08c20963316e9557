"""Objects of MATLAB's classes: where the properties of a `string` or a `table` lie.

No document of MathWorks defines this; the facts are those of real files. A variable of a class is a
reference, numbers of 32 bits: 0xDD000000, the number of dims, the dims, an id for each object, the
id of the class. What they refer to is in the subsystem of the file, an object of the class
``FileWrapper__``: a cell of which the first element lists the objects (uint8, read as int32)::

    version (2 to 4), number of names, 8 offsets; names, each ends with a NUL
    offset 1   classes: four numbers each, the number of the namespace and of the name come first
    offset 2   properties of objects that a `saveobj` made, in blocks
    offset 3   objects: six numbers each; class first, then at 3 and 4 the number of their block in
               the list at offset 2 or in that at offset 4
    offset 4   properties of all others, in blocks
    block      the number of properties, then for each the number of its name, its kind (1: a value)
               and the index of the value, counted from the third cell; an even number of numbers

Everything is counted from 0, names from 1, and the first class, object and block stand for none.
Behind the values come, by version, one to three cells: (4) unknown, (3, 4) aliases, and the values
that properties have by default, a struct for each class.

In level 5 the subsystem is the variable to which the header points: uint8, a MAT file of its own
without text in its header (`subsystem5`); in v7.3 it is ``#subsystem#/MCOS`` (`subsystem73`).
Properties that are objects themselves are references, too, stored as plain uint32.
"""

from __future__ import annotations

from copy import copy
from itertools import islice, pairwise

from raconvert.errors import Corrupt, RaconvertError, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from raconvert.plugin import Element, Source

    from .tree import Tree

    class Node(Protocol):
        """A value inside the subsystem: its class, its dims and its parts."""

        cls: str
        dims: tuple[int, ...]

        def members(self) -> Sequence[Node]:
            """The elements of a cell, in MATLAB's order."""

        def fields(self) -> Mapping[str, Node]:
            """The fields of a struct of 1 x 1, in order."""

        def texts(self) -> list[str] | None:
            """The rows of text that a cell holds; None if it holds anything else."""

        def add(self, tree: Tree, path: str) -> None:
            """Add it to a tree as any other value. Raises `Corrupt` if it is damaged."""

    class Cells(Protocol):
        """The cells of ``FileWrapper__``."""

        order: str
        count: int

        def head(self) -> bytes:
            """Read the bytes of the first cell."""

        def node(self, index: int) -> Node:
            """The value in one of the cells, counted from 0."""


MAGIC = 0xDD000000
LEAST = 5  # numbers of the shortest reference: MAGIC, number of dims, two dims, class
VERSIONS = {2: 1, 3: 2, 4: 3}  # version of the list: number of cells behind the values
FIRST = 2  # index of the cell with value 0
NUMBERS = 10  # length of the header of the list
IN_CLASS, IN_OBJECT, IN_PROPERTY = 4, 6, 3  # numbers of each in the list
IS_VALUE = 1  # kind of a property


class Reference:
    """The contents of a variable of a class: dims, the ids of its objects, the id of its class."""

    __slots__ = ("cls", "dims", "ids")

    def __init__(self, dims: tuple[int, ...], ids: list[int], cls: int) -> None:
        self.dims = dims
        self.ids = ids
        self.cls = cls


def reference_of(numbers: list[int]) -> Reference | None:
    """The reference in these numbers; None if they are not a reference."""
    if len(numbers) < LEAST or numbers[0] != MAGIC:
        return None
    rank = numbers[1]
    if not 2 <= rank <= len(numbers) - 3:
        return None
    return Reference(tuple(numbers[2 : 2 + rank]), numbers[2 + rank : -1], numbers[-1])


class Listed:
    """The list of objects in the first cell: names, classes, and where properties lie."""

    def __init__(self, raw: bytes, order: str, path: str) -> None:
        import numpy as np

        self.path = path
        self._numbers = np.frombuffer(raw[: len(raw) // 4 * 4], f"{order}i4")
        if self._numbers.size < NUMBERS:
            raise self.corrupt("is too short", f"{4 * NUMBERS} bytes", len(raw))
        version, count, *offsets = self._numbers[:NUMBERS].tolist()
        if version not in VERSIONS:
            raise Unsupported(
                "data of classes has an unknown version", path=path,
                expected="2 to 4", got=version,
            )  # fmt: skip
        self.behind = VERSIONS[version]
        starts = [4 * NUMBERS, *offsets[:5]]
        if starts != sorted(starts) or starts[-1] > len(raw) or any(n % 4 for n in starts):
            raise self.corrupt("has parts at impossible offsets", "in order", offsets)
        self.names = raw[starts[0] : starts[1]].split(b"\0")[: max(0, count)]
        parts = [self._numbers[a // 4 : b // 4] for a, b in pairwise(starts[1:])]
        self._classes, self._saved, self._objects, self._others = parts
        self._starts: dict[int, list[int]] = {}

    def corrupt(self, what: str, expected: object = None, got: object = None) -> Corrupt:
        """The error for a list that contradicts itself."""
        what = f"the list of objects of classes {what}"
        return Corrupt(what, path=self.path, expected=expected, got=got)

    def _row(self, part: Any, index: int, width: int, what: str) -> list[int]:
        """The `width` numbers of one class or object, counted from 1."""
        count = part.size // width
        if not 0 < index < count:
            raise self.corrupt(f"has no {what} {index}", f"1 to {count - 1}", index)
        row: list[int] = part[width * index : width * (index + 1)].tolist()
        return row

    def name(self, number: int) -> str:
        """A name, counted from 1."""
        if not 1 <= number <= len(self.names):
            raise self.corrupt(f"has no name {number}", f"1 to {len(self.names)}", number)
        return self.names[number - 1].decode("latin-1")

    def class_name(self, cls: int) -> str:
        """The name of a class, with its namespace."""
        namespace, name, *_ = self._row(self._classes, cls, IN_CLASS, "class")
        return f"{self.name(namespace)}.{self.name(name)}" if namespace else self.name(name)

    def object(self, number: int) -> tuple[int, list[list[int]]]:
        """The class of an object, and a row of three numbers for each of its properties."""
        cls, _, _, saved, other, _ = self._row(self._objects, number, IN_OBJECT, "object")
        part, block = (self._saved, saved) if saved else (self._others, other)
        starts = self._block_starts(part)
        if not 0 <= block < len(starts):
            raise self.corrupt(f"has no block {block}", f"0 to {len(starts) - 1}", block)
        first = starts[block]
        count = int(part[first])
        rows = part[first + 1 : first + 1 + IN_PROPERTY * count]
        return cls, rows.reshape(count, IN_PROPERTY).tolist()

    def _block_starts(self, part: Any) -> list[int]:
        """The index of the first number of each block, up to the first block that is cut off."""
        cached = self._starts.get(id(part))
        if cached is not None:
            return cached
        starts, start, numbers = [], 0, part.tolist()
        while start < len(numbers):
            end = start + 1 + IN_PROPERTY * numbers[start]
            if not start < end <= len(numbers):
                break
            starts.append(start)
            start = end + end % 2
        self._starts[id(part)] = starts
        return starts


class Objects:
    """The objects of one file, which become arrays and groups where a variable refers to them.

    `load` opens the subsystem when it is first needed; it returns None if the file has none.
    `classes` has a function for each class that adds the properties of one object.
    """

    def __init__(
        self,
        source: Source,
        load: Callable[[], Cells | None],
        classes: Mapping[str, Callable[[Values, Mapping[str, Node]], None]],
    ) -> None:
        self.source = source
        self._load = load
        self._classes = classes
        self._opened: tuple[Listed, Cells] | RaconvertError | None = None
        self._defaults: dict[int, Mapping[str, Node]] = {}
        self._walked: set[int] = set()
        self._inside: set[int] = set()

    def forget(self) -> None:
        """Drop what is only needed while the file is walked through."""
        self._opened = None
        self._defaults.clear()

    def _open(self) -> tuple[Listed, Cells]:
        """The list of objects and the cells; raises the same error again if they are damaged."""
        if self._opened is None:
            try:
                cells = self._load()
                if cells is None:
                    raise Corrupt("has no data of classes, to which a variable refers",
                                  path=self.source.path)  # fmt: skip
                self._opened = Listed(cells.head(), cells.order, self.source.path), cells
            except RaconvertError as error:
                self._opened = error
        if isinstance(self._opened, RaconvertError):
            raise copy(self._opened)  # since each variable adds its name to its error
        return self._opened

    def add(self, tree: Tree, path: str, reference: Reference, cls: str = "") -> None:
        """Add the object of a reference; `cls` is its class if the variable names one.

        Raises `Corrupt` for contradictions, `Unsupported` for objects that are used too often.
        """
        if cls and cls not in self._classes:
            tree.leave_out(path, cls)
            return
        listed, _ = self._open()
        name = listed.class_name(reference.cls)
        if cls not in ("", name):
            raise listed.corrupt("has another class than the variable", cls, name)
        if name not in self._classes or len(reference.ids) != 1:
            tree.leave_out(path, name)
            return
        number = reference.ids[0]
        tree.check_depth(path.count("/"), f"variable '{path}'")
        self._count(tree, number)
        self._inside.add(number)
        first = len(tree.arrays)
        try:
            properties = self._properties(number, reference.cls)
            self._classes[name](Values(self, tree, path, name), properties)
            tree.close_container(path, first)
        finally:
            self._inside.discard(number)

    def _count(self, tree: Tree, number: int) -> None:
        """Count the use of an object; refuse one inside itself, and too many repeated uses."""
        if number in self._inside:
            raise Corrupt("an object lies inside itself", path=self.source.path)
        tree.count()
        tree.again += number in self._walked
        if tree.again > tree.limits.repeated_uses:
            tree.full = True
            raise Unsupported(
                "the same objects are used too often", path=self.source.path,
                expected=f"at most {tree.limits.repeated_uses} uses after the first",
            )  # fmt: skip
        self._walked.add(number)

    def _properties(self, number: int, cls: int) -> dict[str, Node]:
        """The values of the properties of an object by name, defaults included."""
        listed, cells = self._open()
        owner, rows = listed.object(number)
        if owner != cls:
            raise listed.corrupt(f"has object {number} in another class", cls, owner)
        values = dict(self._default(cls))
        count = cells.count - FIRST - listed.behind
        for name, kind, value in rows:
            if kind != IS_VALUE:
                continue
            if not 0 <= value < count:
                raise listed.corrupt(f"has no value {value}", f"below {count}", value)
            values[listed.name(name)] = cells.node(FIRST + value)
        return values

    def _default(self, cls: int) -> Mapping[str, Node]:
        """The values that properties of a class have by default, from the last cell."""
        if cls not in self._defaults:
            _, cells = self._open()
            node = cells.node(cells.count - 1)
            members = node.members() if node.cls == "cell" else ()
            default = members[cls] if cls < len(members) else None
            self._defaults[cls] = {}
            if default is not None and (default.cls, default.dims) == ("struct", (1, 1)):
                self._defaults[cls] = default.fields()
        return self._defaults[cls]


class Values:
    """The properties of one object as arrays and groups of a tree, from a path on."""

    def __init__(self, objects: Objects, tree: Tree, path: str, cls: str) -> None:
        self.objects = objects
        self.tree = tree
        self.path = path
        self.cls = cls
        self.source = tree.source

    def corrupt(self, what: str, expected: object = None, got: object = None) -> Corrupt:
        """The error for properties that contradict each other."""
        what = f"{self.cls} {what}"
        return Corrupt(what, path=self.source.path, where=f"variable '{self.path}'",
                       expected=expected, got=got)  # fmt: skip

    def array(self, node: Node | None, what: str) -> Any:
        """The array of a property. Raises `Corrupt` if it is missing or not one array."""
        if node is None:
            raise self.corrupt(f"has no {what}")
        apart = self._apart()
        node.add(apart, self.path)
        self.tree.follow(apart)
        arrays = apart.arrays
        if len(arrays) != 1 or arrays[0].name != self.path:
            raise self.corrupt(f"has a property ({what}) that is not an array", got=node.cls)
        if arrays[0].problem is not None:
            raise arrays[0].problem
        return arrays[0]

    def text(self, node: Node | None, what: str) -> str:
        """Read a property that is one row of text; empty if it is missing or of another class."""
        if node is None or node.cls != "char" or 0 in node.dims:
            return ""
        array = self.array(node, what)
        if array.count != 1 or array.nbytes > self.tree.limits.document_bytes:
            raise self.corrupt(f"has a property ({what}) that is not one text", got=node.dims)
        return str(array[...].reshape(-1)[0])

    def number(self, node: Node | None, what: str) -> float:
        """Read a property that is one number."""
        array = self.array(node, what)
        if array.count != 1 or array.element.kind not in ("bool", "float", "int", "uint"):
            raise self.corrupt(f"has a property ({what}) that is not one number")
        return float(array[...].reshape(-1)[0])

    def texts(self, node: Node | None) -> list[str] | None:
        """Read a cell of rows of text; None for anything else."""
        if node is None or node.cls != "cell":
            return None
        return node.texts()

    def resolved(self, node: Node) -> list[Any]:
        """The arrays of a value, or of the object that it refers to, in a tree of their own."""
        apart = self._apart()
        inner = Values(self.objects, apart, self.path, self.cls)
        inner.add_value(node, self.path)
        self.tree.follow(apart)
        return apart.arrays

    def _apart(self) -> Tree:
        """A tree for values that the file's own tree does not show; it goes on counting."""
        from .tree import Tree

        apart = Tree(self.source, char="strings", sparse="dense")
        apart.follow(self.tree)
        return apart

    def add_value(self, node: Node, path: str) -> list[Any]:
        """Add a value, with references in it followed; return the added arrays."""
        tree = self.tree
        first = len(tree.arrays)
        node.add(tree, path)
        added = tree.arrays[first:]
        if any(map(_may_refer, added)):
            del tree.arrays[first:]
            for array in added:
                self._follow(array)
        return tree.arrays[first:]

    def _follow(self, array: Any) -> None:
        """Add an array to the tree, or the object to which it refers."""
        tree = self.tree
        reference = None
        if _may_refer(array) and _begins_with_magic(array):
            reference = reference_of(array[...].reshape(-1).tolist())
        if reference is None:
            tree.arrays.append(array)
            return
        mark = tree.mark()
        try:
            self.objects.add(tree, array.name, reference)
        except RaconvertError as error:
            if tree.full:
                raise
            tree.unreadable(array.name, error, mark)

    def add(self, element: Element, dims: tuple[int, ...], **fields: Any) -> None:
        """Add the object as one array; see `Tree.of_class`."""
        self.tree.of_class(self.path, self.cls, element, dims, **fields)


def _may_refer(array: Any) -> bool:
    """True if an array has the type and the shape of a reference."""
    return (
        array.problem is None
        and (array.element.kind, array.element.nbytes) == ("uint", 4)
        and array.count >= LEAST
        and array.ndim == 2
        and array.dims[1] == 1
    )


def _begins_with_magic(array: Any) -> bool:
    """True if the first number is that of a reference; reads one block at most."""
    from raconvert.arrays.blocks import blocks

    return any(int(block.reshape(-1)[0]) == MAGIC for block in islice(blocks(array, 4096), 1))
