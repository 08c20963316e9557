"""Plans of headers: names, labels and texts in the form that HAR holds, and what is lost.

The namespace ``har`` records how a file differs from what would be written here. It may have been
edited, or made by anybody, so every field is checked before it is used.
"""

from __future__ import annotations

import re
from itertools import islice

from raconvert.plugin import Axis, equivalent, facts_of, facts_of_axes, fields_of_axes, refused

from .header import BLANKS
from .records import BIG, LITTLE
from .tables import (
    LONG_CHARS,
    MAX_INT32,
    MAX_RANK,
    NAME_CHARS,
    NAMESPACE,
    REAL,
    STRINGS_BYTES,
    TEXT,
    TYPES,
    WORD_CHARS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.plugin import Array, Fit


class FilePlan:
    """The file to write: its headers, its hidden headers, and the fits."""

    __slots__ = ("fits", "framing", "headers", "hidden")

    def __init__(self) -> None:
        self.fits: list[Fit] = []
        self.framing = LITTLE
        self.headers: list[HeaderPlan] = []
        self.hidden: list[dict[str, Any]] = []


class HeaderPlan:
    """Plan of one array as a header; `own` is the valid part of its namespace."""

    __slots__ = (
        "array", "coefficient", "dims", "fits", "long", "name", "own", "raw", "sets", "status",
        "storage", "type",
    )  # fmt: skip

    def __init__(self, array: Array) -> None:
        self.array = array
        self.fits: list[Fit] = []
        self.own: dict[str, Any] = {}
        self.name = ""
        self.raw = ""  # the name with its blanks
        self.type = REAL
        self.dims = array.dims
        self.storage = "auto"
        self.long = ""
        self.coefficient = ""
        # Name and labels of each dimension's set.
        self.sets: list[tuple[str, list[str] | None]] = []
        self.status = ""

    @property
    def width(self) -> int:
        """The characters of one string, in an array of strings."""
        element = self.array.element
        unicode = isinstance(element.descr, str) and "U" in element.descr
        return int(element.nbytes // 4 if unicode else element.nbytes)

    def equivalent(self, property: str, reason: str) -> None:
        """Add a fit: the property changes its form only."""
        self.fits.append(equivalent(self.array.name, property, reason))

    def refused(self, property: str, reason: str, flag: str | None = None) -> None:
        """Add a fit: the property is refused, unless `flag` allows its loss."""
        self.fits.append(refused(self.array.name, property, reason, flag))


# --- the namespace --------------------------------------------------------------------------------


def own_fields(header: HeaderPlan) -> dict[str, Any]:
    """The valid fields of the namespace ``har`` of the array; a fit names the others."""
    own = header.array.meta.formats.get(NAMESPACE)
    if not isinstance(own, dict):
        return {}
    odd = [key for key, is_valid in _FORMS.items() if key in own and not is_valid(own[key])]
    if odd:
        header.equivalent("metadata", f"the namespace har has invalid fields: {', '.join(odd)}")
    return {key: value for key, value in own.items() if key in _FORMS and key not in odd}


def _is_int(value: object) -> bool:
    return type(value) is int and -MAX_INT32 - 1 <= value <= MAX_INT32


def _are_ints(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_int, value))


def _is_word(value: object, length: int = WORD_CHARS) -> bool:
    """True if a text fits into `length` one-byte characters and comes back unchanged."""
    return (
        isinstance(value, str)
        and len(value) <= length
        and value == value.rstrip(" ")
        and (value.isascii() or all(ord(letter) < 256 for letter in value))
    )


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_word, value))


def was_name(name: str) -> bool:
    """True if a header of a file can have this name, which has no blanks around it."""
    printable = name.isprintable() and "/" not in name and name == name.strip(" ")
    return printable and 0 < len(name) <= NAME_CHARS and _is_word(name)


# The check of each field of the namespace.
_FORMS: dict[str, Any] = {
    "name": lambda v: isinstance(v, str) and len(v) == NAME_CHARS and was_name(v.strip(" ")),
    "type": lambda v: v in TYPES,
    "storage": lambda v: v in ("full", "sparse"),
    "coefficient": _is_word,
    "logical": lambda v: _are_ints(v) and len(v) == 2,
    "numbers": _are_ints,
    "sets": _are_words,
    "elements": _are_words,
    "status": lambda v: isinstance(v, str) and not set(v) - set("kue") and len(v) <= MAX_RANK,
    "split": lambda v: _is_int(v) and v > 0,
    "label_split": lambda v: _is_int(v) and v > 0,
    "comment": lambda v: _is_word(v, 80),
    "counters": lambda v: isinstance(v, list) and all(_are_ints(p) and len(p) == 2 for p in v),
}


# --- texts and sets -------------------------------------------------------------------------------


def plan_texts(header: HeaderPlan) -> None:
    """Give a header its long name and its coefficient name."""
    array = header.array
    last = array.name.rpartition("/")[2]
    default = ""
    if not header.own:
        axes = array.ra_axes
        is_set = header.type == TEXT and len(axes) == 1 and axes[0].name == last
        if is_set:  # how GEMPACK and ViewHAR recognise a set
            default = f"Set {last}"
        elif header.name != array.name:
            default = array.name[: 4 * LONG_CHARS]
    description = array.meta.description
    header.long = _fitted(description or default, LONG_CHARS, origin=bool(header.own))
    if description and header.long != description:
        header.equivalent(
            "metadata", f"description becomes {LONG_CHARS} Latin-1 characters: {header.long!r}"
        )
    if header.type == REAL:
        word = re.sub("[^A-Za-z0-9_]", "_", last[:WORD_CHARS])
        word = word if word[:1].isalpha() else header.name
        header.coefficient = header.own.get("coefficient", "" if header.own else word)


def _fitted(words: str, length: int, *, origin: bool = False) -> str:
    """A text as one line of up to `length` Latin-1 characters.

    Text that comes from a HAR file (`origin`) keeps its control characters.
    """
    words = words[:length]
    if not (words.isascii() and words.isprintable()):
        words = words.encode("latin-1", "replace").decode("latin-1")
        if not origin:
            words = "".join(c if c.isprintable() or c == "\xa0" else " " for c in words)
    return words.rstrip(" ")


def set_names(names: list[str | None]) -> list[str]:
    """The set name of each axis: its own, or the usual placeholder."""
    return [name or f"Unk{number}" for number, name in enumerate(names, 1)]


def plan_sets(header: HeaderPlan) -> None:
    """Give every dimension of an RE header a set name, and labels if its axis has them."""
    array, rank = header.array, header.array.ndim
    if header.type != REAL or rank > MAX_RANK:
        return
    axes = array.ra_axes if len(array.ra_axes) == rank else (Axis(),) * rank
    recorded = header.own.get("sets", [])
    defaults = recorded if len(recorded) == rank else set_names([None] * rank)
    words = [axis.name or name for axis, name in zip(axes, defaults, strict=True)]
    labels = [_labels(header, *pair) for pair in zip(axes, array.dims, strict=True)]
    names = _shortened(words, origin=bool(header.own))
    header.sets = _distinct(header, names, labels)
    for axis, (name, _) in zip(axes, header.sets, strict=True):
        if axis.name and name != axis.name:
            header.equivalent("metadata", f"axis '{_shown(axis.name)}' becomes the set '{name}'")
    # An explicit element (e) stays one while its axis has one element.
    old_status = header.own.get("status", "").ljust(rank)[:rank]
    header.status = "".join(
        "e" if letter == "e" and size == 1 else _status(axis_labels)
        for letter, size, axis_labels in zip(old_status, array.dims, labels, strict=True)
    )


def _status(labels: list[str] | None) -> str:
    """The letter of a dimension: k if a list of labels follows, else u."""
    return "u" if labels is None else "k"


def _shown(name: str) -> str:
    """A name of at most 40 characters, for messages."""
    return name if len(name) <= 40 else f"{name[:37]}..."


def _shortened(words: list[str], *, origin: bool = False) -> list[str]:
    """The words cut to 12 Latin-1 characters; cut words that would be the same are numbered."""
    short = [_fitted(word, WORD_CHARS, origin=origin) for word in words]
    taken = {word.upper() for word, whole in zip(short, words, strict=True) if word == whole}
    numbers: dict[str, int] = {}
    made: dict[str, str] = {}
    for n, whole in enumerate(words):
        if short[n] != whole:
            if whole not in made:
                made[whole] = _numbered(short[n], taken, numbers)
            short[n] = made[whole]
    return short


def _numbered(word: str, taken: set[str], numbers: dict[str, int]) -> str:
    """The word if it is not taken, else the word with the first number that makes it a new one."""
    free, number = word, numbers.get(word, 1)
    while not free or free.upper() in taken:
        number += 1
        free = f"{word[: WORD_CHARS - len(str(number))]}{number}"
    numbers[word] = number
    taken.add(free.upper())
    return free


def _distinct(
    header: HeaderPlan, names: list[str], labels: list[list[str] | None]
) -> list[tuple[str, list[str] | None]]:
    """Name and labels of each set; sets of one name and different labels get distinct names."""
    seen: dict[str, tuple[str, list[str] | None]] = {}
    sets = []
    for name, own in zip(names, labels, strict=True):
        entry, number = (name, own), 1
        key = name if header.own else name.upper()
        while own is not None and seen.get(key, entry) != entry:
            number += 1
            entry = f"{name[: WORD_CHARS - 1]}{number}", own
            key = entry[0] if header.own else entry[0].upper()
        if own is not None:
            seen[key] = entry
        sets.append(entry)
    return sets


def _labels(header: HeaderPlan, axis: Axis, size: int) -> list[str] | None:
    """The labels of an axis in the form that HAR holds; None if it has none, or too many or few."""
    if axis.labels is None:
        return None
    what = f"labels of axis '{_shown(axis.name or '?')}'"
    if len(axis.labels) != size:
        header.equivalent("metadata", f"{len(axis.labels)} {what} are left out: it has {size}")
        return None
    labels = _shortened([_label(label) for label in axis.labels], origin=bool(header.own))
    changed = [(a, b) for a, b in zip(axis.labels, labels, strict=True) if a != b]
    if changed:
        some = ", ".join(f"{_shown(str(a))!r} is {b!r}" for a, b in islice(changed, 3))
        more = f", and {len(changed) - 3} more" if len(changed) > 3 else ""
        header.equivalent("metadata", f"{what} become texts of {WORD_CHARS}: {some}{more}")
    return labels


def _label(label: object) -> str:
    return label.decode("latin-1") if isinstance(label, bytes) else str(label)


# --- what is lost ---------------------------------------------------------------------------------


def plan_losses(header: HeaderPlan) -> None:
    """Add a fit that lists the metadata that HAR cannot hold."""
    lost = facts_of(header.array, "description", "axes", NAMESPACE)
    if lost_of_axes := _lost_of_axes(header, header.array.ra_axes):
        lost += facts_of_axes(header.array, lost_of_axes)
    if lost:
        header.equivalent("metadata", f"left out: {', '.join(lost)}")


def _lost_of_axes(header: HeaderPlan, axes: Sequence[Axis]) -> list[list[str]]:
    """The fields of each axis that HAR cannot hold."""
    fields = ["kind", "units", "spacing", "origin", "direction"]
    if header.type != REAL or len(axes) != header.array.ndim:
        fields += ["name", "labels"]
    return [fields_of_axes([axis], *fields) for axis in axes]


def hidden_headers(planned: FilePlan, space: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of housekeeping headers that can be written; a fit names each other one."""
    entries = space.get("hidden", [])
    entries = entries if isinstance(entries, list) else [None]
    swapped = (planned.framing == BIG) != (space.get("framing") == BIG)
    headers = []
    for entry in entries:
        reason = _fault_of(entry)
        if not reason and swapped and "records" in entry:
            reason = "its byte order is another"
        if reason:
            name = entry.get("name", "?") if isinstance(entry, dict) else "?"
            text = f"the housekeeping header {name!r} is left out: {reason}"
            planned.fits.append(equivalent("", "metadata", text))
        else:
            headers.append(entry)
    return headers


def _fault_of(entry: Any) -> str:
    """The fault of the entry of a hidden header; empty if it can be written."""
    if not isinstance(entry, dict) or type(entry.get("before", 0)) is not int:
        return "it has no valid form"
    name = entry.get("name")
    if not isinstance(name, str) or len(name) > NAME_CHARS or not was_name(name.strip(" ")):
        return "it has no valid name"
    if "records" in entry:
        payloads = entry["records"]
        valid = isinstance(payloads, list) and all(map(_is_payload, payloads))
        return "" if valid else "its records have no valid form"
    return "" if "text" not in entry or _is_text(entry) else "its text has no valid form"


def _is_payload(value: object) -> bool:
    return isinstance(value, bytes) and value.startswith(BLANKS)


def _is_text(entry: dict[str, Any]) -> bool:
    """True if an entry holds lines of text that can be written, with valid fields beside them."""
    width, lines = entry.get("width"), entry["text"]
    if type(width) is not int or not 0 < width <= STRINGS_BYTES or not isinstance(lines, list):
        return False
    if not all(_is_word(line, width) for line in lines):
        return False
    valid = _is_word(entry.get("long", ""), LONG_CHARS)
    return valid and all(_FORMS[key](entry[key]) for key in ("split", "counters") if key in entry)
