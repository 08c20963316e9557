"""``raconvert info``: what files hold, for people, as one line each, or as JSON."""

from __future__ import annotations

import os
from itertools import islice

from raconvert.arrays.dtypes import few_lengths, size
from raconvert.cli.console import one_line
from raconvert.cli.pages import refuse_existing, write_page
from raconvert.cli.sources import (
    below,
    chosen,
    each,
    expand,
    failing,
    is_tree,
    opened_to_look,
    reading,
)
from raconvert.errors import LISTED, ReadFailed, UnknownFormat, UsageError, counted, listed
from raconvert.files.paths import is_remote, refuse_used
from raconvert.inspect.info import info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.cli.console import Console
    from raconvert.errors import RaconvertError


_LONGEST_VALUE = 60  # characters of a metadata value
_LONGEST_LINE = 100  # characters of the fields of one format
_MOST_FILES = 10  # files of folders; more are summed up
_MOST_FIELDS = 20  # fields of metadata for each array; -v and --json show all


def run(args: Any, console: Console) -> int:
    """Show every file; one that fails is reported and does not stop the others."""
    if args.html or args.output is not None or args.full or args.overwrite:
        return _write_page(args, console)
    entries: list[dict[str, Any]] = []

    def tell(_: str, facts: dict[str, Any]) -> int:
        if console.json:
            entries.append(facts)
            return 0
        if entries and not args.short:
            console.result("")
        entries[:] = [facts]
        for line in short_lines(facts) if args.short else lines(facts, console):
            console.result(line)
        return 0

    paths = expand(args.files, views=True, **below(args))
    summed = len(paths) > max(_MOST_FILES, len(args.files)) and not (
        args.short or console.verbose or console.json
    )

    def look(path: str) -> dict[str, Any]:
        return info(path, **reading(args))

    if summed:
        summary = Summary()
        code = each(paths, look, summary.add, console, summary.add_failure)
        for line in summary.lines(listed(args.files, 3)):
            console.result(line)
        return code
    code = each(paths, look, tell, console, failing(console, entries))
    if console.json:
        console.result_json(entries[0] if len(paths) == 1 else entries)
    return code


def short_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield one line per array: path, format, type, shape, dims, size."""
    for array in facts["arrays"]:
        path = facts["path"]
        if facts["container"] and not path.endswith(f"#{array['name']}"):
            path += f"#{array['name']}"
        text = f"{one_line(array['type'])}  {axes(array)}  {size(array['nbytes'])}"
        yield f"{one_line(path)}  {facts['format']}  {_unless_broken(array, text)}"


def lines(facts: dict[str, Any], console: Console) -> Iterator[str]:
    """Yield the lines about a file in the long form."""
    stored = facts["stored_bytes"]
    yield (
        f"{console.bold(one_line(facts['path']))}   {facts['title']} "
        f"({facts['reason']}; plugin {facts['plugin']})"
        + (f"   {size(stored)}" if stored is not None else "")
    )
    if facts["container"]:
        yield from _tree(facts, console)
    else:
        for array in facts["arrays"]:
            yield f"  {array_text(array)}"
            for line in _metadata(array, console):
                yield f"    {line}"
    attributes = list(_fields(facts["attributes"]))
    if len(attributes) == 1:
        yield f"  attributes: {attributes[0]}"
    elif attributes:
        yield "  attributes:"
        yield from (f"    {line}" for line in attributes)
    if facts["sidecar"]:
        yield f"  sidecar: {one_line(facts['sidecar'])}"
    for note in facts["notes"][:LISTED]:
        yield f"  note: {one_line(note)}"
    if len(facts["notes"]) > LISTED:
        yield f"  note: and {len(facts['notes']) - LISTED} more (--json shows all)"
    yield from _references(facts["references"] or {"files": 0})
    if facts["reason"] != "its proof":
        yield f"to RA: {_to_ra(facts)}"


def _references(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about the files that a view names."""
    if not facts["files"]:
        return
    digests = " and SHA-256" if facts["digests"] else ""
    proof = f"proof of size, time{digests} in {one_line(facts['proof'])}"
    yield f"  references: {facts['files']} file{'s' * (facts['files'] != 1)}, {proof}"
    for row in facts["odd"][:_MOST_FILES]:
        yield f"    {row['problem'].upper()} {one_line(row['path'])}   {one_line(row['found'])}"
    if len(facts["odd"]) > _MOST_FILES:
        yield f"    and {len(facts['odd']) - _MOST_FILES} more (raconvert verify shows all)"


def _tree(facts: dict[str, Any], console: Console) -> Iterator[str]:
    """Yield groups and arrays as a tree, each array with its type, axes, size and storage."""
    arrays = {tuple(array["name"].split("/")): array for array in facts["arrays"]}
    groups = {tuple(name.split("/")): own for name, own in facts["groups"].items()}
    width = max((2 * len(path) + len(one_line(path[-1])) for path in arrays), default=0)
    types = max((len(array["type"]) for array in facts["arrays"]), default=0)
    for path, has_children in _in_tree_order([*arrays, *groups]):
        indent = "  " * len(path)
        name = f"{indent}{one_line(path[-1])}"
        if path in arrays:
            yield f"{name:<{width}}   {array_text(arrays[path], types)}"
            for line in _metadata(arrays[path], console):
                yield f"{indent}    {line}"
        if has_children or path in groups:
            yield f"{name}/"
            for line in _fields(groups.get(path, {})):
                yield f"{indent}    {line}"


def _in_tree_order(paths: list[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield paths and those of the groups above them, each once and before those inside it.

    The second value is True if there are paths inside.
    """
    inside: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for path in paths:
        for depth in range(len(path)):
            inside.setdefault(path[:depth], {})[path[: depth + 1]] = None
    waiting = list(inside.get((), ()))[::-1]
    while waiting:
        path = waiting.pop()
        yield path, path in inside
        waiting += list(inside.get(path, ()))[::-1]


def array_text(array: dict[str, Any], width: int = 0) -> str:
    """Return type, both views of the axes, size and storage of an array as one line."""
    order = ", big-endian" if array["byte_order"] == "big" else ""
    return _unless_broken(
        array,
        f"{one_line(array['type']):<{width}}   shape {axes(array)} (RA, Julia, MATLAB)   "
        f"{size(array['nbytes'])}   {_layout(array)}{order}",
    )


def _unless_broken(array: dict[str, Any], text: str) -> str:
    """The line about an array, with the problem of a damaged one; without a type, that alone."""
    if array["problem"] is None:
        return text
    problem = f"cannot be read: {one_line(array['problem'])}"
    return problem if array["type"] == "unknown" else f"{text}   {problem}"


def axes(array: dict[str, Any]) -> str:
    """Return both views of the axes: the shape with its index order, and the dims of RA."""
    shape = few_lengths(array["shape"], ", ")
    comma = "," if len(array["shape"]) == 1 else ""
    dims = few_lengths(array["dims"], " \N{MULTIPLICATION SIGN} ") or "none"
    return f"({shape}{comma}) {array['index_order'] or 'C'} · dims {dims}"


def _layout(array: dict[str, Any]) -> str:
    """Describe how an array is stored: its offset, or the facts of its encoding."""
    layout = array["layout"]
    facts = array["storage"].items()
    parts = [_storage_text(name, value) for name, value in facts if value != []]
    if layout["kind"] != "encoded":
        parts.insert(0, f"plain from byte {layout['offset']}")
    return ", ".join(parts) or "encoded"


def _storage_text(name: str, value: Any) -> str:
    """Return one fact of how an array is stored."""
    if isinstance(value, list):
        times = "\N{MULTIPLICATION SIGN}" if all(isinstance(v, int) for v in value) else ", "
        value = times.join(map(str, value))
    if name == "stored_bytes":
        return f"{size(int(value))} stored"
    return one_line(str(value) if name in ("layout", "filters") else f"{name} {value}")


def _metadata(array: dict[str, Any], console: Console) -> Iterator[str]:
    """Yield the lines of an array's metadata; without -v one short line for each single format.

    Nearly all fields of these are only for the exact way back.
    """
    fields = array["metadata"]
    if console.verbose:
        yield from _fields(fields, most=None)
        return
    yield from _fields({name: value for name, value in fields.items() if name != "formats"})
    for name, space in fields.get("formats", {}).items():
        pairs = islice(_flat(space), _MOST_FIELDS + 1)
        parts = [f"{field} = {_text(value)}" for field, value in pairs]
        line = one_line(f"{name}: {', '.join(parts[:_MOST_FIELDS])}")
        whole = len(parts) <= _MOST_FIELDS and len(line) <= _LONGEST_LINE
        yield line if whole else f"{line[:_LONGEST_LINE]}… (-v shows all)"


def _cut(text: str, longest: int) -> str:
    """The beginning of a text, with its number of characters if it is longer."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def _text(value: Any) -> str:
    """A value of metadata in one line, a text in quotes."""
    return one_line(repr(value) if isinstance(value, str) else str(value))


def _fields(fields: dict[str, Any], most: int | None = _MOST_FIELDS) -> Iterator[str]:
    """Yield ``name = value`` lines of nested metadata: the first `most`, with long values cut."""
    pairs = list(_flat(fields))
    for name, value in pairs[:most]:
        yield f"{one_line(name)} = {_cut(_text(value), _LONGEST_VALUE)}"
    if left := len(pairs[most:]) if most is not None else 0:
        yield f"… and {left} more (--json shows all)"


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values of nested metadata with their dotted names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, f"{name}[{number}]")
    else:
        yield name, value


def _to_ra(facts: dict[str, Any]) -> str:
    """Describe the file as .ra: that elements are exact, and which fields go to the sidecar."""
    count = len(facts["arrays"])
    fields = list(dict.fromkeys(f for array in facts["arrays"] for f in array["to_ra"]["sidecar"]))
    broken = sum(array["problem"] is not None for array in facts["arrays"])
    if broken:
        some = f"the other {count - broken}, exact" if count > broken else "nothing"
        return f"{some}; {broken} of {counted(count, 'array')} cannot be read"
    text = "exact" if count == 1 else f"{counted(count, 'array')}, each exact in a file of its own"
    if any(array["layout"]["kind"] == "encoded" for array in facts["arrays"]):
        text += ", as far as headers tell"
    return f"{text}; to the YAML sidecar: {', '.join(fields)}" if fields else text


# Many files in few lines: their kinds, the number of each, and the failures ----------------------


_MOST_KINDS = 5
_MOST_FAILURES = 2  # reasons, each with its first file


class Summary:
    """Summary of what `info` reports about many files."""

    def __init__(self) -> None:
        self._count = self._stored = self._nbytes = 0
        self._folders: set[str] = set()
        self._kinds: dict[tuple[str, str], list[tuple[int, ...]]] = {}
        self._failures: dict[str, list[str]] = {}

    def add(self, path: str, facts: dict[str, Any]) -> int:
        """Count a file; return the exit code 0."""
        self._count += 1
        self._folders.add(path.rpartition("/")[0])
        self._stored += facts["stored_bytes"] or 0
        self._nbytes += facts["nbytes"]
        arrays = facts["arrays"]
        if facts["container"]:
            shapes, text = [(len(arrays),)], ""
        else:
            shapes, text = [tuple(array["shape"]) for array in arrays], arrays[0]["type"]
        self._kinds.setdefault((facts["format"], text), []).extend(shapes)
        return 0

    def add_failure(self, path: str, error: RaconvertError) -> int:
        """Count a file that cannot be read; return its exit code."""
        self._count += 1
        self._failures.setdefault(error.what, []).append(path)
        return error.exit_code

    def lines(self, name: str) -> Iterator[str]:
        """Yield at most ten lines about the files, the most frequent kinds first."""
        folders = f" in {len(self._folders)} folders" if len(self._folders) > 1 else ""
        yield (
            f"{one_line(name)}   {counted(self._count, 'file')}{folders}   "
            f"{size(self._stored)} stored, {size(self._nbytes)} of elements"
        )
        kinds = sorted(self._kinds.items(), key=lambda kind: -len(kind[1]))
        width = len(str(self._count))
        for (form, text), shapes in kinds[:_MOST_KINDS]:
            yield f"  {len(shapes):>{width}} {form}   {_shapes(text, shapes)}"
        if rest := kinds[_MOST_KINDS:]:
            files = sum(len(shapes) for _, shapes in rest)
            yield f"  {files:>{width}} of {len(rest)} other kinds"
        failures = sorted(self._failures.items(), key=lambda failure: -len(failure[1]))
        for what, paths in failures[:_MOST_FAILURES]:
            yield one_line(f"  {len(paths):>{width}} failed, such as {paths[0]}: {what}")
        if others := failures[_MOST_FAILURES:]:
            files = sum(len(paths) for _, paths in others)
            yield f"  {files:>{width}} failed for {len(others)} other reasons"
        yield "-s shows one line per array, -v everything"


def _shapes(text: str, shapes: list[tuple[int, ...]]) -> str:
    """Describe the shapes of the files of one kind: a single shape, or their range.

    Without `text`, the name of a type, files are containers: a shape is their number of arrays.
    """
    low, high = min(shapes), max(shapes)
    if not text:
        few, most = low[0], high[0]
        return f"{few} array{'s' if few != 1 else ''}" if few == most else f"{few} to {most} arrays"
    if low == high:
        return f"{text}   {_tuple(low)}"
    return f"{text}   {len(set(shapes))} shapes, {_tuple(low)} to {_tuple(high)}"


def _tuple(shape: tuple[int, ...]) -> str:
    """A shape as Python writes it, of very many axes only some."""
    return f"({few_lengths(shape, ', ')}{',' if len(shape) == 1 else ''})"


# A page about a file ----------------------------------------------------------------------------


def _write_page(args: Any, console: Console) -> int:
    """Write the page about one file, or about a folder."""
    if not args.html:
        raise UsageError("-o, --full and --overwrite are for the page of --html")
    if len(args.files) != 1 or args.output is None:
        raise UsageError(
            "--html writes a page about one file, or one folder",
            remedy="info FILE --html -o PAGE",
        )
    refuse_existing(args.output, overwrite=args.overwrite)
    page, used = (_sheet_of if is_tree(args.files[0]) else _page_of)(args)
    write_page(page, args.output, console, overwrite=args.overwrite, used=used)
    return 0


def _page_of(args: Any) -> tuple[str, Iterable[str]]:
    """The page about a file, and the files that were read for it."""
    from raconvert.views.pages.file import page_of

    path = args.files[0]
    try:
        with opened_to_look(path, args) as opened:
            if args.output != "-":  # before anything is read
                refuse_used([args.output], opened.used)
            return "".join(page_of(opened, path, full=args.full)), opened.used
    except (UnknownFormat, ReadFailed) as error:
        no_file = type(error) is UnknownFormat or error.what == "does not exist"
        if not (no_file and is_remote(path) and path.endswith("/")):
            raise
        raise UnknownFormat(
            "a page about a folder is made of one on this machine, not of one at a URL",
            path=path,
            remedy="name a file in it, or copy the folder to this machine",
        ) from error


def _sheet_of(args: Any) -> tuple[str, Iterable[str]]:
    """The page about a folder, and the files with arrays in it."""
    from raconvert.views.pages.folder import page_of
    from raconvert.views.survey import survey_of

    if args.full:
        raise UsageError("--full is for the page of one file; that of a folder shows a sample")
    survey = survey_of(args.files[0], reading(args), **chosen(args))
    root = survey.listing.root
    return "".join(page_of(survey)), (os.path.join(root, one.path) for one in survey.listing.files)
