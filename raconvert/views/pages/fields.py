"""Metadata as people read it: nested lists of fields, and tables of alike records."""

from __future__ import annotations

from raconvert.arrays.dtypes import size
from raconvert.views.pages.markup import TABLE_END, cut, name_of, table_head, text_of
from raconvert.views.terminal import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MOST = 240  # fields on a page
_MOST_ITEMS = 12  # items shown of a list
_MOST_COLUMNS = 6  # columns of a table of records; records of more fields are lists
_DEEPEST = 8  # levels of nested fields; deeper ones are counted
_MOST_BYTES = 16  # bytes shown as digits


class Fields:
    """Writer of metadata as HTML, which stops after so many fields."""

    def __init__(self) -> None:
        self.left: int = _MOST
        self.omitted: int = 0

    def listed(self, fields: dict[str, Any], depth: int = 0) -> Iterator[str]:
        """Yield fields as a list of names and values; values with fields of their own nest."""
        yield '<dl class="fields">\n'
        for name, value in fields.items():
            if not self.left:
                self.omitted += _count(value)
                continue
            self.left -= 1
            yield f"<dt>{name_of(str(name)) if name else '(no name)'}</dt>"
            yield f"<dd>{''.join(self.value(value, depth))}</dd>\n"
        yield "</dl>\n"

    def value(self, value: Any, depth: int) -> Iterator[str]:
        """Yield a value: as text, as a list of fields, or as a table."""
        if isinstance(value, dict) and set(value) == {"hex"}:
            yield _bytes(str(value["hex"]))
        elif isinstance(value, dict) and set(value) == {"offset", "nbytes"}:
            yield text_of(f"{size(value['nbytes'])} from byte {value['offset']} of the file")
        elif isinstance(value, dict):
            if not value:
                yield "nothing"
            elif depth >= _DEEPEST:
                yield f"{_count(value)} fields"
            else:
                yield from self.listed(value, depth + 1)
        elif isinstance(value, list):
            yield from self._items(value, depth)
        else:
            yield _scalar(value)

    def _items(self, items: list[Any], depth: int) -> Iterator[str]:
        """Yield a list: as text, as a table, or as a list of fields by index."""
        if not items:
            yield "nothing"
        elif all(isinstance(item, dict) for item in items):
            yield from self._records(items, depth)
        elif any(isinstance(item, dict | list) for item in items):
            if all(_is_row(item) for item in items):
                yield from self._matrix(items)
            elif depth >= _DEEPEST:
                yield f"{len(items)} values"
            else:
                shown = dict(zip(map(str, range(_MOST_ITEMS)), items, strict=False))
                yield from self.listed(shown, depth + 1)
                yield _more(len(items) - len(shown))
        else:
            yield text_of(", ".join(_words(item) for item in items[:_MOST_ITEMS]))
            if len(items) > _MOST_ITEMS:
                yield f", … {text_of(_words(items[-1]))} <span class=soft>({len(items)})</span>"

    def _records(self, items: list[dict[str, Any]], depth: int) -> Iterator[str]:
        """Yield records as a table if their fields are few and plain, else as lists."""
        names = list(dict.fromkeys(name for item in items for name in item))
        flat = not any(isinstance(value, dict) for item in items for value in item.values())
        if not flat or not 0 < len(names) <= _MOST_COLUMNS:
            shown = {str(number): item for number, item in enumerate(items[:_MOST_ITEMS])}
            yield from self.listed({k: v for k, v in shown.items() if v}, depth + 1)
            yield _more(len(items) - len(shown))
            return
        yield table_head("at", *map(text_of, map(str, names)), kind="records")
        for number, item in enumerate(items[:_MOST_ITEMS]):
            cells = "".join(
                f"<td>{''.join(self.value(item[name], depth + 1)) if name in item else ''}</td>"
                for name in names
            )
            yield f'<tr><th scope="row">{number}</th>{cells}</tr>\n'
        yield TABLE_END
        yield _more(len(items) - _MOST_ITEMS)

    def _matrix(self, rows: list[list[Any]]) -> Iterator[str]:
        """Yield a list of short lists as the rows of a table."""
        yield '<table class="matrix"><tbody>\n'
        for row in rows[:_MOST_ITEMS]:
            yield f"<tr>{''.join(f'<td>{text_of(cut(_words(item)))}</td>' for item in row)}</tr>\n"
        yield TABLE_END
        yield _more(len(rows) - _MOST_ITEMS)


def _is_row(item: Any) -> bool:
    """True for a short list of values that are neither lists nor fields."""
    is_short = isinstance(item, list) and 0 < len(item) <= _MOST_COLUMNS
    return is_short and not any(isinstance(cell, dict | list) for cell in item)


def _more(count: int) -> str:
    """A line with the number of items that are not shown; empty for 0."""
    return f"<p>and {count} more</p>\n" if count > 0 else ""


def _scalar(value: Any) -> str:
    """A value as text; lines of a text stay lines."""
    if isinstance(value, str) and "\n" in value.strip():
        return "<br>\n".join(text_of(line) for line in cut(value).splitlines())
    return (
        f"<bdi>{text_of(cut(_words(value)))}</bdi>" if value != "" else '<i class="soft">empty</i>'
    )


def _words(value: Any) -> str:
    """A value in words; a float with all of its digits if few would change it."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        text = number_text(value)
        return text if float(text) == value else repr(value)
    return str(value)


def _bytes(digits: str) -> str:
    """Bytes as their number, and the first of them in digits."""
    count = len(digits) // 2
    shown = " ".join(digits[at : at + 2] for at in range(0, 2 * min(count, _MOST_BYTES), 2))
    return text_of(f"{size(count)}: {shown}{' …' * (count > _MOST_BYTES)}")


def _count(value: Any) -> int:
    """The number of values in nested fields."""
    if isinstance(value, dict):
        return sum(map(_count, value.values())) or 1
    return 1
