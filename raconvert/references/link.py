"""The link by which programs find the data of an ENVI header, which names no file."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from raconvert.errors import TargetExists
from raconvert.files.places import make_folders, temporary, write_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIX = ".img"


@contextmanager
def linked(header: str, data: str, *, overwrite: bool) -> Iterator[None]:
    """Make the link beside a header that is written meanwhile; it is gone if that fails.

    A header beside the data, ``scan.npy.hdr`` or ``scan.hdr`` for ``scan.npy``, needs none.
    Raises `TargetExists` where another file has its name, `WriteFailed`.
    """
    stem, data = os.path.splitext(header)[0], os.path.abspath(data)
    if os.path.abspath(stem) in (data, os.path.splitext(data)[0]):
        yield
        return
    place = stem + SUFFIX
    if os.path.lexists(place) and not (overwrite and os.path.islink(place)):
        raise TargetExists("exists already, and would become the link to the data", path=place,
                           remedy="choose another name")  # fmt: skip
    made = temporary(place)
    try:
        if os.path.dirname(place):
            make_folders(os.path.dirname(place))
        os.symlink(data, made)
    except OSError as error:
        raise write_failed(place, error) from error
    try:
        yield
        os.replace(made, place)
    except OSError as error:
        raise write_failed(place, error) from error
    finally:
        with suppress(OSError):
            os.unlink(made)
