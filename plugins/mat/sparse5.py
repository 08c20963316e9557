"""Sparse matrices of level 5: compressed columns."""

from __future__ import annotations

from functools import partial

from raconvert.arrays.dtypes import element
from raconvert.errors import RaconvertError

from .errors import in_variable
from .header import element_of_class
from .tables import ELEMENTS, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.source import Source


class SparseParts:
    """A sparse matrix in compressed columns: row of each element, start of each column, values."""

    def __init__(
        self, path: str, facts: Facts, ir: Any, jc: Any, parts: tuple[Any, ...], source: Source
    ) -> None:
        self.path = path
        self.facts = facts
        self.ir = ir
        self.jc = jc
        self.parts = parts
        self.source = source

    def places(self) -> tuple[Any, Any]:
        """The place of each stored element in column-major order, and the values."""
        from raconvert.arrays.memory import check_memory

        from .sources import column_places, load

        nbytes = 4 * (self.ir.nbytes + self.jc.nbytes + sum(p.nbytes for p in self.parts))
        what = f"'{self.source.path}': sparse variable '{self.path}'"
        check_memory(nbytes, self.source.max_memory, what)
        rows, columns = self.facts.dims
        try:
            stored = min(part.count for part in self.parts)
            places, total = column_places(load(self.ir), load(self.jc), rows, columns, stored)
        except RaconvertError as error:
            in_variable(error, self.path, self.source.path)
            raise
        return places, self._values(total)

    def _values(self, total: int) -> Any:
        from .sources import Numbers

        source, kind = self.source, element_of_class(self.facts) or ELEMENTS["double"]
        numbers = Numbers(
            self.path, source.path, source.max_memory, element=kind, dims=(total,),
            parts=tuple(_First(part, total) for part in self.parts),
        )  # fmt: skip
        return numbers[...]

    def arrays(self, kind: Any) -> list[tuple[str, Any, int, Any]]:
        """The parts as arrays: name, element, count, and what gives the data."""
        whole = element("int", 8)
        return [
            ("data", kind, min(p.count for p in self.parts), lambda: self._values(
                min(p.count for p in self.parts))),
            ("ir", whole, self.ir.count, partial(self._indices, self.ir)),
            ("jc", whole, self.jc.count, partial(self._indices, self.jc)),
        ]  # fmt: skip

    def _indices(self, part: Any) -> Any:
        from .sources import Numbers

        source = self.source
        return Numbers(self.path, source.path, source.max_memory, element=element("int", 8),
                       dims=(part.count,), parts=(part,))  # fmt: skip


class _First:
    """The first numbers of a part."""

    def __init__(self, part: Any, count: int) -> None:
        self.dtype = part.dtype
        self.count = count
        self.nbytes = count * int(part.dtype[2:])
        self.open = part.open

        self.region = part.region
