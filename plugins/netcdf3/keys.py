"""Names of arrays and axes as names of variables and dimensions, and axes of dimensions again.

NetCDF Users Guide, "Permitted characters in names": a letter, a digit or an underscore first, then
anything but control characters and ``/``; no blank last; UTF-8 in normal form C. What cannot stand
is percent-escaped, and our record keeps the name.
"""

from __future__ import annotations

import re

from raconvert.errors import RaconvertError
from raconvert.plugin import Axis

from .tables import NAME_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array

_ODD = re.compile(r"[\x00-\x1f/\x7f-\x9f\ud800-\udfff]| \Z")
_FIRST = re.compile(r"[A-Za-z0-9_]|[^\x00-\x7f]")
_MARK = 12  # hexadecimal digits that stand for the rest of a long name


def key_of(name: str) -> str:
    """Return the name that a variable or a dimension can have; the same one if it can."""
    text = name
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFC", text)
    text = _ODD.sub(lambda match: f"%{ord(match.group()):02X}", text)
    if not _FIRST.match(text):
        text = f"_{text}"
    raw = text.encode()
    if len(raw) > NAME_BYTES:
        from hashlib import sha256

        mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
        text = raw[: NAME_BYTES - _MARK - 1].decode("utf-8", "ignore") + f"%{mark}"
    return text


class Free:
    """Keys that are not taken; counting goes on where it ended, since what is taken stays so."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = {*taken}
        self._numbers: dict[str, int] = {}

    def take(self, key: str) -> str:
        """Return a key, with a counter if it is taken, and take it."""
        number, made = self._numbers.get(key, 1), key
        while made in self.taken:
            number += 1
            made = f"{key[: NAME_BYTES // 8]}%{number}"
        self._numbers[key] = number
        self.taken.add(made)
        return made


def keys_of(names: Sequence[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return the key of each name; no two are alike, and none is a reserved one.

    A name that is its own key keeps it.
    """
    others = {*reserved}
    kept = {name for name in names if key_of(name) == name} - others
    free, given = Free({*others, *kept}), set()
    keys = []
    for name in names:
        own = name in kept and name not in given
        given.add(name)
        keys.append(name if own else free.take(key_of(name)))
    return keys


class Coordinates:
    """Variables that stand along dimensions, by name, and what they say of an axis."""

    def __init__(self, arrays: dict[str, Array], limits: Limits) -> None:
        self.arrays = arrays
        self._limits = limits
        self._facts: dict[str, dict[str, Any]] = {}

    def axes_of(self, key: str, dims: Sequence[str], lengths: Sequence[int]) -> list[Axis]:
        """Return the axes of a variable, slowest first, by the names of its dimensions."""
        axes = []
        for index, (name, length) in enumerate(zip(dims, lengths, strict=False)):
            facts: dict[str, Any] = {}
            scale = self.arrays.get(name)
            if scale is not None and name != key and scale.dims == (length,):
                facts = self._along(name)
            axes.append(Axis(name if name != unnamed(key, index) else None, **facts))
        return axes

    def _along(self, name: str) -> dict[str, Any]:
        """Units, and spacing and origin or labels, of the values of a coordinate variable."""
        from raconvert.arrays.interop.conventions import facts_of

        if name not in self._facts:
            scale = self.arrays[name]
            units = {"units": scale.meta.units} if scale.meta.units else {}
            try:
                self._facts[name] = {**units, **facts_of(scale, self._limits)}
            except (RaconvertError, OSError):  # reading it later reports the error
                self._facts[name] = units
        return self._facts[name]


def unnamed(key: str, index: int) -> str:
    """Return the name of the dimension of an axis that has none."""
    return f"{key}.{index}"
