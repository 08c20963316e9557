"""What `peek` and pages share: a source that is open for a look, and whose errors name it."""

from __future__ import annotations

from contextlib import contextmanager

from raconvert.cli.sources import reading
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.errors import RaconvertError
from raconvert.files.places import is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.conversion.read import Opened


@contextmanager
def opened_to_look(path: str, args: Any) -> Iterator[Opened]:
    """One source that is open; of one at a URL what is known of it stays known meanwhile."""
    with open_spec(path, Settings(**reading(args))) as opened:
        known = opened.seen.get(opened.bundle.path)
        kept = None
        if known is not None and is_remote(opened.bundle.path):
            from raconvert.files.remote.objects import object_at

            kept = object_at(opened.bundle.path, known)
        yield opened
        del kept


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Errors inside are about this file, if they name no other."""
    try:
        yield
    except RaconvertError as error:
        error.path = error.path or path
        raise
