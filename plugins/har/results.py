"""The values of a variable of a solution file, put together from results and shocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.lazy import Decoded
from raconvert.plugin import dtype_of

from .values import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Element, Source

    from .solution import Result, Variable
    from .walk import Header

    Values = np.ndarray[Any, Any]


class Results(Decoded):
    """Array source over the values of one variable, seen slowest axis first."""

    def __init__(
        self, source: Source, headers: dict[str, Header], variable: Variable, element: Element
    ) -> None:
        dims = [size for _, size, _ in variable.sets]
        super().__init__(
            tuple(dims[::-1]),
            dtype_of(element),
            what=f"'{source.path}': variable '{variable.name}'",
            max_memory=source.max_memory,
        )
        self._source = source
        self._headers = headers
        self._element = element
        self._variable = variable

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order."""
        values = self.whole().reshape(-1)
        step = max(1, max_bytes // self.dtype.itemsize)
        for start in range(0, self.count, step):
            yield values[start : start + step]

    def load(self) -> Values:
        """Read the results and shocks into their places."""
        own = self._variable
        rows = np.zeros((len(own.results), self.count // len(own.results)), self.dtype)
        if own.unknown:
            rows[:] = np.nan
            rows[:, _places(own.zeros)] = 0
        for row, pieces in zip(rows, own.results, strict=True):
            for piece in pieces:
                if piece.count:
                    row[_places(piece.places)] = self._read(piece)
        return rows

    def _read(self, piece: Result) -> Values:
        stored = Stored(self._source, self._headers[piece.header], self._element)
        found: Values = np.asarray(
            stored.part((..., slice(piece.start, piece.start + piece.count)))
        )
        return found.reshape(-1)


def _places(places: Any) -> Any:
    """The index of components that are counted from 1; all of them for None."""
    return slice(None) if places is None else np.asarray(places, np.int64) - 1
