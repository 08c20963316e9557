"""A page about a folder: small pictures of a sample, what differs, and how many of each kind."""

from __future__ import annotations

import os

from raconvert.arrays.dtypes import few_lengths, size
from raconvert.errors import counted
from raconvert.registry import by_name
from raconvert.views.folder import MOST_FILES
from raconvert.views.one_scale import figure, legend, picture_of, shared_scale
from raconvert.views.pages.figures import coded, color_bar
from raconvert.views.pages.markup import cut, name_of, page, share_cell, table, text_of
from raconvert.views.sample import spread
from raconvert.views.survey import FAR, FEWEST, UNREADABLE, by_word
from raconvert.views.terminal import sparkline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.views.picture import Picture, Scale
    from raconvert.views.survey import Flag, Kind, Survey, Tile


_MOST_TILES = 60  # pictures on the sheet
_MOST_ODD = 24  # pictures of files that differ
_TILE_BYTES = 300_000  # bytes of the pictures of the sheet, and of those of files that differ
_SIDE = 84  # pixels of the longer side of a picture on the page
_MOST_SCALES = 6  # colour bars below the pictures
_MOST_NAMES = 20  # files that are listed for each thing that differs
_MOST_KINDS = 40
_MOST_GROUPS = 100
_MOST_OTHERS = 30


def page_of(survey: Survey) -> Iterator[str]:
    """Yield the page about a folder, section by section."""
    root = survey.listing.root
    name = os.path.basename(os.path.abspath(root)) or root
    yield from page("sheet", [name], " · ".join(facts_of(survey)), _body_of(survey))


def _body_of(survey: Survey) -> Iterator[str]:
    """Yield the sections of the page."""
    yield from _sheet(survey)
    if survey.files:
        yield from _differences(survey)
        yield from _kinds(survey)
    yield from _groups(survey)
    yield from _others(survey)


def facts_of(survey: Survey) -> list[str]:
    """The facts about a folder in a few words each."""
    folders = len(survey.listing.groups)
    facts = [f"{survey.files:,} file{'s' * (survey.files != 1)}"]
    facts += [f"in {counted(folders, 'folder')}"] if folders > 1 else []
    facts.append(size(survey.stored))
    if survey.kinds:
        facts.append(f"{'mostly ' * (len(survey.kinds) > 1)}{kind_text(survey.kinds[0])}")
    if survey.flags:
        facts.append(f"{counted(len({flag.path for flag in survey.flags}), 'file')} flagged")
    return facts


def kind_text(kind: Kind) -> str:
    """Describe a kind of files in a few words."""
    if kind.arrays > 1:
        return f"{by_name(kind.format).title} of {kind.arrays:,} arrays"
    return f"{by_name(kind.format).title} {cut(kind.type)} {_shape(kind.shape)}"


def looked_at(survey: Survey) -> str:
    """Describe how many files of a folder were opened and read."""
    if not survey.files:
        return "no file of a format that is read"
    which = "all" if survey.opened >= survey.files else f"{survey.opened:,} of {survey.files:,}"
    text = f"headers of {which} files were read, and elements of {survey.read:,}"
    if survey.partly:
        text += f", of {survey.partly:,} of them a part"
    if survey.opened < survey.files:
        text += "; one file of each of equal stretches of the list"
    return text


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def how_flagged() -> str:
    """Describe the rules by which files are flagged."""
    return (
        f"far off: more than {FAR:g} robust standard deviations (1.4826 × MAD) from the median "
        f"of at least {FEWEST} files; means among files of one type, sizes by their logarithm "
        "among files of one format, and by a factor of 2 at least; another type, shape or format: "
        "80 % share one"
    )


def scales_of(tiles: list[Tile]) -> dict[str, Scale | None]:
    """The scale of the pictures of each type, which they share; those of photos are None."""
    planes: dict[str, list[Any]] = {}
    for tile in tiles:
        if is_picture(tile):
            planes.setdefault(look_of(tile), []).append(tile.values)
    return {look: shared_scale(some) for look, some in planes.items()}


def look_of(tile: Tile) -> str:
    """The name of the scale that a picture shares with others."""
    kind = f"{by_name(tile.format).title} {tile.type}"
    return f"{kind} in colour" if tile.values.ndim == 3 else kind


def is_picture(tile: Tile) -> bool:
    """True if a file has a small picture."""
    return tile.values is not None and tile.values.ndim > 1


def _sheet(survey: Survey) -> Iterator[str]:
    """Yield the section of small pictures."""
    odd = " Nothing differs." if survey.files and not survey.flags else ""
    yield f"<h2>A sample</h2>\n<p>{text_of(_sentence(looked_at(survey)))}.{odd}</p>\n"
    seen = [tile for tile in survey.tiles if tile.values is not None]
    if not seen:
        return
    scales = scales_of(survey.tiles)
    some = [seen[number] for number in spread(len(seen), _MOST_TILES)]
    some = _within(some, scales)
    yield "<figure>\n"
    yield from _tiles(some, scales, {})
    yield f"<figcaption>{_legends(some, scales)}</figcaption>\n</figure>\n"


def _within(tiles: list[Tile], scales: dict[str, Scale | None]) -> list[Tile]:
    """As many of the files, of all stretches of the list, as have pictures in `_TILE_BYTES`."""
    taken = coded([_picture(tile, scales) for tile in tiles if is_picture(tile)]).nbytes * 4 // 3
    if taken <= _TILE_BYTES:
        return tiles
    return [tiles[number] for number in spread(len(tiles), len(tiles) * _TILE_BYTES // taken)]


def _picture(tile: Tile, scales: dict[str, Scale | None]) -> Picture:
    """The picture of a file by the scale that it shares with others."""
    return picture_of(tile.values, scales[look_of(tile)])


def _legends(tiles: list[Tile], scales: dict[str, Scale | None]) -> str:
    """The colours of each type, and how large a pixel is."""
    parts = [f"{len(tiles)} of the files, of one type with the same limits"]
    for look, scale in list(scales.items())[:_MOST_SCALES]:
        some = [tile for tile in tiles if is_picture(tile) and look_of(tile) == look]
        if some:
            pictures = [_picture(tile, scales) for tile in some]
            words = legend(scale, pictures, ends=False)
            parts.append(f"{text_of(look)} {color_bar(scale)}{text_of(words)}".rstrip())
    parts += ["others by their own"] * (len(scales) > _MOST_SCALES)
    if any(is_picture(tile) for tile in tiles):
        parts.append(f"each drawn {_SIDE} pixels long, whatever its size")
    return "; ".join(parts)


def _tiles(
    tiles: list[Tile], scales: dict[str, Scale | None], reasons: dict[str, str]
) -> Iterator[str]:
    """Yield small pictures, each with its name and maybe a reason."""
    yield '<div class="strip sheet">\n'
    for tile in tiles:
        below = f"{name_of(tile.path)}{_soft(reasons.get(tile.path, ''))}"
        if is_picture(tile):
            words = f"{tile.type} {_shape(tile.shape)}"
            yield figure(_picture(tile, scales), words, _SIDE, below)
        elif tile.values is not None:
            yield f"<div>{_line(tile)}<br>{below}</div>\n"
    yield "</div>\n"


def _soft(text: str) -> str:
    return f' <span class="soft">{text_of(text)}</span>' if text else ""


def _line(tile: Tile) -> str:
    """A file of one axis as a line of characters."""
    low, high = float(tile.values.min()), float(tile.values.max())
    values = tile.values[:: max(1, len(tile.values) // 10)].tolist()
    return f"<code>{text_of(sparkline(values, low, high))}</code>"


def _shape(shape: tuple[int, ...]) -> str:
    return f"({few_lengths(shape, ', ')}{',' * (len(shape) == 1)})"


def _differences(survey: Survey) -> Iterator[str]:
    """Yield the section about the files that differ."""
    yield "<h2>What differs</h2>\n"
    kinds = by_word(survey.flags)
    if not kinds:
        yield "<p>Nothing: no file of another type, shape or format than most, none blank, none "
        yield "far off in size or mean, and all that were opened can be read.</p>\n"
    yield from _odd_tiles(survey)
    if kinds:
        rows = (row for word, flags in kinds.items() for row in _flag_rows(word, flags))
        yield from table(rows, "what", ">files", "file", "how")
    yield f'<p class="soft">{text_of(_sentence(how_flagged()))}.</p>\n'


def _flag_rows(word: str, flags: list[Flag]) -> Iterator[str]:
    """Yield the rows about the files that differ in one thing."""
    for number, flag in enumerate(flags[:_MOST_NAMES]):
        mark = ' class="bad"' if word == UNREADABLE else ""
        head = f'<td{mark}>{text_of(word)}</td><td class="n">{len(flags):,}</td>'
        yield f"<tr>{'<td></td><td></td>' if number else head}"
        yield f"<td>{name_of(flag.path)}</td><td>{text_of(cut(flag.reason))}</td></tr>\n"
    if len(flags) > _MOST_NAMES:
        more = f"and {len(flags) - _MOST_NAMES:,} more"
        yield f"<tr><td></td><td></td><td>{more}</td><td></td></tr>\n"


def _odd_tiles(survey: Survey) -> Iterator[str]:
    """Yield the pictures of files that differ."""
    reasons: dict[str, str] = {}
    for word, flags in by_word(survey.flags).items():
        for flag in flags:
            reasons[flag.path] = f"{reasons[flag.path]}, {word}" if flag.path in reasons else word
    odd = [tile for tile in survey.tiles if tile.path in reasons and is_picture(tile)]
    if odd:
        yield "<figure>\n"
        scales = scales_of(survey.tiles)
        yield from _tiles(_within(odd[:_MOST_ODD], scales), scales, reasons)
        yield "</figure>\n"


def _kinds(survey: Survey) -> Iterator[str]:
    """Yield the section about the kinds of files."""
    yield "<h2>Kinds</h2>\n"
    if survey.opened < survey.files:
        parts = [f"{count:,} {by_name(name).title}" for name, count in survey.formats.items()]
        yield f"<p>All files by their names: {text_of(', '.join(parts[:_MOST_KINDS]))}. "
        yield f"By the headers of {survey.opened:,} of them:</p>\n"
    rows = map(_kind_row, survey.kinds[:_MOST_KINDS])
    yield from table(rows, ">files", "format", "type", "shape in Python", "arrays in each")
    if rest := survey.kinds[_MOST_KINDS:]:
        yield f"<p>and {sum(kind.files for kind in rest):,} files of {len(rest):,} more kinds</p>\n"


def _kind_row(kind: Kind) -> str:
    """The row of a kind of files."""
    shape = f"the largest {_shape(kind.shape)}" if kind.arrays > 1 else _shape(kind.shape)
    return (
        f'<tr><td class="n">{kind.files:,}</td><td>{text_of(by_name(kind.format).title)}</td>'
        f"<td>{text_of(cut(kind.type))}</td><td>{text_of(shape)}</td>"
        f"<td>{kind.arrays:,}</td></tr>\n"
    )


def _groups(survey: Survey) -> Iterator[str]:
    """Yield the section about the folders in the folder."""
    groups = survey.listing.groups
    if len(groups) < 2:
        return
    most = max(groups.values())
    rows = []
    for name, count in list(groups.items())[:_MOST_GROUPS]:
        shown = name_of(name) if name else "in the folder itself"
        bar = share_cell(count / most)
        rows.append(f'<tr><td>{shown}</td><td class="n">{count:,}</td>{bar}</tr>\n')
    yield "<h2>Folders</h2>\n"
    yield from table(rows, "folder", ">files", "share")
    if len(groups) > _MOST_GROUPS:
        yield f"<p>and {len(groups) - _MOST_GROUPS:,} more folders</p>\n"


def _others(survey: Survey) -> Iterator[str]:
    """Yield what lies beside the files with arrays, and what was not listed."""
    rows = others_of(survey)
    if not rows:
        return
    yield "<h2>Beside them</h2>\n<ul>\n"
    yield from (f"<li>{text_of(row)}</li>\n" for row in rows)
    yield "</ul>\n"


def others_of(survey: Survey) -> list[str]:
    """Describe the files without arrays, and what could not be listed, one thing in each text."""
    others = sorted(survey.listing.others.items(), key=lambda other: -other[1])
    rows = []
    if others:
        parts = [f"{count:,} {cut(ending) or 'without suffix'}" for ending, count in others]
        more = f", and {len(parts) - _MOST_OTHERS} endings more" * (len(parts) > _MOST_OTHERS)
        rows.append(f"files without arrays: {', '.join(parts[:_MOST_OTHERS])}{more}")
    for path, reason in survey.listing.unread[:_MOST_NAMES]:
        rows.append(f"a folder that cannot be listed: {path}: {reason}")
    if survey.listing.beyond:
        beyond = survey.listing.beyond
        rows.append(f"{beyond:,} files after the first {MOST_FILES:,}, which were only counted")
    return rows
