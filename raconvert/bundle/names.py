"""Paths of the .ra files of a bundle, and of arrays that become files of their own in a folder."""

from __future__ import annotations

from raconvert.files.names import paths_of
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MANIFEST = "bundle.yaml"


def files_of(names: Iterable[str], suffix: str) -> list[str]:
    """Return one relative path for each name, with ``/`` between folders; no two are alike.

    Each leaves room for the sidecar and the per-item metadata of its file.
    """
    return paths_of(names, suffix, beside=(SUFFIX, ITEMS_SUFFIX), reserved=(MANIFEST,))
