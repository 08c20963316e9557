"""``raconvert verify TREE --against TREE``, and ``--certificate``: one line for each difference."""

from __future__ import annotations

import os
from collections import Counter

from raconvert.cli.console import one_line
from raconvert.cli.sources import reading
from raconvert.errors import UsageError, counted
from raconvert.migration.compare import MARKS, SAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.cli.console import Console
    from raconvert.migration.compare import Finding

_DIFFERENT = 1


def run(args: Any, console: Console) -> int:
    """Compare a tree with another one or its certificate; exit code 1 if they differ."""
    if len(args.files) != 1:
        raise UsageError("one tree is compared", got=counted(len(args.files), "name"))
    found = list(_findings(args))
    counts = Counter(one.mark for one in found)
    if args.combined is not None:
        _write(args.combined, found)
    if console.json:
        console.result_json(
            {
                "path": args.files[0],
                "same": counts[SAME] == len(found),
                "counts": {words: counts[mark] for mark, words in MARKS.items()},
                "files": [one._asdict() for one in found],
            }
        )
        return 0 if counts[SAME] == len(found) else _DIFFERENT
    for one in found:
        if one.mark != SAME or args.combined is None:
            reason = f"   {one_line(one.reason)}" if one.reason else ""
            console.result(f"{one.mark} {one_line(one.path)}{reason}")
    changed = sum(one.mark == SAME and one.reason.startswith("equivalent") for one in found)
    parts = [f"{counts[mark]} {words}" for mark, words in MARKS.items() if counts[mark]]
    parts[:1] = [f"{parts[0]} ({changed} in another form)"] if changed else parts[:1]
    console.note(f"{args.files[0]}: {', '.join(parts) or 'nothing to compare'}")
    return 0 if counts[SAME] == len(found) else _DIFFERENT


def _findings(args: Any) -> Iterator[Finding]:
    if args.certificate is not None:
        from raconvert.migration.check import check_tree

        if args.against:
            raise UsageError("--certificate and --against exclude each other")
        return check_tree(args.files[0], args.certificate)
    from raconvert.migration.compare import compare_trees

    return compare_trees(
        args.files[0],
        args.against[0],
        include=args.include or (),
        exclude=args.exclude or (),
        **reading(args),
    )


def _write(path: str, found: Iterable[Finding]) -> None:
    from raconvert.files.copy import write_all
    from raconvert.files.places import check_target, write_failed
    from raconvert.files.target import Target

    check_target(path, overwrite=False)
    text = "".join(f"{one.mark} {one_line(one.path)}\n" for one in found)
    try:
        with Target(os.path.abspath(path), overwrite=False) as target:
            write_all(target.open(), [text.encode()])
            target.commit()
    except OSError as error:
        raise write_failed(path, error) from error
