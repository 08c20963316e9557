"""``raconvert info --html -o PAGE``: a page about a file."""

from __future__ import annotations

import os
import sys

from raconvert.cli.sources import opened_to_look
from raconvert.errors import TargetExists, UsageError
from raconvert.files.copy import write_all
from raconvert.files.paths import refuse_used, write_failed
from raconvert.files.target import Target
from raconvert.views.page import page_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console


def run(args: Any, console: Console) -> int:
    """Write the page about one file."""
    if not args.html:
        raise UsageError("-o and --full are for the page of --html")
    if len(args.files) != 1 or args.output is None:
        raise UsageError("--html writes a page about one file", remedy="info FILE --html -o PAGE")
    output = args.output
    if output != "-" and os.path.lexists(output) and not args.overwrite:
        raise TargetExists("exists already", path=output, remedy="--overwrite replaces it")
    with opened_to_look(args.files[0], args) as opened:
        if output != "-":
            refuse_used([output], opened.used)
        page = "".join(page_of(opened, args.files[0], full=args.full)).encode()
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(page)
        return 0
    try:
        with Target(output, overwrite=args.overwrite) as target:
            write_all(target.open(), [page])
            target.commit()
    except OSError as error:
        raise write_failed(output, error) from error
    console.note(f"wrote {output}")
    return 0
