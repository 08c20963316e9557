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
    "image_metadata", "namespace_of", "table_cards",
]  # fmt: skip

_FOREIGN = {
    "IMAGE": (STRUCTURE, IMAGE_KEYWORDS), "BINTABLE": (STRUCTURE, TABLE_KEYWORDS),
    "TABLE": (STRUCTURE, TABLE_KEYWORDS),
    "TILES": (STRUCTURE, IMAGE_KEYWORDS, TABLE_KEYWORDS, TILE_KEYWORDS),
}  # fmt: skip
# Fields of the namespace about attributes.
OF_ATTRIBUTES = ("comments", "words", "commentary")


# Keywords as attributes ---------------------------------------------------------------------------


def _is_attribute(name: str, kind: str) -> bool:
    """True for a keyword that is an attribute in an HDU of this kind."""
    patterns = _FOREIGN.get(kind, (STRUCTURE,))
    if not name or (kind in ("IMAGE", "TILES") and _WCS.fullmatch(name)):
        return False
    return not any(pattern.fullmatch(name) for pattern in patterns)


def attributes_of(unit: Unit) -> dict[str, Any]:
    """The keywords that are not about the structure or the coordinates, and the commentary."""
    keywords = {k: value for k, value in unit.values.items() if _is_attribute(k, unit.kind)}
    names = {keyword: name for name, keyword in TEXTS.items()}
    texts = {names.get(k, k): "\n".join(lines) for k, lines in unit.cards.lines.items()}
    return texts | keywords if texts.keys() & keywords.keys() else keywords | texts


def namespace_of(unit: Unit, notes: list[str], name: str) -> dict[str, Any]:
    """The part of the namespace about attributes: comments, words, commentary (see `Cards`)."""
    cards, attributes = unit.cards, attributes_of(unit)
    own: dict[str, Any] = {
        "comments": {k: text for k, text in cards.comments.items() if k in attributes},
        "words": {k: text for k, text in cards.words.items() if k in attributes},
        "commentary": [
            k for k in cards.lines if k in attributes and k not in TEXTS and k not in cards.values
        ],
    }
    if repeated := [*dict.fromkeys(cards.twice), *(cards.lines.keys() & cards.values.keys())]:
        notes.append(
            f"'{name}': keywords that occur more than once have their first value: "
            f"{first_of(repeated)}"
        )
    return {key: value for key, value in own.items() if value}


def attribute_cards(
    attributes: Mapping[str, Any], own: Mapping[str, Any], kind: str
) -> tuple[list[str], list[str]]:
    """The cards of attributes, and the names of the attributes that FITS cannot hold."""
    comments, words, listed = (own.get(key) for key in OF_ATTRIBUTES)
    comments = comments if isinstance(comments, dict) else {}
    words = words if isinstance(words, dict) else {}
    listed = listed if isinstance(listed, list) else []
    cards, lost = [], []
    for name, value in attributes.items():
        comment = comments.get(name, "")
        comment = comment if isinstance(comment, str) and is_text(comment) else ""
        if name in TEXTS or (name in listed and _is_keyword(name)):
            lines = commentary(TEXTS.get(name, name), value) if isinstance(value, str) else []
        elif not _is_attribute(name, kind) or TILE_KEYWORDS.fullmatch(name) or name in _NO_NAMES:
            lines = []
        elif name in words and value == words[name] and isinstance(value, str) and is_text(value):
            line = f"{name:8}= {value} / {comment}" if comment else f"{name:8}= {value}"
            lines = [line] if _is_keyword(name) and len(line) <= 80 else []
        else:
            lines = keyword_cards(name, value, comment)
        cards += lines
        lost += [] if lines else [name]
    return cards, lost


_NO_NAMES = ("CONTINUE", "HIERARCH", *TEXTS)


def _is_keyword(name: str) -> bool:
    """True for a keyword of one card that is not about structure."""
    return re.fullmatch(r"[A-Z0-9_-]{1,8}", name) is not None and _is_attribute(name, "")


# Coordinates --------------------------------------------------------------------------------------
# Keywords of an axis of the world have its number; CRPIX, and the second number of PC and CD, have
# the number of an axis of the image.

_AXIS = re.compile(r"(CTYPE|CUNIT|CDELT|CRVAL|CRPIX|CROTA|CNAME|CRDER|CSYER)(\d{1,2})([A-Z]?)")
_MATRIX = re.compile(r"(PC|CD)(\d{1,2})_(\d{1,2})([A-Z]?)")
_PARAMETER = re.compile(r"(PV|PS)(\d{1,2})_(\d{1,2})([A-Z]?)")
_COUNT = re.compile(r"WCSAXES([A-Z]?)")
# Polynomials of pixels (SIP) and tables of distortion: of whole images, or parts without steps.
_DISTORTED = re.compile(
    r"[AB]P?_(?:ORDER|DMAX|\d{1,2}_\d{1,2})|(?:CPDIS|CQDIS|CPERR|CQERR)\d{1,2}[A-Z]?"
)
_WCS = re.compile("|".join(
    re.sub(r"\((?!\?)", "(?:", keywords.pattern)
    for keywords in (_AXIS, _MATRIX, _PARAMETER, _COUNT, _DISTORTED)
))  # fmt: skip
_PROJECTED = re.compile(r".{4}-")  # four letters, a hyphen and an algorithm: not linear


def coordinates(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of the coordinates of an image."""
    return {key: value for key, value in values.items() if _WCS.fullmatch(key)}


def linear_axes(wcs: Mapping[str, Any], rank: int) -> list[Axis | None]:
    """The axes by the keywords, the fastest first; None for an axis not linear, or not alone."""
    rotated = any(wcs.get(f"CROTA{n}") for n in range(1, rank + 1))
    if rotated or any(_DISTORTED.fullmatch(key) for key in wcs):
        return [None] * rank
    mixed: set[int] = set()
    of_matrix: dict[str, dict[int, Any]] = {"PC": {}, "CD": {}}
    for key, value in wcs.items():
        match = _MATRIX.fullmatch(key)
        if match is None or match[4]:
            continue
        row, column = int(match[2]), int(match[3])
        if row == column:
            of_matrix[match[1]][row] = value
        elif value != 0:
            mixed |= {row, column}
    mixed |= {int(match[2]) for key in wcs if (match := _PARAMETER.fullmatch(key))}
    return [
        None if n in mixed else _linear_axis(wcs, n, of_matrix["PC"], of_matrix["CD"])
        for n in range(1, rank + 1)
    ]


def _linear_axis(
    wcs: Mapping[str, Any], n: int, pc: Mapping[int, Any], cd: Mapping[int, Any]
) -> Axis | None:
    """Axis `n` by its keywords and the diagonals of PC and CD; None if it is not linear."""
    name, units = wcs.get(f"CTYPE{n}", ""), wcs.get(f"CUNIT{n}", "")
    factors = [cd.get(n, 0.0)] if cd else [wcs.get(f"CDELT{n}", 1.0), pc.get(n, 1.0)]
    value, pixel = wcs.get(f"CRVAL{n}", 0.0), wcs.get(f"CRPIX{n}", 0.0)
    numbers = [*factors, value, pixel]
    linear = isinstance(name, str) and isinstance(units, str) and not _PROJECTED.match(name)
    finite = all(type(number) in (int, float) and isfinite(number) for number in numbers)
    if not linear or not finite:
        return None
    step = float(factors[0])
    for factor in factors[1:]:
        step *= factor
    origin = float(value + (1 - pixel) * step)
    located = n in cd or n in pc or any(f"{key}{n}" in wcs for key in ("CDELT", "CRVAL", "CRPIX"))
    if not step or not isfinite(step) or not isfinite(origin):
        return None
    return Axis(
        name or None, units=units or None, spacing=step if located else None,
        origin=origin if located else None,
    )  # fmt: skip


def _canonical(axis: Axis, n: int) -> dict[str, Any]:
    """The keywords that are written for an axis."""
    wcs: dict[str, Any] = {}
    if axis.name:
        wcs[f"CTYPE{n}"] = axis.name
    if axis.units:
        wcs[f"CUNIT{n}"] = axis.units
    if axis.spacing is not None:
        wcs |= {f"CRPIX{n}": 1.0, f"CDELT{n}": float(axis.spacing),
                 f"CRVAL{n}": float(axis.origin or 0)}  # fmt: skip
    return wcs


def image_metadata(unit: Unit, notes: list[str], name: str, bits: int, flipped: bool) -> Metadata:
    """The metadata of an image; with `flipped`, BZERO is part of its type."""
    values, rank = unit.values, len(unit.shape)
    attributes = attributes_of(unit)
    slope, zero, blank = values.get("BSCALE", 1), values.get("BZERO", 0), values.get("BLANK")
    if not flipped:
        attributes |= {"scale_factor": slope} if slope != 1 else {}
        attributes |= {"add_offset": zero} if zero != 0 else {}
    if type(blank) is int and bits > 0:
        attributes["_FillValue"] = blank + (zero if flipped else 0)
    units = values.get("BUNIT")
    wcs, own = coordinates(values), namespace_of(unit, notes, name)
    axes = linear_axes(wcs, rank)
    usual: dict[str, Any] = {}
    for n, axis in enumerate(axes, 1):
        usual |= _canonical(axis, n) if axis else {}
    if wcs != usual:
        own["wcs"] = wcs
        own["axes"] = [
            {"pixels": {"axis": n, "of": rank, "first": 0, "step": 1}} for n in range(rank, 0, -1)
        ]
    others = [key for key in wcs if not _is_held(key, axes)]
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


def _is_held(key: str, axes: Sequence[Axis | None]) -> bool:
    """True for a keyword whose meaning the axes hold."""
    match = _AXIS.fullmatch(key)
    if match is not None and not match[3]:
        n = int(match[2])
        linear = match[1] in ("CTYPE", "CUNIT", "CDELT", "CRVAL", "CRPIX", "CROTA")
        return linear and n <= len(axes) and axes[n - 1] is not None
    matrix = _MATRIX.fullmatch(key)
    if matrix is not None and not matrix[4]:
        return all(int(n) <= len(axes) and axes[int(n) - 1] for n in (matrix[2], matrix[3]))
    return key == "WCSAXES"


# Coordinates of a part, or of axes in another order


def _moved(own: Mapping[str, Any], rank: int) -> dict[str, Any] | None:
    """The recorded keywords, renumbered for the present axes; None if they do not apply to them.

    `rank` is that of the array now. Its axes can be the axes of the file in another order, parts of
    these, and new ones.
    """
    wcs, listed = own.get("wcs"), own.get("axes")
    if not isinstance(wcs, dict) or not all(_WCS.fullmatch(str(key)) for key in wcs):
        return None
    if not isinstance(listed, list) or len(listed) != rank:
        return None
    # For each axis of the image in the file: its number now, the first pixel and the step.
    pixels: dict[int, tuple[int, int, int]] = {}
    whole = 0
    for now, entry in enumerate(listed[::-1], 1):
        part = entry.get("pixels") if isinstance(entry, dict) else None
        if part is None:
            continue
        numbers = [part.get(key) for key in ("axis", "first", "step", "of")]
        if any(type(number) is not int for number in numbers) or not numbers[2]:
            return None
        pixels[numbers[0]] = (now, numbers[1], numbers[2])
        whole = max(whole, numbers[3])
    if whole > rank or pixels.keys() != set(range(1, whole + 1)):
        return None
    return _renumbered(wcs, pixels, rank)


def _renumbered(
    wcs: Mapping[str, Any], pixels: Mapping[int, tuple[int, int, int]], rank: int
) -> dict[str, Any] | None:
    """The keywords for the axes in `pixels` (see `_moved`); None if they cannot be adapted."""
    numbers = {n: now for n, (now, _, _) in pixels.items()}
    same = all(n == now for n, now in numbers.items())
    stepped = {n for n, (_, _, step) in pixels.items() if step != 1}
    distorted = any(_DISTORTED.fullmatch(key) for key in wcs)
    rotated = any(key.startswith("CROTA") and value for key, value in wcs.items())
    if (distorted and not (same and not stepped)) or (rotated and stepped):
        return None
    if rank != len(pixels) and any(int(n) > len(pixels) for n in _numbers_in(wcs)):
        return None
    keywords: dict[str, Any] = {}
    for key, value in wcs.items():
        is_count = _COUNT.fullmatch(key) and type(value) is int
        keywords[_renamed(key, numbers)] = max(value, rank) if is_count else value
    for version in {*(match[3] for key in wcs if (match := _AXIS.fullmatch(key)))}:
        for now, first, step in pixels.values():
            if (first, step) != (0, 1) and not _shift(keywords, now, first, step, version):
                return None
    return keywords


def _renamed(key: str, numbers: Mapping[int, int]) -> str:
    """A keyword with the new numbers of its axes; `numbers` has them by the old ones."""
    if match := _AXIS.fullmatch(key):
        n = int(match[2])
        return f"{match[1]}{numbers.get(n, n)}{match[3]}"
    if match := _MATRIX.fullmatch(key):
        row, column = (numbers.get(int(n), int(n)) for n in match.group(2, 3))
        return f"{match[1]}{row}_{column}{match[4]}"
    if match := _PARAMETER.fullmatch(key):
        n = int(match[2])
        return f"{match[1]}{numbers.get(n, n)}_{match[3]}{match[4]}"
    return key


def _numbers_in(wcs: Mapping[str, Any]) -> list[str]:
    """The numbers of axes in keywords."""
    numbers: list[str] = []
    for key in wcs:
        if match := _AXIS.fullmatch(key) or _PARAMETER.fullmatch(key):
            numbers.append(match[2])
        elif match := _MATRIX.fullmatch(key):
            numbers += match.group(2, 3)
    return numbers


def _shift(keywords: dict[str, Any], n: int, first: int, step: int, version: str) -> bool:
    """Adapt the keywords of an axis to a part of the image; False if they are not numbers."""
    pixel = keywords.get(f"CRPIX{n}{version}", 0.0)
    if not is_real(pixel):
        return False
    keywords[f"CRPIX{n}{version}"] = (pixel - 1 - first) / step + 1
    if step == 1:
        return True
    matrices: dict[str, list[str]] = {"PC": [], "CD": []}
    for key in keywords:
        match = _MATRIX.fullmatch(key)
        if match and match[4] == version:
            matrices[match[1]].append(key)
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
    """True for an element of column `n` of a matrix."""
    match = _MATRIX.fullmatch(key)
    return match is not None and int(match[3]) == n


# From metadata to cards ---------------------------------------------------------------------------


def image_cards(array: Array) -> tuple[list[str], int, list[str]]:
    """The cards of an image except those of its structure; its BITPIX; and its lost metadata.

    It is to be an image that `plan` does not refuse.
    """
    kind = (array.element.kind, array.element.nbytes)
    bits = 8 if array.element.kind == "bool" else BITPIX.get(kind, OTHERS.get(kind, 8))
    flipped = kind in OTHERS
    meta = array.meta if array.described else Metadata()
    own = _own(meta)
    scale, others = _scale_of(meta.attributes, bits, flipped)
    if flipped:
        scale["BZERO"] = OTHER_SIGN[bits]
    scale_cards = [card(name, value) for name, value in scale.items()]
    lost: list[str] = []
    if meta.units and fits_one_card(meta.units):
        scale_cards.append(card("BUNIT", meta.units))
    elif meta.units:
        lost.append("units")
    coordinate_cards, lost_coordinates = _coordinate_cards(array, own)
    lost += lost_coordinates
    if not array.dims:  # a single number has one axis in the file
        coordinate_cards = []
    cards, lost_names = attribute_cards(others, own, "IMAGE")
    lost += [f"attributes ({first_of(lost_names, 10)})"] if lost_names else []
    lost += [f"fits {key}" for key in own if key not in (*OF_ATTRIBUTES, "wcs", "axes")]
    if array.described:
        lost += facts_of(array, "units", "axes", "attributes", NAMESPACE)
    return [*scale_cards, *coordinate_cards, *cards], bits, lost


def table_cards(array: Array) -> tuple[list[str], list[str]]:
    """The cards of a table except those of structure and columns, and its lost metadata."""
    meta = array.meta if array.described else Metadata()
    own = _own(meta)
    cards, lost_names = attribute_cards(meta.attributes, own, "BINTABLE")
    lost = [f"attributes ({first_of(lost_names, 10)})"] if lost_names else []
    lost += [f"fits {key}" for key in own if key not in (*OF_ATTRIBUTES, "columns")]
    if array.described:
        lost += facts_of(array, "attributes", NAMESPACE)
    return cards, lost


def _own(meta: Metadata) -> Mapping[str, Any]:
    own = meta.formats.get(NAMESPACE)
    return own if isinstance(own, dict) else {}


def _coordinate_cards(array: Array, own: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The cards of the coordinates, and the names of those that are lost."""
    axes = list(array.ra_axes) if array.described else []
    axes = axes if len(axes) == array.ndim else [Axis()] * array.ndim
    wcs = _moved(own, array.ndim) if "wcs" in own else None
    lost = ["fits wcs"] if "wcs" in own and wcs is None else []
    by_axis: list[list[str]] = []
    cards: list[str] = []
    of_file = linear_axes(wcs, array.ndim) if wcs else []
    for n, axis in enumerate(axes, 1):
        usual = Axis(axis.name, units=axis.units, spacing=axis.spacing, origin=axis.origin)
        if wcs and _has_axis(wcs, n) and of_file[n - 1] in (None, usual):
            lost_fields = fields_of_axes([axis], "kind", "labels", "direction")
            if of_file[n - 1] is None:
                lost_fields += fields_of_axes([axis], "name", "units", "spacing", "origin")
        else:
            of_axis, lost_fields = _of_axis(axis, n)
            cards += of_axis
            if wcs:
                wcs = {key: value for key, value in wcs.items() if not _names(key, n)}
        by_axis.append(lost_fields)
    of_wcs: list[str] = []
    wcs = wcs or {}
    for key in sorted(wcs, key=lambda key: not _COUNT.fullmatch(key)):  # WCSAXES comes first
        of_keyword = keyword_cards(key, wcs[key])
        of_wcs += of_keyword
        lost += [] if of_keyword else [f"fits wcs {key}"]
    lost += facts_of_axes(array, by_axis) if array.described and array.ra_axes else []
    return [*of_wcs, *cards], lost


def _has_axis(wcs: Mapping[str, Any], n: int) -> bool:
    return any(_names(key, n) for key in wcs)


def _names(key: str, n: int) -> bool:
    """True if a keyword of the first description of coordinates is about an axis."""
    match = _AXIS.fullmatch(key) or _PARAMETER.fullmatch(key)
    if match is not None:
        return not match[match.lastindex or 0] and int(match[2]) == n
    matrix = _MATRIX.fullmatch(key)
    return matrix is not None and not matrix[4] and str(n) in matrix.group(2, 3)


def _scale_of(
    attributes: Mapping[str, Any], bits: int, flipped: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keywords of a scale with their values, and the other attributes."""
    others = dict(attributes)
    scale: dict[str, Any] = {}
    for name, keyword in SCALE.items():
        value: Any = attributes.get(name)
        if type(value) not in (int, float) or not isfinite(value):
            continue
        # With BZERO for the sign, BLANK is a number that astropy does not read.
        holds = not flipped and (keyword != "BLANK" or (bits > 0 and type(value) is int))
        if holds:
            scale[keyword] = value
            del others[name]
    if (
        bits in OTHER_SIGN
        and scale.get("BSCALE", 1) == 1
        and scale.get("BZERO") == OTHER_SIGN[bits]
    ):
        others["add_offset"] = attributes["add_offset"]  # as BZERO it would flip the sign
        del scale["BZERO"]
    for keyword, usual in (("BSCALE", 1), ("BZERO", 0)):
        if scale.get(keyword) == usual:
            del scale[keyword]
    return scale, others


def _of_axis(axis: Axis, n: int) -> tuple[list[str], list[str]]:
    """The cards of an axis, and its lost fields."""
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
