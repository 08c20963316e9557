r"""CSV: tables as text, with commas, semicolons, tabs or bars between cells, read and written.

Specification: RFC 4180, and what programs make of it. Compared with: pandas, the csv module of
Python, pyarrow and R.

Reads: cells in quotes, with doubled quotes, delimiters and line ends in them; lines that end with
LF, CR LF or CR; UTF-8, with or without a BOM, UTF-16 and UTF-32 with one, any other encoding by
``encoding``. The delimiter is the one that is equally often in each of the first lines; if two are,
``delimiter`` has to say which. The first line is a header if all of its cells are text; if some
are, ``header`` has to say. The file is read in blocks: numbers of a table that is larger than
memory are read block by block if its rows are in the order of the elements, or as records.

Types: a column is int64 if all of its cells are whole numbers that it holds, uint64 if that does,
float64 if they are numbers, bool for ``true``, ``TRUE`` and the like, complex128 for ``1.5-2j``,
datetime64 and timedelta64 for times and durations of ISO 8601, of the unit of the most digits; else
text. Whole numbers with zeros in front (007), beyond 64 bits, and numbers beyond float64 are text,
exactly as they stand. Cells in quotes are text, unless all cells of the file are in quotes.
``types=x:float32,y:text`` says the types of columns, ``types=float32`` that of all that are not
axes; a cell that is not of the type is an error that names its row. Numbers with more digits than
float64 has are rounded to the nearest one, which a note says.

Missing: a cell with nothing in it, or ``NA`` without quotes in a column of another type than text.
An array with missing values has a second one beside it, ``NAME.null``, which tells where; what
stands there in the first is NaN, NaT, 0, false or no text. ``missing=nan`` leaves the mask of
floats out. A structure has a field ``x.null`` after such a field ``x``.

Mapping: see below for axes; without any a table is an array of structures, a record for each row,
of the name of the file. A table of numbers without a header is one matrix.

Writes: UTF-8, LF; text in quotes, everything else without. Floats are written as the shortest
decimal of their double, NaN as ``nan``, one of other bits as ``nan:0x1``. Smaller types of numbers
are read back as int64 or float64 (named, with the option that reads them as they were); types of
texts with the width of the longest. Nothing is said of lengths: a file that is cut after a line is
a shorter table (named). Where a mask, or a field ``x.null``, says that a value is missing, its cell
is empty; the mask is read again as ``NAME.null`` if there is such a cell. ``wide=AXIS`` makes the
labels of an axis columns; ``delimiter=;`` and ``decimal=,`` write for such a region. Units,
descriptions and attributes have no place.

An array is not added to a file (`-o FILE#NAME`): beside the rows of others it would be a join, with
rows that one side lacks; write all arrays together.

Refused: a quote in the middle of a cell without quotes (``quotes=no`` reads it as it stands), rows
of different numbers of cells, text in another encoding. Writing: arrays of different axes, empty
arrays of several axes, void, structures with arrays in them or of several axes.

Axes: a table is a grid over its first columns if those are ``dim_0``, ``dim_1``, … with the numbers
from 0, or hold each combination of labels once: two axes at least, or one of text with nothing but
numbers beside it, which a note says. ``axes=region,year`` names them, ``axes=none`` says that there
are none; combinations without a row are refused, or filled with ``fill``. Labels are in the order
in which they come first.
"""

from __future__ import annotations

from raconvert.errors import Corrupt, UsageError
from raconvert.files.copy import write_all
from raconvert.files.paths import write_failed
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Bundle,
    Fit,
    Format,
    Option,
    Plan,
    Source,
    dtype_of,
    equivalent,
    facts_of,
    file_fits,
    first_of,
    little,
    refused,
    type_name,
)

from .dialect import WORDS, delimiters, lines_of
from .options import READING, WIDE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Array, Axis, Target

    from .plan import Planned

__all__ = ["FORMAT", "plan", "read", "sniff"]

_SAMPLE = b'region,year,gdp\n"EU",2020,1.5\n"EU",2021,1.75\n"US",2020,2.0\n"US",2021,2.25\n'

FORMAT = Format(
    name="csv",
    title="CSV table",
    suffixes=(".csv", ".tsv", ".tab"),
    many=True,
    stream=True,
    meta="some",
    holds=("names", "labels", "spacing"),
    read_options=(
        *READING,
        Option("types", "", str, "types of columns: x:float32,y:text, or one for all values"),
        Option("delimiter", "auto", str, "what is between cells: a sign, tab, comma, semicolon"),
        Option("decimal", ".", (".", ","), "what is before the fraction of a number"),
        Option("header", "auto", ("auto", "yes", "no"), "the first line has the names of columns"),
        Option("encoding", "utf-8", str, "of a file without a BOM: latin-1, cp1252, utf-16"),
        Option("quotes", "yes", ("yes", "no"), "no: quotes are letters like all others"),
    ),
    write_options=(
        WIDE,
        Option("delimiter", "auto", str, "auto: a tab for .tsv, else a comma (a semicolon for ,)"),
        Option("decimal", ".", (".", ","), "what is before the fraction of a number"),
    ),
    samples={"long.csv": _SAMPLE},
    spec="https://www.rfc-editor.org/rfc/rfc4180",
    losses="one table; no units, descriptions or attributes; types and lengths are found by "
    "reading all of it",
)  # fmt: skip


# Recognising -------------------------------------------------------------------------------------


def sniff(source: Source) -> int:
    """Return SURE for lines of equally many cells in a file with the suffix of a table, else MAYBE.

    Text has no magic, so that other text is never taken for a table.
    """
    text = _text_of(source)
    if text is None or text.lstrip()[:1] in ("", "<", "{", "[", "%", "\x7f"):
        return NO
    lines = lines_of(text, whole=source.size <= len(source.head))
    if len(lines) < 2 or not delimiters(lines):
        return NO
    return SURE if source.path.lower().endswith(FORMAT.suffixes) else MAYBE


def _text_of(source: Source) -> str | None:
    """The head as text, perhaps without its last letter; None if it is not text."""
    import codecs

    from .cells import BOMS

    head = source.head
    boms = ((name, len(mark)) for mark, name in BOMS if head.startswith(mark))
    name, skip = next(boms, ("utf-8", 0))
    try:
        text = codecs.getincrementaldecoder(name)().decode(head[skip:])
    except (UnicodeError, ValueError):
        return None
    has_controls = any(ord(letter) < 32 and letter not in "\t\n\r\f" for letter in text)
    return None if has_controls else text


# Reading -----------------------------------------------------------------------------------------


def read(
    source: Source,
    *,
    layout: str = "auto",
    axes: str = "auto",
    wide: str = "",
    types: str = "",
    missing: str = "mask",
    fill: str = "",
    name: str = "",
    delimiter: str = "auto",
    decimal: str = ".",
    header: str = "auto",
    encoding: str = "utf-8",
    quotes: str = "yes",
) -> Bundle:
    """Read the arrays of the table; the whole file is read once for the types, block by block.

    Raises `Corrupt` if it is not a table, `TooLarge` above the limits, `UsageError` if an option
    has to decide, `WouldLose` if combinations of the chosen axes are missing.
    """
    from .csv_table import open_table
    from .reader import Asked, bundle_of

    if wide and header == "auto":
        header = "yes"
    table = open_table(
        source, delimiter=delimiter, decimal=decimal, header=header, encoding=encoding,
        quotes=quotes == "yes", types=types,
    )  # fmt: skip
    return bundle_of([table], Asked(layout, axes, wide, missing, fill, name))


# Writing -----------------------------------------------------------------------------------------


def plan(bundle: Bundle, *, wide: str = "", delimiter: str = "auto", decimal: str = ".") -> Plan:
    """Plan one table of arrays over the same axes, or of the fields of one array of structures."""
    from .plan import one_table, tables_of

    made, fits = tables_of(bundle, "CSV", wide=wide)
    fits += one_table(made, "CSV", "write one file for each, or XLSX or Parquet files")
    fits += file_fits(bundle, "CSV")
    try:
        sign = _sign(delimiter, decimal)
    except UsageError as error:
        fits.append(refused("", "storage", str(error.what)))
        sign = ","
    for planned in made[:1]:
        _number_single(planned)
        fits += _fits(planned)
    for array in bundle.arrays:
        facts = _facts(array, made[0] if made else None)
        if facts:
            reason = f"CSV has no place for it: {', '.join(facts)}"
            fits.append(equivalent(array.name, "metadata", reason))
    if made:
        reason = (
            "a CSV file does not say where it ends: what is cut off after a line is not noticed"
        )
        fits.append(equivalent("", "storage", reason))
    in_opts = _in_opts(made[0], delimiter, sign, decimal) if made else {}

    def write(target: Target) -> None:
        name = str(target.path).lower()
        tabbed = delimiter == "auto" and name.endswith((".tsv", ".tab"))
        _write(made[0], target, "\t" if tabbed else sign, decimal)

    return Plan(fits, write, names=_names(bundle), in_opts=in_opts)


def _names(bundle: Bundle) -> list[str]:
    """The names that arrays have when they are read: of masks by the column, else their own."""
    from raconvert.arrays.bundle import masks_of

    from .model import MASK

    by_name = {array.name: array for array in bundle.arrays}
    masks = masks_of(bundle.arrays)
    read = {masks[id(one)].name: name + MASK for name, one in by_name.items() if id(one) in masks}
    return [read.get(name, name) for name in bundle.names]


def _sign(delimiter: str, decimal: str) -> str:
    """The delimiter to write. Raises `UsageError` for a sign that may be part of a cell."""
    if delimiter == "auto":
        return ";" if decimal == "," else ","
    sign = WORDS.get(delimiter, delimiter)
    if len(sign) != 1 or sign in '"\n\r\0' or sign.isalnum() or sign in "+-._" or sign == decimal:
        raise UsageError(
            f"`--out-opt delimiter={delimiter[:20]}` cannot be between cells",
            expected="one sign that no number has, such as , ; | or tab",
        )
    if not sign.isascii():
        raise UsageError("a delimiter is an ASCII sign", got=delimiter[:20])
    return sign


def _number_single(planned: Planned) -> None:
    """Number axes of length 1 without labels from 0, since one number does not tell a spacing."""
    import numpy as np

    planned.keys = [
        key._replace(values=np.arange(1)) if len(key.values) == 1 and not key.labelled else key
        for key in planned.keys
    ]


def _facts(array: Array, planned: Planned | None) -> list[str]:
    """The facts of an array that cannot be read from its table again."""
    from .model import NAMESPACE

    if not array.described:
        return []
    axes = _left_out(array, planned)
    own = array.meta.formats.get(NAMESPACE, {})
    meta = array.meta.replace(axes=axes if any(axes) else ())
    if set(own) <= {"companions"}:
        meta = meta.without_format(NAMESPACE)
    return facts_of(array.replace(meta=meta), "encoding")


def _left_out(array: Array, planned: Planned | None) -> list[Axis]:
    """The axes of an array without the facts that their columns tell."""
    from .reader import axis_of

    axes = [*array.axes]
    if planned is None or planned.form != "long":
        return axes
    columns = [number for number in range(len(axes)) if number != planned.wide]
    for index, (number, key) in enumerate(zip(columns, planned.keys, strict=False)):
        axis, read = axes[number], axis_of(key.header, index, key.values)
        from_column = {"name": read.name, "labels": read.labels, "spacing": read.spacing,
                "origin": read.origin}  # fmt: skip
        if read.spacing is not None and axis.origin is None and not read.origin:
            from_column["origin"] = None
        same = {
            field: None for field, value in from_column.items() if getattr(axis, field) == value
        }
        axes[number] = axis.replace(**same)
    if planned.wide is not None:  # its labels are the names of columns
        axes[planned.wide] = axes[planned.wide].replace(name=None, labels=None)
    return axes


USUAL = {("int", 8), ("uint", 8), ("float", 8), ("complex", 16), ("bool", 1)}
_READ_AS = {"int": "int64", "uint": "int64", "float": "float64", "bfloat": "float64",
            "complex": "complex128"}  # fmt: skip


def _fits(planned: Planned) -> list[Fit]:
    """The fits for names, types and shapes that the table changes or refuses."""
    fits = [*planned.fits]
    array = planned.first
    if planned.form == "records" or planned.wide is not None:
        fits.append(equivalent(array.name, "names", "the array of a whole table has that of the "
                               "file, or of `--in-opt name=NAME`"))  # fmt: skip
    if planned.form == "records":
        if array.ndim != 1:
            fits.append(refused(array.name, "shape", "CSV holds structures of one axis"))
        return fits + _field_fits(planned)
    for value in planned.values:
        fits += _type_fits(value.array)
    if not array.count and array.ndim != 1:
        fits.append(refused(array.name, "shape", f"no row tells the lengths of {array.shape}"))
    elif not array.ndim:
        fits.append(equivalent(array.name, "shape", "it is one row: (1,)"))
    if array.count and planned.rows > 1 << 53:
        fits.append(refused(array.name, "shape", "more rows than a table has"))
    return fits


def _type_fits(array: Array) -> list[Fit]:
    """The fits for a type that is read back as another one, or has no text."""
    kind, nbytes, _, descr = array.element
    name = type_name(little(array.element))
    if kind == "user":
        return _user_fits(array, descr, name)
    if (kind, nbytes) in USUAL and kind != "uint":
        return []
    read_as = _READ_AS.get(kind, "float64")
    if kind == "uint" and nbytes == 8:
        reason = "uint64 is read as int64, unless a value needs it: `--in-opt types=uint64`"
    else:
        reason = f"{name} is read as {read_as}, or as it was with `--in-opt types={name}`"
    return [equivalent(array.name, "type", reason)]


def _user_fits(array: Array, descr: Any, name: str) -> list[Fit]:
    """The fits for texts, bytes, times and other elements that are not numbers."""
    import numpy as np

    from .words import DATES, DURATIONS

    letter = descr[1:2] if isinstance(descr, str) else ""
    if letter == "U":
        reason = f"text is read as wide as its longest: {name} with `--in-opt types={name}`"
        return [equivalent(array.name, "type", reason)]
    if letter == "S":
        encoding = array.meta.encoding or "latin-1"
        return [equivalent(array.name, "type", f"bytes are written as text, by {encoding}")]
    if letter in ("M", "m"):
        unit, count = np.datetime_data(dtype_of(array.element))
        units = DATES if letter == "M" else DURATIONS
        if count == 1 and unit in units:
            return []
        reason = f"CSV has no {name}: units are {', '.join(units)}"
        return [refused(array.name, "type", reason)]
    return [refused(array.name, "type", f"CSV has no {name}")]


def _field_fits(planned: Planned) -> list[Fit]:
    """The fits for the fields of structures, named by field."""
    from raconvert.arrays.dtypes import element_of

    from .plan import fields_of

    array = planned.first
    if any(fit.outcome == "refused" for fit in planned.fits):
        return []
    dtype = dtype_of(array.element)
    fits = []
    masks = [mask for _, mask in fields_of(dtype) if mask]
    if masks:
        reason = f"empty cells say what is missing, and if there are any: field {first_of(masks)}"
        fits.append(equivalent(array.name, "type", reason))
    for field, _ in fields_of(dtype):
        part = array.replace(element=element_of(dtype[field]), data=None, extent=None)
        fits += [fit._replace(reason=f"field {field}: {fit.reason}") for fit in _type_fits(part)]
    if dtype.itemsize != sum(dtype[field].itemsize for field in dtype.names or ()):
        fits.append(equivalent(array.name, "type", "the padding between fields is not kept"))
    return fits


def _in_opts(planned: Planned, delimiter: str, sign: str, decimal: str) -> dict[str, Any]:
    """The options with which the table is read as the arrays that were written."""
    in_opts: dict[str, Any] = {}
    if planned.form == "records":
        in_opts |= {"layout": "records", "name": planned.name, **_types_of(planned.first)}
    elif planned.wide is not None:
        in_opts |= {"wide": planned.wide_name or f"dim_{planned.wide}", "name": planned.name}
    names = [key.header for key in planned.keys]
    if names and not any("," in name or name != name.strip() for name in names):
        in_opts["axes"] = ",".join(names)
    if delimiter != "auto":
        in_opts["delimiter"] = sign
    return {**in_opts, "header": "yes", **({"decimal": decimal} if decimal != "." else {})}


def _types_of(array: Array) -> dict[str, str]:
    """The option that reads the fields of structures as they were; none for names with a comma."""
    from .plan import fields_of

    dtype = dtype_of(little(array.element))
    fields = [name for name, _ in fields_of(dtype)]
    if any("," in name for name in fields):
        return {}
    kinds = [dtype[name].str if dtype[name].kind in "US" else dtype[name].name for name in fields]
    return {"types": ",".join(map("{}:{}".format, fields, kinds))}


def _write(planned: Planned, target: Target, sign: str, decimal: str) -> None:
    """Write the header and the rows."""
    file = target.open()
    try:
        headers = [_header(name, sign) for name in planned.headers]
        write_all(file, [(sign.join(headers) + "\n").encode()])
        for text in _texts(planned, target, sign, decimal):
            write_all(file, [text])
    except OSError as error:
        raise write_failed(target.path, error) from error


def _header(name: str, sign: str) -> str:
    """The name of a column, in quotes if it would be read as something else."""
    from .words import kind_of

    has_signs = any(letter in name for letter in f'{sign}"\n\r') or name != name.strip()
    is_word = bool(name) and name != "NA" and kind_of(name) == "text"
    return name if is_word and not has_signs else _quoted(name)


def _quoted(text: str) -> str:
    """A text in quotes, those in it doubled."""
    return '"' + text.replace('"', '""') + '"'


def _texts(planned: Planned, target: Target, sign: str, decimal: str) -> Iterator[bytes]:
    """Yield the rows as text, in pieces."""
    blocks = target.counted(_Counted(planned, target))
    for piece in blocks:
        columns = [
            _column(values, None, "latin-1", decimal, planned.first)
            for values in planned.key_cells(piece.start, piece.start + piece.rows)
        ]
        for value, values, mask in zip(planned.values, piece.values, piece.masks, strict=True):
            encoding = value.array.meta.encoding or "latin-1"
            for own, absent in planned.columns_of(values, mask):
                columns.append(_column(own, absent, encoding, decimal, value.array))
        rows = map(sign.join, zip(*columns, strict=True))
        yield ("\n".join(rows) + "\n").encode()


class _Piece:
    """Some rows of a table: number of the first, values and masks of the arrays."""

    __slots__ = ("masks", "nbytes", "rows", "start", "values")

    def __init__(self, start: int, values: list[Any], masks: list[Any]) -> None:
        self.start, self.values, self.masks = start, values, masks
        self.rows = len(values[0])
        self.nbytes = sum(block.nbytes for block in values)


class _Counted:
    """The pieces of a table, in the form that `Target.counted` takes."""

    def __init__(self, planned: Planned, target: Target) -> None:
        self._pieces = planned.pieces(target.max_memory, target.path)

    def __iter__(self) -> Iterator[_Piece]:
        for start, values, masks in self._pieces:
            yield _Piece(start, values, masks)

    def close(self) -> None:
        """Close the generator of the pieces."""
        self._pieces.close()  # type: ignore[attr-defined] # it is a generator


def _column(values: Any, mask: Any, encoding: str, decimal: str, array: Array) -> list[str]:
    """The cells of some rows of a column; nothing where the mask is true."""
    import numpy as np

    from .words import spelled

    values = np.ascontiguousarray(values)
    kind = values.dtype.kind
    if kind == "S":
        texts = [_quoted(_decoded(text, encoding, array)) for text in values.tolist()]
    elif kind == "U":
        texts = [_quoted(text) for text in spelled(values)]
        _check_text(texts, array)
    else:
        texts = spelled(values.astype(values.dtype.newbyteorder("=")))
        if decimal == "," and kind not in "biumM":
            texts = [text.replace(".", ",") for text in texts]
    if mask is not None:
        for row in np.flatnonzero(mask).tolist():
            texts[row] = ""
    return texts


def _decoded(text: bytes, encoding: str, array: Array) -> str:
    """The text of bytes. Raises `Corrupt` if they are in another encoding."""
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        raise Corrupt(
            f"array '{array.name}' has bytes that are not text in {encoding}",
            got=repr(text[:40]), remedy="read its source with another encoding",
        ) from error  # fmt: skip


def _check_text(texts: list[str], array: Array) -> None:
    """Raise `WouldLose` for half of a surrogate pair."""
    from raconvert.errors import WouldLose

    for text in texts:
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise WouldLose(
                f"array '{array.name}' has half of a surrogate pair, which is not text in UTF-8",
                got=ascii(text[:40]), remedy="no option allows this; nothing was written",
            )  # fmt: skip
