"""The files of two folders compared as ``raconvert diff`` compares two files."""

from __future__ import annotations

import os

from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.inspect.diff import diff, difference
from raconvert.migration.compare import DIFFERENT, ERROR, SAME, Finding, paired, unreadable
from raconvert.migration.tree import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.migration.found import Tree


def diff_trees(
    a: str,
    b: str,
    *,
    how: dict[str, Any],
    recursive: bool = False,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    **reading: Any,
) -> Iterator[Finding]:
    """Compare the files of two folders as `raconvert.inspect.diff.diff` does, by `how`.

    Files of one name are a pair, else those that share it without the suffix. Raises `ReadFailed`.
    """
    left, right = (
        _top(walk(root, from_=reading.get("from_"), include=include, exclude=exclude), recursive)
        for root in (a, b)
    )
    pairs, findings = paired(left, right, files_only=True)
    yield from findings
    yield from unreadable(left)
    yield from unreadable(right)

    def look(number: int) -> str:
        names = [os.path.join(a, pairs[number].here), os.path.join(b, pairs[number].there)]
        return difference(diff(names[0], names[1], **how, **reading))

    paths = [os.path.join(a, pair.here) for pair in pairs]
    for pair, found in zip(pairs, outcomes(paths, Jobs(look), fewest=1), strict=True):
        if isinstance(found, Exception):
            yield Finding(ERROR, pair.here, str(found).partition("\n")[0])
        else:
            yield Finding(DIFFERENT if found else SAME, pair.here, found)


def _top(tree: Tree, recursive: bool) -> Tree:
    """The tree, or only what lies in its root itself."""
    if recursive:
        return tree
    files = [file for file in tree.files if "/" not in file.path]
    return tree._replace(files=files, left_out=[one for one in tree.left_out if "/" not in one[0]])
