"""Tables of pages and notebooks: records by columns; texts, times and few numbers in their shape.

A column of records has a line through the values of the sample, or the counts of its words. Texts
keep their direction of writing.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from raconvert.arrays.dtypes import few_lengths
from raconvert.arrays.layout import IMAGE, layout_of
from raconvert.arrays.reinterpret import for_showing
from raconvert.arrays.sources import is_decoded_whole
from raconvert.declared import Record
from raconvert.errors import RaconvertError
from raconvert.views.numbers import comparable
from raconvert.views.pages import drawings
from raconvert.views.pages.markup import TABLE_END, name_of, text_of
from raconvert.views.sample import value_at
from raconvert.views.terminal import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.metadata import Axis
    from raconvert.views.sample import Frame, Sample

    Values = np.ndarray[Any, Any]

_FIRST, _LAST = 6, 4  # records shown of the beginning and the end
_COLUMNS = 24  # fields shown
_WIDE = 8  # columns shown of texts in their shape
_SHORT = 30  # characters of a text that stays in one line
_TEXT = 80  # characters shown of a text
_INNER = 4  # numbers shown of a field that is an array
_FEW = 64  # numbers of an array that are all shown
_LABELS = 16  # rows and columns of a plane whose numbers are listed with its labels
_WORDS = 3  # words whose counts are shown


class Rows(Record):
    """Records or rows of an array: their indices, their values, and how many the array has."""

    numbers: list[int]
    values: Values
    total: int


def is_table(values: Values) -> bool:
    """True for values that are shown as a table: records, texts and bytes without a meaning."""
    if values.dtype.names is not None or values.dtype.kind in "SUO":
        return True
    return values.dtype.kind == "V" and not comparable(values).size


def table_of(array: Array, sampled: Sample) -> Iterator[str]:
    """Yield the table of the beginning and the end of an array of records or of texts.

    Raises what reading elements raises.
    """
    values = sampled.values[0]
    if values.dtype.names is not None:
        yield from _records(array, sampled)
    elif array.ndim < 2:
        yield from _column(array, sampled)
    else:
        yield from _in_shape(array, sampled)


def is_small(array: Array, sampled: Sample) -> bool:
    """True for an array of so few numbers that all of them can be read beside its picture."""
    if not sampled.whole or len(sampled.values) > 1 or not 1 < array.count <= _FEW:
        return False
    values = sampled.values[0]
    return array.ndim <= 2 and (array.ndim < 2 or values.shape[-1] <= _WIDE)


# Records -----------------------------------------------------------------------------------------


def _records(array: Array, sampled: Sample) -> Iterator[str]:
    """Yield records as the rows of a table, below a summary of each column of the sample."""
    rows = _ends_of(array, sampled)
    columns = list(columns_of(rows.values))
    all_sampled = np.concatenate([part.reshape(-1) for part in sampled.values])
    sampled_columns = dict(columns_of(all_sampled))
    shown = columns[:_COLUMNS]
    yield '<div class="scroll" tabindex="0" role="group" aria-label="table">'
    yield '<table class="rows">\n<thead><tr><th scope="col">row</th>'
    for name, values in shown:
        kind = " n" * _is_number(values)
        yield f'<th scope="col" class="field{kind}">{name_of(name)}'
        yield f"<br><span class=soft>{text_of(_type_of(values))}</span></th>"
    yield "</tr></thead>\n<tbody>\n<tr><td></td>"
    yield "".join(f"<td>{_summary(sampled_columns[name])}</td>" for name, _ in shown)
    yield "</tr>\n"
    before = -1
    for at, number in enumerate(rows.numbers):
        if number != before + 1:
            yield f'<tr><td class="n">…</td>{"<td></td>" * len(shown)}</tr>\n'
        before = number
        yield f'<tr><th scope="row" class="n">{_index_text(number, array)}</th>'
        yield "".join(_cell(values[at]) for _, values in shown)
        yield "</tr>\n"
    yield f"{TABLE_END}</div>\n"
    about = f"{rows.total:,} records"
    about += ", of which the first and last are shown" * (len(rows.numbers) < rows.total)
    about += f"; {len(columns) - len(shown)} more fields" * (len(columns) > len(shown))
    if not sampled.whole:
        about += f"; lines and counts are of a sample of {len(all_sampled):,}"
    yield f"<p class=soft>{about}</p>\n"


def _ends_of(array: Array, sampled: Sample) -> Rows:
    """The first and last elements in the order of the index; only the first if the last cost much.

    Raises what reading the first ones raises.
    """
    count, front = array.count, sampled.values[0].reshape(-1)
    if sampled.whole and len(sampled.values) == 1 and len(front) == count:
        numbers = _ends(count)
        return Rows(numbers, front[numbers], count)
    if is_decoded_whole(array.data if array.extent is None else None):  # the sample is its front
        return Rows([*range(min(_FIRST, len(front)))], front[:_FIRST], count)
    outer = (0,) * (array.ndim - 1)
    length = array.shape[-1]
    first = for_showing(np.asarray(array[(*outer, slice(0, _FIRST))]))
    numbers = [*range(len(first))]
    if array.ndim > 1 or length <= _FIRST + _LAST:
        return Rows(numbers, first, count)
    try:
        last = for_showing(np.asarray(array[count - _LAST :]))
    except RaconvertError:  # the beginning is sound
        return Rows(numbers, first, count)
    return Rows([*numbers, *range(count - _LAST, count)], np.concatenate([first, last]), count)


def _ends(count: int) -> list[int]:
    """The first and the last indices below a count; all of them if they are few."""
    if count <= _FIRST + _LAST:
        return [*range(count)]
    return [*range(_FIRST), *range(count - _LAST, count)]


def _index_text(number: int, array: Array) -> str:
    """The index of an element by its number in C order."""
    if array.ndim < 2:
        return f"{number:,}"
    return ", ".join(str(int(at)) for at in np.unravel_index(number, array.shape))


def columns_of(values: Values, above: str = "") -> Iterator[tuple[str, Values]]:
    """Yield the names and columns of records; those of records inside have dotted names."""
    for name in values.dtype.names or ():
        column = for_showing(values[name])
        if column.dtype.names is not None and column.ndim == 1:
            yield from columns_of(column, f"{above}{name}.")
        else:
            yield f"{above}{name}", column


def _type_of(values: Values) -> str:
    """The type of a column in words, with the shape of a field that is an array."""
    inner = f" ({few_lengths(values.shape[1:], ', ')})" if values.ndim > 1 else ""
    kind = values.dtype.kind
    if kind in "SU":
        return f"text{inner}"
    return f"{values.dtype.name}{inner}"


def _is_number(values: Values) -> bool:
    """True for a column of single numbers, which are aligned to the right."""
    return values.ndim == 1 and values.dtype.kind in "iufc"


def _summary(values: Values) -> str:
    """The summary of a column as markup: a line, the counts of its words, or its ends."""
    if values.dtype.kind in "SU":
        return _counts(values)
    if values.dtype.kind == "b":
        share = 100 * np.count_nonzero(values) / max(1, values.size)
        return f"True {share:.3g} %"
    if values.dtype.kind in "mM":
        times = values[~np.isnat(values)]
        if not times.size:
            return "all missing"
        return f"{text_of(value_text(times.min()))} to<br>{text_of(value_text(times.max()))}"
    numbers = comparable(values) if values.dtype.kind in "iufcV" else np.zeros(0)
    return drawings.spark(numbers.reshape(-1)) if numbers.size else ""


def _counts(values: Values) -> str:
    """The most frequent words of a column with their counts, if words repeat."""
    words = Counter(values.reshape(-1).tolist())
    if len(words) > values.size // 2 and len(words) > _WORDS:
        return f"{len(words):,} different"
    parts = [f"{_text_cell(word)} {count:,}" for word, count in words.most_common(_WORDS)]
    more = len(words) - _WORDS
    return "<br>".join([*parts, f"and {more} more"] if more > 0 else parts)


# Texts -------------------------------------------------------------------------------------------


def _place(array: Array, number: int) -> str:
    """The label or the coordinate of an index of a line; without one the index."""
    place = value_at(array.axes[0], number, array.count) if array.described else None
    return f"{number:,}" if place is None else text_of(value_text(place))


def _column(array: Array, sampled: Sample) -> Iterator[str]:
    """Yield texts of one axis as the rows of a table, with their numbers."""
    values = sampled.values[0].reshape(-1)
    rows = _ends_of(array, sampled)
    words = Counter(value_text(value) for value in values.tolist())
    if array.ndim and len(words) > 1 and len(words) <= len(values) // 2:
        yield from _frequent(words, len(values))
    yield '<table class="rows">\n<tbody>\n'
    before = -1
    for number, value in zip(rows.numbers, rows.values, strict=True):
        if number != before + 1:
            yield '<tr><th class="n" scope="row">…</th><td></td></tr>\n'
        before = number
        mark = f'<th scope="row" class="n">{_place(array, number)}</th>' if array.ndim else ""
        yield f"<tr>{mark}{_cell(value)}</tr>\n"
    yield TABLE_END
    if len(rows.numbers) < rows.total:
        yield f"<p class=soft>{rows.total:,} values, of which the first and last are shown</p>\n"


def _frequent(words: Counter[str], count: int) -> Iterator[str]:
    """Yield the counts of the most frequent texts as bars."""
    shown = words.most_common(_WIDE)
    yield '<table class="counts">\n<tbody>\n'
    for word, times in shown:
        share = 100 * times / shown[0][1]
        yield f'<tr><th scope="row">{_text_cell(word)}</th><td class="n">{times:,}</td>'
        yield f'<td class="wide"><span class="share" style="width:{share:.0f}%"></span></td></tr>\n'
    yield TABLE_END
    if len(words) > len(shown):
        yield f"<p class=soft>and {len(words) - len(shown)} more of {count:,}</p>\n"


def _in_shape(array: Array, sampled: Sample) -> Iterator[str]:
    """Yield texts of several axes as rows and columns; of more than two axes, one plane."""
    frame = sampled.frames[0]
    values = sampled.values[0]
    if values.ndim != 2:
        values = values.reshape(-1, values.shape[-1]) if values.ndim > 2 else values.reshape(1, -1)
    high, wide = _ends(values.shape[0]), [*range(min(_WIDE, values.shape[1]))]
    if array.ndim > 2 and frame.key:
        yield f"<p>plane <code>{text_of(frame.key)}</code> of shape "
        yield f"({few_lengths(array.shape, ', ')})</p>\n"
    yield '<div class="scroll" tabindex="0" role="group" aria-label="table">'
    yield '<table class="rows">\n<thead><tr><td></td>'
    yield "".join(f'<th scope="col">{number}</th>' for number in wide)
    yield "</tr></thead>\n<tbody>\n"
    before = -1
    for number in high:
        if number != before + 1:
            yield f'<tr><th scope="row" class="n">…</th>{"<td></td>" * len(wide)}</tr>\n'
        before = number
        yield f'<tr><th scope="row" class="n">{number}</th>'
        yield "".join(_cell(values[number, at]) for at in wide)
        yield "</tr>\n"
    yield f"{TABLE_END}</div>\n"
    if len(wide) < values.shape[1] or len(high) < values.shape[0]:
        yield f"<p class=soft>{values.shape[0]:,} × {values.shape[1]:,} texts</p>\n"


def is_labelled(array: Array, sampled: Sample) -> bool:
    """True for numbers in planes of few rows and columns, if either of these axes has labels."""
    values = sampled.values[0]
    if sampled.form != IMAGE or values.ndim != 2 or max(values.shape) > _LABELS:
        return False
    return any(axis.labels is not None for axis in _plane_axes(array))


def labelled(array: Array, frame: Frame) -> Iterator[str]:
    """Yield the numbers of a plane below and beside the labels of its axes."""
    down, right = _plane_axes(array)
    rows, columns = frame.values.shape
    where = f" of plane <code>{text_of(frame.key)}</code>" if array.ndim > 2 else ""
    where += f", {text_of(frame.where)}" * bool(frame.where)
    unit = f", in {text_of(array.meta.units)}" if array.meta.units else ""
    yield f"<p class=soft>The numbers{where}{unit}</p>\n"
    yield '<div class="scroll" tabindex="0" role="group" aria-label="table">'
    yield '<table class="rows">\n<thead><tr>'
    yield f'<th scope="col">{text_of(down.name or "")} / {text_of(right.name or "")}</th>'
    yield "".join(f'<th scope="col" class="n">{_at(right, n)}</th>' for n in range(columns))
    yield "</tr></thead>\n<tbody>\n"
    for row in range(rows):
        cells = "".join(_cell(value) for value in frame.values[row])
        yield f'<tr><th scope="row">{_at(down, row)}</th>{cells}</tr>\n'
    yield f"{TABLE_END}</div>\n"


def _plane_axes(array: Array) -> list[Axis]:
    """The axes of the rows and the columns of a plane."""
    layout = layout_of(array)
    last = array.ndim - 1
    seen = (layout.rows, layout.columns)
    numbers = [last - at if array.index_order == "F" else at for at in seen]
    return [array.axes[number] for number in sorted(numbers)] if array.described else []


def _at(axis: Axis, number: int) -> str:
    """The head of a row or a column: the label at its index, or the index."""
    return str(number) if axis.labels is None else _text_cell(str(axis.labels[number]))


# Values ------------------------------------------------------------------------------------------


def in_a_cell(value: Any) -> str:
    """The text of a value of a record, which may be an array."""
    return _listed(value) if isinstance(value, np.ndarray) else value_text(value)


def _cell(value: Any) -> str:
    """The cell of a table with a value: numbers to the right, long texts in several lines."""
    if isinstance(value, np.ndarray):
        return f"<td>{text_of(in_a_cell(value))}</td>"
    if isinstance(value, str | bytes):
        return f"<td{' class=long' * (len(value) > _SHORT)}>{_text_cell(value)}</td>"
    number = isinstance(value, int | float | complex | np.number) and not isinstance(
        value, bool | np.timedelta64
    )
    mark = ' class="n"' * number
    return f"<td{mark}>{text_of(value_text(value))}</td>"


def _text_cell(value: Any) -> str:
    """A text in an element that takes the direction of its own letters."""
    words = value_text(value)
    if not words:
        return '<i class="soft">empty</i>'
    return f'<bdi dir="auto">{text_of(words)}</bdi>'


def _listed(values: Values) -> str:
    """The first numbers of a field that is an array, in brackets."""
    parts = [value_text(one) for one in values.reshape(-1)[:_INNER]]
    more = values.size > _INNER
    return f"[{', '.join(parts)}{', …' * more}]"


def value_text(value: Any) -> str:
    """A value as people write it: text without quotes, dates in ISO form, short numbers."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace").rstrip("\0")
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}… ({len(value):,} characters)"
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return "missing"
        date, _, time = str(value).partition("T")
        time = time.rstrip("0").rstrip(".") if "." in time else time
        return f"{date} {time}".rstrip()
    if isinstance(value, complex | np.complexfloating):
        imaginary = number_text(abs(value.imag))
        sign = "\N{MINUS SIGN}" if np.signbit(value.imag) else "+"
        return f"{number_text(float(value.real))} {sign} {imaginary}i"
    if isinstance(value, np.void):
        return value.tobytes()[:16].hex(" ") + " …" * (value.nbytes > 16)
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))})"
    return number_text(value.item() if isinstance(value, np.generic) else value)


def words_of(values: Sequence[Any], most: int = 3) -> str:
    """The first `most` of some values in one text."""
    parts = [value_text(value) for value in values[:most]]
    return ", ".join(parts) + ", …" * (len(values) > most)
