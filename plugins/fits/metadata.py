"""The metadata that FITS holds: keywords as attributes, scales and coordinates, both ways."""

from __future__ import annotations

import re
from math import isfinite

from raconvert.metadata.reals import is_real
from raconvert.plugin import Axis, Metadata, facts_of, facts_of_axes, fields_of_axes, first_of

from .header import card, commentary, fits_one_card, is_text, keyword_cards
from .tables import (
    BITPIX,
    IMAGE_KEYWORDS,
    NAMESPACE,
    OTHER_SIGN,
    OTHERS,
    SCALE,
    STRUCTURE,
    TABLE_KEYWORDS,
    TEXTS,
    TILE_KEYWORDS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.plugin import Array

    from .header import Unit

__all__ = [
    "attribute_cards", "attributes_of", "coordinates", "image_cards",
    "image_metadata", "kept", "table_cards",
]  # fmt: skip

_FOREIGN = {
    "IMAGE": (STRUCTURE, IMAGE_KEYWORDS), "BINTABLE": (STRUCTURE, TABLE_KEYWORDS),
    "TABLE": (STRUCTURE, TABLE_KEYWORDS),
    "TILES": (STRUCTURE, IMAGE_KEYWORDS, TABLE_KEYWORDS, TILE_KEYWORDS),
}  # fmt: skip
# What a file says of keywords beside their values, by the name in the namespace.
KEPT = ("comments", "words", "commentary")


# Keywords as attributes ---------------------------------------------------------------------------


def _is_attribute(name: str, kind: str) -> bool:
    patterns = _FOREIGN.get(kind, (STRUCTURE,))
    coordinates = kind in ("IMAGE", "TILES") and _WCS.fullmatch(name)
    return bool(name) and not coordinates and not any(one.fullmatch(name) for one in patterns)


def attributes_of(unit: Unit) -> dict[str, Any]:
    """The keywords that are not about the structure or the coordinates, and the commentary."""
    keywords = {k: value for k, value in unit.values.items() if _is_attribute(k, unit.kind)}
    names = {keyword: name for name, keyword in TEXTS.items()}
    texts = {names.get(k, k): "\n".join(lines) for k, lines in unit.cards.lines.items()}
    return texts | keywords if texts.keys() & keywords.keys() else keywords | texts


def kept(unit: Unit, notes: list[str], name: str) -> dict[str, Any]:
    """The part of the namespace about attributes: comments, words, commentary (see `Cards`)."""
    cards, attributes = unit.cards, attributes_of(unit)
    own: dict[str, Any] = {
        "comments": {k: text for k, text in cards.comments.items() if k in attributes},
        "words": {k: text for k, text in cards.words.items() if k in attributes},
        "commentary": [
            k for k in cards.lines if k in attributes and k not in TEXTS and k not in cards.values
        ],
    }
    if again := [*dict.fromkeys(cards.twice), *(cards.lines.keys() & cards.values.keys())]:
        notes.append(
            f"'{name}': keywords that occur more than once have their first value: "
            f"{first_of(again)}"
        )
    return {key: value for key, value in own.items() if value}


def attribute_cards(
    attributes: Mapping[str, Any], own: Mapping[str, Any], kind: str
) -> tuple[list[str], list[str]]:
    """The cards of attributes, and the names of those that have none."""
    comments, words, listed = (own.get(key) for key in KEPT)
    comments = comments if isinstance(comments, dict) else {}
    words = words if isinstance(words, dict) else {}
    listed = listed if isinstance(listed, list) else []
    cards, lost = [], []
    for name, value in attributes.items():
        comment = comments.get(name, "")
        comment = comment if isinstance(comment, str) and is_text(comment) else ""
        if name in TEXTS or (name in listed and _is_keyword(name)):
            made = commentary(TEXTS.get(name, name), value) if isinstance(value, str) else []
        elif not _is_attribute(name, kind) or TILE_KEYWORDS.fullmatch(name) or name in _NO_NAMES:
            made = []
        elif name in words and value == words[name] and isinstance(value, str) and is_text(value):
            made = [f"{line} / {comment}" if comment else line for line in [f"{name:8}= {value}"]]
            made = made if _is_keyword(name) and len(made[0]) <= 80 else []
        else:
            made = keyword_cards(name, value, comment)
        cards += made
        lost += [] if made else [name]
    return cards, lost


_NO_NAMES = ("CONTINUE", "HIERARCH", *TEXTS)


def _is_keyword(name: str) -> bool:
    return re.fullmatch(r"[A-Z0-9_-]{1,8}", name) is not None and _is_attribute(name, "")


# Coordinates --------------------------------------------------------------------------------------
# Keywords of an axis of the world have its number, those of its place in the image (CRPIX, the
# second number of PC and CD) that of the axis of the image.

_AXIS = re.compile(r"(CTYPE|CUNIT|CDELT|CRVAL|CRPIX|CROTA|CNAME|CRDER|CSYER)(\d{1,2})([A-Z]?)")
_MATRIX = re.compile(r"(PC|CD)(\d{1,2})_(\d{1,2})([A-Z]?)")
_PARAMETER = re.compile(r"(PV|PS)(\d{1,2})_(\d{1,2})([A-Z]?)")
_COUNT = re.compile(r"WCSAXES([A-Z]?)")
# Polynomials of pixels (SIP) and tables of distortion: of whole images, or parts without steps.
_DISTORTED = re.compile(
    r"[AB]P?_(?:ORDER|DMAX|\d{1,2}_\d{1,2})|(?:CPDIS|CQDIS|CPERR|CQERR)\d{1,2}[A-Z]?"
)
_WCS = re.compile("|".join(
    re.sub(r"\((?!\?)", "(?:", one.pattern)
    for one in (_AXIS, _MATRIX, _PARAMETER, _COUNT, _DISTORTED)
))  # fmt: skip
_PROJECTED = re.compile(r".{4}-")  # four letters, a hyphen and an algorithm: not linear


def coordinates(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of the coordinates of an image."""
    return {key: value for key, value in values.items() if _WCS.fullmatch(key)}


def linear_axes(said: Mapping[str, Any], rank: int) -> list[Axis | None]:
    """The axes by the keywords, the fastest first; None for one that is not linear by itself."""
    turned = any(said.get(f"CROTA{n}") for n in range(1, rank + 1))
    if turned or any(_DISTORTED.fullmatch(key) for key in said):
        return [None] * rank
    mixed: set[int] = set()
    of_matrix: dict[str, dict[int, Any]] = {"PC": {}, "CD": {}}
    for key, value in said.items():
        match = _MATRIX.fullmatch(key)
        if match is None or match[4]:
            continue
        row, column = int(match[2]), int(match[3])
        if row == column:
            of_matrix[match[1]][row] = value
        elif value != 0:
            mixed |= {row, column}
    mixed |= {int(match[2]) for key in said if (match := _PARAMETER.fullmatch(key))}
    return [
        None if n in mixed else _linear_axis(said, n, of_matrix["PC"], of_matrix["CD"])
        for n in range(1, rank + 1)
    ]


def _linear_axis(
    said: Mapping[str, Any], n: int, pc: Mapping[int, Any], cd: Mapping[int, Any]
) -> Axis | None:
    name, units = said.get(f"CTYPE{n}", ""), said.get(f"CUNIT{n}", "")
    factors = [cd.get(n, 0.0)] if cd else [said.get(f"CDELT{n}", 1.0), pc.get(n, 1.0)]
    value, pixel = said.get(f"CRVAL{n}", 0.0), said.get(f"CRPIX{n}", 0.0)
    numbers = [*factors, value, pixel]
    fine = isinstance(name, str) and isinstance(units, str) and not _PROJECTED.match(name)
    if not fine or not all(type(one) in (int, float) and isfinite(one) for one in numbers):
        return None
    step = float(factors[0])
    for one in factors[1:]:
        step *= one
    origin = float(value + (1 - pixel) * step)
    places = n in cd or n in pc or any(f"{key}{n}" in said for key in ("CDELT", "CRVAL", "CRPIX"))
    if not step or not isfinite(step) or not isfinite(origin):
        return None
    return Axis(
        name or None, units=units or None, spacing=step if places else None,
        origin=origin if places else None,
    )  # fmt: skip


def _canonical(axis: Axis, n: int) -> dict[str, Any]:
    """The keywords that we write of an axis."""
    said: dict[str, Any] = {}
    if axis.name:
        said[f"CTYPE{n}"] = axis.name
    if axis.units:
        said[f"CUNIT{n}"] = axis.units
    if axis.spacing is not None:
        said |= {f"CRPIX{n}": 1.0, f"CDELT{n}": float(axis.spacing),
                 f"CRVAL{n}": float(axis.origin or 0)}  # fmt: skip
    return said


def image_metadata(unit: Unit, notes: list[str], name: str, bits: int, turned: bool) -> Metadata:
    """The metadata of an image; `turned` if BZERO is part of its type."""
    values, rank = unit.values, len(unit.shape)
    attributes = attributes_of(unit)
    slope, zero, blank = values.get("BSCALE", 1), values.get("BZERO", 0), values.get("BLANK")
    if not turned:
        attributes |= {"scale_factor": slope} if slope != 1 else {}
        attributes |= {"add_offset": zero} if zero != 0 else {}
    if type(blank) is int and bits > 0:
        attributes["_FillValue"] = blank + (zero if turned else 0)
    units = values.get("BUNIT")
    said, own = coordinates(values), kept(unit, notes, name)
    axes = linear_axes(said, rank)
    usual: dict[str, Any] = {}
    for n, axis in enumerate(axes, 1):
        usual |= _canonical(axis, n) if axis else {}
    if said != usual:
        own["wcs"] = said
        own["axes"] = [
            {"pixels": {"axis": n, "of": rank, "first": 0, "step": 1}} for n in range(rank, 0, -1)
        ]
    others = [key for key in said if not _is_of(key, axes)]
    if others:
        notes.append(
            f"array '{name}': coordinates that are not linear are kept as keywords, and not "
            f"applied: {', '.join(others[:6])}{' ...' if len(others) > 6 else ''}"
        )
    described = [axis or Axis() for axis in axes[::-1]]
    return Metadata(
        units=units if isinstance(units, str) and units else None, attributes=attributes,
        axes=described if any(described) else (), formats={NAMESPACE: own} if own else None,
    )  # fmt: skip


def _is_of(key: str, axes: Sequence[Axis | None]) -> bool:
    """True for a keyword that an axis says."""
    match = _AXIS.fullmatch(key)
    if match is not None and not match[3]:
        n = int(match[2])
        fine = match[1] in ("CTYPE", "CUNIT", "CDELT", "CRVAL", "CRPIX", "CROTA")
        return fine and n <= len(axes) and axes[n - 1] is not None
    matrix = _MATRIX.fullmatch(key)
    if matrix is not None and not matrix[4]:
        return all(int(n) <= len(axes) and axes[int(n) - 1] for n in (matrix[2], matrix[3]))
    return key == "WCSAXES"


# Coordinates of a part, or of axes in another order


def _moved(own: Mapping[str, Any], rank: int) -> dict[str, Any] | None:
    """The recorded keywords, renumbered for the present axes; None if they do not apply to them.

    `rank` is that of the array now. Its axes may be those of the file in another order, parts of
    them, and further ones.
    """
    said, listed = own.get("wcs"), own.get("axes")
    if not isinstance(said, dict) or not all(_WCS.fullmatch(str(key)) for key in said):
        return None
    if not isinstance(listed, list) or len(listed) != rank:
        return None
    pixels: dict[int, tuple[int, int, int]] = {}  # of the file -> now, first, step
    whole = 0
    for now, entry in enumerate(listed[::-1], 1):
        place = entry.get("pixels") if isinstance(entry, dict) else None
        if place is None:
            continue
        numbers = [place.get(key) for key in ("axis", "first", "step", "of")]
        if any(type(one) is not int for one in numbers) or not numbers[2]:
            return None
        pixels[numbers[0]] = (now, numbers[1], numbers[2])
        whole = max(whole, numbers[3])
    if whole > rank or pixels.keys() != set(range(1, whole + 1)):
        return None
    return _renumbered(said, pixels, rank)


def _renumbered(
    said: Mapping[str, Any], pixels: Mapping[int, tuple[int, int, int]], rank: int
) -> dict[str, Any] | None:
    numbers = {n: now for n, (now, _, _) in pixels.items()}
    same = all(n == now for n, now in numbers.items())
    stepped = {n for n, (_, _, step) in pixels.items() if step != 1}
    distorted = any(_DISTORTED.fullmatch(key) for key in said)
    rotated = any(key.startswith("CROTA") and value for key, value in said.items())
    if (distorted and not (same and not stepped)) or (rotated and stepped):
        return None
    if rank != len(pixels) and any(int(n) > len(pixels) for n in _numbers_in(said)):
        return None
    keywords: dict[str, Any] = {}
    for key, value in said.items():
        if one := _AXIS.fullmatch(key):
            n = int(one[2])
            keywords[f"{one[1]}{numbers.get(n, n)}{one[3]}"] = value
        elif one := _MATRIX.fullmatch(key):
            row, column = int(one[2]), int(one[3])
            keywords[f"{one[1]}{numbers.get(row, row)}_{numbers.get(column, column)}{one[4]}"] = (
                value
            )
        elif one := _PARAMETER.fullmatch(key):
            n = int(one[2])
            keywords[f"{one[1]}{numbers.get(n, n)}_{one[3]}{one[4]}"] = value
        else:
            keywords[key] = (
                max(value, rank) if _COUNT.fullmatch(key) and type(value) is int else value
            )
    for version in {*(one[3] for key in said if (one := _AXIS.fullmatch(key)))}:
        for now, first, step in pixels.values():
            if (first, step) != (0, 1) and not _shift(keywords, now, first, step, version):
                return None
    return keywords


def _numbers_in(said: Mapping[str, Any]) -> list[str]:
    numbers = [one[2] for key in said if (one := _AXIS.fullmatch(key) or _PARAMETER.fullmatch(key))]
    return numbers + [n for key in said if (one := _MATRIX.fullmatch(key)) for n in one.group(2, 3)]


def _shift(keywords: dict[str, Any], n: int, first: int, step: int, version: str) -> bool:
    """Change the keywords of an axis of the image to those of a part; False if it cannot be."""
    pixel = keywords.get(f"CRPIX{n}{version}", 0.0)
    if not is_real(pixel):
        return False
    keywords[f"CRPIX{n}{version}"] = (pixel - 1 - first) / step + 1
    if step == 1:
        return True
    matrices: dict[str, list[str]] = {"PC": [], "CD": []}
    for key in keywords:
        one = _MATRIX.fullmatch(key)
        if one and one[4] == version:
            matrices[one[1]].append(key)
    columns = [key for keys in matrices.values() for key in keys if _is_column(key, n)]
    if not matrices["CD"]:
        diagonal = f"PC{n}_{n}{version}"
        if matrices["PC"] and diagonal not in columns:
            keywords[diagonal] = 1.0
            columns.append(diagonal)
        elif not matrices["PC"]:
            keywords.setdefault(f"CDELT{n}{version}", 1.0)
            columns.append(f"CDELT{n}{version}")
    if not all(is_real(keywords[key]) for key in columns):
        return False
    for key in columns:
        keywords[key] = keywords[key] * step
    return True


def _is_column(key: str, n: int) -> bool:
    one = _MATRIX.fullmatch(key)
    return one is not None and int(one[3]) == n


# From metadata to cards ---------------------------------------------------------------------------


def image_cards(array: Array) -> tuple[list[str], int, list[str]]:
    """The cards of an image except those of its structure, its BITPIX, and its lost facts.

    Raises nothing for what `plan` lets pass.
    """
    kind = (array.element.kind, array.element.nbytes)
    bits = 8 if array.element.kind == "bool" else BITPIX.get(kind, OTHERS.get(kind, 8))
    turned = kind in OTHERS
    meta = array.meta if array.described else Metadata()
    own = _own(meta)
    scale, others = _scale_of(meta.attributes, bits, turned)
    if turned:
        scale["BZERO"] = OTHER_SIGN[bits]
    scale_cards = [card(name, value) for name, value in scale.items()]
    lost: list[str] = []
    if meta.units and fits_one_card(meta.units):
        scale_cards.append(card("BUNIT", meta.units))
    elif meta.units:
        lost.append("units")
    places, lost_places = _place_cards(array, own)
    lost += lost_places
    if not array.dims and places:  # a single number has one axis in the file
        places = []
    cards, lost_names = attribute_cards(others, own, "IMAGE")
    lost += [f"attributes ({first_of(lost_names, 10)})"] if lost_names else []
    lost += [f"fits {key}" for key in own if key not in (*KEPT, "wcs", "axes")]
    if array.described:
        lost += facts_of(array, "units", "axes", "attributes", NAMESPACE)
    return [*scale_cards, *places, *cards], bits, lost


def table_cards(array: Array) -> tuple[list[str], list[str]]:
    """The cards of a table except those of its structure and columns, and its lost facts."""
    meta = array.meta if array.described else Metadata()
    own = _own(meta)
    cards, lost_names = attribute_cards(meta.attributes, own, "BINTABLE")
    lost = [f"attributes ({first_of(lost_names, 10)})"] if lost_names else []
    lost += [f"fits {key}" for key in own if key not in (*KEPT, "columns")]
    if array.described:
        lost += facts_of(array, "attributes", NAMESPACE)
    return cards, lost


def _own(meta: Metadata) -> Mapping[str, Any]:
    own = meta.formats.get(NAMESPACE)
    return own if isinstance(own, dict) else {}


def _place_cards(array: Array, own: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The cards of the coordinates, and what of them is lost."""
    axes = list(array.ra_axes) if array.described else []
    axes = axes if len(axes) == array.ndim else [Axis()] * array.ndim
    said = _moved(own, array.ndim) if "wcs" in own else None
    lost = ["fits wcs"] if "wcs" in own and said is None else []
    by_axis: list[list[str]] = []
    cards: list[str] = []
    known = linear_axes(said, array.ndim) if said else []
    for n, axis in enumerate(axes, 1):
        usual = Axis(axis.name, units=axis.units, spacing=axis.spacing, origin=axis.origin)
        if said and _has_axis(said, n) and (known[n - 1] is None or known[n - 1] == usual):
            gone = fields_of_axes([axis], "kind", "labels", "direction")
            if known[n - 1] is None:
                gone += fields_of_axes([axis], "name", "units", "spacing", "origin")
        else:
            of_axis, gone = _of_axis(axis, n)
            cards += of_axis
            if said:
                said = {key: value for key, value in said.items() if not _names(key, n)}
        by_axis.append(gone)
    made: list[str] = []
    for key in sorted(said or {}, key=lambda key: not _COUNT.fullmatch(key)):
        one = keyword_cards(key, (said or {})[key])
        made += one
        lost += [] if one else [f"fits wcs {key}"]
    lost += facts_of_axes(array, by_axis) if array.described and array.ra_axes else []
    return [*made, *cards], lost


def _has_axis(said: Mapping[str, Any], n: int) -> bool:
    return any(_names(key, n) for key in said)


def _names(key: str, n: int) -> bool:
    """True if a keyword of the first description of coordinates is about an axis."""
    one = _AXIS.fullmatch(key) or _PARAMETER.fullmatch(key)
    if one is not None:
        return not one[one.lastindex or 0] and int(one[2]) == n
    matrix = _MATRIX.fullmatch(key)
    return matrix is not None and not matrix[4] and str(n) in matrix.group(2, 3)


def _scale_of(
    attributes: Mapping[str, Any], bits: int, turned: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cards of a scale, and the other attributes."""
    others = dict(attributes)
    scale: dict[str, Any] = {}
    for name, keyword in SCALE.items():
        value: Any = attributes.get(name)
        if type(value) not in (int, float) or not isfinite(value):
            continue
        # With BZERO for the sign, BLANK is a number that astropy does not read.
        fine = not turned and (keyword != "BLANK" or (bits > 0 and type(value) is int))
        if fine:
            scale[keyword] = value
            del others[name]
    if (
        bits in OTHER_SIGN
        and scale.get("BSCALE", 1) == 1
        and scale.get("BZERO") == OTHER_SIGN[bits]
    ):
        others["add_offset"] = attributes["add_offset"]  # it would say another signedness
        del scale["BZERO"]
    for keyword, usual in (("BSCALE", 1), ("BZERO", 0)):
        if scale.get(keyword) == usual:
            del scale[keyword]
    return scale, others


def _of_axis(axis: Axis, n: int) -> tuple[list[str], list[str]]:
    """The cards of an axis, and its fields that are lost."""
    lost = fields_of_axes([axis], "kind", "labels", "direction")
    name, units = axis.name or "", axis.units or ""
    if not (fits_one_card(name) and fits_one_card(units)) or _PROJECTED.match(name):
        lost += fields_of_axes([axis], "name", "units")
        name = units = ""
    step, first = axis.spacing, axis.origin
    if not is_real(step) or not step:
        lost += fields_of_axes([axis], "spacing", "origin")
        step = first = None
    elif not is_real(first):
        lost.append("origin unknown: written as 0")
        first = 0.0
    values = _canonical(Axis(name or None, units=units or None, spacing=step, origin=first), n)
    return [card(key, value) for key, value in values.items()], lost
