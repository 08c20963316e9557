"""A folder on one screen: how many of each kind, small pictures of a sample, what differs."""

from __future__ import annotations

from raconvert.errors import quoted
from raconvert.registry import by_name
from raconvert.views import terminal
from raconvert.views.fitting import cut_to, folded, folded_all, is_drawn, rows_of
from raconvert.views.one_scale import legend, picture_of
from raconvert.views.pages.folder import (
    facts_of,
    how_flagged,
    is_picture,
    kind_text,
    look_of,
    looked_at,
    others_of,
    scales_of,
)
from raconvert.views.picture import resized, resized_photo
from raconvert.views.sample import spread
from raconvert.views.survey import by_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.views.peek import Screen
    from raconvert.views.survey import Survey, Tile


_CELLS = 14  # width of a small picture in characters
_LINES = 7  # height of a small picture in characters
_MOST_ROWS = 3  # rows of pictures in a window; without a window there are two
_MOST_KINDS = 20
_MOST_GROUPS = 40
_MOST_NAMES = 10  # files that are listed for each thing that differs


def lines_of(survey: Survey, title: str, screen: Screen) -> list[str]:
    """The lines about a folder, no more than the screen has; `title` is its name as it is shown."""
    head = [f"{title}   {'   '.join(facts_of(survey)[:-1] if survey.flags else facts_of(survey))}"]
    if not screen.rows:
        sheet = _sheet(survey, screen, 2, _LINES)
        return [*head, *_kinds(survey, _MOST_KINDS), *_groups(survey, 0, screen), *sheet,
                *_differences(survey, screen), *_beside(survey)]  # fmt: skip
    few = screen.rows < _LINES + 17
    head += _kinds(survey, 2 if few else 4)
    head += _groups(survey, 1 if few else 2, screen)
    tail = _differences(survey, screen, most=max(3, screen.rows // 4))
    tail += [cut_to(line, screen.columns, unicode=screen.unicode) for line in _beside(survey)[:1]]
    head, tail = (folded_all(lines, screen.columns) for lines in (head, tail))
    room = screen.rows - rows_of([*head, *tail], screen.columns) - 2  # a legend of two lines
    count = max(1, min(_MOST_ROWS, room // (_LINES + 1)))
    high = min(_LINES, room // count - 1)
    sheet = _sheet(survey, screen, count, high) if high > 1 else []
    return [*head, *sheet, *tail]


def _kinds(survey: Survey, most: int) -> list[str]:
    """The kinds of files, those of most files first."""
    width = len(f"{survey.kinds[0].files:,}") if survey.kinds else 0
    some = survey.kinds[:most]
    lines = [f"  {kind.files:>{width},} {quoted(kind_text(kind))}" for kind in some]
    if rest := survey.kinds[most:]:
        count = sum(kind.files for kind in rest)
        lines.append(f"  {count:>{width},} files of {len(rest):,} more kinds")
    if survey.opened < survey.files:
        parts = [f"{count:,} {by_name(name).title}" for name, count in survey.formats.items()]
        lines.append(f"  by their names: {', '.join(parts[:most])}")
    return [*lines, f"  {looked_at(survey)}"]


def _groups(survey: Survey, rows: int, screen: Screen) -> list[str]:
    """The folders with their numbers of files: as many as fit `rows` lines; 0 means no limit."""
    groups = list(survey.listing.groups.items())
    if len(groups) < 2:
        return []
    parts = [f"{quoted(name) or 'here'} {count:,}" for name, count in groups]
    if not rows:
        more = [f"and {len(parts) - _MOST_GROUPS:,} more"] * (len(parts) > _MOST_GROUPS)
        return [f"  folders: {'   '.join([*parts[:_MOST_GROUPS], *more])}"]
    for count in range(len(parts), 0, -1):
        more = [f"and {len(parts) - count:,} more"] * (len(parts) > count)
        line = f"  folders: {'   '.join([*parts[:count], *more])}"
        if len(folded(line, screen.columns)) <= rows:
            return [line]
    return [f"  {len(parts):,} folders"]


def _sheet(survey: Survey, screen: Screen, count: int, high: int) -> list[str]:
    """The lines of `count` rows of small pictures, each with its name below, after a legend."""
    tiles = [tile for tile in survey.tiles if is_picture(tile)]
    if screen.way == terminal.NONE or not tiles:
        return []
    per_row = max(2, (screen.columns - 2) // (_CELLS + 2))
    scales = scales_of(tiles)
    chosen = [tiles[number] for number in spread(len(tiles), count * per_row)]
    about = f"  {len(chosen)} of them"
    some = scales.get(look_of(chosen[0]))
    if some is not None:
        pictures = [picture_of(tile.values, some) for tile in chosen if tile.values.ndim == 2]
        more = ", each type by its own limits" if len(scales) > 1 else ""
        about += f": {look_of(chosen[0])} {legend(some, pictures)}{more}"
    lines = [cut_to(about, screen.columns, unicode=screen.unicode)]
    for at in range(0, len(chosen), per_row):
        row = chosen[at : at + per_row]
        pictures = [picture_of(_small(tile, screen, high), scales[look_of(tile)]) for tile in row]
        drawn = terminal.drawn(
            pictures, screen.way, columns=screen.columns, true_color=screen.true_color, rows=high
        )
        lines += [line if is_drawn(line) else f"  {line}".rstrip() for line in drawn]
        lines.append(_captions(row, pictures, screen, high))
    return lines


def _small(tile: Tile, screen: Screen, high: int) -> Any:
    """The plane of a file in the size of a small picture, as large as fits its cell."""
    values = tile.values
    rows, columns = 2 * high, _CELLS
    if screen.way not in (terminal.BLOCKS, terminal.CHARACTERS):
        rows, columns = high * terminal.CELL[1], columns * terminal.CELL[0]
    factor = min(rows / values.shape[0], columns / values.shape[1])
    size = max(1, int(values.shape[0] * factor)), max(1, int(values.shape[1] * factor))
    return resized(values, *size) if values.ndim == 2 else resized_photo(values, *size)


def _captions(row: list[Tile], pictures: list[Any], screen: Screen, high: int) -> str:
    """The line of names of files below their pictures; a long one is cut to its end."""
    line = ""
    left = 2.0  # characters before the next picture
    for tile, picture in zip(row, pictures, strict=True):
        step = terminal.pitch([picture], screen.way, screen.columns, high)
        name, most = quoted(tile.path), max(4, int(step) - 2)
        if len(name) > most:
            name = f"{'…' if screen.unicode else '.'}{name[1 - most :]}"
        line = f"{line:<{round(left)}}{name}"
        left += step
    return line


def _differences(survey: Survey, screen: Screen, most: int = 0) -> list[str]:
    """The lines about what differs: of at most `most` kinds one line each, else with more names."""
    kinds = list(by_word(survey.flags).items())
    if not kinds:
        return ["  nothing differs"] if survey.files else []
    lines = []
    for word, flags in kinds[: most or None]:
        texts = [f"{quoted(flag.path)} ({quoted(flag.reason)})" for flag in flags]
        if most:
            line = f"  {word} {len(flags):,}: {', '.join(texts[:_MOST_NAMES])}"
            lines.append(cut_to(line, screen.columns, unicode=screen.unicode))
            continue
        lines.append(f"  {word}: {len(flags):,}")
        lines += [f"    {text}" for text in texts[:_MOST_NAMES]]
        if len(texts) > _MOST_NAMES:
            lines.append(f"    and {len(texts) - _MOST_NAMES:,} more")
    if most and len(kinds) > most:
        rest = [f"{word} {len(flags):,}" for word, flags in kinds[most:]]
        lines.append(cut_to(f"  {', '.join(rest)}", screen.columns, unicode=screen.unicode))
    return lines if most else [*lines, f"  {how_flagged()}"]


def _beside(survey: Survey) -> list[str]:
    """The lines about files without arrays, and about what could not be listed."""
    return [f"  {quoted(row)}" for row in others_of(survey)]


def facts_for_programs(survey: Survey, path: str) -> dict[str, Any]:
    """The facts about a folder in the types of JSON."""
    return {
        "path": path,
        "files": survey.files,
        "formats": survey.formats,
        "stored_bytes": survey.stored,
        "opened": survey.opened,
        "read": survey.read,
        "read_in_part": survey.partly,
        "kinds": [{**kind._asdict(), "shape": list(kind.shape)} for kind in survey.kinds],
        "folders": survey.listing.groups,
        "flags": [flag._asdict() for flag in survey.flags],
        "others": survey.listing.others,
        "not_listed": [{"path": path, "reason": why} for path, why in survey.listing.unread],
        "beyond": survey.listing.beyond,
    }
