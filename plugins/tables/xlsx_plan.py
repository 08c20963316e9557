"""Arrays as the sheets of a workbook: the plan, and the parts of the package."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from raconvert.arrays.blocks import index_of
from raconvert.arrays.dtypes import dtype_of, element_of, little, type_name
from raconvert.errors import TooLarge, WouldLose
from raconvert.files.paths import write_failed
from raconvert.metadata.reals import doubles
from raconvert.plugin import Fit, Plan, equivalent, file_fits, refused, refused_type

from . import record as records
from .arrow_plan import table_record
from .plan import tables_of
from .sheets import MAX_COLUMNS, MAX_ROWS, letters_of
from .words import DATES, DURATIONS, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Array, Bundle, Target

    from .plan import Planned

    Values = np.ndarray[Any, Any]

MAX_TEXT = 32_767  # characters of a cell
MAX_RECORD = 1 << 16  # characters of the record
PIECE = 250  # characters of a property, which has a piece of the record
EXACT = 1 << 53  # integers up to here are doubles
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f\ufffe\uffff\ud800-\udfff]")
_DAY_MS = 86_400_000
_FIRST_DAY, _LAST_DAY, _EPOCH_DAY = -25_508, 2_932_896, 25_569  # 1900-03-01, 9999-12-31, 1899-12-30
_MS_PER = {"D": _DAY_MS, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_STEPS_PER_MS = {"us": 10**3, "ns": 10**6, "ps": 10**9, "fs": 10**12, "as": 10**15}


def xlsx_plan(bundle: Bundle, *, wide: str, integers: str) -> Plan:
    """Plan a workbook. Raises nothing."""
    made, fits = tables_of(bundle, "XLSX", wide=wide)
    rest = bundle.like(bundle.arrays)
    rest.attributes = {}
    fits += file_fits(rest, "XLSX")
    for planned in made:
        fits += _fits(planned, integers)
    names = _sheet_names(made)
    text, more = _record(made, names, bundle)
    fits += more

    def write(target: Target) -> None:
        _write(made, names, text, target, integers)

    return Plan(fits, write, names=bundle.names)


def _fits(planned: Planned, integers: str) -> list[Fit]:
    """The fits for sizes, names and types that a sheet changes or refuses."""
    fits = [*planned.fits]
    array = planned.first
    if planned.rows >= MAX_ROWS or len(planned.headers) > MAX_COLUMNS:
        reason = f"a sheet holds {MAX_ROWS - 1:,} rows and {MAX_COLUMNS:,} columns, not "
        reason += f"{planned.rows:,} and {len(planned.headers):,}; Parquet holds them"
        fits.append(refused(array.name, "shape", reason))
    if any(len(name) > MAX_TEXT or not name for name in planned.headers):
        fits.append(refused(array.name, "names", "an empty name, or one that is too long"))
    if any(length >= 1 << 62 for length in array.shape) or array.ndim > 64:
        fits.append(refused(array.name, "shape", f"XLSX has no {array.shape}"))
    if not array.ndim:
        fits.append(equivalent(array.name, "shape", "it is one row for other programs: (1,)"))
    elif not array.count and array.ndim != 1:
        fits.append(refused(array.name, "shape", f"no row tells the lengths of {array.shape}"))
    for value in planned.values:
        if planned.form == "records":
            fits += _field_fits(value.array, integers, fits)
        else:
            fits += _type_fits(value.array, integers)
    return fits


def _field_fits(array: Array, integers: str, before: list[Fit]) -> list[Fit]:
    """The fits for the fields of structures, unless the array is refused `before`."""
    if any(fit.outcome == "refused" for fit in before):
        return []
    dtype = dtype_of(array.element)
    fits = []
    for name in dtype.names or ():
        field = array.replace(element=element_of(dtype[name]), data=None, extent=None)
        for fit in _type_fits(field, integers):
            flag = fit.flag if fit.flag is None else fit.flag.rpartition("or ")[2]
            fits.append(fit._replace(reason=f"field {name}: {fit.reason}", flag=flag))
    return fits


def _type_fits(array: Array, integers: str) -> list[Fit]:
    """The fits for a type that has another form, or none, in a cell."""
    kind, nbytes, _, descr = array.element
    name = type_name(little(array.element))
    if kind == "complex":
        return [refused_type(array, "XLSX", "float64")]
    if kind in ("int", "uint") and nbytes == 8:
        if integers == "text":
            reason = f"{name}: values beyond 2**53 are written as text"
            return [equivalent(array.name, "type", reason)]
        if integers == "checked":
            return []
        reason = f"a cell is a double, which not every {name} is"
        flag = "--dtype float64 or --out-opt integers=checked"
        return [refused(array.name, "type", reason, flag)]
    if kind != "user":
        if kind == "bool" or (kind, nbytes) == ("float", 8):
            return []
        return [equivalent(array.name, "type", f"{name} is a double for other programs")]
    letter = descr[1:2] if isinstance(descr, str) else ""
    if letter in ("U", "S") and nbytes // (4 if letter == "U" else 1) <= MAX_TEXT:
        reason = f"{name} is text of any length for other programs"
        return [equivalent(array.name, "type", reason)]
    if letter in ("M", "m"):
        unit, count = np.datetime_data(dtype_of(array.element))
        units = DATES if letter == "M" else DURATIONS
        if count == 1 and unit in units:
            form = "text of ISO 8601, or a date of milliseconds where it is one"
            form = form if letter == "M" else "text of ISO 8601"
            return [equivalent(array.name, "type", f"{name} is {form}, for other programs")]
        return [refused(array.name, "type", f"XLSX has no {name}: units are {', '.join(units)}")]
    return [refused(array.name, "type", f"XLSX has no {name}")]


def _sheet_names(made: list[Planned]) -> list[str]:
    """Valid names for the sheets, different from each other also without regard to case."""
    taken: set[str] = set()
    names = []
    for planned in made:
        base = _FORBIDDEN.sub("_", planned.name)[:31].strip("'") or "Sheet"
        name, number = base, 1
        while name.lower() in taken or name.lower() == "history":
            number += 1
            end = f"_{number}"
            name = base[: 31 - len(end)] + end
        taken.add(name.lower())
        names.append(name)
    return names


def _record(made: list[Planned], names: list[str], bundle: Bundle) -> tuple[str, list[Fit]]:
    """The line about the arrays, and the fits for metadata that it cannot hold."""
    tables = []
    for planned in made:
        arrays = [
            records.array_record(
                value.array, value.header, None if value.mask is None else value.mask.name
            )
            for value in planned.values
        ]
        tables.append(table_record(planned, arrays))
    reason = f"its record has at most {MAX_RECORD} characters"
    try:
        text = records.text_of(dict(zip(names, tables, strict=True)), bundle)
        if len(text) <= MAX_RECORD:
            return text, []
    except ValueError as error:
        reason = str(error)
    fits = []
    for planned, table in zip(made, tables, strict=True):
        for value, record in zip(planned.values, table["arrays"], strict=True):
            if record.pop("meta", None):
                lost = f"XLSX has no place for it: {reason}"
                fits.append(equivalent(value.array.name, "metadata", lost))
    bare = bundle.like([])
    bare.attributes, bare.formats = {}, {}
    if bundle.attributes:
        fits.append(equivalent("", "metadata", f"XLSX has no place for attributes: {reason}"))
    return records.text_of(dict(zip(names, tables, strict=True)), bare), fits


# The package -------------------------------------------------------------------------------------

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument"
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><numFmts count="2"><numFmt numFmtId="164" '
    'formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="165" '
    'formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss.000"/></numFmts>'
    '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
    "</styleSheet>"
)


def _parts(names: list[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the XML of each part of the package except the sheets."""
    sheets = range(1, len(names) + 1)
    overrides = [
        ("/xl/workbook.xml", f"{_TYPE}.spreadsheetml.sheet.main+xml"),
        ("/xl/styles.xml", f"{_TYPE}.spreadsheetml.styles+xml"),
        ("/docProps/custom.xml", f"{_TYPE}.custom-properties+xml"),
        *((f"/xl/worksheets/sheet{n}.xml", f"{_TYPE}.spreadsheetml.worksheet+xml") for n in sheets),
    ]
    listed = "".join(f'<Override PartName="{p}" ContentType="{t}"/>' for p, t in overrides)
    yield (
        "[Content_Types].xml",
        (
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>{listed}</Types>'
        ),
    )
    relation = '<Relationship Id="rId{}" Type="{}/relationships/{}" Target="{}"/>'
    yield (
        "_rels/.rels",
        (
            f'<Relationships xmlns="{_PACKAGE}/relationships">'
            + relation.format(1, _OFFICE, "officeDocument", "xl/workbook.xml")
            + relation.format(2, _OFFICE, "custom-properties", "docProps/custom.xml")
            + "</Relationships>"
        ),
    )
    tags = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>'
        for n, name in enumerate(names, 1)
    )
    yield (
        "xl/workbook.xml",
        (
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}/relationships"><sheets>{tags}</sheets>'
            "</workbook>"
        ),
    )
    more = relation.format(len(names) + 1, _OFFICE, "styles", "styles.xml")
    yield "xl/_rels/workbook.xml.rels", (
        f'<Relationships xmlns="{_PACKAGE}/relationships">'
        + "".join(
            relation.format(n, _OFFICE, "worksheet", f"worksheets/sheet{n}.xml") for n in sheets
        )
        + more + "</Relationships>"
    )  # fmt: skip
    yield "xl/styles.xml", _STYLES
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    kind = 'fmtid="{D5CDD505-2E9C-101B-9397-08002B2CF9AE}"'
    properties = "".join(
        f'<property {kind} pid="{n + 1}" name="raconvert {n}"><vt:lpwstr>{escape(piece)}'
        "</vt:lpwstr></property>"
        for n, piece in enumerate(pieces, 1)
    )
    yield (
        "docProps/custom.xml",
        (
            f'<Properties xmlns="{_OFFICE}/custom-properties" '
            f'xmlns:vt="{_OFFICE}/docPropsVTypes">{properties}</Properties>'
        ),
    )


def _write(made: list[Planned], names: list[str], text: str, target: Target, integers: str) -> None:
    """Write the package. Raises `TooLarge` for a sheet that is too large for a ZIP member here."""
    file = io.BufferedWriter(target.open())  # it goes on if the system writes only a part
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, xml in _parts(names, text):
                archive.writestr(_info(path), (_XML + xml).encode())
            for number, planned in enumerate(made, 1):
                info = _info(f"xl/worksheets/sheet{number}.xml")
                with archive.open(info, "w", force_zip64=False) as member:
                    for data in _within_zip(_sheet(planned, target, integers), names[number - 1]):
                        member.write(data)
        file.detach()  # the file is closed by the target
    except OSError as error:
        raise write_failed(target.path, error) from error


def _within_zip(pieces: Iterator[str], name: str) -> Iterator[bytes]:
    """Yield the bytes of a sheet. Raises `TooLarge` if they are more than a member may have."""
    nbytes = 0
    for piece in pieces:
        data = piece.encode()
        nbytes += len(data)
        if nbytes > zipfile.ZIP64_LIMIT:
            raise TooLarge(
                f"sheet '{name}' becomes too large for XLSX",
                expected=f"at most {zipfile.ZIP64_LIMIT} bytes of XML",
                remedy="write it as Parquet or CSV; nothing was written",
            )
        yield data


def _info(path: str) -> zipfile.ZipInfo:
    """The entry of a member, without its time, so that equal arrays give equal bytes."""
    info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    info.create_system = 3
    return info


# Cells -------------------------------------------------------------------------------------------


def _sheet(planned: Planned, target: Target, integers: str) -> Iterator[str]:
    """Yield the XML of a sheet, in pieces."""
    letters = [letters_of(n) for n in range(len(planned.headers))]
    yield _XML + f'<worksheet xmlns="{_MAIN}"><sheetData>'
    yield _row(1, letters, [_text(name) for name in planned.headers])
    for start, values, masks in planned.pieces(target.max_memory, target.path):
        rows = len(values[0])
        columns = [_cells(keys, None) for keys in planned.key_cells(start, start + rows)]
        for value, block, mask in zip(planned.values, values, masks, strict=True):
            first = start * max(1, block.size // max(1, rows))
            for own, absent in planned.columns_of(block, mask):
                columns.append(_cells(own, absent, integers, value.array, first))
        yield "".join(
            _row(start + n + 2, letters, cells)
            for n, cells in enumerate(zip(*columns, strict=True))
        )
        if target.progress is not None:
            target.progress(sum(block.nbytes for block in values))
    yield "</sheetData></worksheet>"


def _row(number: int, letters: list[str], cells: Any) -> str:
    """The XML of a row; empty cells are left out."""
    inside = "".join(
        f'<c r="{letter}{number}"{cell}</c>' for letter, cell in zip(letters, cells, strict=True)
        if cell
    )  # fmt: skip
    return f'<row r="{number}">{inside}</row>'


def _text(text: str) -> str:
    """The XML of a cell of text, behind its position."""
    safe = escape(_ODD.sub(lambda match: f"_x{ord(match[0]):04X}_", text))
    return f' t="inlineStr"><is><t xml:space="preserve">{safe}</t></is>'


def _cells(
    values: Values, mask: Values | None, integers: str = "checked", array: Array | None = None,
    first: int = 0,
) -> list[str]:  # fmt: skip
    """The XML of the cells of a column, behind their positions; empty where the mask is true.

    `first` is the position of the first value in the array, for messages.
    """
    values = np.ascontiguousarray(values)
    kind = values.dtype.kind
    if kind in "Mm":
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.name == "bfloat16":
        cells = _reals(doubles(values.astype(np.float32)))
    elif kind == "b":
        cells = [f' t="b"><v>{int(value)}</v>' for value in values.tolist()]
    elif kind in "iu":
        cells = _integers(values, mask, integers, array, first)
    elif kind == "f":
        cells = _reals(doubles(values))
    elif kind == "M":
        cells = _dates(values)
    elif kind == "m":
        cells = [_text(text) for text in spelled(values)]
    else:
        encoding = (array.meta.encoding if array is not None else None) or "latin-1"
        cells = [_text(_checked(text, encoding, array)) for text in values.tolist()]
    if mask is not None:
        for missing in np.flatnonzero(mask).tolist():
            cells[missing] = ""
    return cells


def _integers(
    values: Values, mask: Values | None, integers: str, array: Array | None, first: int
) -> list[str]:
    """The cells of integers. Raises `WouldLose` for one beyond 2**53 unless text is allowed."""
    cells = [f"><v>{value}</v>" for value in values.tolist()]
    if values.dtype.itemsize < 8:
        return cells
    beyond = (values > EXACT) | (values < -EXACT if values.dtype.kind == "i" else False)
    if mask is not None:
        beyond &= ~mask
    large = np.flatnonzero(beyond).tolist()
    if large and integers != "text" and array is not None:
        raise WouldLose(
            f"array '{array.name}' has the value {values[large[0]]}, which no cell of XLSX holds",
            where=f"index {list(index_of(array, first + large[0]))}",
            expected="at most 2**53",
            remedy="write such values as text: `--out-opt integers=text`; nothing was written",
        )
    for index in large:
        cells[index] = _text(str(values[index]))
    return cells


def _reals(values: Values) -> list[str]:
    """The cells of doubles; NaN and infinity are words."""
    cells = [f"><v>{text}</v>" for text in map(repr, values.tolist())]
    words = np.flatnonzero(~np.isfinite(values))
    for index, text in zip(words.tolist(), spelled(values[words]), strict=True):
        cells[index] = _text(text)
    return cells


def _dates(values: Values) -> list[str]:
    """The cells of times: days since 1899-12-30 for whole ms from 1900-03-01 to 9999, else text."""
    unit = str(np.datetime_data(values.dtype)[0])
    cells = [_text(text) for text in spelled(values)]
    style = 1 if unit == "D" else 2
    for index, number in enumerate(values.view(np.int64).tolist()):
        if unit in _STEPS_PER_MS:
            ms, rest = divmod(number, _STEPS_PER_MS[unit])
        else:
            ms, rest = number * _MS_PER[unit], 0
        days, inside = divmod(ms, _DAY_MS)
        if not rest and _FIRST_DAY <= days <= _LAST_DAY:
            serial = days + _EPOCH_DAY
            text = str(serial) if not inside else repr(serial + inside / _DAY_MS)
            cells[index] = f' s="{style}"><v>{text}</v>'
    return cells


def _checked(text: Any, encoding: str, array: Array | None) -> str:
    """The text of a value. Raises `WouldLose` for bytes or halves of characters."""
    name = "" if array is None else array.name
    try:
        words = text.decode(encoding) if isinstance(text, bytes) else str(text)
        words.encode()
    except UnicodeError as error:
        raise WouldLose(f"array '{name}' has bytes that are not text", got=ascii(text)[:60],
                        remedy="no option allows this; nothing was written") from error  # fmt: skip
    return words
