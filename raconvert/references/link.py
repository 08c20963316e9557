"""The link by which programs find the data of an ENVI header, which names no file."""

from __future__ import annotations

import os

from raconvert.errors import TargetExists
from raconvert.files.paths import exists, identity, write_failed
from raconvert.files.target import Target

SUFFIX = ".img"


class Link(Target):
    """A link that appears together with its partner file, or not at all."""

    __slots__ = ("_data",)

    def __init__(self, path: str, data: str, *, overwrite: bool) -> None:
        super().__init__(path, overwrite=overwrite, follow=False)
        self._data = data

    def make(self) -> None:
        """Make the link under its temporary name. Raises `WriteFailed`."""
        if not self.overwrite:  # `_take_place` makes it at its destination, if that is free
            return
        try:
            os.symlink(self._data, self.temp)
            self._used = True
            self._identity = identity(self.temp, follow=False)
        except OSError as error:
            raise write_failed(self.path, error) from error

    def _close(self) -> None:
        """Do nothing: a link has no permissions of its own."""

    def _take_place(self, *, keep: bool) -> None:
        """Rename the link to its destination, or make it there; see `Target`."""
        if self.overwrite:
            super()._take_place(keep=keep)
            return
        try:
            os.symlink(self._data, self.place)
        except FileExistsError as error:
            raise exists(self.path, "appeared while it was written") from error
        except OSError as error:
            raise write_failed(self.path, error) from error
        self._identity = identity(self.place, follow=False)


def add_link(header: Target, data: str, *, overwrite: bool) -> None:
    """Add to the partners of a header the link to its data, if programs need one.

    Raises `TargetExists` if another file has the name of the link, and `WriteFailed`.
    """
    path = place_of(header.path, data)
    if path is None:
        return
    if os.path.lexists(path) and not (overwrite and os.path.islink(path)):
        raise TargetExists("exists already, and would become the link to the data", path=path,
                           remedy="choose another name")  # fmt: skip
    link = Link(path, os.path.abspath(data), overwrite=overwrite)
    header.partners.append(link)
    link.make()


def place_of(header: str, data: str) -> str | None:
    """Return the path of the link beside a header; None for a header beside its data.

    Such a header is ``scan.npy.hdr`` or ``scan.hdr`` for ``scan.npy``.
    """
    stem, data = os.path.splitext(header)[0], os.path.abspath(data)
    return None if os.path.abspath(stem) in (data, os.path.splitext(data)[0]) else stem + SUFFIX


def problem_of_link(header: str, data: str) -> str:
    """Return the fault of the link beside a header to its data; empty if it is right."""
    path = place_of(header, data)
    if path is None:
        return ""
    try:
        destination = os.readlink(path)
    except OSError:
        return f"its link '{os.path.basename(path)}' to the data is gone"
    destination = os.path.abspath(os.path.join(os.path.dirname(path), destination))
    if destination == os.path.abspath(data):
        return ""
    return f"its link '{os.path.basename(path)}' leads to another file"
