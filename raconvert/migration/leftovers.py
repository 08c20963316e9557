"""Temporary files of processes that died, on whatever machine: found by a mark in their names.

The mark belongs to a journal, and only one run at a time has that open: what bears it when a run
begins, or when all its batches are done, belongs to nobody any more.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from raconvert.files.places import marked_temporaries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from raconvert.migration.records import Unit


def new_mark() -> str:
    """A mark that no other journal has."""
    return os.urandom(4).hex()


def clear(target: str, mark: str, units: Iterable[Unit]) -> None:
    """Remove what processes that died have left in a tree, where they were at work on `units`."""
    if "://" in target:
        from raconvert.migration.remote import give_up_uploads

        give_up_uploads(target, [unit.target for unit in units])
        return
    places = {os.path.dirname(os.path.join(target, unit.target)) for unit in units}
    for folder in {target, *places} if mark else ():
        for path in marked_temporaries(folder, mark):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    os.unlink(path)
