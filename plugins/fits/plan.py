"""Plan of a FITS file: an HDU for each array and group, and the losses."""

from __future__ import annotations

import re

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    equivalent,
    file_fits,
    first_of,
    refused,
    refused_type,
)

from .header import card, fits_one_card
from .metadata import attribute_cards, image_cards, table_cards
from .tables import BITPIX, MAX_RANK, NAMESPACE, OTHERS
from .writer import NewUnit, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["array_fits", "new_unit_of", "plan"]

_VERSIONED = re.compile(r"(.+),(0|[2-9]|[1-9][0-9]{1,8}|-[1-9][0-9]{0,8})")


def plan(bundle: Bundle, *, checksum: str = "yes") -> Plan:
    """The HDUs that arrays and groups become, with the metadata that headers hold; see `Plan`."""
    fits: list[Fit] = []
    names: set[str] = set()
    for array in bundle.arrays:
        fits += array_fits(array, names)
        names.add(array.name)
    own = bundle.formats.get(NAMESPACE)
    own = own if isinstance(own, dict) else {}
    cards: list[str] = []
    lost: list[str] = []
    if bundle.attributes:
        cards, lost = attribute_cards(bundle.attributes, own, "IMAGE")
    groups, lost_groups = _groups(bundle, names)
    rest = bundle.like(bundle.arrays)
    rest.attributes = {name: bundle.attributes[name] for name in lost}
    rest.groups = lost_groups
    fits += file_fits(rest, "FITS")

    def hdus() -> list[NewUnit]:
        arrays = [new_unit_of(array) for array in bundle.arrays]
        first = bundle.arrays[0]
        alone = len(arrays) == 1 or first.name == "PRIMARY"
        if cards or not alone or arrays[0].columns is not None:
            arrays = [NewUnit(8, (), cards), *arrays]
        return [*arrays, *groups]

    def write_all(target: Target) -> None:
        write(target, hdus(), checksum=checksum == "yes")

    return Plan(fits, write_all, names=bundle.names)


def _groups(bundle: Bundle, names: set[str]) -> tuple[list[NewUnit], dict[str, dict[str, Any]]]:
    """The HDUs of groups, which are headers alone, and the groups and attributes that are lost."""
    headers, lost = [], {}
    for name, attributes in bundle.explicit_groups().items():
        if name in names or _name_problem(name):
            lost[name] = dict(attributes)
            continue
        cards, lost_names = attribute_cards(attributes, {}, "IMAGE")
        headers.append(NewUnit(8, (), [*_name_cards(name), *cards]))
        if lost_names:
            lost[name] = {key: attributes[key] for key in lost_names}
    return headers, lost


def _name_problem(name: str) -> str:
    """The reason why EXTNAME cannot hold a name; empty if it can."""
    if not name or not fits_one_card(name):
        return "no text that EXTNAME holds: ASCII, in one card"
    return ""


def _name_cards(name: str) -> list[str]:
    """EXTNAME, and EXTVER for a name that ends with a comma and a number."""
    match = _VERSIONED.fullmatch(name)
    if match is None or not fits_one_card(match[1]) or not match[1]:
        return [card("EXTNAME", name)]
    return [card("EXTNAME", match[1]), card("EXTVER", int(match[2]))]


def array_fits(array: Array, names: set[str]) -> list[Fit]:
    """The fits of an array; `names` are the names of the arrays before it."""
    name, fits = array.name, []
    if problem := _name_problem(name):
        fits.append(refused(name, "names", problem))
    elif name in names:
        fits.append(refused(name, "names", "the name is used twice"))
    structured = isinstance(array.element.descr, tuple)
    if structured:
        fits += _table_fits(array)
    else:
        fits += _image_fits(array)
    if not array.dims:
        fits.append(equivalent(name, "shape", "no axes become one of length 1"))
    if not any(fit.outcome == "refused" for fit in fits) and (lost := _lost(array, structured)):
        fits.append(equivalent(name, "metadata", f"not kept: {', '.join(lost)}"))
    return fits


def _image_fits(array: Array) -> list[Fit]:
    name, kind = array.name, (array.element.kind, array.element.nbytes)
    fits: list[Fit] = []
    if array.element.kind == "bool":
        fits.append(equivalent(name, "type", "bool becomes uint8"))
    elif kind not in BITPIX and kind not in OTHERS:
        fits.append(refused_type(array, "FITS", "float64"))
    if array.ndim > MAX_RANK or spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", f"more than {MAX_RANK} axes, or 2**63 bytes"))
    return fits


def _table_fits(array: Array) -> list[Fit]:
    from .columns import columns_of

    name, fits = array.name, []
    columns = columns_of(array.element, _keywords(array))
    if isinstance(columns, str):
        fits.append(refused(name, "type", f"FITS has no columns for {columns}"))
    elif spanned(array.dims, sum(column.width for column in columns)) > MAX_SPAN:
        fits.append(refused(name, "shape", "2**63 bytes or more"))
    if array.ndim > 1:
        fits.append(refused(name, "shape", "tables of FITS have one axis"))
    return fits


def _keywords(array: Array) -> dict[str, Any]:
    """The keywords of columns in the namespace, by the name of the column."""
    own = array.meta.formats.get(NAMESPACE) if array.described else None
    keywords = own.get("columns") if isinstance(own, dict) else None
    return keywords if isinstance(keywords, dict) else {}


def _lost(array: Array, structured: bool) -> list[str]:
    """The metadata of an array that FITS cannot hold."""
    if not array.described or not array.meta:
        return []
    if not structured:
        return image_cards(array)[2]
    from .columns import column_cards, columns_of

    columns = columns_of(array.element, _keywords(array))
    lost = [] if isinstance(columns, str) else column_cards(columns, _keywords(array))[1]
    return table_cards(array)[1] + ([f"fits columns ({first_of(lost)})"] if lost else [])


def new_unit_of(array: Array) -> NewUnit:
    """The HDU of an array that `plan` does not refuse."""
    if isinstance(array.element.descr, tuple):
        return _table_unit_of(array)
    cards, bits, _ = image_cards(array)
    return NewUnit(bits, array.dims or (1,), [*_name_cards(array.name), *cards], array)


def _table_unit_of(array: Array) -> NewUnit:
    """The HDU of a table."""
    from .columns import column_cards, columns_of

    keywords = _keywords(array)
    columns = columns_of(array.element, keywords)
    if isinstance(columns, str):  # which `plan` refuses
        raise TypeError(columns)
    width = sum(column.width for column in columns)
    rows = array.dims[0] if array.dims else 1
    of_columns = column_cards(columns, keywords)[0]
    cards = [of_columns[0], *_name_cards(array.name), *of_columns[1:], *table_cards(array)[0]]
    return NewUnit(8, (width, rows), cards, array, columns)
