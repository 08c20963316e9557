"""A page about a file: what it is, what it holds, where its bytes lie, what would become of it.

One file of HTML, in which nothing is loaded from anywhere and nothing is obeyed: every text from
elsewhere is escaped, names stand in elements that keep their direction of writing. No script runs
but the one that steps through a volume and sorts arrays, by its digest, and nothing depends on it.
It can be read without its style, in light and dark, and printed.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from math import isfinite
from textwrap import dedent
from uuid import uuid4

from raconvert import registry
from raconvert.arrays.dtypes import dtype_of, few_lengths, little, size
from raconvert.arrays.scales import scale_notes
from raconvert.conversion.options import Settings
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import plan_bundle
from raconvert.declared import Record
from raconvert.errors import MissingDependency, RaconvertError, TooLarge, WouldLose
from raconvert.files.paths import is_remote
from raconvert.files.quoting import operand
from raconvert.inspect.digest import digest_array, manifest_line
from raconvert.inspect.info import describe, describe_array, format_details, type_text
from raconvert.ra.header import data_offset
from raconvert.registry import by_name, load
from raconvert.views.filmstrip import labels_beside
from raconvert.views.hanging import steps_text
from raconvert.views.pages import drawings
from raconvert.views.pages.array import section_of
from raconvert.views.pages.bytes_of import file_map_of
from raconvert.views.pages.fields import Fields
from raconvert.views.pages.grid import MARK as MARK_OF_GRID
from raconvert.views.pages.grid import SCRIPT as SORTING
from raconvert.views.pages.grid import Grid
from raconvert.views.pages.markup import (
    SCRIPTED,
    TABLE_END,
    closing,
    cut,
    digest_of,
    name_of,
    opening,
    reason_of,
    table_head,
    text_of,
)
from raconvert.views.pages.programs import (
    LANGUAGES,
    Stored,
    filled,
    julia_type,
    programs,
    stored_of,
)
from raconvert.views.pages.volume import MARK
from raconvert.views.pages.volume import SCRIPT as STEPPING
from raconvert.views.roles import main_array, roles_of
from raconvert.views.sample import REMOTE_BUDGET, chunk_count, values_text
from raconvert.workers.interrupts import raise_interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.arrays.dtypes import Element
    from raconvert.catalogue import Row
    from raconvert.conversion.read import Opened
    from raconvert.views.roles import Roles


MOST_DIGEST = 64 << 20  # bytes; above, a digest is computed with --full only
MOST_PIECES = 4000  # chunks; above, digests are computed with --full only
_ORDERS = {"<": "little", ">": "big"}
_MOST_ARRAYS = 100  # arrays of a container whose metadata and digests the page lists
_MOST_OPEN = 3  # arrays whose metadata are unfolded
_MOST_NAMED = 8  # axes; of more, the names are not listed
_MOST_BESIDE = 8  # names of coordinates listed


def page_of(opened: Opened, path: str, *, full: bool = False) -> Iterator[str]:
    """Yield the page about an open file, section by section; with `full` all elements are read.

    Raises what reading elements raises.
    """
    bundle = opened.bundle
    rows = bundle.arrays[:_MOST_ARRAYS]
    facts = describe(bundle, path, opened.reason, only=rows)
    many = len(bundle.arrays) > 1
    roles = roles_of(bundle)
    array = main_array(bundle, roles)
    name = os.path.basename(bundle.path.rstrip("/")) or path
    # Everything that reads comes first: what cannot be read is promised nowhere on the page.
    byte_map = "".join(_bytes(opened, facts))
    pictures = "" if array is None else "".join(_pictures(array, bundle, full=full))
    if many and array is not None and array.problem is not None:
        pictures += "".join(_instead(bundle, roles, array, full=full))
    grid = "".join(_grid(bundle, roles)) if many else ""
    digests = "".join(_digests(opened, facts, full=full))
    if any(one.problem is not None for one in rows):
        facts["arrays"] = [describe_array(one, bundle) for one in rows]
    script = STEPPING * (MARK in pictures) + SORTING * (MARK_OF_GRID in grid)
    script += SCRIPTED * bool(script)
    yield opening("page", name, digest_of(script))
    yield f"<h1>{name_of(name)}</h1>\n"
    yield "".join(_lead(opened, facts, array))
    if array is not None:
        yield _title(array, roles) if many or array.meta.description else ""
        yield pictures
    yield grid
    yield "".join(_passport(opened, array))
    if array is not None:
        yield f"<h2>The array{f' {name_of(array.name)}' * many}</h2>\n"
        yield "".join(_short(array, describe_array(array, bundle)))
        yield _cube(array)
        yield "".join(_programs(array, facts, bundle.path))
    yield byte_map
    yield digests
    yield "".join(_metadata(facts))
    yield closing(script)


def _instead(bundle: Bundle, roles: Roles, array: Array, *, full: bool) -> Iterator[str]:
    """Yield the picture of the next array, since the main one is damaged."""
    other = main_array(bundle, roles)
    if other is not None and other.problem is None and other is not array:
        yield _title(other, roles)
        yield from _pictures(other, bundle, full=full)


def _title(array: Array, roles: Roles) -> str:
    """The heading of the picture of one array of many, with what it is about."""
    parts = [array.meta.description or "", *_in_short(array)]
    along = [name for name in roles.beside.get(array.name, ()) if name in roles.kinds]
    parts += [f"with {', '.join(along[:_MOST_BESIDE])}"] if along else []
    about = text_of(", ".join(filter(None, map(cut, parts))))
    return f'<h2>{name_of(array.name)} <span class="soft">{about}</span></h2>\n'


def _in_short(array: Array) -> list[str]:
    """The type, the shape and the size of the elements of an array."""
    if array.pending:
        return []
    lengths = _shape(array.shape)
    axes = array.axes if array.described else ()
    if any(axis.name for axis in axes) and len(axes) <= _MOST_NAMED:
        named = zip(axes, array.shape, strict=True)
        words = [f"{cut(axis.name)}: {n}" if axis.name else str(n) for axis, n in named]
        lengths = f"({', '.join(words)})"
    parts = [f"{type_text(array.element)} {lengths}" if array.ndim else type_text(array.element)]
    return [*parts, *filter(None, [steps_text(array)])]


def _grid(bundle: Bundle, roles: Roles) -> Iterator[str]:
    """Yield all arrays as a grid; those that turn out damaged are marked."""
    grid = Grid(bundle, roles)
    for one in bundle.arrays:
        if one.name in grid.broken:
            _mark(one, grid.broken[one.name])
    yield "<h2>All arrays</h2>\n"
    yield from grid.html(sortable=True)


def _lead(opened: Opened, facts: dict[str, Any], array: Array | None) -> Iterator[str]:
    """Yield the line below the heading, and the notes about the file."""
    path, count = opened.bundle.path, len(opened.bundle.arrays)
    short = _in_short(array) if array is not None and count == 1 else []
    parts = [
        f"{text_of(facts['title'])} <span class=soft>({text_of(facts['reason'])})</span>",
        *map(text_of, short),
        f"{size(facts['stored_bytes'])}",
        text_of(_count(opened.bundle)) if facts["container"] else "",
        "" if is_remote(path) else _changed(path),
    ]
    yield f'<p class="lead">{" · ".join(part for part in parts if part)}</p>\n'
    stored = scale_notes(opened.bundle.arrays)  # the words beside the picture replace them
    for note in [note for note in facts["notes"] if note not in stored][:10]:
        yield f"<p>Note: {text_of(note)}</p>\n"


def _count(bundle: Bundle) -> str:
    """The number of arrays of a container; the name of a single one."""
    count = len(bundle.arrays)
    if count != 1:
        return f"{count} arrays"
    return ", ".join(filter(None, ("1 array", cut(bundle.arrays[0].name))))


def _changed(path: str) -> str:
    """Describe when a file was changed; empty for times beyond the year 9999."""
    seconds = os.stat(path).st_mtime
    try:
        changed = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # by the size of the number
        return ""
    return f"changed {changed.isoformat(' ', 'seconds')[:19]} UTC"


def _shape(lengths: Any) -> str:
    """The lengths of axes as Python writes them, of very many only some."""
    return f"({few_lengths(lengths, ', ')}{',' if len(lengths) == 1 else ''})"


def _short(array: Array, row: dict[str, Any]) -> Iterator[str]:
    """Yield the facts that readers ask for first."""
    dims = few_lengths(array.dims, " × ") or "one number"
    julia = f"Array{{{julia_type(little(array.element))},{array.ndim}}}"
    first = "last" if array.index_order != "F" else "first"
    yield '<dl class="facts">\n'
    yield _fact("type", f"<b>{text_of(row['type'])}</b>, {_order(array.element, row)}")
    yield _fact("in Python", f"shape <b>{text_of(_shape(array.shape))}</b>")
    yield _fact("in Julia", f"<code>{text_of(julia)}</code>, <b>{text_of(dims)}</b>")
    if array.ndim > 1:
        yield _fact("order", f"the {first} index runs fastest, in the order of the file")
    yield _fact(
        "elements", f"{array.count:,} of {array.element.nbytes} bytes, {size(row['nbytes'])}"
    )
    yield _fact("compressed", _compressed(array, row))
    values = values_text(array)
    if values:
        yield _fact("values", text_of(values))
    elif array.meta.units:
        yield _fact("units", text_of(array.meta.units))
    yield "</dl>\n"


def _fact(name: str, text: str) -> str:
    """A name and its text, which is markup, in a list of facts."""
    return f"<dt>{name}</dt><dd>{text}</dd>\n"


def _order(element: Element, row: dict[str, Any]) -> str:
    """Describe the byte order; for elements with fields, each field."""
    order = row["byte_order"]
    if element.kind == "user":
        dtype = dtype_of(element)
        if dtype.names is not None:
            return f"in NumPy <code>{text_of(cut(str(dtype.descr)))}</code>"
        if dtype.kind == "V":
            return "bytes without a meaning of their own"
        order = _ORDERS.get(dtype.str[0])
    return f"{order}-endian" if order else "the order of bytes does not matter"


def _compressed(array: Array, row: dict[str, Any]) -> str:
    """Describe how the elements are stored: plain, or by which filters, in how many bytes."""
    layout, storage = row["layout"], row["storage"]
    if layout["kind"] != "encoded":
        where = "" if array.extent is None else os.path.basename(array.extent.path)
        return f"no: as they are from byte {layout['offset']:,} of {name_of(where)}"
    filters = storage.get("filters") or storage.get("compression") or []
    names = [str(filters)] if isinstance(filters, (str, int)) else [str(one) for one in filters]
    chunks = storage.get("chunks")
    parts = [f"by {', '.join(names)}"] if names else []
    if isinstance(chunks, list):
        parts.append(f"in chunks of {' × '.join(map(str, chunks))}")
    stored = storage.get("stored_bytes")
    if isinstance(stored, int):
        parts.append(f"{size(stored)} in the file for {size(array.nbytes)}")
    word = "yes" if names or (isinstance(stored, int) and stored < array.nbytes) else "encoded"
    return text_of(f"{word}: {', '.join(parts)}" if parts else "encoded: not there as they are")


def _cube(array: Array) -> str:
    """The drawing of the first three axes of RA, with their numbers in Python and Julia."""
    sides = []
    axes = array.ra_axes if array.described else ()
    lengths = array.dims[:3]
    steps = [abs(axis.spacing or 0) for axis in axes[:3]]
    # Edges are as long as they are in the world, if all of them have lengths in one unit.
    extents = [n * step for n, step in zip(lengths, steps, strict=False)]
    in_world = len({axis.units for axis in axes[:3]}) == 1 and len(extents) == len(lengths)
    if not (in_world and all(extent and isfinite(extent) for extent in extents)):
        extents = [*lengths]
    for number, (length, extent) in enumerate(zip(lengths, extents, strict=True)):
        python = number if array.index_order == "F" else array.ndim - 1 - number
        name = array.axes[python].name
        first = f"{name}, {length:,}" if name else f"{length:,}"
        sides.append(
            drawings.Side(extent, f"{first}: Python axis {python} · Julia dimension {number + 1}")
        )
    if array.ndim < 1:
        return ""
    more = [f"{length:,}" for length in array.dims[3:]]
    text = f"<p>and {' × '.join(more)} of these</p>\n" if more else ""
    return f"<figure>\n{drawings.cube(sides)}</figure>\n{text}"


def _pictures(array: Array, bundle: Bundle, *, full: bool) -> Iterator[str]:
    """Yield the section of an array's values; if they are damaged, mark the array and say why."""
    try:
        yield from section_of(array, full=full, labels=labels_beside(bundle, array))
    except RaconvertError as error:
        _mark(array, error)
        yield f'<p class="bad">The elements cannot be read: {_damage(error)}</p>\n'


def _mark(array: Array, error: RaconvertError) -> None:
    """Mark an array as damaged, for the rest of the page. Raises what interrupted the reading."""
    raise_interruption(error)
    if not isinstance(error, TooLarge):  # with more memory it can be read, so it is not damaged
        array.problem = error


def _damage(error: RaconvertError) -> str:
    """Describe why elements cannot be read, and where."""
    return text_of(", ".join(part for part in (error.what, error.where) if part))


# Where its bytes lie -----------------------------------------------------------------------------


def _bytes(opened: Opened, facts: dict[str, Any]) -> Iterator[str]:
    """Yield the section on the bytes of a file: its map and the table of its parts."""
    total, path = facts["stored_bytes"], opened.bundle.path
    if not total or os.path.isdir(path):
        return
    yield "<h2>Where the bytes are</h2>\n"
    file_map = file_map_of(opened.bundle, total)
    yield f"<figure>\n{drawings.ribbon(file_map.boxes, total)}</figure>\n"
    yield table_head("part", ">from byte", ">bytes", ">share")
    for part in file_map.rows:
        mark = f'<span class="key {part.kind}"></span>'
        share = 100 * part.nbytes / total
        yield f'<tr><td>{mark}{text_of(part.name)}</td><td class="n">{part.start:,}</td>'
        yield f'<td class="n">{part.nbytes:,}</td><td class="n">{share:.3g} %</td></tr>\n'
    yield TABLE_END
    if not is_remote(path):
        on_disk = getattr(os.stat(path), "st_blocks", total // 512 + 1) * 512
        if on_disk < 0.9 * total:
            yield f"<p>Of {size(total)} only {size(on_disk)} are on the disk: the rest are holes, "
            yield "which were never written and read as zeros.</p>\n"


# What would become of it -------------------------------------------------------------------------


def _passport(opened: Opened, array: Array | None) -> Iterator[str]:
    """Yield the section on the outcome of writing the file in each format."""
    yield "<h2>Passport</h2>\n"
    broken = [one for one in opened.bundle.arrays if one.problem is not None]
    if broken:
        yield from _broken(broken, len(opened.bundle.arrays))
    if broken and len(broken) == len(opened.bundle.arrays):
        return
    yield "<p>What it would be in each format that raconvert writes: the same "
    yield "(exact), every value in another form (equivalent), or refused, unless a flag allows the "
    yield "loss.</p>\n"
    visas = passport(opened, array)
    yield '<dl class="outcomes">\n'
    for outcome in (EXACT, EQUIVALENT, REFUSED, UNKNOWN):
        named = [escape(visa.format) for visa in visas if visa.outcome == outcome]
        if named:
            yield f'<dt class="{outcome.split()[0]}">{outcome}</dt><dd>{", ".join(named)}</dd>\n'
    yield "</dl>\n<details><summary>Why, format by format</summary>\n"
    yield table_head("format", "outcome", "why")
    yield "".join(map(_row_of, visas))
    yield f"{TABLE_END}</details>\n"


def _row_of(visa: Visa) -> str:
    """The row of one format: its outcome, the reasons, and the flags that allow losses."""
    lines = [reason_of(cut(reason)) for reason in visa.reasons]
    if visa.flags:
        lines += [f"allowed by {', '.join(f'<code>{text_of(flag)}</code>' for flag in visa.flags)}"]
    return (
        f"<tr><td><b>{escape(visa.format)}</b> <span class=soft>{escape(visa.title)}</span></td>"
        f'<td class="outcome {visa.outcome.split()[0]}">{visa.outcome}</td>'
        f"<td>{'<br>'.join(lines)}</td></tr>\n"
    )


def _broken(arrays: list[Array], count: int) -> Iterator[str]:
    """Yield the paragraph on the arrays that cannot be read, and why."""
    first = arrays[0]
    why = "" if first.problem is None else _damage(first.problem)
    if len(arrays) == count:
        some = "The elements" if count == 1 else f"The elements of all {count} arrays"
        yield f'<p class="bad">{some} cannot be read ({why}): no format gets anything of them, '
        yield "and every conversion is refused.</p>\n"
        return
    more = f" and of {len(arrays) - 1} more" if len(arrays) > 1 else ""
    yield f'<p class="bad">The elements of {name_of(first.name)}{more} of {count} arrays cannot be '
    yield f"read ({why}): no format gets anything of them.</p>\n"


def _programs(array: Array, facts: dict[str, Any], path: str) -> Iterator[str]:
    """Yield the section of programs that read the array without raconvert."""
    yield "<h2>Read it without raconvert</h2>\n"
    if array.problem is not None:
        yield "<p>No program is given: the elements cannot be read.</p>\n"
        return
    if not array.nbytes:
        yield "<p>There is nothing to read.</p>\n"
        return
    name = os.path.basename(path)
    if array.extent is not None and not is_remote(array.extent.path):
        name = os.path.relpath(array.extent.path, os.path.dirname(path) or ".")
    stored = stored_of(array, name)
    if stored is None:
        spec = (
            f"{os.path.basename(path)}#{array.name}"
            if facts["container"]
            else os.path.basename(path)
        )
        yield from _encoded(array, name, spec, facts["format"])
        return
    where = "A copy of the file here" if is_remote(path) else "In the folder of the file"
    yield f"<p>{where}; the elements are stored as they are.</p>\n"
    yield from _listings(programs(stored))


def _encoded(array: Array, path: str, spec: str, format: str) -> Iterator[str]:
    """Yield the programs for encoded elements: with a library, or after conversion to .ra."""
    link = format_details(format)["spec"]
    yield "<p>The elements are encoded, and take a library that decodes the format"
    if link.startswith("https://"):
        yield f" (<code>{text_of(link)}</code>)"
    templates_of = load(by_name(format)).programs
    lines = filled(templates_of(array), path, array.name) if templates_of else {}
    if lines:
        yield ":</p>\n"
        yield from _listings(lines)
    yield "<p>" if lines else ". "
    yield "Made plain once, they take none:</p>\n"
    yield f"<pre>{text_of(f'raconvert {operand(spec)} -o x.ra')}</pre>\n"
    order = array.index_order
    dims = array.shape[::-1] if array.row_major else array.dims
    element = little(array.element)
    stored = Stored("x.ra", data_offset(array.ndim), element, False, dims, order)
    yield from _listings(programs(stored), " of x.ra" * bool(lines))


def _listings(lines: dict[str, str], of: str = "") -> Iterator[str]:
    """Yield programs as blocks, of which the first is unfolded."""
    for language in LANGUAGES:
        if language not in lines:
            continue
        first = " open" * (language == LANGUAGES[0])
        yield f"<details{first}><summary>{language}{of}</summary>\n"
        yield f'<pre class="program">{escape(dedent(lines[language]))}</pre>\n</details>\n'


# Checksums and digests ---------------------------------------------------------------------------


def _digests(opened: Opened, facts: dict[str, Any], *, full: bool) -> Iterator[str]:
    """Yield the section on the checksum of the file and the digests of its arrays."""
    path, bundle = opened.bundle.path, opened.bundle
    total = facts["stored_bytes"]
    name = os.path.basename(path)
    yield "<h2>Is it the same file?</h2>\n"
    if not os.path.isfile(path):
        what = "a file elsewhere" if is_remote(path) else "a folder"
        yield f"<p>No checksum was made of all of it: it is {what}, of {size(total)}.</p>\n"
    elif full or total <= MOST_DIGEST:
        yield "<p>What <code>sha256sum</code> says of the file:</p>\n"
        yield f"<pre>{text_of(manifest_line(name, _sha256_of(path)))}</pre>\n"
    else:
        yield f"<p>The file has {size(total)}; no checksum of it was made (<code>--full</code> "
        yield "makes it).</p>\n"
    sound = [one for one in bundle.arrays if one.problem is None and one.nbytes]
    most = REMOTE_BUDGET if is_remote(path) else MOST_DIGEST
    cheap = sum(one.nbytes for one in sound) <= most and sum(map(chunk_count, sound)) <= MOST_PIECES
    if not (full or cheap):
        return
    yield "<p>The digest of the elements, the same in every format of its kind "
    yield "(<code>raconvert digest</code>):</p>\n<pre>"
    for one in sound[:_MOST_ARRAYS]:
        try:
            digits = digest_array(one)
        except RaconvertError as error:
            _mark(one, error)
            yield f"{text_of(one.name)}: cannot be read: {text_of(error.what)}\n"
            continue
        spec = f"{name}#{one.name}" if facts["container"] else name
        yield text_of(manifest_line(spec, digits)) + "\n"
    yield "</pre>\n"


def _sha256_of(path: str) -> str:
    """The SHA-256 of a file, as hex digits."""
    state = sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            state.update(piece)
    return state.hexdigest()


# Metadata ----------------------------------------------------------------------------------------


def _metadata(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the metadata of the file and its arrays; the fields of single formats are folded."""
    parts = [("", facts["attributes"])] if facts["attributes"] else []
    parts += [(group, own) for group, own in facts["groups"].items() if own]
    of_formats = []
    for array in facts["arrays"]:
        own = {name: value for name, value in array["metadata"].items() if name != "formats"}
        name = array["name"] if facts["container"] or (own and len(facts["arrays"]) > 1) else ""
        parts += [(name, own)] if own else []
        formats = array["metadata"].get("formats")
        of_formats += [(name, formats)] if formats else []
    if not parts and not of_formats:
        return
    fields = Fields()
    yield "<h2>Metadata</h2>\n"
    for number, (name, own) in enumerate(parts):
        if not name:
            yield from fields.listed(own)
            continue
        first = " open" * (number < _MOST_OPEN)
        yield f"<details{first}><summary>{name_of(name)}</summary>\n"
        yield from fields.listed(own)
        yield "</details>\n"
    if of_formats:
        yield "<details><summary>Fields of the format, for the exact way back</summary>\n"
        for name, own in of_formats:
            yield from fields.listed({name: own} if name else own)
        yield "</details>\n"
    if fields.omitted:
        yield f"<p>and {fields.omitted} more (<code>raconvert info --json</code>)</p>\n"


# Outcomes of writing the file in every format: the plans, and nothing else ----------------------


EXACT, EQUIVALENT, REFUSED, UNKNOWN = "exact", "equivalent", "refused", "not known"
_MOST_REASONS = 4  # reasons listed per format
_MOST_PLANNED = 300  # up to so many, a container is planned as a whole
_LAST = "nothing was written"  # the last line of a refusal, left out here


class Visa(Record):
    """The outcome of writing a file in one format: what it is, why, and what would allow it."""

    format: str
    title: str
    suffix: str
    outcome: str
    reasons: tuple[str, ...]
    flags: tuple[str, ...]


def passport(opened: Opened, chosen: Array | None) -> list[Visa]:
    """The visas for all formats that are written; for formats of one array, of the chosen one.

    Raises nothing for what a format cannot hold.
    """
    settings = Settings(dry_run=True, allow=("all",))
    folder = os.path.join(tempfile.gettempdir(), f"raconvert-{uuid4().hex}")  # does not exist
    count = len(opened.bundle.arrays)
    alone, about = opened.bundle, ""
    if count > 1 and chosen is not None:
        alone, about = opened.bundle.like([chosen]), f"; this is about '{chosen.name}'"
    visas = []
    for row in registry.rows():
        if not row.writes:
            continue
        bundle, reasons = opened.bundle, []
        if about and (not row.many or count > _MOST_PLANNED):
            first = f"one of {count} arrays" if row.many else "one array in a file"
            bundle, reasons = alone, [first + about]
        visas.append(_visa(opened, bundle, row, settings, folder, reasons))
    return visas


def _visa(
    opened: Opened, bundle: Bundle, row: Row, settings: Settings, folder: str, reasons: list[str]
) -> Visa:
    """The visa for one format, from the plan of a conversion; `reasons` are its first reasons."""
    suffix = row.suffixes[0] if row.suffixes else ""
    path = os.path.join(folder, f"x{suffix}")
    report = Report([])
    outcome = EXACT
    flags: list[str] = []
    try:
        plan_bundle(Conversion(path, row, settings, report, opened=opened), bundle)
    except WouldLose as error:
        outcome = REFUSED
        reasons += [line for line in (error.remedy or "").splitlines() if line.strip() != _LAST]
    except MissingDependency as error:
        outcome = UNKNOWN
        reasons += [part for part in (error.what, error.remedy) if part]
    except RaconvertError as error:
        outcome = REFUSED
        reasons += [part for part in (error.what, error.remedy) if part]
    else:
        reasons += [str(fit) for fit in (*report.allowed, *report.equivalent)]
        reasons += report.notes
        flags = list(dict.fromkeys(fit.flag for fit in report.allowed if fit.flag))
        if report.allowed:
            outcome = REFUSED
        elif report.equivalent:
            outcome = EQUIVALENT
    reasons = [*map(str.strip, reasons)]
    if len(reasons) > _MOST_REASONS:
        reasons = [*reasons[:_MOST_REASONS], f"and {len(reasons) - _MOST_REASONS} more"]
    return Visa(row.name, row.title, suffix, outcome, tuple(reasons), tuple(flags))
