"""The fields of a metadata document, each with its check."""

from __future__ import annotations

from raconvert.errors import Corrupt, Unsupported

from .tables import MAX_RANK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def short(value: Any) -> str:
    """A value as a message shows it."""
    return repr(value)[:80]


class Fields:
    """The fields of a document, each with its check."""

    def __init__(self, fields: Any, path: str, where: str = "") -> None:
        if not isinstance(fields, dict):
            raise Corrupt(
                f"metadata of {where or 'the array'} is not a JSON object", path=path,
                got=short(fields),
            )  # fmt: skip
        self.fields: dict[str, Any] = fields
        self.path = path
        self.where = where

    def wrong(self, name: str, expected: str) -> Corrupt:
        """The error for a field of another form."""
        return Corrupt(
            f"metadata field '{self.where}{name}' is wrong", path=self.path, expected=expected,
            got=short(self.fields.get(name)),
        )  # fmt: skip

    def lengths(self, name: str, least: int) -> tuple[int, ...]:
        """A list of lengths, none below `least`."""
        found = self.fields.get(name)
        good = isinstance(found, list) and all(
            type(n) is int and least <= n < 1 << 63 for n in found
        )
        if not good:
            raise self.wrong(name, f"a list of whole numbers of at least {least}")
        if len(found or ()) > MAX_RANK:
            raise Unsupported(
                f"array has {len(found or ())} axes", path=self.path, expected=f"at most {MAX_RANK}"
            )
        return tuple(found or ())

    def named(self, name: str) -> tuple[str, dict[str, Any]]:
        """The name and the configuration of an extension point of version 3."""
        found = self.fields.get(name)
        if isinstance(found, str):
            return found, {}
        if not isinstance(found, dict) or not isinstance(found.get("name"), str):
            raise self.wrong(name, "a name, with its configuration")
        settings = found.get("configuration", {})
        if not isinstance(settings, dict):
            raise self.wrong(name, "a configuration that is a mapping")
        return found["name"], settings
