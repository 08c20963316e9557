"""`Conversion`: one run from a source to a destination, and `Report`: its result.

`judge` records changes and losses in the report, or refuses them, all at once.
"""

from __future__ import annotations

from raconvert import registry
from raconvert.arrays.dtypes import few_lengths, little, size, type_name
from raconvert.declared import Shown
from raconvert.errors import LISTED, WouldLose, counted, worded
from raconvert.plugin import EQUIVALENT, Fit, first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened
    from raconvert.plugin import Plan, Plugin


_MOVES = {
    ("F", "C"): "transposed to row-major order",
    ("C", "F"): "transposed to column-major order",
}


_OF_A_RUN = ("about", "by_shortcut", "failed", "sources")  # fields not taken from another process
_MOST_LINES = 5  # about different arrays; more become one line


class _Once(list["Any"]):
    """A list of hashable values that only grows, with a fast test of membership."""

    _seen: set[Any] | None = None  # the first `_count` items
    _count = 0

    def __contains__(self, item: object) -> bool:
        if self._seen is None:
            self._seen = set()
        self._seen.update(self[self._count :])
        self._count = len(self)
        return item in self._seen

    def add(self, items: Iterable[Any]) -> None:
        """Append the new items, each once."""
        for item in items:
            if item not in self:
                self.append(item)


class Report(Shown):
    """The result of `convert`.

    `sources` and `written` are paths; `skipped` and `left_out` are pairs of path and reason, for
    destinations that stay and sources that cannot be read; `notes` one-line remarks about the
    sources; `equivalent` and `allowed` the changes and losses; `arrays` are (name, type, shape,
    dims) of the written arrays, `nbytes` the size of their elements; `failed` (path, error) pairs
    of a batch that went on; `planned` is True after a dry run; `about` maps each note and each
    change of a batch to the sources that it is about.

    >>> report = raconvert.convert("grid.ra", "grid.mat")
    >>> report.written, report.source_format, report.target_format, report.nbytes
    (['grid.mat'], 'ra', 'mat', 48)
    >>> [str(fit) for fit in report.equivalent]
    []
    """

    __slots__ = (
        "about", "allowed", "arrays", "by_shortcut", "equivalent", "failed", "files", "left_out",
        "nbytes", "notes", "planned", "skipped", "source_count", "source_format", "sources",
        "target", "target_format", "written",
    )  # fmt: skip

    def __init__(self, sources: list[str]) -> None:
        self.sources: list[str] = sources
        self.source_count: int = len(sources)
        self.source_format: str = ""
        self.target_format: str = ""
        self.target: str = ""
        self.written: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self.failed: list[tuple[str, Exception]] = []
        self.left_out: list[tuple[str, str]] = []
        self.notes: _Once = _Once()
        self.equivalent: _Once = _Once()
        self.allowed: _Once = _Once()
        self.about: dict[str | Fit, list[str]] = {}
        self.arrays: list[tuple[str, str, tuple[int, ...], str]] = []
        self.nbytes: int = 0
        self.planned: bool = False
        self.by_shortcut: bool = False  # True: by that of `Converter`, maybe not on the disk yet
        self.files: int = 0  # destinations written, or planned; sidecars are not counted

    def add_arrays(self, arrays: list[Array]) -> None:
        """Record the arrays that are about to be written. Raises nothing."""
        for array in arrays:
            kind = type_name(little(array.element))  # reports name types without byte order
            self.arrays.append((array.name, kind, array.shape, axes(array)))
            self.nbytes += array.nbytes

    def add_order(self, origins: list[Array], arrays: list[Array]) -> None:
        """Record the arrays that were moved to another order, or read with the axes as listed.

        Raises nothing.
        """
        moved: dict[str, list[str]] = {}
        for origin, array in zip(origins, arrays, strict=True):
            orders = origin.index_order, array.index_order
            if orders[0] == orders[1] or array.ndim < 2:
                continue
            if orders in _MOVES:
                moved.setdefault(f"{_MOVES[orders]}, [i,j] kept", []).append(array.name)
            if origin.index_order is None and array.index_order == "F":
                shape = f"({', '.join(map(str, array.shape))})"
                self.add_notes(
                    [
                        f"array '{array.name}': its axes have no index order and are taken as "
                        f"listed, {shape}; `--index-order C` reads them reversed"
                    ]
                )
        for what, names in moved.items():
            if len(names) > _MOST_LINES:
                self.add_notes([f"{len(names)} arrays: {what}: {first_of(names)}"])
            else:
                self.add_notes([f"array '{name}': {what}" for name in names])

    @property
    def says_something(self) -> bool:
        """True if there is a line about the file besides that it was written."""
        return bool(self.notes or self.equivalent or self.allowed or self.skipped)

    def rename(self, names: dict[str, str]) -> None:
        """Replace the names of temporary files by those of their sources. Raises nothing."""
        self.sources = [names.get(path, path) for path in self.sources]
        self.failed = [(names.get(path, path), error) for path, error in self.failed]
        self.about = {
            remark: [names.get(path, path) for path in paths]
            for remark, paths in self.about.items()
        }

    def state(self) -> tuple[Any, ...]:
        """Return the current state of the report, for `go_back`. Raises nothing."""
        return (list(self.notes), list(self.equivalent), list(self.allowed), len(self.arrays),
                self.nbytes)  # fmt: skip

    def go_back(self, state: tuple[Any, ...]) -> None:
        """Remove all that was added since `state`, since the write failed. Raises nothing."""
        for name, items in zip(("notes", "equivalent", "allowed"), state, strict=False):
            remarks = _Once()
            remarks.add(items)
            setattr(self, name, remarks)
        del self.arrays[state[3] :]
        self.nbytes = state[4]

    def to_plain(self) -> dict[str, Any]:
        """Return the report of one file as values of JSON. Raises nothing."""
        names = [name for name in self.__slots__ if name not in _OF_A_RUN]
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_plain(cls, sources: list[str], values: dict[str, Any]) -> Report:
        """Return the report that `to_plain` made values of. Raises nothing."""
        report = cls(sources)
        for name, value in values.items():
            setattr(report, name, value)
        report.skipped = [(path, why) for path, why in report.skipped]
        report.left_out = [(path, why) for path, why in report.left_out]
        report.arrays = [(n, kind, tuple(shape), text) for n, kind, shape, text in report.arrays]
        for name in ("notes", "equivalent", "allowed"):
            remarks = _Once()
            remarks.add(values[name] if name == "notes" else [Fit(*fit) for fit in values[name]])
            setattr(report, name, remarks)
        return report

    def add_notes(self, notes: list[str]) -> None:
        """Add remarks, each once. Raises nothing."""
        self.notes.add(worded(note) if "`" in note else note for note in notes)

    def absorb(self, part: Report, *, paths: bool = True, source: str | None = None) -> None:
        """Add the report of one file of many; equal fits and notes are listed once.

        `source` is its file, for `about`; without `paths` the written files and their arrays are
        not added. Raises nothing.
        """
        if source is not None and part.says_something:
            for remark in (*part.notes, *part.equivalent, *part.allowed):
                self.about.setdefault(remark, []).append(source)
        if paths:
            self.written += part.written
            self.arrays += part.arrays
        self.skipped += part.skipped
        self.nbytes += part.nbytes
        self.files += part.files
        self.planned |= part.planned
        self.source_format = part.source_format or self.source_format
        self.target_format = part.target_format or self.target_format
        self.equivalent.add(part.equivalent)
        self.allowed.add(part.allowed)
        self.notes.add(part.notes)

    def __str__(self) -> str:
        if not self.written and not self.planned:
            return "; ".join(f"kept {path}: {why}" for path, why in self.skipped) or "nothing done"
        verb = "would write" if self.planned else "wrote"
        name = self.target or f"{self.files} file{'s' if self.files != 1 else ''}"
        if len(self.arrays) == 1:
            _, type_text, _, axes_text = self.arrays[0]
            what = f"{type_text} {axes_text}"
        else:
            what = counted(len(self.arrays), "array")
        text = f"{verb} {name}: {what}, {size(self.nbytes)}"
        done = self.source_count - len(self.failed) - len(self.skipped) - len(self.left_out)
        if self.source_count == 1:
            return f"{text}, from {self.sources[0]}"
        return f"{text}, from {done} file{'s' if done != 1 else ''}" if self.source_count else text


def few(paths: list[str]) -> list[str]:
    """Return the sources as a report names them: of many the first and the last."""
    return paths if len(paths) <= 16 else [paths[0], paths[-1]]


def axes(array: Array) -> str:
    """Return both views of the axes: ``shape (2, 3) C · dims 3 × 2``."""
    order = f" {array.index_order}" if array.index_order else ""
    dims = few_lengths(array.dims, " × ") or "none"
    shape = f"({few_lengths(array.shape, ', ')}{',' if array.ndim == 1 else ''})"
    return f"{shape}{order} · dims {dims}"


def judge(fits: list[Fit], settings: Settings, report: Report) -> None:
    """Record changes and allowed losses in the report; refuse all others at once.

    Raises `WouldLose`, which names every loss that is not allowed, and with ``--strict`` every
    change.
    """
    reasons = []
    for fit in fits:
        if fit in report.equivalent or fit in report.allowed:
            continue
        if fit.outcome == EQUIVALENT:
            if settings.strict:
                reasons.append(f"{fit.as_written()} (refused by `--strict`)")
            report.equivalent.append(fit)
        elif _is_allowed(fit, settings):
            report.allowed.append(fit)
        else:
            reasons.append(
                fit.as_written() if fit.flag else f"{fit.as_written()} (no option allows this)"
            )
    if reasons:
        raise WouldLose(
            f"{report.target_format} cannot hold this as it is",
            path=report.target,
            remedy="\n  ".join([*_first(reasons), "nothing was written"]),
        )


def _is_allowed(fit: Fit, settings: Settings) -> bool:
    flag, _, loss = (fit.flag or "").partition(" ")
    return flag == "--allow" and settings.allows(loss)


def _first(lines: list[str]) -> list[str]:
    """Return the first of many lines, and the number of the others."""
    rest = [f"and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return [*lines[:LISTED], *rest]


class Conversion:
    """One run: its destination, options and report, and the state that its stages set.

    `path` and `row` are the destination and its format; `name` is that of the one array in it
    (``FILE#name``), or None; `opened` is the source, None for arrays in memory. The `report` has
    the result, and the losses that were allowed.

    Set stage by stage: `origins`, the arrays as they were read; `bundle`, the arrays as they are
    written; `plan`, the plugin's; `forms`, by name how the form of an array differs when it is read
    back. `as_is` are the names of arrays to which --dtype, --scale and --axes do not apply;
    `container` is the file to which the array is added (`raconvert.conversion.addition`), None for
    a new file.
    """

    __slots__ = (
        "as_is", "bundle", "container", "forms", "left_behind", "name", "opened", "options",
        "origins", "path", "plan", "plugin", "report", "row", "settings", "used",
    )  # fmt: skip

    bundle: Bundle
    container: Any  # the module of it needs this one
    plan: Plan

    def __init__(
        self,
        path: str,
        row: Row,
        settings: Settings,
        report: Report,
        *,
        name: str | None = None,
        opened: Opened | None = None,
    ) -> None:
        self.as_is: set[str] = set()
        self.container = None
        self.path: str = path
        self.row: Row = row
        self.settings: Settings = settings
        self.report: Report = report
        report.target, report.target_format = path, row.name
        self.name: str | None = name
        self.opened: Opened | None = opened
        self.plugin: Plugin = registry.load(row)
        asked = settings.out_opts
        self.options: dict[str, Any] = registry.check_options(row, "write", asked) if asked else {}
        # The paths of all files that the source is read from, and the companions of arrays that
        # were not chosen with them.
        self.used: set[str] = set() if opened is None else opened.used
        self.left_behind: dict[str, dict[str, str]] = {} if opened is None else opened.left_behind
        self.origins: list[Array] = []
        self.forms: dict[str, dict[str, Any]] = {}

    @property
    def replaces(self) -> bool:
        """True if files that exist may be replaced."""
        return self.settings.overwrite or self.settings.update
