"""The roots of two trees: folders of this machine, or URLs (`raconvert.migration.remote`)."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def root_of(word: str) -> str:
    """The root of a tree as the user names it: an absolute path, or a URL."""
    if "://" not in word:
        return os.path.abspath(word)
    from raconvert.migration.remote import root_of

    return root_of(word)


def is_url(*roots: str) -> bool:
    """True if one of the roots is a URL; an absolute path has no two slashes in a row."""
    return any("://" in root for root in roots)


def check(source: str, target: str, options: dict[str, Any]) -> None:
    """Refuse (`UsageError`) what does not go with trees at URLs."""
    if is_url(source, target):
        from raconvert.migration.remote import check

        check(source, target, options)
