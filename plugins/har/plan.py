"""What writing makes of each array: header name, type, sets, texts; and what is lost by that.

Decided from types, shapes, names and metadata alone, once, for `fits`, `names` and `write`.
"""

from __future__ import annotations

import re
from itertools import chain, islice, product
from math import prod

from raconvert.plugin import Axis, equivalent, file_fits, little, refused, type_name

from .headers import set_names
from .layout import (
    INTEGER,
    LONG_CHARS,
    MAX_INT32,
    MAX_RANK,
    NAME_CHARS,
    REAL,
    REAL_BARE,
    REAL_MATRIX,
    STRINGS_BYTES,
    TEXT,
    TYPES,
    WORD_CHARS,
)
from .records import BIG, BLANKS, LAHEY, LITTLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Array, Bundle, Fit

_SMALL = {("bool", 1), ("int", 1), ("int", 2), ("uint", 1), ("uint", 2)}  # float32 holds them all
_OTHERS = "npy, npz, h5 and ra hold it"
_PLAIN_NAME = re.compile("[A-Za-z0-9]{1,4}")
_LETTERS = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0"


class Planned:
    """The file to write: its headers, those kept hidden, and what does not fit."""

    __slots__ = ("fits", "framing", "headers", "hidden")

    def __init__(self) -> None:
        self.fits: list[Fit] = []
        self.framing = LITTLE
        self.headers: list[Planning] = []
        self.hidden: list[dict[str, Any]] = []


class Planning:
    """One array on its way to a header."""

    __slots__ = (
        "array", "coefficient", "cut", "dims", "fits", "long", "may_cut", "name", "own", "raw",
        "sets", "status", "storage", "type",
    )  # fmt: skip

    def __init__(self, array: Array) -> None:
        self.array = array
        self.fits: list[Fit] = []
        self.own = self._own()
        self.name = ""
        self.raw = ""  # the name with its blanks
        self.type = REAL
        self.dims = array.dims
        self.storage = "auto"
        self.long = ""
        self.coefficient = ""
        self.sets: list[tuple[str, list[str] | None]] = []  # of each dimension: name and labels
        self.status = ""
        self.may_cut = False  # blanks at the end of strings may be lost
        self.cut = False  # and some are, which is known when the data has been written

    def equivalent(self, property: str, reason: str) -> None:
        """Say what changes its form."""
        self.fits.append(equivalent(self.array.name, property, reason))

    def refused(self, property: str, reason: str, flag: str | None = None) -> None:
        """Say what cannot be held."""
        self.fits.append(refused(self.array.name, property, reason, flag))

    def _own(self) -> dict[str, Any]:
        """Return the namespace of a HAR file that the array comes from, without invalid fields."""
        own = self.array.meta.formats.get("har")
        if not isinstance(own, dict):
            return {}
        odd = [key for key, fine in _FORMS.items() if key in own and not fine(own[key])]
        if odd:
            self.equivalent("metadata", f"the namespace har has invalid fields: {', '.join(odd)}")
        return {key: value for key, value in own.items() if key in _FORMS and key not in odd}


def _is_int(value: object) -> bool:
    return type(value) is int and -MAX_INT32 - 1 <= value <= MAX_INT32


def _are_ints(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_int, value))


def _is_word(value: object, length: int = WORD_CHARS) -> bool:
    """Tell whether a text fits into so many one-byte characters and comes back as it was."""
    return (
        isinstance(value, str)
        and len(value) <= length
        and value == value.rstrip(" ")
        and (value.isascii() or all(ord(letter) < 256 for letter in value))
    )


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_word, value))


# The form that a field of the namespace must have; it may have been edited, or made by anybody.
_FORMS: dict[str, Any] = {
    "name": lambda v: isinstance(v, str) and len(v) == NAME_CHARS and _was_name(v.strip(" ")),
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


def plan(bundle: Bundle, options: dict[str, Any]) -> Planned:
    """Return what a bundle becomes, and everything that `fits` has to say about it."""
    planned = Planned()
    space = bundle.formats.get("har", {})
    wanted = options.get("framing", "auto")
    stored = space.get("framing", LITTLE)
    planned.framing = stored if wanted == "auto" and stored in (LITTLE, BIG, LAHEY) else wanted
    if planned.framing == "auto":
        planned.framing = LITTLE
    planned.headers = [Planning(array) for array in bundle.arrays]
    shown = bundle.format == "har" and space.get("housekeeping") == "shown"
    _name_all(planned, shown=shown)
    for header in planned.headers:
        header.may_cut = bundle.allows("elements")
        _plan_type(header)
        _plan_texts(header)
        _plan_sets(header)
        _plan_storage(header, options.get("storage", "auto"))
        _say_lost(header)
        planned.fits += header.fits
    planned.hidden = _hidden(planned, space)
    planned.fits += file_fits(bundle, "HAR")
    return planned


# --- names ----------------------------------------------------------------------------------------


def _name_all(planned: Planned, *, shown: bool) -> None:
    """Give every header a name of its own: that of its array, or one made from it."""
    exact: set[str] = set()
    taken: set[str] = set()  # in capitals, since GEMPACK does not tell them apart
    for header in planned.headers:
        name = header.array.name
        origin = bool(header.own)
        fine = _PLAIN_NAME.fullmatch(name) or (origin and _was_name(name))
        hidden = name[:2].upper() == "XX" and not shown
        if fine and not hidden and name not in exact and (origin or name.upper() not in taken):
            header.name = name
            exact.add(name)
            taken.add(name.upper())
    ways: dict[str, Iterator[str]] = {}
    for header in planned.headers:
        if not header.name:
            stem = _stem(header.array.name)
            way = ways.setdefault(stem, _candidates(stem))
            header.name = next((name for name in way if name not in taken), "")
            taken.add(header.name)
            if header.name:
                header.equivalent("names", f"becomes the header '{header.name}'")
            else:
                header.refused("names", "no name of four letters or digits is left")
        raw = header.own.get("name", "")
        header.raw = raw if raw.strip(" ") == header.name else header.name


def _was_name(name: str) -> bool:
    plain = name.isprintable() and "/" not in name and name == name.strip(" ")
    return plain and 0 < len(name) <= NAME_CHARS and _is_word(name)


def _stem(name: str) -> str:
    """Return the first letters and digits of a name's last part, in capitals."""
    last = name.rstrip("/").rpartition("/")[2][:1000]
    letters = "".join(c for c in last.upper() if c.isascii() and c.isalnum())[:NAME_CHARS]
    return f"A{letters}"[:NAME_CHARS] if not letters or letters.startswith("XX") else letters


def _candidates(stem: str) -> Iterator[str]:
    """Yield names that resemble the stem less and less, none of them of housekeeping."""
    numbered = (
        stem[: NAME_CHARS - digits] + "".join(letters)
        for digits in range(1, NAME_CHARS + 1)
        for letters in product(_LETTERS, repeat=digits)
    )
    return (name for name in chain([stem], numbered) if not name.startswith("XX"))


# --- types ----------------------------------------------------------------------------------------


def _plan_type(header: Planning) -> None:
    array = header.array
    kind, nbytes = array.element.kind, array.element.nbytes
    if kind == "user":
        _plan_strings(header)
    elif (kind, nbytes) == ("float", 4):
        header.type = _real_type(header)
    elif (kind, nbytes) == ("float", 2):
        header.equivalent("type", "float16 becomes float32")
    elif (kind, nbytes) == ("int", 4) or (kind, nbytes) in _SMALL:
        _plan_integers(header, small=(kind, nbytes) in _SMALL)
    else:
        _refuse_number(header)
    if array.ndim > MAX_RANK:
        header.refused("shape", f"{array.ndim} axes; HAR holds {MAX_RANK}; {_OTHERS}")
    elif max(array.dims, default=0) > MAX_INT32:
        header.refused("shape", f"an axis above {MAX_INT32}; {_OTHERS}")


def _real_type(header: Planning) -> str:
    """Return the type for float32: as it was, where that holds all that there is now."""
    array, own = header.array, header.own.get("type")
    if _has_sets(array):
        return REAL
    if own == REAL_MATRIX and array.ndim == 2:
        return REAL_MATRIX
    bare = own == REAL_BARE and not (array.dims and array.dims[-1] == 1)
    return REAL_BARE if bare else REAL


def _has_sets(array: Array) -> bool:
    return any(axis.name or axis.labels is not None for axis in array.meta.axes)


def _plan_integers(header: Planning, *, small: bool) -> None:
    array = header.array
    name = type_name(little(array.element))
    if small and (array.ndim > 2 or _has_sets(array)):
        header.equivalent("type", f"{name} becomes float32, which holds all its values")
        return
    if array.ndim > 2:
        reason = f"{array.ndim} axes of int32; HAR holds integers as matrices only"
        header.refused("shape", reason, "--dtype float32")
        return
    header.type = INTEGER
    if small:
        header.equivalent("type", f"{name} becomes int32")
    if array.ndim < 2:
        header.dims = (*array.dims, 1, 1)[:2]
        shape = f"{header.dims[0]} x {header.dims[1]}"
        header.equivalent("shape", f"becomes a matrix of {shape}, the only form of integers")


def _refuse_number(header: Planning) -> None:
    array = header.array
    name = type_name(little(array.element))
    if array.element.kind == "complex":
        header.refused("type", f"HAR holds no {name}; {_OTHERS}")
        return
    integers = array.element.kind in ("int", "uint") and array.ndim <= 2
    wanted = "int32" if integers else "float32"
    header.refused("type", f"HAR holds no {name}", f"--dtype {wanted}")


def _plan_strings(header: Planning) -> None:
    array = header.array
    header.type = TEXT
    letter = array.element.descr.lstrip("<>|")[:1] if isinstance(array.element.descr, str) else ""
    width = string_width(array)
    if letter not in ("S", "U"):
        header.refused("type", f"HAR holds no {type_name(array.element)}; {_OTHERS}")
        return
    if letter == "U":
        reason = f"{type_name(array.element)} becomes Latin-1 bytes, padded with blanks"
        header.refused("type", reason, "--allow dtype")
    elif header.own.get("type") != TEXT:
        header.equivalent("type", "strings are padded with blanks")
    if width > STRINGS_BYTES:
        reason = f"strings of {width} characters; HAR holds {STRINGS_BYTES}; {_OTHERS}"
        header.refused("elements", reason)
    if array.ndim > 1:
        reason = f"{array.ndim} axes of strings; HAR holds lists of strings; {_OTHERS}"
        header.refused("shape", reason)
    elif array.ndim == 0:
        header.dims = (1,)
        header.equivalent("shape", "becomes a list of one string")


def string_width(array: Array) -> int:
    """Return the number of characters of an array of strings."""
    unicode = isinstance(array.element.descr, str) and "U" in array.element.descr
    width: int = array.element.nbytes
    return width // 4 if unicode else width


def _plan_storage(header: Planning, wanted: str) -> None:
    kept = header.own.get("storage", "auto")
    header.storage = kept if wanted == "auto" else wanted
    if header.type not in (REAL, REAL_BARE):
        header.storage = "full"
    elif prod(header.dims) > MAX_INT32:
        if header.storage == "sparse" and wanted == "sparse":
            reason = f"more than {MAX_INT32} values have no position in sparse storage"
            header.refused("storage", reason)
        header.storage = "full"


# --- texts and sets -------------------------------------------------------------------------------


def _plan_texts(header: Planning) -> None:
    array = header.array
    last = array.name.rpartition("/")[2]
    default = ""
    if not header.own:
        axes = array.meta.axes
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
    """Return a text as it can be held: one line of so many Latin-1 characters.

    What comes from a HAR file (`origin`) may have any characters.
    """
    words = words[:length]
    if not (words.isascii() and words.isprintable()):
        words = words.encode("latin-1", "replace").decode("latin-1")
        if not origin:
            words = "".join(c if c.isprintable() or c == "\xa0" else " " for c in words)
    return words.rstrip(" ")


def _plan_sets(header: Planning) -> None:
    """Give every dimension of an RE header a set name, and labels where its axis has them."""
    array, rank = header.array, header.array.ndim
    if header.type != REAL or rank > MAX_RANK:
        return
    axes = array.meta.axes if len(array.meta.axes) == rank else [Axis()] * rank
    kept = header.own.get("sets", [])
    usual = kept if len(kept) == rank else set_names([None] * rank)
    words = [axis.name or name for axis, name in zip(axes, usual, strict=True)]
    labels = [_labels(header, *pair) for pair in zip(axes, array.dims, strict=True)]
    names = _shortened(words, origin=bool(header.own))
    header.sets = _distinct(header, names, labels)
    for axis, (name, _) in zip(axes, header.sets, strict=True):
        if axis.name and name != axis.name:
            header.equivalent("metadata", f"axis '{_shown(axis.name)}' becomes the set '{name}'")
    status = header.own.get("status", "").ljust(rank)
    header.status = "".join(
        "e" if letter == "e" and size == 1 else "u" if found is None else "k"
        for letter, size, found in zip(status[:rank], array.dims, labels, strict=True)
    )


def _shown(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:37]}..."


def _shortened(words: list[str], *, origin: bool = False) -> list[str]:
    """Return words of up to 12 Latin-1 characters, numbered where they would be the same."""
    found = [_fitted(word, WORD_CHARS, origin=origin) for word in words]
    taken = {word.upper() for word, whole in zip(found, words, strict=True) if word == whole}
    numbers: dict[str, int] = {}
    made: dict[str, str] = {}
    for n, whole in enumerate(words):
        if found[n] != whole:
            if whole not in made:
                made[whole] = _numbered(found[n], taken, numbers)
            found[n] = made[whole]
    return found


def _numbered(word: str, taken: set[str], numbers: dict[str, int]) -> str:
    """Return the word, or the word with the first number behind it that makes it a new one."""
    free, number = word, numbers.get(word, 1)
    while not free or free.upper() in taken:
        number += 1
        free = f"{word[: WORD_CHARS - len(str(number))]}{number}"
    numbers[word] = number
    taken.add(free.upper())
    return free


def _distinct(
    header: Planning, names: list[str], labels: list[list[str] | None]
) -> list[tuple[str, list[str] | None]]:
    """Give sets of one name but other labels a name of their own; a name has one label list."""
    seen: dict[str, tuple[str, list[str] | None]] = {}
    found = []
    for name, own in zip(names, labels, strict=True):
        entry, number = (name, own), 1
        key = name if header.own else name.upper()
        while own is not None and seen.get(key, entry) != entry:
            number += 1
            entry = f"{name[: WORD_CHARS - 1]}{number}", own
            key = entry[0] if header.own else entry[0].upper()
        if own is not None:
            seen[key] = entry
        found.append(entry)
    return found


def _labels(header: Planning, axis: Axis, size: int) -> list[str] | None:
    """Return the labels of an axis as they can be held; None without."""
    if axis.labels is None:
        return None
    what = f"labels of axis '{_shown(axis.name or '?')}'"
    if len(axis.labels) != size:
        header.equivalent("metadata", f"{len(axis.labels)} {what} are left out: it has {size}")
        return None
    found = _shortened([_label(label) for label in axis.labels], origin=bool(header.own))
    changed = [(a, b) for a, b in zip(axis.labels, found, strict=True) if a != b]
    if changed:
        some = ", ".join(f"{_shown(str(a))!r} is {b!r}" for a, b in islice(changed, 3))
        more = f", and {len(changed) - 3} more" if len(changed) > 3 else ""
        header.equivalent("metadata", f"{what} become texts of {WORD_CHARS}: {some}{more}")
    return found


def _label(label: object) -> str:
    if isinstance(label, bytes):
        return label.decode("latin-1")
    return label if isinstance(label, str) else str(label)


# --- what is lost ---------------------------------------------------------------------------------


def _say_lost(header: Planning) -> None:
    meta = header.array.meta
    lost = [name for name in ("units", "encoding", "attributes") if getattr(meta, name)]
    others = [name for name, space in meta.formats.items() if space and name != "har"]
    lost += [f"the namespace {name}" for name in others]
    lost += ["what single items have"] if meta.items is not None else []
    lost += [f"{field} of axes" for field in _lost_of_axes(header, meta.axes)]
    if lost:
        header.equivalent("metadata", f"left out: {', '.join(lost)}")


def _lost_of_axes(header: Planning, axes: list[Axis]) -> list[str]:
    fields = ["kind", "units", "spacing", "origin"]
    if header.type != REAL or len(axes) != header.array.ndim:
        fields += ["name", "labels"]
    return [field for field in fields if any(getattr(axis, field) is not None for axis in axes)]


def _hidden(planned: Planned, space: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the housekeeping headers that can be written; say which cannot."""
    listed = space.get("hidden", [])
    listed = listed if isinstance(listed, list) else [None]
    swapped = (planned.framing == BIG) != (space.get("framing") == BIG)
    found = []
    for kept in listed:
        reason = _unusable(kept)
        if not reason and swapped and "records" in kept:
            reason = "its byte order is another"
        if reason:
            name = kept.get("name", "?") if isinstance(kept, dict) else "?"
            text = f"the housekeeping header {name!r} is left out: {reason}"
            planned.fits.append(equivalent("", "metadata", text))
        else:
            found.append(kept)
    return found


def _unusable(kept: Any) -> str:
    """Return what is wrong with the description of a hidden header, or nothing."""
    if not isinstance(kept, dict) or type(kept.get("before", 0)) is not int:
        return "it has no valid form"
    name = kept.get("name")
    if not isinstance(name, str) or len(name) > NAME_CHARS or not _was_name(name.strip(" ")):
        return "it has no valid name"
    if "records" in kept:
        payloads = kept["records"]
        fine = isinstance(payloads, list) and all(map(_is_payload, payloads))
        return "" if fine else "its records have no valid form"
    return "" if "text" not in kept or _is_text(kept) else "its text has no valid form"


def _is_payload(value: object) -> bool:
    return isinstance(value, bytes) and value.startswith(BLANKS)


def _is_text(kept: dict[str, Any]) -> bool:
    width, lines = kept.get("width"), kept["text"]
    if type(width) is not int or not 0 < width <= STRINGS_BYTES or not isinstance(lines, list):
        return False
    fine = [_is_word(line, width) for line in lines]
    fine.append(_is_word(kept.get("long", ""), LONG_CHARS))
    fine += [_FORMS[key](kept[key]) for key in ("split", "counters") if key in kept]
    return all(fine)
