"""The arrays of many files, each with its location and a name of its own."""

from __future__ import annotations

import os

from raconvert.conversion.inputs import split_spec
from raconvert.conversion.read import open_spec
from raconvert.errors import Unsupported, UsageError, WouldLose
from raconvert.registry import by_name

from .pieces import Placed, placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from raconvert.conversion.options import Settings
    from raconvert.files.source import Identity


class Collection:
    """The located arrays of all sources, and the identities of their files (`seen`).

    Raises what opening the sources raises, and `UsageError` for two arrays of one name.
    """

    def __init__(self, paths: Sequence[str], settings: Settings) -> None:
        self.arrays: list[Placed] = []
        self.notes: list[str] = []
        self.used: set[str] = set()
        self.seen: dict[str, Identity] = {}
        self._refused: list[tuple[str, str]] = []
        stems = _stems(paths)
        for path, stem in zip(paths, stems, strict=True):
            self._take(path, stem, settings, alone=len(paths) == 1)
        self._check_names()

    def _take(self, path: str, stem: str, settings: Settings, *, alone: bool) -> None:
        """Add the arrays of one source; `alone` if it is the only one."""
        with open_spec(path, settings) as opened:
            many = by_name(opened.bundle.format).many
            for array in opened.bundle.arrays:
                name = array.name if many else stem
                name = f"{stem}/{name}" if many and not alone else name
                pieces = placed(array, name, path)
                if isinstance(pieces, str):
                    self._refused.append((f"{path}#{array.name}" if many else path, pieces))
                else:
                    self.arrays.append(pieces)
            self.used |= opened.used
            self.seen |= opened.seen

    def _check_names(self) -> None:
        """Raise `UsageError` for two arrays of one name."""
        sources: dict[str, str] = {}
        for array in self.arrays:
            other = sources.setdefault(array.name, array.source)
            if other is not array.source:
                raise UsageError(f"two arrays would be called '{array.name}': those of '{other}' "
                                 f"and '{array.source}'", remedy="make a view of each")  # fmt: skip

    def judge(
        self,
        problem_of: Callable[[Placed], str | None],
        notes_of: Callable[[Placed], list[str]],
        *,
        leave_out: bool,
    ) -> None:
        """Raise `WouldLose` if an array cannot be shown, or with `leave_out` drop it with a note.

        `problem_of` returns the reason why an array cannot be shown, or None; `notes_of` what is
        not kept of it. Raises `Unsupported` if no array is left.
        """
        kept = []
        for array in self.arrays:
            problem = problem_of(array)
            if problem is None:
                kept.append(array)
                self.notes += [f"{array.name}: {note}" for note in notes_of(array)]
            else:
                self._refused.append((array.name, problem))
        self.arrays = kept
        if not self._refused:
            return
        lines = [f"'{name}': {why}" for name, why in self._refused]
        if not leave_out:
            more = f"\nand {len(lines) - 10} more" if len(lines) > 10 else ""
            raise WouldLose(
                "no view can show an array where it lies" if len(lines) == 1 else
                f"no view can show {len(lines)} arrays where they lie",
                remedy="\n".join(lines[:10]) + more
                + "\nconvert them first, or leave them out with `--allow arrays`",
            )  # fmt: skip
        if not kept:
            raise Unsupported("none of the arrays can be shown where it lies",
                              remedy="\n".join(lines[:10]))  # fmt: skip
        self.notes += [f"left out: {line}" for line in lines]


def _stems(paths: Sequence[str]) -> list[str]:
    """Return the names of files without suffix; if their folders differ, relative paths."""
    files = [split_spec(path)[0] for path in paths]
    folders = {os.path.dirname(os.path.abspath(path)) for path in files}
    if len(folders) == 1:
        return [os.path.splitext(os.path.basename(path.rstrip("/")))[0] for path in files]
    top = os.path.commonpath(folders)
    names = (os.path.relpath(os.path.abspath(path), top) for path in files)
    return [os.path.splitext(name)[0].replace(os.sep, "/") for name in names]
