"""``raconvert refs``: a view of arrays where they lie, with the proof of what the files were."""

from __future__ import annotations

from raconvert.cli.console import one_line
from raconvert.cli.sources import below, reading
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console


def run(args: Any, console: Console) -> int:
    """Write the view and print in a line what is in it."""
    if not args.output or not args.src:
        raise UsageError("refs needs sources and -o", remedy="usage: raconvert refs SRC... -o DST")
    from raconvert.conversion.inputs import in_shell_order
    from raconvert.references.make import refs

    made = refs(
        in_shell_order(args.src), args.output, kind=args.kind, digest=args.digest,
        overwrite=args.overwrite, allow=args.allow or (), **below(args), **reading(args),
    )  # fmt: skip
    console.notes(made["notes"])
    if console.json:
        console.result_json(made)
        return 0
    counts = (_counted(made[word], word) for word in ("arrays", "files", "pieces"))
    console.result(f"{one_line(made['path'])}   {made['kind']}: {', '.join(counts)}")
    return 0


def _counted(number: int, word: str) -> str:
    return f"{number} {word if number != 1 else word[:-1]}"
