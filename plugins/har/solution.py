"""GEMPACK solution files (.sl4): the variables, and the location of their results in a HAR file.

No specification is published; the tables were decoded from files, and compared with what HARPY and
HARr make of them. Variables are listed in ``VARS``, with the number of components each (``VNCP``)
and the sets it ranges over (``VCNA``, ``VCAR``, ``STNM``, ``SSZ``, ``ELST``, ``ELAD``, ``STEL``).
Components are counted from 1 in Fortran order. Which of them a table is about is listed twice: how
many of each variable (``OREX`` exogenous, ``CMND`` with results, ``SHCK`` shocked), and, of the
variables of which these are some but not all, which ones (``OREL``, ``CMNL``, ``SHCL``). Results
stand in ``CUMS`` from the position ``PCUM``, those of subtotal ``ddd`` in ``dddS``; shocks in
``SHOC`` from ``PSHK``.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from math import prod
from sys import byteorder
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.sources import Decoded
from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge
from raconvert.plugin import dtype_of

from .records import BIG, Records
from .tables import INTEGER, LABEL_MEMORY, MAX_RANK, REAL_MATRIX, TEXT, text
from .values import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.plugin import Element, Source

    from .walk import Header

    Values = np.ndarray[Any, Any]


_INTEGERS = ("VNCP", "VCNA", "VCAR", "SSZ", "ELAD", "OREX", "OREL", "CMND", "CMNL", "PCUM",
             "SHCK", "SHCL", "PSHK")  # fmt: skip
_TEXTS = ("VARS", "VCLB", "VCTP", "STNM", "ELST", "STEL")
_REALS = ("CUMS", "SHOC")
_NEEDED = (*_INTEGERS, *_TEXTS, *_REALS)
_LEVELS = ("VCLE", "LVOK", "LEVB", "LEVA")  # older files lack these
RESULTS, TOTAL = "RESULTS", "Cumulative"  # name of the axis of subtotals, and of its first index
WHEN, TIMES = "WHEN", ["before", "after"]  # name and labels of the axis of levels


class Result(Record):
    """A variable's part of one result: its range in a header, and the components it stands for.

    `components` are counted from 1; None for all of them in order.
    """

    header: str
    start: int
    count: int
    components: array[int] | None


class Variable(Record):
    """A variable: its axes in the order of GEMPACK, and the pieces that its values consist of.

    `results` has a list of pieces for each index of the last axis. Components that no piece covers
    are zero; if `unknown`, only those in `zeros` are, and the file has no result of the others.
    """

    name: str
    label: str
    units: str | None
    closure: str
    sets: list[tuple[str, int, list[str] | None]]
    results: list[list[Result]]
    zeros: array[int] | None
    unknown: bool


def is_solution(headers: Iterable[Header]) -> bool:
    """True if all tables of a solution are there and can be read."""
    return set(_NEEDED) <= {header.name for header in headers if header.problem is None}


class Solution:
    """The tables of a solution file, and the variables that they are about."""

    def __init__(self, source: Source, framing: str, file: Any, headers: Iterable[Header]) -> None:
        self.source = source
        self.headers: dict[str, Header] = {header.name: header for header in headers}
        self._records = Records(source, file, framing)
        self._swap = (framing == BIG) != (byteorder == "big")
        self.ints = {name: self.integers(name) for name in _INTEGERS}
        self.texts = {name: self.strings(name) for name in _TEXTS}
        self.count = len(self.texts["VARS"])
        for name in ("VNCP", "VCNA", "OREX", "CMND", "PCUM", "SHCK", "PSHK"):
            self.expect(name, len(self.ints[name]), self.count)
        for name in ("VCLB", "VCTP"):
            self.expect(name, len(self.texts[name]), self.count)
        for name in ("SSZ", "ELAD"):
            self.expect(name, len(self.ints[name]), len(self.texts["STNM"]))
        self.expect("ELST", len(self.texts["ELST"]), len(self.texts["STNM"]))
        self.expect("VCAR", len(self.ints["VCAR"]), sum(self.ints["VCNA"]))

    def refuse(self, what: str, name: str, expected: object, got: object) -> Corrupt:
        """An error about a table of the solution."""
        return Corrupt(
            what,
            path=self.source.path,
            where=f"header '{name}'",
            expected=expected,
            got=got,
            remedy="read the headers as they are with `--in-opt solution=headers`",
        )

    def expect(self, name: str, got: int, expected: int) -> None:
        """Raise `Corrupt` if the length of a table is not the expected one."""
        if got != expected:
            what = "a table of the solution has another length than the others need"
            raise self.refuse(what, name, expected, got)

    def header(self, name: str, kind: str) -> Header:
        """The header of a table; `Corrupt` if it is missing, damaged, or of another type."""
        table = self.headers.get(name)
        if table is None:
            raise self.refuse("a table of the solution is missing", name, f"type {kind}", "nothing")
        if table.problem is not None:
            raise table.problem
        if table.type != kind or table.parts.boxes is not None:
            what = "a table of the solution has another form"
            raise self.refuse(what, name, f"type {kind}", f"type {table.type}")
        return table

    def _bytes(self, header: Header, width: int) -> bytes:
        pairs = zip(header.parts.offsets, header.parts.counts, strict=True)
        return b"".join(self._records.bytes_at(offset, width * count) for offset, count in pairs)

    def integers(self, name: str) -> array[int]:
        """The integers of a table."""
        numbers = array("i", self._bytes(self.header(name, INTEGER), 4))
        if self._swap:
            numbers.byteswap()
        if numbers and min(numbers) < 0:
            what = "a table of the solution has a negative number"
            raise self.refuse(what, name, "numbers of 0 and more", min(numbers))
        return numbers

    def strings(self, name: str) -> list[str]:
        """The strings of a table, without the blanks and NULs behind them."""
        header = self.header(name, TEXT)
        width = header.sizes[1]
        raw = text(self._bytes(header, width))
        return [raw[i : i + width].rstrip(" \0") for i in range(0, len(raw), width)]

    def lines(self) -> str:
        """The description of the simulation in the file; empty if missing."""
        return "\n".join(self.strings("VDSC")).strip() if "VDSC" in self.headers else ""

    def reals(self, name: str) -> int:
        """The number of values in a table of reals."""
        return prod(self.header(name, REAL_MATRIX).dims)

    # --- components of variables ----------------------------------------------------------------

    def chosen(
        self, counts: array[int], where: str, listed_in: str, listed: array[int],
        outside: _Chosen | None = None,
    ) -> _Chosen:  # fmt: skip
        """Select components of each variable: all, none, or some that are listed.

        A list of shocks may leave out variables of which all components are chosen, or those of
        which all exogenous components (`outside`) are, or none: the length of the list decides.
        """
        totals = self.ints["VNCP"]
        if any(n > most for n, most in zip(counts, totals, strict=True)):
            what = "more components of a variable than it has"
            raise self.refuse(what, where, list(totals[:5]), list(counts[:5]))
        some = [n if n < total else 0 for n, total in zip(counts, totals, strict=True)]
        if outside is not None and sum(some) != len(listed):
            parts = outside.counts
            some = [n if n != part else 0 for n, part in zip(counts, parts, strict=True)]
            if sum(some) != len(listed):
                some = list(counts)
        self.expect(listed_in, len(listed), sum(some))
        return _Chosen(self, counts, some, listed, listed_in, outside)

    # --- the variables --------------------------------------------------------------------------

    def sets(self) -> list[tuple[str, int, list[str] | None]]:
        """Name, size and elements of each set; the elements are None if they are not listed."""
        listed = []
        labels = 0
        names, elements = self.texts["STNM"], self.texts["STEL"]
        rows = zip(names, self.ints["SSZ"], self.ints["ELAD"], self.texts["ELST"], strict=True)
        for name, size, start, status in rows:
            own = elements[start - 1 : start - 1 + size] if status == "k" and start else None
            if own is not None and len(own) != size:
                what = f"set '{name}' has elements that are not there"
                raise self.refuse(what, "ELAD", f"{size} from {start}", len(elements))
            labels += len(own or ())
            if labels * LABEL_MEMORY > self.source.max_memory:
                raise TooLarge(
                    f"labels need more than {labels * LABEL_MEMORY} bytes",
                    path=self.source.path,
                    where="header 'STEL'",
                    expected=f"at most {self.source.max_memory} (`--max-memory`)",
                )
            listed.append((name, size, own))
        return listed

    def variables(self) -> list[Variable]:
        """All variables in the order of the file, then the levels of those that have them."""
        ints = self.ints
        exogenous = self.chosen(ints["OREX"], "OREX", "OREL", ints["OREL"])
        solved = self.chosen(ints["CMND"], "CMND", "CMNL", self._solved(exogenous))
        shocked = self.chosen(ints["SHCK"], "SHCK", "SHCL", ints["SHCL"], exogenous)
        subtotals = self._subtotals(exogenous)
        labels = [TOTAL, *self.strings("STDS")] if subtotals else []
        total, shocks = self.reals("CUMS"), self.reals("SHOC")
        listed = []
        for v, (name, sets) in enumerate(zip(self.texts["VARS"], self._sets_of(), strict=True)):
            outside, inside, shock = exogenous.of(v), solved.of(v), shocked.of(v)
            start = self._start("PCUM", v, solved.counts[v], total)
            change = self._start("PSHK", v, shocked.counts[v], shocks)
            results = [[Result("CUMS", start, solved.counts[v], inside),
                        Result("SHOC", change, shocked.counts[v], shock)]]  # fmt: skip
            for header, part in subtotals:
                pieces = self._shocks_of(v, change, shock, part)
                results.append([Result(header, start, solved.counts[v], inside), *pieces])
            listed.append(
                Variable(
                    name,
                    self.texts["VCLB"][v].strip(" "),
                    "%" if self.texts["VCTP"][v] == "p" else None,
                    self._closure(v),
                    [*sets, (RESULTS, len(results), labels)] if subtotals else sets,
                    results,
                    outside,
                    exogenous.counts[v] + solved.counts[v] < ints["VNCP"][v],
                )
            )
        listed += self._levels()
        names: set[str] = set()
        for variable in listed:
            if variable.name in names or not variable.name.rpartition("/")[2]:
                what = "a variable without a name of its own"
                raise self.refuse(what, "VARS", "one", variable.name)
            names.add(variable.name)
        return listed

    def _sets_of(self) -> list[list[tuple[str, int, list[str] | None]]]:
        """The sets of each variable, whose sizes make up its number of components."""
        sets = self.sets()
        listed = []
        start = 0
        rows = zip(self.texts["VARS"], self.ints["VNCP"], self.ints["VCNA"], strict=True)
        for name, count, rank in rows:
            numbers = self.ints["VCAR"][start : start + rank]
            start += rank
            if rank and not 1 <= min(numbers) <= max(numbers) <= len(sets):
                what = f"variable '{name}' is over a set that is not there"
                raise self.refuse(what, "VCAR", f"1 to {len(sets)}", list(numbers[:9]))
            own = [sets[n - 1] for n in numbers]
            if prod(size for _, size, _ in own) != count or rank > MAX_RANK:
                what = f"variable '{name}' has not the size of its sets"
                raise self.refuse(what, "VNCP", prod(size for _, size, _ in own), count)
            listed.append(own)
        return listed

    def _levels(self) -> list[Variable]:
        """The levels of variables before and after the simulation; empty if the file has none."""
        if not set(_LEVELS) <= set(self.headers):
            return []
        titles, present = self.strings("VCLE"), self.strings("LVOK")
        self.expect("LVOK", len(present), self.count)
        self.expect("VCLE", len(titles), self.count)
        sizes = [n if ok == "y" else 0 for n, ok in zip(self.ints["VNCP"], present, strict=True)]
        for name in ("LEVB", "LEVA"):
            self.expect(name, self.reals(name), sum(sizes))
        levels = []
        starts = [0, *accumulate(sizes)]
        for v, sets in enumerate(self._sets_of()):
            words = titles[v].split()
            if present[v] == "y":
                levels.append(
                    Variable(
                        f"levels/{words[2] if len(words) == 3 else self.texts['VARS'][v]}",
                        self.texts["VCLB"][v].strip(" "),
                        None,
                        "level",
                        [*sets, (WHEN, 2, TIMES)],
                        [[Result(name, starts[v], sizes[v], None)] for name in ("LEVB", "LEVA")],
                        None,
                        False,
                    )
                )
        return levels

    def _solved(self, exogenous: _Chosen) -> array[int]:
        """The components with results: CMNL, or all that are not exogenous if that is empty."""
        counts, totals = self.ints["CMND"], self.ints["VNCP"]
        partly = [v for v in range(self.count) if 0 < counts[v] < totals[v]]
        if self.ints["CMNL"] or not partly:
            return self.ints["CMNL"]
        listed = array("i")
        most = self.reals("CUMS")
        for v in partly:
            outside = set(exogenous.of(v) or ())
            if len(outside) + counts[v] == totals[v] and counts[v] <= most:
                listed.extend(n for n in range(1, totals[v] + 1) if n not in outside)
        return listed

    def _start(self, name: str, v: int, count: int, most: int) -> int:
        """The index, from 0, of the first of `count` values of a variable in a table of `most`."""
        start = self.ints[name][v] - 1
        if count and not 0 <= start <= most - count:
            what = f"results of '{self.texts['VARS'][v]}' that are not there"
            raise self.refuse(what, name, f"{count} of {most} values", f"from {start + 1}")
        return max(0, start)

    def _subtotals(self, exogenous: _Chosen) -> list[tuple[str, _Chosen]]:
        """The header of each subtotal, and the shocked components that it covers."""
        if "STLS" not in self.headers:
            return []
        number, *_ = self.integers("STLS") or (0,)
        if number:
            self.expect("STDS", len(self.strings("STDS")), number)
        subtotals = []
        for n in range(1, number + 1):
            self.expect(f"{n:03}S", self.reals(f"{n:03}S"), self.reals("CUMS"))
            counts, listed = self.integers(f"{n:03}C"), self.integers(f"{n:03}L")
            self.expect(f"{n:03}C", len(counts), self.count)
            chosen = self.chosen(counts, f"{n:03}C", f"{n:03}L", listed, exogenous)
            subtotals.append((f"{n:03}S", chosen))
        return subtotals

    def _shocks_of(
        self, v: int, start: int, shock: array[int] | None, part: _Chosen
    ) -> list[Result]:
        """The shocks of a variable in a subtotal, each a piece of one component."""
        if not part.counts[v]:
            return []
        own = shock if shock is not None else range(1, self.ints["VNCP"][v] + 1)
        wanted = part.of(v)
        index = {component: n for n, component in enumerate(own)}
        components = list(own) if wanted is None else list(wanted)
        if missing := [component for component in components if component not in index]:
            what = f"a subtotal of '{self.texts['VARS'][v]}' that is not shocked"
            raise self.refuse(what, part.name, "shocked components", missing[0])
        return [
            Result("SHOC", start + index[component], 1, array("i", [component]))
            for component in components
        ]

    def _closure(self, v: int) -> str:
        """The closure of a variable in words, such as ``2 of 6 exogenous, 1 shocked``."""
        count, exogenous, shocked = (self.ints[name][v] for name in ("VNCP", "OREX", "SHCK"))
        if not exogenous:
            return "endogenous"
        words = "exogenous" if exogenous == count else f"{exogenous} of {count} exogenous"
        return f"{words}, {shocked} shocked" if shocked else words


class _Chosen:
    """The components of each variable that a table lists, by numbers from 1."""

    def __init__(
        self, tables: Solution, counts: array[int], some: list[int], listed: array[int], name: str,
        outside: _Chosen | None,
    ) -> None:  # fmt: skip
        self.counts = counts
        self.name = name
        self._outside = outside
        self._tables = tables
        self._some = some
        self._starts = [0, *accumulate(some)]
        self._listed = listed

    def of(self, v: int) -> array[int] | None:
        """The components of a variable, counted from 1; None for all of them."""
        total = self._tables.ints["VNCP"][v]
        if self.counts[v] == total:
            return None
        if not self.counts[v]:
            return array("i")
        if not self._some[v] and self._outside is not None:
            return self._outside.of(v)
        components = self._listed[self._starts[v] : self._starts[v + 1]]
        if min(components) < 1 or max(components) > total or len(set(components)) < len(components):
            what = f"components of '{self._tables.texts['VARS'][v]}' that it has not"
            raise self._tables.refuse(
                what, self.name, f"1 to {total}, each once", list(components[:9])
            )
        return components


# The values of a variable of a solution file, put together from results and shocks ---------------


class Results(Decoded):
    """Array source over the values of one variable, slowest axis first."""

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
        """Read all results and shocks, each into its components."""
        own = self._variable
        rows = np.zeros((len(own.results), self.count // len(own.results)), self.dtype)
        if own.unknown:
            rows[:] = np.nan
            rows[:, _index_of(own.zeros)] = 0
        for row, pieces in zip(rows, own.results, strict=True):
            for piece in pieces:
                if piece.count:
                    row[_index_of(piece.components)] = self._read(piece)
        return rows

    def _read(self, piece: Result) -> Values:
        stored = Stored(self._source, self._headers[piece.header], self._element)
        values: Values = np.asarray(
            stored.part((..., slice(piece.start, piece.start + piece.count)))
        )
        return values.reshape(-1)


def _index_of(components: array[int] | None) -> Any:
    """The index, from 0, of components that are counted from 1; all of them for None."""
    return slice(None) if components is None else np.asarray(components, np.int64) - 1
