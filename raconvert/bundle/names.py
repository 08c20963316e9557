"""Paths of the .ra files of a bundle, and of arrays that become files of their own in a folder."""

from __future__ import annotations

from raconvert.files.names import paths_of
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MANIFEST = "bundle.yaml"


def files_of(
    names: Iterable[str],
    suffix: str,
    *,
    known: Mapping[str, str] | None = None,
    paths: Iterable[str] = (),
) -> list[str]:
    """Return one relative path for each name, with ``/`` between folders; no two are alike.

    Each leaves room for the sidecar and the per-item metadata of its file. `known` are names that
    have a path already, whose groups keep their folders; `paths` are those that are not free.
    """
    taken = {MANIFEST, *paths}
    taken |= {path[:at] for path in taken for at, letter in enumerate(path) if letter == "/"}
    return paths_of(names, suffix, beside=(SUFFIX, ITEMS_SUFFIX), reserved=taken, known=known)
