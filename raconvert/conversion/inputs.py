"""Many sources: the files that words mean, their order, and gaps and duplicates in their names.

A word that is an existing path means that file, whatever braces, stars or ``#`` are in it. Order:
as given and listed, and as braces list them; natural (2 before 10) inside each glob or folder.
Words of a command line may be a pattern that the shell expanded, so `in_shell_order` takes files of
one folder in natural order.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice, pairwise
from operator import lt, methodcaller

from raconvert.catalogue import ROWS, Row
from raconvert.declared import Record
from raconvert.errors import NotFound, ReadFailed, UsageError
from raconvert.files.paths import (
    entries_below,
    folders_of,
    is_folder,
    is_in_doubt,
    is_remote,
    is_there,
    public_name,
    visible,
)
from raconvert.files.source import read_failed
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX
from raconvert.registry import (
    FIRST_BYTES,
    by_suffix,
    first_together,
    is_one_source,
    names_folder,
    row_together,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any


# Sources in folders, and those that patterns match: files, and folders that are one source each ---


def marks_of_whole() -> dict[str, Row]:
    """Return the names of files that mark a folder as one source, with the format of each.

    Only formats that have a suffix: folders of the others are not recognised inside a tree.
    """
    return {mark: row for row in ROWS if row.suffixes for mark in row.marks}


def is_whole(path: str) -> bool:
    """True if a folder inside a tree of sources is one source itself."""
    if any(os.path.isfile(os.path.join(path, mark)) for mark in marks_of_whole()):
        return True
    return row_together(path) is not None


def row_of_url(url: str) -> Row | None:
    """Return the format of a folder at a URL that is one source, by its suffix or its files."""
    if names_folder(url):
        return by_suffix(url)
    marked = (row for mark, row in marks_of_whole().items() if is_there(f"{url}/{mark}"))
    return next(marked, None) or _row_together_at(url)


def _row_together_at(url: str) -> Row | None:
    """Return the format of the files of a folder at a URL if they are read together, else None."""
    from raconvert.files.remote import listing

    def first_bytes(file: str) -> bytes:
        with suppress(ReadFailed):
            return listing.range_of(file, 0, FIRST_BYTES)
        return b""

    if not listing.is_listed(url) or not listing.is_folder(url):
        return None
    return first_together(listing.files_in(url, recursive=False), first_bytes)


def files_in(
    folder: str, recursive: bool, include: Sequence[str], exclude: Sequence[str]
) -> Iterable[str]:
    """Yield the sources in a folder: files with the suffix of a readable format, and whole folders.

    With `include`, files of any suffix that match.
    """
    readable = tuple(row for row in ROWS if row.reads)
    for entry in entries_below(folder, is_whole) if recursive else visible(folder):
        may_be_source = include or by_suffix(entry.name, readable) or is_folder(entry)
        if may_be_source and wanted(entry.name, include, exclude) and is_source(entry):
            yield entry.path


def files_together(folder: str, row: Row) -> tuple[list[str], list[str]]:
    """Return the files of a folder that are read together, and those of other formats.

    Both are in natural order. If a file marks the folder as the root of a set, or no file lies in
    it directly, all files below it count.
    """
    marked = any(os.path.isfile(os.path.join(folder, mark)) for mark in row.marks)
    direct = [entry for entry in visible(folder) if not is_folder(entry)]
    entries = entries_below(folder) if marked or not direct else direct
    names: list[str] = []
    others: list[str] = []
    for entry in entries:
        (names if _may_be(entry.name, row) else others).append(entry.path)
    if not names:
        raise ReadFailed(f"folder holds no file that may be {row.title}", path=folder)
    return natural_sorted(names), natural_sorted(others)


def _may_be(name: str, row: Row) -> bool:
    """True unless the suffix belongs to a format with other first bytes.

    Formats may share theirs: a .tar may hold samples.
    """
    suggested = by_suffix(name)
    return suggested in (None, row) or not {*suggested.magic}.isdisjoint(row.magic)


def urls_together(url: str, row: Row) -> tuple[list[str], list[str]]:
    """Return the same as `files_together`, for a folder at a URL."""
    from raconvert.files.remote import listing

    marked = any(is_there(f"{url}/{mark}") for mark in row.marks)
    urls = [] if marked else listing.files_in(url, recursive=False)
    urls = urls or listing.files_in(url, recursive=True)
    others = [file for file in urls if not _may_be(file, row)]
    names = [file for file in urls if _may_be(file, row)]
    if not names:
        raise ReadFailed(f"folder holds no file that may be {row.title}", path=url)
    return natural_sorted(names), natural_sorted(others)


def is_source(entry: os.DirEntry[str]) -> bool:
    """True for a file, and for a folder that is one source."""
    return not is_folder(entry) or is_whole(entry.path)


def with_whole(matches: list[str]) -> list[str]:
    """Filter the matches of a pattern: drop plain folders, and the files inside folder formats."""
    whole = {path for path in matches if os.path.isdir(path) and is_whole(path)}
    inside = tuple(os.path.join(path, "") for path in whole)
    files = [path for path in matches if not os.path.isdir(path) or path in whole]
    return [path for path in files if not path.startswith(inside)] if inside else files


def wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """True if the name matches `include` (or that is empty) and does not match `exclude`."""
    if not include and not exclude:
        return True
    from fnmatch import fnmatch

    if any(fnmatch(name, pattern) for pattern in exclude):
        return False
    return not include or any(fnmatch(name, pattern) for pattern in include)


class Gathered(Record):
    """The sources of one run."""

    paths: list[str]  # in order
    many: bool  # they get a leading axis even if there is only one
    order: str  # their order, in words
    known: dict[str, list[str]] = {}  # noqa: RUF012 - the sidecars in folders that were listed
    sidecars: bool | None = None  # True if any source has one; None: not looked up yet
    odd: list[str] | None = None  # gaps and duplicates, in words; None: not looked up yet

    def looked_through(self) -> Gathered:
        """Return the same paths, with their sidecars, gaps and duplicates looked up."""
        return self._replace(sidecars=self.has_sidecars(), odd=_oddities(self.paths))

    def has_sidecars(self) -> bool:
        """True if any of the sources has a sidecar."""
        if self.sidecars is not None:
            return self.sidecars
        sidecars: set[str] = set()
        for folder in folders_of(self.paths):
            known = self.known.get(folder)
            sidecars.update(sidecars_in(folder) if known is None else known)
        return bool(sidecars) and any(path + SUFFIX in sidecars for path in self.paths)


SORTS = ("natural", "given", "name", "mtime")
_GLOB = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NESTED = re.compile(r"\{[^{}]*\{[^{}]*\}[^{}]*\}")
_RANGE = re.compile(r"(-?[0-9]{1,18})\.\.(-?[0-9]{1,18})(?:\.\.-?([0-9]{1,18}))?")
MOST_BRACED = 100_000  # files that braces in one word may stand for
_DIGITS = re.compile(r"(\d+)")


def natural_key(name: str) -> list[Any]:
    """Return a sort key under which 2 comes before 10; text and numbers alternate."""
    parts: list[Any] = _DIGITS.split(name)
    parts[1::2] = map(int, parts[1::2])
    return parts


def sidecars_in(folder: str) -> set[str]:
    """Return the paths of the sidecars in a folder; its name ends with a separator, or is empty."""
    with suppress(OSError):  # a missing folder is an error when its files are read
        return {folder + name for name in os.listdir(folder or ".") if name.endswith(SUFFIX)}
    return set()


def natural_sorted(paths: Iterable[str]) -> list[str]:
    """Return paths in natural order."""
    ordered = sorted(paths)
    # Zero-padded names are in natural order already: no key is made for tens of thousands.
    if not _are_padded(ordered):
        ordered.sort(key=natural_key)
    return ordered


def _are_padded(paths: Sequence[str]) -> bool:
    """True if sorted names are zero-padded numbers between the same text.

    All of them begin as both the first and the last one do, since they are sorted.
    """
    if not paths:
        return True
    first, last = _DIGITS.split(paths[0]), _DIGITS.split(paths[-1])
    if len(first) < 3 or first[:-2] != last[:-2] or first[-1] != last[-1]:
        return False
    width = len(paths[0])
    if set(map(len, paths)) != {width}:
        return False
    text, end = "".join(paths), width - len(first[-1])
    # ``text[column::width]`` is one character of each name.
    if any(text[column::width] != paths[0][column] * len(paths) for column in range(end, width)):
        return False
    return all(text[column::width].isdecimal() for column in range(end - len(first[-2]), end))


def is_pattern(word: str) -> bool:
    """True if a word is a glob or has braces to expand, and is not the path of a file."""
    if has_braces(word):
        return True
    if is_remote(word):
        from raconvert.files.remote import listing

        return listing.is_pattern(word)
    return _GLOB.search(word) is not None and not os.path.lexists(word)


def has_braces(word: str) -> bool:
    """True if `without_braces` expands a word, which is not the path of a file."""
    if "{" not in word or not any(map(_choices, _BRACES.findall(word))) or _NESTED.search(word):
        return False
    if is_remote(word):
        from raconvert.files.remote import listing

        return not (listing.is_listed(word) and listing.is_file(word))
    return not os.path.lexists(split_spec(word)[0])


def without_braces(word: str) -> list[str]:
    """Expand ``{000..012}`` and ``{a,b}`` as shells and WebDataset do, the last braces fastest.

    A word that is the path of a file stays as it is. If an end has zeros in front, all numbers are
    padded to its width; ``{0..9..3}`` has a step. Braces that list nothing stay as they are, and
    words with braces inside braces. Raises `UsageError` for too many words.
    """
    parts = _BRACES.split(word) if has_braces(word) else [word]
    words = [parts[0]]
    for inside, behind in zip(parts[1::2], parts[2::2], strict=True):
        choices = _choices(inside) or [f"{{{inside}}}"]
        if len(words) * len(choices) > MOST_BRACED:
            raise UsageError(
                "braces stand for too many files", path=word, expected=f"at most {MOST_BRACED}",
                remedy="name the files by a pattern with *, or list them: `--files-from`",
            )  # fmt: skip
        words = [begin + choice + behind for begin in words for choice in choices]
    return words


def _choices(inside: str) -> list[str]:
    """Return the texts that braces list, of a long range one more than allowed; else no texts."""
    if "," in inside:
        return inside.split(",")
    match = _RANGE.fullmatch(inside)
    if match is None:
        return []
    first, last, step = match.groups()
    padded = any(end.lstrip("-")[:1] == "0" and len(end.lstrip("-")) > 1 for end in (first, last))
    width = max(map(len, (first, last))) if padded else 0
    sign = 1 if int(last) >= int(first) else -1
    numbers = range(int(first), int(last) + sign, sign * (int(step or 1) or 1))
    return [f"{number:0{width}d}" for number in islice(numbers, MOST_BRACED + 1)]


def roots_of(words: Iterable[str]) -> list[str]:
    """Return the folders among words, and all URLs, which may be folders."""
    return [public_name(word) for word in words if is_remote(word) or os.path.isdir(word)]


def split_spec(spec: str) -> tuple[str, str | None]:
    """Split ``FILE#name``; the whole is the file if a file of that name exists."""
    if is_remote(spec):
        from raconvert.files.remote import listing

        return listing.split(spec)
    if "#" not in spec or os.path.lexists(spec):
        return spec, None
    path, _, name = spec.rpartition("#")
    while path and not os.path.lexists(path) and "#" in path:
        path, _, more = path.rpartition("#")
        name = f"{more}#{name}"
    return (path, name) if os.path.lexists(path) else (spec, None)


def gather(
    words: Sequence[str],
    *,
    files_from: str | Iterable[str] | None = None,
    null_separated: bool = False,
    recursive: bool = False,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    sort: str | None = None,
) -> Gathered:
    """Return the files that the words of a command line mean.

    `files_from` is a list of paths, the path of a file with one path per line, or ``-`` for the
    standard input. Raises `ReadFailed` for missing files and for patterns without a match.
    """
    if sort is not None and sort not in SORTS:
        raise UsageError(f"unknown order '{sort}'", expected=" | ".join(SORTS))
    if not words and files_from is None:
        raise UsageError("no source", remedy="name files, folders or patterns, or `--files-from`")
    paths: list[str] = []
    known: dict[str, list[str]] = {}
    literal = True
    if braced := any(map(has_braces, words)):
        words = [expanded for word in words for expanded in without_braces(word)]
    for word in words:
        matches, was_literal = _expand(word, recursive, include, exclude, known)
        paths += matches
        literal = literal and was_literal
    order = "natural order"
    if literal and len(words) > 1 and not _is_natural(paths):
        order = "given order"
    if files_from is not None:
        paths += _listed(files_from, null_separated)
        order = "given order"
    if sort is not None:
        paths, order = _sorted(paths, sort), f"{sort} order"
    many = braced or not (literal and len(words) == 1 and files_from is None)
    if many:
        _check_unfinished(paths)
    return Gathered(paths, many, order, known)


def in_shell_order(words: Sequence[str]) -> list[str]:
    """Return the words of a command line in the order that is meant.

    A shell expands ``*.npy`` to names in alphabetical order, which look as if they were typed:
    files of one folder are put into natural order. Raises nothing.
    """
    words = list(words)
    if len(words) < 2 or len(set(map(os.path.dirname, words))) > 1:
        return words
    return natural_sorted(words) if all(map(_is_literal, words)) else words


def _is_literal(word: str) -> bool:
    """True if a word means one file, or a folder that is one source."""
    if is_remote(word):
        return by_suffix(word) is not None
    return not is_pattern(word) and (not os.path.isdir(word) or is_one_source(word))


def _is_natural(paths: Sequence[str]) -> bool:
    """True if the paths of one folder are in natural order."""
    return len(set(map(os.path.dirname, paths))) == 1 and natural_sorted(paths) == [*paths]


def gathered_files(paths: Iterable[str]) -> Gathered:
    """Return files, by their literal names, as the sources of a stack in natural order."""
    files = natural_sorted(paths)
    _check_unfinished(files)
    return Gathered(files, True, "natural order")


def _check_unfinished(paths: list[str]) -> None:
    """Refuse files of a run that was interrupted while it wrote them."""
    if is_in_doubt(paths):
        from raconvert.files.unfinished import refuse_unfinished

        refuse_unfinished(paths)


def _sorted(paths: list[str], sort: str) -> list[str]:
    """Return the paths in the order that --sort asks for."""
    if sort == "natural":
        return natural_sorted(paths)
    if sort == "given":
        return paths
    return sorted(paths, key=_modified if sort == "mtime" else None)


def _modified(path: str) -> float:
    """Return the time of the last change of a source, in seconds."""
    try:
        if is_remote(path):
            from raconvert.files.remote import listing

            return listing.modified(split_spec(path)[0])
        return os.path.getmtime(split_spec(path)[0])
    except OSError as error:
        raise read_failed(path, error) from error


def _expand(
    word: str, recursive: bool, include: Sequence[str], exclude: Sequence[str],
    known: dict[str, list[str]],
) -> tuple[list[str], bool]:  # fmt: skip
    """Return the sources that one word means, and True if it was a literal file.

    The sidecars in a folder that is listed are added to `known`.
    """
    if is_remote(word := public_name(word)):
        return _at_url(word, recursive, include, exclude)
    if is_one_source(word):
        return [word], True
    if os.path.isdir(word):
        paths = natural_sorted(files_in(word, recursive, include, exclude))
        if not paths:
            raise ReadFailed(
                "folder holds no file of a known format",
                path=word,
                remedy=None if recursive else "`--recursive` also looks into its folders",
            )
        return paths, False
    if os.path.lexists(split_spec(word)[0]):
        return [word], True
    if not is_pattern(word):
        from raconvert.files.paths import did_you_mean_file

        raise NotFound("does not exist" + did_you_mean_file(word), path=word)
    paths = _without_sidecars(_glob(word, known))
    if include or exclude:
        paths = [path for path in paths if wanted(os.path.basename(path), include, exclude)]
    if not paths:
        raise NotFound("pattern matches no file", path=word)
    return natural_sorted(paths), False


def _glob(pattern: str, known: dict[str, list[str]]) -> list[str]:
    """Return the sources that a pattern matches, as `glob.glob` does, but without a call for each.

    The sidecars in its folder are added to `known`.
    """
    folder, name = os.path.split(pattern)
    if _GLOB.search(folder) or "**" in name:
        from glob import glob

        return with_whole(glob(pattern, recursive=True))
    from fnmatch import translate

    ignore_case = re.IGNORECASE if os.path.normcase("A") == "a" else 0
    matches: Callable[[str], object] = re.compile(translate(name), ignore_case).match
    if name[:1] == "*" and not ignore_case and not _GLOB.search(name, 1):  # usual, and faster so
        matches = methodcaller("endswith", name[1:])
    start = pattern[: len(pattern) - len(name)]
    try:
        with os.scandir(folder or ".") as listing:
            entries = [*listing]
    except OSError:  # no such folder: nothing matches
        return []
    names = [entry.name for entry in entries]
    text = "\n".join(["", *names, ""])  # a search in it is faster than one in each of many names
    known[start] = []
    if f"{SUFFIX}\n" in text:
        known[start] = [start + sidecar for sidecar in names if sidecar.endswith(SUFFIX)]
    paths = [
        start + entry_name
        for entry_name, entry in zip(names, entries, strict=True)
        if matches(entry_name)
        and (entry.is_file(follow_symlinks=False) or not is_folder(entry) or is_whole(entry.path))
    ]
    if name.startswith(".") or "\n." not in text:
        return paths
    hidden = start + "."
    return [path for path in paths if not path.startswith(hidden)]


def _without_sidecars(paths: list[str]) -> list[str]:
    """Return paths without the sidecars and per-item metadata of other paths in the list."""
    text = "\n".join([*paths, ""])
    if f"{SUFFIX}\n" not in text and f"{ITEMS_SUFFIX}\n" not in text:
        return paths
    beside = {path + suffix for path in paths for suffix in (SUFFIX, ITEMS_SUFFIX)}
    return [path for path in paths if path not in beside]


def _at_url(
    word: str, recursive: bool, include: Sequence[str], exclude: Sequence[str]
) -> tuple[list[str], bool]:
    """Return the same as `_expand`, for a URL, which with the suffix of a format is a file."""
    from raconvert.files.remote import listing

    if names_folder(word):
        return [word], True
    if listing.is_listed(word) and not by_suffix(word) and row_of_url(word.rstrip("/")):
        return [word.rstrip("/")], True
    matches = listing.candidates(
        word, recursive, by_suffix, every=bool(include), marks=marks_of_whole()
    )
    if matches is None:
        return [word], True
    names = [path for path in matches if wanted(os.path.basename(path), include, exclude)]
    return natural_sorted(_without_sidecars(names)), False


def _listed(files_from: str | Iterable[str], null_separated: bool) -> list[str]:
    """Return the paths in a list, which is in a file, on the standard input (``-``), or given."""
    if not isinstance(files_from, str):
        return [public_name(os.fspath(path)) for path in files_from]
    try:
        if files_from == "-":
            import sys

            data = sys.stdin.buffer.read()
        else:
            with open(files_from, "rb") as file:
                data = file.read()
    except OSError as error:
        raise ReadFailed(f"list cannot be read: {error.strerror}", path=files_from) from error
    lines = data.split(b"\0") if null_separated else data.splitlines()
    paths = [public_name(os.fsdecode(line)) for line in lines if line]
    if not paths:
        raise ReadFailed("list names no file", path=files_from)
    return paths


def sequence_note(gathered: Gathered, verb: str = "stacking") -> str:
    """Return one line: how many files, first and last, the order, gaps and duplicates."""
    paths = gathered.paths
    first, last = os.path.basename(paths[0]), os.path.basename(paths[-1])
    oddities = _oddities(paths) if gathered.odd is None else gathered.odd
    span = first if len(paths) == 1 else f"{first} … {last}"
    about = "; ".join([gathered.order, *oddities])
    return f"{verb} {len(paths)} file{'s' * (len(paths) != 1)}: {span} ({about})"


def _oddities(paths: Sequence[str]) -> list[str]:
    """Return gaps and duplicates of a sequence, in words."""
    if _is_dense(paths):  # a quick check
        return []
    oddities = []
    if gaps := missing_numbers(paths):
        oddities.append(f"gaps {gaps}")
    if twice := repeated(paths):
        oddities.append(f"{twice} duplicate{'s' if twice > 1 else ''}")
    return oddities


def repeated(paths: Sequence[str]) -> int:
    """Return the number of paths that repeat another one."""
    return len(paths) - len(set(map(os.path.normpath, paths)))


def missing_numbers(paths: Sequence[str]) -> str:
    """Return the numbers missing from names that differ in one number: ``4-8, 12-99``.

    It is "" if none are, or the names are not a numbered sequence; of more than eight gaps, only
    their number is returned.
    """
    if len(paths) < 2:
        return ""
    numbers: set[int] = set()
    frame: tuple[str, ...] | None = None
    for path in paths:
        parts = _DIGITS.split(os.path.basename(path))
        if len(parts) < 3:
            return ""
        # The last number before the suffix is compared; all text around it must be the same.
        around = (*parts[:-2], parts[-1])
        if frame is None:
            frame = around
        elif around != frame:
            return ""
        numbers.add(int(parts[-2]))
    ordered = sorted(numbers)
    gaps = [(low + 1, high - 1) for low, high in pairwise(ordered) if high - low > 1]
    if len(gaps) > 8:
        return f"{len(gaps)} between {ordered[0]} and {ordered[-1]}"
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in gaps)


def _is_dense(paths: Sequence[str]) -> bool:
    """True if sorted, zero-padded names count from first to last without a gap; quick."""
    ends = [_DIGITS.split(path)[-2:-1] for path in (paths[0], paths[-1])]
    if not all(ends) or int(ends[1][0]) - int(ends[0][0]) != len(paths) - 1:
        return False
    return all(map(lt, paths, islice(paths, 1, None))) and _are_padded(paths)
