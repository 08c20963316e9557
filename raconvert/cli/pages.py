"""Destinations of pages: a file that may not exist yet, or the standard output."""

from __future__ import annotations

import os
import sys

from raconvert.errors import TargetExists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from raconvert.cli.console import Console


def refuse_existing(output: str, *, overwrite: bool) -> None:
    """Raise `TargetExists` for a page that exists, unless it may be replaced."""
    if output != "-" and os.path.lexists(output) and not overwrite:
        raise TargetExists("exists already", path=output, remedy="--overwrite replaces it")


def write_page(
    page: str, output: str, console: Console, *, overwrite: bool, used: Iterable[str] = ()
) -> None:
    """Write a whole page to a file, or to the standard output for ``-``.

    Raises `UsageError` for one of the `used` files, which were read for it.
    """
    from raconvert.files.copy import write_all
    from raconvert.files.paths import refuse_used, write_failed
    from raconvert.files.target import Target

    data = page.encode()
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    refuse_used([output], {*used})
    try:
        with Target(output, overwrite=overwrite) as target:
            write_all(target.open(), [data])
            target.commit()
    except OSError as error:
        raise write_failed(output, error) from error
    console.note(f"wrote {output}")
